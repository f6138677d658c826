# SPDX-License-Identifier: Apache-2.0
"""Six-dimensional stiffness and damping of joints, from recorded poses of links."""
