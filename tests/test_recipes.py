import inspect
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from stoic import recipes
from stoic.balancing import Balanced, build
from stoic.confidence import CompactUnion, CorruptionCount, FiniteUnion, Fixed, Schedule, Theory
from stoic.defences import AdaptivePlateau, Anchored, Plateau, Trust
from stoic.domains import Box
from stoic.kernels import RBF, Linear, Matern52, Scaled, Sum
from stoic.learner import Learner
from stoic.policies import UCB, Elimination, Initial
from stoic.posteriors import Prior
from stoic.posteriors.fitting import Fitting, FixedHyperparameters
from stoic.posteriors.scales import mean_and_sd
from stoic.recipes import (
    PHASED,
    RECIPES,
    SEQUENTIAL,
    a2_rcgp_ucb,
    any_threat,
    fc_rcgp_ucb,
    gp_ucb,
    rgp_pe,
    rgp_ucb,
)
from stoic.recipes.outliers import ActingPlateau, Anchor, noise_bound
from stoic.recipes.parts import variance_and_noise

BOX = Box([0.0, 5.0], [1.0, 9.0])
GRID = BOX.grid(6)
PRIOR = Prior(Scaled(Matern52(np.array([0.3, 1.0])), 2.0), 0.25, 4.0)
FIVE = [gp_ucb, fc_rcgp_ucb, a2_rcgp_ucb, recipes.tp_ucb, recipes.diagnostics_gp_ucb]


def takes_a_scale(recipe):
    """Whether its results are fitted in units of a scale; otherwise its defence says which."""
    return "scale" in inspect.signature(recipe).parameters


@pytest.mark.parametrize("recipe", SEQUENTIAL)
def test_a_given_prior_is_used_as_it_is_and_otherwise_one_is_fitted(recipe):
    given, fitted = Learner(BOX, recipe(prior=PRIOR)), Learner(BOX, recipe())
    assert isinstance(given.model.fitting, FixedHyperparameters)
    assert given.model.prior is PRIOR
    assert fitted.model.fitting.refits
    assert isinstance(fitted.model.fitting, Fitting)
    assert len(fitted.model.prior.kernel.theta) == 3  # a variance and two lengthscales


def innermost(policy):
    """What chooses once all that comes before it has nothing to say."""
    while hasattr(policy, "then"):
        policy = policy.then
    return policy


@pytest.mark.parametrize("recipe", SEQUENTIAL)
def test_what_every_sequential_recipe_takes(recipe):
    assert innermost(Learner(BOX, recipe()).policy) == UCB()
    first = recipe(policy=Initial(UCB(2), 3))
    assert first(BOX).policy == Initial(UCB(2), 3)
    a, b = (Learner(BOX, first, seed=9).ask().x for _ in range(2))
    assert_array_equal(a, b)
    if takes_a_scale(recipe):
        assert Learner(BOX, recipe(scale=mean_and_sd)).model.fitting.scale is mean_and_sd


@pytest.mark.parametrize("recipe", FIVE)
def test_the_width_without_enlargement_is_a_schedule_or_the_given_one(recipe):
    assert Learner(BOX, recipe(confidence=Fixed(3.0))).confidence == Fixed(3.0)
    assert Learner(BOX, recipe()).confidence == Schedule()


@pytest.mark.parametrize("recipe", PHASED)
def test_phased_recipes_need_a_finite_domain_and_a_prior(recipe):
    assert isinstance(Learner(GRID, recipe(prior=PRIOR)).policy, Elimination)
    with pytest.raises(ValueError, match=r"finite domain.*grid"):
        Learner(BOX, recipe(prior=PRIOR))
    with pytest.raises(TypeError, match="prior"):
        Learner(GRID, recipe())


