# SPDX-License-Identifier: Apache-2.0
"""Loops on an independent closed-chain robot: a leg of Cassie, from its published SDF."""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.robot import load_robot, parse_description
from sysid_core.robot.loop_check import check_loops, random_closed_configurations
from sysid_core.robot.loops import LoopClosure

SDF = "share/example-robot-data/robots/cassie_description/robots/cassie_v2.sdf"
# of the knee only as far as the tarsus follows
MOVING = {  # child: (parent, axis, lower, upper), as the SDF has them; rods wide [rad]
    "left-hip-roll": ("pelvis", "0 0 1", -0.26, 0.35),
    "left-hip-yaw": ("left-hip-roll", "0 0 -1", -0.38, 0.38),
    "left-hip-pitch": ("left-hip-yaw", "0 0 1", -0.87, 1.39),
    "left-knee": ("left-hip-pitch", "0 0 1", -1.9, 0.1396),
    "left-tarsus": ("left-shin", "0 0 1", -0.1396, 1.9548),
    "left-foot-crank": ("left-tarsus", "0 0 1", -2.4435, -0.6109),
    "left-plantar-rod": ("left-foot-crank", "0 0 1", 0.5, 2.6),
    "left-foot": ("left-tarsus", "0 0 1", -2.4435, -0.6109),
    "achilles-cross": ("left-hip-pitch", "0 0 1", -1.0, 1.0),
    "left-achilles-rod": ("achilles-cross", "0 1 0", -1.0, 1.0),
}
SPRINGS = {"left-shin": "left-knee", "left-heel-spring": "left-tarsus"}  # held at rest
PASSIVE = ("left-tarsus", "left-plantar-rod", "left-foot", "achilles-cross", "left-achilles-rod")
HEEL_PIN = np.array([0.11877, -0.01, 0.0])  # [m] in the heel spring's frame
FOOT_PIN = np.array([0.055, 0.0, 0.008])  # [m] in the foot's frame


def _sdf() -> Path:
    spec = importlib.util.find_spec("pinocchio")
    parents = Path(spec.origin).parents if spec is not None and spec.origin else ()
    for folder in parents:
        if (folder / SDF).is_file():
            return folder / SDF
    pytest.skip(f"example-robot-data is not installed: no {SDF}")


def _poses(path: Path) -> dict[str, FloatArray]:
    """Return the pose (4, 4) of every link in the model's frame."""
    model = ET.parse(path).getroot().find("model")
    poses: dict[str, FloatArray] = {}
    for link in [] if model is None else model.findall("link"):
        values = np.array([float(v) for v in (link.findtext("pose") or "").split()])
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = pin.rpy.rpyToMatrix(*values[3:]), values[:3]
        poses[link.get("name", "")] = pose
    return poses


def _rpy(R: FloatArray) -> FloatArray:
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    return np.array([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])


