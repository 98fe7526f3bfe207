"""Recipes against heavy tails: their constants, their behaviour, and a first look at regret."""

import math

import numpy as np
import pytest

from stoic import testing
from stoic.confidence import FeatureTruncation, Fixed, GrowingTruncation, Schedule, Theory
from stoic.defences import AdaptiveTruncation, MedianOfMeans, Truncation
from stoic.domains import Box, Finite
from stoic.kernels import RBF, Matern52, Scaled
from stoic.learner import Learner
from stoic.policies import UCB, Initial
from stoic.posteriors import Prior
from stoic.posteriors.features import Fourier, Nystroem
from stoic.posteriors.levels import FeatureLevel
from stoic.recipes import ata_gp_ucb, gp_ucb, mom_gp_ucb, tgp_ucb

GRID = Finite(np.linspace(0.0, 1.0, 40))
BOX = Box([2.0], [4.0])
PRIOR = Prior(RBF(0.2), 1.0)


def test_tgp_is_the_papers():
    theory = Theory(norm=1.5, delta=0.2)
    learner = Learner(GRID, tgp_ucb(prior=PRIOR, moment=4.0, alpha=0.8, theory=theory))
    assert learner.model.defence == Truncation(4.0, 0.8)
    assert learner.confidence == GrowingTruncation(1.5, 4.0, 0.8, 0.2, "theory")
    assert Learner(GRID, tgp_ucb(prior=PRIOR, moment=4.0)).confidence == GrowingTruncation(1.0, 4.0)


def test_ata_is_the_papers():
    theory = Theory("practice", norm=1.5, horizon=20_000)
    recipe = ata_gp_ucb(prior=PRIOR, features=Fourier(32), moment=4.0, theory=theory)
    learner = Learner(GRID, recipe)
    level = FeatureLevel(20_000)
    assert learner.model.features == Fourier(32)
    assert learner.model.level == level
    assert learner.confidence == FeatureTruncation(1.5, 4.0, level)
    theory = Theory(delta=0.2, horizon=500)
    features = Nystroem(0.3, 500, 0.2, "theory", seed=7)
    recipe = ata_gp_ucb(prior=PRIOR, moment=4.0, alpha=0.7, features=features, theory=theory)
    level = FeatureLevel(500, 0.2, "theory", drawn=True)
    expected = FeatureTruncation(1.0, 4.0, level, 0.7, distortion=0.3)
    assert Learner(GRID, recipe).confidence == expected
    assert not learner.model.level.drawn
    default = Learner(GRID, ata_gp_ucb(prior=PRIOR, theory=theory)).model.features
    assert default == Nystroem(0.1, 500, 0.2, "theory")


def test_a_moment_is_a_positive_number():
    for moment in ("4", -1.0, math.inf):
        with pytest.raises(ValueError, match="A moment bound is a "):
            Learner(GRID, ata_gp_ucb(prior=PRIOR, moment=moment))
    Learner(GRID, ata_gp_ucb(prior=PRIOR, moment=np.array(4.0), alpha=np.float32(0.5)))


def test_the_default_moment_is_what_the_prior_expects():
    prior = Prior(Scaled(RBF(0.2), 3.0), 1.0, 10.0)
    for alpha, expected in ((1.0, 4.0), (0.5, 4.0**0.75)):
        learner = Learner(GRID, tgp_ucb(prior=prior, alpha=alpha))
        assert learner.model.defence.moment == pytest.approx(expected)
    # And it bounds the moment of a draw with this variance, whatever its shape.
    rng = np.random.default_rng(0)
    for draw in (rng.standard_normal(10**5), rng.standard_t(2.2, 10**5)):
        y = 2.0 * draw / math.sqrt(np.mean(draw**2))
        assert np.mean(np.abs(y) ** 1.5) <= 4.0**0.75 * (1.0 + 1e-12)


def test_without_a_prior_moments_are_in_units_of_the_results():
    learner = Learner(BOX, tgp_ucb(moment=3.0, alpha=0.5))
    assert learner.model.defence == AdaptiveTruncation(3.0, 0.5)
    assert isinstance(Learner(BOX, ata_gp_ucb()).model.features, Nystroem)
    for recipe in (tgp_ucb, ata_gp_ucb):
        assert Learner(BOX, recipe()).confidence == Schedule()
        with pytest.raises(ValueError, match="for a given prior"):
            Learner(BOX, recipe(theory=Theory()))


def test_mom():
    learner = Learner(GRID, mom_gp_ucb(prior=PRIOR, delta=0.01))
    assert learner.model.defence == MedianOfMeans(37)  # 8 ln 100 = 36.8


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": "rff"}, "'qff' or 'nystroem'"),
        ({"theory": Theory(noise_sd=1.0)}, "no use for noise_sd in its theory"),
        ({"moment": math.inf}, "smaller alpha if the moment is infinite"),
        ({"alpha": 0.0}, r"is in \(0, 1\]"),
        ({"features": Fourier(2000)}, "more than the budget"),
    ],
)
def test_a_slip_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Learner(GRID, ata_gp_ucb(prior=PRIOR, **settings))


