# SPDX-License-Identifier: Apache-2.0
"""Gaps between bodies are those of their capsules, and neighbours are not looked at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sysid_core.robot import load_robot
from sysid_core.robot.clearance import SelfClearance

ROD = """<link name="l{i}"><inertial><origin xyz="0.5 0 0"/><mass value="1"/>
<inertia ixx="0.004" iyy="0.052" izz="0.052" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j{i}" type="revolute"><parent link="{p}"/><child link="l{i}"/><axis xyz="0 0 1"/>
<origin xyz="{x} 0 0"/><limit lower="-3" upper="3" velocity="1" effort="50"/></joint>"""


def test_a_planar_arm_folds_onto_itself(tmp_path: Path) -> None:
    rods = [ROD.format(i=i, p=f"l{i - 1}" if i else "b", x=1.0 if i else 0.0) for i in range(3)]
    text = f"<robot name='r'><link name='b'/>{''.join(rods)}</robot>"
    (tmp_path / "r.urdf").write_text(text, encoding="utf-8")
    (tmp_path / "r.yaml").write_text("name: r\nurdf: r.urdf\n", encoding="utf-8")
    found = SelfClearance(load_robot(str(tmp_path / "r.yaml")))
    assert found.pairs == (("l0", "l2"),)
    # semi-axes of a solid ellipsoid with these inertias: 0.5, 0.1 and 0.1 m, so capsules of 1 m
    straight, square, folded = found.gaps(
        np.array([[0.0, 0.0, 0.0], [0.0, 0.5 * np.pi, 0.5 * np.pi], [0.0, 2.5, 2.5]])
    )[:, 0]
    assert straight == pytest.approx(1.0, abs=1e-6)
    assert square == pytest.approx(0.8, abs=1e-6)
    assert folded < 0.0
    gap, bodies = found.worst(np.array([[0.0, 0.0, 0.0], [0.0, 2.5, 2.5]]))
    assert gap == pytest.approx(folded)
    assert bodies == ("l0", "l2")
