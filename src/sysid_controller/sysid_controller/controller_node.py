# SPDX-License-Identifier: Apache-2.0
"""The controller node: joint states, references and parameters in, torques out."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from sysid_controller.command import Command, Publishers
from sysid_controller.controller import Controller
from sysid_controller.controller_joints import ControllerJoints
from sysid_controller.floating_base import FloatingBase
from sysid_controller.health import Health
from sysid_controller.lifecycle import Lifecycle
from sysid_controller.robot_time import NodeTimes
from sysid_controller.settings import ControllerConfig
from sysid_core.diagnostics import Diagnostic
from sysid_core.errors import SysidError
from sysid_core.settings import group
from sysid_core.signals.parts import NewestParts
from sysid_core.signals.senders import FOREIGN, Senders
from sysid_msgs.msg import Contacts, DynamicParameters, TrackingStatus
from sysid_ros.control import command_message, tracking_message, trajectory_points
from sysid_ros.diagnostics import clock_fault, diagnostics_message
from sysid_ros.fields import nanoseconds
from sysid_ros.identification import parameters_from_message
from sysid_ros.node_main import run_node
from sysid_ros.parameters import NodeParameters
from sysid_ros.qos import latched, newest_reading
from sysid_ros.robot_config import RobotConfig
from sysid_ros.sensors import joint_arrays, odometry_arrays

__all__ = ["ControllerNode", "ControllerNodeConfig", "main"]

_DRIVERS = 4  # whose joint states, sent at once, do not displace each other
_NANO = 1e-9

_DIAGNOSTICS_PERIOD = 1.0  # [s] between diagnostics, and between warnings of the same kind
_TRACKING_PERIOD = 0.02  # [s] between tracking messages at least: enough for plots and people
# topics whose publishers are counted
_COMMANDS = "effort_controller/commands"
_REFERENCE = "reference"
_SHORTEST_WATCH = 0.01  # [s] between looks at whether ticks still come, at least


@dataclass(frozen=True)
class ControllerNodeConfig(RobotConfig):
    """Parameters of the controller node."""

    control: ControllerConfig = group(ControllerConfig, "")


class ControllerNode(Node):
    """Drives the actuated joints of one robot with the newest accepted parameters.

    Raises
    ------
    SysidError
        If a parameter or the robot description cannot be used.
    """

    def __init__(self) -> None:
        super().__init__("controller")
        parameters = NodeParameters(self, ControllerNodeConfig())
        config = parameters.config.control
        self.controller = Controller(parameters.config.load_robot(self), config)
        robot = self.controller.robot
        published = robot.actuated_names, robot.description.names
        self._newest, self._senders = NewestParts(*published), Senders(*published)
        self.health = Health()
        self._times = NodeTimes(self.get_clock())
        self._now, self._steady = self._times.now, self._times.steady
        self._next_status = self._next_clock_warning = self._next_failure_warning = 0.0
        self._last_tick = self._steady()
        self._stopped = ""
        self._create_topics()
        self._action = self._create_action()
        self._create_timers()
        self._lifecycle = Lifecycle(self, self._change)
        if config.start_enabled:
            self._lifecycle.go("configure", "activate")
        parameters.on_change(lambda config: self.controller.configure(config.control))
        self.add_on_set_parameters_callback(self._keep_clock)
        self.get_logger().info(
            f"controls {robot.name} ({len(self.controller.joint_names)} joints) by {config.mode}"
        )
        for warning in robot.warnings:
            self.get_logger().warning(warning)

    def _create_topics(self) -> None:
        sensor = newest_reading()
        self._commands = self.create_publisher(Float64MultiArray, _COMMANDS, 1)
        robot, topic = self.controller.robot, self._commands.topic_name
        self._drove = False
        self._interface = ControllerJoints(self, topic, robot, ordered=True)
        self._tracking = self.create_publisher(TrackingStatus, "tracking", 10)
        self._diagnostics = self.create_publisher(DiagnosticArray, "diagnostics", 10)
        if (base := self.controller.base) is not None:
            # before the joint states: these may set off a tick, which wants the newest base
            self.create_subscription(Odometry, "odom", partial(self._on_odometry, base), sensor)
            self.create_subscription(
                Contacts, "contacts", partial(self._on_contacts, base), sensor
            )
            planned = partial(self._on_contact_reference, base)
            self.create_subscription(Contacts, "contact_reference", planned, 10)
        states = newest_reading(_DRIVERS)
        self.create_subscription(JointState, "joint_states", self._on_joint_states, states)
        self.create_subscription(JointTrajectory, _REFERENCE, self._on_reference, 10)
        self.create_subscription(DynamicParameters, "parameters", self._on_parameters, latched())
        self.create_service(SetBool, "~/enable", self._on_enable)

    def _create_action(self) -> Any:
        """Return the server of goals; None where its messages are not installed."""
        try:
            from sysid_controller.trajectory_action import TrajectoryAction
        except ModuleNotFoundError as error:
            if error.name != "control_msgs":
                raise
            self.get_logger().warning(
                "control_msgs is not installed: trajectories come by topic only, MoveIt cannot "
                "send its goals; install ros-$ROS_DISTRO-control-msgs"
            )
            return None
        take = partial(self._take_trajectory, at_once=True)
        return TrajectoryAction(self, self.controller, take)

    def _create_timers(self) -> None:
        config = self.controller.config
        if config.trigger == "timer":
            self.create_timer(1.0 / config.rate, self._tick)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        watch = max(0.5 * config.stale_timeout, _SHORTEST_WATCH)
        self.create_timer(watch, self._watch, clock=steady)
        self.create_timer(_DIAGNOSTICS_PERIOD, self._report, clock=steady)

    def _keep_clock(self, parameters: list[Parameter]) -> SetParametersResult:
        """Refuse another clock while torques depend on this one: they could stop unseen."""
        used = self.get_parameter("use_sim_time").value
        changed = any(p.name == "use_sim_time" and p.value != used for p in parameters)
        if changed and self.controller.watchdog.driving:
            reason = "use_sim_time cannot change while torques are sent; call ~/enable first"
            return SetParametersResult(successful=False, reason=reason)
        return SetParametersResult(successful=True)

    # -- inputs -----------------------------------------------------------------------------

    def _note(self, kind: str, refusal: Diagnostic | None) -> None:
        if refusal is None:
            self.health.accept(kind)
        elif self.health.refuse(kind, str(refusal), self._steady()):
            self.get_logger().warning(f"{kind} refused: {refusal}")

    def _on_joint_states(self, message: JointState) -> None:
        if self.controller.joint_states.are_others(message.name):
            return  # a gripper's, on the same topic
        steady = self._steady()
        if self._senders.foreign(message.name, steady, message.velocity, message.effort):
            self._note("joint states", Diagnostic("refused", FOREIGN))
            return
        whole = self._newest.push(message.name, *joint_arrays(message))
        if whole is None:
            return
        names, (position, velocity, effort) = whole
        newest = nanoseconds(message.header.stamp)
        stamp = _NANO * newest
        self.health.measured(stamp, steady)
        fault = clock_fault(self, newest)
        if fault and not self.health.clock_fault:
            self.get_logger().warning(f"joint states: {fault}")
        self.health.clock_fault = fault
        refusal = self.controller.take_joint_states(
            names, position, velocity, stamp, steady, effort
        )
        self._note("joint states", refusal)
        if refusal is None:  # one that was overtaken must not set the time back
            self._times.newest_stamp = newest
        if refusal is None and self.controller.config.trigger == "joint_states":
            self._tick()

    def _on_odometry(self, base: FloatingBase, message: Odometry) -> None:
        refusal = base.take_odometry(*odometry_arrays(message), self._steady())
        self._note("odometry", refusal)

    def _on_contacts(self, base: FloatingBase, message: Contacts) -> None:
        stamp = nanoseconds(message.header.stamp) or self.get_clock().now().nanoseconds
        refusal = base.take_contacts(message.names, message.active, _NANO * stamp, self._steady())
        self._note("contacts", refusal)

    def _on_contact_reference(self, base: FloatingBase, message: Contacts) -> None:
        now, stamp = self._now(), nanoseconds(message.header.stamp)
        start = _NANO * (stamp - self._times.origin) if stamp else now
        refusal = base.plan_contacts(message.names, message.active, start, now)
        self._note("contact reference", refusal)

    def _on_reference(self, message: JointTrajectory) -> None:
        if self._take_trajectory(message) is None and self._action is not None:
            self._action.replace(f"by a trajectory on '{_REFERENCE}'")

    def _take_trajectory(
        self, message: JointTrajectory, *, at_once: bool = False
    ) -> Diagnostic | None:
        """Follow a trajectory, brake where it has no points, or say why not."""
        now = self._now()
        try:
            points = trajectory_points(message, self._times.origin)
            refusal = self.controller.take_reference(points, now, at_once=at_once)
        except SysidError as error:
            refusal = Diagnostic("refused", str(error))
        self._note("reference", refusal)
        return refusal

    def _on_parameters(self, message: DynamicParameters) -> None:
        try:
            offered = parameters_from_message(message, self.controller.robot)
            refusal = self.controller.take_parameters(offered)
        except SysidError as error:
            refusal = Diagnostic("refused", str(error))
        self._note("parameters", refusal)

    def _on_enable(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._follow_controller()
        way = ("configure", "activate") if request.data else ("deactivate",)
        enabled = "drives" if request.data else "ramps down and stops"
        if request.data and self._lifecycle.state == "active" and self.controller.stopped:
            refusal = self._change("activate")  # it stays active while it is stopped
        else:
            refusal = self._lifecycle.go(*way)
        response.success, response.message = not refusal, refusal or enabled
        return response

    def _change(self, transition: str) -> str:
        """Do what a transition of the lifecycle stands for; return why it cannot be done."""
        if transition == "cleanup":
            self.controller.forget_parameters(self._steady())
        if transition in ("configure", "cleanup"):
            return ""
        enable = transition == "activate"
        if not enable and not self.controller.watchdog.enabled:
            return ""  # it stopped by itself and keeps the reason
        self._count_publishers()
        refusal = self.controller.set_enabled(enable)
        if enable and self._interface.look():
            self.controller.set_enabled(False)
            refusal = Diagnostic("refused", self._interface.fault)
        if refusal is None:
            self.get_logger().info("enabled" if enable else "disabled")
        return "" if refusal is None else str(refusal)

    def _follow_controller(self) -> None:
        """Note where the controller disabled itself."""
        if self._lifecycle.state == "active" and not self.controller.watchdog.enabled:
            self._lifecycle.go("deactivate")

    # -- outputs ----------------------------------------------------------------------------

    def _tick(self) -> None:
        if self.get_clock().now().nanoseconds == 0:
            return  # simulated time has not begun: torques could not rise with it
        if self._drives_unknown_joints():
            return
        now, steady, begin = self._now(), self._steady(), time.monotonic()
        self._last_tick = steady
        command = self.controller.tick(now, steady)
        tick_time = time.monotonic() - begin
        if command.output is not None:
            self._drove = True
            self._commands.publish(command_message(command.output))
        self.health.ticked(command, tick_time, steady)
        if self._action is not None:
            self._action.tick(now, command)
        if command.clock_jumped and steady >= self._next_clock_warning:
            self._next_clock_warning = steady + _DIAGNOSTICS_PERIOD
            self.get_logger().warning("the clock was set back: references are dropped")
        if command.stopped != self._stopped:
            self._stopped = command.stopped
            if command.stopped:
                self.get_logger().error(self.health.warnings(steady)[0])
        if command.failure is not None and steady >= self._next_failure_warning:
            self._next_failure_warning = steady + _DIAGNOSTICS_PERIOD
            self.get_logger().warning(self.health.warnings(steady)[0])
        if steady >= self._next_status:
            self._next_status = steady + _TRACKING_PERIOD
            self._tracking.publish(self._status_of(command, tick_time, steady))

    def _drives_unknown_joints(self) -> bool:
        """Whether the order of joints is asked for, before any torque, or is wrong."""
        if self._drove or not self.controller.watchdog.enabled:
            return False
        return self._interface.waits() or bool(self._interface.fault)

    def _status_of(self, command: Command, tick_time: float, steady: float) -> TrackingStatus:
        controller = self.controller
        return tracking_message(
            self.get_clock().now().to_msg(),
            controller.joint_names,
            position_error=command.position_error,
            velocity_error=command.velocity_error,
            effort=command.effort,
            effort_model=command.effort_model,
            limited=command.limited,
            robot=controller.robot.name,
            state=int(command.state),
            mode=controller.config.mode,
            identified=controller.blend.identified,
            revision=controller.blend.revision,
            blend=float(controller.blend.share),
            tick_time=tick_time,
            rate=self.health.rate,
            warnings=self.health.warnings(steady),
        )

    def _watch(self) -> None:
        """Tick in place of a trigger that fell silent: simulated time or joint states stopped."""
        if self._steady() - self._last_tick > self.controller.config.stale_timeout:
            self._tick()

    def _count_publishers(self) -> None:
        before = self.controller.publishers.rival
        self.controller.publishers = Publishers(
            self.count_publishers(_COMMANDS), self.count_publishers(_REFERENCE)
        )
        rival = self.controller.publishers.rival
        if rival and not before:
            self.get_logger().error(f"{rival}: two controllers on one robot; stop one")

    def _report(self) -> None:
        self._count_publishers()
        if self._interface.look() and self.controller.watchdog.enabled:
            self.get_logger().error(f"disabled: {self._interface.fault}")
            self.controller.set_enabled(False)
        self._follow_controller()
        report = self.health.report(self.controller, self._steady())
        self._diagnostics.publish(diagnostics_message(self, self.controller.robot.name, report))


def main(args: Sequence[str] | None = None) -> int:
    """Run the controller node."""
    return run_node("controller", ControllerNode, args)
