"""Every part of every folder's tuple keeps its promises, alone and in every combination.

Nothing here depends on the name of a part. What cannot be built without arguments has examples
beside its tests; a part that is added to a tuple and needs some is asked for them by
``test_every_part_can_be_built``.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from adversaries.examples import EXAMPLES as ATTACK_EXAMPLES
from confidence.examples import EXAMPLES as CONFIDENCE_EXAMPLES
from defences.examples import EXAMPLES as DEFENCE_EXAMPLES
from kernel_examples import EXAMPLES as KERNEL_EXAMPLES
from policies.examples import EXAMPLES as POLICY_EXAMPLES
from stoic import testing
from stoic.adversaries import (
    ATTACKS,
    NOISES,
    PERTURBATIONS,
    Adversary,
    Frequency,
    Gaussian,
    Magnitude,
    Unlimited,
)
from stoic.confidence import (
    CONFIDENCES,
    Fixed,
)
from stoic.defences import (
    DEFENCES,
)
from stoic.domains import Finite
from stoic.environment import Environment
from stoic.kernels import (
    KERNELS,
    Matern52,
    Precomputed,
    Scaled,
)
from stoic.learner import Learner
from stoic.models import GaussianProcess
from stoic.policies import (
    POLICIES,
    UCB,
    Initial,
)
from stoic.posteriors import Prior
from stoic.posteriors.fitting import Fitting
from stoic.problems import forrester, hosaki
from stoic.recipes import MOVED, PHASED, SEQUENTIAL, Parts, stable_opt

DOMAINS = testing.example_domains()


FOLDERS = {  # where the examples of the parts that need arguments stand
    "defences/examples.py": (DEFENCES, DEFENCE_EXAMPLES),
    "confidence/examples.py": (CONFIDENCES, CONFIDENCE_EXAMPLES),
    "policies/examples.py": (POLICIES, POLICY_EXAMPLES),
    "adversaries/examples.py": ((*ATTACKS, *NOISES, *PERTURBATIONS), ATTACK_EXAMPLES),
    "kernel_examples.py": (KERNELS, KERNEL_EXAMPLES),
}
PARTS = [(part, file) for file, (parts, _) in FOLDERS.items() for part in parts]
ARGUMENTS = {part: given for _, examples in FOLDERS.values() for part, given in examples.items()}


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


@pytest.mark.parametrize(("part", "file"), PARTS)
def test_every_part_can_be_built(part, file):
    try:
        assert examples(part)
    except TypeError as error:
        pytest.fail(
            f"{part.__name__} has no examples: add a line {part.__name__}: lambda domain: "
            f"[{{...}}] with its arguments to tests/{file} ({error})."
        )


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
