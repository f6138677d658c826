# SPDX-License-Identifier: Apache-2.0
"""Results appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from sysid_core.errors import OutputError
from sysid_core.files import output_folder, require_writable, results_folder, write_text


def test_a_folder_of_results_appears_when_all_went_well(tmp_path: Path) -> None:
    with results_folder(tmp_path / "out") as folder:
        (folder / "a.txt").write_text("a")
        assert not (tmp_path / "out" / "a.txt").exists()
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["a.txt"]


def test_nothing_appears_when_something_failed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")

    def fail() -> None:
        with results_folder(tmp_path) as folder:
            (folder / "a.txt").write_text("new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_checking_a_folder_does_not_make_it(tmp_path: Path) -> None:
    require_writable(tmp_path / "new" / "out")
    assert list(tmp_path.iterdir()) == []


def test_folders_that_cannot_be_made_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write"):
        require_writable(tmp_path / "file" / "out")
    with pytest.raises(OutputError, match="cannot be written"):
        write_text(tmp_path / "file" / "out.txt", "text")


def test_a_failed_write_leaves_no_rest(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError):
        write_text(tmp_path / "folder", "text")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("text", ["", "~nosuchuser/x", "x\0y", "a" * 5000])
def test_a_name_that_no_folder_can_have_is_refused_in_one_short_line(text: str) -> None:
    with pytest.raises(OutputError) as caught:
        output_folder(text)
    assert "give a path" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_folder_need_not_be_there_yet(tmp_path: Path) -> None:
    assert output_folder(str(tmp_path / "new" / "er")) == tmp_path / "new" / "er"
