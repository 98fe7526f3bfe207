"""The widths of TGP-UCB and ATA-GP-UCB against numbers worked out by hand, and their coverage."""

import math

import numpy as np
import pytest

from stoic.confidence import FeatureTruncation, GrowingTruncation
from stoic.data import Observations
from stoic.defences import Truncation
from stoic.domains import Box, Finite
from stoic.kernels import RBF, Scaled
from stoic.models import GaussianProcess
from stoic.posteriors import Prior
from stoic.posteriors.levels import FeatureLevel

BOX = Box([0.0], [1.0])


def posterior(noise=0.5):
    """Two plays of one place: information 0.5 ln(1 + 2 * 2 / 0.5) = ln 3 for a noise of 0.5."""
    told = Observations(np.full((2, 1), 0.2), np.zeros(2), np.full(2, np.nan))
    return GaussianProcess(Prior(Scaled(RBF(0.3), 2.0), noise))(BOX, told)


def test_growing_truncation_theory():
    # t = 3, so s = 2: b = 4^(1/2) 2^(1/4) = 2 * 1.189207115; inner = 2 ln 3 + 2 ln 10 = 2 ln 30
    # = 6.802394763, root 2.608140096; 3 / sqrt(0.5) = 4.242640687; B = 1.5.
    width = GrowingTruncation(1.5, 4.0, delta=0.1, constants="theory")
    assert width(posterior(), 3) == pytest.approx(
        1.5 + 4.242640687 * 2.0 * 1.189207115 * 2.608140096, rel=1e-9
    )
    assert width(posterior(), 1) == 1.5  # nothing was told


def test_growing_truncation_practice():
    # t = 16, alpha = 1/2, v = 8: b = 8^(2/3) 16^(1/3) = 4 * 2.5198421; sqrt(ln 16) = 1.665109222.
    width = GrowingTruncation(1.5, 8.0, 0.5)
    assert width(posterior(), 16) == pytest.approx(
        1.5 * math.sqrt(0.5) + 4.0 * 2.519842100 * 1.665109222, rel=1e-9
    )
    assert width(posterior(), 1) == pytest.approx(1.5 * math.sqrt(0.5), rel=1e-12)


@pytest.mark.parametrize(
    ("constants", "drawn", "inside"),
    [
        ("theory", False, 2 * 32 * 1000 / 0.1),
        ("theory", True, 4 * 32 * 1000 / 0.1),
        ("practice", False, 32 * 1000),
        ("practice", True, 33 * 1000),
    ],
)
def test_the_four_logarithms(constants, drawn, inside):
    level = FeatureLevel(1000, 0.1, constants, drawn)
    assert level.logarithm(32) == pytest.approx(math.log(inside), rel=1e-14)
    # alpha = 1: sqrt(v / L), whatever t; alpha = 1/2: (v / L)^(2/3) t^(1/6).
    assert level(9, 32, 5.0, 1.0) == pytest.approx(math.sqrt(5.0 / math.log(inside)), rel=1e-14)
    expected = (5.0 / math.log(inside)) ** (2 / 3) * 64 ** (1 / 6)
    assert level(64, 32, 5.0, 0.5) == pytest.approx(expected, rel=1e-14)


def test_feature_truncation():
    # alpha = 1/2, v = 8: v^(2/3) = 4; t = 65, so t - 1 = 64 and 64^(1/6) = 2; m = 9, noise 0.5.
    L = math.log(2 * 9 * 1000 / 0.1)
    theory = FeatureTruncation(1.5, 8.0, FeatureLevel(1000, 0.1, "theory"), 0.5, 9)
    assert theory(posterior(), 65) == pytest.approx(
        1.5 + 4 * math.sqrt(18.0) * 4.0 * L ** (1 / 3) * 2.0, rel=1e-12
    )
    L = math.log(4 * 9 * 1000 / 0.1)
    drawn = FeatureTruncation(1.5, 8.0, FeatureLevel(1000, 0.1, "theory", True), 0.5, 9, 0.19)
    assert drawn(posterior(), 65) == pytest.approx(  # 1 / sqrt(0.81) = 1 / 0.9
        1.5 * (1.0 + 1.0 / 0.9) + 4 * math.sqrt(18.0) * 4.0 * L ** (1 / 3) * 2.0, rel=1e-12
    )
    L = math.log(9 * 1000)
    practice = FeatureTruncation(1.5, 8.0, FeatureLevel(1000), 0.5, 9)
    assert practice(posterior(), 64) == pytest.approx(
        1.5 * math.sqrt(0.5) + 3.0 * 4.0 * L ** (1 / 3) * 2.0, rel=1e-12
    )


def test_a_posterior_without_features_is_refused_without_their_number():
    with pytest.raises(ValueError, match="needs a model with features or their number, got a"):
        FeatureTruncation(1.0, 1.0, FeatureLevel(100))(posterior(), 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GrowingTruncation(0.0, 1.0), "bound on the norm"),
        (lambda: GrowingTruncation(1.0, math.inf), "moment bound"),
        (lambda: GrowingTruncation(1.0, 1.0, constants="thoery"), "'practice' or 'theory'"),
        (lambda: FeatureTruncation(1.0, 1.0, FeatureLevel(9), 2.0), r"\(0, 1\]"),
        (lambda: FeatureTruncation(1.0, 1.0, FeatureLevel(9), distortion=1.0), "distortion"),
        (lambda: FeatureLevel(0), "horizon >= 1"),
        (lambda: FeatureLevel(9, 1.0), "0 < delta < 1"),
    ],
)
def test_a_slip_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_theory_of_tgp_covers_f():
    # Student-t noise with 2.5 degrees of freedom, alpha = 1: v = B^2 + 2.5 / 0.5. The theorem
    # allows 20 % of 40 campaigns to leave the band anywhere, ever; it is not tight, so none does.
    grid = Finite(np.linspace(0.0, 1.0, 30))
    prior = Prior(RBF(0.2), 1.0)
    left = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        a = rng.standard_normal(4)
        s = rng.uniform(size=(4, 1))
        a /= math.sqrt(a @ prior.kernel(s, s) @ a)  # of norm 1, so |f| <= 1
        f = prior.kernel(grid.points, s) @ a
        model = GaussianProcess(prior, Truncation(6.0))
        width = GrowingTruncation(1.0, 6.0, delta=0.2, constants="theory")
        arms = rng.integers(30, size=60)
        y = f[arms] + rng.standard_t(2.5, 60)
        told = Observations(grid.points[arms], y, np.full(60, np.nan), arms)
        belief = None
        outside = False
        for t in range(1, 61):
            belief = model(grid, told.until(t), belief)
            mean, std = belief.predict(grid.points)
            outside |= bool(np.any(np.abs(f - mean) > width(belief, t + 1) * std))
        left += outside
    assert left <= 8
