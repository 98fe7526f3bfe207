"""Local searches in trust regions, where a model has a window."""

from dataclasses import replace

import numpy as np
import pytest

from stoic import Box, Learner
from stoic.domains import Lattice
from stoic.domains.tree import Node, Tree
from stoic.models.window import Bounds
from stoic.policies.trust_region import LocalSearch, Region
from stoic.recipes import robust

PLANE = Box([-1.0, 2.0], [3.0, 4.0])
SHADES = Lattice(np.array([0, 1, 2]), np.eye(3))
STEPS = Lattice(np.array([3]), np.arange(0.0, 6.0)[:, None])
MIXED = Box([0.0, 0.0, 0.0, 0.0, -1.0], [1.0, 1.0, 1.0, 5.0, 1.0], (SHADES, STEPS))
SMALL = Bounds(exact=20, chosen=24, full=32, recent=6, local=6, sample=4)


def replayed(domain, x, values, exact):
    """Follow the rule row by row, in the domain's own units."""
    best = max((i for i in range(exact) if np.isfinite(values[i])), key=lambda i: values[i])
    state = {"row": best, "best": values[best], "centre": x[best], "side": 0.4}
    good = bad = idle = searches = places = start = 0
    rival, since, lined = None, exact, -np.inf
    discrete = {column for lattice in domain.lattices for column in lattice.columns}
    continuous = [k for k in range(domain.dim) if k not in discrete]
    lines = []  # along which searches are to come, the one in force first

    def gap(i):
        apart = abs(x[i] - state["centre"]) / domain.widths
        return max([each for k, each in enumerate(apart) if k not in lines[:1]], default=0.0)

    def near(i, side):
        return gap(i) <= side

    def returned():
        half = state["side"] / 2 * domain.widths
        return rival is not None and all(abs(state["centre"] - rival) <= half)

    def own(n):
        if rival is None:
            return list(range(n))
        return [
            j
            for j in range(start, n)
            if np.linalg.norm((x[j] - state["centre"]) / domain.widths)
            < np.linalg.norm((x[j] - rival) / domain.widths)
        ]

    def enough(rows):
        known = [values[j] for j in rows if np.isfinite(values[j]) and near(j, state["side"])]
        return max(1e-3 * (state["best"] - np.median(known)) if known else 0.0, negligible)

    first = [values[i] for i in range(exact) if np.isfinite(values[i])]
    negligible = 1e-6 * (max(first) - np.median(first))
    needed = enough(range(exact))
    for i in range(exact, len(x)):
        value = values[i]
        idle = idle + 1 if np.isnan(value) or not near(i, state["side"]) else 0
        if 0 < idle < 100:
            continue
        if idle == 100:
            value, bad = -np.inf, 99
        if value > state["best"] + needed:
            good, bad = good + 1, 0
        else:
            good, bad = 0, bad + 1
        if value > state["best"]:
            state |= {"best": value, "centre": x[i]}
        back = returned()
        if lines and not idle:
            if bad < 10:
                continue
            over = True
        else:
            if good < 3 and bad < 20 and not back:
                continue
            most = 1.6 if rival is None else 0.4
            state["side"] = min(2.0 * state["side"], most) if good == 3 else state["side"] / 2.0
            over = state["side"] < 2.0**-7 or back or idle
        good = bad = 0
        if over:
            searches, idle = searches + 1, 0
            top = max((j for j in range(i + 1) if np.isfinite(values[j])), key=lambda j: values[j])
            better = values[top] > lined + needed
            if lines:
                lines, where = lines[1:], "best" if better else "elsewhere"
            elif rival is None:
                lines, where = continuous if better else [], "elsewhere"
                lined = values[top] if better else lined
            else:
                where = "best" if better else "elsewhere"
            start, rival = 0, None
            side = 2.0**-7 if lines else 0.4
            state |= {"best": values[top], "centre": x[top], "side": side}
            if where == "elsewhere" and not lines:
                start, rival = i + 1, x[top]
                state["best"] = -np.inf
                while returned():
                    places += 1
                    state["centre"] = domain.spread(places, np.random.default_rng(0))[-1]
        needed, since = enough([j for j in own(i + 1) if j > i - 512]), i + 1
    rows = own(len(x))
    most = min(max(sum(near(j, state["side"]) for j in rows), 2 * domain.dim), 128)
    away = {j: gap(j) for j in rows}
    rows = sorted(rows, key=lambda j: (j < since or not near(j, state["side"]), away[j]))
    return state["centre"], state["side"], sorted(rows[:most]), searches, next(iter(lines), None)


