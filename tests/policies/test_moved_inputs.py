import logging
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import literal_satisficing as literal
from stoic.confidence import Fixed
from stoic.confidence.base import Band
from stoic.distances import Distance
from stoic.domains import Box, Finite, Lattice
from stoic.kernels import RBF, Scaled
from stoic.learner import Learner
from stoic.models import GaussianProcess
from stoic.policies import UCB, Initial, Satisficing, StableOpt
from stoic.policies.satisficing import PATIENCE
from stoic.posteriors import Prior
from stoic.problems import polynomial
from stoic.recipes import Parts
from stoic.satisficing import (
    Certificate,
    fragility,
    highest_worst,
    least_fragile,
    most_robust,
    worst_value,
)

GRID = Box([3.0, -2.0], [4.0, -1.0]).grid(9)
PRIOR = Prior(RBF(0.3), 0.01)
KERNEL = Distance.of_kernel(RBF(0.5))
POWERS = (1.0, 2.0, math.inf)
SQUARE = Box([3.0, -2.0], [4.0, -1.0])


def each_policy(**options):
    policies = [*(Satisficing(0.4, p, **options) for p in POWERS), StableOpt(0.3, **options)]
    return pytest.mark.parametrize("policy", policies, ids=["1", "2", "inf", "ro"])


contextual = each_policy(distance=Distance(tolerance=[0.0, 1.0]))
grid_and_box = pytest.mark.parametrize("domain", [GRID, SQUARE], ids=["grid", "box"])


def learner(policy, domain=GRID, told=12, seed=0, width=2.0, prior=PRIOR):
    """A learner that was told a few noisy results of a wave."""
    agent = Learner(domain, Parts(GaussianProcess(prior), Fixed(width), policy), seed=0)
    rng = np.random.default_rng(seed)
    for x in domain.sample(told, rng):
        agent.tell(x, np.sin(5.0 * x[0]) + np.cos(4.0 * x[1]) + 0.1 * rng.standard_normal())
    return agent


def bounds(agent):
    mean, std = agent.posterior.predict(agent.domain.points)
    return mean - 2.0 * std, mean + 2.0 * std


def distances(distance=KERNEL, points=GRID.points):
    table = distance(points, points)
    np.fill_diagonal(table, 0.0)
    return table.tolist()


class Known:
    """A model, and its posterior, that is sure of f."""

    n = 0

    def __init__(self, f):
        self.f = f

    def __call__(self, domain, observations, previous=None):
        return self

    def predict(self, x):
        return self.f, np.zeros(len(self.f))


def chosen(policy, domain, f):
    """What a policy chooses if f is known."""
    return Learner(domain, Parts(Known(f), Fixed(2.0), policy)).ask()


