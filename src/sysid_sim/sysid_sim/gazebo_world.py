# SPDX-License-Identifier: Apache-2.0
"""Writes a robot with given parameters as a world of Gazebo Harmonic (SDF text)."""

import xml.etree.ElementTree as ET

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.stance import foot_radii
from sysid_core.inertia import central_inertia
from sysid_core.robot import Robot
from sysid_core.robot.description import FrameOnLink
from sysid_sim.errors import SimulationError
from sysid_sim.mjcf import GROUND_FRICTION, joint_axis
from sysid_sim.simulator_config import start_configuration

__all__ = [
    "LOAD",
    "PERIOD",
    "TRAJECTORIES",
    "WORLD",
    "contact_topic",
    "force_topic",
    "load_sdf",
    "require_possible",
    "steps_of",
    "world_sdf",
]

WORLD = "sysid"
LOAD = "load"
TRAJECTORIES = "gazebo_trajectory_controller"
"""Name of the trajectory controller, whose joints show zero where the robot rests."""
PERIOD = 0.002  # [s] from joint state to joint state
_RATE = 1.0 / PERIOD  # [Hz] of joint states and odometry, as the project's own simulator
_STEPS, _STEPS_HELD = 2, 8
_PIN_MASS = 0.001
"""Mass [kg] of the ball that closes a loop: one that no torque shows, as DART needs some."""
_PIN_INERTIA = 1e-6 * np.eye(3)  # [kg·m²]


def steps_of(robot: Robot) -> int:
    """Return how many steps Gazebo takes from joint state to joint state.

    DART moves joints with viscous friction D as if their inertia M were M + D dt, but lets the
    forces of loops and contacts act through M, so that D dt / (M + D dt) of the torque of a joint
    that they hold is lost. With steps of 1 ms it is 8 % for the toes of Digit's leg.
    """
    held = robot.description.loops or robot.description.contacts
    return _STEPS_HELD if held else _STEPS


def force_topic(robot: Robot, joint: str) -> str:
    """Return Gazebo's topic of the torque that is applied at a joint."""
    return f"/model/{robot.name}/joint/{joint}/cmd_force"


def contact_topic(contact: str) -> str:
    """Return Gazebo's topic of a foot's contacts."""
    return f"/{WORLD}/contacts/{contact}"


def require_possible(robot: Robot) -> None:
    """Refuse what Gazebo cannot simulate.

    Raises
    ------
    SimulationError
        If motors are coupled, joints mimic others, or feet are flat.
    """
    refused = {
        "coupled motors": bool(robot.couplings),
        "joints that mimic others": bool(robot.description.mimic),
        "flat feet": any(contact.type == "flat" for contact in robot.description.contacts),
    }
    if what := " and ".join(name for name, found in refused.items() if found):
        raise SimulationError(
            f"robot '{robot.name}' has {what}, for which no world of Gazebo can be written"
        )


def world_sdf(robot: Robot, parameters: FloatArray, controllers: str = "") -> str:
    """Return a world in which the robot rests and all its joints show zero.

    SDF has no place for initial positions, so the robot at rest is what the world describes;
    whoever reads joint positions adds `start_configuration`. Armature and torque offsets are
    unknown to Gazebo. A loop is closed by a detachable joint to a ball on its other side, since
    Gazebo's DART takes a closed chain in no other way. Parameters (p,) are consistent, without
    armature and offsets. Without gz_ros2_control's parameters, Gazebo's own systems take torques
    and publish joint states.
    """
    root = ET.Element("sdf", version="1.9")
    world = ET.SubElement(root, "world", name=WORLD)
    physics = ET.SubElement(world, "physics", name="default", type="ignored")
    _text(physics, "max_step_size", PERIOD / steps_of(robot))
    _text(physics, "real_time_factor", 1.0)
    _text(world, "gravity", robot.description.gravity)
    for system in ("Physics", "UserCommands", "SceneBroadcaster"):
        _plugin(world, system)
    if robot.floating:
        _plugin(world, "Imu")
        _plugin(world, "Contact")
    _ground(world, 0.0 if robot.floating else -1.0)
    _robot(ET.SubElement(world, "model", name=robot.name), robot, parameters, controllers)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode")


