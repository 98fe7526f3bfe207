import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from stoic.confidence import EpochBudget, Fixed
from stoic.data import Observations
from stoic.domains import Box, Finite
from stoic.kernels import RBF, Scaled
from stoic.models import GaussianProcess
from stoic.posteriors import Arms, Prior, as_observed, information_bounds
from stoic.refusal import RefusalError
from stoic.theory import Bound, Family, Power, plan, records, table

E = math.e
dims = st.integers(1, 8)
smoothness = st.floats(0.1, 30.0)
growths = st.floats(0.0, 1.0)


def by_method(family, rounds=50_000, budget=50.0):
    return {bound.method: bound for bound in table(family, rounds, budget)}


def exponents(bound):
    return bound.clean.rounds, bound.corrupted.rounds


@given(dims, smoothness)
def test_matern_exponents_are_those_of_table_1(d, nu):
    bounds = by_method(Family("matern", d, nu))
    rates = {method: exponents(bound) for method, bound in bounds.items()}
    both = 2.0 * nu + d
    assert_allclose(rates["lower bound"], [(nu + d) / both, d / (d + nu)])
    assert_allclose(bounds["lower bound"].corrupted.budget, nu / (d + nu))
    assert_allclose(rates["RGP-UCB"], [(2 * nu + 3 * d) / (4 * nu + 2 * d), (nu + d) / both])
    assert_allclose(rates["RGP-PE"], [(nu + d) / both, 3 * d / (4 * nu + 2 * d)])


@given(dims, smoothness)
def test_the_reductions_solve_their_own_equations(d, nu):
    # (115): Delta T sqrt(D) + sqrt(D T) + C D^1.5 with D = Delta^(-d/nu), Delta = T^-a C^b.
    fine, coarse = Family("matern", d, nu).reductions
    for bound, a, b in ((fine, 0.5, 0.0), (coarse, nu / (d + nu), nu / (d + nu))):
        D = Power(rounds=a * d / nu, budget=-b * d / nu)
        first = Power(rounds=1.0 - a, budget=b) * D**0.5
        terms = [first, (D * Power(rounds=1.0)) ** 0.5, Power(budget=1.0) * D**1.5]
        for rounds, budget in ((1e3, 1.0), (1e6, 30.0), (1e9, 1e4)):
            values = [term.value(rounds, d, budget) for term in terms]
            assert_allclose(bound.value(rounds, d, budget), sum(values[1:]))
            assert values[0] <= sum(values[1:]) * (1.0 + 1e-9)  # what was left out is not more
    assert_allclose(coarse.clean.rounds, (2 * d + nu) / (2 * (d + nu)))
    assert_allclose(coarse.corrupted.rounds, 3 * d / (2 * (d + nu)))
    assert_allclose(exponents(fine), [(d + 2 * nu) / (4 * nu), 3 * d / (4 * nu)])


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("side", [-1e-3, 1e-3])
def test_where_the_bounds_turn_sublinear(d, side):
    def at(nu):
        family = Family("matern", d, nu * (1.0 + side))
        fine, coarse = family.reductions
        bounds = by_method(family)
        return fine, coarse, bounds["RGP-PE"], bounds["RGP-UCB"], bounds["RGP-PE, tight"]

    assert at(0.75 * d)[0].sublinear == (side > 0)  # (117)
    assert at(0.5 * d)[1].sublinear == (side > 0)  # (118)
    assert at(0.25 * d)[2].sublinear == (side > 0)
    assert at(0.5 * d)[3].sublinear == (side > 0)
    assert at(0.01 * d)[4].sublinear


@given(dims, smoothness)
def test_which_reduction_is_better_for_constant_budgets(d, nu):
    fine, coarse = Family("matern", d, nu).reductions
    if nu > 1.01 * d:
        assert fine.exponent() < coarse.exponent()
    if nu < 0.99 * d:
        assert coarse.exponent() < fine.exponent()


