# SPDX-License-Identifier: Apache-2.0
"""Watches speed, range, tracking and power of the joints, and stops the robot."""

import math
from collections import deque

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.robot.limits import Limits

__all__ = ["SafetyStop", "SafetyWatch"]

_FASTEST = 1.5  # [-] of the velocity limit; references are joined at up to this speed
_BEYOND_RANGE = 0.2  # [rad] out of range, still moving out: the range's spring has lost
_OUTWARD = 0.1  # [-] of the velocity limit: noise of a joint that rests at its stop is slower
_REJOINS = 5  # fresh starts of the reference that in so long a time are not one obstacle
_REJOINS_WITHIN = 2.0  # [s]
# Lifting at full speed takes half the rated power; a joint that thrashes between its torque
# limits gives and takes nearly all of it.
_POWER = 0.7  # [-] of torque limit times velocity limit, averaged over
_POWER_TIME = 0.3  # [s]
_MEASURED = 3  # samples whose median counts: one outlier is passed over
_MOVED = 5  # as many rates of positions: an outlier of a position spoils two
_CLOSEST = 5e-4  # [s] between two positions; closer ones give no rate worth looking at
_AGREE = 0.5  # [-] of the velocity limit by which measured and differentiated velocity may differ
_INTERVALS = 0.05  # weight of the newest interval between joint states in their mean
_LONGEST = 0.05  # [s] that an interval counts for at most: a gap is not a rate


class SafetyWatch:
    """Looks at every joint state and every torque."""

    def __init__(self, joint_names: tuple[str, ...], limits: Limits) -> None:
        self._names = joint_names
        self._limits = limits
        self._fast = _FASTEST * limits.velocity
        rated = limits.effort * limits.velocity
        self._rated = np.where(rated > 0.0, rated, np.inf)
        self.interval = 0.0  # [s] mean time between joint states; 0 before the second
        self.restart()

    def restart(self) -> None:
        """Forget the past: the controller starts to drive or the clock was set back."""
        na = len(self._names)
        self._stamp: float | None = None
        self._position: FloatArray = np.zeros(na)
        self._velocities: deque[FloatArray] = deque([np.zeros(na)] * _MEASURED, maxlen=_MEASURED)
        self._rates: deque[FloatArray] = deque([np.zeros(na)] * _MOVED, maxlen=_MOVED)
        self._beyond: BoolArray = np.zeros(na, dtype=bool)
        self._power: FloatArray = np.zeros(na)
        self._rejoins: deque[float] = deque(maxlen=_REJOINS)

    @property
    def velocity(self) -> FloatArray:
        """Measured velocities (na,) [rad/s], or where positions belie them, those of positions."""
        measured = self._velocities[-1]
        moved = np.median(self._rates, axis=0)
        agrees = np.abs(measured - moved) < _AGREE * self._limits.velocity
        return np.where(agrees, measured, moved)

    def measure(self, position: FloatArray, velocity: FloatArray, stamp: float) -> None:
        """Note a joint state (na,) [rad, rad/s] with its time stamp [s]."""
        if self._stamp is None or stamp < self._stamp - 1.0:
            self.restart()
            self._stamp, self._position = stamp, position
        elapsed = stamp - self._stamp
        self._velocities.append(velocity)
        if elapsed < _CLOSEST:
            return
        self._rates.append((position - self._position) / elapsed)
        interval = min(elapsed, _LONGEST)
        change = interval - self.interval
        self.interval = self.interval + _INTERVALS * change if self.interval else interval
        self._stamp, self._position = stamp, position

    def judge(
        self, effort: FloatArray, elapsed: float, steady: float, *, rejoined: bool
    ) -> Diagnostic | None:
        """Say why the robot must stop; None while it need not.

        Parameters
        ----------
        effort : (na,) [N·m]
            Torque that was sent.
        elapsed : float [s]
            For how long.
        steady : float [s]
            Time that only grows.
        rejoined : bool
            Whether the tracking error had grown so large that the reference started anew.
        """
        return (
            self._speed()
            or self._range()
            or self._work(effort, elapsed)
            or self._tracking(steady, rejoined=rejoined)
        )

    def _speed(self) -> Diagnostic | None:
        for kind, past in (("measured", self._velocities), ("differentiated", self._rates)):
            if (np.abs(past[-1]) <= self._fast).all():
                continue
            speed = np.abs(np.median(past, axis=0))
            if (speed > self._fast).any():
                j = int(np.argmax(speed / self._limits.velocity))
                return self._trip(
                    "overspeed",
                    j,
                    f"moves at {speed[j]:.3g} rad/s ({kind}), more than {_FASTEST:g} times its "
                    f"limit of {self._limits.velocity[j]:.4g}",
                )
        return None

    def _range(self) -> Diagnostic | None:
        lower, upper = self._limits.lower, self._limits.upper
        excess = np.maximum(self._position - upper, lower - self._position)
        before, self._beyond = self._beyond, excess > _BEYOND_RANGE
        if not (before & self._beyond).any():
            return None
        outward = np.where(self._position > upper, 1.0, -1.0) * self.velocity
        leaving = before & self._beyond & (outward > _OUTWARD * self._limits.velocity)
        if not leaving.any():
            return None
        j = int(np.argmax(leaving))
        return self._trip(
            "out_of_range",
            j,
            f"is at {self._position[j]:.4g} rad, {excess[j]:.2g} outside its limits "
            f"[{lower[j]:.4g}, {upper[j]:.4g}], and moves on",
        )

    def _work(self, effort: FloatArray, elapsed: float) -> Diagnostic | None:
        gain = min(elapsed / _POWER_TIME, 1.0)
        self._power = self._power + gain * (np.abs(effort * self._velocities[-1]) - self._power)
        share = self._power / self._rated
        j = int(np.argmax(share))
        if share[j] <= _POWER:
            return None
        return self._trip(
            "power",
            j,
            f"gives and takes {self._power[j]:.3g} W, more than {_POWER:g} of the "
            f"{self._rated[j]:.3g} W that torque and velocity limits allow: it thrashes",
        )

    def _tracking(self, steady: float, *, rejoined: bool) -> Diagnostic | None:
        if not rejoined:
            return None
        self._rejoins.append(steady)
        if len(self._rejoins) < _REJOINS or steady - self._rejoins[0] > _REJOINS_WITHIN:
            return None
        return Diagnostic(
            "tracking",
            f"the tracking error grew too large {_REJOINS} times within "
            f"{steady - self._rejoins[0]:.2g} s",
            Severity.ERROR,
        )

    def _trip(self, kind: str, joint: int, text: str) -> Diagnostic:
        name = self._names[joint]
        return Diagnostic(kind, f"joint '{name}' {text}", Severity.ERROR, values={"joint": name})