def test_the_defences_are_the_papers():
    assert Learner(BOX, gp_ucb()).model.defence == Trust()
    fixed = Learner(BOX, fc_rcgp_ucb(prior=PRIOR, half_width=1.5, shape=0.7)).model.defence
    assert isinstance(fixed, Plateau)
    sd = math.sqrt(2.0)  # of the prior, the unit of half-width and shape
    assert (fixed.half_width, fixed.shape) == pytest.approx((1.5 * sd, 0.7 * sd))
    assert (fixed.centre, fixed.unit) == (4.0, "value")
    assert Learner(BOX, fc_rcgp_ucb(prior=PRIOR, unit="noise")).model.defence.unit == "noise"
    adaptive = Learner(BOX, fc_rcgp_ucb(half_width="quantile", unit="noise")).model.defence
    assert isinstance(adaptive, AdaptivePlateau)
    assert (adaptive.half_width, adaptive.unit) == ("quantile", "noise")
    with pytest.raises(ValueError, match="a number of its standard deviations"):
        Learner(BOX, fc_rcgp_ucb(prior=PRIOR, half_width="quantile"))
    acting, anchor = ActingPlateau(half_width=0.5), Anchor(half_width=2.5, prequential=True)
    recipe = a2_rcgp_ucb(prior=PRIOR, plateau=acting, anchor=anchor)
    anchored = Learner(BOX, recipe).model.defence
    assert isinstance(anchored, Anchored)
    assert (anchored.half_width, anchored.prequential, anchored.revises) == (0.5, True, False)
    assert anchored.anchor.prior is PRIOR
    assert anchored.anchor.defence.half_width == pytest.approx(2.5 * sd)
    assert anchored.anchor.defence.centre == 4.0
    assert isinstance(Learner(BOX, a2_rcgp_ucb()).model.defence.anchor.defence, AdaptivePlateau)


def test_the_theory_of_fc_has_the_papers_constants():
    theory = Theory(norm=1.5, delta=0.06, horizon=200, corruptions=3)
    learner = Learner(GRID, fc_rcgp_ucb(prior=PRIOR, theory=theory))
    assert learner.confidence == CorruptionCount(FiniteUnion(36, 0.02), 3, 1.5)
    on_a_box = Learner(BOX, fc_rcgp_ucb(prior=PRIOR, theory=Theory(delta=0.06)))
    assert on_a_box.confidence == CompactUnion(2, extent=BOX.widths.max(), delta=0.02)  # T_c = 0


@pytest.mark.parametrize("recipe", [fc_rcgp_ucb, a2_rcgp_ucb])
def test_a_slip_is_refused_and_not_ignored(recipe):
    slip = {"unit": "nois"} if recipe is fc_rcgp_ucb else {"plateau": ActingPlateau(unit="nois")}
    for setting, message in (
        ({"theory": Theory("tight")}, "no 'tight' constants"),
        ({"theory": Theory(noise_sd=0.1)}, "no use for noise_sd in its theory"),
        ({"theory": Theory("practice", delta=0.2)}, "uses delta in theory, and not in practice"),
        ({"theory": Theory(gain=3.0)}, "Only assumption='norm' has a gain"),
        (slip, "'scale' or 'noise'"),
    ):
        with pytest.raises(ValueError, match=message):
            Learner(BOX, recipe(**setting))


@pytest.mark.parametrize(
    "recipe",
    [
        recipes.rgp_ucb, recipes.rgp_pe, recipes.ec_gp_ucb, recipes.phased_gp_us, recipes.tgp_ucb,
        recipes.ata_gp_ucb, recipes.contextual_ec_gp_ucb,
    ],
)  # fmt: skip
def test_a_constant_of_a_width_is_refused_beside_another_width(recipe):
    prior = Prior(RBF(np.array([0.3, 1.0])), 0.25, 4.0)  # which Fourier features embed
    for confidence in (None, Fixed(2.0)):
        given = {"prior": prior, "confidence": confidence}
        build(GRID, recipe(**given, theory=Theory()))
        if confidence is None:
            build(GRID, recipe(**given, theory=Theory(norm=2.0)))
            continue
        with pytest.raises(ValueError, match=r"norm for its own width.*got norm=2\.0"):
            build(GRID, recipe(**given, theory=Theory(norm=2.0)))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"constants": "thoery"}, "'practice', 'theory' or 'tight', got 'thoery'"),
        ({"corruptions": -3}, "a count >= 0"),
        ({"corruptions": "some"}, "a count >= 0"),
        ({"horizon": 0}, "horizon >= 1"),
        ({"delta": 1.5}, "0 < delta < 1"),
    ],
)
def test_constants_of_no_theorem_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        Theory(**setting)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_has_at_most_eight_parameters(recipe):
    assert len(inspect.signature(recipe).parameters) <= 8


