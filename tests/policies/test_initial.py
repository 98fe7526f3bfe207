import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from stoic.confidence import Fixed
from stoic.defences import Trust
from stoic.domains import Box, Lattice
from stoic.domains.tree import Node, Tree
from stoic.kernels import Matern52, Scaled
from stoic.learner import Learner
from stoic.models import GaussianProcess
from stoic.policies import (
    UCB,
    Band,
    Initial,
    Policy,
    Requery,
    UpperConfidenceBound,
    VerifiedImprovement,
)
from stoic.posteriors import Prior
from stoic.recipes import Parts

BOX = Box([2.0, -1.0], [10.0, 1.0])


def learner(policy, domain=BOX, seed=0):
    prior = Prior(Scaled(Matern52(0.3 * domain.widths), 2.0), 0.1)
    return Learner(domain, Parts(GaussianProcess(prior, Trust()), Fixed(2.0), policy), seed=seed)


def play(agent, rounds, batch=1):
    asked = []
    for _ in range(rounds):
        for choice in agent.ask_batch(batch):
            asked.append(choice.x)
            agent.tell(choice.x, float(np.sin(choice.x.sum())))
    return np.array(asked)


def is_design(agent, left):
    """Return True if so many choices are left of the design, and then the policy chooses."""
    policy = agent.policy.then
    chosen = []

    class Told(type(policy)):
        def choose(self, view, state, n):
            chosen.append(n)
            return policy.choose(view, state, n)

    object.__setattr__(agent.policy, "then", Told())
    for k in range(left + 1):
        agent.ask()
        if len(chosen) != (k == left):
            return False
    return True


