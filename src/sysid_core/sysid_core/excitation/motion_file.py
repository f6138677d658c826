# SPDX-License-Identifier: Apache-2.0
"""Reads motions to play: what ``sysid excite`` wrote, or any joint trajectory in YAML."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError, ParameterError, UnreadableError
from sysid_core.excitation.fourier import States
from sysid_core.untrusted import read_json, read_yaml

__all__ = ["IDENTITY", "TRAJECTORY", "JointMotion", "read_motion"]

TRAJECTORY = "trajectory.yaml"  # A ``trajectory_msgs/JointTrajectory``
IDENTITY = "motion.json"  # Whose it is, and what its design found
_MOST_VALUES = 1_000_000  # Of a trajectory file: 20 minutes of ten joints at 20 Hz


@dataclass(frozen=True, eq=False)
class JointMotion:
    """A motion of some joints."""

    joint_names: tuple[str, ...]
    time: FloatArray  # (n,) [s] ascending from 0
    position: FloatArray  # (n, k) [rad, rad/s, rad/s²]
    velocity: FloatArray  # (n, k) [rad, rad/s, rad/s²]
    acceleration: FloatArray  # (n, k) [rad, rad/s, rad/s²]
    # robot, model_hash, description: whose it is: name, model, path of the description; empty
    # where unknown.
    robot: str = ""
    model_hash: str = ""
    description: str = ""

    def states(self, joints: Sequence[str]) -> States:
        """Return the motion of some joints in their order.

        Raises
        ------
        ParameterError
            If it lacks one of them.
        """
        missing = [joint for joint in joints if joint not in self.joint_names]
        if missing:
            raise ParameterError(f"the motion lacks the joints {', '.join(missing)}")
        order = [self.joint_names.index(joint) for joint in joints]
        parts = (self.position, self.velocity, self.acceleration)
        return States(*(part[:, order] for part in parts))


def read_motion(path: Path) -> JointMotion:
    """Return the motion of a folder that ``sysid excite`` wrote, or of a trajectory's YAML.

    Raises
    ------
    DataError
        If there is none or it is malformed.
    """
    file = path / TRAJECTORY if path.is_dir() else path
    identity: dict[str, Any] = {}
    try:
        message = read_yaml(file, most=_MOST_VALUES)
        if (file.parent / IDENTITY).is_file():
            identity = read_json(file.parent / IDENTITY)
        return _motion(message, identity)
    except UnreadableError as error:
        raise DataError(
            f"{error}; give a folder that 'sysid excite' wrote", source=str(file)
        ) from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise DataError(
            "is not a trajectory_msgs/JointTrajectory with positions, velocities and "
            f"accelerations at every point ({why})",
            source=str(file),
        ) from error


def _motion(message: Any, identity: dict[str, Any]) -> JointMotion:
    points = message["points"]
    kinds = ("positions", "velocities", "accelerations")
    arrays = [np.array([point[kind] for point in points], dtype=float) for kind in kinds]
    spans = [point["time_from_start"] for point in points]
    time = np.array([span["sec"] + 1e-9 * span["nanosec"] for span in spans], dtype=float)
    names = tuple(str(name) for name in message["joint_names"])
    if len(time) < 2 or any(array.shape != (len(time), len(names)) for array in arrays):
        raise ValueError(f"every point needs {len(names)} numbers of each kind, one per joint")
    if not all(np.isfinite(array).all() for array in (time, *arrays)):
        raise ValueError("a number is not finite")
    if time[0] != 0.0 or (np.diff(time) <= 0.0).any():
        raise ValueError("times must ascend from 0")
    whose = {key: str(identity.get(key) or "") for key in ("robot", "model_hash", "description")}
    return JointMotion(names, time, arrays[0], arrays[1], arrays[2], **whose)
