# SPDX-License-Identifier: Apache-2.0
"""Contacts of legged robots: estimated from torque, checked against motion, made fit for use."""

from sysid_core.contacts.condition import Conditioned, condition_contacts
from sysid_core.contacts.estimate import contact_forces, loaded_contacts
from sysid_core.contacts.feet import ContactConfig, FootMotion, check_feet, foot_motion
from sysid_core.contacts.noticed import Noticed, NoticedLog
from sysid_core.contacts.odometry import check_odometry
from sysid_core.contacts.stream import ContactStream

__all__ = [
    "Conditioned",
    "ContactConfig",
    "ContactStream",
    "FootMotion",
    "Noticed",
    "NoticedLog",
    "check_feet",
    "check_odometry",
    "condition_contacts",
    "contact_forces",
    "foot_motion",
    "loaded_contacts",
]
