# SPDX-License-Identifier: Apache-2.0
"""The verbs of the ``sysid`` command, one per file."""
