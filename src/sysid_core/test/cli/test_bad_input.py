# SPDX-License-Identifier: Apache-2.0
"""Bad input ends with exit status 2 and one line that says how to mend it, and leaves no rest."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sysid_core.cli.main import main
from sysid_core.data import write_csv, write_recording
from sysid_core.errors import OutputError
from sysid_core.files import results_folder
from sysid_core.recording import Recording
from sysid_core.robot import load_robot


@pytest.fixture(scope="module")
def recording(make_recording: Callable[..., Recording]) -> Recording:
    robot = load_robot("ur10")
    return make_recording(robot, robot.nominal, duration=5.0)


def _changed(recording: Recording, **changes: Any) -> Recording:
    return replace(recording, **changes)


def _with_value(recording: Recording, quantity: str, value: float) -> Recording:
    values = getattr(recording, quantity).copy()
    values[100, 1] = value
    return _changed(recording, **{quantity: values})


def _fault(recording: Recording, kind: str) -> Recording:
    time, q = recording.time, recording.position
    if kind == "without effort":
        return _changed(recording, effort=None)
    if kind == "a joint missing":
        assert recording.velocity is not None
        assert recording.effort is not None
        return _changed(
            recording,
            joint_names=recording.joint_names[:-1],
            position=q[:, :-1],
            velocity=recording.velocity[:, :-1],
            effort=recording.effort[:, :-1],
        )
    if kind == "joints renamed":
        return _changed(recording, joint_names=tuple(f"r_{n}" for n in recording.joint_names))
    if kind == "time going back":
        return _changed(recording, time=np.where(time > 3.0, time - 2.0, time))
    if kind == "nothing moves":
        still = np.tile(q[:1], (len(q), 1))
        return _changed(recording, position=still, velocity=0.0 * still)
    if kind == "nan":
        return _with_value(recording, "effort", np.nan)
    return _with_value(recording, "position", np.inf)


def _refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str, out: Path | None = None
) -> None:
    """Run the command and check that it says so in one line and leaves nothing behind."""
    assert main(arguments) == 2
    captured = capsys.readouterr()
    lines = [line for line in captured.err.splitlines() if not line.startswith("warning:")]
    assert len(lines) == 1
    assert words in lines[0]
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert out is None or not out.exists()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("without effort", "effort"),
        ("a joint missing", "wrist_3_joint"),
        ("joints renamed", "names: {r_shoulder_pan_joint: shoulder_pan_joint"),
        ("time going back", "time goes back"),
        ("nothing moves", "nothing to identify"),
        ("nan", "effort of joint 'shoulder_lift_joint' is NaN"),
        ("inf", "position of joint 'shoulder_lift_joint' is inf"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "bag"])
def test_faulty_recordings(
    kind: str,
    words: str,
    form: str,
    recording: Recording,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    faulty, out = _fault(recording, kind), tmp_path / "out"
    if form == "csv":
        write_csv(faulty, tmp_path / "data.csv")
        if kind == "nan":  # an empty cell is a missing value; this is what pandas writes
            text = (tmp_path / "data.csv").read_text()
            (tmp_path / "data.csv").write_text(text.replace(",,", ",nan,"))
        path = tmp_path / "data.csv"
    else:
        write_recording(faulty, tmp_path / "bag")
        path = tmp_path / "bag"
    _refused(capsys, ["identify", str(path), "--robot", "ur10", "--out", str(out)], words, out)


def test_empty_and_truncated_bags(
    recording: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_recording(recording, tmp_path / "bag")
    (bag,) = (tmp_path / "bag").glob("*.mcap")
    whole = bag.read_bytes()
    for size in (0, 100, len(whole) // 2):
        cut = tmp_path / f"{size}.mcap"
        cut.write_bytes(whole[:size])
        out = tmp_path / "out"
        _refused(
            capsys, ["identify", str(cut), "--robot", "ur10", "--out", str(out)], cut.name, out
        )
    _refused(capsys, ["info", str(tmp_path / "nowhere")], "nowhere")


def test_unknown_robot_lists_the_known_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["identify", "data.csv", "--robot", "ur11", "--out", str(tmp_path / "out")]
    _refused(capsys, arguments, "known robots: ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([("[0.34, 0.0, 0.0]", "[0.9, 0.0, 0.0]")], "loop 'toe_a' cannot close"),
        ([("type: point", "type: fixed")], "cannot close"),
        ([("loops:", "loops: []\nignored:")], "unknown"),
        (
            [
                ("    - left_toe_roll\n", "    - left_toe_roll\n    - left_knee\n"),
                ("    - left_knee\n    - left_toe_a\n", "    - left_toe_a\n"),
            ],
            "free",
        ),
    ],
)
def test_loops_that_cannot_be(
    changes: list[tuple[str, str]], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Path(__file__).resolve().parents[4] / "config" / "robots" / "digit_left_leg.yaml"
    text = source.read_text(encoding="utf-8")
    text = text.replace("urdf: urdf/", f"urdf: {source.parent}/urdf/")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    broken = tmp_path / "leg.yaml"
    broken.write_text(text, encoding="utf-8")
    _refused(capsys, ["info", "--robot", str(broken)], words)


def test_urdf_with_a_negative_mass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    robot = load_robot("ur10")
    text = robot.urdf.path.read_text().replace('<mass value="', '<mass value="-', 1)
    (tmp_path / "bad.urdf").write_text(text)
    target = tmp_path / "bad.yaml"
    _refused(capsys, ["init", str(tmp_path / "bad.urdf"), "-o", str(target)], "negative mass")
    assert not target.exists()


def test_output_that_cannot_be_written(
    recording: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_csv(recording, tmp_path / "data.csv")
    (tmp_path / "file").write_text("")
    data = str(tmp_path / "data.csv")
    out = str(tmp_path / "file" / "out")
    _refused(capsys, ["identify", data, "--robot", "ur10", "--out", out], "cannot write")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_output_folder_without_permission(
    recording: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_csv(recording, tmp_path / "data.csv")
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(stat.S_IRUSR | stat.S_IXUSR)
    arguments = ["identify", str(tmp_path / "data.csv"), "--robot", "ur10", "--out"]
    _refused(capsys, [*arguments, str(locked)], "cannot write")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["identify", "x.csv", "--robot", "ur10", "--out", "o", "--train", "2"], "train"),
        (["identify", "x.csv", "--robot", "ur10", "--out", "o", "--cutoff", "-1"], "cutoff"),
        (["replay", "x.csv", "--robot", "ur10", "--rate", "0"], "--rate"),
        (["replay", "x.csv", "--robot", "ur10", "--window", "nan"], "window"),
        (["identify", "x.csv", "--robot", "ur10", "--out", "o", "--cutoff=1e-308"], "cutoff"),
        (["identify", "x.csv", "--robot", "ur10", "--out", "~nosuchuser/o"], "nosuchuser"),
        (["identify", "x.csv", "--robot", "ur10", "--out", "a\0b"], "null"),
        (["identify", "n" * 300, "--robot", "ur10", "--out", "o"], "too long"),
        (["excite", "ur10", "--out", "o", "--duration=1e9"], "rows"),
        (["excite", "ur10", "--out", "o", "--duration=1e5", "--rate=5"], "duration"),
        (["excite", "ur10", "--out", "o", "--starts=1000000"], "starts"),
        (["excite", "ur10", "--out", "o", "--acceleration=1e308"], "acceleration"),
        (["init", "x.urdf", "--name", "a\nb"], "'name'"),
        (["init", "x.urdf", "--name", "../../x"], "'name'"),
        (["validate", "nowhere.json", "x.csv"], "nowhere.json"),
        (["init", "nowhere.urdf"], "nowhere.urdf"),
    ],
)
def test_bad_settings(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    _refused(capsys, arguments, words)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("base: fixed", "base: fixed\n2: x", "unknown key"),
        ("name: arm", "name: 2001-13-41", "valid YAML"),
        ("name: arm", "name: 2001-01-01", "'name'"),
        ("name: arm", "name: ../../escaped", "'name'"),
        ("base: fixed", "base: !!int abc", "valid YAML"),
        ("base: fixed", f"base: {'[' * 500}", "deep"),
        ("relative_std: ", f"relative_std: {'9' * 400} #", "64 bits"),
        ("names: ", "names: [1] #", "names"),
        ("ellipsoids: ", "ellipsoids: x #", "ellipsoids"),
        ("loops: ", "loops: 3 #", "loops"),
        ("  nominal: ", "  chosen: x\n  nominal: ", "friction.chosen"),
        ("  mass: ", "  mass: [[]] #", "bounds.mass"),
    ],
)
def test_descriptions_of_every_wrong_kind(
    old: str, new: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    urdf = load_robot("ur10").urdf.path
    made = tmp_path / "arm.yaml"
    assert main(["init", str(urdf), "-o", str(made), "--name", "arm"]) == 0
    capsys.readouterr()
    text = made.read_text(encoding="utf-8")
    assert old in text
    made.write_text(text.replace(old, new, 1), encoding="utf-8")
    _refused(capsys, ["info", "--robot", str(made)], words)


def test_absurd_inertia_ends_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = load_robot("ur10").urdf.path.read_text().replace('ixx="', 'ixx="-1e8', 1)
    (tmp_path / "bad.urdf").write_text(text)
    assert main(["init", str(tmp_path / "bad.urdf"), "-o", str(tmp_path / "bad.yaml")]) == 2
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_times_in_no_order_at_all(
    recording: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    time = 10.0 ** np.random.default_rng(0).uniform(-9.0, 12.0, len(recording))
    write_csv(_changed(recording, time=time), tmp_path / "x.csv")
    out = tmp_path / "out"
    arguments = ["identify", str(tmp_path / "x.csv"), "--robot", "ur10", "--out", str(out)]
    _refused(capsys, [*arguments, "--lenient"], "record", out)


def test_a_folder_in_the_place_of_a_result_leaves_all_results_as_they_were(
    tmp_path: Path,
) -> None:
    (tmp_path / "report.html").mkdir()
    (tmp_path / "estimate.json").write_text("old")

    def write() -> None:
        with results_folder(tmp_path) as folder:
            for name in ("estimate.json", "report.html"):
                (folder / name).write_text("new")

    with pytest.raises(OutputError, match="is a folder"):
        write()
    assert (tmp_path / "estimate.json").read_text() == "old"


@pytest.mark.parametrize("arguments", [[], ["fly"], ["identify"], ["info", "--fast"]])
def test_bad_commands(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_lenient_uses_what_is_usable(
    recording: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_csv(_with_value(recording, "effort", np.inf), tmp_path / "data.csv")
    out = tmp_path / "out"
    arguments = ["identify", str(tmp_path / "data.csv"), "--robot", "ur10", "--out", str(out)]
    assert main([*arguments, "--lenient", "--no-report"]) == 0
    assert "left out" in capsys.readouterr().err
    assert (out / "estimate.json").exists()
