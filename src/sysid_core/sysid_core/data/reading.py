# SPDX-License-Identifier: Apache-2.0
"""Reading a recording from whatever kind of file it lies in."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from sysid_core.data.decode import SENSOR_READERS, Stream, joints_of, merged, stamp_times
from sysid_core.data.message_types import JOINT_STATE, decode
from sysid_core.data.storage import Bag, StoredMessage, StoredTopic, open_bag
from sysid_core.data.table import read_csv
from sysid_core.errors import DataError, UnreadableError
from sysid_core.recording import LEAST_REACHES, Part, Recording, TopicInfo, cut
from sysid_core.untrusted import existing
from sysid_core.wording import one_line

__all__ = ["read_parts", "read_recording", "read_robot_description"]

_NANOSECONDS = 1e9
_STRING = "std_msgs/msg/String"

_USUAL_NAMES = {
    JOINT_STATE: "joint_states",
    **{reader.type: reader.topic for reader in SENSOR_READERS},
}

_Chosen = dict[str, tuple[StoredTopic, ...]]
"""The topics to read of each type: several only of joint states, each of other joints."""


def read_robot_description(path: Path) -> str:
    """Return the URDF that a bag holds as `robot_description`.

    Raises
    ------
    DataError
        If it holds none.
    """
    with open_bag(path) as bag:
        for topic in bag.topics:
            if topic.name.endswith("robot_description") and topic.type == _STRING and topic.count:
                message = next(bag.messages({topic.name}))
                (decoded,) = decode(topic, [message])
                return str(decoded.data)
        raise DataError(
            "holds no /robot_description; give the URDF, or record that topic as well (its "
            "messages are latched)"
        )


def _bag_parts(
    path: Path, *, joint_topic: str | None = None, rows: int | None = None, reach: float = 0.0
) -> Iterator[Part]:
    """Yield a bag in overlapping parts, each read when it is asked for; see `read_parts`."""
    warnings: list[str] = []
    with open_bag(path) as bag:
        chosen = _choose_topics(bag, joint_topic, warnings)
        topics = tuple(TopicInfo(topic.name, topic.type, topic.count) for topic in bag.topics)
        joints = {topic.name for topic in chosen[JOINT_STATE]}
        window: list[StoredMessage] = []
        count, start = 0, -math.inf
        for message in bag.messages({topic.name for some in chosen.values() for topic in some}):
            if rows is not None and count >= rows:
                # more must follow, or the part would be the last
                end = message.log_time - window[0].log_time
                if message.topic in joints and end > LEAST_REACHES * reach * _NANOSECONDS:
                    recording = _recording(window, chosen, path, topics, warnings)
                    stop = float(np.nanmax(recording.time)) - reach
                    yield Part(recording, start, stop)
                    start = stop
                    overlap = window[-1].log_time - 2.0 * reach * _NANOSECONDS
                    window = [kept for kept in window if kept.log_time >= overlap]
                    count = sum(kept.topic in joints for kept in window)
            window.append(message)
            count += message.topic in joints
        yield Part(_recording(window, chosen, path, topics, warnings), start, math.inf)


def _recording(
    messages: list[StoredMessage],
    chosen: _Chosen,
    path: Path,
    topics: tuple[TopicInfo, ...],
    warnings: list[str],
) -> Recording:
    """Return what messages of the chosen topics say."""
    used = [topic for some in chosen.values() for topic in some]
    stored: dict[str, list[StoredMessage]] = {topic.name: [] for topic in used}
    for message in messages:
        stored[message.topic].append(message)
    streams = [
        Stream.of(topic.name, stored[topic.name], decode(topic, stored[topic.name]))
        for topic in used
    ]
    clocks, clock_warnings = stamp_times(streams)
    found = {
        topic.name: (stream, time)
        for topic, stream, time in zip(used, streams, clocks, strict=True)
    }
    stream, time = merged([found[topic.name] for topic in chosen[JOINT_STATE]])
    if not stream.messages:
        raise DataError(f"{stream.topic} holds no messages; record while the robot runs")
    joints = joints_of(stream, time)
    sensors = {
        reader.field: reader.read(*found[topic.name])
        for reader in SENSOR_READERS
        for topic in chosen.get(reader.type, ())
    }
    told = (*warnings, *clock_warnings, *joints.warnings)
    return replace(joints, source=str(path), topics=topics, warnings=told, **sensors)


def _choose_topics(bag: Bag, joint_topic: str | None, warnings: list[str]) -> _Chosen:
    if not any(topic.count for topic in bag.topics):
        raise DataError("the bag is empty (no messages); record while the robot runs")
    chosen: _Chosen = {}
    for kind in _USUAL_NAMES:
        topics = _choose(bag, kind, joint_topic if kind == JOINT_STATE else None, warnings)
        if topics:
            chosen[kind] = topics
    if JOINT_STATE not in chosen:
        found = ", ".join(f"{topic.name} ({topic.type})" for topic in bag.topics)
        raise DataError(
            f"no {JOINT_STATE} topic; the bag has {found}. Record joint states with efforts"
        )
    return chosen


def _choose(
    bag: Bag, kind: str, wanted: str | None, warnings: list[str]
) -> tuple[StoredTopic, ...]:
    """Pick the topics asked for, else the one with the usual name, else the busiest.

    Those with joint states of other joints go with it where their name is as usual.
    """
    candidates = [topic for topic in bag.topics if topic.type == kind]
    if wanted is not None:
        return _named(bag, candidates, wanted)
    filled = [topic for topic in candidates if topic.count]
    if not filled:
        return tuple(candidates[:1]) if kind == JOINT_STATE else ()
    usual = _USUAL_NAMES[kind]

    def suitability(topic: StoredTopic) -> tuple[bool, bool]:
        name = topic.name.strip("/")
        return name == usual, name.endswith(f"/{usual}")

    best = max(filled, key=lambda topic: (suitability(topic), topic.count))
    used = [best]
    if kind == JOINT_STATE:
        rest = [topic for topic in filled if topic is not best]
        used += _of_other_joints(
            bag, best, [t for t in rest if suitability(t) == suitability(best)]
        )
    others = ", ".join(topic.name for topic in filled if topic not in used)
    if len(filled) > 1:
        names = " and ".join(topic.name for topic in used)
        said = f"{names} {'is' if len(used) == 1 else 'are'} used{others and f', not {others}'}"
        warnings.append(f"several topics of type {kind}: {said}")
    return tuple(used)


def _named(bag: Bag, candidates: list[StoredTopic], wanted: str) -> tuple[StoredTopic, ...]:
    """Return the topics with the names that are asked for, separated by commas."""
    known = {topic.name.strip("/"): topic for topic in candidates}
    names = dict.fromkeys(name.strip(" /") for name in wanted.split(","))
    owner: dict[str, StoredTopic] = {}  # Joint → the topic that names it
    for name in names:
        if name not in known:
            such = ", ".join(topic.name for topic in candidates) or "none"
            raise DataError(f"no topic '{name}' of type {JOINT_STATE}; such topics are: {such}")
        found = known[name]
        for joint in _joints(bag, found):
            if owner.setdefault(joint, found) is not found:
                raise DataError(
                    f"{owner[joint].name} and {found.name} both name {joint}; give one of them"
                )
    return tuple(known[name] for name in names)


def _of_other_joints(bag: Bag, best: StoredTopic, others: list[StoredTopic]) -> list[StoredTopic]:
    """Return the topics that name none of the joints that are read already."""
    read, found = _joints(bag, best) if others else set[str](), []
    for topic in others:
        own = _joints(bag, topic)
        if own and read.isdisjoint(own):
            read |= own
            found.append(topic)
    return found


def _joints(bag: Bag, topic: StoredTopic) -> set[str]:
    """Return the joints that the first message of a topic names."""
    first = next(bag.messages({topic.name}), None)
    return set(decode(topic, [first])[0].name) if first else set()


def read_parts(
    path: str | Path, *, joint_topic: str | None = None, rows: int, reach: float
) -> Iterator[Part]:
    """Read a recording in parts of so many rows, so that memory does not grow with its length.

    A part reaches some seconds beyond what it stands for; see `read_recording`.
    """
    target = _existing(path)
    if _is_table(target):
        yield from cut(read_recording(target, joint_topic=joint_topic), rows, reach)
    else:
        yield from _bag_parts(target, joint_topic=joint_topic, rows=rows, reach=reach)


def read_recording(path: str | Path, *, joint_topic: str | None = None) -> Recording:
    """Read a bag folder, an `.mcap`, a `.db3` (with or without metadata.yaml) or a `.csv`.

    Parameters
    ----------
    joint_topic : str, optional
        The topic of the joint states, if a bag has several, or several ones with commas between
        them, each of other joints; a table has no topics.

    Raises
    ------
    DataError
        In one line: what is wrong, where, and how to mend it.
    """
    target = _existing(path)
    if not _is_table(target):
        (whole,) = _bag_parts(target, joint_topic=joint_topic)
        return whole.recording
    if joint_topic is not None:
        raise DataError(
            f"a table has no topics; leave out the topic '{joint_topic}'", source=str(target)
        )
    return read_csv(target)


def _existing(path: str | Path) -> Path:
    try:
        return existing(path)
    except UnreadableError as error:
        raise DataError(f"{error}; check the path", source=one_line(path)) from error


def _is_table(path: Path) -> bool:
    return path.suffix.lower() == ".csv" and not path.is_dir()