@pytest.mark.parametrize(("seed", "dim"), [(0, 1), (1, 2), (2, 12)])
def test_a_region_is_that_of_a_replay_row_by_row(seed, dim):
    rng = np.random.default_rng(seed)
    domain = Box(-np.ones(dim), np.linspace(1.0, 3.0, dim))
    x, values = domain.sample(21, rng), rng.standard_normal(21)
    values[rng.random(21) < 0.2] = -np.inf
    seen, lines = set(), set()
    while len(x) < 500:
        region = Region.after(domain, x, values, 21)
        centre, side, rows, searches, along = replayed(domain, x, values, 21)
        np.testing.assert_allclose(domain.lower + domain.widths * region.centre, centre)
        assert region.side == side
        assert (region.searches, region.along) == (searches, along)
        np.testing.assert_array_equal(region.rows, rows)
        seen.add(searches)
        lines.add(along)
        # A few at a time, in the region, and with luck that comes and goes
        more = region.box(domain).sample(7, rng)
        luck = values[np.isfinite(values)].max() * rng.choice([-1.0, 1.0], p=[0.9, 0.1])
        new = luck + rng.standard_normal(7) * rng.choice([0.01, 1.0])
        new[rng.random(7) < 0.1], new[rng.random(7) < 0.1] = np.nan, -np.inf
        x, values = np.concatenate([x, more]), np.append(values, new)
    assert len(seen) > 2
    assert len(lines) > 1


def test_a_search_along_a_line_has_all_of_a_coordinate_and_little_of_the_others():
    centre = np.array([0.5, 0.25])
    part = Region(centre, 2.0**-7, np.arange(3), 0, along=1).box(PLANE)
    np.testing.assert_allclose(part.lower, [1.0 - 2.0**-6, 2.0])
    np.testing.assert_allclose(part.upper, [1.0 + 2.0**-6, 4.0])


@pytest.mark.parametrize("seed", range(3))
def test_searches_along_lines_leave_a_local_maximum(seed):
    def height(x):  # in each coordinate there is a maximum at 0.3, and a lower one at 0.8
        each = np.maximum(1.0 - 4.0 * np.abs(x - 0.3), 0.6 - 4.0 * np.abs(x - 0.8))
        return each.sum(axis=1)

    domain, rng = Box(np.zeros(3), np.ones(3)), np.random.default_rng(seed)
    x = 0.8 + 0.05 * rng.standard_normal((21, 3))
    while height(x).max() <= 1.8:  # with the lower ones in all coordinates
        region = Region.after(domain, x, height(x), 21)
        x = np.concatenate([x, region.box(domain).sample(1, rng)])
    assert region.along is not None
    assert len(x) < 400


def test_a_region_keeps_lattices_and_stays_in_the_domain():
    domain = MIXED
    for row in domain.sample(50, np.random.default_rng(0)):
        for side in (1.6, 0.8, 0.01):
            centre = (row - domain.lower) / domain.widths
            part = Region(centre, side, np.arange(3), 0).box(domain)
            points = part.sample(20, np.random.default_rng(1))
            assert domain.contains(points).all()
            assert part.contains(row[None]).all()
            half = np.maximum(0.5 * side * domain.widths, [0.0, 0.0, 0.0, 1.0, 0.0])  # one step
            assert (np.abs(points - row) <= half + 1e-12).all()
            assert len(np.unique(points[:, 3])) > 1


def test_a_region_about_a_point_without_some_coordinates():
    branches = Lattice(np.array([0]), np.array([[0.0], [1.0]]))
    colours = Lattice(np.array([1, 2]), np.eye(2))
    # The second branch alone has a colour and the last coordinate
    rule = Node(True, 0, 0.5, Node(False), Node(True))
    rules = (np.array([1, 2]), rule), (np.array([3]), rule)
    tree = Tree(rules, np.array([0.0, 0.0, 0.0, 0.5]), np.zeros(4, dtype=bool))
    domain = Box(np.zeros(4), np.ones(4), (branches, colours), tree=tree)
    for row in domain.sample(20, np.random.default_rng(0)):
        for side in (1.6, 0.4, 0.01):
            part = Region(row, side, np.arange(3), 0).box(domain)
            points = part.sample(20, np.random.default_rng(1))
            assert domain.contains(points).all()
            assert part.contains(row[None]).all()
            assert side > 1.0 or (points[:, 0] == row[0]).all()


