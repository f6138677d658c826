# SPDX-License-Identifier: Apache-2.0
"""Worlds for Gazebo describe the true robot; Gazebo, where it is installed, runs them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import yaml

from sysid_core.arrays import FloatArray
from sysid_core.inertia import smallest_eigenvalue
from sysid_core.priors import default_prior
from sysid_core.robot import Robot, load_robot
from sysid_sim.gazebo import gazebo_model, gazebo_truth, main
from sysid_sim.gazebo_world import PERIOD, TRAJECTORIES, steps_of, world_sdf
from sysid_sim.simulator_config import start_configuration
from sysid_sim.truth import TruthSpread, draw_truth

SEED = 3
ROBOTS = ("panda", "ur10e", "solo12", "digit_left_leg")
TENSOR = ("xx", "xy", "yy", "xz", "yz", "zz")
LAUNCH = Path(__file__).parents[3] / "launch" / "gazebo.launch.yaml"
SPHERICAL = pin.JointModelSpherical()


@pytest.fixture(scope="session")
def model_of(
    robot_of: Callable[[str], Robot], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Robot]:
    """Return a robot as Gazebo can simulate it."""
    return cache(lambda name: gazebo_model(robot_of(name), tmp_path_factory.mktemp(name)))


def _placement(element: ET.Element) -> pin.SE3:
    text = element.findtext("pose")
    return pin.XYZQUATToSE3(np.array(text.split(), float)) if text else pin.SE3.Identity()


def _inertia(link: ET.Element) -> pin.Inertia:
    inertial = link.find("inertial")
    assert inertial is not None
    tensor = [float(inertial.findtext(f"inertia/i{key}") or "") for key in TENSOR]
    at = _placement(inertial)
    central = pin.Symmetric3(np.array(tensor)).matrix()
    return at.act(pin.Inertia(float(inertial.findtext("mass") or ""), np.zeros(3), central))


def _mass(model: pin.Model, q: FloatArray) -> FloatArray:
    upper = np.triu(pin.crba(model, model.createData(), q))
    return upper + np.triu(upper, 1).T


def _model(world: str, robot: Robot) -> tuple[pin.Model, dict[str, ET.Element]]:
    """Return what the world says of a robot, read without our writer, and its joints."""
    found = ET.fromstring(world).find(f"world/model[@name='{robot.name}']")
    assert found is not None
    links = {link.get("name", ""): link for link in found.findall("link")}
    joints = {joint.get("name", ""): joint for joint in found.findall("joint")}
    moved = {joint.findtext("child") for joint in joints.values()}
    model = pin.Model()

    def add(link: str, parent: int, above: pin.SE3, name: str, kind: pin.JointModel) -> None:
        at = _placement(links[link])
        index = model.addJoint(parent, kind, above.actInv(at), name)
        model.appendBodyToJoint(index, _inertia(links[link]), pin.SE3.Identity())
        grow(link, index, at)

    def grow(parent: str, index: int, at: pin.SE3) -> None:
        for name, joint in joints.items():
            if joint.findtext("parent") == parent:
                axis = np.array((joint.findtext("axis/xyz") or "0 0 1").split(), float)
                turning = joint.get("type") == "revolute"
                kind = pin.JointModelRevoluteUnaligned(axis) if turning else SPHERICAL
                add(joint.findtext("child") or "", index, at, name, kind)

    for base in set(links) - moved:
        add(base, 0, _placement(links[base]), "base", pin.JointModelFreeFlyer())
    grow("world", 0, pin.SE3.Identity())
    return model, joints


@pytest.mark.parametrize("name", ROBOTS)
def test_a_world_has_the_true_robot_at_rest(
    name: str, model_of: Callable[[str], Robot], rng: np.random.Generator
) -> None:
    robot = model_of(name)
    truth = gazebo_truth(robot, SEED)
    model, joints = _model(world_sdf(robot, truth), robot)
    rest, own = start_configuration(robot), robot.with_parameters(truth)
    move = np.zeros(own.nv) if robot.description.loops else rng.normal(0.0, 0.3, own.nv)
    q, turned = pin.integrate(own, rest, move), pin.neutral(model)
    if robot.floating:
        turned[:7] = rest[:7]
    columns = [model.joints[model.getJointId(n)].idx_v for n in own.names[1:] if n in joints]
    columns = [*range(own.nv - len(columns)), *columns]
    step = np.zeros(model.nv)
    step[columns] = move
    turned = pin.integrate(model, turned, step)
    mass = _mass(model, turned)[np.ix_(columns, columns)]
    gravity = pin.computeGeneralizedGravity(model, model.createData(), turned)[columns]
    # the balls that close the loops weigh a gram each
    margin = 0.02 if robot.description.loops else 1e-9
    np.testing.assert_allclose(mass, _mass(own, q), atol=margin)
    np.testing.assert_allclose(
        gravity, pin.computeGeneralizedGravity(own, own.createData(), q), atol=margin
    )
    viscous, coulomb = (truth[robot.layout.term(term)] for term in ("viscous", "coulomb"))
    for j, joint in enumerate(robot.joint_names):
        dynamics = joints[joint].find("axis/dynamics")
        assert dynamics is not None
        assert float(dynamics.findtext("damping") or "") == pytest.approx(viscous[j])
        assert float(dynamics.findtext("friction") or "") == pytest.approx(coulomb[j])
        if limit := joints[joint].find("axis/limit"):
            assert (
                float(limit.findtext("lower") or "") < 0.0 < float(limit.findtext("upper") or "")
            )


@pytest.mark.parametrize(("name", "stated"), [("ur10e", 0.05), ("panda", 0.5)])
def test_a_description_doubts_no_less_than_its_truth_gives_reason_for(
    name: str, stated: float, robot_of: Callable[[str], Robot], model_of: Callable[[str], Robot]
) -> None:
    assert robot_of(name).description.prior.relative_std == stated
    prior = model_of(name).description.prior
    assert prior.relative_std == max(stated, TruthSpread().body_std)
    assert prior.friction_relative_std == robot_of(name).description.prior.friction_relative_std


@pytest.mark.parametrize("name", ["ur10e", "digit_left_leg"])
def test_armature_becomes_inertia_that_description_and_truth_share(
    name: str, robot_of: Callable[[str], Robot], model_of: Callable[[str], Robot]
) -> None:
    robot, model = robot_of(name), model_of(name)
    rotors = robot.layout.term("armature")
    armature, rest = default_prior(robot).mean[rotors], start_configuration(robot)
    own = np.diag(_mass(robot.with_parameters(robot.consistent_nominal), rest))
    assert (armature / own).max() > 1.0
    # each joint feels its own motor, and those that turn with it
    felt = np.diag(_mass(model.with_parameters(model.nominal), rest))
    assert (felt >= own + armature - 1e-9).all()
    assert model.warnings == ()
    assert not gazebo_truth(model, SEED)[rotors].any()
    assert not default_prior(model).mean[rotors].any()
    # the truth lies as near to the description as that of any simulated robot
    terms = model.layout.inertial
    np.testing.assert_array_equal(gazebo_truth(model, SEED)[terms], draw_truth(model, SEED)[terms])
    for phi in model.layout.inertias(gazebo_truth(model, SEED)):
        assert smallest_eigenvalue(phi) > 0.0


@pytest.mark.parametrize("name", ["panda", "solo12"])
def test_a_robot_without_rotors_stays_as_it_is(
    name: str, robot_of: Callable[[str], Robot], model_of: Callable[[str], Robot]
) -> None:
    robot, model = robot_of(name), model_of(name)
    np.testing.assert_allclose(model.consistent_nominal, robot.consistent_nominal, atol=1e-12)
    assert model.model_hash == robot.model_hash


def test_loops_meet_where_they_are_closed(model_of: Callable[[str], Robot]) -> None:
    robot = model_of("digit_left_leg")
    root = ET.fromstring(world_sdf(robot, gazebo_truth(robot, SEED))).find("world/model[2]")
    assert root is not None
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, start_configuration(robot))
    for loop in robot.description.loops:
        link = root.find(f"link[@name='{loop.name}_pin']")
        assert link is not None
        joint, placement = robot.place(loop.frame_b)
        there = (data.oMi[joint] * placement).translation
        np.testing.assert_allclose(_placement(link).translation, there, atol=1e-9)
        held = root.find(f"plugin[child_link='{loop.name}_pin']")
        assert held is not None
        assert held.findtext("parent_link") == robot.layout.bodies[joint - 1]


@pytest.mark.parametrize("name", ROBOTS)
def test_no_two_things_of_a_model_share_a_name(
    name: str, model_of: Callable[[str], Robot]
) -> None:
    robot = model_of(name)
    root = ET.fromstring(world_sdf(robot, gazebo_truth(robot, SEED)))
    for parent in root.iter():
        names = [
            child.get("name") for child in parent if child.tag != "plugin" and child.get("name")
        ]
        assert len(set(names)) == len(names)


def test_the_bridge_and_ros2_control_name_every_motor_in_order(
    tmp_path: Path, panda: Robot
) -> None:
    folder = tmp_path / "gazebo"
    assert main(["panda", "--out", str(folder)]) == 0
    bridge = yaml.safe_load((folder / "bridge.yaml").read_text())
    forces = [t["ros_topic_name"] for t in bridge if t["direction"] == "ROS_TO_GZ"]
    assert forces == [f"gazebo/force/{name}" for name in panda.actuated_names]
    world = ET.parse(folder / "world.sdf")
    pushed = world.findall(".//plugin[@name='gz::sim::systems::ApplyJointForce']/*")
    assert [e.text for e in pushed] == list(panda.actuated_names)
    controlled = ET.parse(folder / "world_ros2_control.sdf")
    path = controlled.findtext(".//parameters")
    assert path == str(folder / "controllers.yaml")
    # before there are joint states, by which all others go
    clock = (controlled.findtext(".//remapping") or "").removeprefix("/clock:=")
    assert f"args: {clock}@rosgraph_msgs/msg/Clock[gz.msgs.Clock" in LAUNCH.read_text()
    assert "&" not in Path(path).read_text()  # ROS 2 refuses a file with aliases
    told = {
        name: each["ros__parameters"]
        for name, each in yaml.safe_load(Path(path).read_text()).items()
    }
    names = list(panda.actuated_names)
    wanted = {"joints": names, "interface_name": "effort"}
    assert told["effort_controller"] == wanted
    trajectories = told[TRAJECTORIES]
    assert (trajectories["joints"], trajectories["command_interfaces"]) == (names, ["effort"])
    assert list(trajectories["gains"]) == names
    # positions that are zero at rest must not be held against the URDF's limits
    assert told["controller_manager"]["enforce_command_limits"] is False
    publisher = yaml.safe_load((folder / "robot_state_publisher.yaml").read_text())
    urdf = ET.fromstring(publisher["/**"]["ros__parameters"]["robot_description"])
    assert [joint.get("name") for joint in urdf.findall("ros2_control/joint")] == names
    truth = json.loads((folder / "ground_truth.json").read_text())
    assert {joint["armature"] for joint in truth["joints"].values()} == {0.0}


def _entries(node: object) -> Iterator[dict[str, Any]]:
    """Return all mappings of a launch file."""
    if isinstance(node, list | dict):
        for child in node.values() if isinstance(node, dict) else node:
            yield from _entries(child)
    if isinstance(node, dict):
        yield node


def test_the_launch_file_gives_programs_single_words_and_bridges_what_is_in_files() -> None:
    entries = list(_entries(yaml.safe_load(LAUNCH.read_text())))
    programs = [entry for entry in entries if "args" in entry]
    told = [program["args"] for program in programs]
    # ROS 2 splits arguments first and puts variables in then: one with a space is a single word
    values = {e["name"]: str(e.get("value", e.get("default"))) for e in entries if "name" in e}
    several = {name for name, value in values.items() if " " in value}
    assert not several & set(re.findall(r"\$\(var (\w+)\)", " ".join(told)))
    # a bridge that is given topics does not read its file
    assert not any("/msg/" in program["args"] and "param" in program for program in programs)
    # active without commands it would let the robot fall
    assert {"effort_controller --inactive", TRAJECTORIES} <= set(told)


@pytest.mark.parametrize(
    "arguments", [["g1"], ["tx40"], ["nosuch"], ["panda", "--out", "/dev/null/x"]]
)
def test_what_cannot_be_written_is_said_in_one_line(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--out", str(tmp_path / "gazebo"), *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "gazebo").exists()


@pytest.fixture(scope="session")
def gz() -> str:
    """Return the program `gz` with a simulator in it, which Gazebo classic's has not."""
    program = shutil.which("gz")
    if program is None:
        pytest.skip("Gazebo (gz) is not on the path")
    asked = subprocess.run([program, "sim", "--versions"], capture_output=True, check=False)
    if asked.returncode or not re.match(rb"\d+\.", asked.stdout.strip()):
        pytest.skip(f"{program} has no 'sim'")
    return program


