# SPDX-License-Identifier: Apache-2.0
"""ROS 2 nodes of sysid: recorder, identifier, replay and relays. Thin: the core does the work."""
