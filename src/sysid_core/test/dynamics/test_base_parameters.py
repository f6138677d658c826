# SPDX-License-Identifier: Apache-2.0
"""Which parameters a description's structure lets torques reveal."""

from pathlib import Path

import pytest

from sysid_core.dynamics.tree import TreeRegression
from sysid_core.robot import load_robot, parse_description
from sysid_core.robot.library import resolve_urdf


@pytest.mark.parametrize("right_angle", ["1.5708", "1.570796"])
def test_rounded_right_angles_reveal_no_other_parameters(tmp_path: Path, right_angle: str) -> None:
    exact = load_robot("panda")
    urdf = resolve_urdf(exact.description).read_text()
    assert "1.5707963267948966" in urdf
    (tmp_path / "panda.urdf").write_text(urdf.replace("1.5707963267948966", right_angle))
    rounded = load_robot(parse_description({"name": "p", "urdf": str(tmp_path / "panda.urdf")}))
    bases = [TreeRegression(robot).base for robot in (exact, rounded)]
    columns = [{base.labels[k] for k in base.columns} for base in bases]
    assert columns[0] == columns[1]
