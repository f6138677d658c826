# SPDX-License-Identifier: Apache-2.0
"""Reports of an identification: one self-contained page, and pictures."""
