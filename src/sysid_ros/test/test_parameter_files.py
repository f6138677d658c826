# SPDX-License-Identifier: Apache-2.0
"""Parameter files and documentation say what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "document_parameters.py"


@pytest.mark.skipif(not SCRIPT.is_file(), reason=f"no {SCRIPT}")
def test_files_and_tables_are_those_of_the_descriptions() -> None:
    pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False
    )
    hint = "run python scripts/document_parameters.py"
    assert done.returncode == 0, f"{done.stdout}{done.stderr}{hint}"


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda p: p.stem)
def test_a_parameter_file_is_one_for_any_node(path: Path) -> None:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    values = document["/**"]["ros__parameters"]
    assert values
    assert not any(isinstance(value, list) and not value for value in values.values())
