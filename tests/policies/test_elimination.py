"""Phased elimination against a literal reading of Algorithm 1."""

import math

import numpy as np
import pytest

from stoic import Box, Choice, Finite, GaussianProcess, Learner, Prior, WaitingError
from stoic.confidence import EpochBudget, Fixed
from stoic.kernels import RBF, Matern52
from stoic.pending import NothingLeftError
from stoic.policies import Elimination, RareSwitching
from stoic.recipes import Parts

GRID = Box([0.0, 0.0], [1.0, 1.0]).grid(6)
SCATTERED = Finite(np.random.default_rng(3).uniform(size=(30, 2)))
PRIOR = Prior(RBF(0.3), 0.5)


def first_largest(heights):
    return int(np.argmax(heights >= heights.max() * (1.0 - 1e-9)))


def literal_selection(prior, points, active, growth, length):
    """Lines 2 to 10, with determinants, refitting at every switch."""
    candidates = np.flatnonzero(active)
    chosen = []

    def determinant():
        K = prior.kernel(points[chosen], points[chosen])
        return np.linalg.det(np.eye(len(chosen)) + K / prior.noise)

    variance, reference = prior.kernel.diagonal(points), 1.0
    for _ in range(length):
        chosen.append(int(candidates[first_largest(variance[candidates])]))
        if determinant() > growth * reference * (1.0 + 1e-12):
            reference = determinant()
            K = prior.kernel(points[chosen], points[chosen]) + prior.noise * np.eye(len(chosen))
            k = prior.kernel(points[chosen], points)
            variance = prior.kernel.diagonal(points) - np.sum(k * np.linalg.solve(K, k), axis=0)
    return chosen


@pytest.mark.parametrize("domain", [GRID, SCATTERED], ids=["grid", "scattered"])
@pytest.mark.parametrize("growth", [1.0, 1.3, 2.0])
@pytest.mark.parametrize("noise", [0.1, 1.0])
@pytest.mark.parametrize("few", [False, True])
def test_runs_select_what_the_literal_loop_selects(domain, growth, noise, few):
    prior = Prior(Matern52(0.3), noise)
    active = np.arange(len(domain)) % 5 == 2 if few else np.ones(len(domain), dtype=bool)
    for epoch in range(6):
        length = 2 ** (epoch + 1)
        chosen = literal_selection(prior, domain.points, active, growth, length)
        arms, counts = np.unique(chosen, return_counts=True)
        plan = RareSwitching(growth, 0.0)(prior, domain, active, epoch)
        order = np.argsort(plan.arms)
        np.testing.assert_array_equal(plan.arms[order], arms)
        np.testing.assert_array_equal(plan.plays[order], counts)
        # in the order of their first selection
        assert plan.arms.tolist() == list(dict.fromkeys(chosen))
        truncated = RareSwitching(growth, 0.3)(prior, domain, active, epoch)
        np.testing.assert_array_equal(truncated.arms, plan.arms)
        least = math.ceil(length * 0.3)
        np.testing.assert_array_equal(truncated.plays, np.maximum(plan.plays, least))


def test_a_determinant_that_is_exactly_the_growth_does_not_switch():
    # variance = noise = 1: one play doubles the determinant, which is not more than twice
    plan = RareSwitching(2.0, 0.0)(Prior(RBF(1e-3), 1.0), GRID, np.ones(36, dtype=bool), 2)
    assert plan.arms.tolist() == [0, 1, 2, 3]
    assert plan.plays.tolist() == [2, 2, 2, 2]


def test_an_arm_about_which_nothing_can_be_learned_is_played_to_the_end():
    prior = Prior(RBF(0.3), 1e300)
    assert RareSwitching()(prior, GRID, np.arange(36) == 7, 5).plays.tolist() == [64]


@pytest.mark.parametrize("settings", [{"growth": 0.5}, {"growth": math.nan}, {"share": -0.1}])
def test_settings_that_mean_nothing_are_refused(settings):
    with pytest.raises(ValueError, match=f"{next(iter(settings))}.*at least [01]"):
        RareSwitching(**settings)


def f(x):
    return np.sin(5.0 * x[..., 0]) + x[..., 1]


def phased(design=None, domain=GRID, width=2.0):
    return Learner(
        domain, Parts(GaussianProcess(PRIOR), Fixed(width), Elimination(design or RareSwitching()))
    )


def play(learner, rounds, batch, rng=None):
    """Arms in the order they were handed out, answered in a random order if ``rng`` is given."""
    asked = []
    while len(asked) < rounds:
        choices = learner.ask_batch(min(batch, rounds - len(asked)))
        asked += [choice.arm for choice in choices]
        order = np.arange(len(choices)) if rng is None else rng.permutation(len(choices))
        for i in order:
            learner.tell(choices[i].x, f(choices[i].x), choice=choices[i])
    return asked


