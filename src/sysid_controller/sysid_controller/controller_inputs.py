# SPDX-License-Identifier: Apache-2.0
"""What a controller is told: joint states, base, contacts, references and parameters."""

from collections.abc import Sequence

import numpy as np

from sysid_controller.command import ControlState, Publishers, Watchdog
from sysid_controller.floating_base import FloatingBase
from sysid_controller.joint_states import JointStates
from sysid_controller.limits import EffortLimiter
from sysid_controller.parameter_blend import ParameterBlend
from sysid_controller.planning import Reach
from sysid_controller.reference import Reference
from sysid_controller.repeats import Repeats
from sysid_controller.safety_watch import SafetyStop, SafetyWatch
from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.exchange import ParameterSet, TrajectoryPoints
from sysid_core.robot import Robot
from sysid_core.robot.conversion import JointConversion
from sysid_core.robot.strength import working_limits

__all__ = ["ControllerInputs"]

_NONE = np.zeros(0)


class ControllerInputs:
    """Base of the controller: checks what comes in, also against what was sent; keeps the newest.

    `reach` says what bounds the joints besides their limits.
    """

    def __init__(self, robot: Robot, config: ControllerConfig, reach: Reach) -> None:
        self.robot = robot
        self.joint_names = robot.actuated_names
        self.limits = working_limits(robot)
        self._conversion = JointConversion.described(robot)
        aliases = robot.description.names
        self.joint_states = JointStates(self.joint_names, self._conversion, aliases, self.limits)
        self.reference = Reference(self.joint_names, self.limits, aliases=aliases, reach=reach)
        self.blend = ParameterBlend(robot, config.blend_time)
        self.watchdog = Watchdog(config.stale_timeout, enabled=config.start_enabled)
        self.watch = SafetyWatch(self.joint_names, self.limits)
        self.stop = SafetyStop(self.limits)
        self._limiter = EffortLimiter(self.limits, config)
        self._repeats = Repeats(self.joint_names, self.limits.effort, config.stale_timeout)
        self.base = FloatingBase(robot, config) if robot.floating else None
        self.publishers = Publishers()
        self._fell = ""
        self._kept: TrajectoryPoints | None = None
        self._steady: float | None = None

    @property
    def missing(self) -> str:
        """What has never been received but is needed to drive, in words; empty if all has."""
        known = self.joint_states.known
        base = "" if self.base is None else self.base.missing
        return " and ".join(text for text in ("" if known else "joint states", base) if text)

    def set_enabled(self, enabled: bool) -> Diagnostic | None:
        """Start or stop driving; on a start the robot holds the position that it has then."""
        if enabled and self.base is not None and self.base.fallen:
            return Diagnostic("refused", f"{self.base.fallen}; put it upright first")
        if enabled and self.publishers.rival:
            return Diagnostic("refused", f"there is {self.publishers.rival}; stop it first")
        self._fell = ""
        self.watchdog.enabled = enabled
        self.stop.forget()
        self._kept = None
        if not enabled:
            self.stop.release()
        return None

    @property
    def stopped(self) -> str:
        """Why the controller stopped the robot or no longer drives it; empty if it does."""
        return self._fell or (str(self.stop) if self.stop.reason is not None else "")

    def take_joint_states(
        self,
        names: Sequence[str],
        position: FloatArray,
        velocity: FloatArray,
        stamp: float,
        steady: float,
        effort: FloatArray = _NONE,
    ) -> Diagnostic | None:
        """Take measured joint states that arrived at `steady`, or say why not."""
        states = self.joint_states
        refusal = states.update(names, position, velocity, stamp)
        if refusal is None:
            refusal = self._repeats.judge(
                states.position, states.velocity, effort, self._limiter.last, steady
            )
        if refusal is None:
            self.watchdog.feed(steady)
            self.watch.measure(states.position, states.velocity, stamp)
        return refusal

    def take_reference(
        self, points: TrajectoryPoints, now: float, *, at_once: bool = False
    ) -> Diagnostic | None:
        """Follow a trajectory, brake and hold where it has no points, or say why not.

        `at_once` leaves what is followed now, unless the trajectory has a start in time. Of those
        that come with one during a stop, the newest is followed after it.
        """
        if self.stop.reason is not None:
            if at_once or points.start is None or self.stop.stays:
                return Diagnostic("refused", f"the robot is stopped: {self.stop}")
            self._kept = points
            return None
        if self.watchdog.state in (ControlState.DISABLED, ControlState.WAITING):
            return Diagnostic(
                "refused",
                "the controller is not enabled; call ~/enable"
                if not self.watchdog.enabled
                else f"no valid {self.missing or 'joint states'} yet",
            )
        measured = self.joint_states
        if not len(points.time):
            self.reference.brake(now, measured.position, measured.velocity)
            return None
        if at_once and points.start is None and self.reference.moving(now):
            return self.reference.replace(points, now, measured.position, measured.velocity)
        return self.reference.offer(points, now)

    def take_parameters(self, offered: ParameterSet) -> Diagnostic | None:
        """Use published parameters, or say why not."""
        barred = self.blend.barred(self._steady or 0.0)
        if offered.identified and (barred or self.stop.reason is not None):
            return Diagnostic("refused", barred or f"the robot is stopped: {self.stop}")
        return self.blend.offer(offered)
