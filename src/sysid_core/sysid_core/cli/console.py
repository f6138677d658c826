# SPDX-License-Identifier: Apache-2.0
"""What the command prints: JSON or tables on stdout, warnings and progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sysid_core.files import json_text
from sysid_core.wording import number

if TYPE_CHECKING:  # the doctor prints, too, where Pinocchio cannot be imported
    from sysid_core.robot.model import Robot
    from sysid_core.scores import Scores

__all__ = [
    "named_table",
    "print_json",
    "print_scores",
    "print_units",
    "progress_bar",
    "stdout",
    "warn",
    "with_std",
]

_STAGES = {
    "reading": "reading",
    "signals": "filtering",
    "regression": "building the regressor",
    "estimation": "estimating",
    "report": "writing the report",
    "replay": "replaying",
    "optimising": "optimising the motion",
}


def stdout() -> Console:
    """Return a console for results; plain text of fixed width where stdout is no terminal."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=110, no_color=True)


def warn(messages: Sequence[str]) -> None:
    """Print warnings, a line each, on stderr."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for message in messages:
        console.print("[yellow]warning:[/yellow]", end=" ")
        console.print(message, markup=False)


def print_json(value: Mapping[str, Any], *, line: bool = False) -> None:
    """Print JSON on stdout, on one line if asked; numbers that JSON lacks become null."""
    sys.stdout.write(json_text(value, None if line else 1))


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """Show a progress bar on a terminal; give the function that moves it."""
    if not sys.stderr.isatty():
        yield lambda stage, share: None
        return
    # costs every command time that is not run on a terminal
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=1.0)

        def show(stage: str, share: float) -> None:
            # a stage that has only begun may never report a share: the bar pulses meanwhile
            progress.update(
                task,
                description=_STAGES.get(stage, stage),
                completed=share,
                total=1.0 if share > 0.0 else None,
            )

        yield show


def with_std(value: float, std: float, digits: int = 3) -> str:
    """Write a value and its standard deviation."""
    return f"{number(value, digits)} ± {number(std, 2)}"


def named_table(title: str, names: str, *numbers: str) -> Table:
    """Return a table whose first column holds names, and others numbers, by their headings.

    Names are never cut short, however narrow the screen.
    """
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column(names, no_wrap=True, overflow="fold")
    for heading in numbers:
        table.add_column(escape(heading), justify="right")
    return table


def print_units(console: Console, robot: Robot) -> None:
    """Say which joints' figures are forces, where a robot has such joints."""
    if robot.prismatic_names:
        console.print(
            f"prismatic, so in N, N·s/m and kg: {', '.join(robot.prismatic_names)}", markup=False
        )


def print_scores(console: Console, scores: Scores, title: str) -> None:
    """Print nominal against identified torque errors per joint."""
    from sysid_core.scores import SCORE_HEADINGS

    table = named_table(title, *SCORE_HEADINGS)
    for (joint, before, after, *rest), better in scores.rows():
        colour = "green" if better else "red"
        table.add_row(escape(joint), before, f"[{colour}]{after}[/]", *rest)
    console.print(table)
