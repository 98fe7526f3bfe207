import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import literal
from literal import one
from stoic import recipes
from stoic.data import Observations
from stoic.defences import AdaptivePlateau, Anchored, Plateau
from stoic.domains import Box
from stoic.kernels import Matern52, Scaled
from stoic.learner import Learner
from stoic.models import GaussianProcess
from stoic.posteriors import Prior
from stoic.posteriors.fitting import Fitting
from stoic.posteriors.scales import median_and_mad

BOX = Box([0.0], [1.0])
GRID = BOX.grid(31)
PRIOR = Prior(Scaled(Matern52(0.3), 1.5), 0.04, 1.0)
ACTING = Prior(Scaled(Matern52(0.2), 2.0), 0.05, 1.2)
ANCHOR = Plateau(2.0, 0.7, 1.0)


def some(n, finite=False):
    rng = np.random.default_rng(1)
    arms = rng.integers(31, size=n)
    x = GRID.points[arms]
    y = 1.0 + np.sin(6.0 * x[:, 0]) + 0.2 * rng.standard_normal(n)
    y[3::7] += 6.0
    return Observations(x, y, np.full(n, np.nan), arms if finite else None)


def anchor_mean(x, y, z):
    """The posterior mean of the anchor, with explicit inverses."""
    values, noise, _ = literal.plateaus(y, PRIOR.noise, 2.0, 0.7, 1.0)
    return literal.posterior(PRIOR.kernel, x, values, noise, z, PRIOR.mean)[0]


def assert_acting(targets, observations, centres, unit="value"):
    expected = literal.plateaus(observations.observed, ACTING.noise, 0.5, 0.8, centres, unit)
    assert_allclose(targets.values, expected[0], atol=1e-9)
    assert_allclose([targets.noise, targets.trust], expected[1:], rtol=1e-8)


@pytest.mark.parametrize("finite", [False, True])
@pytest.mark.parametrize("unit", ["scale", "noise"])
@pytest.mark.parametrize("n", [1, 2, 20])
def test_the_authors_form_is_its_naive_twin(n, unit, finite):
    # The anchor knows all but the newest row; its mean at *all* rows centres the acting plateau.
    observations = some(n, finite)
    domain = GRID if finite else BOX
    defence = Anchored(GaussianProcess(PRIOR, ANCHOR), 0.5, 0.8, unit, one)
    targets = defence.fit(domain, observations)(observations, ACTING)
    centres = anchor_mean(observations.x[:-1], observations.observed[:-1], observations.x)
    unit = "noise" if unit == "noise" else "value"
    assert_acting(targets, observations, centres, unit)


@pytest.mark.parametrize("finite", [False, True])
def test_the_prequential_form_is_its_naive_twin(finite):
    # Row t is weighed by the anchor given rows 0 to t - 1, once and for all.
    observations = some(20, finite)
    domain = GRID if finite else BOX
    defence = Anchored(GaussianProcess(PRIOR, ANCHOR), 0.5, 0.8, "scale", one, prequential=True)
    targets = defence.fit(domain, observations)(observations, ACTING)
    centres = [
        anchor_mean(observations.x[:t], observations.observed[:t], observations.x[[t]])[0]
        for t in range(20)
    ]
    assert_acting(targets, observations, centres)


def test_settling_row_by_row_or_at_once_is_the_same():
    observations = some(20)
    for prequential in (False, True):
        anchor = GaussianProcess(PRIOR, ANCHOR)
        defence = Anchored(anchor, 0.5, 0.8, "scale", median_and_mad, prequential)
        settled = None
        for n in (1, 2, 5, 6, 13, 20):
            settled = defence.fit(BOX, observations.until(n), settled)
        at_once = defence.fit(BOX, observations)
        values = (each(observations, ACTING).values for each in (settled, at_once))
        assert_allclose(*values, atol=1e-9)


