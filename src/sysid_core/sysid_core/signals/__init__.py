# SPDX-License-Identifier: Apache-2.0
"""From recorded or live signals to uniform, filtered, differentiated samples."""
