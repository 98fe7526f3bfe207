import sys
import warnings

import numpy as np
import pytest

from stoic.problems import lunar_lander
from stoic.problems.lunar_lander import ACTIONS, DIM, STATES, LunarLander, landing


@pytest.fixture(scope="module")
def simulator():
    try:
        return lunar_lander.simulator()
    except ImportError as error:
        pytest.skip(str(error))


def policies(n, seed=0):
    return np.random.default_rng(seed).uniform(-2.0, 2.0, (n, DIM))


def always(engine):
    """A policy that fires one engine, whatever it sees."""
    x = np.zeros((ACTIONS, STATES + 1))
    x[engine, STATES] = 1.0
    return x.ravel()


@pytest.fixture
def registered(simulator):
    """The environment as gymnasium hands it out, with all its wrappers."""
    import gymnasium

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        environment = gymnasium.make("LunarLander-v3")
    yield environment
    environment.close()


def literal_landing(environment, x, seed, steps=1000):
    """The sum of rewards, with the policy spelt out number by number."""
    state, _ = environment.reset(seed=seed)
    total = 0.0
    for _ in range(steps):
        scores = []
        for action in range(4):
            weights, offset = x[9 * action : 9 * action + 8], x[9 * action + 8]
            scores.append(sum(w * s for w, s in zip(weights, state, strict=True)) + offset)
        state, reward, crashed, timed_out, _ = environment.step(scores.index(max(scores)))
        total += reward
        if crashed or timed_out:
            break
    return total


def test_it_is_the_registered_environment(registered):
    for seed, x in enumerate(policies(8)):
        assert landing(x, seed) == pytest.approx(literal_landing(registered, x, seed), abs=1e-6)


@pytest.mark.usefixtures("simulator")
class TestLanding:
    def test_the_same_seed_is_the_same_episode_whatever_went_before(self):
        x, other = policies(2)
        first = landing(x, 5)
        for seed in range(3):
            landing(other, seed)
        assert landing(x, 5) == first
        assert landing(x, 6) != first

    def test_ties_go_to_the_first_engine(self):
        assert landing(np.zeros(DIM), 3) == landing(always(0), 3)

    def test_engines_do_different_things(self):
        returns = {landing(always(engine), 2) for engine in range(ACTIONS)}
        assert len(returns) == ACTIONS

    def test_scaling_a_policy_does_not_change_it(self):
        x = policies(1)[0]
        assert landing(0.125 * x, 4) == landing(x, 4)

    def test_it_ends_after_its_steps(self):
        # Each frame of falling changes the shaped reward; the crash after 50 or more costs 100.
        short = [landing(always(0), 1, steps) for steps in (1, 20, 1000)]
        assert len(set(short)) == 3
        assert abs(short[0]) < 10.0
        assert short[2] < -50.0

    def test_it_does_not_alter_its_policy(self):
        x = policies(1)[0]
        before = x.copy()
        landing(x, 0)
        np.testing.assert_array_equal(x, before)

    @pytest.mark.parametrize("x", [np.zeros(32), np.zeros((1, 36)), np.full(36, np.nan)])
    def test_what_is_no_policy_is_refused(self, x):
        with pytest.raises(ValueError, match="36 finite numbers"):
            landing(x, 0)


@pytest.mark.usefixtures("simulator")
class TestProgram:
    def test_a_result_is_the_mean_of_its_episodes(self):
        x = policies(1)[0]
        seeds = np.random.default_rng(11).integers(2**31, size=3).tolist()
        returns = [landing(x, seed) for seed in seeds]
        assert len(set(returns)) == 3
        assert LunarLander(episodes=3).run(x, 11) == pytest.approx(np.mean(returns), rel=1e-12)


@pytest.mark.parametrize("bad", [{"episodes": 0}, {"steps": 0}])
def test_nothing_to_run_is_refused(bad):
    with pytest.raises(ValueError, match="at least one episode of one step"):
        LunarLander(**bad)


def test_what_is_missing_is_named(monkeypatch):
    lunar_lander.simulator.cache_clear()
    monkeypatch.setitem(sys.modules, "gymnasium.envs.box2d.lunar_lander", None)
    with pytest.raises(ImportError, match=r"pip install 'stoic\[problems\]'"):
        landing(np.zeros(DIM), 0)
    lunar_lander.simulator.cache_clear()
