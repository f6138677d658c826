# SPDX-License-Identifier: Apache-2.0
"""Quality-of-service profiles."""

from sysid_embedded.qos_policies import DurabilityPolicy, QoSProfile, ReliabilityPolicy

__all__ = [
    "DurabilityPolicy",
    "QoSProfile",
    "ReliabilityPolicy",
    "qos_profile_action_status_default",
    "qos_profile_parameter_events",
    "qos_profile_parameters",
    "qos_profile_services_default",
]

qos_profile_services_default = QoSProfile(depth=10)
qos_profile_parameters = QoSProfile(depth=1000)
qos_profile_parameter_events = QoSProfile(depth=1000)
qos_profile_action_status_default = QoSProfile(
    depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