@pytest.fixture(params=["panda", "solo12", "digit_left_leg"])
def world(gz: str, request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """Return a robot and the folder of its world."""
    assert main([request.param, "--out", str(tmp_path)]) == 0
    return request.param, tmp_path


def test_gazebo_takes_the_world_as_valid(gz: str, world: tuple[str, Path]) -> None:
    for file in ("world.sdf", "world_ros2_control.sdf", "load.sdf"):
        command = [gz, "sdf", "--check", str(world[1] / file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert "Valid" in done.stdout, done.stdout + done.stderr
        assert not re.search("Error|Warning", done.stdout + done.stderr)


class Server:
    """Gazebo's server with a world, apart from all others on this machine."""

    def __init__(self, gz: str, folder: Path) -> None:
        self._gz = gz
        self.env = os.environ | {"GZ_PARTITION": uuid.uuid4().hex, "GZ_IP": "127.0.0.1"}
        command = [gz, "sim", "-s", "--initial-sim-time", "1", str(folder / "world.sdf")]
        self.process = subprocess.Popen(
            command, env=self.env, stdout=subprocess.DEVNULL, start_new_session=True
        )

    def _ask(self, *words: str) -> str:
        command = [self._gz, *words]
        done = subprocess.run(command, env=self.env, capture_output=True, timeout=90, check=True)
        return done.stdout.decode()

    def state(self) -> tuple[float, dict[str, float]]:
        """Return the time [s] and the joints' velocities [rad/s] of the newest joint state."""
        topic = ["-t", "/sysid/joint_states", "-n", "1", "--json-output"]
        # `gz topic` prints what comes in until it notices that it has enough
        message = json.loads(self._ask("topic", "-e", *topic).splitlines()[-1])
        stamp = message["header"]["stamp"]
        time = int(stamp.get("sec", 0)) + 1e-9 * stamp.get("nsec", 0)
        return time, {j["name"]: j["axis1"].get("velocity", 0.0) for j in message["joint"]}

    def run(self, steps: int, duration: float) -> dict[str, float]:
        """Run some steps that take so long [s]; return the velocities after them."""
        begin = self.state()[0]
        kinds = ["--reqtype", "gz.msgs.WorldControl", "--reptype", "gz.msgs.Boolean"]
        request = ["--timeout", "20000", "--req", f"pause: true, multi_step: {steps}"]
        self._ask("service", "-s", "/world/sysid/control", *kinds, *request)
        while (state := self.state())[0] < begin + duration - 1e-4:
            assert self.process.poll() is None
        return state[1]

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(60)


@pytest.fixture
def server(gz: str, world: tuple[str, Path]) -> Iterator[Server]:
    started = Server(gz, world[1])
    yield started
    started.stop()


def test_gazebo_waits_and_then_lets_gravity_move_the_robot(
    world: tuple[str, Path], server: Server
) -> None:
    robot = load_robot(world[1] / "robot.yaml")
    time, still = server.state()
    assert time == pytest.approx(1.0)
    assert set(still) == set(robot.actuated_names)
    assert not any(still.values())
    periods, duration = 10, 10 * PERIOD
    fallen = server.run(periods * steps_of(robot), duration)
    velocity = np.array([fallen[name] for name in robot.actuated_names])
    assert np.isfinite(velocity).all()
    if robot.floating or robot.description.loops:
        return
    # the momentum is gravity's impulse, less what friction takes
    truth, rest = gazebo_truth(robot, 1), start_configuration(robot)
    model = robot.with_parameters(truth)
    gravity = pin.computeGeneralizedGravity(model, model.createData(), rest)
    taken = gravity + _mass(model, rest) @ velocity / duration
    viscous, coulomb = (truth[robot.layout.term(term)] for term in ("viscous", "coulomb"))
    assert (
        np.abs(taken) <= coulomb + viscous * np.abs(velocity) + 0.05 * abs(gravity).max()
    ).all()
    assert np.abs(velocity).max() > 0.05
