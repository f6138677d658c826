# SPDX-License-Identifier: Apache-2.0
"""Draws the demo: tracking error, R², and the payload over time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch

__all__ = ["draw"]

_STATES = {0: "#d9d9d9", 1: "#f4b183", 2: "#a9d18e", 3: "#9dc3e6", 4: "#ff9999", 5: "#c00000"}
_NAMES = ("filling", "nominal", "identified", "holding", "rejected", "fault")
_VISIBLE_S = 0.05
_BLUE, _ORANGE, _GREY = "#1f4e79", "#c55a11", "#7f7f7f"


def _smooth(time: np.ndarray, values: np.ndarray, span: float) -> np.ndarray:
    """Return the root mean square over a centred span [s]."""
    low = np.searchsorted(time, time - span / 2)
    high = np.searchsorted(time, time + span / 2)
    total = np.concatenate([[0.0], np.cumsum(values**2)])
    return np.sqrt((total[high] - total[low]) / np.maximum(high - low, 1))


def draw(
    seen: Any, phases: Sequence[Any], moments: Sequence[float], mass: float, path: Path
) -> None:
    """Draw what the demo saw, messages by topic, to a PNG.

    The moments (4,) [s] are release of the identifier, pick-up, put-down and end; the true load
    has a mass in kg.
    """
    release, *_, end = moments
    time = np.array([t for t, _ in seen["tracking"]])
    errors = np.array([message.position_error for _, message in seen["tracking"]])
    error = 1e3 * np.linalg.norm(errors, axis=1)
    figure, (top, middle, bottom) = plt.subplots(
        3, 1, figsize=(10.0, 7.5), sharex=True, height_ratios=(3, 1.3, 2), layout="constrained"
    )
    top.plot(time, _smooth(time, error, 1.0), color=_BLUE, lw=1.8)
    top.set_yscale("log")
    top.set_ylabel("tracking error, RMS\nover joints and 1 s [mrad]")
    for phase in phases:
        inside = (time >= phase.start) & (time < phase.stop)
        if inside.any():
            rms = float(np.sqrt(np.mean(error[inside] ** 2)))
            top.hlines(rms, phase.start, phase.stop, color=_ORANGE, lw=2.5)
            top.annotate(
                f"{rms:.1f} mrad",
                (0.5 * (phase.start + phase.stop), rms),
                xytext=(0, 7),
                textcoords="offset points",
                ha="center",
                color=_ORANGE,
                weight="bold",
                bbox={"facecolor": "white", "alpha": 0.75, "lw": 0, "pad": 1},
            )
    low, high = top.get_ylim()
    top.set_ylim(low, high * 2.2)
    _note((top, middle, bottom), moments, mass)
    _draw_status(middle, seen, release, end)
    _draw_payload(bottom, seen, moments, mass)
    bottom.set_xlabel("time [s]")
    bottom.set_xlim(0.0, end)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _note(fields: tuple[Any, Any, Any], moments: Sequence[float], mass: float) -> None:
    """Mark in all fields when something happened, and say in the first one what."""
    release, pick_up, put_down, _ = moments
    notes = (
        (0.0, "follows its reference\non a wrong model"),
        (release, "parameters\nreleased"),
        (pick_up, f"{mass} kg\npicked up"),
        (put_down, "put down"),
    )
    for moment, text in notes:
        for axes in fields:
            axes.axvline(moment, color=_GREY, lw=0.8, ls=":")
        fields[0].annotate(
            text,
            (moment, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(4, -4),
            textcoords="offset points",
            va="top",
            fontsize=9,
            color=_GREY,
        )


def _draw_status(axes: Any, seen: Any, release: float, end: float) -> None:
    axes.axhline(0.95, color=_GREY, lw=0.8, ls="--")
    axes.set_ylim(0.85, 1.02)
    axes.set_ylabel("R²\n(predicted)")
    status = [(t, message) for t, message in seen["status"] if t >= release]
    if not status:
        return
    times = [t for t, _ in status]
    states = [message.state for _, message in status]
    axes.text(
        0.5 * release,
        0.925,
        "identifier\nheld still",
        ha="center",
        va="center",
        fontsize=9,
        color=_GREY,
    )
    lasted = dict.fromkeys(states, 0.0)
    for start, stop, state in zip(times, [*times[1:], end], states, strict=True):
        axes.axvspan(start, stop, color=_STATES[state], lw=0, alpha=0.8)
        lasted[state] += stop - start
    r2 = [message.r2 or np.nan for _, message in status]  # 0 until it is known
    axes.plot(times, r2, color=_BLUE, lw=1.5)
    seen = sorted(state for state, span in lasted.items() if span > _VISIBLE_S)
    handles = [Patch(color=_STATES[s]) for s in seen]
    axes.legend(handles, [_NAMES[s] for s in seen], loc="lower right", ncols=len(seen), fontsize=8)


def _draw_payload(axes: Any, seen: Any, moments: Sequence[float], mass: float) -> None:
    _, pick_up, put_down, end = moments
    axes.step(
        [0.0, pick_up, put_down, end],
        [0.0, mass, 0.0, 0.0],
        where="post",
        color=_GREY,
        lw=1.5,
        ls="--",
        label="true",
    )
    if seen["payload"]:
        time = np.array([t for t, _ in seen["payload"]])
        known = [(m.mass, m.mass_std) if m.attached else (0.0, 0.0) for _, m in seen["payload"]]
        estimate, std = np.array(known).T
        axes.plot(time, estimate, color=_BLUE, lw=1.8, label="identified")
        axes.fill_between(
            time,
            estimate - 2 * std,
            estimate + 2 * std,
            color=_BLUE,
            alpha=0.25,
            lw=0,
            label="± 2 standard deviations",
        )
    axes.set_ylim(-0.1 * mass, 1.35 * mass)
    axes.set_ylabel("payload [kg]")
    axes.legend(loc="upper left", fontsize=8)