def ripples(x):
    """One hill with ripples too narrow for 20 points of the plane."""
    u = (x - PLANE.lower) / PLANE.widths - [0.37, 0.61]
    return -4.0 * (u**2).sum(axis=-1) - 0.1 * (1.0 - np.cos(40.0 * u)).sum(axis=-1)


def learner(seed=0, bounds=SMALL, domain=PLANE):
    parts = robust()(domain)
    return Learner(domain, replace(parts, model=replace(parts.model, bounds=bounds)), seed=seed)


def begun(known, n=SMALL.exact + 1, seed=1):
    x = known.domain.sample(n, np.random.default_rng(seed))
    known.tell(x, ripples(x[:, :2]))
    return known


def region_of(known):
    trust = known.posterior.trust(known.observations)
    values = np.where(trust < 0.5, np.nan, known.observations.observed)
    region = Region.after(known.domain, known.observations.x, values, SMALL.exact)
    return region.box(known.domain)


@pytest.mark.parametrize("results", [1, 2])
def test_every_other_choice_is_local(results):
    known, local = begun(learner()), []
    for turn in range(16):
        part = region_of(known)
        choice = known.ask()
        if turn % 2 == 0:
            assert part.contains(choice.x[None]).all()
        local.append(part.contains(choice.x[None])[0])
        for _ in range(results):
            known.tell(choice.x, ripples(choice.x))
    assert not all(local)


def test_where_no_improvement_is_expected_every_other_choice_of_the_model_of_all_explores():
    def bowl(x):
        return -((x - [1.0, 3.0]) ** 2).sum(axis=-1)

    known, distances = learner(), []
    x = PLANE.sample(SMALL.exact + 1, np.random.default_rng(1))
    known.tell(x, bowl(x))
    for _ in range(24):
        choice = known.ask()
        away = np.abs(known.observations.x - choice.x) / PLANE.widths
        distances.append(away.max(axis=1).min())
        known.tell(choice.x, bowl(choice.x))
    own = distances[1::2]
    assert min(own[2::2]) > max(own[1::2])


def test_a_repeat_that_gives_no_result_is_given_up():
    known = begun(learner())
    x = np.array([1.0, 2.5])
    known.tell(x, 5.0)  # rejected, and worth a repeat
    asked = 0
    for _ in range(12):
        choice = known.ask()
        if choice.notes:
            asked += 1
            known.tell(choice.x, failed="transient")
        else:
            known.tell(choice.x, ripples(choice.x))
    assert asked == 3  # as one that was never seen, and once more for its result


@pytest.mark.parametrize("again", [False, True])
def test_a_rejected_result_is_repeated_until_a_trusted_one_contradicts_it(again):
    known = begun(learner())
    x = np.array([1.0, 2.5])
    known.tell(x, 5.0)
    values = [2.5, ripples(x), ripples(x)] if again else [ripples(x)]  # wrong once more, or at once
    asked = 0
    for _ in range(30):
        choice = known.ask()
        asked += bool(choice.notes)
        value = values.pop(0) if choice.notes and values else ripples(choice.x)
        known.tell(choice.x, value)
    assert asked == 1 + again


def test_failures_nearby_or_before_do_not_end_repeats():
    known = begun(learner())
    x = np.array([1.0, 2.5])
    for away in (0.0, 0.0, 1e-3, 2e-3):
        known.tell(x + away, failed="transient")
    known.tell(x, 5.0)
    assert any(known.ask().notes for _ in range(2))


@pytest.mark.long
def test_categories_integers_and_failed_runs_among_many_results():
    domain = MIXED

    def objective(x):
        return x[:, 1] - 0.1 * np.abs(x[:, 3] - 4.0) - np.abs(x[:, 4] - 0.3)

    known = learner(domain=domain)
    x = domain.sample(SMALL.exact + 1, np.random.default_rng(1))
    known.tell(x, objective(x))
    for _ in range(40):
        choice = known.ask()
        assert domain.contains(choice.x[None]).all()
        if choice.x[3] == 5.0:
            known.tell(choice.x, failed="infeasible")
        else:
            known.tell(choice.x, objective(choice.x[None])[0])
    np.testing.assert_allclose(known.recommend().x, [0.0, 1.0, 0.0, 4.0, 0.3], atol=0.02)


