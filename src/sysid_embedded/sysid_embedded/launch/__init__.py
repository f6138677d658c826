# SPDX-License-Identifier: Apache-2.0
"""Starts the nodes of a YAML launch file where there is no ROS 2."""
