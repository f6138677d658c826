# SPDX-License-Identifier: Apache-2.0
"""Identification of robot dynamics, free of ROS: models, regression, estimation, gate, reports."""
