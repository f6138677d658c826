# SPDX-License-Identifier: Apache-2.0
"""Makes legged samples fit for regression: contacts completed, doubtful samples left out."""

from dataclasses import dataclass, replace

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.contacts.feet import (
    LOAD_OFF,
    ContactConfig,
    FootMotion,
    check_feet,
    check_wrenches,
    contact_loads,
    foot_motion,
)
from sysid_core.contacts.noticed import Noticed, noticed
from sysid_core.contacts.odometry import check_odometry
from sysid_core.contacts.stance import StanceMotion
from sysid_core.errors import DataError
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.signals.switching import switching, widened

__all__ = ["Conditioned", "condition_contacts", "corrected", "judge_contacts"]

_LEFT_OUT = ("switch", "flight_doubtful", "stance_doubtful")
"""Kinds of what is noticed that make a sample unfit.

Rows of a slipping foot are as valid as others: the force at the foot is projected out whether it
slides or not.
"""


@dataclass(frozen=True)
class Conditioned:
    """Samples with completed contacts, and what was noticed on the way."""

    samples: Samples  # All of them, with contact flags
    keep: BoolArray  # (n,) those that are fit for regression
    noticed: tuple[Noticed, ...]

    @property
    def kept(self) -> Samples:
        """The samples that are fit for regression."""
        return self.samples.select(self.keep)


def condition_contacts(
    robot: Robot,
    samples: Samples,
    config: ContactConfig | None = None,
    parameters: FloatArray | None = None,
) -> Conditioned:
    """Check legged samples, complete their contacts and mark what not to learn from.

    A foot counts as in contact if its flag or its load (from torque) says so: projecting out a
    force that is none costs rows, but not projecting out one that is there falsifies the model.
    So wrong flags, up to all of them missing, need no further care.

    Parameters
    ----------
    robot : Robot
        Floating, with contacts.
    parameters : (p,), optional
        Model for the load estimate; default: nominal.

    Raises
    ------
    DataError
        If the odometry is missing or unusable, e.g. its twist is given in the world frame.
    """
    config = config or ContactConfig()
    motion = foot_motion(robot, samples, parameters)
    odometry = check_odometry(samples)
    for one in odometry:
        if one.fatal:
            raise DataError(str(one.diagnostic))
    flagged = np.full(len(samples), samples.contacts is not None)
    judged = judge_contacts(robot, samples, motion, flagged, config)
    judged = corrected(judged, motion, StanceMotion(robot))
    return replace(judged, noticed=odometry + judged.noticed)


def corrected(judged: Conditioned, motion: FootMotion, stance: StanceMotion) -> Conditioned:
    """Correct the base's motion of the samples that are fit; leave out what stays uncertain."""
    keep = judged.keep
    samples, fit = stance.correct(judged.samples, motion, keep)
    uncertain = keep & ~fit
    found = judged.noticed
    if uncertain.any():
        text = "neither odometry nor feet tell the base's motion well in {share} of the samples"
        found += (noticed("base_uncertain", f"{text}; left out", uncertain),)
    return Conditioned(samples, keep & fit, found)


def judge_contacts(
    robot: Robot, samples: Samples, motion: FootMotion, flagged: BoolArray, config: ContactConfig
) -> Conditioned:
    """Complete the contacts of samples whose feet's motion is known.

    Flags were measured where `flagged` (n,); elsewhere they are estimated from the load alone.
    """
    found = list(check_wrenches(samples, motion))
    if found:
        samples = replace(samples, wrenches=np.full((*motion.loaded.shape, 6), np.nan))
    measured: BoolArray = np.zeros(motion.loaded.shape, dtype=bool)
    if samples.wrenches is not None:
        measured = np.asarray(np.isfinite(samples.wrenches).all(axis=2))
    flags = motion.loaded
    if samples.contacts is not None:
        flags = np.where(flagged[:, None], samples.contacts, flags)
    found += check_feet(robot, replace(samples, contacts=flags), motion, config)
    contacts = motion.loaded | flags
    untold = ~flagged & ~measured.all(axis=1)
    if untold.any():
        found.append(_estimated(untold))
    contacts = widened(samples.time, contacts, config.contact_margin)
    light = ~contacts & ~measured & (contact_loads(robot, motion.force) > LOAD_OFF)
    doubtful = untold & light.any(axis=1)
    if doubtful.any():
        found.append(_doubted(doubtful))
    near = switching(samples.time, motion.loaded, config.switch_margin)
    near &= ~measured.all(axis=1)  # measured wrenches hold through a change as well
    if near.any():
        text = "{share} of the samples lie close to a change of contacts; left out"
        found.append(noticed("switch", text, near))
    keep: BoolArray = np.asarray(np.isfinite(motion.velocity).all(axis=(1, 2)))
    for one in found:
        if one.kind in _LEFT_OUT:
            keep = keep & ~one.samples
    return Conditioned(replace(samples, contacts=contacts), keep, tuple(found))


def _doubted(doubtful: BoolArray) -> Noticed:
    return noticed(
        "stance_doubtful",
        "in {share} of the samples torques do not tell whether a lightly loaded foot touches the "
        "ground; left out",
        doubtful,
        hint="contact flags or wrenches would let these samples be learned from",
    )


def _estimated(untold: BoolArray) -> Noticed:
    what = "the data hold" if untold.all() else "{share} of the samples hold"
    return noticed(
        "no_contact_data",
        f"{what} neither contact flags nor wrenches; the stance is estimated from the torques",
        untold,
    )
