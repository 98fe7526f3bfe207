import numpy as np
import pytest

from stoic.adversaries import Gaussian


def test_gaussian_has_its_standard_deviation():
    draws = Gaussian(2.0).draw(np.random.default_rng(0), 40_000)
    # 4.5 standard errors each: a false alarm in about 10^5 seeds
    assert abs(draws.mean()) < 4.5 * 2.0 / 200
    assert abs(draws.std() - 2.0) < 4.5 * 2.0 / np.sqrt(2 * 40_000)


def test_no_noise_is_exact():
    noise = Gaussian(0.0)
    assert noise.apply(1.25, noise.draw(np.random.default_rng(0), 1)[0]) == 1.25


def test_draws_in_blocks_continue_the_stream():
    whole = Gaussian(1.0).draw(np.random.default_rng(5), 10)
    rng = np.random.default_rng(5)
    parts = [Gaussian(1.0).draw(rng, 4), Gaussian(1.0).draw(rng, 6)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize("sd", [-1.0, np.inf, np.nan])
def test_impossible_noise_is_refused(sd):
    with pytest.raises(ValueError, match="finite and at least 0"):
        Gaussian(sd)