@given(dims, smoothness, growths)
def test_no_bound_is_below_the_lower_one(d, nu, growth):
    family = Family("matern", d, nu)
    for bound in [*by_method(family).values(), *family.reductions]:
        assert bound.exponent(growth) >= family.lower.exponent(growth) - 1e-12


@given(dims, smoothness)
def test_the_tight_bound_meets_the_lower_one_where_corruption_begins_to_cost(d, nu):
    bounds = by_method(Family("matern", d, nu))
    knee = nu / (2.0 * nu + d)
    assert_allclose(bounds["RGP-PE, tight"].free.rounds, knee)
    assert_allclose(bounds["lower bound"].free.rounds, knee)
    assert_allclose(bounds["RGP-PE, tight"].exponent(knee), bounds["lower bound"].exponent(knee))


@given(dims, smoothness)
def test_the_reduction_is_worse_for_constant_budgets_and_better_for_large_ones(d, nu):
    family = Family("matern", d, nu)
    pe = by_method(family)["RGP-PE"]

    def reduced(growth):
        return min(bound.exponent(growth) for bound in family.reductions)

    assert reduced(0.0) > pe.exponent()
    crossing = nu / (2.0 * nu + d)
    assert_allclose(family.reductions[1].exponent(crossing), pe.exponent(crossing), atol=1e-12)
    assert reduced(0.5 * (1.0 + crossing)) < pe.exponent(0.5 * (1.0 + crossing))
    if nu > 0.51 * d:
        assert_allclose(family.reductions[1].tolerance, 1.0)


@given(dims, smoothness)
def test_tolerance_is_where_the_exponent_is_one(d, nu):
    for bound in by_method(Family("matern", d, nu)).values():
        if bound.sublinear and bound.tolerance < 1.0:
            assert_allclose(bound.exponent(bound.tolerance), 1.0)
        assert math.isnan(bound.tolerance) == (not bound.sublinear)


@given(dims, smoothness, st.sampled_from(["linear", "se", "matern"]))
def test_at_the_free_budget_both_terms_are_equal(d, nu, kernel):
    family = Family(kernel, d, nu if kernel == "matern" else None)
    for bound in by_method(family).values():
        at = 10_000, d, bound.free.value(10_000, d)
        assert_allclose(bound.clean.value(*at), bound.corrupted.value(*at), rtol=1e-9)


def test_an_unknown_budget_is_chosen_as_in_section_3_4():
    for family in (Family("linear", 5), Family("se", 3), Family("matern", 2, 2.5)):
        pe = {bound.method: bound for bound in table(family, 1000, None)}["RGP-PE"]
        chosen = Power(rounds=0.5) / family.gamma
        assert_allclose(pe.free.value(1000, family.dim), chosen.value(1000, family.dim))


@pytest.mark.parametrize(
    ("family", "T", "values"),
    [
        (Family("linear", 4), 10_000, [200 + 40, 400 + 2000, 200 + 80, 200 + 40, 200 + 80]),
        # ln T = 2 and d = 2
        (Family("se", 2), E**2, [E * 2**0.5 + 20, 24 * E, 2 * E + 80, 2 * E + 40, 2 * E + 80]),
    ],
)
def test_values_by_hand(family, T, values):
    assert_allclose([bound.value(T, family.dim, 10.0) for bound in table(family, T, 10.0)], values)


def test_numbers_without_end_are_infinite_and_no_corruption_costs_nothing():
    assert Power(rounds=200.0).value(10**9, 2) == math.inf
    assert Power(rounds=0.5, budget=1.0).value(100, 2, 0.0) == 0.0
    assert Power(budget=-1.0).value(100, 2, 0.0) == math.inf
    family = Family("matern", 2, 1.0)
    assert by_method(family, budget=0.0)["linear reduction"].source == "(117)"


def test_formulas_are_readable():
    bound = Bound("m", "s", Power(0.5, 2.0), Power(logs=0.5, dim=1.0, budget=1.0))
    assert str(bound) == "sqrt(T) (ln T)^2 + C sqrt(ln T) d"
    assert str(Power(rounds=1.0, logs=1.0)) == "T ln T"
    assert str(Power()) == "1"