def test_an_epoch_handed_out_in_batches_of_any_size_is_the_same():
    singly = play(phased(), 1500, 1)
    for batch in (7, 64, 2000):
        assert play(phased(), 1500, batch) == singly
        # in epochs at least: results in any order, and a queue of its own for each epoch
        assert play(phased(), 1500, batch, np.random.default_rng(batch)) == singly


def literal_campaign(rounds, width, growth, share):
    """Algorithm 1 with refits: the arms played, and what is active at the end of each epoch."""
    points, active, asked, history, epoch = GRID.points, np.ones(36, dtype=bool), [], [], 0
    while True:
        length = 2 ** (epoch + 1)
        chosen = literal_selection(PRIOR, points, active, growth, length)
        played = []
        for arm in dict.fromkeys(chosen):
            xi = chosen.count(arm) / length
            played += [arm] * math.ceil(length * max(xi, share) - 1e-9)
        asked += played
        if len(asked) >= rounds:
            return asked[:rounds], history
        # equation (7): every row has the average of its arm as its target
        y = f(points[played])
        averaged = np.array([np.mean(y[np.array(played) == arm]) for arm in played])
        K = PRIOR.kernel(points[played], points[played]) + PRIOR.noise * np.eye(len(played))
        k = PRIOR.kernel(points[played], points)
        mean = averaged @ np.linalg.solve(K, k)
        std = np.sqrt(PRIOR.kernel.diagonal(points) - np.sum(k * np.linalg.solve(K, k), axis=0))
        active = active & (mean + width * std >= (mean - width * std)[active].max())
        history.append(active)
        epoch += 1


@pytest.mark.parametrize(("growth", "share"), [(2.0, 0.5), (1.0, 0.0), (1.5, 0.1)])
def test_the_whole_algorithm_is_the_literal_one(growth, share):
    learner = phased(RareSwitching(growth, share), width=1.0)
    expected, history = literal_campaign(500, 1.0, growth, share)
    assert play(learner, 500, 50) == expected
    assert len(history) >= 4
    assert history[-1].sum() < 36
    np.testing.assert_array_equal(learner.active(), history[-1])


def test_equation_7_is_the_plain_posterior_mean():
    rng = np.random.default_rng(5)
    played = rng.integers(0, 36, 200)
    y = rng.normal(size=200)
    averaged = np.array([y[played == arm].mean() for arm in played])
    learner = phased()
    learner.tell(GRID.points[played], y)
    points = GRID.points
    K = PRIOR.kernel(points[played], points[played]) + PRIOR.noise * np.eye(200)
    k = PRIOR.kernel(points[played], points)
    weights = np.linalg.solve(K, k)
    np.testing.assert_allclose(averaged @ weights, y @ weights, atol=1e-10)
    np.testing.assert_allclose(learner.posterior.mean, averaged @ weights, atol=1e-10)


def test_what_is_not_told_is_waited_for_and_asked_again_if_it_never_comes():
    learner = phased()
    plan = learner.ask_batch(100)
    assert plan[0].notes == {"epoch": 0, "active": 36}
    assert learner.ask_batch(100) == []
    with pytest.raises(WaitingError):
        learner.ask()
    for choice in plan[1:]:
        learner.tell(choice.x, 0.0, choice=choice)
    assert learner.ask_batch(5) == []
    learner.forget_pending()
    again = learner.ask_batch(5)
    assert [choice.arm for choice in again] == [plan[0].arm]
    assert again[0].notes["epoch"] == 0
    learner.tell(again[0].x, 0.0)
    assert learner.ask().notes["epoch"] == 1


def told_epoch(extra=()):
    """A learner after its first epoch, with results in between that nobody asked for."""
    learner = phased(width=0.5)
    for choice in learner.ask_batch(100):
        for arm, y in extra:
            stranger = Choice(GRID.points[arm], arm)
            learner.tell(GRID.points[arm], y, choice=stranger)
        learner.tell(choice.x, f(choice.x), choice=choice)
    return learner


def test_a_result_that_nobody_asked_for_does_not_count():
    planned = {choice.arm for choice in phased().ask_batch(100)}
    stranger = next(arm for arm in range(36) if arm not in planned)
    plain, disturbed = told_epoch(), told_epoch([(stranger, 1e6)])
    a, b = plain.ask_batch(1000), disturbed.ask_batch(1000)
    assert [choice.arm for choice in a] == [choice.arm for choice in b]
    np.testing.assert_array_equal(plain.active(), disturbed.active())


