# SPDX-License-Identifier: Apache-2.0
"""Simulated robots: MuJoCo models of any robot description, scenarios and nodes."""
