# SPDX-License-Identifier: Apache-2.0
"""The daily verbs of a ROS 2 terminal, on real ROS 2 and on the embedded runtime alike."""
