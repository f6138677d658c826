# SPDX-License-Identifier: Apache-2.0
"""Decides when a motion may begin, watches it, and says when it must stop; without ROS."""

from collections.abc import Sequence
from enum import Enum, auto

import numpy as np

from sysid_controller.command import ControlState
from sysid_controller.joint_states import JointStates
from sysid_controller.motion_plan import MotionPlan, MotionPlanner
from sysid_controller.motion_watch import ContactWatch, MotionWatch
from sysid_controller.player_config import PlayerConfig
from sysid_controller.standing import StandingWatch
from sysid_core.arrays import FloatArray
from sysid_core.errors import SysidError
from sysid_core.excitation.motion_file import JointMotion
from sysid_core.recording import Recording
from sysid_core.robot import Robot
from sysid_core.robot.conversion import JointConversion
from sysid_core.signals.parts import NewestParts
from sysid_core.signals.senders import FOREIGN, Senders

__all__ = ["Phase", "Player"]

_SILENCE = 1.0  # [s] without joint states after which a motion counts as lost
_LATE_LOOK = 0.1
"""Time [s] that counts at most between two looks: a player that was late itself missed nothing."""
_ANSWER = 1.0  # Time [s], of the robot, in which a controller has to follow
_SETTLE = 0.5  # [s] that is watched and recorded after the motion
_STILL = 0.05  # Share of its velocity limit below which a joint is at rest
_FEWEST = 10  # Joint states before a motion begins; they tell whether their clock goes on
_LEARN = 1.0  # [s] at rest in which the watch learns what torques hold the robot
_CLOCKS_APART = 0.5  # [s] by which the clocks of controller and robot may differ


class Phase(Enum):
    """What a player does."""

    WAITING = auto()
    READY = auto()
    PLAYING = auto()
    DONE = auto()
    STOPPED = auto()


