# SPDX-License-Identifier: Apache-2.0
"""The estimator that runs while the robot works: window, gate, payload and their pipeline."""
