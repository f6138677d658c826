# SPDX-License-Identifier: Apache-2.0
"""What is downloaded is named by its digest, and what runs has no more rights than it needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
LOCKS = sorted([*ROOT.glob("requirements*.lock"), *ROOT.glob("docker/*.lock")])

if not LOCKS:
    pytest.skip("the locks are missing", allow_module_level=True)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_locked_package_has_hashes(lock: Path) -> None:
    parts = re.split(r"^(?=\S+==)", lock.read_text(), flags=re.MULTILINE)[1:]
    assert parts
    assert all("--hash=sha256:" in part for part in parts)


def test_the_image_is_pinned_and_runs_without_rights() -> None:
    lines = (ROOT / "docker/Dockerfile").read_text()
    assert re.search(r"^ARG BASE=\S+@sha256:[0-9a-f]{64}$", lines, re.MULTILINE)
    assert "--require-hashes -r /tmp/requirements-jazzy.lock" in lines
    assert re.findall(r"^USER (\S+)$", lines, re.MULTILINE)[-1] != "root"
    assert {".git", ".venv"} <= set((ROOT / ".dockerignore").read_text().split())


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob(".github/workflows/*.yaml")), ids=lambda path: path.name
)
def test_the_workflow_may_read_alone_and_pins_its_actions(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        for action in (step["uses"] for step in job["steps"] if "uses" in step):
            assert re.search(r"@[0-9a-f]{40}$", action)
