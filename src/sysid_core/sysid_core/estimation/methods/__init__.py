# SPDX-License-Identifier: Apache-2.0
"""The estimators: each module holds one, under its name, as ``ESTIMATOR``."""
