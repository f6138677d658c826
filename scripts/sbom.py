# SPDX-License-Identifier: Apache-2.0
"""Lists what the product depends on: a CycloneDX bill of materials, and licences as a table.

The packages are those of `requirements.lock`; licences are what installed ones declare, so that
those which this platform does not need have none here.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
_LOCKED = re.compile(
    r"^([A-Za-z0-9._-]+)==([^\s;\\]+)((?:.*\\\n)(?:\s+--hash=.*\n?)*)", re.MULTILINE
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_CLASSIFIER = "License :: OSI Approved :: "


class Package(NamedTuple):
    """A locked package: its name, version, hashes of its files, and its licence."""

    name: str
    version: str
    hashes: tuple[str, ...]
    licence: str


def packages(lock: str) -> list[Package]:
    """Return the packages of a lock file's text."""
    return [
        Package(name, version, tuple(_HASH.findall(rest)), _licence(name))
        for name, version, rest in _LOCKED.findall(lock)
    ]


def _licence(name: str) -> str:
    try:
        found: PackageMetadata = metadata(name)
    except PackageNotFoundError:
        return ""
    if "License-Expression" in found:
        return found["License-Expression"]
    classifiers = [
        text.removeprefix(_CLASSIFIER)
        for text in found.get_all("Classifier") or []
        if text.startswith(_CLASSIFIER)
    ]
    stated = (found.get("License", "") or "").strip().splitlines()  # type: ignore[attr-defined]
    return "; ".join(classifiers) or next(iter(stated), "")


def bill(found: Sequence[Package], version: str) -> dict[str, Any]:
    """Return a CycloneDX 1.6 bill of materials."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "sysid", "version": version}},
        "components": [
            {
                "type": "library",
                "bom-ref": f"pkg:pypi/{package.name}@{package.version}",
                "purl": f"pkg:pypi/{package.name}@{package.version}",
                "name": package.name,
                "version": package.version,
                "licenses": ([{"license": {"name": package.licence}}] if package.licence else []),
                "externalReferences": [
                    {
                        "type": "distribution",
                        "url": f"https://pypi.org/project/{package.name}/{package.version}/",
                        "hashes": [{"alg": "SHA-256", "content": text} for text in package.hashes],
                    }
                ],
            }
            for package in found
        ],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write `sbom.cdx.json` and `licences.md`."""
    parser = argparse.ArgumentParser(prog="sbom.py", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "sbom", metavar="DIR")
    given = parser.parse_args(arguments)
    found = packages((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    try:
        version = metadata("sysid_core")["Version"]
    except PackageNotFoundError:
        version = "unknown"
    given.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(bill(found, version), indent=1) + "\n"
    (given.out / "sbom.cdx.json").write_text(text, encoding="utf-8")
    rows = [f"| {p.name} | {p.version} | {p.licence.replace('|', '/') or '–'} |\n" for p in found]
    table = "| package | version | licence |\n| --- | --- | --- |\n" + "".join(rows)
    (given.out / "licences.md").write_text(table, encoding="utf-8")
    print(f"{len(found)} packages: {given.out / 'sbom.cdx.json'}, {given.out / 'licences.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