def test_a_result_that_nobody_asked_for_counts_as_a_play_of_the_plan():
    plan = [choice.arm for choice in phased().ask_batch(100)]
    learner = phased()
    learner.tell(GRID.points[plan[0]], 0.3)  # told before anything was asked
    left = [choice.arm for choice in learner.ask_batch(100)]
    assert sorted([*left, plan[0]]) == sorted(plan)


def test_a_learner_that_is_told_a_history_goes_on_in_the_middle_of_its_epoch():
    going = phased()
    play(going, 333, 9)
    observations = going.observations
    rebuilt = phased()
    rebuilt.tell(observations.x, observations.observed)
    on_their_way = [choice.x for choice in going.ask_batch(4)]
    theirs = rebuilt.ask_batch(6, pending=on_their_way)
    ours = going.ask_batch(6)
    assert sorted(c.arm for c in ours) == sorted(c.arm for c in theirs)
    assert [c.notes for c in ours] == [c.notes for c in theirs]
    np.testing.assert_array_equal(going.active(), rebuilt.active())


def test_a_part_of_the_domain_gets_its_own_plays_of_the_plan():
    whole, parted = (told_epoch() for _ in range(2))
    plan = [choice.arm for choice in whole.ask_batch(100)]
    first, rest = plan[0], sorted({*plan} - {plan[0]})
    assert rest
    asked = [choice.arm for choice in parted.ask_batch(100, among=rest)]
    assert asked == [a for a in plan if a != first]
    with pytest.raises(NothingLeftError, match="ask without `among`"):
        parted.ask(among=rest)
    assert [choice.arm for choice in parted.ask_batch(100)] == [a for a in plan if a == first]


def test_a_box_is_refused():
    with pytest.raises(ValueError, match="needs a finite domain"):
        Learner(Box([0.0], [1.0]), Parts(GaussianProcess(PRIOR), Fixed(), Elimination()))


def test_averaging_makes_corruption_cheap_to_bear():
    """Whatever corruption of total C is put where it harms most, the mean moves by the width."""
    rng = np.random.default_rng(1)
    budget = 3.0
    for _ in range(50):
        plays = rng.integers(1, 40, 36) * (rng.uniform(size=36) < 0.4)
        played = np.repeat(np.arange(36), plays)
        if not len(played):
            continue
        learner = phased()
        learner.tell(GRID.points[played], np.zeros(len(played)))
        posterior = learner.posterior
        K = PRIOR.kernel(GRID.points[played], GRID.points[played])
        k = PRIOR.kernel(GRID.points[played], GRID.points)
        weights = np.linalg.solve(K + PRIOR.noise * np.eye(len(played)), k)
        worst = budget * np.abs(weights).max(axis=0)  # all of it on the most harmful row
        tight = EpochBudget(Fixed(0.0), budget, "tight")(posterior, 1)
        theory = EpochBudget(Fixed(0.0), budget)(posterior, 1)
        assert np.all(worst <= tight * posterior.std * (1.0 + 1e-9))
        # the ratio of the two, for a noise below 1
        fewest = plays[plays > 0].min()
        np.testing.assert_allclose(theory / tight, (len(played) / fewest / PRIOR.noise) ** 0.5)


def test_lemma_2_needs_the_square_root_of_a_noise_above_one():
    """One arm, ten plays, noise 10: what corruption can do, and what the lemma's text allows."""
    one, model = Finite(np.zeros((1, 1))), GaussianProcess(Prior(RBF(1.0), 10.0))
    learner = Learner(one, Parts(model, Fixed(), Elimination()))
    learner.tell(np.zeros((10, 1)), np.ones(10) / 10.0)  # C = 1, as the clean results are 0
    posterior = learner.posterior
    shift = posterior.mean[0] / posterior.std[0]
    assert shift == pytest.approx(0.0707, abs=1e-4)
    assert shift > np.sqrt(10) / (10 * 10.0)  # (10) as printed
    assert shift <= EpochBudget(Fixed(0.0), 1.0, "tight")(posterior, 1) + 1e-12
    assert shift <= EpochBudget(Fixed(0.0), 1.0)(posterior, 1)


def test_a_run_ends_at_the_first_play_that_is_more_than_the_growth():
    """noise = n variance and growth 2: n plays double the determinant, which is not enough."""
    only_one = np.arange(36) == 7
    for n in range(1, 2000):
        assert RareSwitching(2.0)._run(1.0 / n, 10**6) == n + 1
    assert RareSwitching(2.0, 0.0)(Prior(RBF(0.3), 93.0), GRID, only_one, 6).plays.tolist() == [128]