def test_records_hint_at_what_is_trivial():
    rows = {row["method"]: row for row in records(Family("matern", 3, 0.5), 1000, 100.0)}
    assert rows["RGP-PE"]["trivial"]
    assert rows["RGP-PE"]["tolerance"] is None
    assert not any(row["trivial"] for row in records(Family("linear", 1), 10**6, 1.0))
    assert all(row["trivial"] for row in records(Family("linear", 1), 10**6, 1.0, norm=1e-4))


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda: Family("rbf", 1), "one of linear, se, matern, got 'rbf'"),
        (lambda: Family("se", 0), "at least 1 dimension, got 0"),
        (lambda: Family("se", 1, 2.5), "Only a matern kernel has a nu"),
        (lambda: Family("matern", 1), "nu > 0, such as 2.5: got None"),
        (lambda: Family("matern", 1, math.nan), "got nan"),
        (lambda: table(Family("se", 1), 2, 1.0), "at least 3 rounds, got 2"),
        (lambda: table(Family("se", 1), 10, -1.0), "not negative, or unknown: got -1"),
        (lambda: records(Family("se", 1), 10, 1.0, norm=0.0), "positive, got 0"),
        (lambda: plan(Prior(RBF(), 1.0), Finite(np.arange(2.0)), 9, eta=1.0), "above 1, got 1"),
    ],
)
def test_what_does_not_fit_is_refused(ask, answer):
    with pytest.raises(RefusalError, match=answer):
        ask()


# The tight width: no corruption within the budget moves the mean by more.


def moved(prior, domain, plays, corruption):
    """How far corruptions (by arm, summed) move the averaged mean, in standard deviations."""
    arms = np.repeat(np.arange(len(plays)), plays)
    told = np.repeat(corruption / np.maximum(plays, 1), plays)
    observations = Observations(domain.points[arms], told, np.full(len(arms), np.nan), arms)
    posterior = GaussianProcess(prior)(domain, observations)
    return np.abs(posterior.mean) / posterior.std


def test_the_tight_width_is_attained():
    # One arm, little noise: the mean moves by C / u, and the deviation is sqrt(noise / u).
    # Off by noise / (2 u), 1e-6; the variance, noise / u, is what is left of 1, to 1e-10 of itself.
    prior, domain = Prior(RBF(), 1e-4), Finite(np.zeros((1, 1)))
    shift = moved(prior, domain, np.array([50]), np.array([1.0]))
    assert_allclose(shift, 1.0 / math.sqrt(prior.noise * 50), rtol=2e-6)


# What follows for one domain.


def epoch(prior, domain, length, eta):
    """Lines 2 to 12 of Algorithm 1, play by play; the arms selected and how often."""
    posterior = Arms(prior, as_observed, domain)
    held, counted = posterior.copy(), np.zeros(len(domain), int)
    for _ in range(length):
        arm = int(np.argmax(held.variance))
        counted[arm] += 1
        posterior.observe(arm, 0.0, prior.noise)
        if 2.0 * (posterior.information - held.information) > math.log(eta):
            held = posterior.copy()
    return counted, posterior


