# SPDX-License-Identifier: Apache-2.0
"""Benchmarks and reproduced experiments; ``make bench`` runs them all."""
