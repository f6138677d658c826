# SPDX-License-Identifier: Apache-2.0
"""What all nodes share: messages to arrays and back, parameters, quality of service, main."""