def load_sdf(robot: Robot, mass: float) -> str:
    """Return a ball at the tool frame of a robot at rest, which holds it once it appears."""
    root = ET.Element("sdf", version="1.9")
    model = ET.SubElement(root, "model", name=LOAD)
    tool = robot.frame(robot.tool_frame)
    _pose(model, _placements(robot)[tool.parentJoint] * tool.placement)
    link = ET.SubElement(model, "link", name=LOAD)
    radius = (3.0 * mass / (4.0 * np.pi * 2000.0)) ** (1.0 / 3.0)  # of stone [kg/m³]
    _inertial(link, pin.Inertia.FromSphere(mass, radius).toDynamicParameters())
    ET.indent(root)
    return ET.tostring(root, encoding="unicode")


def _text(parent: ET.Element, tag: str, value: object) -> None:
    numbers = np.atleast_1d(np.asarray(value, dtype=float)).tolist()
    ET.SubElement(parent, tag).text = " ".join(f"{number:.17g}" for number in numbers)


def _plugin(parent: ET.Element, system: str, **settings: str) -> ET.Element:
    file = "".join(f"-{c.lower()}" if c.isupper() else c for c in system)
    plugin = ET.SubElement(
        parent, "plugin", filename=f"gz-sim{file}-system", name=f"gz::sim::systems::{system}"
    )
    for key, value in settings.items():
        ET.SubElement(plugin, key).text = value
    return plugin


def _pose(parent: ET.Element, placement: pin.SE3) -> None:
    _text(parent, "pose", pin.SE3ToXYZQUAT(placement))
    parent[-1].set("rotation_format", "quat_xyzw")


def _placements(robot: Robot) -> list[pin.SE3]:
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, start_configuration(robot))
    return list(data.oMi)


def _link(robot: Robot, index: int) -> str:
    """Return the name of the link that a joint moves: in SDF no joint may have the same."""
    name = robot.layout.bodies[index - 1]
    return f"{name}_body" if name in robot.joint_names else name


def _inertial(link: ET.Element, phi: FloatArray) -> None:
    element = ET.SubElement(link, "inertial")
    _pose(element, pin.SE3(np.eye(3), phi[1:4] / phi[0]))
    _text(element, "mass", phi[0])
    inertia, tensor = central_inertia(phi), ET.SubElement(element, "inertia")
    for i, j in zip(*np.triu_indices(3), strict=True):
        _text(tensor, f"i{'xyz'[i]}{'xyz'[j]}", inertia[i, j])


def _collision(link: ET.Element, name: str, shape: str) -> tuple[ET.Element, ET.Element]:
    """Return a collision and its shape."""
    collision = ET.SubElement(link, "collision", name=name)
    geometry = ET.SubElement(ET.SubElement(collision, "geometry"), shape)
    surface = ET.SubElement(ET.SubElement(collision, "surface"), "friction")
    ode = ET.SubElement(surface, "ode")
    _text(ode, "mu", GROUND_FRICTION)
    _text(ode, "mu2", GROUND_FRICTION)
    return collision, geometry


def _ground(world: ET.Element, height: float) -> None:
    model = ET.SubElement(world, "model", name="ground")
    ET.SubElement(model, "static").text = "true"
    _pose(model, pin.SE3(np.eye(3), np.array([0.0, 0.0, height])))
    _, plane = _collision(ET.SubElement(model, "link", name="ground"), "ground", "plane")
    _text(plane, "normal", [0.0, 0.0, 1.0])


def _robot(model: ET.Element, robot: Robot, parameters: FloatArray, controllers: str) -> None:
    placements, links = _placements(robot), {}
    for index in robot.body_joint_ids:
        links[index] = ET.SubElement(model, "link", name=_link(robot, index))
        _pose(links[index], placements[index])
        _inertial(links[index], parameters[robot.layout.body(index - 1)])
    for index in range(2 if robot.floating else 1, robot.model.njoints):
        _joint(model, robot, parameters, index)
    for loop in robot.description.loops:
        _close(model, robot, loop.name, loop.type, (loop.frame_a, loop.frame_b), placements)
    if robot.floating:
        _feet(robot, links)
        _base_sensors(model, robot, links[1])
    _systems(model, robot, controllers)


