# SPDX-License-Identifier: Apache-2.0
"""``sysid identify``: recordings and a robot in, an identified and validated model out."""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.markup import escape

from sysid_core.cli.console import (
    named_table,
    print_json,
    print_scores,
    print_units,
    progress_bar,
    stdout,
    warn,
    with_std,
)
from sysid_core.errors import DataError, ModelError, ParameterError
from sysid_core.estimate_file import read_estimate
from sysid_core.estimate_json import estimate_json, write_estimate
from sysid_core.estimation import Estimator, estimator
from sysid_core.files import require_writable, results_folder
from sysid_core.gains import DriveGains, measured_gains
from sysid_core.identification import (
    Identification,
    IdentifyConfig,
    identify,
    total_mass,
)
from sysid_core.recordings import parse_load, read_sources
from sysid_core.report.advice import advice
from sysid_core.robot import load_robot
from sysid_core.robot.export import model_files, require_believable, require_elsewhere, write_model
from sysid_core.signals.options import SignalConfig
from sysid_core.verdict import require_explained, require_uncontradicted
from sysid_core.wording import number
from sysid_core.workers import workers

__all__ = ["run"]


class _Timing:
    """Seconds per stage, measured between the reports of progress."""

    def __init__(self, show: Callable[[str, float], None]) -> None:
        self.seconds: dict[str, float] = {}
        self._show = show
        self._stage = ""
        self._since = time.perf_counter()

    def __call__(self, stage: str, share: float) -> None:
        now = time.perf_counter()
        if self._stage:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now
        self._show(stage, share)


def _estimator(args: argparse.Namespace) -> Estimator:
    settings = {}
    for option, method in (("huber", "wls"), ("regulariser", "sdp")):
        value = getattr(args, option)
        if value is None:
            continue
        if args.method != method:
            raise ParameterError(
                f"--{option} is a setting of --method {method}, not of {args.method}"
            )
        settings[option] = value
    return estimator(args.method, **settings)


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    robot = load_robot(args.robot)
    start = None
    if args.start is not None:
        file = read_estimate(args.start)
        robot = file.as_identified(robot)
        start = file.bare(robot)
    options = IdentifyConfig(
        train=args.train,
        only=None if args.only is None else tuple(args.only),
        start=start,
        lenient=args.lenient,
        friction=args.friction,
        disturbed=args.disturbed,
        signals=SignalConfig(cutoff=args.cutoff),
        estimator=_estimator(args),
    )
    require_writable(args.out)
    require_elsewhere(robot, args.out)
    with progress_bar() as show:
        timing = _Timing(show)
        timing("reading", 0.0)
        sources = read_sources(args.data, args.topic, args.without)
        bare = sources if args.load is None else sources[:-1]
        if not bare:
            raise DataError("--load needs a recording without the load, too: give it first")
        with workers(args.workers, args.scheduler) as pool:
            found = identify(robot, bare, options, timing, pool)
        gains = None
        if args.load is not None:
            load, placed = parse_load(args.load)
            loaded = replace(sources[-1], load=load)
            stands = robot if found.gravity is None else robot.in_gravity(found.gravity)
            cutoff = found.signals.cutoff
            gains = measured_gains(stands, [*bare, loaded], cutoff, options, com=placed)
        if not args.any_mass:
            _require_sound(found)
        timing("report", 0.0)
        data = estimate_json(found, timing.seconds, gains)
        with results_folder(args.out) as folder:
            parameters, cutoff = found.estimate.parameters, found.signals.cutoff
            write_model(found.robot, parameters, folder, cutoff)
            if not args.no_report:
                from sysid_core.report.page import write_report  # takes plotly

                write_report(found, folder, source=str(args.data))
            write_estimate(data, folder / "estimate.json")
    warn(found.warnings)
    if args.json:
        print_json(data)
    else:
        _show(found, args.out, not args.no_report)
        if gains is not None:
            _show_gains(gains)
    return 0


def _require_sound(found: Identification) -> None:
    """Refuse a result that is absurd, after all that was noticed of its data."""
    override = "pass --any-mass"
    try:
        require_uncontradicted(found.contradicted, override)
        require_believable(found.robot, found.estimate.parameters, override)
        require_explained(found.validation or found.train, override)
    except ModelError:
        warn([said for said in found.warnings if said != str(found.contradicted)])
        raise


