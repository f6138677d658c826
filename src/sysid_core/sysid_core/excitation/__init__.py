# SPDX-License-Identifier: Apache-2.0
"""Motions that make a robot's parameters show themselves."""
