# SPDX-License-Identifier: Apache-2.0
"""Gaps between bodies are those of their capsules, and neighbours are not looked at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sysid_core.errors import ParameterError
from sysid_core.robot import load_robot
from sysid_core.robot.clearance import Clearance, Obstacles

ROD = """<link name="l{i}"><inertial><origin xyz="0.5 0 0"/><mass value="1"/>
<inertia ixx="0.004" iyy="0.052" izz="0.052" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j{i}" type="revolute"><parent link="{p}"/><child link="l{i}"/><axis xyz="0 0 1"/>
<origin xyz="{x} 0 0"/><limit lower="-3" upper="3" velocity="1" effort="50"/></joint>"""


def test_a_planar_arm_folds_onto_itself(tmp_path: Path) -> None:
    rods = [ROD.format(i=i, p=f"l{i - 1}" if i else "b", x=1.0 if i else 0.0) for i in range(3)]
    text = f"<robot name='r'><link name='b'/>{''.join(rods)}</robot>"
    (tmp_path / "r.urdf").write_text(text, encoding="utf-8")
    (tmp_path / "r.yaml").write_text("name: r\nurdf: r.urdf\n", encoding="utf-8")
    found = Clearance(load_robot(str(tmp_path / "r.yaml")), Obstacles(itself=True))
    assert found.names == ("the robot itself: bodies 'l0' and 'l2' come too close",)
    # semi-axes of a solid ellipsoid with these inertias: 0.5, 0.1 and 0.1 m, so capsules of 1 m
    straight, square, folded = found.gaps(
        np.array([[0.0, 0.0, 0.0], [0.0, 0.5 * np.pi, 0.5 * np.pi], [0.0, 2.5, 2.5]])
    )[:, 0]
    assert straight == pytest.approx(1.0, abs=1e-6)
    assert square == pytest.approx(0.8, abs=1e-6)
    assert folded < 0.0


def test_gaps_change_as_their_gradient_says() -> None:
    obstacles = Obstacles(itself=True, boxes=((0.5, 0.2, 0.4, 0.2, 0.3, 0.4),), floor=0.1)
    clearance = Clearance(load_robot("panda"), obstacles)
    rng = np.random.default_rng(3)
    q = rng.uniform(-1.0, 1.0, (6, 7)) + np.array([0.0, 0.3, 0.0, -1.6, 0.0, 1.5, 0.0])
    gaps = clearance.gaps(q)
    assert gaps.shape[1] == len(clearance.names)
    direction, step = rng.normal(size=q.shape), 1e-3  # distances are solved for to 1e-6 m
    change = clearance.gaps(q + step * direction) - clearance.gaps(q - step * direction)
    for k, unit in enumerate(np.eye(gaps.shape[1])):
        found = (clearance.push(q, np.tile(unit, (6, 1))) * direction).sum(axis=1)
        np.testing.assert_allclose(found, change[:, k] / (2.0 * step), atol=1e-2)


def test_a_box_in_the_way_is_named() -> None:
    ahead = Obstacles(boxes=((0.5, 0.0, 0.5, 0.4, 0.4, 0.4),))
    clearance = Clearance(load_robot("panda"), ahead)
    reaching = np.array([[0.0, 0.8, 0.0, -1.5, 0.0, 2.0, 0.0]])
    worst = int(np.argmin(clearance.gaps(reaching)[0]))
    assert clearance.gaps(reaching)[0, worst] < 0.0
    assert "box at 0.5, 0, 0.5 m" in clearance.names[worst]
    with pytest.raises(ParameterError, match="six finite numbers"):
        Obstacles(boxes=((0.0, 0.0, 0.0, 1.0, 1.0, 0.0),))