def _urdf(poses: dict[str, FloatArray]) -> str:
    inertial = (
        '<inertial><mass value="1"/><origin xyz="0.1 0 0"/><inertia ixx="0.01" iyy="0.02" '
        'izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    text = ['<robot name="cassie"><link name="pelvis"/>']
    parents = {**{child: parent for child, (parent, *_) in MOVING.items()}, **SPRINGS}
    for child, parent in parents.items():
        relative = np.linalg.inv(poses[parent]) @ poses[child]
        xyz, rpy = (
            " ".join(map(repr, map(float, v))) for v in (relative[:3, 3], _rpy(relative[:3, :3]))
        )
        kind = "revolute" if child in MOVING else "fixed"
        text.append(
            f'<link name="{child}">{inertial}</link><joint name="{child}" type="{kind}">'
            f'<parent link="{parent}"/><child link="{child}"/><origin xyz="{xyz}" rpy="{rpy}"/>'
        )
        if child in MOVING:
            _, axis, lower, upper = MOVING[child]
            text.append(
                f'<axis xyz="{axis}"/><limit lower="{lower}" upper="{upper}" effort="100" '
                'velocity="10"/>'
            )
        text.append("</joint>")
    return "".join([*text, "</robot>"])


Build = Callable[..., LoopClosure]


@pytest.fixture(scope="module")
def cassie(build: Build) -> LoopClosure:
    return build()


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Build the leg from its links' published poses."""
    poses = _poses(_sdf())
    # the rod's ball joint: a universal joint, for its own length axis is of no account
    poses["left-achilles-rod"] = poses["left-hip-pitch"].copy()
    poses["left-achilles-rod"][:3, 3] += poses["left-hip-pitch"][:3, 2] * 0.045
    poses["achilles-cross"] = poses["left-achilles-rod"]

    def pin(rod: str, link: str, point: FloatArray) -> list[float]:
        """Return where a pin of a link lies on the rod in the published assembly [m]."""
        world = poses[link] @ np.append(point, 1.0)
        return [float(v) for v in (np.linalg.inv(poses[rod]) @ world)[:3]]

    loops = [
        {
            "name": rod,
            "frame_a": {"link": rod, "xyz": pin(rod, link, point)},
            "frame_b": {"link": link, "xyz": point.tolist()},
        }
        for rod, link, point in (
            ("left-achilles-rod", "left-heel-spring", HEEL_PIN),
            ("left-plantar-rod", "left-foot", FOOT_PIN),
        )
    ]
    folder = tmp_path_factory.mktemp("cassie")
    (folder / "cassie.urdf").write_text(_urdf(poses))
    data = {
        "name": "cassie",
        "urdf": "cassie.urdf",
        "joints": {"passive": list(PASSIVE)},
        "loops": loops,
    }

    def make(**limits: list[float]) -> LoopClosure:
        changed = {**data, "limits": {"position": limits}}
        return LoopClosure(load_robot(parse_description(changed, source=folder / "cassie.yaml")))

    return make


def test_cassie_closes_with_its_planar_foot_linkage(cassie: LoopClosure) -> None:
    assert cassie.equations.size == 6
    assert cassie.redundant == {"left-plantar-rod": 1}
    assembled = np.abs(cassie.equations.residual(np.zeros(10)))
    assert assembled.max() < 1e-12  # the published assembly, with crank and rod in line


def test_cassie_has_a_unique_configuration(cassie: LoopClosure) -> None:
    report = check_loops(cassie, count=40)
    assert report.holds
    assert report.reachable == 40
    assert report.residual < 1e-10


def test_an_assembly_that_can_flip_is_reported(build: Build) -> None:
    """Crank, rod and foot also close crossed over where wide limits do not rule it out."""
    wide = {name: [-3.0, 3.0] for name in ("left-plantar-rod", "left-foot")}
    report = check_loops(build(**wide), count=40)
    assert report.reachable == 40
    assert report.unique < 40
    assert not report.holds
    assert "other assemblies" in report.lines()[1]


def test_foot_and_crank_turn_together(cassie: LoopClosure) -> None:
    """They are sides of a parallelogram, but for the tilt of the published pins."""
    names = cassie.robot.joint_names
    foot, crank = names.index("left-foot"), names.index("left-foot-crank")
    q = random_closed_configurations(cassie, 40, seed=5)
    np.testing.assert_allclose(q[:, foot], q[:, crank], atol=0.01)


def test_cassies_maps_are_derivatives(cassie: LoopClosure) -> None:
    rng, h, active = np.random.default_rng(2), 1e-5, cassie.equations.actuated
    for q in random_closed_configurations(cassie, 10, seed=1):
        v = rng.normal(size=len(active))
        maps = cassie.maps(q, v)
        assert np.abs(maps.G.T @ cassie.equations.jacobian(q).T).max() < 1e-10
        forth = cassie.solve(q[active] + h * v, q).configuration
        back = cassie.solve(q[active] - h * v, q).configuration
        np.testing.assert_allclose((forth - back) / (2 * h), maps.G @ v, atol=1e-6)
        rate = (cassie.map(forth)[0] - cassie.map(back)[0]) / (2 * h)
        np.testing.assert_allclose(rate, maps.G_dot, atol=1e-6)