def test_qff_refuses_what_it_cannot_embed_when_it_is_made():
    with pytest.raises(ValueError, match="squared exponential kernel, got Matern52"):
        Learner(GRID, ata_gp_ucb(prior=Prior(Matern52(0.2), 1.0), features="qff"))
    with pytest.raises(ValueError, match="need a given prior"):
        Learner(GRID, ata_gp_ucb(features="qff"))
    with pytest.raises(ValueError, match="give one lengthscale, or 2 of them"):
        Learner(
            Box([0.0, 0.0], [1.0, 1.0]),
            ata_gp_ucb(prior=Prior(RBF(np.array([0.1, 0.2, 0.3])), 1.0)),
        )


@pytest.mark.parametrize("features", ["qff", "nystroem"])
@pytest.mark.parametrize("constants", ["practice", "theory"])
@pytest.mark.parametrize("domain", [GRID, BOX, Box([0.0, 1.0], [1.0, 3.0])], ids=repr)
def test_every_setting_keeps_the_contract(features, constants, domain):
    prior = Prior(RBF(0.5 * domain.widths), 0.5, 1.0)
    testing.check_learner(
        lambda: Learner(
            domain,
            ata_gp_ucb(
                prior=prior, features=features, theory=Theory(constants), policy=Initial(UCB(2), 2)
            ),
            seed=1,
        ),
        rounds=5,
    )


def regret(learner, f, draws):
    total = 0.0
    for draw in draws:
        choice = learner.ask()
        learner.tell(choice.x, f[choice.arm] + draw)
        total += f.max() - f[choice.arm]
    return total / len(draws)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_truncation_in_features_beats_truncation_of_results(seed):
    # Figure 1 (a) in small, on the same draws: in each of 3 campaigns, for both kinds of features.
    T = 4000
    rng = np.random.default_rng([20190, seed])
    f = PRIOR.kernel(GRID.points, rng.random((100, 1))) @ rng.uniform(-1.0, 1.0, 100)
    f /= np.abs(f).max()
    draws = rng.standard_t(3, T)
    tgp = regret(Learner(GRID, tgp_ucb(prior=PRIOR, moment=4.0)), f, draws)
    for features in (Fourier(16), Nystroem(0.1, T, principal=True)):
        ata = Learner(
            GRID,
            ata_gp_ucb(
                prior=PRIOR, features=features, moment=4.0, theory=Theory("practice", horizon=T)
            ),
        )
        assert regret(ata, f, draws) < tgp - 0.03


def test_every_defence_estimates_better_than_none():
    # Symmetric Pareto noise of index 1.5, alpha 0.4. Errors of 6 campaigns, arms played at random.
    makers = {
        "none": lambda: Learner(GRID, gp_ucb(prior=PRIOR)),
        "tgp": lambda: Learner(GRID, tgp_ucb(prior=PRIOR, moment=5.0, alpha=0.4)),
        "qff": lambda: Learner(
            GRID, ata_gp_ucb(prior=PRIOR, features=Fourier(16), moment=5.0, alpha=0.4)
        ),
        "nystroem": lambda: Learner(GRID, ata_gp_ucb(prior=PRIOR, moment=5.0, alpha=0.4)),
        "mom": lambda: Learner(GRID, mom_gp_ucb(prior=PRIOR)),
    }
    f, errors = np.sin(6.0 * GRID.points[:, 0]), {name: [] for name in makers}
    for seed in range(6):
        rng = np.random.default_rng([5, seed])
        arms = rng.integers(40, size=4000)
        y = f[arms] + rng.choice([-1.0, 1.0], 4000) * rng.pareto(1.5, 4000)
        for name, make in makers.items():
            learner = make()
            learner.tell(GRID.points[arms], y)
            errors[name].append(
                np.sqrt(np.mean((learner.posterior.predict(GRID.points)[0] - f) ** 2))
            )
    for name in ("tgp", "qff", "nystroem", "mom"):
        assert np.mean(errors[name]) < 0.5 * np.mean(errors["none"]), name


def test_with_a_high_level_tgp_is_gp_ucb_choice_by_choice():
    plain = Learner(GRID, gp_ucb(prior=PRIOR, confidence=Fixed(2.0)))
    truncated = Learner(GRID, tgp_ucb(prior=PRIOR, moment=1e12, confidence=Fixed(2.0)))
    for draw in np.random.default_rng(1).standard_t(2, 200):
        a, b = plain.ask(), truncated.ask()
        assert a.arm == b.arm
        plain.tell(a.x, np.sin(5.0 * a.x[0]) + draw)
        truncated.tell(b.x, np.sin(5.0 * b.x[0]) + draw)