@pytest.mark.parametrize("noise", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("eta", [1.5, 2.0, math.e])
@pytest.mark.parametrize("kernel", [RBF(0.7), Scaled(RBF(2.0), 3.0)], ids=["rbf", "scaled"])
def test_lemmas_11_13_and_14_hold_on_an_epoch(kernel, noise, eta):
    domain, prior = Box([-5, -5], [5, 5]).grid(6), Prior(kernel, noise)
    for length in (2, 16, 256):
        known = plan(prior, domain, length if length > 2 else 3, eta=eta)
        counted, posterior = epoch(prior, domain, length, eta)
        distinct = np.count_nonzero(counted)
        assert distinct <= known.distinct
        plays = np.ceil(length * np.maximum(counted / length, known.psi)) * (counted > 0)
        assert plays.sum() <= length * (2.0 + known.psi * distinct)
        widest = eta * (2.0 * noise + known.kappa) * known.gamma.upper
        assert length * posterior.variance.max() <= widest


def test_an_epoch_can_have_one_arm_more_than_lemma_14_says():
    prior, domain = Prior(RBF(), 1000.0), Finite(np.arange(3.0))
    counted, _ = epoch(prior, domain, 4, 2.0)
    known = plan(prior, domain, 4)
    assert np.count_nonzero(counted) == 1 > 2.0 * known.gamma.upper / math.log(2.0)
    assert known.distinct == 1


def test_a_plan_follows_from_the_information():
    prior, domain = Prior(Scaled(RBF(0.5), 4.0), 0.3), Box([-5, -5], [5, 5]).grid(10)
    known = plan(prior, domain, 5000, eta=math.e)
    gamma = information_bounds(prior, domain, 5000).upper
    assert known.gamma.upper == gamma
    assert_allclose(known.psi, 1.0 / (2.0 * gamma))
    assert_allclose(known.unknown_budget, math.sqrt(5000) / gamma)
    assert_allclose(known.tight_unknown_budget, math.sqrt(5000 / gamma))
    assert known.kappa == 4.0


def test_theorem_3_with_constants_by_hand():
    # One arm, lambda = 1: gamma = ln(1 + T) / 2; T = 62 is five epochs.
    prior, domain = Prior(RBF(), 1.0), Finite(np.zeros((1, 1)))
    known = plan(prior, domain, 62)
    gamma = known.gamma.upper
    assert_allclose(gamma, 0.5 * math.log(63.0), rtol=1e-9)
    psi = math.log(2.0) / (2.0 * gamma)
    beta = 3.0 + math.sqrt(2.0 * math.log(2 * 25 * math.pi**2 / (6 * 0.1)))
    clean = beta * math.sqrt(2 * 3 * 62 * gamma)
    corrupted = 7.0 * math.sqrt(2 * 3 * gamma / psi)
    expected = 12.0 * (2.0 + psi) + 4 * 8 * (2.0 + psi) * (clean + corrupted)
    assert_allclose(known.regret(7.0, norm=3.0), expected)
    wider = 7.0 / psi * math.sqrt((2.0 + psi) * 2 * 3 * gamma)
    loose = expected + 32 * (2.0 + psi) * (wider - corrupted)
    assert_allclose(known.regret(7.0, norm=3.0, tight=False), loose)


@pytest.mark.parametrize("noise", [0.01, 10.0])
def test_the_bound_is_for_the_width_that_runs(noise):
    # Per unit of C and of std(x), after an epoch of u plays, of each arm at least u_min.
    prior, domain = Prior(RBF(), noise), Finite(np.zeros((1, 1)))
    played, unknown = np.zeros(8), np.full(8, np.nan)
    observed = Observations(played[:, None], played, unknown, np.zeros(8, dtype=np.intp))
    posterior = GaussianProcess(prior)(domain, observed)
    width = EpochBudget(Fixed(0.0), 1.0, "theory")(posterior, 1)
    known, l_psi = plan(prior, domain, 62), 8.0
    stretch = 2.0 + known.psi
    shares = [known.regret(C, tight=False) - known.regret(0.0, tight=False) for C in (1.0, 3.0)]
    assert_allclose(shares[1], 3.0 * shares[0])
    widest = math.sqrt(known.eta * (2.0 * noise + known.kappa) * known.gamma.upper)
    enlarged = shares[0] / (4 * 8.0 * stretch * widest)
    assert_allclose(enlarged * known.psi / math.sqrt(stretch), width * l_psi / math.sqrt(8.0))


def test_scaling_the_problem_scales_the_bound():
    domain = Box([-5, -5], [5, 5]).grid(5)
    ours = plan(Prior(RBF(1.0), 0.5), domain, 1000)
    # f and its noise doubled; the norm in the scaled kernel's space is the same.
    theirs = plan(Prior(Scaled(RBF(1.0), 4.0), 2.0), domain, 1000)
    assert_allclose(theirs.regret(20.0, norm=2.0), 2.0 * ours.regret(10.0, norm=2.0))
