# SPDX-License-Identifier: Apache-2.0
"""What ``sysid watch`` shows: the newest messages as a screen, or as one line."""

from collections import deque
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

__all__ = ["WatchView"]

_TRACE = 40  # Torques that a trace shows

_BARS = "▁▂▃▄▅▆▇█"
_TWO_SIDED = 1.96  # Standard deviations to either side of a normal distribution's 95 % interval

_KEYS = "e enable/disable · f freeze/follow · x export · r reset · q quit"


class WatchView:
    """The newest messages of identifier and controller."""

    def __init__(self, gates: Sequence[str], states: Sequence[str]) -> None:
        self._gates, self._states = gates, states
        self.status: Any = None  # the newest messages of these topics
        self.payload: Any = None
        self.tracking: Any = None
        self.told = ""
        self._torques: deque[Sequence[float]] = deque(maxlen=_TRACE)

    @property
    def enabled(self) -> bool:
        """Whether the controller drives."""
        return self.tracking is not None and self.tracking.state != 0

    @property
    def frozen(self) -> bool:
        """Whether the identifier holds its parameters."""
        return self.status is not None and bool(self.status.frozen)

    def line(self) -> str:
        """Return the state of things in one line."""
        return " | ".join((self._gate(), self._control(), self._load()))

    def screen(self) -> RenderableType:
        """Return the state of things as a screen, whose traces grow by a torque per call."""
        if self.tracking is not None:
            self._torques.append(self.tracking.effort)
        table = Table(box=None, pad_edge=False)
        headings = ("joint", "R²", "skill", "error [mrad]", "torque [N·m]", "")
        for i, heading in enumerate(headings):
            table.add_column(escape(heading), justify="left" if i in (0, 5) else "right")
        scores = self._scores()
        torques = self._traces()
        for joint in dict.fromkeys((*torques, *scores)):
            table.add_row(
                escape(joint), *scores.get(joint, ("–", "–")), *torques.get(joint, ("–", "–", ""))
            )
        above = [self._gate(), *self._reasons(), self._control(), self._load(), ""]
        return Group(*map(escape, above), table, *map(escape, ("", self.told, _KEYS)))

    def _gate(self) -> str:
        status = self.status
        if status is None:
            return "identifier: silent"
        return (
            f"gate {self._gates[status.state]}{' (frozen)' if status.frozen else ''}"
            f", revision {status.revision}, R² {status.r2:.4f}"
            f", excited {status.determined:.0%}, window {status.window_fill:.0%}"
        )

    def _reasons(self) -> list[str]:
        if self.status is None:
            return []
        return [f"  {text}" for text in (*self.status.reasons, *self.status.warnings)]

    def _control(self) -> str:
        tracking = self.tracking
        if tracking is None:
            return "controller: silent"
        worst = max((abs(error) for error in tracking.position_error), default=0.0)
        model = "identified" if tracking.identified else "nominal"
        warning = f", {tracking.warnings[0]}" if tracking.warnings else ""
        return (
            f"controller {self._states[tracking.state]}, {model} model, error "
            f"{1e3 * worst:.1f} mrad{warning}"
        )

    def _load(self) -> str:
        payload = self.payload
        if payload is None or not payload.attached:
            return "no payload"
        half = _TWO_SIDED * payload.mass_std
        low, high = max(payload.mass - half, 0.0), payload.mass + half
        return f"payload {payload.mass:.3f} kg (95 %: {low:.3f} to {high:.3f})"

    def _scores(self) -> dict[str, tuple[str, str]]:
        """Return R², and the share of the nominal model's error that is gone, by joint."""
        status = self.status
        if status is None:
            return {}
        rows = zip(
            status.joints,
            status.r2_joints,
            status.rmse_joints,
            status.rmse_nominal_joints,
            strict=False,
        )
        return {
            joint: (f"{r2:.3f}", f"{1.0 - rmse / nominal:.0%}" if nominal > 0.0 else "–")
            for joint, r2, rmse, nominal in rows
        }

    def _traces(self) -> dict[str, tuple[str, str, str]]:
        tracking = self.tracking
        if tracking is None:
            return {}
        found = {}
        for j, joint in enumerate(tracking.joint_names):
            trace = [torques[j] for torques in self._torques if len(torques) > j]
            found[joint] = (
                f"{1e3 * tracking.position_error[j]:.1f}",
                f"{trace[-1]:.1f}" if trace else "–",
                _spark(trace),
            )
        return found


def _spark(values: Sequence[float]) -> str:
    """Return values as a row of bars between their least and their greatest."""
    if not values:
        return ""
    low, span = min(values), max(values) - min(values)
    top = len(_BARS) - 1
    return "".join(_BARS[round(top * (v - low) / span) if span > 0.0 else 0] for v in values)
