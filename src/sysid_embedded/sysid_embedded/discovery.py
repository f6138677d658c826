# SPDX-License-Identifier: Apache-2.0
"""How far nodes are discovered: ROS 2's environment variables as a Cyclone DDS configuration."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from xml.sax.saxutils import quoteattr

__all__ = ["domain_config", "domain_id"]

# Room for the processes of one machine where multicast can't tell of them.
_PARTICIPANTS = 32


def domain_id(environ: Mapping[str, str]) -> int:
    """Return the domain that `ROS_DOMAIN_ID` names; 0 where it is not set.

    Raises
    ------
    ValueError
        If it isn't an integer in [0, 232].
    """
    text = environ.get("ROS_DOMAIN_ID", "").strip()
    if not text:
        return 0
    if not text.isdecimal() or int(text) > 232:
        raise ValueError(f"ROS_DOMAIN_ID is {text!r}: set it to an integer from 0 to 232.")
    return int(text)


def _range(environ: Mapping[str, str]) -> str:
    """Return LOCALHOST, SUBNET, OFF or SYSTEM_DEFAULT as ROS 2 derives it."""
    if environ.get("ROS_LOCALHOST_ONLY", "") == "1":
        return "LOCALHOST"
    return environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "").upper() or "SUBNET"


def domain_config(environ: Mapping[str, str]) -> str:
    """Return the configuration that the environment asks for.

    Parameters
    ----------
    environ : mapping
        `ROS_AUTOMATIC_DISCOVERY_RANGE`, `ROS_STATIC_PEERS`, `ROS_LOCALHOST_ONLY` and
        `CYCLONEDDS_URI` count. A machine that has only a loopback interface discovers by
        addressing its own ports, because loopback has no multicast there.

    Returns
    -------
    str
        XML fragments, comma-separated; a later one wins.

    Raises
    ------
    ValueError
        If `ROS_AUTOMATIC_DISCOVERY_RANGE` is none of the known ones.
    """
    reach = _range(environ)
    if reach not in ("LOCALHOST", "SUBNET", "OFF", "SYSTEM_DEFAULT"):
        raise ValueError(
            f"ROS_AUTOMATIC_DISCOVERY_RANGE is {reach!r}: set it to LOCALHOST, SUBNET, OFF or "
            "SYSTEM_DEFAULT."
        )
    parts = []
    if reach != "SYSTEM_DEFAULT":
        parts.append(_fragment(reach, environ.get("ROS_STATIC_PEERS", "")))
    if environ.get("CYCLONEDDS_URI"):
        parts.append(environ["CYCLONEDDS_URI"])
    return ",".join(parts)


def _fragment(reach: str, static_peers: str) -> str:
    peers = [peer.strip() for peer in static_peers.split(";") if peer.strip()]
    general = ""
    discovery = (
        "<ParticipantIndex>auto</ParticipantIndex>"
        f"<MaxAutoParticipantIndex>{_PARTICIPANTS}</MaxAutoParticipantIndex>"
    )
    if reach == "OFF":
        peers, discovery = [], "<ParticipantIndex>none</ParticipantIndex>"
    if reach == "LOCALHOST" or (reach == "SUBNET" and _only_loopback()):
        peers.insert(0, "localhost")
    if reach != "SUBNET":
        general = "<General><AllowMulticast>false</AllowMulticast></General>"
    if peers:
        addresses = "".join(f"<Peer address={quoteattr(peer)}/>" for peer in peers)
        discovery += f"<Peers>{addresses}</Peers>"
    return f"<CycloneDDS><Domain>{general}<Discovery>{discovery}</Discovery></Domain></CycloneDDS>"


def _only_loopback() -> bool:
    """Whether no interface but loopback has a route out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("239.255.0.1", 7400))
        except OSError:
            return True
        return str(probe.getsockname()[0]).startswith("127.")