class Player:
    """Plays a motion once; times are the stamps of joint states, or steady ones [s]."""

    def __init__(self, robot: Robot, motion: JointMotion, config: PlayerConfig) -> None:
        self.planner = MotionPlanner(
            robot, motion, speed=config.speed, approach_speed=config.approach_speed
        )
        limits, names = self.planner.limits, robot.actuated_names
        # moved: whether anything was sent.
        # reason: why it stopped.
        self.phase, self.reason, self.moved = Phase.WAITING, "", False
        self.watch = MotionWatch(names, config.tolerance)
        # the ground's forces are not known, so torques of a standing robot tell no contact
        self._contact = None if robot.floating else ContactWatch(robot)
        self.standing = StandingWatch(robot, limits) if robot.floating else None
        self._config, self._limits, self._names = config, limits, names
        self._asks = config.target == "controller"  # which has to tell its state
        self._measures = True
        self._robot = robot
        self._conversion = JointConversion.described(robot)
        aliases = robot.description.names
        self._states = JointStates(names, self._conversion, aliases, limits)
        self._newest, self._senders = NewestParts(names, aliases), Senders(names, aliases)
        self._published: dict[str, str] = {}
        self._plan: MotionPlan | None = None
        self._begin = self._stamp = self._followed = 0.0
        self._looked: float | None = None
        self._silent = 0.0
        self._since: float | None = None
        self._count = 0
        self._rests, self._rested = False, 0.0
        self._stood = 0
        self._refused = ""
        self._control: ControlState | None = None
        self._warnings: list[str] = []
        self._apart = 0.0

    @property
    def position(self) -> FloatArray:
        """Measured positions (na,) [rad]."""
        return self._states.position

    @property
    def velocity(self) -> FloatArray:
        """Measured velocities (na,) [rad/s]."""
        return self._states.velocity

    def published(
        self, position: FloatArray, velocity: FloatArray, acceleration: FloatArray
    ) -> tuple[tuple[str, ...], tuple[FloatArray, FloatArray, FloatArray]]:
        """Return names and motion (n, na) of the joints as their driver has them."""
        conversion, names = self._conversion, (self._published.get(n, n) for n in self._names)
        return tuple(names), (
            conversion.published_position(position),
            conversion.published_velocity(velocity),
            conversion.published_velocity(acceleration),
        )

    def stop(self, reason: str) -> None:
        """Stop for a reason; does nothing once all is over."""
        if self.phase not in (Phase.DONE, Phase.STOPPED):
            self.phase, self.reason = Phase.STOPPED, reason

    def learn(self, recording: Recording) -> None:
        """Let the watch for contacts begin with what an earlier motion told of this robot."""
        if self._contact is None:
            return
        names, none = recording.joint_names, np.full_like(recording.position, np.nan)
        velocity = none if recording.velocity is None else recording.velocity
        effort = none if recording.effort is None else recording.effort
        rows = zip(recording.time.tolist(), recording.position, velocity, effort, strict=True)
        for stamp, q, v, torque in rows:
            if self._states.update(names, q, v, stamp) is None:
                measured = self._states.torque(q, torque)
                self._contact.push(stamp, self.position, self.velocity, measured)
        self._states.restart()

    def _heed(self, reason: str) -> None:
        if reason:
            self.stop(reason)

    def take_tracking(
        self,
        state: int,
        warnings: Sequence[str],
        stamp: float,
        error: FloatArray,
        velocity_error: FloatArray,
    ) -> None:
        """Take what the controller says of itself, and when by its clock [s].

        It alone knows its errors (na,) [rad, rad/s] whatever time its messages take.
        """
        self._control, self._warnings = ControlState(state), list(warnings)
        self._apart = stamp - self._stamp
        # joint states may wait longer than what the controller says: a motion over for it is over
        if self._control is ControlState.TRACKING or self._over(max(stamp, self._stamp)):
            self._followed = self._stamp
        if self.phase is Phase.PLAYING and self._stamp - self._followed > _ANSWER:
            why = "; ".join(warnings) or "no reason given"
            self.stop(f"the controller is {self._control.name} and does not follow: {why}")
        if self.phase is Phase.PLAYING and len(error) == len(velocity_error) == len(self._names):
            asked = self.velocity + velocity_error
            self._heed(self.watch.judge(self._stamp, asked, self.velocity, error))

    def _over(self, stamp: float) -> bool:
        end = np.inf if self._plan is None else self._plan.duration - _SETTLE
        return bool(stamp - self._begin > end)

    def take_joint_states(
        self,
        names: Sequence[str],
        position: FloatArray,
        velocity: FloatArray,
        effort: FloatArray,
        stamp: float,
    ) -> None:
        """Take measured joint states, as published, and judge them."""
        if self._senders.foreign(names, stamp, velocity, effort):
            self._refused = FOREIGN
            return
        whole = self._newest.push(names, position, velocity, effort)
        if whole is None:
            return
        names, (position, velocity, effort) = whole
        refusal = self._states.update(names, position, velocity, stamp)
        if refusal is not None:
            self._refused = str(refusal)
            return
        self._published = {self._robot.description.names.get(n, n): n for n in names}
        self._count += 1
        self._measures = len(effort) == len(names)
        self._stood = self._stood + 1 if stamp <= self._stamp else 0
        elapsed, self._stamp, self._silent = stamp - self._stamp, stamp, 0.0
        contact = ""
        if self.phase is Phase.PLAYING or self._rests:
            torque = self._states.torque(position, effort)
            if self._contact is not None:
                contact = self._contact.push(stamp, self.position, self.velocity, torque)
            self._rested += max(elapsed, 0.0)
        if self.phase is not Phase.PLAYING or self._plan is None:
            return
        elapsed = stamp - self._begin
        if self.standing is not None:
            contact = self.standing.judge(stamp, self.position, torque)
        self._heed(contact)
        if not self._asks:
            desired = self._plan.path.at(elapsed)
            error = desired.position - self.position
            self._heed(self.watch.judge(stamp, desired.velocity, self.velocity, error))
        if self.phase is Phase.PLAYING and elapsed > self._plan.duration + _SETTLE:
            self.phase = Phase.DONE

    def look(self, steady: float, *, answered: bool) -> None:
        """Look at what time alone changes: readiness, patience, silence; `steady` [s] only grows.

        `answered` says whether anybody listens to what is sent.
        """
        self._since = steady if self._since is None else self._since
        self._silent += min(steady - (self._looked or steady), _LATE_LOOK)
        self._looked = steady
        if self.phase is Phase.WAITING:
            lack = self._lacks(answered)
            self._rests = not lack
            if self._rests and self._rested >= _LEARN:
                self.phase = Phase.READY
            elif lack and steady - self._since > self._config.wait:
                self.stop(lack)
        elif self.phase is Phase.PLAYING and self._silent > _SILENCE:
            self.stop(f"joint states are silent for {_SILENCE:g} s: is the driver running?")

    def _lacks(self, answered: bool) -> str:
        """Say what a motion cannot begin without; empty if nothing is missing."""
        if not self._count:
            why = f": refused, {self._refused}" if self._refused else ": is the driver running?"
            return f"no joint states{why}"
        if self._stood >= _FEWEST:
            return "joint states come, but their stamps stand still: does the robot's clock go?"
        if self._count < _FEWEST:
            return f"only {self._count} joint states came"
        if self._config.out and not self._measures:
            return (
                "joint states have no efforts, which a recording is made for: let the driver "
                "publish them, or give no bag to record to"
            )
        stands = "" if self.standing is None else self.standing.lacks(self._stamp)
        if stands:
            return stands
        if not answered:
            return "nobody listens to the reference: is the controller running?"
        if self._asks:
            lack = self._controller_lacks()
            if lack:
                return lack
        still = np.abs(self.velocity) < _STILL * self._limits.velocity
        if not still.all():
            return (
                f"joint '{self._names[int(np.argmin(still))]}' moves already; let it come to rest"
            )
        return ""

    def _controller_lacks(self) -> str:
        if self._control is None:
            return "the controller does not tell how it is ('tracking'): is it running?"
        if abs(self._apart) > _CLOCKS_APART:
            return (
                f"the controller's clock is {self._apart:+.3g} s from the joint states': set "
                "use_sim_time for both or for neither"
            )
        if self._control is ControlState.DISABLED:
            return "the controller is disabled: sysid call /controller/enable '{data: true}'"
        if self._control is not ControlState.HOLDING:
            why = "; ".join(self._warnings) or "it must hold the robot at rest"
            return f"the controller is {self._control.name} instead of HOLDING: {why}"
        return ""

    def begin(self, *, dry_run: bool) -> MotionPlan | None:
        """Return what to send now; None if nothing is to be sent."""
        try:
            plan = self.planner.plan(self.position)
        except SysidError as error:
            self.stop(f"the way to the start: {error}")
            return None
        self._plan, self._begin, self._followed = plan, self._stamp, self._stamp
        self.phase = Phase.DONE if dry_run else Phase.PLAYING
        self.moved = not dry_run
        return None if dry_run else plan