def test_the_unit_of_the_acting_plateau_is_the_scale_of_the_results():
    observations = some(20)
    defence = Anchored(GaussianProcess(PRIOR, ANCHOR), 0.5, 0.8, "scale")
    plateau = defence.fit(BOX, observations).plateau
    _, scale = median_and_mad(BOX, observations)
    assert_allclose([plateau.half_width, plateau.shape], [0.5 * scale, 0.8 * scale])
    plateau = Anchored(GaussianProcess(PRIOR, ANCHOR), 0.5, 0.8, "noise").fit(
        BOX, observations
    ).plateau  # fmt: skip
    assert_allclose([plateau.half_width, plateau.shape], [0.5 * scale, 0.8])
    assert plateau.unit == "noise"


def test_the_declaration_follows_the_form():
    anchor = GaussianProcess(PRIOR, ANCHOR)
    assert Anchored(anchor).revises
    assert not Anchored(anchor, prequential=True).revises
    with pytest.raises(TypeError, match="must be fitted"):
        Anchored(anchor)(some(2), ACTING)


def test_the_authors_form_does_revise():
    # The declaration is not merely cautious: an earlier target moves.
    observations = some(20)
    defence = Anchored(GaussianProcess(PRIOR, ANCHOR), 0.2, 0.8, "scale", one)
    short = defence.fit(BOX, observations.until(10))(observations.until(10), ACTING)
    long = defence.fit(BOX, observations)(observations, ACTING)
    assert np.abs(long.values[:10] - short.values).max() > 1e-3


@pytest.mark.parametrize("lie", [1e6, 1e300, -1e300, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("prequential", [False, True])
@pytest.mark.parametrize("unit", ["scale", "noise"])
def test_one_lie_among_thirty_does_not_move_the_acting_model(lie, prequential, unit):
    observations = some(30)
    honest = Observations(
        observations.x, 1.0 + np.sin(6.0 * observations.x[:, 0]), observations.noise
    )
    others = np.arange(30) != 11
    observed = honest.observed.copy()
    observed[11] = lie
    lying = Observations(observations.x, observed, observations.noise)
    without = Observations(observations.x[others], observed[others], np.full(29, np.nan))
    defence = Anchored(GaussianProcess(PRIOR, ANCHOR), 2.0, 0.5, unit, one, prequential)
    model = GaussianProcess(ACTING, defence)
    posterior, expected = model(BOX, lying), model(BOX, without)
    (mean, std), (mean_without, std_without) = (
        p.predict(GRID.points) for p in (posterior, expected)
    )
    sd = np.sqrt(ACTING.noise)
    assert np.abs(mean - mean_without).max() < 1e-6 * sd
    assert np.abs(std - std_without).max() < 1e-6 * sd
    assert posterior.fitted_defence(lying, ACTING).trust[11] < 0.01


def test_inside_both_plateaus_it_is_the_plain_process_bit_for_bit():
    observations = some(20)
    wide = Anchored(GaussianProcess(PRIOR, Plateau(100.0, 1.0)), 100.0, 1.0, "scale", one)
    targets = wide.fit(BOX, observations)(observations, ACTING)
    assert_array_equal(targets.values, observations.observed)
    assert_array_equal(targets.noise, np.full(20, ACTING.noise))


def test_an_anchor_has_hyperparameters_of_its_own():
    observations = some(25)
    family = Prior(Scaled(Matern52(1.0)), 0.1)
    anchor = GaussianProcess(family, AdaptivePlateau(), Fitting())
    settled = Anchored(anchor).fit(BOX, observations)
    assert settled.anchor.n == 24
    assert settled.anchor.prior is not family
    assert settled.anchor.prior.kernel.theta[1] != 0.0


def test_the_first_result_after_crashes_is_not_judged_by_nothing():
    learner = Learner(Box([0.0], [1.0]), recipes.a2_rcgp_ucb(), seed=0)
    learner.tell([[0.2], [0.4], [0.7]], [np.nan, np.inf, 2.0])
    assert learner.trust.tolist() == [0.0, 0.0, 1.0]
