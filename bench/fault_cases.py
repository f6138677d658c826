# SPDX-License-Identifier: Apache-2.0
"""Files and arguments as nobody should write them: spoiled copies of good ones, and bombs."""

import os
import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
import zstandard
from rosbags.rosbag2 import StoragePlugin, Writer

from bench.arms import chain_urdf
from sysid_core.data import recorded_messages, write_csv, write_recording
from sysid_core.data.message_types import JOINT_STATE, message_types
from sysid_core.recording import Recording
from sysid_core.robot import load_robot

__all__ = ["Corpus", "prepare", "spoiled"]

VALUES = (
    *("nan", ".nan", "inf", "-.inf", "1e308", "-1e308", "1e-320", "0", "-1", "1e9", "1e-308"),
    *("1e-9", "0.001", "1.5"),
    *("9" * 400, "9" * 5000, "2001-13-41", "2001-01-01", "!!int abc", "!!binary x", "!!float x"),
    *("~", "''", "[]", "{}", "[[[[]]]]", "{1: 2, a: 3}", "[a, 1]", "*a", "&a [*a]", "- -"),
    *("\xff", "\U0001f600", '"a\\nb"', "../../x", "/etc/passwd", "x" * 300, "x" * 70_000),
    *("true", "0x10", "1:2:3", "%s%n", "[bold]", "{0}", "a\0b", "\x1b[31m", "$(eval 9**9**9)"),
)
"""What a value of a file, or of an argument, is replaced by."""

ROWS = 300
_NUMBER = re.compile(r"-?\d+\.?\d*(?:[eE][-+]?\d+)?")
_LAUNCH = """launch:
- arg: {name: robot, default: arm, description: which}
- let: {name: other, value: "$(var robot)x"}
- group:
  - executable: {cmd: "echo $(var other) $(dirname)", if: "$(eval 1 == 1)"}
  - include: {file: other.launch.yaml}
"""
_PARAMETERS = """/**:
  ros__parameters: {rate: 50.0, robot: arm, gains: [1.0, 2.0], nested: {flag: true}}
controller: {ros__parameters: {bandwidth: 10.0}}
"""


class Corpus(NamedTuple):
    """The good files, all in one folder, that the bad ones are made of."""

    folder: Path
    robot: Path


def prepare(folder: Path, main: Callable[[list[str]], int]) -> Corpus:
    """Write the good files; `main` is the command, which makes an estimate of them."""
    (folder / "arm.urdf").write_text(chain_urdf(2, seed=1), encoding="utf-8")
    robot = folder / "arm.yaml"
    main(["init", str(folder / "arm.urdf"), "-o", str(robot)])
    (folder / "x.launch.yaml").write_text(_LAUNCH, encoding="utf-8")
    (folder / "other.launch.yaml").write_text("launch: []\n", encoding="utf-8")
    (folder / "params.yaml").write_text(_PARAMETERS, encoding="utf-8")
    names = load_robot(robot).joint_names
    time = np.arange(ROWS, dtype=np.float64) * 0.01
    position = np.sin(np.outer(time, [2.0, 3.0]))
    effort = 5.0 * np.cos(np.outer(time, [1.5, 2.5])) + position
    recording = Recording(time, names, position, None, effort)
    write_csv(recording, folder / "data.csv")
    write_recording(recording, folder / "bag")
    _write_database(recording, folder / "base")
    main(
        [
            "identify",
            str(folder / "data.csv"),
            "--robot",
            str(robot),
            "--out",
            str(folder / "found"),
            "--no-report",
            "--any-mass",  # these efforts are no robot's
        ]
    )
    estimate = folder / "found" / "estimate.json"
    if not estimate.is_file():
        raise RuntimeError("the good files could not be prepared: see the line above")
    shutil.copy(estimate, folder)
    return Corpus(folder, robot)


def _write_database(recording: Recording, folder: Path) -> None:
    with Writer(folder, version=9, storage_plugin=StoragePlugin.SQLITE3) as bag:
        connection = bag.add_connection("/joint_states", JOINT_STATE, typestore=message_types())
        for _, logged, content in recorded_messages(recording, "base"):
            bag.write(connection, logged, content)


def _bytes(data: bytes, rng: random.Random) -> bytes:
    """Flip, cut, double or insert bytes."""
    spoiled = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(max(1, len(spoiled)))
        kind = rng.randrange(5)
        if kind == 0 and spoiled:
            spoiled[at % len(spoiled)] = rng.randrange(256)
        elif kind == 1:
            del spoiled[at:]
        elif kind == 2:
            spoiled[at:at] = spoiled[at : at + rng.randrange(200)]
        elif kind == 3:
            spoiled[at : at + 8] = rng.choice((b"\xff" * 8, bytes(8), b"\x7f" + b"\xff" * 7))
        else:
            spoiled[at:at] = rng.randbytes(rng.randrange(20))
    return bytes(spoiled)


