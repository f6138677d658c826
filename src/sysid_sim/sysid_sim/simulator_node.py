# SPDX-License-Identifier: Apache-2.0
"""The simulator node: torque commands in, joint states and a floating base's sensors out."""

from collections.abc import Sequence
from pathlib import Path

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.errors import SysidError
from sysid_core.estimate_json import identity_json
from sysid_core.files import json_text, write_text
from sysid_core.robot.conversion import JointConversion
from sysid_msgs.msg import Contacts
from sysid_msgs.srv import AttachPayload
from sysid_ros.control import command_array, payload_arrays
from sysid_ros.diagnostics import diagnostics_message
from sysid_ros.fields import stamp
from sysid_ros.node_main import return_freed_memory, run_node, trim_memory
from sysid_ros.parameters import NodeParameters
from sysid_ros.sensors import contacts_message, imu_message, joint_state_message, odometry_message
from sysid_sim.pacing import CommandGate, Pacing
from sysid_sim.sensors import BaseReading, Reading
from sysid_sim.simulation import Simulation
from sysid_sim.simulator_config import SimulatorConfig, start_configuration

__all__ = ["SimulatorNode", "main"]

_SENSOR_DEPTH = 100
_NOISE_SEED = 1
_LONGEST_WAIT = 1.0  # [s] that a command is waited for in lockstep; then its sender counts as gone