@pytest.mark.parametrize("kind", ["bad", "infeasible", "transient"])
def test_an_input_that_failed_in_a_region_is_left(kind):
    known, failed = begun(learner()), []
    for turn in range(14):
        choice = known.ask()
        if turn % 2 or choice.notes:  # the other turn, or a repeat
            known.tell(choice.x, ripples(choice.x))
            continue
        away = np.abs(choice.x - np.reshape(failed, (-1, 2))) / PLANE.widths
        assert (away.max(axis=1) > 1e-3).all()
        known.tell(choice.x, failed=kind)
        failed.append(choice.x)
    assert len(failed) > 4


def test_a_search_begins_when_something_is_feasible():
    known = learner()
    x = PLANE.sample(SMALL.exact + 1, np.random.default_rng(1))
    known.tell(x, ripples(x), constraints={"c": x[:, 1] - 1.0})  # violated by all
    x = PLANE.sample(10, np.random.default_rng(2))
    known.tell(x, ripples(x), constraints={"c": x[:, 1] - 5.0})
    assert LocalSearch.of(known.view(), known.constraints()) is not None


def test_a_search_in_a_place_that_gives_no_results_ends():
    x = np.tile([[0.0, 3.0]], (400, 1))
    values = np.append(np.linspace(0.0, 1.0, 21), np.full(379, 0.5))
    seen = []
    for n in range(22, 400, 2):
        region = Region.after(PLANE, x[:n], values[:n], 21)
        seen.append(region.searches)
        # All further results are somewhere else
        x[n:] = PLANE.lower + PLANE.widths * ((region.centre + 0.5) % 1.0)
    assert np.flatnonzero(np.diff(seen)).size == 3  # a hundred results each
    assert seen[-1] == 3


@pytest.mark.long
def test_a_search_goes_on_where_its_best_choice_was_seen():
    known, summit = learner(), []

    def slope(x):  # to a corner, where all choices end
        return (x - [-1.0, 2.0]).sum(axis=-1)

    x = PLANE.sample(SMALL.exact + 1, np.random.default_rng(1))
    known.tell(x, slope(x))
    for _ in range(120):
        choice = known.ask()
        summit.append((choice.x == PLANE.upper).all())
        known.tell(choice.x, slope(choice.x))
    values = known.observations.observed
    assert any(summit)
    assert Region.after(PLANE, known.observations.x, values, SMALL.exact).side < 0.1


def test_a_region_of_one_choice_is_none():
    shades = Lattice(np.arange(4), np.eye(4))
    domain = Box(np.zeros(4), np.ones(4), (shades,))
    known = learner(domain=domain)
    x = domain.sample(SMALL.exact + 1, np.random.default_rng(0))
    known.tell(x, x[:, 0])
    assert LocalSearch.of(known.view(), None) is None


def test_a_batch_on_integers_has_no_repeats():
    steps = (
        Lattice(np.array([0]), np.arange(31.0)[:, None]),
        Lattice(np.array([1]), np.arange(4.0)[:, None]),
    )
    domain = Box(np.zeros(2), np.array([30.0, 3.0]), steps)
    known = learner(domain=domain)
    x = domain.sample(SMALL.exact + 2, np.random.default_rng(0))
    known.tell(x, -((x[:, 0] - 11.0) ** 2) - x[:, 1])
    batch = np.array([choice.x for choice in known.ask_batch(10)])
    assert len(np.unique(batch, axis=0)) == 10


