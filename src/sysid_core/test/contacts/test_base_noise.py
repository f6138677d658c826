# SPDX-License-Identifier: Apache-2.0
"""What odometry and feet tell of a base's motion."""

import numpy as np

from sysid_core.contacts.base_noise import BaseNoise, _estimated


def test_odometry_that_tells_nothing_leaves_what_feet_tell() -> None:
    """Stamps that are all the same make its derivative a number without a bound."""
    rng = np.random.default_rng(0)
    maps, feet = rng.normal(size=(20, 1, 3, 6)), rng.normal(size=(20, 1, 3))
    active = np.ones((20, 1), dtype=bool)
    found = _estimated(maps, feet, active, BaseNoise(1e-4, 1.0, 0.9, 1e300, 1e300))
    assert np.isfinite(found.error).all()
    assert np.isfinite(found.covariance).all()
    left = feet - (maps @ found.error[:, None, :, None])[..., 0]
    np.testing.assert_allclose(left, 0.0, atol=1e-3)