def _text(data: bytes, rng: random.Random) -> bytes:
    """Replace a number or a word, or lose, double or swap lines."""
    text = data.decode("utf-8", errors="replace")
    kind = rng.randrange(4)
    if kind <= 1:
        pattern = _NUMBER if kind == 0 else re.compile(r"[\w.]+")
        spans = [match.span() for match in pattern.finditer(text)] or [(0, 0)]
        start, end = rng.choice(spans)
        text = text[:start] + rng.choice(VALUES) + text[end:]
    else:
        lines = text.splitlines(keepends=True) or [""]
        at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        if kind == 2:
            lines[at], lines[other] = lines[other], rng.choice(("", lines[at], lines[at] * 3))
        else:
            lines[at] = " " * rng.randrange(5) + lines[at]
        text = "".join(lines)
    return text.encode("utf-8", errors="surrogateescape")


def _tree(data: bytes, rng: random.Random) -> bytes:
    """Replace, drop or rename one node of a YAML or JSON text."""
    root = {"root": yaml.safe_load(data)}
    node: Any = root
    key: Any = "root"
    while isinstance(node[key], (dict, list)) and node[key] and rng.random() < 0.85:
        node = node[key]
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
    kind = rng.randrange(5)
    if kind == 0 and node is not root:
        del node[key]
    elif kind == 1 and isinstance(node, dict) and node is not root:
        node[rng.choice(("x", 1, None, "", "a b", 2.5, True))] = node.pop(key)
    elif kind == 2:
        node[key] = [node[key]] * rng.choice((0, 2, 50))
    else:
        node[key] = "@@"
    text = yaml.safe_dump(root["root"], sort_keys=False)
    return text.replace("'@@'", rng.choice(VALUES)).encode("utf-8", errors="surrogateescape")


def spoiled(data: bytes, rng: random.Random, *, tree: bool = False) -> bytes:
    """Return a file's contents with something wrong."""
    ways = [_bytes, _text, _text] + [_tree] * (3 if tree else 0)
    return rng.choice(ways)(data, rng)


