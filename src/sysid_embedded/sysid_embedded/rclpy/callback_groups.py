# SPDX-License-Identifier: Apache-2.0
"""Which callbacks may run at the same time."""

__all__ = ["MutuallyExclusiveCallbackGroup"]


class MutuallyExclusiveCallbackGroup:
    """Callbacks of a group run one at a time, as all callbacks do here."""