# A decay of a fifth per sample stays stable with the two or three samples of delay of a bus and
# of differentiation, and with links and rotors a third as heavy as the model says.
_DECAY = 0.2  # [-] of the velocity per sample, at most
_FASTEST_DECAY = 100.0  # [1/s]; beyond it gears and links bend
# What gravity's error displaces settles at stiffness over damping: in a quarter of a second.
_STIFFNESS = 20.0  # [rad/s] bandwidth at which the joints are held once they are slow
_STIFF_SHARE = 0.25  # [-] of the decay's bandwidth that it has at most: no overshoot
_SLOW = 0.2  # [-] of the velocity limit below which the joints are held where they are
_REST_SPEED = 0.1  # [-] of the velocity limit that counts as rest
_REST_MOST = 0.2  # [rad/s] that count as rest at most
_REST_TIME = 0.5  # [s] at rest after which the robot is driven again
# Feedback that is late, or of the wrong sign, drives what it should brake: [s] of braking after
# which a joint is slower than this share of its velocity limit, else it is such.
_SLOWED = ((0.1, 2.0), (0.5, 1.0))
_WORSE = 0.3  # [s] after which gravity's torque alone must not have made joints faster
_BLOCK = 0.05  # [s] over which speeds are taken from positions: noise is slow then
_SWING = 0.1  # [s] that a speed is remembered for: what swings is slow now and then
_RESTED = 0.1  # [s] of rest after which braking is known to work
_MOST_STOPS = 3  # after which it stays stopped
_WITHIN = 60.0  # [s]


