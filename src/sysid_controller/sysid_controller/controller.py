# SPDX-License-Identifier: Apache-2.0
"""The controller without ROS: takes states, references and parameters, gives torques."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sysid_controller.command import Command, Publishers
from sysid_controller.contact_qp import ConeConfig
from sysid_controller.contact_torque import ContactTorque
from sysid_controller.floating_base import FloatingBase
from sysid_controller.joint_states import JointStates
from sysid_controller.laws import LAWS, ControlLaw, LawOutput, Motion, check_gains
from sysid_controller.limits import EffortLimiter, LimitedEffort
from sysid_controller.parameter_blend import ParameterBlend
from sysid_controller.reference import Reference
from sysid_controller.safe_hold import SafeHold
from sysid_controller.safety_stop import SafetyStop
from sysid_controller.safety_watch import SafetyWatch
from sysid_controller.settings import ControllerConfig
from sysid_controller.watchdog import ControlState, Watchdog
from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.dynamics.select import Dynamics, make_dynamics
from sysid_core.exchange import ParameterSet, TrajectoryPoints
from sysid_core.robot import Robot
from sysid_core.robot.conversion import JointConversion
from sysid_core.robot.model import Limits

__all__ = ["Controller"]

_LONGEST_STEPS = 5.0  # [ticks] that the rate limit and a late tick make up for
_GAP = 0.2  # [s] without a tick after which the reference is rejoined, not jumped to
_FORCE_WEIGHT = 6e-3  # [-] of squared forces per weight against squared accelerations, in the QP
_DRIVING = (ControlState.HOLDING, ControlState.TRACKING)
_ZEROS_FOR = 0.5  # [s] that zero torque is sent after a stop, before falling silent


class Controller:
    """Drives the actuated joints of one robot.

    Times are given in, never read: `now` [s] is the time of references and samples, which may
    stand still or jump; `steady` [s] only ever grows.

    Parameters
    ----------
    robot : Robot
    config : ControllerConfig

    Raises
    ------
    ModelError
        If the robot's class is not supported.
    ParameterError
        If a setting does not fit the robot.
    """

    def __init__(self, robot: Robot, config: ControllerConfig) -> None:
        self.robot = robot
        self.joint_names = robot.actuated_names
        chosen = robot.actuated
        self.limits = Limits(*(bounds[chosen] for bounds in robot.limits))
        width = config.friction_width
        self._contact = ContactTorque(robot, width) if robot.floating else None
        self.dynamics: Dynamics = self._contact or make_dynamics(robot, width)
        self._inertia = self.dynamics.inertia(self.dynamics.home)
        self._law = self._make_law(config)
        self._safe_hold = SafeHold(self._law, self._inertia, local=robot.floating)
        self._conversion = JointConversion.described(robot)
        self._check_unit(config)
        self.config = config
        self.blend = ParameterBlend(robot, config.blend_time)
        aliases = robot.description.names
        self.joint_states = JointStates(
            self.joint_names, self._conversion, aliases, config.velocity_cutoff, self.limits
        )
        self.reference = Reference(
            self.joint_names,
            self.limits,
            handover_time=config.handover_time,
            start_tolerance=config.start_tolerance,
            aliases=aliases,
            reach=self.dynamics.unreachable,
        )
        self.watchdog = Watchdog(config.stale_timeout, enabled=config.start_enabled)
        self._limiter = EffortLimiter(self.limits, config)
        self.watch = SafetyWatch(self.joint_names, self.limits)
        self.stop = SafetyStop(self.limits)
        self.base = FloatingBase(robot, config) if robot.floating else None
        self._fell = ""
        self.publishers = Publishers()
        self._mass = float(robot.consistent_nominal[robot.layout.masses].sum())
        self._choose_contact_control(config)
        self._now: float | None = None
        self._steady: float | None = None
        self._zeros_left = 0.0
        self._rejoined = False

    def configure(self, config: ControllerConfig) -> None:
        """Take over new settings while running; trigger and rate are the caller's.

        Raises
        ------
        ParameterError
            If one does not fit the robot; the old ones stay then.
        """
        law = self._make_law(config)
        self._check_unit(config)
        self._law = self._safe_hold.law = law
        self.dynamics.friction.width = config.friction_width
        self.blend.duration = config.blend_time
        self.joint_states.cutoff = config.velocity_cutoff
        self.reference.handover_time = config.handover_time
        self.reference.start_tolerance = config.start_tolerance
        self.watchdog.timeout = config.stale_timeout
        self._limiter.configure(config)
        if self.base is not None:
            self.base.configure(config)
            self._choose_contact_control(config)
        self.config = config

    def _check_unit(self, config: ControllerConfig) -> None:
        if config.command_unit == "driver":
            self._conversion.check_commands()

    def _make_law(self, config: ControllerConfig) -> ControlLaw:
        check_gains(config, self.joint_names, self._inertia, self.limits)
        return LAWS[config.mode](config, len(self.joint_names))

    def _choose_contact_control(self, config: ControllerConfig) -> None:
        if self._contact is not None:
            limit = self.limits.effort * config.effort_scale
            cones = ConeConfig(
                friction=config.contact_friction, force_weight=_FORCE_WEIGHT / self._mass**2
            )
            self._contact.choose(config.contact_control, cones, limit)

    @property
    def missing(self) -> str:
        """What has never been received but is needed to drive, in words; empty if all has."""
        known = self.joint_states.known
        base = "" if self.base is None else self.base.missing
        return " and ".join(text for text in ("" if known else "joint states", base) if text)

    @property
    def fallback(self) -> Diagnostic | None:
        """Why the projected law stood in for the contact forces' QP in the last tick."""
        return None if self._contact is None else self._contact.fallback

    @property
    def failure(self) -> Diagnostic | None:
        """Why the model gives no torque; None while it does."""
        return self._safe_hold.failure

    def set_enabled(self, enabled: bool) -> Diagnostic | None:
        """Start or stop driving; on a start the robot holds the position that it has then."""
        if enabled and self.base is not None and self.base.fallen:
            return Diagnostic("refused", f"{self.base.fallen}; put it upright first")
        if enabled and self.publishers.rival:
            return Diagnostic("refused", f"there is {self.publishers.rival}; stop it first")
        self._fell = ""
        self.watchdog.enabled = enabled
        self.stop.forget()
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
    ) -> Diagnostic | None:
        """Take measured joint states that arrived at `steady`, or say why not."""
        refusal = self.joint_states.update(names, position, velocity, stamp)
        if refusal is None:
            self.watchdog.feed(steady)
            self.watch.measure(self.joint_states.position, self.joint_states.velocity, stamp)
        return refusal

    def take_odometry(
        self, pose: FloatArray, twist: FloatArray, steady: float
    ) -> Diagnostic | None:
        """Take the base's pose (7,) and twist (6,) that arrived at `steady`, or say why not."""
        if self.base is None:
            return Diagnostic("refused", f"the base of robot '{self.robot.name}' is fixed")
        return self.base.take_odometry(pose, twist, steady)

    def take_contacts(
        self, names: Sequence[str], active: Sequence[bool], stamp: float, steady: float
    ) -> Diagnostic | None:
        """Take the feet's contacts that arrived at `steady`, or say why not."""
        if self.base is None:
            return Diagnostic("refused", f"the base of robot '{self.robot.name}' is fixed")
        return self.base.take_contacts(names, active, stamp, steady)

    def take_contact_plan(
        self, names: Sequence[str], active: Sequence[bool], start: float, now: float
    ) -> Diagnostic | None:
        """Take which feet are to carry load from `start` on, or say why not."""
        if self.base is None:
            return Diagnostic("refused", f"the base of robot '{self.robot.name}' is fixed")
        return self.base.plan_contacts(names, active, start, now)

    def take_reference(self, points: TrajectoryPoints, now: float) -> Diagnostic | None:
        """Follow a trajectory, brake and hold where it has no points, or say why not."""
        if self.stop.reason is not None:
            return Diagnostic("refused", f"the robot is stopped: {self.stop}")
        if self.watchdog.state in (ControlState.DISABLED, ControlState.WAITING):
            return Diagnostic(
                "refused",
                "the controller is not enabled; call ~/enable"
                if not self.watchdog.enabled
                else f"no valid {self.missing or 'joint states'} yet",
            )
        if not len(points.time):
            measured = self.joint_states
            self.reference.brake(now, measured.position, measured.velocity)
            return None
        return self.reference.offer(points, now)

    def take_parameters(self, offered: ParameterSet) -> Diagnostic | None:
        """Use published parameters, or say why not."""
        barred = self.stop.bars_parameters(self._steady or 0.0) if offered.identified else ""
        if barred:
            return Diagnostic("refused", barred)
        return self.blend.offer(offered)

    def tick(self, now: float, steady: float) -> Command:
        """Return what to do now.

        Parameters
        ----------
        now : float [s]
            Time of references.
        steady : float [s]
            Time that only grows.
        """
        period = 1.0 / self.config.rate
        elapsed = period if self._now is None else now - self._now
        steady_elapsed = period if self._steady is None else steady - self._steady
        self._now, self._steady = now, steady
        jumped = elapsed < 0.0
        if jumped:
            elapsed = 0.0
            self.reference.clear()
            self.blend.forget_history()
            self.joint_states.restart()
            self.watch.restart()
            if self.base is not None:
                self.base.forget_plan()
        if self.blend.advance(min(elapsed, _GAP)):
            self.dynamics.set_parameters(self.blend.parameters)
        self._watch_base(now, steady)
        self._watch_motion(steady, steady_elapsed)
        state = self._follow(now, steady, elapsed)
        drives = state in _DRIVING
        # what stops safely must do so even where the robot's clock stands still
        step = elapsed if drives else max(elapsed, steady_elapsed)
        return self._command(now, steady, state, min(step, _LONGEST_STEPS * period), jumped)

    def _watch_base(self, now: float, steady: float) -> None:
        """Hand the base's state to the model; a robot that fell is not driven any more."""
        if self.base is None or self._contact is None:
            return
        if self.watchdog.enabled and self.base.fallen:
            self.watchdog.enabled = False
            self._fell = f"{self.base.fallen}; call ~/enable to drive again"
            self.stop.release()
            self.base.forget_plan()
        reason = self.base.unknown(steady)
        if reason:
            self._contact.lose_base(Diagnostic("stale_base", reason, Severity.ERROR))
        else:
            self._contact.set_base(self.base.pose, self.base.twist, self.base.contacts(now))

    def _watch_motion(self, steady: float, elapsed: float) -> None:
        """Stop the robot where its motion is dangerous, and end the stop once it rests."""
        if self.stop.reason is not None:
            if self.stop.over(steady):
                self.stop.release()
                self.watch.restart()
            return
        if self.watchdog.state not in _DRIVING:
            self.watch.restart()
            return
        rejoined, self._rejoined = self._rejoined, False
        reason = self.watch.judge(self._limiter.last, elapsed, steady, rejoined=rejoined)
        if reason is None:
            return
        self.blend.drop()
        self.dynamics.set_parameters(self.blend.parameters)
        self._safe_hold.forget()
        inertia = self.dynamics.inertia(self.joint_states.position)
        if not np.isfinite(inertia).all():
            inertia = self._inertia
        period = max(1.0 / self.config.rate, self.watch.interval)
        self.stop.begin(reason, steady, inertia, period)

    def _follow(self, now: float, steady: float, elapsed: float) -> ControlState:
        """Decide the state and see that there is a reference that starts where the robot is."""
        reference, measured = self.reference, self.joint_states
        moving = reference.moving(now)
        ready = not (self.publishers.rival or (self.base and self.base.unknown(steady)))
        stopped = self.stop.reason is not None
        change = self.watchdog.decide(steady, moving=moving, ready=ready, stopped=stopped)
        if change.after in _DRIVING:
            if change.takes_over or not reference.known:
                reference.hold(now, measured.position)
                self.watchdog.state = ControlState.HOLDING
            elif change.recovers or (moving and elapsed > _GAP):
                reference.rejoin(now, measured.position, measured.velocity)
        elif change.after is not ControlState.STALE:
            reference.clear()
        return self.watchdog.state

    def _command(
        self, now: float, steady: float, state: ControlState, step: float, jumped: bool
    ) -> Command:
        measured, none = self.joint_states, np.zeros(len(self.joint_names))
        position_error = velocity_error = none
        asked, rejoined = LawOutput(none, none), False
        if state in _DRIVING:
            desired, rejoined = self._desired(now)
            self._rejoined |= rejoined
            asked, desired = self._asked(now, desired)
            position_error = desired.position - measured.position
            velocity_error = desired.velocity - measured.velocity
            hold = none
            if self._limiter.near_limits(measured.position):
                hold = asked.model if self.failure is not None else self._gravity()
            limits = self._limiter.apply(
                asked.effort, step, hold, measured.position, measured.velocity
            )
        elif state is ControlState.STOPPED:
            gravity = self._gravity()
            braked = self.stop.torque(gravity, measured.position, self.watch.velocity, steady)
            asked = LawOutput(braked, gravity)
            limits = self._limiter.apply(braked, step, none, urgent=True)
        else:
            if state is ControlState.STALE and self.config.stale_action == "gravity":
                gravity = self._gravity()
                asked = LawOutput(gravity, gravity)
            else:
                self._safe_hold.forget()
            limits = self._limiter.apply(asked.effort, step, none)
        return Command(
            state,
            self._output(limits.effort) if self._sends(state, limits, step) else None,
            limits.effort,
            asked.model,
            position_error,
            velocity_error,
            limits,
            jumped,
            rejoined,
            self.failure,
            self.fallback if state in _DRIVING else None,
            self.stopped,
        )

    def _desired(self, now: float) -> tuple[Motion, bool]:
        """Return the reference, and whether it had to start anew from the robot."""
        measured = self.joint_states
        desired = self.reference.sample(now)
        error = np.abs(desired.position - measured.position).max()
        rejoins = bool(error > self.config.largest_error)
        if rejoins:
            self.reference.rejoin(now, measured.position, measured.velocity)
            desired = self.reference.sample(now)
        return desired, rejoins

    def _gravity(self) -> FloatArray:
        return self._safe_hold.gravity(self.dynamics, self.joint_states.position)

    def _asked(self, now: float, desired: Motion) -> tuple[LawOutput, Motion]:
        """Return the law's torques, or those that hold the robot, and the reference in use."""
        measured = self.joint_states
        position, velocity = measured.position, measured.velocity
        asked = self._law(self.dynamics, desired, position, velocity)
        if np.isfinite(asked.effort).all():
            back = self._safe_hold.release(position, desired.position)
            apart = np.abs(desired.position - position).max()
            if not (back and apart > self.config.start_tolerance):
                return asked, desired
            # the reference went on meanwhile: return to it gradually
            self.reference.rejoin(now, position, velocity)
            desired = self.reference.sample(now)
            asked = self._law(self.dynamics, desired, position, velocity)
            if np.isfinite(asked.effort).all():
                return asked, desired
        held = LawOutput(*self._safe_hold(self.dynamics, position, velocity))
        if self.base is not None and self.config.stale_action == "zero":
            none = np.zeros(len(position))
            held = LawOutput(none, none)
        return held, desired

    def _output(self, effort: FloatArray) -> FloatArray:
        """Return joint torques (na,) [N·m] in the unit that is to be sent."""
        return effort if self.config.command_unit == "joint" else self._conversion.command(effort)

    def _sends(self, state: ControlState, limits: LimitedEffort, step: float) -> bool:
        """Whether to send: a stopped controller ramps down, then leaves the topic alone."""
        if state not in (ControlState.DISABLED, ControlState.WAITING) or limits.effort.any():
            self._zeros_left = _ZEROS_FOR
            return True
        self._zeros_left -= step
        return self._zeros_left > 0.0
