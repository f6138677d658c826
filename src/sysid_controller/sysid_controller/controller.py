# SPDX-License-Identifier: Apache-2.0
"""The controller without ROS: takes states, references and parameters, gives torques."""

import numpy as np

from sysid_controller.command import Command, ControlState
from sysid_controller.contact_torque import ContactTorque
from sysid_controller.controller_inputs import ControllerInputs
from sysid_controller.laws import LAWS, ControlLaw, LawOutput, check_gains
from sysid_controller.limits import LimitedEffort
from sysid_controller.reference import START_TOLERANCE
from sysid_controller.safe_hold import SafeHold
from sysid_controller.safety_model import ModelWatch
from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.dynamics.select import Dynamics, make_dynamics
from sysid_core.excitation.fourier import States
from sysid_core.robot import Robot

__all__ = ["FRICTION_WIDTH", "LARGEST_ERROR", "Controller"]

FRICTION_WIDTH = 0.01
"""Of the smoothed sign of the reference's Coulomb friction, ``tanh(q̇/width)`` [rad/s].

At a turn with an acceleration a, a joint with dry friction stays behind by about width²/(2a):
with 0.05 a slow one errs more by this than by a wrong model.
"""
LARGEST_ERROR = 1.0  # [rad] beyond it the reference starts anew from where the robot is
_MEASURED_WIDTH = 0.05  # [rad/s] of the sign of measured velocities, whose noise must not turn it
_LONGEST_STEPS = 5.0  # [ticks] that the rate limit and a late tick make up for
_GAP = 0.2  # [s] without a tick after which the reference is rejoined, not jumped to
_DRIVING = (ControlState.HOLDING, ControlState.TRACKING)
_PAUSE = 10.0  # [s] without identified parameters after a stop
_SHORT_PAUSE = 1.0  # [s] after worse ones: the identifier notices a load that is put down sooner
_ZEROS_FOR = 0.5  # [s] that zero torque is sent after a stop, before falling silent