@pytest.mark.parametrize("distance", [Distance(), KERNEL], ids=["euclidean", "kernel"])
def test_with_f_in_place_of_the_bound_the_choice_is_the_true_point(distance):
    problem = polynomial().on_grid(30)
    points = problem.domain.points
    f = problem.value(points)
    for tau in (-30.0, -10.0, 10.0):
        for p in (1.0, 2.0, 9.0):
            choice = chosen(Satisficing(tau, p, distance), problem.domain, f)
            true = least_fragile(f, tau, points, distance, p=p)
            assert choice.arm == true.row
            # Both bounds are f, so the promise is the truth.
            assert choice.notes["optimistic"] == true.value
            assert choice.notes["fragility"] == pytest.approx(true.value, rel=1e-9)
        choice = chosen(Satisficing(tau, math.inf, distance), problem.domain, f)
        true = most_robust(f, tau, points, distance)
        assert choice.arm == true.row
        assert choice.notes["radius"] == pytest.approx(true.value, rel=1e-9)
    for radius in (0.1, 0.5, 1.5):
        choice = chosen(StableOpt(radius, distance), problem.domain, f)
        assert choice.arm == highest_worst(f, radius, points, distance).row
        assert choice.notes["value"] == choice.notes["optimistic"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("p", POWERS)
def test_every_choice_is_the_literal_one(p, seed):
    """Algorithms 1 and 2, line by line; the promise is theirs with the lower bound."""
    agent = learner(Satisficing(0.4, p, KERNEL), seed=seed)
    for _ in range(4):
        lower, upper = bounds(agent)
        choice = agent.ask()
        notes = choice.notes
        if p == math.inf:
            optimistic = literal.critical_radius(upper, 0.4, distances())
            row, value = literal.first(optimistic, max, range(len(GRID)))
        else:
            optimistic = literal.fragility(upper, 0.4, distances(), p)
            row, value = literal.first(optimistic, min, range(len(GRID)))
        assert choice.arm == row
        assert notes["optimistic"] == pytest.approx(value, rel=1e-6)
        assert notes["reachable"]
        promise = Certificate.of(notes)
        pessimistic = literal.fragility(lower, 0.4, distances(), p)[row]
        assert promise.fragility == pytest.approx(pessimistic, rel=1e-6)
        assert promise.value == notes["threshold"] == 0.4
        radius = literal.critical_radius(lower, 0.4, distances())[row]
        assert promise.radius == pytest.approx(radius, rel=1e-6)
        assert promise.p == p
        agent.tell(choice.x, np.sin(5.0 * choice.x[0]) + np.cos(4.0 * choice.x[1]))


def test_a_threshold_out_of_reach_is_said_in_every_choice_and_once_in_the_log(caplog):
    agent = learner(Satisficing(50.0))
    with caplog.at_level(logging.WARNING, logger="stoic"):
        for k in range(7):
            choices = agent.ask_batch(2)
            assert not any(choice.notes["reachable"] for choice in choices)
            _, upper = bounds(agent)
            agent.forget_pending()
            assert agent.ask().arm == np.argmax(upper)
            agent.tell(choices[0].x, 0.3)
            agent.forget_pending()
            assert len(caplog.records) == (k > 3)  # in the tenth round
    assert "The threshold 50 is out of reach" in caplog.text
    assert "nothing is promised" in str(Certificate.of(choices[0].notes))
    # The next learner with the same policy says it again, unless somebody else does.
    for policy in (agent.policy, Satisficing(50.0, quiet=True)):
        other = learner(policy)
        assert not any(other.ask().notes["reachable"] for _ in range(PATIENCE))
    assert len(caplog.records) == 2


def test_a_threshold_within_reach_is_not_mentioned(caplog):
    with caplog.at_level(logging.DEBUG, logger="stoic"):
        assert learner(Satisficing(0.0)).ask().notes["reachable"]
        assert learner(Satisficing("adaptive")).ask().notes["reachable"]
    assert not caplog.records


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("margin", [0.0, 0.7])
def test_an_adaptive_threshold_is_one_that_is_surely_reached(p, margin):
    agent = learner(Satisficing("adaptive", p, margin=margin))
    thresholds = set()
    for _ in range(4):
        lower, upper = bounds(agent)
        choice = agent.ask()
        tau = choice.notes["threshold"]
        thresholds.add(tau)
        assert tau == pytest.approx(lower.max() - margin, rel=1e-12)
        assert upper[choice.arm] >= tau
        agent.tell(choice.x, np.sin(5.0 * choice.x[0]) + np.cos(4.0 * choice.x[1]))
    assert len(thresholds) == 4


@pytest.mark.parametrize("p", POWERS)
def test_choices_that_seek_are_the_largest_upper_bounds(p):
    agent = learner(Satisficing("adaptive", p, margin=0.7, seeking=2))
    for _ in range(6):
        turn = len(agent) % 3
        _, upper = bounds(agent)
        fixed = learner(Satisficing("adaptive", p, margin=0.7))
        fixed.tell(agent.observations.x[len(fixed) :], agent.observations.observed[len(fixed) :])
        choice, other = agent.ask(), fixed.ask()
        assert choice.arm == (upper.argmax() if turn else other.arm)
        assert choice.notes["threshold"] == pytest.approx(other.notes["threshold"], rel=1e-12)
        assert choice.notes["reachable"]
        agent.tell(choice.x, np.sin(5.0 * choice.x[0]) + np.cos(4.0 * choice.x[1]))
    seeking, number = learner(Satisficing(0.4, p, seeking=2)), learner(Satisficing(0.4, p))
    assert [seeking.ask().arm for _ in range(3)] == [number.ask().arm for _ in range(3)]


@pytest.mark.parametrize("policy", [Satisficing(0.4), StableOpt(0.3)], ids=["satisficing", "ro"])
def test_what_is_on_its_way_promises_nothing(policy):
    agent = learner(policy)
    lower, _ = bounds(agent)
    for choice in agent.ask_batch(6):
        notes = choice.notes
        if "threshold" in notes:
            radius = literal.critical_radius(lower, 0.4, distances(Distance()))[choice.arm]
            assert notes["radius"] == pytest.approx(radius)
        else:
            worst = worst_value(lower, 0.3, GRID.points)[choice.arm]
            assert notes["value"] == pytest.approx(worst)


def test_a_batch_is_chosen_one_by_one_from_narrower_bands():
    batch = learner(Satisficing(0.4), prior=Prior(RBF(0.3), 1.0)).ask_batch(4)
    agent = learner(Satisficing(0.4), prior=Prior(RBF(0.3), 1.0))
    assert [agent.ask().arm for _ in range(4)] == [choice.arm for choice in batch]


@contextual
def test_a_context_is_given_and_then_moves(policy):
    """The row is one of this context; what counts are the rows that differ in the context only."""
    agent = learner(policy)
    today = GRID.points[:, 1] == -1.5
    lower, _ = bounds(agent)
    choice = agent.ask(among=today)
    assert choice.x[1] == -1.5
    same_action = np.flatnonzero(GRID.points[:, 0] == choice.x[0])
    if isinstance(policy, StableOpt):
        near = same_action[np.abs(GRID.points[same_action, 1] + 1.5) <= 0.3 + 1e-9]
        assert choice.notes["value"] == lower[near].min()
    else:
        below = same_action[lower[same_action] < 0.4]
        expected = np.abs(GRID.points[below, 1] + 1.5).min(initial=math.inf)
        held = lower[choice.arm] >= 0.4
        assert choice.notes["radius"] == pytest.approx(expected if held else -math.inf)
    executed = [choice.x[0], -1.25]
    agent.tell(executed, 0.3)
    assert agent.observations.x[-1].tolist() == executed
    assert agent.pending == []


def test_the_learner_may_move_the_input_itself():
    """Algorithm 1 of StableOpt: the executed point minimises the lower bound in the ball."""
    agent = learner(StableOpt(0.3, probe=True))
    plain = learner(StableOpt(0.3)).ask()
    lower, _ = bounds(agent)
    choice = agent.ask()
    assert choice.notes["centre"] == plain.x.tolist()
    assert "centre" not in plain.notes
    near = np.flatnonzero(np.linalg.norm(GRID.points - plain.x, axis=1) <= 0.3 + 1e-9)
    assert choice.arm == near[np.argmin(lower[near])]
    assert choice.notes["value"] == lower[near].min()
    rows = np.arange(20)
    assert agent.ask(among=rows).arm in rows


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("seed", range(4))
def test_a_probe_is_where_the_choice_may_fall_short_the_most(p, seed):
    agent = learner(Satisficing(0.4, p, KERNEL, probe=True), seed=seed)
    plain = learner(Satisficing(0.4, p, KERNEL), seed=seed).ask()
    lower, upper = bounds(agent)
    choice = agent.ask()
    assert choice.notes["centre"] == plain.x.tolist()
    assert "centre" not in plain.notes
    assert {**choice.notes, "centre": 0} == {**plain.notes, "centre": 0}
    # What a centre promises that is worth being told, if no point that was told promises as much.
    told = Certificate.of(agent.recommend().notes)
    promised = Certificate.of(plain.notes)
    if (promised.radius > told.radius) if p == math.inf else (promised.fragility < told.fragility):
        assert choice.arm == plain.arm
        agent.tell(choice.x, math.nan)
        choice = agent.ask()
    optimistic, far = plain.notes["optimistic"], distances()[plain.arm]
    if p == math.inf:
        allowed = [0.0 if d < optimistic else math.inf for d in far]
    else:
        allowed = [(optimistic * d) ** p for d in far]
    short = 0.4 - np.array(allowed) - lower
    assert choice.arm == np.argmax(short)
    # What the guarantee rests on: the upper bound does not fall short there.
    assert short.max() <= (upper - lower)[choice.arm] + 1e-9
    rows = np.arange(20)
    assert agent.ask(among=rows).arm in rows


def test_there_is_nothing_to_probe_where_nothing_may_fall_short():
    agent = learner(Satisficing(-5.0, 1.0, probe=True), width=0.0)  # f exceeds tau by a slope
    assert agent.ask().notes["optimistic"] < 0.0
    for policy in (Satisficing(-5.0, probe=True), Satisficing(5.0, probe=True)):
        choice = learner(policy, width=0.0).ask()  # surely above, or out of reach
        assert choice.x.tolist() == choice.notes["centre"]


def test_probing_makes_certificates_where_the_world_moves_nothing():
    """The polynomial in 60 rounds, tau = -10."""
    problem = polynomial().on_grid(25)
    prior = Prior(Scaled(RBF([0.7, 1.0]), 2e4), 1e-2)
    radius = {}
    for probe in (False, True):
        policy = Satisficing(-10.0, probe=probe, quiet=True)
        agent = learner(policy, problem.domain, told=0, prior=prior)
        for _ in range(60):
            x = agent.ask().x
            agent.tell(x, problem.value(x[None])[0])
        radius[probe] = Certificate.of(agent.recommend().notes).radius
    true = most_robust(problem.value(problem.domain.points), -10.0, problem.domain.points).value
    assert radius[False] < 0.2 * true
    assert radius[True] == pytest.approx(true)


@pytest.mark.parametrize("policy", [Satisficing, lambda **said: StableOpt(0.2, **said)])
@grid_and_box
def test_a_place_without_results_is_given_up(policy, domain):
    """A threshold, or a ball, that everything meets: without a limit, one place for ever."""
    said = {"threshold": -9.0} if policy is Satisficing else {}
    asked = {}
    for retries in (None, 1):
        agent = learner(policy(retries=retries, **said), domain, told=0)
        for _ in range(8):
            agent.tell(agent.ask().x, math.nan)
        _, visits = np.unique(agent.observations.x, axis=0, return_counts=True)
        asked[retries] = visits.tolist()
    assert asked == {None: [8], 1: [2, 2, 2, 2]}


def test_a_radius_of_zero_is_the_upper_bound_itself():
    agent = learner(StableOpt(0.0))
    _, upper = bounds(agent)
    choice = agent.ask()
    assert choice.arm == np.argmax(upper)
    assert choice.notes["optimistic"] == upper.max()


FIVE = Lattice(np.array([2]), np.arange(5.0)[:, None])
BOX = Box([3.0, -2.0, 0.0], [4.0, -1.0, 4.0], lattices=(FIVE,))


def test_what_seeks_on_a_box_is_no_candidate_but_the_summit():
    seeking = learner(Satisficing("adaptive", margin=0.7, candidates=200, seeking=1), BOX, told=15)
    summit, choice = learner(UCB(), BOX, told=15).ask(), seeking.ask()
    _, upper = Band(seeking.posterior, 2.0).bounds(np.stack([choice.x, summit.x]))
    assert upper[0] >= upper[1] - 1e-6
    assert not (Satisficing(candidates=200).start(BOX).points == choice.x).all(axis=1).any()


@each_policy(candidates=200)
def test_on_a_box_candidates_and_what_was_told_are_compared(policy):
    agent = learner(policy, BOX, told=15)
    candidates = policy.start(BOX).points
    assert len(candidates) > 150
    for x in candidates:
        BOX.locate(x)
    choice = agent.ask()
    assert choice.arm is None
    row = int(np.flatnonzero((candidates == choice.x).all(axis=1))[0])
    points = np.concatenate([candidates, agent.observations.x])
    mean, std = agent.posterior.predict(points)
    upper = mean + 2.0 * std
    rows = np.arange(len(candidates))
    if isinstance(policy, StableOpt):
        expected = highest_worst(upper, 0.3, points, rows=rows)
    elif policy.p == math.inf:
        expected = most_robust(upper, 0.4, points, rows=rows)
    else:
        expected = least_fragile(upper, 0.4, points, rows=rows, p=policy.p)
    assert row == expected.row
    assert choice.notes["optimistic"] == pytest.approx(expected.value)
    today = Lattice(np.array([0]), np.array([[3.25]]))
    given = agent.ask(among=Box(BOX.lower, BOX.upper, lattices=(today,)))
    assert given.x[0] == 3.25
    BOX.locate(given.x)


@contextual
@pytest.mark.parametrize("given", [None, {1: -1.6}], ids=["whole", "context"])
def test_on_a_box_what_never_moves_is_combined_with_all_moves(policy, given):
    """The certificate, against all points with the same action, one by one."""
    agent = learner(policy, SQUARE)
    choice = agent.ask(context=given)
    candidates = policy.start(SQUARE).points
    assert len(candidates) == 32 * 32
    assert choice.x[0] in candidates[:, 0]
    moves = np.unique(candidates[:, 1])
    moved = np.append(moves, choice.x[1])
    mean, std = agent.posterior.predict(np.column_stack([np.full(33, choice.x[0]), moved]))
    lower, far = mean - 2.0 * std, np.abs(moved - choice.x[1])
    if given is None:
        assert choice.x[1] in moves
    else:
        assert choice.x[1] == -1.6
    if isinstance(policy, StableOpt):
        assert choice.notes["value"] == pytest.approx(lower[far <= 0.3].min())
    else:
        below = far[lower < 0.4].min(initial=math.inf)
        assert choice.notes["radius"] == (pytest.approx(below) if lower[-1] >= 0.4 else -math.inf)


FOUR = Box([3.0, -2.0, 0.0, 0.0], [4.0, -1.0, 1.0, 10.0])
TOLERANCES = Distance("chebyshev", [0.05, 0.05, 0.05, 0.5])


@pytest.mark.parametrize("probe", [False, True])
def test_points_that_have_moves_of_their_own_are_not_taken_for_safe(probe):
    """Candidates with four coordinates lie so far apart that no ball holds a second one."""

    def least(agent, choice):
        """The least upper bound of the ball, from its corners and from random moves."""
        centre = np.array(choice.notes.get("centre", choice.x))
        rng = np.random.default_rng(0)
        sides = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T
        steps = np.concatenate([sides, rng.uniform(-1.0, 1.0, (2000, 4))])
        near = FOUR.snap(centre + steps * np.asarray(TOLERANCES.tolerance))
        return agent.band().bounds(near)[1].min()

    found = []
    for refined in (0, 8):
        agent = learner(StableOpt(1.0, TOLERANCES, probe, 512, refined=refined), FOUR, told=20)
        choice = agent.ask()
        FOUR.locate(choice.x)
        # Exactly so at corners, but not in between.
        found.append((choice.notes["optimistic"] - least(agent, choice), least(agent, choice)))
        if probe:
            centre = np.array(choice.notes["centre"])
            assert TOLERANCES(centre[None], choice.x[None])[0, 0] <= 1.0 + 1e-9
    (coarse, before), (fine, after) = found
    assert 0.0 <= fine < 0.05 < coarse
    assert after > before


@pytest.mark.parametrize("p", POWERS)
def test_moves_of_their_own_leave_the_part_that_may_be_chosen_as_it_is(p):
    agent = learner(Satisficing(0.4, p, TOLERANCES, 0.0, 256, refined=6), FOUR, told=20)
    part = Box(FOUR.lower, FOUR.upper, (Lattice(np.array([0]), np.array([[3.25]])),))
    for choice in (agent.ask(among=part), agent.ask_batch(3, among=part)[-1]):
        assert choice.x[0] == 3.25
        FOUR.locate(choice.x)


@pytest.mark.parametrize("refined", [0, 4])
def test_out_of_reach_on_a_box_the_highest_bound_is_climbed_to(refined, caplog):
    agent = learner(Satisficing(9.0, distance=TOLERANCES, candidates=64, refined=refined), FOUR)
    choice = agent.ask()
    assert not choice.notes["reachable"]
    near = np.concatenate([FOUR.spread(4096, np.random.default_rng(1)), agent.observations.x])
    assert agent.band().bounds(choice.x[None])[1][0] >= agent.band().bounds(near)[1].max()


def test_coordinates_of_one_lattice_move_together():
    lattice = Lattice(np.array([0, 1]), np.eye(2))
    box = Box([0.0] * 3, [1.0] * 3, (lattice,))
    with pytest.raises(ValueError, match=r"Coordinates \[0, 1\] take their values together"):
        Satisficing(0.4, distance=Distance(tolerance=[0.0, 1.0, 1.0])).start(box)
    Satisficing(0.4, distance=Distance(tolerance=[0.0, 0.0, 1.0])).start(box)


@grid_and_box
@each_policy()
def test_what_is_recommended_has_the_best_certificate(policy, domain):
    agent = learner(Initial(policy, 4), domain, told=25)
    recommended = agent.recommend()
    tried = agent.observations.x
    candidates = agent.policy.then.start(domain).points
    points = candidates if domain.finite else np.concatenate([candidates, tried])
    mean, std = agent.posterior.predict(points)
    lower = mean - 2.0 * std
    rows = np.array([np.flatnonzero((points == x).all(axis=1))[0] for x in tried])
    if isinstance(policy, StableOpt):
        name, value = "value", worst_value(lower, 0.3, points, rows=rows)
        best = value.max()
    elif policy.p == math.inf:
        radius = literal.critical_radius(lower, 0.4, distances(Distance(), points))
        name, value = "radius", np.array(radius)[rows]
        best = value.max()
    else:
        name, value = "fragility", fragility(lower, 0.4, points, rows=rows, p=policy.p)
        best = value.min()
    assert recommended.notes[name] == pytest.approx(best)
    its_own = value[(tried == recommended.x).all(axis=1)]  # there may be two that are the best
    assert its_own == pytest.approx(best)
    assert "If f lies in the band" in str(Certificate.of(recommended.notes))


def test_where_no_lower_bound_reaches_the_threshold_nothing_is_promised():
    agent = learner(Satisficing(50.0))
    recommended = agent.recommend()
    assert recommended.notes["radius"] == -math.inf
    plain = Learner(GRID, Parts(agent.model, Fixed(2.0), UCB()), seed=0)
    plain.tell(agent.observations.x, agent.observations.observed)
    assert_array_equal(recommended.x, plain.recommend().x)


def test_a_design_comes_first():
    agent = learner(Initial(Satisficing(0.4), 5), told=0)
    first = agent.ask_batch(5)
    assert not any(choice.notes for choice in first)
    agent.tell(np.array([choice.x for choice in first]), np.zeros(5))
    assert "threshold" in agent.ask().notes


def test_before_anything_is_told_nothing_is_below_the_threshold():
    choice = learner(Satisficing(-1.0), told=0).ask()
    assert choice.arm == 0
    assert choice.notes["optimistic"] == math.inf
    assert choice.notes["radius"] == -math.inf  # the lower bound is -2 everywhere


@each_policy()
@grid_and_box
def test_where_there_are_no_results_f_is_as_good_as_low(policy, domain):
    agent = learner(policy, domain)
    expected = agent.ask()
    rng = np.random.default_rng(0)
    for _ in range(12):  # the neighbourhood of what it likes, and nothing else, gives no results
        near = domain.sample(200, rng)
        at = near[np.argsort(np.linalg.norm(near - expected.x, axis=1))[rng.integers(8)]]
        agent.tell(at, failed="infeasible")
    agent.forget_pending()
    choice = agent.ask()
    assert np.linalg.norm(choice.x - expected.x) > 0.05
    assert choice.notes["optimistic"] != expected.notes["optimistic"]


def test_a_lone_point():
    for policy in (Satisficing(0.0), Satisficing(0.0, 1.0), StableOpt(1.0)):
        assert learner(policy, Finite([[2.0]]), told=0).ask().arm == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"threshold": math.nan}, "a number or 'adaptive'"),
        ({"threshold": "high"}, "a number or 'adaptive'"),
        ({"threshold": 1.0, "margin": 0.5}, "lower the threshold of 1 instead"),
        ({"margin": -1.0}, "finite number >= 0"),
        ({"p": 0.9}, "a number >= 1"),
        ({"candidates": 0}, "at least one candidate"),
        ({"refined": -1}, "a count >= 0, got -1"),
        ({"retries": -1}, "a count >= 0"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Satisficing(**arguments)


@pytest.mark.parametrize("radius", [-1.0, math.inf])
def test_a_radius_that_is_none_is_refused(radius):
    with pytest.raises(ValueError, match="finite number >= 0"):
        StableOpt(radius)


def test_choices_do_not_share_the_domains_rows():
    choice = learner(Satisficing(0.4)).ask()
    choice.x[0] = 99.0
    assert_array_equal(GRID.points, Box([3.0, -2.0], [4.0, -1.0]).grid(9).points)
    assert_allclose(GRID.points.max(), 4.0)