def _show_gains(gains: DriveGains) -> None:
    table = named_table("drive gains: true torque over effort as described", "joint", "gain [-]")
    for joint, gain, std in zip(gains.joints, gains.gain, gains.std, strict=True):
        table.add_row(escape(joint), _with_std(gain, std))
    stdout().print(table)
    stdout().print("multiply 'effort.gain' of the robot description with them")


def _show(found: Identification, out: Path, report: bool) -> None:
    console = stdout()
    robot, estimate = found.robot, found.estimate
    if found.validation is not None:
        share = found.validation.samples / (found.validation.samples + found.train.samples)
        judged, title = found.validation, f"held out: the last {share:.0%} of the samples"
    else:
        judged, title = found.train, "learned from all samples; nothing was held out"
    print_scores(console, judged, f"{robot.name}, {estimate.method} · {title}")
    console.print(
        f"torque error over all joints: {np.sqrt((judged.rmse_nominal**2).sum()):.3g} → "
        f"{np.sqrt((judged.rmse_identified**2).sum()):.3g} N·m, "
        f"{judged.improvement:.1f} times smaller than the nominal model's"
    )
    _show_friction(found)
    print_units(console, robot)
    gain_std = robot.description.effort_gain_std
    for load in found.loads:
        com = ", ".join(f"{c:.3f} ± {s:.3f}" for c, s in zip(load.com, load.com_std, strict=True))
        console.print(
            f"load on {load.body}: {load.mass:.3f} ± {load.mass_std:.3f} kg at ({com}) m in its "
            "joint's frame",
            markup=False,
        )
        console.print(
            f"  (± is one standard deviation; effort gains known to {gain_std:.0%}, as "
            f"effort.gain_std says, and by the bodies' nominal masses, which took "
            f"{load.taken:.3g} kg off)"
        )
    smallest = float(np.min(estimate.consistency))
    console.print(
        "physically consistent: "
        + (f"yes, smallest eigenvalue {smallest:.2g}" if smallest > 0.0 else "[red]no[/]")
        + f" · {int((estimate.determined >= 0.5).sum())} of {len(estimate.determined)} base "
        f"parameters determined by the data, {int(found.essential.sum())} of them essential · "
        f"low-pass {found.signals.cutoff:.3g} Hz"
    )
    before = float(found.nominal[robot.layout.masses].sum())
    mass = _with_std(*total_mass(robot, estimate))
    console.print(f"total mass of moving bodies: {number(before)} → {mass} kg")
    files = ["estimate.json", *model_files(robot)] + (["report.html"] if report else [])
    console.print(f"wrote {', '.join(files)} to {out}", markup=False)
    console.print(f"next: {advice(found, str(out))[0]}", markup=False)


def _show_friction(found: Identification) -> None:
    layout, estimate = found.robot.layout, found.estimate
    identified = layout.joints_of(estimate.parameters)
    if found.loads or not identified:
        return
    std = layout.joints_of(estimate.std)
    usual = [term for term in found.robot.friction_terms if not term.chosen]
    headings = (f"{term.name}\n[{term.unit}]" for term in usual)
    table = named_table("friction and armature", "joint", *headings)
    for joint, values in identified.items():
        if any(std[joint][term.name] > 0.0 for term in usual):  # else nothing was identified
            cells = (_with_std(values[term.name], std[joint][term.name]) for term in usual)
            table.add_row(escape(joint), *cells)
    stdout().print(table)
    chosen = found.robot.description.friction_chosen
    if not any(chosen.values()):
        return
    units = {term.name: term.unit for term in found.robot.friction_terms}
    more = named_table("friction that predicts held-out stretches better", "joint")
    more.add_column("term")
    more.add_column("value", justify="right")
    more.add_column("unit")
    for joint, terms in chosen.items():
        for name in terms:
            value = _with_std(identified[joint][name], std[joint][name])
            more.add_row(escape(joint), name, value, escape(units[name]))
    stdout().print(more)


def _with_std(value: float, std: float) -> str:
    return with_std(value, std) if std > 0.0 else f"{number(value)} held"
