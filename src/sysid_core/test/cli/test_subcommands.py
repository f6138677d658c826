# SPDX-License-Identifier: Apache-2.0
"""The subcommands do what the contract says, and print pure JSON where asked."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import Reader, Writer

from sysid_core.arrays import FloatArray
from sysid_core.cli import subcommand as subcommand_module
from sysid_core.cli.declarations import SUBCOMMANDS
from sysid_core.cli.main import main
from sysid_core.cli.subcommand import find_subcommands
from sysid_core.data import write_csv, write_recording
from sysid_core.data.message_types import message_types
from sysid_core.excitation.design import ExciteConfig
from sysid_core.identification import IdentifyConfig
from sysid_core.online.settings import OnlineConfig
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot


@pytest.fixture(scope="module")
def ur10() -> Robot:
    return load_robot("ur10")


@pytest.fixture(scope="module")
def truth(ur10: Robot) -> FloatArray:
    vector = ur10.consistent_nominal.copy()
    vector[ur10.layout.body("forearm_link")] *= 1.4
    vector[ur10.layout.term("viscous")] = [10.0, 12.0, 6.0, 2.0, 2.0, 2.0]
    vector[ur10.layout.term("coulomb")] = [8.0, 9.0, 5.0, 1.5, 1.5, 1.5]
    return vector


@pytest.fixture(scope="module")
def folder(
    ur10: Robot,
    truth: FloatArray,
    make_recording: Callable[..., Recording],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Return a folder with the same run as a table and as a bag, another run, and a result."""
    target = tmp_path_factory.mktemp("runs")
    run = make_recording(ur10, truth, duration=20.0, noise=0.2, seed=1)
    write_csv(run, target / "run.csv")
    write_recording(run, target / "bag")
    write_csv(make_recording(ur10, truth, duration=10.0, seed=4), target / "other.csv")
    arguments = ["identify", str(target / "run.csv"), "--robot", "ur10", "--out"]
    assert main([*arguments, str(target / "out")]) == 0
    return target