class SafetyStop:
    """A controlled stop: ``u = g(q) − D q̇ + K (q_held − q)``.

    D is diagonal: whatever saturates, it only takes energy. Its size is what the nominal inertia
    bears at the sampling period with delay: the largest eigenvalue of M⁻¹ D is the decay rate.

    Feedback from states that are late, or wrong, may drive what it should brake. Joints that are
    still fast after some time get gravity's torque only, and if they grow faster, none.
    """

    def __init__(self, limits: Limits) -> None:
        self._limit = limits.velocity
        self._brakes = False  # Whether the robot has come to rest in this stop
        self._block: tuple[float, FloatArray] | None = None
        none = np.zeros(len(limits.velocity))
        self._let_go: FloatArray = none  # (na,) 1: of feedback, 2: of gravity's torque, too
        self._fast: FloatArray = none  # (na,) [-] of the velocity limit, lately
        self._fast_then: FloatArray = none  # (na,) [-] the same when it let go
        self._tried: FloatArray = none  # (na,) [s] since when it does what it does
        self._slow = _SLOW * limits.velocity
        self._rest = np.minimum(_REST_SPEED * limits.velocity, _REST_MOST)
        self._damping: FloatArray = np.zeros(len(limits.velocity))
        self._stiffness: FloatArray = np.zeros(len(limits.velocity))
        self._held: FloatArray | None = None
        self._begins: deque[float] = deque(maxlen=_MOST_STOPS)
        self._rests_since: float | None = None
        self.reason: Diagnostic | None = None  # Why the robot is stopped; None while it is not
        # Whether it stays stopped until `forget`, as it had to be stopped again and again
        self.stays = False

    def forget(self) -> None:
        """Forget earlier stops: somebody enabled or disabled the controller."""
        self._begins.clear()
        self.stays = False

    def release(self) -> None:
        """End the stop."""
        self.reason = None

    def begin(self, reason: Diagnostic, steady: float, inertia: FloatArray, period: float) -> None:
        """Stop from now on; `period` [s] is that of joint states or ticks, whichever is longer.

        The inertia (na, na) [kg·m²] is the nominal model's.
        """
        self.reason, self._held, self._rests_since = reason, None, None
        self._brakes, self._block = False, None
        self._let_go = self._fast = np.zeros(len(self._limit))
        self._tried = np.full(len(self._limit), steady)
        self._begins.append(steady)
        full = len(self._begins) == _MOST_STOPS
        self.stays = full and steady - self._begins[0] <= _WITHIN
        decay = min(_DECAY / period, _FASTEST_DECAY)
        mobility = np.linalg.inv(inertia)
        felt = 1.0 / np.diag(mobility)
        felt = felt / np.linalg.eigvals(mobility * felt).real.max()
        self._damping = decay * felt
        self._stiffness = min(_STIFFNESS, _STIFF_SHARE * decay) ** 2 * felt

    def torque(
        self, gravity: FloatArray, position: FloatArray, velocity: FloatArray, steady: float
    ) -> FloatArray:
        """Return the torque (na,) [N·m] that brakes and holds, given that of nominal gravity."""
        speed = np.abs(velocity)
        if (speed > self._rest).any():
            self._rests_since = None
        elif self._rests_since is None:
            self._rests_since = steady
        self._judge(position, steady)
        if self._held is None and (speed <= self._slow).all():
            self._held = position
        held = position if self._held is None else self._held
        feedback = self._stiffness * (held - position) - self._damping * velocity
        return gravity * (self._let_go < 2) + feedback * (self._let_go < 1)

    def _judge(self, position: FloatArray, steady: float) -> None:
        """Let go where joints are fast in spite of braking."""
        begin, before = self._block = self._block or (steady, position)
        elapsed = steady - begin
        if elapsed < _BLOCK:
            return
        self._block = steady, position
        share = np.abs(position - before) / (elapsed * self._limit)
        self._fast = np.maximum(share, math.exp(-elapsed / _SWING) * self._fast)
        self._brakes |= self._rests_since is not None and steady - self._rests_since >= _RESTED
        if self._brakes:
            return
        tried = steady - self._tried
        fast = np.any([(tried > within) & (self._fast > most) for within, most in _SLOWED], axis=0)
        worse = (tried > _WORSE) & (self._fast > self._fast_then)
        lets = (self._let_go < 2) & fast & (worse | (self._let_go < 1))
        self._let_go = self._let_go + lets
        self._tried = np.where(lets, steady, self._tried)
        self._fast_then = np.where(lets, self._fast, self._fast_then)

    def over(self, steady: float) -> bool:
        """Tell whether the robot has rested long enough to be driven again."""
        rested = self._rests_since is not None and steady - self._rests_since >= _REST_TIME
        return rested and not self.stays

    def __str__(self) -> str:
        """Return why the robot is stopped and how it goes on, in words."""
        goes_on = (
            f"{_MOST_STOPS} stops within {_WITHIN:g} s, find the cause and call ~/enable"
            if self.stays
            else f"it is driven again after {_REST_TIME:g} s at rest"
        )
        return f"{self.reason}; identified parameters are dropped; {goes_on}"
