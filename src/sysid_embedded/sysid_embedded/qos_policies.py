# SPDX-License-Identifier: Apache-2.0
"""ROS 2's quality-of-service profiles as Cyclone DDS policies."""

from __future__ import annotations

from dataclasses import dataclass

from cyclonedds.qos import Policy, Qos

__all__ = ["Profile", "to_dds"]

# How long a reliable writer waits for slow readers. Python's lock is held meanwhile, so that it
# can't be ROS 2's "as long as it takes".
_MAX_BLOCKING_NS = 100_000_000


@dataclass(frozen=True)
class Profile:
    """The part of a profile that reaches DDS.

    Parameters
    ----------
    depth : int
        Samples kept per topic; 0 keeps all.
    reliable, transient_local : bool
    manual_liveliness : bool
        Whether the publisher must say that it is alive.
    lifespan, deadline, lease : int
        [ns]; 0: unspecified.
    """

    depth: int = 10
    reliable: bool = True
    transient_local: bool = False
    manual_liveliness: bool = False
    lifespan: int = 0
    deadline: int = 0
    lease: int = 0


def to_dds(profile: Profile) -> Qos:
    """Return the policies of a writer or reader.

    Parameters
    ----------
    profile : Profile

    Returns
    -------
    Qos
    """
    history = Policy.History.KeepLast(profile.depth) if profile.depth else Policy.History.KeepAll
    policies = [Policy.WriterDataLifecycle(autodispose=False), history]
    if profile.reliable:
        policies.append(Policy.Reliability.Reliable(max_blocking_time=_MAX_BLOCKING_NS))
    else:
        policies.append(Policy.Reliability.BestEffort)
    if profile.transient_local:
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
    else:
        policies.append(Policy.Durability.Volatile)
    if profile.lifespan:
        policies.append(Policy.Lifespan(profile.lifespan))
    if profile.deadline:
        policies.append(Policy.Deadline(profile.deadline))
    lease = profile.lease or 2**63 - 1
    if profile.manual_liveliness:
        policies.append(Policy.Liveliness.ManualByTopic(lease_duration=lease))
    else:
        policies.append(Policy.Liveliness.Automatic(lease_duration=lease))
    return Qos(*policies)
