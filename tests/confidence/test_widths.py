"""Each width against a number worked out by hand, with the arithmetic beside it."""

import math

import numpy as np
import pytest

import literal
from stoic.confidence import (
    BoundedNoise,
    CompactUnion,
    CorruptionCount,
    FiniteUnion,
    Fixed,
    Schedule,
    SelfNormalised,
    Theory,
    influence,
    psi,
)
from stoic.data import Observations
from stoic.defences import AdaptivePlateau, Anchored, Plateau, Trust
from stoic.domains import Box
from stoic.kernels import RBF, Scaled
from stoic.models import GaussianProcess
from stoic.posteriors import Prior

BOX = Box([0.0], [1.0])


def posterior(observed=(0.3, 0.1), x=(0.2, 0.2), noise=0.5, variance=2.0, defence=None):
    """By default two plays of one place: information 0.5 ln(1 + 2 * 2 / 0.5) = 0.5 ln 9 = ln 3."""
    observations = Observations(np.array(x)[:, None], np.array(observed), np.full(len(x), np.nan))
    prior = Prior(Scaled(RBF(0.3), variance), noise)
    return GaussianProcess(prior, defence or Trust())(BOX, observations)


def test_the_posterior_of_these_tests_has_information_ln_3():
    assert posterior().information == pytest.approx(math.log(3.0), rel=1e-12)
    assert posterior().max_variance == 2.0


def test_fixed():
    assert Fixed()(posterior(), 5) == 2.0
    assert Fixed(0.7)(posterior(), 1) == 0.7
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="width is a number >= 0"):
            Fixed(wrong)


def test_schedule():
    # max(1, 1.7 sqrt(2 ln(t + 2))): t = 1: ln 3 = 1.0986122887, 2 ln 3 = 2.1972245773,
    # root 1.4823038073, times 1.7 = 2.5199164725.
    assert Schedule()(posterior(), 1) == pytest.approx(2.5199164725, rel=1e-9)
    # t = 98: ln 100 = 4.6051701860, doubled 9.2103403720, root 3.0348542587, times 1.7.
    assert Schedule()(posterior(), 98) == pytest.approx(5.1592522398, rel=1e-9)
    assert Schedule(scale=0.1)(posterior(), 1) == 1.0  # never below `least`


def test_finite_union():
    # N = 100, t = 10, delta = 0.1: 100 * 100 * pi^2 / 0.6 = 164493.40668; ln = 12.0106256...
    inside = 100 * 10**2 * 9.869604401089358 / (6 * 0.1)
    assert inside == pytest.approx(164493.40668482262)
    assert FiniteUnion(100, 0.1)(posterior(), 10) == pytest.approx(
        math.sqrt(2 * 12.010625657), rel=1e-8
    )
    assert FiniteUnion(1, 0.5).at(1) == pytest.approx(math.sqrt(2 * math.log(math.pi**2 / 3)))


def test_compact_union():
    # d = 2, a = 3, b = 0.5, r = 4, delta = 0.2, t = 5:
    # first: 2 ln(2 pi^2 25 / 0.6) = 2 ln(822.467033424) = 2 * 6.712308...
    first = 2 * math.log(822.4670334241132)
    # second: 2 * 2 * ln(25 * 2 * 0.5 * 4 * sqrt(ln(4 * 2 * 3 / 0.2))) = 4 ln(100 sqrt(ln 120))
    second = 4 * math.log(100 * math.sqrt(math.log(120.0)))
    width = CompactUnion(dim=2, a=3.0, b=0.5, extent=4.0, delta=0.2)
    assert width(posterior(), 5) == pytest.approx(math.sqrt(first + second), rel=1e-12)
    assert width.at(5) == pytest.approx(math.sqrt(13.42462 + 21.55240), rel=1e-5)


def test_self_normalised():
    # B + R / sqrt(noise) sqrt(2 ln 3 + 2 ln(1 / delta)), delta = 1/9: 2 ln 27 = 6.5916737320.
    width = SelfNormalised(norm=1.5, delta=1.0 / 9.0)
    assert width(posterior(), 77) == pytest.approx(1.5 + math.sqrt(6.5916737320), rel=1e-10)
    # R = 0.25, noise 0.5: ratio 0.35355339059
    width = SelfNormalised(norm=1.5, noise_sd=0.25, delta=1.0 / 9.0)
    assert width(posterior(), 1) == pytest.approx(
        1.5 + 0.35355339059 * math.sqrt(6.5916737320), rel=1e-10
    )
    with pytest.raises(ValueError, match="norm is positive"):
        SelfNormalised(0.0)