class Controller(ControllerInputs):
    """Drives the actuated joints of one robot.

    Times are given in, never read: `now` [s] is the time of references and samples, which may
    stand still or jump; `steady` [s] only ever grows.

    Raises
    ------
    ModelError
        If the robot's class is not supported.
    ParameterError
        If a setting does not fit the robot.
    """

    def __init__(self, robot: Robot, config: ControllerConfig) -> None:
        self._contact = ContactTorque(robot, FRICTION_WIDTH) if robot.floating else None
        self.dynamics: Dynamics = self._contact or make_dynamics(robot, FRICTION_WIDTH)
        super().__init__(robot, config, self.dynamics.unreachable)
        self.dynamics.set_parameters(self.blend.parameters, self.blend.scales)
        self._inertia = self.dynamics.inertia(self.dynamics.home)
        self._law = self._make_law(config)
        self._safe_hold = SafeHold(self._law, self._inertia, local=robot.floating)
        self._check_unit(config)
        self.config = config
        # of a robot in contact the ground's forces are not known
        self._model_watch = (
            None
            if robot.floating
            else ModelWatch(
                self.joint_names,
                self.limits,
                make_dynamics(robot, _MEASURED_WIDTH),
                self.blend.parameters,
                self.blend.scales,
            )
        )
        if self._contact is not None:
            self._contact.configure(config, self._limiter.effort_limit)
        self._now: float | None = None
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
        self.blend.duration = config.blend_time
        self.watchdog.timeout = self._repeats.patience = config.stale_timeout
        self._limiter.configure(config)
        if self.base is not None:
            self.base.configure(config)
        if self._contact is not None:
            self._contact.configure(config, self._limiter.effort_limit)
        self.config = config

    def _check_unit(self, config: ControllerConfig) -> None:
        if config.command_unit == "driver":
            self._conversion.check_commands()

    def _make_law(self, config: ControllerConfig) -> ControlLaw:
        check_gains(config, self.joint_names, self._inertia, self.limits)
        return LAWS[config.mode](config, len(self.joint_names))

    @property
    def fallback(self) -> Diagnostic | None:
        """Why the projected law stood in for the contact forces' QP in the last tick."""
        return None if self._contact is None else self._contact.fallback

    @property
    def failure(self) -> Diagnostic | None:
        """Why the model gives no torque; None while it does."""
        return self._safe_hold.failure

    def tick(self, now: float, steady: float) -> Command:
        """Return what to do at the time `now` [s] of references; `steady` [s] only grows."""
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
            self.dynamics.set_parameters(self.blend.parameters, self.blend.scales)
        self._watch_base(now, steady)
        self._watch_motion(steady, steady_elapsed)
        self._watch_model(steady, steady_elapsed)
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
        judged = self.watch.judge(self._limiter.last, elapsed, steady, rejoined=rejoined)
        reason = judged or self._repeats.standing()
        if reason is None:
            return
        self._drop_parameters(f"the robot was stopped: {reason}", steady, _PAUSE)
        self._safe_hold.forget()
        inertia = self.dynamics.inertia(self.joint_states.position)
        if not np.isfinite(inertia).all():
            inertia = self._inertia
        period = max(1.0 / self.config.rate, self.watch.interval)
        self.stop.begin(reason, steady, inertia, period)

    def _watch_model(self, steady: float, elapsed: float) -> None:
        """Return to the nominal parameters where identified ones are worse."""
        watch, measured = self._model_watch, self.joint_states
        if watch is None:
            return
        if self.watchdog.state not in _DRIVING or not self.blend.identified:
            watch.restart()
            return
        reason = watch.judge(
            self.blend.parameters,
            self.blend.scales,
            self._limiter.last,
            measured.position,
            measured.velocity,
            elapsed,
            steady,
        )
        if reason is not None:
            self._drop_parameters(str(reason), steady, _SHORT_PAUSE)

    def forget_parameters(self, steady: float) -> None:
        """Use the nominal parameters until others are published."""
        self._drop_parameters("the controller was cleaned up", steady, 0.0)

    def _drop_parameters(self, reason: str, steady: float, pause: float) -> None:
        self.blend.drop(reason, steady, pause)
        self.dynamics.set_parameters(self.blend.parameters, self.blend.scales)

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
                kept, self._kept = self._kept, None
                if kept is not None:
                    self.reference.offer(kept, now)
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
            velocity = np.where(self._repeats.lost, 0.0, self.watch.velocity)
            braked = self.stop.torque(gravity, measured.position, velocity, steady)
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

    def _desired(self, now: float) -> tuple[States, bool]:
        """Return the reference, and whether it had to start anew from the robot."""
        measured = self.joint_states
        desired = self.reference.sample(now)
        error = np.abs(desired.position - measured.position).max()
        rejoins = bool(error > LARGEST_ERROR)
        if rejoins:
            self.reference.rejoin(now, measured.position, measured.velocity)
            desired = self.reference.sample(now)
        return desired, rejoins

    def _gravity(self) -> FloatArray:
        return self._safe_hold.gravity(self.dynamics, self.joint_states.position)

    def _asked(self, now: float, desired: States) -> tuple[LawOutput, States]:
        """Return the law's torques, or those that hold the robot, and the reference in use."""
        measured = self.joint_states
        position, velocity = measured.position, measured.velocity
        asked = self._law(self.dynamics, desired, position, velocity)
        if np.isfinite(asked.effort).all():
            back = self._safe_hold.release(position, desired.position)
            apart = np.abs(desired.position - position).max()
            if not (back and apart > START_TOLERANCE):
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
        effort = effort - np.nan_to_num(self._conversion.uncommanded(self.joint_states.position))
        return effort if self.config.command_unit == "joint" else self._conversion.command(effort)

    def _sends(self, state: ControlState, limits: LimitedEffort, step: float) -> bool:
        """Whether to send: a stopped controller ramps down, then leaves the topic alone."""
        if state not in (ControlState.DISABLED, ControlState.WAITING) or limits.effort.any():
            self._zeros_left = _ZEROS_FOR
            return True
        self._zeros_left -= step
        return self._zeros_left > 0.0