def aliases(levels: int) -> str:
    """Return YAML of ten aliases of ten aliases and so on."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, levels)]
    return "\n".join(lines) + "\n"


def bomb(corpus: Corpus, folder: Path, rng: random.Random) -> list[str]:
    """Write something that would fill the memory, block or crash; return the arguments."""
    kind = rng.randrange(14)
    target = folder / rng.choice(("x.csv", "x.mcap", "x.db3", "x.yaml", "x.urdf", "x.json"))
    if kind == 0:
        os.mkfifo(target)
    elif kind == 1:
        target.symlink_to(rng.choice(("/dev/zero", "/dev/random", "/dev/tty", "/proc/self/mem")))
    elif kind == 2:
        target.symlink_to(target.name)
    elif kind == 3:
        target.mkdir()
    elif kind == 4:
        with target.open("wb") as file:
            file.truncate(rng.choice((1 << 28, 1 << 33)))
    elif kind == 5:
        target = folder / "x.mcap.zstd"
        target.write_bytes(zstandard.ZstdCompressor().compress(bytes(1 << 28)))
        target = folder
    elif kind == 6:
        target = folder / "x.db3"
        _hostile_database(target, rng)
    elif kind == 7:
        target = folder / "x.yaml"
        target.write_text(aliases(rng.randrange(4, 30)) + corpus.robot.read_text())
    elif kind == 8:
        target = folder / "x.urdf"
        count = rng.choice((150, 250, 4000))
        target.write_text(chain_urdf(count, seed=2))
    elif kind == 9:
        target = folder / rng.choice(("x.yaml", "x.json"))
        target.write_text(rng.choice("[{") * rng.choice((200, 5000, 1_000_000)))
    elif kind == 10:
        target = folder / "x.urdf"
        target.write_text("<robot>" + "<link>" * rng.choice((50, 500, 100_000)))
    elif kind == 11:
        target = folder / "x.csv"
        count = rng.choice((5000, 100_000))
        header = ",".join(f"j{k}/position" for k in range(count))
        target.write_text(f"time,{header}\n" + "0" + ",0" * count + "\n")
    elif kind == 12:
        target = Path(rng.choice(("n" * 300 + target.suffix, "~nosuchuser/x", "a\0b", "/", "")))
    else:
        target = folder / "bag"
        shutil.copytree(corpus.folder / "bag", target)
        (target / "metadata.yaml").write_text(aliases(9))
    return command_for(corpus, target, folder, rng)


def _hostile_database(path: Path, rng: random.Random) -> None:
    data, kind = rng.choice(
        (
            ("data", "3000000000"),
            ("data", "'text'"),
            ("data", "zeroblob(50000000)"),
            ("data GENERATED ALWAYS AS (zeroblob(900000000))", ""),
        )
    )
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE topics (id, name, type, serialization_format)")
        base.execute(f"INSERT INTO topics VALUES (1, '/j', '{JOINT_STATE}', 'cdr')")
        base.execute(f"CREATE TABLE messages (id, topic_id, timestamp, {data})")
        names = "id, topic_id, timestamp" + (", data" if kind else "")
        values = "1, 1, 1" + (f", {kind}" if kind else "")
        base.execute(f"INSERT INTO messages ({names}) VALUES ({values})")
    base.close()


def command_for(corpus: Corpus, path: Path, folder: Path, rng: random.Random) -> list[str]:
    """Return a command that reads a file of its kind."""
    out, robot = str(folder / "out"), str(corpus.robot)
    data = str(corpus.folder / "data.csv")
    name = str(path)
    suffix = path.suffix if not path.name.endswith(".launch.yaml") else ".launch"
    if suffix == ".yaml":
        commands = [["info", "--robot", name], ["info", data, "--robot", name]]
    elif suffix == ".urdf":
        commands = [["init", name, "-o", f"{out}/made.yaml"]]
    elif suffix == ".json":
        commands = [["validate", name, data], ["compare", name, f"{corpus.folder}/estimate.json"]]
    else:
        commands = [["info", name]] * 3
        commands += [["info", name, "--robot", robot], ["replay", name, "--robot", robot]]
        identify = ["identify", name, "--robot", robot, "--out", out, "--no-report"]
        commands += [identify, [*identify, "--lenient"]]
    return rng.choice(commands) + rng.choice(([], ["--json"]) if suffix != ".urdf" else ([],))


def spoiled_file(corpus: Corpus, folder: Path, rng: random.Random) -> list[str]:
    """Write a spoiled copy of one of the good files; return the arguments."""
    name = rng.choice(
        ("arm.yaml", "arm.yaml", "arm.urdf", "data.csv", "estimate.json", "params.yaml")
        + ("x.launch.yaml", "bag/bag.mcap", "base/base.db3", "base/metadata.yaml")
    )
    data = (corpus.folder / name).read_bytes()
    target = folder / Path(name).name
    bad = spoiled(data, rng, tree=name.endswith((".yaml", ".json")))
    if name == "base/metadata.yaml":
        shutil.copytree(corpus.folder / "base", folder / "base")
        (folder / "base" / "metadata.yaml").write_bytes(bad)
        return command_for(corpus, folder / "base", folder, rng)
    target.write_bytes(bad)
    if name == "arm.yaml":
        shutil.copyfile(corpus.folder / "arm.urdf", folder / "arm.urdf")
    if name == "x.launch.yaml":
        return ["LAUNCH", str(target)]
    if name == "params.yaml":
        return ["PARAMETERS", str(target)]
    return command_for(corpus, target, folder, rng)


_OPTIONS: dict[str, tuple[str, ...]] = {
    "identify": ("--method", "--train", "--from", "--only", "--cutoff", "--topic", "--out"),
    "info": ("--robot", "--topic"),
    "validate": ("--robot", "--cutoff", "--topic"),
    "compare": ("--robot", "--cutoff"),
    "replay": ("--rate", "--window", "--method", "--cutoff"),
    "excite": (
        *("--duration", "--seed", "--starts", "--harmonics", "--share", "--speed", "--rate"),
        *("--acceleration", "--floor"),
    ),
    "init": ("--name",),
    "compliance": ("--robot",),
    "simulate": ("--seed", "--duration", "--robot"),
}


def arguments(corpus: Corpus, folder: Path, rng: random.Random) -> list[str]:
    """Return a command with one or two options that have a bad value."""
    good = str(corpus.folder)
    out = ["--out", str(folder / "out")]
    command = {
        "identify": ["identify", f"{good}/data.csv", "--robot", f"{good}/arm.yaml", *out],
        "info": ["info", f"{good}/data.csv"],
        "validate": ["validate", f"{good}/estimate.json", f"{good}/data.csv"],
        "compare": ["compare", f"{good}/estimate.json", f"{good}/estimate.json"],
        "replay": ["replay", f"{good}/data.csv", "--robot", f"{good}/arm.yaml"],
        "excite": ["excite", f"{good}/arm.yaml", *out, "--starts", "1", "--duration", "2"],
        "init": ["init", f"{good}/arm.urdf", "-o", str(folder / "out" / "x.yaml")],
        "compliance": ["compliance", f"{good}/data.csv", "--robot", f"{good}/arm.yaml", *out],
        "simulate": ["simulate", "--robot", f"{good}/arm.yaml", *out, "--duration", "0.1"],
    }
    verb = rng.choice(sorted(command))
    words = command[verb]
    if verb == "identify":
        words.append("--no-report")
    for _ in range(rng.choice((1, 1, 2))):
        words.append(f"{rng.choice(_OPTIONS[verb])}={rng.choice(VALUES)}")
    return words