class SimulatorNode(Node):
    """A simulated robot behind the topics of a ros2_control robot."""

    def __init__(self) -> None:
        super().__init__("simulator")
        self.node_parameters = NodeParameters(self, SimulatorConfig())
        config = self.node_parameters.config
        self.robot, truth = config.true_robot(config.load_robot(self))
        walker = self._behaviour = config.new_behaviour(self.robot)
        start = start_configuration(self.robot) if walker is None else walker.start
        self._simulation = Simulation(
            self.robot, truth, config.simulation, seed=_NOISE_SEED, start=start
        )
        self._period = 1.0 / config.rate
        if config.truth_path:
            write_text(Path(config.truth_path), json_text(identity_json(self.robot, truth), 2))
        self._driver = JointConversion.described(self.robot)
        self._gate = CommandGate(len(self.robot.actuated_names))
        self._reported = (0, 0)
        # Physics go by a clock that no /clock can stop; only this node may move that one.
        self._steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._pacing = Pacing(self._period, config.speed, self._now())
        self._origin = 0.0
        if not config.publish_clock:
            self._origin = 1e-9 * float(self.get_clock().now().nanoseconds)
        self._offer_topics()
        self.node_parameters.on_change(
            lambda changed: self._pacing.set_speed(changed.speed, self._now())
        )
        self.create_timer(self._period, self._catch_up, clock=self._steady)
        self.create_timer(1.0, self._report, clock=self._steady)
        self.get_logger().info(
            f"simulating robot '{self.robot.name}' at {config.rate:g} Hz; "
            + (
                "brakes hold it until the first command"
                if self._behaviour is None
                else f"it does by itself: {config.behaviour}"
            )
        )

    def _offer_topics(self) -> None:
        self._joint_states = self.create_publisher(JointState, "joint_states", _SENSOR_DEPTH)
        self._diagnostics = self.create_publisher(DiagnosticArray, "diagnostics", 10)
        if self.node_parameters.config.publish_clock:
            self._clock_topic = self.create_publisher(ClockMessage, "/clock", 10)
        if self.robot.floating:
            self._odometry = self.create_publisher(Odometry, "odom", _SENSOR_DEPTH)
            self._imu = self.create_publisher(Imu, "imu/data", _SENSOR_DEPTH)
            self._contacts = self.create_publisher(Contacts, "contacts", _SENSOR_DEPTH)
        if self._behaviour is None:
            self.create_subscription(
                Float64MultiArray, "effort_controller/commands", self._on_command, 1
            )
        self.create_service(AttachPayload, "~/attach_payload", self._on_attach_payload)
        self.create_service(Trigger, "~/reset", self._on_reset)

    def _now(self) -> float:
        return 1e-9 * float(self._steady.now().nanoseconds)

    # -- commands ---------------------------------------------------------------------------

    def _on_command(self, message: Float64MultiArray) -> None:
        self._gate.offer(command_array(message), self._now())
        if self.node_parameters.config.lockstep > 0.0:
            self._catch_up()  # at once: the robot waited for nothing else

    def _on_attach_payload(
        self, request: AttachPayload.Request, response: AttachPayload.Response
    ) -> AttachPayload.Response:
        frame, mass, com, inertia = payload_arrays(request)
        frame = frame or self.robot.tool_frame
        try:
            self._simulation.attach_payload(frame, mass, com, inertia)
        except SysidError as error:
            response.success, response.message = False, str(error)
            return response
        trim_memory()  # MuJoCo's model and data were replaced
        response.success = True
        response.message = (
            f"attached {mass:g} kg to '{frame}'" if mass else f"took the payload off '{frame}'"
        )
        self.get_logger().info(response.message)
        return response

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self._simulation.reset()
        trim_memory()  # as after a payload
        self._gate.clear()
        self._behaviour = self.node_parameters.config.new_behaviour(self.robot)
        response.success, response.message = True, "back at the start, without payload"
        return response

    # -- time -------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        simulation, gate, now = self._simulation, self._gate, self._now()
        lockstep = self.node_parameters.config.lockstep
        while self._pacing.ready(now):
            if lockstep > 0.0 and gate.late(lockstep, _LONGEST_WAIT, now):
                self._pacing.wait(now)
                break
            if self._behaviour is not None:
                command: FloatArray | None = self._behaviour.command(simulation)
            else:
                command = self._with_driver(gate.next(self._period))
            if command is None and not simulation.holding:
                simulation.hold()
            reading = simulation.step(command)
            self._publish(reading, self._pacing.take())

    def _with_driver(self, command: FloatArray | None) -> FloatArray | None:
        """Return a command (na,) [N·m] with what the described driver adds to it."""
        if command is None:
            return None
        position = self._simulation.sense()[0][self.robot.actuated]
        return command + self._driver.uncommanded(position)

    def _publish(self, reading: Reading, tick: int) -> None:
        when, config = stamp(self._origin + tick * self._period), self.node_parameters.config
        if config.publish_clock and tick % config.clock_ticks == 0:
            self._clock_topic.publish(ClockMessage(clock=when))
        if reading.base is not None:
            self._publish_base(reading.base, when)
        # last, for they set off a controller's tick, which wants the base of the same instant
        states = (reading.position, reading.velocity, reading.effort)
        shown = self._driver.published(*(state[self.robot.actuated] for state in states))
        self._joint_states.publish(joint_state_message(self.robot.actuated_names, when, *shown))

    def _publish_base(self, base: BaseReading, when: Time) -> None:
        frame = self.robot.layout.bodies[0]
        self._odometry.publish(
            odometry_message(when, base.pose, base.twist, frame="odom", child_frame=frame)
        )
        self._imu.publish(
            imu_message(
                when, base.angular_velocity, base.specific_force, base.pose[3:], frame=frame
            )
        )
        names = [contact.name for contact in self.robot.description.contacts]
        self._contacts.publish(contacts_message(when, names, base.contacts, base.wrenches))

    def _report(self) -> None:
        gate = self._gate
        refused, lapses = gate.refused - self._reported[0], gate.lapses - self._reported[1]
        self._reported = gate.refused, gate.lapses
        late = self._pacing.take_late()
        troubles = []
        if refused:
            troubles.append(f"{refused} commands refused: not {gate.count} finite torques")
        if lapses or (gate.lapses and not gate.driven):
            troubles.append("commands stopped: is the controller running?")
        if late:
            troubles.append(f"the computer is too slow: {late:.2g} s were left out")
        text = "driven by commands" if gate.driven else "waiting for the first command"
        if self._behaviour is not None:
            text = "moves by itself"
            if self._behaviour.trouble:
                troubles.append(f"{self._behaviour.trouble}; call ~/reset")
        values = {
            "simulated time [s]": round(self._pacing.ticks * self._period, 3),
            "braked": self._simulation.holding,
            "commands refused": gate.refused,
            "times the commands stopped": gate.lapses,
            "payloads": ", ".join(
                f"{phi[0]:g} kg on {frame}" for frame, phi in self._simulation.payloads.items()
            ),
        }
        diagnostic = Diagnostic(
            "simulation",
            "; ".join(troubles) or text,
            Severity.WARNING if troubles else Severity.OK,
            values={key: str(value) for key, value in values.items()},
        )
        message = diagnostics_message(self, self.robot.name, [diagnostic])
        message.header.stamp = stamp(self._origin + self._pacing.ticks * self._period)
        self._diagnostics.publish(message)


def main(args: Sequence[str] | None = None) -> int:
    """Run the simulator node."""
    return_freed_memory()  # each payload takes a new model and data of MuJoCo's
    return run_node("simulator", SimulatorNode, args)
