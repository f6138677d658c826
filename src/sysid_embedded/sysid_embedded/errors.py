# SPDX-License-Identifier: Apache-2.0
"""Errors of the embedded runtime that have no counterpart in rclpy."""

from sysid_core.errors import SysidError

__all__ = ["DefinitionError", "LaunchError", "StartError", "YamlError"]


class DefinitionError(SysidError):
    """A message or service definition is missing or can't be read."""


class LaunchError(SysidError):
    """A launch file asks for something that is wrong or not supported."""


class StartError(SysidError, RuntimeError):
    """The runtime cannot join the domain as the command line and the environment ask."""


class YamlError(SysidError):
    """A parameter file or value isn't what ROS 2's parser accepts."""
