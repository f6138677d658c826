# SPDX-License-Identifier: Apache-2.0
"""Samples to messages and back."""

from array import array
from collections.abc import Sequence

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.errors import DataError
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_msgs.msg import JointSamples
from sysid_ros.fields import doubles, rows, seconds, stamp

__all__ = ["samples_from_message", "samples_message"]

_JOINT_ARRAYS = ("position", "velocity", "acceleration", "effort")
_BASE_ARRAYS = {"base_pose": 7, "base_twist": 6, "base_acceleration": 6}  # Numbers per sample


def samples_message(
    robot: Robot, samples: Samples, sequence: int, cutoff: float = 0.0
) -> JointSamples:
    """Return samples (at least one) as a message; of joints, the actuated ones.

    All signals went through a low-pass with a `cutoff` [Hz]; 0: unknown.
    """
    message = JointSamples()
    end = float(samples.time[-1])
    message.header.stamp = stamp(end)
    message.robot = robot.name
    message.sequence, message.cutoff = sequence, cutoff
    message.joint_names = list(robot.actuated_names)
    message.time = doubles(samples.time - end)
    for name in _JOINT_ARRAYS:
        setattr(message, name, doubles(getattr(samples, name)[:, robot.actuated]))
    if samples.cut_off is not None:
        cut_off = samples.cut_off[:, robot.actuated].astype(np.uint8)
        message.cut_off = array("B", cut_off.tobytes())
    for name in _BASE_ARRAYS:
        values = getattr(samples, name)
        if values is not None:
            setattr(message, name, doubles(values))
    if samples.contacts is not None:
        message.contact_names = [contact.name for contact in robot.description.contacts]
        message.contacts = samples.contacts.ravel().tolist()
    if samples.wrenches is not None:
        message.wrenches = doubles(samples.wrenches)
    return message


def samples_from_message(robot: Robot, message: JointSamples) -> Samples:
    """Return the samples of a message in the robot's joint order.

    Raises
    ------
    DataError
        If the message is another robot's, or its arrays do not fit each other.
    """
    if message.robot != robot.name:
        raise DataError(
            f"samples of robot '{message.robot}' came, but this node identifies '{robot.name}'"
        )
    columns = _columns(message.joint_names, robot.actuated_names, "joints")
    time = seconds(message.header.stamp) + np.asarray(message.time, dtype=np.float64)
    n = len(time)
    arrays = {}
    for name in _JOINT_ARRAYS:
        full = np.full((n, len(robot.joint_names)), np.nan)
        table = rows(getattr(message, name), n, len(message.joint_names), name)
        full[:, robot.actuated] = table[:, columns]
        arrays[name] = full
    cut_off = None
    if len(message.cut_off):
        cut_off = np.zeros((n, len(robot.joint_names)), dtype=np.intp)
        table = rows(message.cut_off, n, len(message.joint_names), "cut_off")
        cut_off[:, robot.actuated] = table[:, columns]
    if robot.floating:
        for name, width in _BASE_ARRAYS.items():
            arrays[name] = rows(getattr(message, name), n, width, name)
    contacts, wrenches = _contacts(robot, message, n)
    return Samples(time, **arrays, contacts=contacts, wrenches=wrenches, cut_off=cut_off)


def _columns(names: Sequence[str], wanted: Sequence[str], what: str) -> list[int]:
    """Return where a message has the wanted names."""
    given = list(names)
    missing = sorted(set(wanted) - set(given))
    if missing:
        raise DataError(f"samples lack the {what} {missing}")
    return [given.index(name) for name in wanted]


def _contacts(
    robot: Robot, message: JointSamples, n: int
) -> tuple[BoolArray | None, FloatArray | None]:
    """Return contact flags (n, nc) and wrenches (n, nc, 6), each if there are any."""
    count = len(message.contact_names)
    if not count:
        return None, None
    order = [contact.name for contact in robot.description.contacts]
    columns = _columns(message.contact_names, order, "contacts")
    flags = rows(message.contacts, n, count, "contacts")[:, columns] > 0.5
    if not len(message.wrenches):
        return flags, None
    wrenches = rows(message.wrenches, n, 6 * count, "wrenches").reshape(n, count, 6)
    return flags, wrenches[:, columns]