@pytest.mark.parametrize("recipe", FIVE)
def test_a_kernel_for_other_coordinates_is_refused_at_once(recipe):
    with pytest.raises(ValueError, match="give one lengthscale, or 2 of them"):
        Learner(BOX, recipe(prior=Prior(Matern52(np.array([0.1, 0.2, 0.3])), 0.01)))


def test_the_defaults_do_not_depend_on_the_units_of_the_prior():
    for recipe in (fc_rcgp_ucb, a2_rcgp_ucb):
        trusts = []
        for unit in (1.0, 1e3):
            prior = Prior(Scaled(RBF(1.0), unit**2), 0.01 * unit**2)
            learner = Learner(GRID, recipe(prior=prior))
            learner.tell(GRID.points[:9], unit * np.append(np.linspace(-1.0, 1.0, 8), 60.0))
            trusts.append(learner.trust)
        assert np.allclose(*trusts)
        assert trusts[0][:8].min() > 0.9
        assert trusts[0][8] < 0.01


@pytest.mark.parametrize("recipe", [fc_rcgp_ucb, a2_rcgp_ucb])
@pytest.mark.parametrize("prior", [None, PRIOR], ids=["fitted", "given"])
@pytest.mark.parametrize("constants", ["practice", "theory"])
@pytest.mark.parametrize("corruptions", [0, 3, "distrusted"])
def test_every_setting_plays(recipe, prior, constants, corruptions):
    theory = Theory(constants, corruptions=corruptions)
    learner = Learner(GRID, recipe(prior=prior, theory=theory), seed=1)
    for y in (4.0, 1e300, math.nan, 3.0, 4.5):
        learner.tell(learner.ask().x, y)
    assert np.isfinite(learner.recommend().mean)


def test_an_enlarged_practice_width_counts_the_distrusted():
    theory = Theory("practice", corruptions="distrusted")
    learner = Learner(GRID, fc_rcgp_ucb(prior=PRIOR, theory=theory))
    assert learner.confidence == CorruptionCount(Schedule(), "distrusted", 1.0, variance=False)


def test_the_largest_variance_is_that_of_the_whole_box():
    box = Box([-1.0, 2.0], [3.0, 4.0])
    for kernel, largest in (
        (Scaled(Matern52(0.3), 2.3), 2.3),
        (Linear(0.5), (3.0**2 + 4.0**2) / 0.25),
        (Sum(RBF(0.2), Scaled(Linear(), 0.1)), 1.0 + 2.5),
    ):
        prior = Prior(kernel, 0.1)
        kappa, noise = variance_and_noise(box, prior)
        assert kappa == pytest.approx(largest, rel=1e-12)
        assert noise == 0.1
        assert kappa >= kernel.diagonal(box.grid(9).points).max()
        agent = Learner(box, fc_rcgp_ucb(prior=prior, half_width=3.0))
        assert agent.model.defence.half_width == pytest.approx(3.0 * math.sqrt(largest))
    for recipe in SEQUENTIAL:  # a kernel that is sure of the origin
        Learner(Box([-1.0], [1.0]), recipe(prior=Prior(Linear(), 0.1)), seed=0).ask()


def test_noise_bound():
    # sigma 2, T / delta = 1000: 2 sqrt(2 * 6.907755279)
    assert noise_bound(100, 0.1, 4.0) == pytest.approx(2.0 * math.sqrt(13.815510558), rel=1e-9)


@pytest.mark.parametrize("make", [fc_rcgp_ucb, a2_rcgp_ucb], ids=["fc", "a2"])
def test_with_wide_plateaus_it_is_gp_ucb_choice_by_choice(make):
    wide = {"half_width": 1e9}
    if make is a2_rcgp_ucb:
        wide = {"plateau": ActingPlateau(1e9), "anchor": Anchor(1e9)}
    recipes_of = gp_ucb(prior=PRIOR), make(prior=PRIOR, **wide)
    plain, robust = (Learner(GRID, recipe, seed=0) for recipe in recipes_of)
    rng = np.random.default_rng(0)
    for _ in range(60):
        a, b = plain.ask(), robust.ask()
        assert a.arm == b.arm
        y = 4.0 + np.sin(a.x.sum()) + 0.5 * rng.standard_normal()
        plain.tell(a.x, y)
        robust.tell(b.x, y)