def test_a_learner_that_begins_again_leaves_out_what_it_has_of_the_design():
    first = learner(Initial(UCB(), 8)).ask_batch(8)
    for known in (0, 3, 7):
        again = learner(Initial(UCB(), 8))
        again.tell(np.round(first[known].x, 8), 1.0)
        left = [choice.x for choice in first if choice is not first[known]]
        assert_array_equal([choice.x for choice in again.ask_batch(7)], left)


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_the_design_covers_the_domain_and_then_the_policy_follows(batch):
    agent = learner(Initial(UCB(), 8))
    design = play(agent, -(-8 // batch), batch)
    assert len(design) == (9 if batch == 3 else 8)  # a batch that begins in it is of the design
    cells = np.floor((design - BOX.lower) / BOX.widths * [4, 2]).astype(int)
    assert len({tuple(cell) for cell in cells[:8]}) == 8
    after = learner(UCB())
    for x in design:
        after.tell(x, float(np.sin(x.sum())))
    # Same data, so the same belief; the generator has moved on in one of them.
    assert_array_equal(agent.posterior.predict(design)[0], after.posterior.predict(design)[0])
    bound = UpperConfidenceBound(Band(after.posterior, 2.0))
    assert_allclose(bound(agent.ask().x[None]), bound(after.ask().x[None]), atol=1e-4)


def test_results_from_elsewhere_count():
    agent = learner(Initial(UCB(), 4))
    rng = np.random.default_rng(1)
    agent.tell(BOX.sample(3, rng), np.zeros(3))
    assert is_design(agent, 1)


def test_failures_count():
    agent = learner(Initial(UCB(), 4))
    for kind in ("infeasible", "bad", "transient"):
        agent.tell(agent.ask().x, failed=kind)
    assert is_design(agent, 1)


def test_what_is_on_its_way_counts():
    agent = learner(Initial(UCB(), 4))
    assert len(agent.ask_batch(3)) == 3
    assert is_design(agent, 1)
    assert len(agent.ask_batch(30)) == 30


@pytest.mark.parametrize("domain", [BOX, BOX.grid([9, 5])], ids=["box", "grid"])
def test_the_design_covers_the_free_coordinates_of_a_context(domain):
    whole = [choice.x for choice in learner(Initial(UCB(), 8), domain).ask_batch(8)]
    agent = learner(Initial(UCB(), 8), domain)
    asked = [agent.ask(context={1: 0.5 * (k % 2)}).x for k in range(8)]
    assert [x[1] for x in asked] == [0.0, 0.5] * 4
    if domain is BOX:
        assert [x[0] for x in asked] == [x[0] for x in whole]
    else:
        steps = np.abs(np.array(asked)[:, 0] - np.array(whole)[:, 0])
        assert np.median(steps) == 0.0
        assert steps.max() <= 2.0  # where the nearest is taken, another is
    assert agent.policy.designed(agent.view(), np.empty((0, 2)), 1)[0].size == 0


def test_the_design_in_a_branch_covers_what_the_branch_has():
    branch = Node(True, 0, 0.5, Node(False), Node(True))
    tree = Tree(((np.array([1]), branch),), np.full(2, 0.5), np.zeros(2, dtype=bool))
    kind = Lattice(np.array([0]), np.arange(2.0))
    agent = learner(Initial(UCB(), 8), Box([0.0, 0.0], [1.0, 1.0], kind, tree=tree))
    asked = np.array([choice.x for choice in agent.ask_batch(8, context={0: 1.0})])
    assert len(set(np.floor(4 * asked[:, 1]))) == 4


def test_the_design_of_a_part_is_in_the_part():
    grid = BOX.grid(5)
    agent = learner(Initial(UCB(), 4), grid)
    assert agent.ask(among=[3]).arm == 3
    assert sorted(choice.arm for choice in agent.ask_batch(2, among=[3, 7, 9])) == [7, 9]
    assert agent.ask(among=[3]).arm == 3  # there is no other
    part = Box([4.0, -1.0], [6.0, 0.0])
    points = np.array([choice.x for choice in learner(Initial(UCB(), 8)).ask_batch(8, among=part)])
    assert part.contains(points).all()
    cells = np.floor((points - part.lower) / part.widths * [4, 2]).astype(int)
    assert len({tuple(cell) for cell in cells}) == 8


def test_a_finite_design_repeats_nothing_before_it_must():
    grid = BOX.grid(3)
    asked = play(learner(Initial(UCB(), 9), grid), 9)
    assert len(np.unique(asked, axis=0)) == 9
    agent = learner(Initial(UCB(), 9), grid)
    agent.tell(grid.points[:3], np.zeros(3))
    agent.tell(grid.points[3], failed="infeasible")
    rest = [agent.ask().arm for _ in range(5)]
    assert sorted(rest) == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("seed", range(4))
def test_a_batch_beyond_a_finite_design_repeats_nothing_before_it_must(seed):
    grid = BOX.grid(4)
    agent = learner(Initial(UCB(), 9), grid, seed=seed)
    agent.tell(grid.points[:5], np.zeros(5))
    arms = [choice.arm for choice in agent.ask_batch(11)]
    assert sorted(arms) == list(range(5, 16))


def test_the_seed_decides():
    a, b, c = (play(learner(Initial(UCB(), 6), seed=seed), 6) for seed in (1, 1, 2))
    assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_it_needs_what_its_policy_needs():
    class Bounded(Policy):
        needs_finite = True

        def start(self, domain):
            return None

        def choose(self, view, state, n):
            raise AssertionError("never asked")

    with pytest.raises(ValueError, match=r"Initial needs a finite domain, got Box.*grid\(50\)"):
        learner(Initial(Bounded(), 3))
    assert not Initial(UCB(), 3).needs_finite
    with pytest.raises(ValueError, match="size >= 0"):
        Initial(UCB(), -1)


@pytest.mark.parametrize(
    "policy", [Initial(VerifiedImprovement(), 3), Requery(VerifiedImprovement())]
)
def test_constraints_are_weighed_by_the_policy_within(policy):
    agent = learner(policy)
    for _ in range(4):
        x = agent.ask().x
        agent.tell(x, float(x.sum()), constraints={"left": x[0] - 6.0})
    assert agent.ask().x[0] < 7.0
    assert not Initial(UCB(), 3).constrained
