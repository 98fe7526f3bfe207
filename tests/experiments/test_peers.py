"""Relevance pursuit as a player: the model is BoTorch's, the bound and the search are ours."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from stoic.confidence import Schedule
from stoic.domains import Box
from stoic.experiments import peers
from stoic.experiments.peers import RelevancePursuit

BOX = Box([4.0, -3.0], [12.0, -1.0])


def value(x):
    return np.sin(0.8 * x[:, 0]) + x[:, 1]


def told(n=7, lie=None, domain=BOX):
    player = RelevancePursuit(domain, 0)
    x = domain.spread(n, np.random.default_rng(3))
    y = value(x) + 0.05 * np.random.default_rng(4).standard_normal(n)
    if lie is not None:
        y[5] = lie
    player.tell(x, y)
    return player


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    def missing(name):
        raise ImportError(f"No module named {name}")

    peers._botorch.cache_clear()
    monkeypatch.setattr(peers, "import_module", missing)
    try:
        with pytest.raises(ImportError, match=r"pip install 'stoic\[botorch\]'"):
            RelevancePursuit(BOX, 0)
    finally:
        peers._botorch.cache_clear()


def test_the_surface_is_botorch_s_bound_with_its_gradient():
    pytest.importorskip("botorch")
    torch = pytest.importorskip("torch")
    player = told()
    model = player.fitted()
    surface = peers._Bound(model, 1.7)
    x = BOX.sample(7, np.random.default_rng(0))
    posterior = model.posterior(torch.tensor(x))
    expected = posterior.mean + 1.7 * posterior.variance.sqrt()
    assert_allclose(surface(x), expected.detach().numpy()[:, 0], rtol=1e-10)
    heights, slopes = surface.with_gradient(x)
    assert_allclose(heights, surface(x), rtol=1e-8)
    for k in range(2):
        step = 1e-5 * np.eye(2)[k]
        numeric = (surface(x + step) - surface(x - step)) / 2e-5
        assert_allclose(slopes[:, k], numeric, rtol=1e-4, atol=1e-5)
    # It asks where the bound of our schedule is highest.
    [choice] = player.ask_batch(1)
    surface = peers._Bound(model, Schedule()(None, 8))
    assert surface(choice.x[None])[0] >= surface(BOX.grid(41).points).max() - 1e-6


def test_on_a_finite_domain_it_asks_for_a_row():
    pytest.importorskip("botorch")
    finite = BOX.grid(9)
    player = RelevancePursuit(finite, 0)
    player.tell(finite.points[[3, 40, 77]], [0.0, 1.0, 0.5])
    [choice] = player.ask_batch(1)
    assert (finite.points[choice.arm] == choice.x).all()
    assert player.active().all()


def test_one_lie_is_seen_through_and_what_is_no_number_is_left_out():
    pytest.importorskip("botorch")
    honest, lied = told(), told(lie=50.0)
    assert_allclose(lied.recommend().x, honest.recommend().x, atol=0.8)
    lied.tell(np.array([[5.0, -2.0]]), np.array([np.nan]))
    assert len(lied._y) == 7
    BOX.locate(lied.ask_batch(1)[0].x[None])
    assert lied.failures == 0


def test_a_fit_that_fails_is_counted_and_the_next_point_is_drawn(monkeypatch):
    pytest.importorskip("botorch")
    player = told()

    def fails():
        raise RuntimeError("not positive definite")

    monkeypatch.setattr(player, "_fit", fails)
    points = [choice.x for choice in player.ask_batch(3)]
    BOX.locate(np.array(points))
    assert player.failures == 1
    assert player.recommend().mean == player._y.max()
    BOX.locate(RelevancePursuit(BOX, 0).recommend().x[None])
