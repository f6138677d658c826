# SPDX-License-Identifier: Apache-2.0
"""The part of rclpy's API that the project's nodes use, for machines without ROS 2."""

from .finder import install, is_installed

__all__ = ["install", "is_installed"]
