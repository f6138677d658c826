# SPDX-License-Identifier: Apache-2.0
"""ROS 2's quality-of-service profiles, and their form as Cyclone DDS policies."""

from dataclasses import dataclass
from enum import IntEnum

from cyclonedds.qos import Policy, Qos

__all__ = ["DurabilityPolicy", "QoSProfile", "ReliabilityPolicy", "to_dds"]

# How long a reliable writer waits for slow readers. Python's lock is held meanwhile, so that it
# can't be ROS 2's "as long as it takes".
_MAX_BLOCKING_NS = 100_000_000
_INFINITE_NS = 2**63 - 1


class ReliabilityPolicy(IntEnum):
    """Whether lost samples are sent again."""

    RELIABLE = 1
    BEST_EFFORT = 2


class DurabilityPolicy(IntEnum):
    """Whether late subscribers get earlier samples."""

    TRANSIENT_LOCAL = 1
    VOLATILE = 2


@dataclass(frozen=True, kw_only=True)
class QoSProfile:
    """A set of policies."""

    depth: int  # Samples kept per topic
    reliability: ReliabilityPolicy = ReliabilityPolicy.RELIABLE
    durability: DurabilityPolicy = DurabilityPolicy.VOLATILE
    lifespan_ns: int = 0  # Age [ns] at which samples are no longer of use; 0: any

    def __post_init__(self) -> None:
        if self.depth < 0:
            raise ValueError("history depth must be greater than or equal to zero")


def to_dds(profile: QoSProfile) -> Qos:
    """Return the policies of a writer or reader."""
    history = Policy.History.KeepLast(max(profile.depth, 1))
    policies = [
        history,
        Policy.WriterDataLifecycle(autodispose=False),
        Policy.Liveliness.Automatic(lease_duration=_INFINITE_NS),
    ]
    if profile.reliability is ReliabilityPolicy.RELIABLE:
        policies.append(Policy.Reliability.Reliable(max_blocking_time=_MAX_BLOCKING_NS))
    else:
        policies.append(Policy.Reliability.BestEffort)
    if profile.durability is DurabilityPolicy.VOLATILE:
        policies.append(Policy.Durability.Volatile)
    else:
        policies.append(Policy.Durability.TransientLocal)
        policies.append(
            Policy.DurabilityService(
                cleanup_delay=0,
                history=history,
                max_samples=-1,
                max_instances=-1,
                max_samples_per_instance=-1,
            )
        )
    if profile.lifespan_ns:
        policies.append(Policy.Lifespan(profile.lifespan_ns))
    return Qos(*policies)
