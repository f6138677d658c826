# SPDX-License-Identifier: Apache-2.0
"""FIGAROH's identification, fed with our recordings and asked for its predictions."""

import contextlib
import io
import logging
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from sysid_core.arrays import FloatArray

with warnings.catch_warnings():
    # two of its dependencies register the same converter
    warnings.simplefilter("ignore", RuntimeWarning)
    from figaroh.data.trajectory import TrajectoryData
    from figaroh.identification.base_identification import BaseIdentification
    from figaroh.tools.regressor import build_regressor_basic, build_regressor_reduced
    from figaroh.tools.robot import Robot as FigarohRobot

from bench.arms import Experiment
from sysid_core.recording import Recording
from sysid_core.robot import Robot
from sysid_core.robot.library import resolve_urdf
from sysid_core.signals.filters import settling_time

__all__ = ["Figaroh", "FigarohConfig"]


@dataclass(frozen=True)
class FigarohConfig:
    """How FIGAROH is set up.

    Torques go in as measured, as by default: filtered like the positions they fit worse here,
    since the sign of the velocity beside them is not.
    """

    cutoff: float  # [Hz] of its Butterworth low-pass, which it runs forwards and backwards
    prior_weight: float = 1e-6  # Of its physical fit; 1e-6 is its default


class _Identification(BaseIdentification):
    """Reads a recording; leaves out the filter's edges by the mask that FIGAROH offers for it."""

    def __init__(self, robot: Any, config: str, recording: Recording, cutoff: float) -> None:
        self._recording, self._edge = recording, settling_time(cutoff)
        super().__init__(robot, config)
        every = list(range(len(recording.joint_names)))
        self.identif_config.update(act_idxq=every, act_idxv=every)

    def load_trajectory_data(self, data_source: str | None = None) -> Any:
        recording = self._recording
        time = recording.time
        inside = (time >= time[0] + self._edge) & (time <= time[-1] - self._edge)
        return TrajectoryData(
            t=time,
            joint_names=recording.joint_names,
            q=recording.position,
            effort=recording.effort,
            effort_kind="joint_torque",
            effort_unit="N·m",
            mask=inside,
        )


class Figaroh:
    """One identification by FIGAROH."""

    def __init__(
        self, robot: Robot, recording: Recording, config: FigarohConfig, folder: Path
    ) -> None:
        logging.getLogger("figaroh").setLevel(logging.CRITICAL)
        self._robot, self._recording, self._config = robot, recording, config
        self._config_file = folder / f"{robot.name}.yaml"
        self._config_file.write_text(yaml.safe_dump(self._configuration()), encoding="utf-8")
        self._model = FigarohRobot(str(resolve_urdf(robot.description)), str(folder))
        self._found: Any = None

    def _configuration(self) -> dict[str, Any]:
        robot, config = self._robot, self._config
        rate = 1.0 / float(np.median(np.diff(self._recording.time)))
        terms = robot.description.friction_terms
        nominal = {
            t: robot.nominal[robot.layout.term(t)].tolist()
            for t in ("viscous", "coulomb", "armature", "offset")
        }
        task: dict[str, Any] = {
            "type": "dynamic_identification",
            "problem": {
                "model_components": {
                    "friction": "viscous" in terms,
                    "actuator_inertia": "armature" in terms,
                    "joint_offset": "offset" in terms,
                }
            },
            "coupling": {"has_coupled_wrist": False},
            "mechanics": {
                "friction_coefficients": {
                    "viscous": nominal["viscous"],
                    "static": nominal["coulomb"],
                },
                "actuator_inertias": nominal["armature"],
                "joint_offsets": nominal["offset"],
                "reduction_ratios": [1.0] * len(robot.joint_names),
            },
            "signal_processing": {
                "sampling_frequency": rate,
                "cutoff_frequency": config.cutoff,
                "differentiation_method": "gradient",
                "filter_order": 4,
            },
            "select_stage": "physical_fit",
            "physical_fit": {
                "enabled": True,
                "solver": "cvxopt",
                "prior_weight": config.prior_weight,
            },
        }
        joints = {"active_joints": list(robot.joint_names)}
        return {
            "meta": {"schema_version": "2.0"},
            "robot": {"name": robot.name, "properties": {"joints": joints}},
            "tasks": {"identification": task},
        }

    def solve(self) -> None:
        """Run the whole identification, with weighted least squares and the physical fit."""
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = _Identification(
                self._model, str(self._config_file), self._recording, self._config.cutoff
            )
            found.initialize()
            found.solve(decimate=False, plotting=False, wls=True)
        self._found = found

    @property
    def physical_accepted(self) -> bool:
        """Whether FIGAROH accepted its physical fit."""
        selected = self._found.selected
        return selected is not None and bool(selected.accepted)

    def masses(self) -> FloatArray:
        """Return the masses (nb,) [kg] of the physical fit, in the robot's order of bodies.

        Raises
        ------
        RuntimeError
            If FIGAROH rejected its physical fit.
        """
        if not self.physical_accepted:
            raise RuntimeError(f"FIGAROH rejected its fit: {self._found.selected.reason}")
        values = self._found.selected.parameter_dict()
        return np.array([values[f"m_{joint}"] for joint in self._robot.joint_names])

    def torques(self, experiment: Experiment, *, physical: bool) -> FloatArray:
        """Return torques (n, nj) [N·m] by the physical fit, or by weighted least squares."""
        found = self._found
        judged = experiment.judged
        states = (judged.position, judged.velocity, judged.acceleration)
        W = build_regressor_basic(found.robot, *states, found.identif_config)
        if physical:
            torque = found.selected.predict(W)
        else:
            reduced = build_regressor_reduced(W, found._idx_eliminated)
            torque = reduced[:, found._base_indices] @ found.phi_base
        return np.asarray(torque).reshape(judged.effort.shape[::-1]).T