def test_bounded_noise():
    # sqrt(2 * 3 + 300 ln 3 ln^3(10 / 0.1)): ln 100 = 4.605170186, cubed 97.66483...
    inside = 6.0 + 300.0 * 1.0986122887 * 4.605170186**3
    assert BoundedNoise(3.0, 0.1)(posterior(), 10) == pytest.approx(math.sqrt(inside), rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
@pytest.mark.parametrize(
    "build",
    [
        lambda delta: FiniteUnion(10, delta),
        lambda delta: CompactUnion(2, delta=delta),
        lambda delta: SelfNormalised(1.0, delta=delta),
        lambda delta: BoundedNoise(1.0, delta),
    ],
)
def test_a_failure_probability_lies_between_0_and_1(build, delta):
    with pytest.raises(ValueError, match="between 0 and 1"):
        build(delta)


@pytest.mark.parametrize(
    "build",
    [
        lambda wrong: FiniteUnion(wrong),
        lambda wrong: CompactUnion(2, extent=wrong),
        lambda wrong: SelfNormalised(wrong),
        lambda wrong: Schedule(scale=wrong),
        lambda wrong: CorruptionCount(Fixed(), 2, norm=wrong),
        lambda wrong: CorruptionCount(Fixed(), 2, deviation=wrong),
        lambda wrong: CorruptionCount(Fixed(), wrong),
        lambda wrong: Theory(norm=wrong),
        lambda wrong: Theory(horizon=wrong),
        lambda wrong: Theory(noise_sd=wrong),
        lambda wrong: Theory(gain=wrong),
    ],
)
@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_constants_that_make_no_width_are_refused(build, wrong):
    with pytest.raises(ValueError, match=str(wrong)):
        build(wrong)


# The enlargement


def test_psi():
    # n = 3, kappa = 2, noise = 0.5: ratio 12; 1 + 12 * 13 = 157.
    assert psi(3, 2.0, 0.5) == pytest.approx(math.sqrt(157.0), rel=1e-14)
    assert psi(0, 2.0, 0.5) == 1.0


def test_psi_bounds_the_deviation_without_the_corrupted_rows():
    # Lemma: sd without n rows <= Psi(n) * sd with them, for rows anywhere and of any noise >= it.
    rng = np.random.default_rng(0)
    z = np.linspace(0.0, 1.0, 41)[:, None]
    for n in (1, 2, 4):
        for _ in range(20):
            x = tuple(rng.random(8))
            whole = posterior(tuple(np.zeros(8)), x).predict(z)[1]
            without = posterior(tuple(np.zeros(8 - n)), x[n:]).predict(z)[1]
            assert (without <= psi(n, 2.0, 0.5) * whole * (1 + 1e-9)).all()


def test_influence():
    # L = 3, c = 4, noise = 0.25 (sigma 0.5), deviation 2:
    # 4 * 0.25 / (3 * 1.7320508 * 4) = 0.0481125; C_1 = 0.5 / 1.41421356 * (5 + 2 + 0.0481125)
    # C_w = 1.41421356 C_1 / 0.25 = 0.5 * 7.0481125 / 0.25 = 14.096225
    assert influence(3.0, 4.0, 0.25, 2.0) == pytest.approx(14.096225, rel=1e-6)


def test_the_influence_bound_bounds_the_weighted_residual():
    # |w (y - m - mu)| <= C_1 for every y, on a dense set of y, with mu within `deviation` of g.
    L, c, noise, deviation = 0.7, 0.4, 0.09, 0.6
    y = np.concatenate([np.linspace(-20, 20, 20_001), 10.0 ** np.arange(2, 12)])
    z = np.maximum(np.abs(y) - L, 0.0)
    w = math.sqrt(noise / 2.0) / np.sqrt(1.0 + z**2 / c**2)
    m = -2.0 * noise * np.sign(y) * z / (c**2 + z**2)
    C_1 = influence(L, c, noise, deviation) * noise / math.sqrt(2.0)
    for mu in (-deviation, 0.0, deviation):
        assert np.abs(w * (y - m - mu)).max() <= C_1


def enlarged_literally(base, corruptions, norm, variance, plateau, noise, kappa):
    shapes = np.atleast_1d(plateau.shape) * (math.sqrt(noise) if plateau.unit == "noise" else 1.0)
    L, deviation = float(np.max(plateau.half_width)), (norm + base) * math.sqrt(kappa)
    C_w = literal.influence(L, shapes, noise, deviation).max()  # of each row
    factor = literal.psi(corruptions, kappa, noise) if variance else 1.0
    return (base + C_w * math.sqrt(corruptions)) * factor


@pytest.mark.parametrize("variance", [True, False])
@pytest.mark.parametrize("unit", ["value", "noise"])
@pytest.mark.parametrize("corruptions", [1, 4, "distrusted"])
def test_enlarged(corruptions, unit, variance):
    defence = Plateau(0.2, 0.3, 0.0, unit)
    believed = posterior((0.1, 0.15, 3.0, math.nan), (0.1, 0.4, 0.5, 0.9), defence=defence)
    assert believed.distrusted == 2
    count = 2 if corruptions == "distrusted" else corruptions
    width = CorruptionCount(FiniteUnion(50, 0.1), corruptions, 1.3, variance)
    expected = enlarged_literally(FiniteUnion(50, 0.1).at(7), count, 1.3, variance, defence, 0.5, 2)
    assert width(believed, 7) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("shape", [(1.0, 100.0), (0.001, 1.0), (0.2, 0.3)])
def test_rows_may_have_shapes_of_their_own(shape):
    defence = Plateau(np.full(2, 0.2), np.array(shape), np.zeros(2))
    believed = posterior((0.1, 3.0), (0.1, 0.5), defence=defence)
    widths = [
        CorruptionCount(Fixed(2.0), 1)(
            posterior((0.1, 3.0), (0.1, 0.5), defence=Plateau(0.2, one, 0.0)), 4
        )
        for one in shape
    ]
    assert CorruptionCount(Fixed(2.0), 1)(believed, 4) == pytest.approx(max(widths))


def test_without_corruptions_it_is_the_base_bit_for_bit():
    for base in (Fixed(2.0), FiniteUnion(50), Schedule(), SelfNormalised(1.0)):
        for believed in (posterior(), posterior(defence=Plateau(0.2, 0.3))):
            assert CorruptionCount(base, 0)(believed, 9) == base(believed, 9)
    clean = posterior((0.1, 0.0), defence=Plateau(5.0, 0.3))
    assert CorruptionCount(Fixed(2.0), "distrusted")(clean, 3) == 2.0


def test_it_takes_the_plateau_of_the_defence_that_settled():
    observed, x = (0.3, 0.1, 4.0), (0.2, 0.4, 0.6)
    adaptive = posterior(observed, x, defence=AdaptivePlateau(2.0, 0.7, "scale"))
    expected = enlarged_literally(2.0, 1, 1.0, True, adaptive.fitted_defence.plateau, 0.5, 2.0)
    assert CorruptionCount(Fixed(2.0), 1)(adaptive, 4) == pytest.approx(expected, rel=1e-12)
    anchor = GaussianProcess(Prior(Scaled(RBF(0.3), 2.0), 0.5), Plateau(1.0, 1.0))
    for prequential in (False, True):
        anchored = posterior(
            observed, x, defence=Anchored(anchor, 0.5, 0.7, "scale", prequential=prequential)
        )
        expected = enlarged_literally(2.0, 1, 1.0, True, anchored.fitted_defence.plateau, 0.5, 2.0)
        assert CorruptionCount(Fixed(2.0), 1)(anchored, 4) == pytest.approx(expected, rel=1e-12)


def test_a_scale_beyond_all_reason_gives_a_wide_band_and_not_an_infinite_one():
    believed = posterior((0.1, 0.2), defence=Plateau(1e300, 1e-300))
    assert math.isfinite(CorruptionCount(Fixed(2.0), 2)(believed, 3))
    assert CorruptionCount(Fixed(2.0), 2)(believed, 3) >= 1e50
    endless = posterior((0.1, 0.2), defence=Plateau(math.inf, 1.0))
    assert math.isfinite(CorruptionCount(Fixed(2.0), 2)(endless, 3))


def test_before_the_first_observation_nothing_was_corrupted():
    anchor = GaussianProcess(Prior(Scaled(RBF(0.3), 2.0), 0.5), Plateau(1.0, 1.0))
    nothing = posterior((), (), defence=Anchored(anchor, prequential=True))
    assert CorruptionCount(Fixed(2.0), 3)(nothing, 1) == 2.0


def test_a_defence_without_a_plateau_is_refused_with_what_to_do():
    for believed in (posterior(), posterior((), ())):
        for corruptions in (1, "distrusted"):
            with pytest.raises(ValueError, match="needs a defence with a plateau, got Trust: use"):
                CorruptionCount(Fixed(2.0), corruptions)(believed, 3)
