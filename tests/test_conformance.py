"""Every part of every folder's tuple keeps its promises, alone and in every combination.

Nothing here depends on the name of a part. What cannot be built without arguments is given
example arguments in ``ARGUMENTS``; a part that is added to a tuple and needs some is asked for them
by ``test_every_part_can_be_built``.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from literal import one
from stoic import testing
from stoic.adversaries import (
    ATTACKS,
    NOISES,
    PERTURBATIONS,
    Adversary,
    Always,
    Clairvoyant,
    Clipping,
    Empirical,
    Flip,
    Frequency,
    Gaussian,
    Later,
    Magnitude,
    Pareto,
    Replace,
    Stable,
    StudentT,
    Subtraction,
    TopK,
    Unlimited,
)
from stoic.adversaries.inputs import GaussianMove, LowestBound, RandomMove, WorstCase
from stoic.confidence import (
    CONFIDENCES,
    BoundedNoise,
    CompactUnion,
    CorruptionBudget,
    CorruptionCount,
    EpochBudget,
    FeatureTruncation,
    FiniteUnion,
    Fixed,
    GrowingTruncation,
    Misspecified,
    NonAdaptive,
    SelfNormalised,
)
from stoic.defences import (
    DEFENCES,
    AdaptivePlateau,
    Anchored,
    Diagnostics,
    Plateau,
    Truncation,
)
from stoic.defences.anchored import Reach
from stoic.distances import Distance
from stoic.domains import Finite
from stoic.environment import Environment
from stoic.kernels import (
    KERNELS,
    RBF,
    Linear,
    Matern32,
    Matern52,
    Polynomial,
    Precomputed,
    Product,
    Scaled,
    Sum,
)
from stoic.learner import Learner
from stoic.models import GaussianProcess
from stoic.policies import (
    POLICIES,
    UCB,
    Elimination,
    ExpectedImprovement,
    Initial,
    RareSwitching,
    Requery,
)
from stoic.policies.satisficing import Satisficing
from stoic.policies.stable import StableOpt
from stoic.posteriors import Prior
from stoic.posteriors.fitting import Fitting
from stoic.posteriors.levels import FeatureLevel
from stoic.posteriors.student_t_noise import StudentTNoise
from stoic.problems import forrester, hosaki
from stoic.recipes import MOVED, PHASED, SEQUENTIAL, Parts, stable_opt

DOMAINS = testing.example_domains()


def anchor(domain):
    return GaussianProcess(testing.example_prior(domain), Plateau(2.0, 1.0, 1.0))


def fitted_anchor(domain):
    return GaussianProcess(testing.example_prior(domain), AdaptivePlateau(), Fitting())


def in_the_middle(x):
    return abs(x[0] - 0.5) < 0.2


# For each part that needs arguments: from a domain to the arguments of one or more examples.
ARGUMENTS = {
    Plateau: lambda domain: [
        {"half_width": 1.0, "shape": 0.5, "centre": 1.0},
        {"half_width": 0.5, "shape": 2.0, "centre": 1.0, "unit": "noise"},
        {"half_width": 0.0, "shape": 1e-3, "centre": 1.0, "negligible": 0.0},
    ],
    AdaptivePlateau: lambda domain: [
        {},
        {"half_width": "quantile", "unit": "scale"},
        {"half_width": 0.5, "shape": 0.5},
    ],
    Anchored: lambda domain: [
        {"anchor": anchor(domain), "unit": "scale"},
        {"anchor": anchor(domain), "prequential": True},
        {"anchor": anchor(domain), "scale": one, "prequential": True, "unit": "scale"},
        {"anchor": fitted_anchor(domain)},
        {"anchor": anchor(domain), "half_width": Reach(Fixed(2.0), 0.5), "scale": one},
    ],
    Diagnostics: lambda domain: [
        {"judge": StudentTNoise(testing.example_prior(domain))},
        {"judge": StudentTNoise(testing.example_prior(domain), 1.5, Fitting()), "level": 0.2},
    ],
    Truncation: lambda domain: [{"moment": 3.0}, {"moment": 0.5, "alpha": 0.3, "scale": 2.0}],
    FiniteUnion: lambda domain: [{"arms": 25}],
    CompactUnion: lambda domain: [{"dim": domain.dim}],
    SelfNormalised: lambda domain: [
        {"norm": 1.5},
        {"norm": 1.5, "noise_sd": 0.4, "restarts": True},
    ],
    BoundedNoise: lambda domain: [{"squared_norm": 2.0}, {"squared_norm": 2.0, "gain": 3.0}],
    GrowingTruncation: lambda domain: [
        {"norm": 1.0, "moment": 2.0},
        {"norm": 1.0, "moment": 2.0, "alpha": 0.4, "constants": "theory"},
    ],
    FeatureTruncation: lambda domain: [
        {"norm": 1.0, "moment": 2.0, "level": FeatureLevel(100), "features": 32},
        {
            "norm": 1.0,
            "moment": 2.0,
            "level": FeatureLevel(100, constants="theory", drawn=True),
            "alpha": 0.4,
            "features": 1,
        },
    ],
    CorruptionCount: lambda domain: [
        {"base": Fixed(2.0), "corruptions": 0},
        {"base": FiniteUnion(25), "corruptions": 3},
        {"base": Fixed(2.0), "corruptions": "distrusted", "variance": False},
    ],
    CorruptionBudget: lambda domain: [{"base": Fixed(2.0), "budget": 3.0, "weight": 0.1}],
    Misspecified: lambda domain: [{"base": SelfNormalised(1.5), "error": 0.2}],
    EpochBudget: lambda domain: [
        {"base": Fixed(2.0), "budget": 3.0},
        {"base": FiniteUnion(25), "budget": 3.0, "form": "tight"},
        {"base": Fixed(2.0), "budget": 3.0, "form": "practice"},
    ],
    NonAdaptive: lambda domain: [{"norm": 1.5, "arms": 25}],
    Elimination: lambda domain: [{}, {"design": RareSwitching(growth=1.0, share=0.0, first=1)}],
    Satisficing: lambda domain: [
        {"threshold": 0.5, "candidates": 100},
        {"threshold": 0.5, "p": 1.0, "candidates": 100},
        {"p": 2.0, "margin": 0.3, "candidates": 100},
        {"threshold": 9.0, "distance": Distance.of_kernel(RBF(3.0)), "candidates": 100},
        {"threshold": 0.5, "probe": True, "retries": 1, "candidates": 100},
    ],
    StableOpt: lambda domain: [
        {"radius": 1.5, "candidates": 100},
        {"radius": 0.0, "distance": Distance("cityblock"), "candidates": 100},
        {"radius": 1.5, "probe": True, "candidates": 100},
    ],
    Initial: lambda domain: [{"then": UCB(), "n": 4}, {"then": Initial(UCB(), 2), "n": 40}],
    UCB: lambda domain: [{}, {"retries": 1}],
    Requery: lambda domain: [{"then": UCB()}, {"then": ExpectedImprovement(), "rate": 1.0}],
    ExpectedImprovement: lambda domain: [{}, {"widened": True, "retries": 1}],
    Clairvoyant: lambda domain: [
        {
            "optimum": domain.sample(1, np.random.default_rng(5))[0],
            "near": 0.3,
            "far": 0.6,
            "low": -10.0,
            "high": math.inf,
        },
    ],
    Clipping: lambda domain: [{"inside": in_the_middle, "best": 1.0}],
    Subtraction: lambda domain: [{"inside": in_the_middle, "depth": 2.0}],
    TopK: lambda domain: [{"values": np.sin(np.arange(25.0)), "k": 3}],
    Later: lambda domain: [{"attack": Flip()}],
    Gaussian: lambda domain: [{"sd": 0.0}, {"sd": 0.7}],
    StudentT: lambda domain: [{"df": 3.0}, {"df": 1.5, "scale": 0.2}],
    Stable: lambda domain: [{"alpha": 1.5}, {"alpha": 2.0, "scale": 0.2}, {"alpha": 1.0}],
    Pareto: lambda domain: [{}, {"shape": 1.2}],
    Empirical: lambda domain: [{"rewards": np.random.default_rng(6).standard_normal((9, 25))}],
    RandomMove: lambda domain: [
        {"radius": 0.4},
        {"radius": 2.0, "distance": Distance("cityblock")},
    ],
    LowestBound: lambda domain: [{"radius": 2.0}],
    WorstCase: lambda domain: [{"radius": 2.0, "distance": Distance.of_kernel(RBF(3.0))}],
    GaussianMove: lambda domain: [{"sd": 0.3}],
    Always: lambda domain: [{"reported": -10.0}, {"reported": math.nan}],
    Replace: lambda domain: [{"values": {1: math.nan, 2: 1e300, 7: -math.inf}}],
    Polynomial: lambda domain: [{"degree": 3, "offset": 0.7, "linear": Linear(8.0)}],
    Precomputed: lambda domain: [{"matrix": np.array([[2.0, 0.5], [0.5, 1.0]])}],
    Sum: lambda domain: [{"first": RBF(3.0), "second": Scaled(Linear(np.array([4.0, 2.0])), 2.0)}],
    Product: lambda domain: [
        {"first": Scaled(Matern52(np.array([2.0, 1.0])), 0.3), "second": Linear(5.0)},
        {"first": RBF(2.0), "second": Sum(Matern32(1.0), Polynomial(2, 1.0, Linear(6.0)))},
    ],
    Scaled: lambda domain: [{"kernel": Matern32(np.array([0.5, 3.0])), "variance": 2.5}],
}


def examples(part, domain=DOMAINS[0]):
    """A part, built in one or more ways for a domain."""
    return [part(**arguments) for arguments in ARGUMENTS.get(part, lambda _: [{}])(domain)]


def named(parts):
    return [
        pytest.param(part, k, id=f"{part.__name__}-{k}")
        for part in parts
        for k in range(len(examples(part)))
    ]


def in_turn(rows):
    """Rows of parameters on all domains, all but one of them slow: another one for each row."""
    return [
        pytest.param(
            *row,
            domain,
            id="-".join(
                [*(getattr(value, "__name__", repr(value)) for value in row), repr(domain)]
            ),
            marks=() if number % len(DOMAINS) == k else pytest.mark.slow,
        )
        for number, row in enumerate(rows)
        for k, domain in enumerate(DOMAINS)
    ]


PARTS = [*DEFENCES, *CONFIDENCES, *POLICIES, *KERNELS, *ATTACKS, *NOISES, *PERTURBATIONS]


@pytest.mark.parametrize("part", PARTS)
def test_every_part_can_be_built(part):
    try:
        assert examples(part)
    except TypeError as error:
        pytest.fail(f"Give {part.__name__} example arguments in ARGUMENTS: {error}.")


# Kernels that do not live on points of the plane: their inputs, and whether they have a gradient.
INPUTS = {Precomputed: (np.array([[0.0], [1.0], [1.0], [0.0]]), False)}


@pytest.mark.parametrize(("part", "k"), named(KERNELS))
def test_kernels(part, k):
    plane = np.random.default_rng(0).uniform([20.0, -7.0], [28.0, -3.0], size=(9, 2))
    x, differentiable = INPUTS.get(part, (np.concatenate([plane, plane[:2]]), True))
    testing.check_kernel(examples(part)[k], x, differentiable=differentiable)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize(("part", "k"), named(DEFENCES))
def test_defences(part, k, domain):
    testing.check_defence(examples(part, domain)[k], [domain])


def posteriors(defence, domain):
    """Of an example of a defence given no, one and 20 results, and the results."""
    prior = testing.example_prior(domain)
    for n in (0, 1, 20):
        observations = testing.example_observations(domain, n)
        yield GaussianProcess(prior, defence)(domain, observations), observations


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize(("part", "k"), named(DEFENCES))
def test_posteriors_behind_every_defence(part, k, domain):
    # 1e300 believed as it is leaves no digits for a difference to be taken of.
    for posterior, observations in posteriors(examples(part, domain)[k], domain):
        mean, std = posterior.predict(domain.sample(4, np.random.default_rng(0)))
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()
        if np.abs(mean).max() < 1e6:
            testing.check_posterior(posterior, domain, observations)


@pytest.mark.parametrize(("part", "k", "domain"), in_turn([row.values for row in named(DEFENCES)]))
def test_widths(part, k, domain):
    # A width does not alter the posteriors, so all of them look at the same ones.
    defence = examples(part, domain)[k]
    model = GaussianProcess(testing.example_prior(domain), defence)
    looked_at = [posterior for posterior, _ in posteriors(defence, domain)]
    for confidence in (width for other in CONFIDENCES for width in examples(other, domain)):
        if not refuses(confidence, model, domain):
            testing.check_confidence(confidence, looked_at)


@pytest.mark.parametrize(("part", "k"), named(POLICIES))
def test_policies(part, k):
    testing.check_policy(examples(part)[k])


BUDGETS = (
    Unlimited(),
    Frequency(0),
    Frequency(4),
    Frequency(2, releases=(3, 8)),
    Magnitude(0.0),
    Magnitude(7.5),
)
PROBLEMS = (forrester(), hosaki(), hosaki().on_grid(5))


@pytest.mark.parametrize("problem", PROBLEMS, ids=["forrester", "hosaki", "hosaki on a grid"])
@pytest.mark.parametrize(("part", "k"), named(ATTACKS))
def test_adversaries(part, k, problem):
    attack = examples(part, problem.domain)[k]
    if attack.needs_finite and not problem.domain.finite:
        with pytest.raises(ValueError, match="finite"):
            Environment(problem, adversary=Adversary(attack))
        return
    for budget in BUDGETS:
        testing.check_adversary(Adversary(attack, budget), problem)


@pytest.mark.parametrize("problem", PROBLEMS, ids=["forrester", "hosaki", "hosaki on a grid"])
@pytest.mark.parametrize(("part", "k"), named(PERTURBATIONS))
def test_perturbations(part, k, problem):
    perturbation, domain = examples(part, problem.domain)[k], problem.domain
    if perturbation.needs_finite and not domain.finite:
        with pytest.raises(ValueError, match=r"finite.*grid"):
            Environment(problem, perturbation=perturbation)
        return
    learner = Learner(domain, Parts(GaussianProcess(testing.example_prior(domain)), Fixed(), UCB()))
    worlds = [Environment(problem, Gaussian(1.0), perturbation=perturbation) for _ in range(2)]
    still = Environment(problem, Gaussian(1.0))
    rng = np.random.default_rng(0)
    for x in domain.sample(30, rng):
        before = x.copy()
        one, other = (world.step(x, band=learner.band) for world in worlds)
        np.testing.assert_array_equal(x, before)
        np.testing.assert_array_equal(one.x, other.x)  # it neither counts nor remembers
        domain.locate(one.x[None])
        assert one.value == problem.value(one.x[None])[0]
        # The noise of a round stays what it is, wherever the input went.
        unmoved = still.step(x)
        assert one.observed - one.value == pytest.approx(unmoved.observed - unmoved.value)
        assert not one.corrupted
    assert worlds[0].round == 30
    if perturbation.needs_band:
        with pytest.raises(ValueError, match=r"learner.band"):
            worlds[0].step(x)
        assert worlds[0].round == 30


@pytest.mark.parametrize(("part", "k"), named(NOISES))
def test_noises(part, k):
    noise = examples(part)[k]
    first, again, other = (noise.draw(np.random.default_rng(seed), 40) for seed in (0, 0, 1))
    assert first.shape == (40,)
    assert first.dtype == np.float64
    assert first.tolist() == again.tolist()
    for draw in (first[0], other[0]):
        observed = noise.apply(1.5, float(draw), 3)
        assert isinstance(observed, float)
        assert noise.apply(1.5, float(draw), 3) == observed
    for a in (0.1, 0.9, 1.0):
        moments = [noise.moment(a, bound) for bound in (0.0, 0.5, 2.0)]
        assert moments == sorted(moments)  # a larger f has no smaller moment
        assert all(isinstance(v, float) and v >= 0.0 for v in moments)
    for a, bound in ((0.0, 1.0), (1.1, 1.0), (0.5, -1.0), (0.5, math.nan)):
        with pytest.raises(ValueError, match=r"needs a in \(0, 1\] and a finite bound"):
            noise.moment(a, bound)


@pytest.mark.parametrize(("part", "k"), named(NOISES))
def test_a_round_has_its_noise_whatever_was_asked_before(part, k):
    problem = PROBLEMS[-1]
    arms = problem.domain.points
    for seed in (0, 1):
        one_way = Environment(problem, examples(part)[k], seed=seed)
        another = Environment(problem, examples(part)[k], seed=seed)
        one_way.step(arms[4])
        another.step(arms[20])
        assert one_way.step(arms[7]).observed == another.step(arms[7]).observed
        mine, theirs = one_way.initial(arms[[1, 7]]), another.initial(arms[[2, 7]])
        assert mine[1].observed == theirs[1].observed


@pytest.mark.parametrize(
    ("recipe", "given", "domain"), in_turn(itertools.product(SEQUENTIAL, [False, True]))
)
def test_sequential_recipes(recipe, given, domain):
    prior = testing.example_prior(domain) if given else None
    testing.check_learner(
        lambda: Learner(domain, recipe(prior=prior, policy=Initial(UCB(), 3)), seed=5)
    )


@pytest.mark.parametrize("recipe", MOVED)
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("given", [False, True])
def test_recipes_against_moves_of_the_input(recipe, domain, given):
    prior = testing.example_prior(domain) if given else None
    needed = {"radius": 0.5} if recipe is stable_opt else {}
    parts = recipe(prior=prior, candidates=100, **needed)(domain)
    parts = replace(parts, policy=Initial(parts.policy, 3))
    testing.check_learner(lambda: Learner(domain, parts, seed=5))


@pytest.mark.parametrize("recipe", PHASED)
@pytest.mark.parametrize("domain", [d for d in DOMAINS if d.finite], ids=repr)
def test_phased_recipes(recipe, domain):
    testing.check_learner(
        lambda: Learner(domain, recipe(prior=testing.example_prior(domain)), seed=5)
    )


def told(learner, results):
    """A few rounds: single questions and a batch, one answer kept back, one from elsewhere."""
    rng = np.random.default_rng(0)
    domain, results = learner.domain, iter(results)
    for wanted in (1, 2, 1, 1):
        choices = learner.ask_batch(wanted)
        if not choices:  # it waits for what is pending, which will not come
            learner.forget_pending()
            choices = learner.ask_batch(wanted)
        assert choices
        for choice in choices[:1]:
            domain.locate(choice.x[None])
            learner.tell(choice.x, next(results))
    learner.tell(domain.sample(1, rng), next(results), noise=0.3)
    learner.forget_pending()
    assert np.isfinite(learner.ask().x).all()
    assert ((learner.trust >= 0.0) & (learner.trust <= 1.0)).all()
    domain.locate(learner.recommend().model_x[None])


def refuses(confidence, model, domain):
    """Whether a width needs more than the posterior of this model has."""
    try:
        confidence(model(domain, testing.example_observations(domain, 3)), 1)
    except ValueError:
        return True
    return False


RESULTS = [0.3, math.nan, 1e300, math.inf, 1.2]


def meet(policy, domain):
    """Whether any example of a policy works on a domain."""
    return domain.finite or not all(example.needs_finite for example in examples(policy, domain))


MEETINGS = [  # at least five for a domain, one after another
    (policy, domain) for domain in DOMAINS for policy in POLICIES if meet(policy, domain)
]
SHARES = 5  # of the examples of the defences
TOGETHER = [
    pytest.param(
        width,
        meeting,
        share,
        id=f"{width.__name__}-{MEETINGS[meeting][0].__name__}-{MEETINGS[meeting][1]!r}-{share}",
        marks=pytest.mark.slow if share or (meeting + k) % 4 else (),
    )
    for k, width in enumerate(CONFIDENCES)
    for meeting in range(len(MEETINGS))
    for share in range(SHARES)
]


@pytest.mark.parametrize(("width", "meeting", "share"), TOGETHER)
def test_every_defence_width_and_policy_together(width, meeting, share):
    """In all shares all three meet on every domain, in one every two of them do.

    Half of that share is not slow: widths and policies meet on every other domain.
    """
    policy, domain = MEETINGS[meeting]
    # Examples of widths and policies take turns.
    widths, policies = examples(width, domain), examples(policy, domain)
    first = (CONFIDENCES.index(width) + meeting + share) % SHARES
    defences = [d for part in DEFENCES for d in examples(part, domain)]
    worked = 0
    for turn, defence in list(enumerate(defences))[first::SHARES]:
        confidence = widths[turn % len(widths)]
        rule = policies[turn % len(policies)]
        if rule.needs_finite and not domain.finite:
            continue
        model = GaussianProcess(testing.example_prior(domain), defence)
        learner = Learner(domain, Parts(model, confidence, rule), seed=3)
        if refuses(confidence, model, domain):
            learner.tell(domain.sample(1, np.random.default_rng(0)), 0.3)
            with pytest.raises(ValueError, match="needs a defence"):
                learner.recommend(width=None)
            continue
        told(learner, RESULTS[turn % 2 :] + RESULTS)
        worked += 1
    assert worked


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize(("part", "k"), named(DEFENCES))
def test_every_defence_with_fitted_hyperparameters(part, k, domain):
    family = Prior(Scaled(Matern52(np.ones(domain.dim))), 0.1)
    model = GaussianProcess(family, examples(part, domain)[k], Fitting())
    told(Learner(domain, Parts(model, Fixed(2.0), UCB()), seed=3), RESULTS)


def test_the_product_is_not_empty():
    assert len(list(itertools.product(DEFENCES, CONFIDENCES, POLICIES))) >= 50
    assert {domain.finite for domain in DOMAINS} == {False, True}
    assert isinstance(DOMAINS[0], Finite)