def _joint(model: ET.Element, robot: Robot, parameters: FloatArray, index: int) -> None:
    name, parent = robot.model.names[index], robot.model.parents[index]
    j = robot.joint_names.index(name)
    kind, axis = joint_axis(robot.model.joints[index], pin.neutral(robot.model))
    sort = {"hinge": "revolute", "slide": "prismatic"}[kind]
    joint = ET.SubElement(model, "joint", name=name, type=sort)
    ET.SubElement(joint, "parent").text = _link(robot, parent) if parent else "world"
    ET.SubElement(joint, "child").text = _link(robot, index)
    element = ET.SubElement(joint, "axis")
    _text(element, "xyz", axis)
    limits = robot.limits
    if not robot.passive[j] and np.isfinite([limits.lower[j], limits.upper[j]]).all():
        rest = start_configuration(robot)[robot.model.joints[index].idx_q]
        limit = ET.SubElement(element, "limit")
        _text(limit, "lower", limits.lower[j] - rest)
        _text(limit, "upper", limits.upper[j] - rest)
    dynamics, layout = ET.SubElement(element, "dynamics"), robot.layout
    _text(dynamics, "damping", parameters[layout.term("viscous")][j])
    _text(dynamics, "friction", parameters[layout.term("coulomb")][j])


def _close(
    model: ET.Element,
    robot: Robot,
    name: str,
    kind: str,
    frames: tuple[FrameOnLink, FrameOnLink],
    placements: list[pin.SE3],
) -> None:
    """Hang a ball on one end of a loop, by a ball joint or rigidly; hold it by the other end."""
    (first, placement), (second, _) = (robot.place(frame) for frame in frames)
    ball = f"{name}_pin"
    link = ET.SubElement(model, "link", name=ball)
    _pose(link, placements[first] * placement)
    _inertial(link, pin.Inertia(_PIN_MASS, np.zeros(3), _PIN_INERTIA).toDynamicParameters())
    sort = "ball" if kind == "point" else "fixed"
    joint = ET.SubElement(model, "joint", name=f"{name}_{sort}", type=sort)
    ET.SubElement(joint, "parent").text = _link(robot, first)
    ET.SubElement(joint, "child").text = ball
    _hold(model, _link(robot, second), "__model__", ball)


def _hold(model: ET.Element, parent: str, child_model: str, child: str) -> None:
    topic = f"/model/{model.get('name')}/{child}"
    _plugin(
        model,
        "DetachableJoint",
        parent_link=parent,
        child_model=child_model,
        child_link=child,
        attach_topic=f"{topic}/attach",
        detach_topic=f"{topic}/detach",
        output_topic=f"{topic}/state",
        suppress_child_warning="true",
    )


def _feet(robot: Robot, links: dict[int, ET.Element]) -> None:
    radii = foot_radii(robot)
    for contact, radius in zip(robot.description.contacts, radii, strict=True):
        parent, placement = robot.place(contact.frame)
        collision, sphere = _collision(links[parent], contact.name, "sphere")
        _pose(collision, placement)
        _text(sphere, "radius", radius)
        sensor = ET.SubElement(
            links[parent], "sensor", name=f"{contact.name}_touch", type="contact"
        )
        touched = ET.SubElement(sensor, "contact")
        ET.SubElement(touched, "collision").text = contact.name
        ET.SubElement(touched, "topic").text = contact_topic(contact.name)
        _text(sensor, "update_rate", _RATE)


def _base_sensors(model: ET.Element, robot: Robot, base: ET.Element) -> None:
    sensor = ET.SubElement(base, "sensor", name="imu", type="imu")
    _pose(sensor, pin.SE3(robot.imu_rotation, robot.imu_position))
    ET.SubElement(sensor, "topic").text = f"/{WORLD}/imu"
    _text(sensor, "update_rate", _RATE)
    ET.SubElement(sensor, "always_on").text = "true"
    _plugin(
        model,
        "OdometryPublisher",
        odom_topic=f"/{WORLD}/odom",
        odom_frame="odom",
        robot_base_frame=_link(robot, 1),
        odom_publish_frequency=f"{_RATE:g}",
        dimensions="3",
    )


def _systems(model: ET.Element, robot: Robot, controllers: str) -> None:
    tool = _link(robot, robot.frame(robot.tool_frame).parentJoint)
    _hold(model, tool, LOAD, LOAD)
    if controllers:
        plugin = ET.SubElement(
            model,
            "plugin",
            filename="gz_ros2_control-system",
            name="gz_ros2_control::GazeboSimROS2ControlPlugin",
        )
        ET.SubElement(plugin, "parameters").text = controllers
        remapping = ET.SubElement(ET.SubElement(plugin, "ros"), "remapping")
        remapping.text = f"/clock:=/world/{WORLD}/clock"  # before there are joint states
        return
    states = _plugin(model, "JointStatePublisher", topic=f"/{WORLD}/joint_states")
    _text(states, "update_rate", _RATE)
    for name in robot.actuated_names:
        ET.SubElement(states, "joint_name").text = name
        _plugin(model, "ApplyJointForce", joint_name=name)