def test_what_was_dropped_is_never_played_however_well_the_rest_is_known():
    rng = np.random.default_rng(0)
    for _ in range(300):
        points = Finite(rng.uniform(size=(12, 2)))
        active = rng.uniform(size=12) < 0.5
        active[rng.integers(1, 12)] = True
        prior = Prior(RBF(rng.uniform(0.5, 3.0)), 10.0 ** rng.uniform(-14, -8))
        plan = RareSwitching(1.0 + rng.uniform(), 0.0)(prior, points, active, 6)
        assert active[plan.arms].all()


class Noted(Fixed):
    """A width that remembers the rounds it was told, here in a list of the class."""

    asked = []  # noqa: RUF012

    def __call__(self, posterior, t):
        self.asked.append((posterior.n, t))
        return super().__call__(posterior, t)


def test_the_width_is_told_one_more_than_the_number_of_the_epoch():
    Noted.asked.clear()
    learner = Learner(GRID, Parts(GaussianProcess(PRIOR), Noted(3.0), Elimination()))
    play(learner, 200, 16)
    ends = [(n, t) for n, t in Noted.asked if n > 0]
    assert [t for _, t in ends] == list(range(1, len(ends) + 1))
    assert len(ends) >= 3


def test_what_is_active_is_known_as_soon_as_the_last_result_is_told():
    learner, other = phased(width=0.3), phased(width=0.3)
    while learner.active().all():
        for choice in learner.ask_batch(10**6):
            learner.tell(choice.x, f(choice.x))
            other.tell(choice.x, f(choice.x))
    other.ask()
    np.testing.assert_array_equal(learner.active(), other.active())


def test_the_best_lower_bound_is_that_of_an_active_arm():
    """Later results cannot bring a dropped arm back into the comparison."""
    learner = phased(width=0.5)
    while learner.active().all():
        for choice in learner.ask_batch(10**6):
            learner.tell(choice.x, f(choice.x))
    before = learner.active()
    dropped = int(np.argmin(before))
    for choice in learner.ask_batch(10**6):  # whose results praise what is near a dropped arm
        near = np.linalg.norm(choice.x - GRID.points[dropped])
        learner.tell(choice.x, 50.0 * np.exp(-near))
    lower, upper = learner.band().bounds(GRID.points)
    after = learner.active()
    np.testing.assert_array_equal(after, before & (upper >= lower[before].max()))
    assert after.any()


def test_an_answer_from_elsewhere_makes_a_play_less_needed_in_the_middle_of_an_epoch():
    learner = told_epoch()
    learner.ask()
    rest = [choice.arm for choice in told_epoch().ask_batch(10**6)][1:]
    stranger = rest[-1]
    learner.tell(GRID.points[stranger], 0.2, choice=Choice(GRID.points[stranger], stranger))
    assert sorted(c.arm for c in learner.ask_batch(10**6)) == sorted(rest[:-1])


def test_two_workers_that_tell_each_other_share_an_epoch():
    """Each is told everything and lists what the other has on its way."""
    workers, on_their_way, asked = [phased(), phased()], [[], []], []
    rng = np.random.default_rng(2)
    for _ in range(600):
        i = int(rng.integers(2))
        others = np.array([c.x for c in on_their_way[0] + on_their_way[1]]).reshape(-1, 2)
        choices = workers[i].ask_batch(1, pending=others)
        on_their_way[i] += choices
        asked += choices
        if not choices or len(on_their_way[i]) > 3:
            for j in range(2):
                for choice in on_their_way[j]:
                    for worker in workers:
                        worker.tell(choice.x, f(choice.x))
                on_their_way[j].clear()
    n = len(asked) - 8
    assert sorted(choice.arm for choice in asked[:n]) == sorted(play(phased(), n, 1))


@pytest.mark.parametrize("kind", ["infeasible", "bad"])
def test_an_arm_that_gives_no_result_is_dropped(kind):
    learner = phased()
    for _ in range(400):
        choice = learner.ask()
        if choice.arm % 5 == 0:
            learner.tell(choice.x, failed=kind)
        else:
            learner.tell(choice.x, f(choice.x))
    assert len(learner.failures) <= 8
    assert not learner.active()[learner.domain.locate(learner.failures.x)].any()


def test_if_nothing_gives_a_result_it_goes_on_asking():
    learner = phased()
    for _ in range(50):
        learner.tell(learner.ask().x, failed="infeasible")
    assert learner.active().any()
    assert learner.ask().arm is not None


@pytest.mark.parametrize("sentinel", [1.7e308, -1.7e308, np.inf, np.nan])
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_one_absurd_result_does_not_end_a_campaign(sentinel):
    learner = phased()
    for t in range(300):
        choice = learner.ask()
        learner.tell(choice.x, sentinel if t == 5 else f(choice.x))
    assert learner.active().any()
