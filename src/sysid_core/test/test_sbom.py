# SPDX-License-Identifier: Apache-2.0
"""The bill of materials names every locked package with its hashes and licence."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

if not (ROOT / "scripts" / "sbom.py").is_file():
    pytest.skip("scripts/sbom.py is missing", allow_module_level=True)
sys.path.insert(0, str(ROOT / "scripts"))

from sbom import main  # noqa: E402


def test_every_locked_package_is_in_the_bill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--out", str(tmp_path)]) == 0
    bill = json.loads((tmp_path / "sbom.cdx.json").read_text())
    lock = (ROOT / "requirements.lock").read_text()
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    found = {part["name"]: part for part in bill["components"]}
    assert len(bill["components"]) == len(re.findall(r"^\S+==", lock, re.MULTILINE))
    hashes = [
        entry for part in bill["components"] for entry in part["externalReferences"][0]["hashes"]
    ]
    assert len(hashes) == lock.count("--hash=")
    assert found["numpy"]["licenses"]
    assert "| numpy |" in (tmp_path / "licences.md").read_text()
    assert str(len(bill["components"])) in capsys.readouterr().out