def test_a_recipe_prints_as_it_is_written_pickles_and_compares():
    recipe = rgp_ucb(budget=5.0)
    assert repr(recipe) == "rgp_ucb(budget=5.0)"
    assert pickle.loads(pickle.dumps(recipe)) == recipe == rgp_ucb(budget=5)
    assert hash(recipe) == hash(rgp_ucb(budget=5))
    assert recipe not in {rgp_ucb(budget=4.0), rgp_ucb(), gp_ucb()}


def test_a_recipe_refuses_what_it_does_not_have():
    with pytest.raises(TypeError, match=r"write gp_ucb\(\) instead of gp_ucb"):
        gp_ucb(BOX)
    with pytest.raises(TypeError, match=r"need their names, .* Learner\(domain, gp_ucb\(\)\)"):
        gp_ucb(5.0)
    with pytest.raises(TypeError, match="rgp_ucb: got an unexpected keyword argument 'budjet'"):
        rgp_ucb(budjet=1.0)
    with pytest.raises(TypeError, match=r"rgp_pe: missing a required .*argument: 'prior'"):
        rgp_pe()


def test_a_recipe_of_ones_own():
    alike = ours(width=3.0)(BOX)
    assert repr(ours(width=3.0)) == "ours(width=3.0)"
    assert Learner(BOX, alike).confidence == Learner(BOX, ours(width=3.0)).confidence == Fixed(3.0)


@recipes.recipe
def ours(domain, *, width=2.0):
    return replace(gp_ucb(prior=PRIOR)(domain), confidence=Fixed(width))


def test_several_learners_are_built_by_build():
    with pytest.raises(ValueError, match=r"build it with stoic\.balancing\.build"):
        Learner(BOX, any_threat())
    assert isinstance(build(BOX, any_threat()), Balanced)
    assert isinstance(build(BOX, gp_ucb()), Learner)


MISTAKEN = ["text", None, 20, -1, math.nan, {}, [], (), True]


@pytest.mark.parametrize(
    ("recipe", "name"),
    [(recipe, name) for recipe in RECIPES for name in inspect.signature(recipe).parameters],
)
def test_an_argument_of_another_type_is_refused_in_a_sentence(recipe, name):
    known = inspect.signature(recipe).parameters
    needed = {"prior": PRIOR, "radius": 0.2}
    for value in MISTAKEN:
        given = {each: needed[each] for each in needed if each in known} | {name: value}
        refused = None
        try:
            build(GRID, recipe(**given), seed=0).ask()
        except (TypeError, ValueError) as error:
            refused = str(error)
        assert refused is None or refused.endswith("."), (name, value)


def test_what_an_argument_must_be_is_said():
    for made, sentence in (
        (recipes.tgp_ucb(prior=PRIOR, alpha=None), "alpha of tgp_ucb must be a number, got None"),
        (recipes.ata_gp_ucb(features=20), "'qff' or 'nystroem', or a Features, got 20"),
        (recipes.any_threat(threats={}), "threats of any_threat must be Threats, got {}"),
        (recipes.ec_gp_ucb(error="x"), "error of ec_gp_ucb must be a number, got 'x'"),
    ):
        with pytest.raises((TypeError, ValueError), match=sentence):
            build(GRID, made, seed=0)


def test_an_error_of_something_else_stays_as_it_is():
    class Faulty:
        def check(self, domain, prior):
            return self.nodes

        def __call__(self, *arguments):
            raise NotImplementedError

    @recipes.recipe
    def own(domain, *, weights: "no.type" = ()):  # noqa: F821
        return len(3)

    with pytest.raises(AttributeError, match="no attribute 'nodes'"):
        build(GRID, recipes.ata_gp_ucb(prior=PRIOR, features=Faulty(), alpha=np.array(0.5)))
    with pytest.raises(TypeError, match="no len"):
        build(GRID, own(weights="few"))
