import math

import pytest

from stoic.kernels import RBF
from stoic.posteriors import Prior


@pytest.mark.parametrize("noise", [0.0, -1.0, math.nan, math.inf, "0.1"])
def test_the_noise_is_a_positive_number(noise):
    with pytest.raises(ValueError, match="positive noise variance"):
        Prior(RBF(), noise)


@pytest.mark.parametrize("mean", [math.nan, math.inf, "0"])
def test_the_mean_is_finite(mean):
    with pytest.raises(ValueError, match="finite mean"):
        Prior(RBF(), 1.0, mean)
