# SPDX-License-Identifier: Apache-2.0
"""How far nodes are discovered: ROS 2's environment variables as a Cyclone DDS configuration."""

import os
import socket
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from xml.sax.saxutils import quoteattr

__all__ = ["check_security", "domain_config", "domain_id", "keep_to_loopback", "only_loopback"]

# Room for the processes of one machine where multicast can't tell of them.
_PARTICIPANTS = 32
_RANGES = ("LOCALHOST", "SUBNET", "OFF", "SYSTEM_DEFAULT")
_SIOCGIFFLAGS, _SIOCGIFADDR = 0x8913, 0x8915
_IFF_UP, _IFF_LOOPBACK = 0x1, 0x8

# ROS 2's processes that keep to the machine call at the loopback address. Cyclone DDS 11 hears
# only what comes in by an interface that it uses, so it must use loopback beside its first choice.
_AUTOMATIC = '<NetworkInterface autodetermine="true"/>'
_LOOPBACK = '<NetworkInterface address="127.0.0.1"/>'


def check_security(environ: Mapping[str, str]) -> None:
    """Refuse an environment that demands secured topics, which this runtime does not have.

    Raises
    ------
    ValueError
        If `ROS_SECURITY_STRATEGY` is ``Enforce`` and `ROS_SECURITY_ENABLE` is not ``false``.
    """
    enforced = environ.get("ROS_SECURITY_STRATEGY", "").lower() == "enforce"
    if enforced and environ.get("ROS_SECURITY_ENABLE", "").lower() != "false":
        raise ValueError(
            "ROS_SECURITY_STRATEGY is Enforce, but the embedded runtime does not support DDS "
            "security: run the nodes in ROS 2, or set ROS_SECURITY_ENABLE to false."
        )


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


def _alone(environ: Mapping[str, str]) -> bool:
    """Whether only processes of this machine are to be heard."""
    return _range(environ) == "LOCALHOST" and not environ.get("ROS_STATIC_PEERS", "").strip("; ")


def _descriptors() -> set[str]:
    """Return the descriptors of this process's sockets."""
    own = Path("/proc/self/fd")
    return {entry.name for entry in own.iterdir() if entry.is_socket()} if own.is_dir() else set()


@contextmanager
def keep_to_loopback(environ: Mapping[str, str]) -> Iterator[None]:
    """Let sockets that are made within hear loopback alone where that is what is asked for.

    Cyclone DDS drops what comes in elsewhere, but binds its sockets to all interfaces.
    """
    before = _descriptors()
    yield
    if not _alone(environ) or _chooses_interfaces(environ.get("CYCLONEDDS_URI", "")):
        return
    for name in _descriptors() - before:
        with suppress(OSError), socket.socket(fileno=os.dup(int(name))) as made:
            if made.getsockname()[0] == "0.0.0.0":
                made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo")


def domain_config(environ: Mapping[str, str], *, loopback_only: bool = False) -> str:
    """Return the configuration that the environment asks for: XML fragments, a later one wins.

    `ROS_AUTOMATIC_DISCOVERY_RANGE`, `ROS_STATIC_PEERS`, `ROS_LOCALHOST_ONLY` and `CYCLONEDDS_URI`
    count, and whether the machine has no interface but loopback.

    Raises
    ------
    ValueError
        If `ROS_AUTOMATIC_DISCOVERY_RANGE` is none of the known ones, or a peer has no address.
    """
    reach = _range(environ)
    if reach not in _RANGES:
        raise ValueError(
            f"ROS_AUTOMATIC_DISCOVERY_RANGE is {reach!r}: set it to {', '.join(_RANGES)}."
        )
    own = environ.get("CYCLONEDDS_URI", "")
    parts = [own] if own else []
    if reach != "SYSTEM_DEFAULT":
        peers = [p.strip() for p in environ.get("ROS_STATIC_PEERS", "").split(";") if p.strip()]
        interfaces = ""
        if not (loopback_only or _chooses_interfaces(own)):
            names = _LOOPBACK if _alone(environ) else _AUTOMATIC + _LOOPBACK
            interfaces = f"<Interfaces>{names}</Interfaces>"
        _check_peers(peers)
        if reach != "OFF":
            # Where multicast doesn't get through, processes of one machine find each other still.
            peers.insert(0, "127.0.0.1")  # the name needs an /etc/hosts
        parts.insert(0, _fragment(reach, interfaces, peers))
    return ",".join(parts)


def _check_peers(peers: list[str]) -> None:
    """Refuse peers that have no address: Cyclone DDS ends the process at one."""
    for peer in peers:
        try:
            socket.getaddrinfo(peer, None)
        except (OSError, ValueError):
            raise ValueError(
                f"ROS_STATIC_PEERS has {peer!r:.80}, which has no address: give addresses or "
                "names of machines, with ';' between them."
            ) from None


def _fragment(reach: str, interfaces: str, peers: list[str]) -> str:
    general, discovery = interfaces, ""
    if reach != "SUBNET":
        general += "<AllowMulticast>false</AllowMulticast>"
    if reach == "OFF":
        discovery = "<ParticipantIndex>none</ParticipantIndex>"
    else:
        discovery = (
            "<ParticipantIndex>auto</ParticipantIndex>"
            f"<MaxAutoParticipantIndex>{_PARTICIPANTS}</MaxAutoParticipantIndex>"
        )
        addresses = "".join(f"<Peer address={quoteattr(peer)}/>" for peer in peers)
        discovery += f"<Peers>{addresses}</Peers>" if peers else ""
    return (
        f"<CycloneDDS><Domain><General>{general}</General><Discovery>{discovery}</Discovery>"
        "</Domain></CycloneDDS>"
    )


def _chooses_interfaces(own: str) -> bool:
    """Whether the user's configuration, inline or in files, says which interfaces to use."""
    texts = [own]
    for item in own.split(","):
        path = Path(item.strip().removeprefix("file://"))
        try:
            texts.append(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
    return any("<networkinterface" in text.lower() for text in texts)


def only_loopback() -> bool:
    """Whether no interface but loopback is up and has an address (known on Linux only)."""
    if sys.platform != "linux":
        return False
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(probe, _SIOCGIFFLAGS, request)
                fcntl.ioctl(probe, _SIOCGIFADDR, request)
            except OSError:
                continue
            (flags,) = struct.unpack_from("<H", answer, 16)
            if flags & _IFF_UP and not flags & _IFF_LOOPBACK:
                return False
    return True
