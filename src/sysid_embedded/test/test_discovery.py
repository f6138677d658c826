# SPDX-License-Identifier: Apache-2.0
"""Discovery: the environment variables of ROS 2 are heeded."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from sysid_embedded.discovery import check_security, domain_config, domain_id, only_loopback


@pytest.mark.parametrize(("text", "number"), [("", 0), ("7", 7), (" 42 ", 42), ("232", 232)])
def test_the_domain_is_read(text: str, number: int) -> None:
    assert domain_id({"ROS_DOMAIN_ID": text}) == number


@pytest.mark.parametrize("text", ["-1", "233", "x", "1.5"])
def test_a_wrong_domain_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ROS_DOMAIN_ID"):
        domain_id({"ROS_DOMAIN_ID": text})


@pytest.mark.parametrize(
    "environ", [{"ROS_LOCALHOST_ONLY": "1"}, {"ROS_AUTOMATIC_DISCOVERY_RANGE": "localhost"}]
)
def test_localhost_means_no_multicast_and_one_peer(environ: dict[str, str]) -> None:
    domain = ET.fromstring(domain_config(environ)).find("Domain")
    assert domain is not None
    assert domain.findtext("General/AllowMulticast") == "false"
    peer = domain.find("Discovery/Peers/Peer")
    assert peer is not None
    assert peer.get("address") == "127.0.0.1"


def test_the_user_s_configuration_comes_last_so_that_it_wins() -> None:
    text = domain_config({"CYCLONEDDS_URI": "file:///x.xml"})
    assert text.endswith(",file:///x.xml")


def test_the_default_of_the_system_leaves_everything_alone() -> None:
    assert domain_config({"ROS_AUTOMATIC_DISCOVERY_RANGE": "SYSTEM_DEFAULT"}) == ""


def test_loopback_is_used_beside_the_first_choice_unless_the_user_chooses(tmp_path: Path) -> None:
    addresses = [
        e.get("address") for e in ET.fromstring(domain_config({})).iter("NetworkInterface")
    ]
    assert addresses == [None, "127.0.0.1"]
    chosen = '<General><Interfaces><NetworkInterface name="lo"/></Interfaces></General>'
    file = tmp_path / "cyclone.xml"
    file.write_text(chosen)
    for uri in (chosen, f"file://{file}", str(file)):
        assert "autodetermine" not in domain_config({"CYCLONEDDS_URI": uri})


def test_a_machine_with_loopback_only_has_no_second_interface_to_use() -> None:
    domain = ET.fromstring(domain_config({}, loopback_only=True))
    assert [peer.get("address") for peer in domain.iter("Peer")] == ["127.0.0.1"]
    assert not list(domain.iter("NetworkInterface"))


def test_off_means_nobody() -> None:
    domain = ET.fromstring(domain_config({"ROS_AUTOMATIC_DISCOVERY_RANGE": "OFF"}))
    assert not list(domain.iter("Peer"))
    assert domain.findtext("Domain/General/AllowMulticast") == "false"


def test_this_machine_s_interfaces_can_be_looked_at() -> None:
    assert only_loopback() in (True, False)


def test_static_peers_are_added() -> None:
    text = domain_config({"ROS_STATIC_PEERS": "10.0.0.1; 10.0.0.2"})
    peers = [peer.get("address") for peer in ET.fromstring(text).iter("Peer")]
    assert peers[-2:] == ["10.0.0.1", "10.0.0.2"]


def test_a_peer_without_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match="which has no address"):
        domain_config({"ROS_STATIC_PEERS": "127.0.0.1;../../x"})


def test_an_unknown_range_is_refused() -> None:
    with pytest.raises(ValueError, match="EVERYWHERE"):
        domain_config({"ROS_AUTOMATIC_DISCOVERY_RANGE": "everywhere"})


def _interfaces(environ: dict[str, str]) -> list[str | None]:
    root = ET.fromstring(domain_config(environ))
    return [interface.get("address") for interface in root.iter("NetworkInterface")]


def test_localhost_uses_the_loopback_interface_alone_unless_peers_are_named() -> None:
    local = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    assert _interfaces(local) == ["127.0.0.1"]
    assert _interfaces({**local, "ROS_STATIC_PEERS": "10.0.0.1"}) == [None, "127.0.0.1"]


@pytest.mark.parametrize("enable", [{}, {"ROS_SECURITY_ENABLE": "true"}])
def test_enforced_security_is_refused(enable: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="does not support DDS security"):
        check_security({"ROS_SECURITY_STRATEGY": "Enforce", **enable})


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"ROS_SECURITY_ENABLE": "true", "ROS_SECURITY_STRATEGY": "Permissive"},
        {"ROS_SECURITY_ENABLE": "false", "ROS_SECURITY_STRATEGY": "Enforce"},
    ],
)
def test_security_that_is_not_enforced_is_no_reason_to_refuse(environ: dict[str, str]) -> None:
    check_security(environ)


_SOCKETS = """
import os, socket
from sysid_embedded.dds import Participant

participant = Participant(231)
for name in os.listdir("/proc/self/fd"):
    try:
        with socket.socket(fileno=os.dup(int(name))) as found:
            device = found.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16)
            print(found.getsockname()[0], device.rstrip(bytes(1)).decode())
    except OSError:
        continue
participant.close()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="sockets are listed on Linux alone")
def test_localhost_leaves_no_socket_that_hears_another_interface() -> None:
    environment = {**os.environ, "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    environment.pop("CYCLONEDDS_URI", None)
    command = [sys.executable, "-c", _SOCKETS]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    sockets = found.stdout.splitlines()
    assert sockets
    assert set(sockets) <= {"0.0.0.0 lo", "127.0.0.1 "}
