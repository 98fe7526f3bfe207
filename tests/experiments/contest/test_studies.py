"""Studies: every contender plays, and a study is judged as it says."""

import math

import optuna
import pytest

from stoic.experiments.contest import contenders, studies
from stoic.experiments.contest.cases import CASES
from stoic.experiments.contest.contenders import FAST, PEERS, contender
from stoic.experiments.contest.functions import FUNCTIONS
from stoic.experiments.contest.scenes import SCENES, Scene, World, missing, shifted
from stoic.experiments.contest.studies import play
from stoic.experiments.figure import Cell
from stoic.refusal import RefusalError

NEEDS_A_LIBRARY = [name for name, peer in PEERS.items() if peer.module]


def world(scene="const", problem="branin", seed=0):
    return World.of(FUNCTIONS[problem], SCENES[scene], seed)


# SMAC takes seconds to import; relevance pursuit, below, seconds a trial.
@pytest.mark.parametrize("name", [*FAST, pytest.param("SMAC", marks=pytest.mark.slow)])
def test_peers_run_twelve_trials_and_are_judged_twice(name):
    if not PEERS[name].installed:
        pytest.skip(f"{PEERS[name].module} is not installed")
    before = optuna.logging.get_verbosity()
    own, explained = play(world(), Cell("const / branin", name, 0), 12)
    assert (own.method, explained.method) == (name, f"{name} + explain")
    assert own.outliers == explained.outliers == sum(world().is_outlier(t) for t in range(12))
    assert own.tried == explained.tried <= min(own.score, explained.score)
    assert own.covered is own.caught is own.rejected is None
    assert explained.lower < explained.mean < explained.upper
    assert explained.covered == (explained.lower <= explained.truth <= explained.upper)
    assert optuna.logging.get_verbosity() == before


@pytest.mark.slow
def test_relevance_pursuit_runs_and_recommends_what_it_believes():
    if not PEERS["relevance pursuit"].installed:
        pytest.skip("botorch is not installed")
    own, _ = play(world(), Cell("const / branin", "relevance pursuit", 0), 11)
    assert own.settings == 11
    assert math.isfinite(own.score)
    with pytest.raises(RefusalError, match="linear floats only"):
        PEERS["relevance pursuit"].sampler(CASES["30"].ground(0).space, 0, 12)


@pytest.mark.parametrize("name", ["default", "loo_gp_ucb", "a2_rcgp_ucb(retries=1)"])
def test_recipes_are_contenders_by_their_texts(name):
    [row] = play(world(), Cell("const / branin", name, 0), 12)
    assert row.method == name
    assert row.caught + row.rejected <= 12
    assert row.settings <= 12


@pytest.mark.parametrize("name", ["default", "random"])
def test_the_same_cell_gives_the_same_rows(name):
    cell = Cell("noise / hart3", name, 2)
    first, second = (play(world("noise", "hart3", 2), cell, 12) for _ in range(2))
    assert repr(first) == repr(second)
    other = play(world("noise", "hart3", 3), cell._replace(seed=3), 12)
    assert repr(first) != repr(other)


def test_a_best_trial_that_is_an_outlier_is_seen():
    [own, _] = play(world("good"), Cell("good / branin", "random", 0), 30)
    assert own.outliers >= 1
    assert own.outlier is True
    [honest, _] = play(world("clean"), Cell("clean / branin", "random", 0), 30)
    assert honest.outlier is False
    assert honest.score == honest.tried
    [tails, _] = play(world("cauchy"), Cell("cauchy / branin", "random", 0), 12)
    assert tails.outlier is None  # there is no border between noise and outliers


def test_minimisation_is_judged_in_the_users_direction():
    case = CASES["quadratic"]
    [own, explained] = play(World.of(case.ground(0), case.scene, 0), Cell("a / b", "TPE", 0), 15)
    assert own.score == own.truth == own.tried > 0.0
    assert explained.score == explained.truth
    [crashing, _] = play(
        World.of(CASES["region"].ground(0), CASES["region"].scene, 0),
        Cell("a / b", "random", 0),
        20,
    )
    assert 3 <= crashing.failed <= 17


@pytest.mark.parametrize("name", ["default", "random"])
def test_a_study_of_failures_alone_has_an_answer(name):
    nothing = Scene("nothing", "", outliers=((1.0, missing),))
    for row in play(World.of(FUNCTIONS["bowl3"], nothing, 0), Cell("a / b", name, 0), 4):
        assert row.failed == 4
        assert math.isfinite(row.score)


def test_infinite_results_are_results():
    infinite = Scene("infinite", "", outliers=((0.3, shifted(math.inf)),))
    for name in ("default", "TPE"):
        rows = play(World.of(FUNCTIONS["bowl3"], infinite, 0), Cell("a / b", name, 0), 12)
        assert all(row.failed == 0 and math.isfinite(row.score) for row in rows)


def test_doubt_is_read_from_the_explanation(monkeypatch):
    [row] = play(world(), Cell("const / branin", "default", 0), 4)
    assert row.undecided is False
    real = studies.explain

    class Doubting:
        undecided = "why"

        def __init__(self, explanation):
            self.explanation = explanation

        def __getattr__(self, name):
            return getattr(self.explanation, name)

    monkeypatch.setattr(studies, "explain", lambda study: Doubting(real(study)))
    [row] = play(world(), Cell("const / branin", "default", 0), 4)
    assert row.undecided is True


@pytest.mark.parametrize("name", NEEDS_A_LIBRARY)
def test_a_peer_without_its_library_names_the_extra(name, monkeypatch, capsys):
    monkeypatch.setattr("stoic.experiments.contender.find_spec", lambda module: None)
    peer = contender(name)
    assert not peer.installed
    with pytest.raises(
        RefusalError, match=rf"{peer.module}, .* pip install 'stoic\[{peer.extra}\]'"
    ):
        peer.sampler({}, 0, 10)
    assert contenders.installed([name, "TPE", "default"]) == ("TPE", "default")
    contenders.report_skipped(["TPE"])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(NEEDS_A_LIBRARY)
    assert any(line.startswith(f"{name} is left out") for line in lines)