def _json(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> Any:
    assert main(arguments) == 0
    return json.loads(capsys.readouterr().out)


def test_identify_writes_its_results(folder: Path) -> None:
    written = {path.name for path in (folder / "out").iterdir()}
    assert {"estimate.json", "ur10.urdf", "identified.yaml", "report.html"} <= written
    assert not any(name.startswith(".") for name in written)


def test_identify_prints_the_estimate_as_json(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["identify", str(folder / "run.csv"), "--robot", "ur10", "--json"]
    printed = _json(capsys, [*arguments, "--out", str(tmp_path), "--no-report"])
    assert printed == json.loads((tmp_path / "estimate.json").read_text())
    assert min(printed["consistency"].values()) > 0.0
    figures = printed["validation"]["rmse"]
    assert np.all(np.array(figures["identified"]) < np.array(figures["nominal"]))


def test_no_model_of_joints_that_are_mixed_up_is_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    header, *lines = (folder / "run.csv").read_text().splitlines()
    names = header.split(",")
    turned = [k for k, name in enumerate(names) if name.startswith("elbow_joint/")]
    rows = [line.split(",") for line in lines[: len(lines) // 2]]
    for row, k in itertools.product(rows, turned):
        row[k] = f"{-float(row[k])}"
    table = tmp_path / "turned.csv"
    table.write_text("\n".join([header, *map(",".join, rows)]) + "\n")
    quick = "--friction", "described", "--cutoff", "8", "--no-report"
    arguments = ["identify", str(table), "--robot", "ur10", *quick, "--out"]

    assert main([*arguments, str(tmp_path / "out")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert said.count("of elbow_joint have the opposite sign") == 1
    assert "or pass --any-mass" in said
    assert not (tmp_path / "out").exists()
    assert main([*arguments, str(tmp_path / "any"), "--any-mass"]) == 0
    assert (tmp_path / "any" / "estimate.json").exists()


def test_the_identified_description_starts_from_the_estimate(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    estimate = json.loads((folder / "out" / "estimate.json").read_text())
    robot = load_robot(folder / "out" / "identified.yaml")
    for body, phi in robot.layout.bodies_of(robot.nominal).items():
        np.testing.assert_allclose(phi, estimate["bodies"][body], rtol=1e-6, atol=1e-9)
    for joint, terms in robot.layout.joints_of(robot.nominal).items():
        assert estimate["joints"][joint].items() <= terms.items()
    assert robot.description.signals.cutoff == pytest.approx(estimate["cutoff_hz"])
    arguments = ["identify", str(folder / "other.csv"), "--robot"]
    arguments += [str(folder / "out" / "identified.yaml"), "--json", "--no-report"]
    again = _json(capsys, [*arguments, "--out", str(tmp_path)])
    assert min(again["validation"]["r2"]["nominal"]) > 0.9


def test_table_and_bag_give_the_same_result(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = []
    for data in ("run.csv", "bag"):
        arguments = ["identify", str(folder / data), "--robot", "ur10", "--json", "--no-report"]
        results.append(_json(capsys, [*arguments, "--out", str(tmp_path / data)]))
    table, bag = (np.array(r["validation"]["rmse"]["identified"]) for r in results)
    np.testing.assert_allclose(bag, table, rtol=1e-4)  # a bag's clock ticks in nanoseconds


def test_validate_scores_another_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    estimate = str(folder / "out" / "estimate.json")
    arguments = ["validate", estimate, str(folder / "other.csv"), "--json", "--simulate"]
    scores = _json(capsys, arguments)
    assert {"joints", "rmse", "r2"} <= set(scores)
    velocity = {k: np.array(e) for k, e in scores["simulation"]["velocity"].items()}
    assert (velocity["identified"] < velocity["nominal"]).all()
    identified, nominal = (np.array(scores["rmse"][k]) for k in ("identified", "nominal"))
    assert (identified < 0.2 * nominal).all()
    assert min(scores["r2"]["identified"]) > 0.9


def test_the_identified_urdf_can_be_identified_from_again(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "robot.yaml"
    assert main(["init", str(folder / "out" / "ur10.urdf"), "-o", str(target)]) == 0
    capsys.readouterr()
    arguments = ["identify", str(folder / "other.csv"), "--robot", str(target), "--json"]
    again = _json(capsys, [*arguments, "--out", str(tmp_path / "out"), "--no-report"])
    assert max(again["validation"]["r2"]["nominal"]) > 0.9
    arguments = ["validate", str(tmp_path / "out"), str(folder / "run.csv"), "--json"]
    assert min(_json(capsys, arguments)["r2"]["identified"]) > 0.9


def test_the_example_of_the_readme_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    readme = Path(__file__).resolve().parents[4] / "README.md"
    if not readme.is_file():
        pytest.skip(f"{readme} is missing")
    (example,) = re.findall(r"```python\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "my_bag").symlink_to(folder / "bag")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(example, names)
    assert (names["found"].validation.rmse_identified < 1.0).all()


def test_only_and_from_give_a_load(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "identify",
        str(folder / "other.csv"),
        "--robot",
        "ur10",
        "--out",
        str(tmp_path),
        "--from",
        str(folder / "out"),
        "--only",
        "wrist_3_link",
        "--no-report",
    ]
    found = _json(capsys, [*arguments, "--json"])
    (load,) = found["loads"]
    assert load["body"] == "wrist_3_link"
    assert abs(load["mass"]) < 0.2
    assert load["mass_std"] > 0.0
    assert main(arguments) == 0
    assert "load on wrist_3_link" in capsys.readouterr().out


def test_info_says_what_is_there_and_whether_it_fits(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _json(capsys, ["info", str(folder / "bag"), "--robot", "ur10", "--json"])
    assert found["fit"]["fits"]
    assert {joint["name"] for joint in found["joints"]} == set(load_robot("ur10").joint_names)
    found = _json(capsys, ["info", str(folder / "bag"), "--robot", "panda", "--json"])
    assert not found["fit"]["fits"]
    assert "panda_joint1" in found["fit"]["reason"]
    assert main(["info", str(folder / "run.csv")]) == 0
    assert "range [rad or m]" in capsys.readouterr().out


def test_info_checks_the_loops_of_a_robot_without_data(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["info", "--robot", "digit_left_leg"]) == 0
    shown = capsys.readouterr().out
    assert "6 actuated and 9 passive joints on a fixed base" in shown
    assert "Assumption 1: a unique solution exists (100 of 100 reachable" in shown
    found = _json(capsys, ["info", "--robot", "panda", "--json"])["robot"]
    assert (found["passive"], found["loops"]) == ([], None)
    assert main(["info"]) == 2
    assert "give DATA, --robot ROBOT, or both" in capsys.readouterr().err


def test_replay_prints_a_line_per_update_and_a_summary(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["replay", str(folder / "other.csv"), "--robot", "ur10", "--rate", "10"]
    assert main([*arguments, "--json"]) == 0
    *updates, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for update in updates:
        assert {"t", "state", "r2", "r2_joints", "revision", "solve_ms", "payload"} <= set(update)
    summary = last["summary"]
    assert summary["updates"] == len(updates)
    assert set(summary["solve_ms"]) == {"p50", "p99", "max"}
    assert summary["accepted"] > 0
    assert summary["first_accepted_s"] < 10.0
    assert summary["samples"] > 0
    assert summary["samples_per_s"] > 0.0
    assert main(arguments) == 0
    assert "IDENTIFIED" in capsys.readouterr().out


def test_init_keeps_what_is_there_unless_forced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    urdf = str(load_robot("panda").urdf.path)
    assert main(["init", urdf]) == 0
    assert main(["init", urdf]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["init", urdf, "--force"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["panda.yaml"]


def test_init_reads_the_robot_from_a_bag(
    folder: Path, ur10: Robot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bag = tmp_path / "described"
    store = message_types()
    with Reader(folder / "bag") as given, Writer(bag, version=9) as made:
        connection = made.add_connection(
            "/robot_description", "std_msgs/msg/String", typestore=store
        )
        text = store.types["std_msgs/msg/String"](ur10.urdf.path.read_text())
        made.write(connection, 0, store.serialize_cdr(text, connection.msgtype))
        states = made.add_connection(
            "/joint_states", "sensor_msgs/msg/JointState", typestore=store
        )
        for _, time, data in given.messages():
            made.write(states, time, bytes(data))
    target = tmp_path / "mine.yaml"
    assert main(["init", "--data", str(bag), "-o", str(target)]) == 0
    assert load_robot(target).model_hash == ur10.model_hash
    assert main(["init", "--data", str(folder / "bag"), "-o", str(tmp_path / "n.yaml")]) == 2
    assert "holds no /robot_description" in capsys.readouterr().err
    assert not (tmp_path / "n.yaml").exists()


def test_doctor_finds_what_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, ["doctor", "--json"])
    assert found["ok"]
    assert {check["what"] for check in found["checks"]} >= {"Python", "numpy", "pin", "robots"}


def test_an_interruption_ends_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sysid_core.robot.known_robots", interrupted)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "sysid: interrupted\n"


def test_an_error_of_our_own_shows_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SYSID_DEBUG", raising=False)
    monkeypatch.setattr("sysid_core.robot.known_robots", lambda: math.sqrt(-1.0))
    assert main(["doctor"]) == 70
    error = capsys.readouterr().err
    assert error.startswith("sysid: internal error (ValueError")
    assert len(error.splitlines()) == 1


def test_subcommands_of_other_packages_are_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    group = [
        SimpleNamespace(name="again", load=lambda: SUBCOMMANDS["doctor"]),
        EntryPoint("broken", "sysid_core.nowhere:broken", "sysid.subcommands"),
    ]
    monkeypatch.setattr(subcommand_module, "entry_points", lambda **_: group)
    subcommands, troubles = find_subcommands()
    assert "again" in subcommands
    assert len(troubles) == 1
    assert "broken" in troubles[0]
    assert set(find_subcommands("again")[0]) == {"again"}
    assert main(["again", "--json"]) == 1  # the doctor finds the broken subcommand
    assert not json.loads(capsys.readouterr().out)["ok"]
    assert main(["broken"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "'broken'" in line
    assert "sysid doctor" in line


def _without(module: str, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let new processes fail to import a module, for a reason."""
    (tmp_path / f"{module}.py").write_text(f"raise ImportError({reason!r})\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("SYSID_DEBUG", raising=False)


def _sysid(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sysid_core.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=False)


NO_OPENMP = "libgomp.so.1: cannot open shared object file: No such file or directory"


@pytest.mark.parametrize(
    ("module", "package", "reason", "advice"),
    [
        ("pinocchio", "pin", NO_OPENMP, "apt install libgomp1"),
        ("cvxpy", "cvxpy", "No module named 'cvxpy'", "pip install cvxpy"),
        pytest.param(
            "mujoco",
            "mujoco",
            NO_OPENMP.replace("gomp.so.1", "X11.so.6"),
            "apt install libx11-6",
            marks=pytest.mark.heavy,
        ),
        pytest.param(
            "cyclonedds",
            "cyclonedds",
            "broken",
            "pip install cyclonedds",
            marks=pytest.mark.heavy,
        ),
        ("numpy", "numpy", "broken", "pip install numpy"),
    ],
)
def test_doctor_diagnoses_what_cannot_be_imported(
    module: str,
    package: str,
    reason: str,
    advice: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    _without(module, reason, monkeypatch, tmp_path)
    done = _sysid("doctor", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    (check,) = (c for c in json.loads(done.stdout)["checks"] if c["what"] == package)
    assert check["state"] == "missing"
    assert reason in check["found"]
    assert advice in check["advice"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["init", "x.urdf"],
        ["info", "x.csv"],
        ["identify", "x.csv", "--robot", "ur10", "--out", "x"],
        ["validate", "x.json", "x.csv"],
        ["compare", "x.json", "y.json"],
        ["replay", "x.csv", "--robot", "ur10"],
        ["excite", "ur10", "--out", "x"],
    ],
)
def test_a_subcommand_whose_packages_cannot_be_imported_ends_in_one_line(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _without("pinocchio", NO_OPENMP, monkeypatch, tmp_path)
    done = _sysid(*arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "libgomp.so.1" in line
    assert "sysid doctor" in line


def test_a_package_that_is_imported_late_is_missed_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _without("cvxpy", "No module named 'cvxpy'", monkeypatch, tmp_path)
    done = _sysid(
        "identify",
        str(folder / "run.csv"),
        "--robot",
        "ur10",
        "--method",
        "sdp",
        "--out",
        str(tmp_path / "out"),
    )
    assert done.returncode == 2
    (line,) = (text for text in done.stderr.splitlines() if text.startswith("sysid:"))
    assert "No module named 'cvxpy'; 'sysid doctor' says what to install" in line
    assert not (tmp_path / "out" / "estimate.json").exists()


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["identify", "--nonsense"]])
def test_neither_help_nor_a_wrong_argument_imports_what_running_needs(
    arguments: list[str],
) -> None:
    program = (
        "import sys; from sysid_core.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print('heavy:', *{'numpy', 'pinocchio', 'rich', 'mujoco'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60.0, check=True)
    assert done.stdout.splitlines()[-1] == "heavy:"


def test_defaults_of_arguments_are_those_of_the_configurations() -> None:
    parsers = {}
    for name, subcommand in find_subcommands()[0].items():
        parsers[name] = argparse.ArgumentParser()
        subcommand.add_arguments(parsers[name])
    excitation, online, offline = ExciteConfig(), OnlineConfig(), IdentifyConfig()
    for name, argument, value in (
        ("excite", "duration", excitation.duration),
        ("excite", "seed", excitation.seed),
        ("replay", "window", online.window),
        ("replay", "method", online.method),
        ("identify", "train", offline.train),
        ("identify", "method", offline.estimator.name),
    ):
        assert parsers[name].get_default(argument) == value, (name, argument)
