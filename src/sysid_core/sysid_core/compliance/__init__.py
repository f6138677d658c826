# SPDX-License-Identifier: Apache-2.0
"""Six-dimensional stiffness and damping of joints, from recorded poses of links."""

from sysid_core.compliance.estimate import (
    AXES,
    Compliance,
    JointCompliance,
    identify_compliance,
)
from sysid_core.compliance.poses import Poses, read_poses

__all__ = [
    "AXES",
    "Compliance",
    "JointCompliance",
    "Poses",
    "identify_compliance",
    "read_poses",
]