def test_choices_of_conditional_spaces_are_points_of_the_space():
    # A number of layers, and a width of each from the second on
    layers = Lattice(np.array([0]), np.arange(1.0, 6.0)[:, None])
    rules = tuple(
        (np.array([k]), Node(True, 0, k + 0.5, Node(False), Node(True))) for k in (1, 2, 3)
    )
    tree = Tree(rules, np.array([0.0, 0.5, 0.5, 0.5]), np.zeros(4, dtype=bool))
    domain = Box(
        np.array([1.0, 0.0, 0.0, 0.0]), np.array([5.0, 1.0, 1.0, 1.0]), (layers,), tree=tree
    )

    def objective(x):
        return -np.abs(x[:, 0] - 3.0) - ((x[:, 1:] - 0.97) ** 2).sum(axis=1)

    known = learner(domain=domain)
    x = domain.sample(SMALL.exact + 1, np.random.default_rng(3))
    known.tell(x, objective(x))
    for _ in range(30):
        choice = known.ask()
        assert domain.contains(choice.x[None]).all()
        known.tell(choice.x, objective(choice.x[None])[0])


def test_there_is_no_local_search_without_a_window():
    one, other = begun(learner(bounds=Bounds())), begun(learner(bounds=None))
    for _ in range(3):
        choice = one.ask()
        np.testing.assert_array_equal(choice.x, other.ask().x)
        for known in (one, other):
            known.tell(choice.x, ripples(choice.x))


@pytest.mark.slow
def test_local_search_finds_a_summit_among_ripples():
    reached = []
    for seed in range(7):
        known = begun(learner(seed), 31, seed)
        for _ in range(45):
            choice = known.ask()
            known.tell(choice.x, ripples(choice.x))
        reached.append(-known.observations.observed.max())
    assert np.median(reached) < 1e-3


def test_a_result_counts_if_the_model_of_its_region_trusts_it(monkeypatch):
    unknown, of = [], Region.after.__func__

    def after(cls, domain, x, values, exact):
        unknown.append(int(np.isnan(values).sum()))
        return of(cls, domain, x, values, exact)

    monkeypatch.setattr(Region, "after", classmethod(after))
    regained, known = 0, begun(learner(), 31)
    for _ in range(30):
        unknown.clear()
        choice = known.ask()
        if len(unknown) == 2:
            regained += unknown[0] - unknown[1]
            assert unknown[1] < unknown[0]
        known.tell(choice.x, ripples(choice.x))
    assert regained > 0


def test_a_batch_has_local_and_other_choices_without_repeats():
    known = begun(learner())
    part, batch = region_of(known), known.ask_batch(6)
    assert all(part.contains(choice.x[None])[0] for choice in batch[::2])
    distances = np.abs(batch[0].x - np.array([choice.x for choice in batch[1:]]))
    assert len(np.unique([choice.x for choice in batch], axis=0)) == 6
    assert (distances.max(axis=1) > 1e-3).all()


def test_a_part_of_the_domain_is_searched_as_a_whole():
    known, other = begun(learner()), begun(learner())
    assert len(known) % 2
    corner = Box([2.5, 3.8], [3.0, 4.0])
    assert corner.contains(known.ask(among=corner).x[None]).all()
    known.tell(other.ask().x, 0.0)  # and whose turn it is stays
    assert region_of(known).contains(known.ask().x[None]).all()


def test_whose_turn_it_is_in_a_process_for_each_trial():
    known, turns = begun(learner()), []
    for turn in range(10):
        known._state = known.policy.start(PLANE)
        choice = known.ask()
        turns.append(known._state)  # of the next choice
        if turn % 3:
            known.tell(choice.x, ripples(choice.x))
        else:
            known.tell(choice.x, failed="transient")
    assert turns == [False, True] * 5


def test_no_turns_are_taken_on_a_finite_domain():
    grid = PLANE.grid(12)
    known = learner(domain=grid)
    x = grid.points[:: len(grid.points) // SMALL.exact - 1]
    known.tell(x, ripples(x))
    assert known.surrogate.exact == SMALL.exact
    known.ask()
    assert known._state is None


@pytest.mark.long
def test_outliers_failures_and_constraints_in_a_region():
    rng = np.random.default_rng(5)
    known = begun(learner())
    for turn in range(50):
        choice = known.ask()
        assert known.domain.contains(choice.x[None]).all()
        y = ripples(choice.x) + (2.0 if rng.random() < 0.1 else 0.0)
        y = np.nan if turn % 7 == 0 else y
        known.tell(choice.x, y, constraints={"c": choice.x[0] - 0.6})  # the best has 0.48
    best = known.recommend().x
    assert best[0] <= 0.6
    assert ripples(best) > -0.3
