# SPDX-License-Identifier: Apache-2.0
"""Substitutions of launch files."""

from __future__ import annotations

from pathlib import Path

import pytest

from sysid_embedded.errors import LaunchError
from sysid_embedded.launch.substitutions import Scope, is_true, substitute

SCOPE = Scope(Path("/some/where/x.launch.yaml"), {"a": "1", "n": "a", "s": "x y"})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("", ""),
        ("$(var a)", "1"),
        ("<$(var a)$(var s)>", "<1x y>"),
        ("$(var $(var n))", "1"),
        ("$(var no default)", "default"),
        ("$(var no '')", ""),
        ('$(eval \'"$(var s)" == "x y"\')', "True"),
        ("$(eval '3 != 3')", "False"),
        (r"\$(var a)", "$(var a)"),
        ("50$", "50$"),
    ],
)
def test_values(text: str, value: str) -> None:
    assert substitute(text, SCOPE) == value


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("$(var unknown)", "unknown"),
        ("$(command ls)", "not supported"),
        ("$(var", "is missing"),
        ("$(var 'a)", "closing"),
        ("$( var a)", "a substitution is written"),
        ("$(var)", "0 arguments"),
        ("$(eval 'open(1)')", "not supported"),
        ("$(eval '9**9**9')", "not supported"),
        ("$(eval '9**9**9 == 1')", "not supported"),
        ("$(eval '(1')", "not supported"),
        ("$(eval '1 == 1 == 1')", "not supported"),
        (f"$(eval '{'1' * 501}')", "more than 500 characters"),
        ("$(eval '1 + 1')", "not supported"),
        ("$(find-pkg-share no_such_package)", "no_such_package"),
    ],
)
def test_faults_are_named(text: str, what: str) -> None:
    with pytest.raises(LaunchError, match=what.replace("(", r"\(")):
        substitute(text, SCOPE)


def test_packages_are_found() -> None:
    share = Path(substitute("$(find-pkg-share sysid_bringup)", SCOPE))
    assert (share / "src" / "sysid_embedded").is_dir()


def test_conditions_are_true_or_false() -> None:
    assert is_true("true")
    assert is_true(" True ")
    assert not is_true("0")
    with pytest.raises(LaunchError, match="maybe"):
        is_true("maybe")
