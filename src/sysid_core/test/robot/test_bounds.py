# SPDX-License-Identifier: Apache-2.0
"""Bounding ellipsoids hold the collision shapes, meshes among them, and nothing larger does."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.errors import RobotError
from sysid_core.inertia import Ellipsoid
from sysid_core.robot import Robot, load_robot, parse_description
from sysid_core.robot.bounds import around

LINK = """<robot name="r"><link name="base"/><link name="arm"><inertial><origin xyz=".3 .2 .1"/>
<mass value="{mass}"/><inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><origin xyz="{place}"/><geometry>{shape}</geometry></collision></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" velocity="1" effort="9"/></joint></robot>"""
BOX = LINK.format(mass=2, place=".3 .2 .1", shape='<box size=".6 .4 .8"/>')
MESH = '<mesh filename="{}" scale=".001 .001 .001"/>'
CORNERS = np.array([[x, y, z] for x in (-300, 300) for y in (-200, 200) for z in (-400, 400)])


def _robot(folder: Path, text: str) -> Robot:
    (folder / "r.urdf").write_text(text, encoding="utf-8")
    return load_robot(parse_description({"name": "r", "urdf": str(folder / "r.urdf")}))


def _binary(path: Path, corners: FloatArray) -> None:
    triangles = [np.concatenate([np.zeros(3), *corners[[k, (k + 1) % 8, 0]]]) for k in range(8)]
    body = b"".join(struct.pack("<12fH", *t.tolist(), 0) for t in triangles)
    path.write_bytes(bytes(80) + struct.pack("<I", 8) + body)


def _text(path: Path, corners: FloatArray) -> None:
    word = "vertex" if path.suffix == ".stl" else "v"
    path.write_text("solid x\n" + "".join(f"  {word} {a} {b} {c}\n" for a, b, c in corners))


def _reach(ellipsoid: Ellipsoid, points: FloatArray) -> FloatArray:
    offsets = points - ellipsoid.center
    return np.einsum("ki,ki->k", offsets @ np.linalg.inv(ellipsoid.shape), offsets)


@pytest.mark.parametrize(
    ("name", "write"), [("a.stl", _binary), ("a.stl", _text), ("a.obj", _text)]
)
def test_a_mesh_bounds_as_the_box_with_its_corners(tmp_path: Path, name: str, write: Any) -> None:
    package = tmp_path / "arm_description"
    (package / "urdf").mkdir(parents=True)
    write(package / name, CORNERS)
    address = f"package://arm_description/{name}"
    text = LINK.format(mass=2, place=".3 .2 .1", shape=MESH.format(address))
    (found,) = _robot(package / "urdf", text).ellipsoids
    (known,) = _robot(tmp_path, BOX).ellipsoids
    np.testing.assert_allclose(known.shape, np.diag(3.0 * np.array([0.3, 0.2, 0.4]) ** 2))
    np.testing.assert_allclose(found.shape, known.shape, atol=1e-6)
    np.testing.assert_allclose(found.center, known.center, atol=1e-6)


def test_ellipsoids_touch_the_points_that_they_hold() -> None:
    rng = np.random.default_rng(4)
    points = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 3)) + 1.0
    reach = _reach(around(points), points)
    assert reach.max() == pytest.approx(1.0)
    assert (reach > 0.95).sum() >= 4  # fewer would leave room for a smaller one


@pytest.mark.parametrize("mesh", ["missing.stl", "arm.dae", "short.stl"])
def test_meshes_that_cannot_be_read_leave_the_inertia(tmp_path: Path, mesh: str) -> None:
    (tmp_path / "short.stl").write_bytes(bytes(90))
    text = LINK.format(mass=2, place="0 0 0", shape=MESH.format(mesh))
    bare = _robot(tmp_path, text.replace("collision>", "ignored>")).ellipsoids
    (found,), (known,) = _robot(tmp_path, text).ellipsoids, bare
    np.testing.assert_array_equal(found.shape, known.shape)


def test_a_body_without_mass_fills_its_shape(tmp_path: Path) -> None:
    robot = _robot(tmp_path, BOX.replace('mass value="2"', 'mass value="0"'))
    phi = robot.consistent_nominal[robot.layout.body("arm")]
    np.testing.assert_allclose(phi[1:4] / phi[0], [0.3, 0.2, 0.1], atol=1e-9)
    (ellipsoid,) = robot.ellipsoids
    np.testing.assert_allclose(ellipsoid.center, [0.3, 0.2, 0.1], atol=1e-9)


def test_a_described_ellipsoid_takes_the_place_of_shapes(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(BOX, encoding="utf-8")
    said = {"name": "r", "urdf": str(tmp_path / "r.urdf")}
    ball = {"center": [0.3, 0.2, 0.1], "semi_axes": [1, 2, 3]}
    (found,) = load_robot(parse_description({**said, "ellipsoids": {"arm": ball}})).ellipsoids
    np.testing.assert_array_equal(found.shape, np.diag([1.0, 4.0, 9.0]))
    for wrong, words in (
        ({"semi_axes": [1, 0, 3]}, "ellipsoids.arm.semi_axes' must be above zero"),
        ({"semi_axes": [1, 2]}, "ellipsoids.arm.semi_axes' must be a list of 3 numbers"),
        ({"centre": [0, 0, 0]}, "unknown key"),
    ):
        with pytest.raises(RobotError, match=words):
            parse_description({**said, "ellipsoids": {"arm": {**ball, **wrong}}})
