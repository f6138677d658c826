# SPDX-License-Identifier: Apache-2.0
"""From samples to the rows of a linear regression, for each class of robot."""
