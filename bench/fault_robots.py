# SPDX-License-Identifier: Apache-2.0
"""Random robots, sane and insane, with random descriptions and random recordings of them."""

import math
import random
from pathlib import Path

from bench.fault_cases import Corpus

__all__ = ["random_robot"]

_TYPES = ("revolute", "continuous", "prismatic", "fixed")


def _numbers(rng: random.Random, count: int, size: float) -> str:
    return " ".join(f"{rng.uniform(-size, size):.4g}" for _ in range(count))


def _link(rng: random.Random, name: str, strange: bool) -> str:
    if rng.random() < 0.1:
        return f'<link name="{name}"/>'
    mass = 10.0 ** rng.uniform(-3.0, 2.0)
    inertia = [10.0 ** rng.uniform(-6.0, 1.0) for _ in range(3)]
    products = [rng.uniform(-1.0, 1.0) * min(inertia) for _ in range(3)]
    if strange:
        mass = rng.choice((0.0, 1e-30, 1e30, mass))
        inertia[rng.randrange(3)] = rng.choice((0.0, -1.0, 1e30, 1e-30))
    entries = zip(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), (*inertia, *products), strict=True)
    attributes = " ".join(f'{key}="{value:.6g}"' for key, value in entries)
    return (
        f'<link name="{name}"><inertial><origin xyz="{_numbers(rng, 3, 0.3)}" '
        f'rpy="{_numbers(rng, 3, 2.0)}"/><mass value="{mass:.6g}"/><inertia {attributes}/>'
        "</inertial></link>"
    )


def _urdf(rng: random.Random, joints: int, strange: bool) -> str:
    parts = [_link(rng, "l0", False)]
    for k in range(joints):
        parent = rng.choice((k, k, rng.randrange(k + 1)))
        kind = rng.choice(_TYPES) if k else "revolute"
        limit = rng.choice((1.0, 1e3, 1e-3)) if not strange else rng.choice((0.0, 1e30, -1.0, 1.0))
        axis = rng.choice(("1 0 0", "0 1 0", "0 0 1", _numbers(rng, 3, 1.0)))
        parts.append(_link(rng, f"l{k + 1}", strange and rng.random() < 0.5))
        parts.append(
            f'<joint name="j{k}" type="{kind}"><parent link="l{parent}"/>'
            f'<child link="l{k + 1}"/><origin xyz="{_numbers(rng, 3, 1.0)}" '
            f'rpy="{_numbers(rng, 3, 3.0)}"/><axis xyz="{axis}"/><limit lower="-{limit:g}" '
            f'upper="{limit:g}" effort="{limit * 50:g}" velocity="{limit * 3:g}"/>'
            f'<dynamics damping="{rng.choice((0, 0.1, 1e6))}" friction="{rng.choice((0, 2))}"/>'
            "</joint>"
        )
    return f'<robot name="r">{"".join(parts)}</robot>'


def _description(rng: random.Random, joints: int) -> str:
    lines = [
        "name: r",
        "urdf: r.urdf",
        f"base: {rng.choice(('fixed', 'floating'))}",
        f"gravity: [{rng.choice((0, 0, 0, 1, 1e6))}, 0, {rng.choice((-9.81, -9.81, 0, -1e30))}]",
    ]
    links = [f"l{k}" for k in range(joints + 2)]  # the last does not exist
    if rng.random() < 0.3:
        lines.append(f"contacts: [{{name: f, link: {rng.choice(links)}, type: point}}]")
    if rng.random() < 0.3:
        a, b = rng.choice(links), rng.choice(links)
        lines.append(
            f"loops: [{{name: c, frame_a: {{link: {a}, xyz: [{rng.uniform(-1, 1):.3g}, 0, 0]}}, "
            f"frame_b: {{link: {b}}}, type: {rng.choice(('point', 'fixed'))}}}]"
        )
        passive = [f"j{k}" for k in range(joints) if rng.random() < 0.3]
        lines.append(f"joints: {{passive: [{', '.join(passive)}]}}")
    if rng.random() < 0.3:
        lines.append(f"effort: {{gain: {rng.choice((1, -1, 0, 1e30, 1e-30))}}}")
    if rng.random() < 0.3:
        lines.append(
            f"signals: {{rate: {rng.choice((1, 100, 1e9))}, cutoff: {rng.choice((1e-9, 5, 1e9))}}}"
        )
    return "\n".join(lines) + "\n"


def _table(rng: random.Random, joints: int) -> str:
    """Return a recording of smooth motion, of noise, or of next to nothing."""
    names = [f"j{k}" for k in range(joints) if rng.random() < 0.97] or ["j0"]
    rows, period = rng.choice((1, 2, 30, 300, 300, 300)), rng.choice((0.01, 0.01, 0.01, 1e-9, 1e6))
    size = rng.choice((1.0, 1.0, 1e-12, 1e12, 1e200, 0.0))
    header = ",".join(f"{name}/position,{name}/velocity,{name}/effort" for name in names)
    lines = [f"time,{header}"]
    phases = [rng.uniform(0.0, 6.0) for _ in names]
    strange, scrambled = rng.random() < 0.2, rng.choice((0.0, 0.0, 0.0, 0.01, 1.0))
    for row in range(rows):
        time = row * period * (rng.uniform(0.5, 1.5) if strange else 1.0)
        if rng.random() < scrambled:
            time = 10.0 ** rng.uniform(-9.0, 12.0)
        cells = [f"{time:.12g}"]
        for phase in phases:
            angle = phase + 3.0 * row * 0.01
            wave = (math.sin(angle), 3.0 * math.cos(angle), math.sin(1.3 * angle))
            cells += [f"{size * (w + 0.01 * rng.gauss(0, 1)):.9g}" for w in wave]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


def random_robot(corpus: Corpus, folder: Path, rng: random.Random) -> list[str]:
    """Write a robot and a recording of it; return a command that uses both."""
    joints, strange = rng.choice((1, 2, 2, 3, 4, 6)), rng.random() < 0.4
    (folder / "r.urdf").write_text(_urdf(rng, joints, strange), encoding="utf-8")
    robot, data = folder / "r.yaml", folder / "data.csv"
    robot.write_text(_description(rng, joints), encoding="utf-8")
    data.write_text(_table(rng, joints), encoding="utf-8")
    out = ["--out", str(folder / "out")]
    commands = (
        ["info", "--robot", str(robot)],
        ["init", str(folder / "r.urdf"), "-o", str(folder / "out" / "made.yaml")],
        ["info", str(data), "--robot", str(robot)],
        ["identify", str(data), "--robot", str(robot), *out, "--no-report"],
        ["identify", str(data), "--robot", str(robot), *out, "--no-report", "--lenient"],
        ["replay", str(data), "--robot", str(robot), "--json"],
    )
    return list(rng.choice(commands))
