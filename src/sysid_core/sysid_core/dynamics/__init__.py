# SPDX-License-Identifier: Apache-2.0
"""The dynamics of each class of robot: friction law, torque, and rows for identification."""
