# SPDX-License-Identifier: Apache-2.0
"""Model-based joint control with parameters that are identified online."""
