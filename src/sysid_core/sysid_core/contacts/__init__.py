# SPDX-License-Identifier: Apache-2.0
"""Contacts of legged robots: estimated from torque, checked against motion, made fit for use."""
