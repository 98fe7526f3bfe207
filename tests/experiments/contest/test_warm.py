"""The families of the warm starts' figure, its peer, and what a study of it says."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from stoic.experiments.contest.ranking import RankingEnsemble
from stoic.experiments.contest.warm import FIGURE, Outcome, Settings, claims, ground, table
from stoic.experiments.figure import Cell


@pytest.mark.parametrize("family", Settings().families)
def test_members_of_a_family_are_related_and_their_maxima_are_maxima(family):
    new, old = ground(family, "new", 1), ground(family, "related", 1)
    u = np.random.default_rng(0).random((3000, new.dim))
    assert np.corrcoef(new.formula(u), old.formula(u))[0, 1] > 0.5
    for each in (new, old, ground(family, "senseless", 1)):
        assert each.formula(u).max() <= each.best + 1e-9
    opposite = ground(family, "opposite", 1)
    assert_allclose(opposite.formula(u), -old.formula(u))


def test_the_ensemble_leaves_out_what_misranks():
    rng = np.random.default_rng(0)
    x = rng.random((30, 2))
    y = -((x - 0.4) ** 2).sum(axis=1)
    agent = RankingEnsemble(["a", "b"], [(x, y), (x, rng.standard_normal(30))], 0)
    for _ in range(12):
        params = agent.ask()
        agent.tell(params, (params["a"] - 0.4) ** 2 + (params["b"] - 0.4) ** 2)
    agent.tell(params, float("nan"))
    seen = np.array(agent.x), np.array(agent.y)
    weights = agent._weights([*agent.sources, agent._model(*seen)], *seen)
    assert len(agent.x) == 12
    assert weights.sum() == pytest.approx(1.0)
    assert weights[1] < 0.05
    assert agent.recommend() == dict(zip("ab", agent.x[int(np.argmax(agent.y))], strict=True))


def test_each_method_plays_a_study():
    settings = Settings(trials=1, rounds=7, earlier=8, families=("branin",))
    for method in settings.methods:
        (row,) = FIGURE.run(settings, Cell("ordinary / related / branin", method, 0))
        assert 1 <= row.reached <= 8
        assert 0.0 <= row.tried <= row.score
        assert (row.trust is not None) == (method == "warm")


def test_claims_compare_paired_studies():
    settings = Settings(trials=2, families=("branin",), scenes=("clean",))
    rows = [
        Outcome(*cell, reached, 0.1, 0.1, None)
        for cell in FIGURE.cells(settings)
        for reached in [
            {"cold": 30, "warm": 10 if "related" in cell.panel else 33}.get(cell[1], 30)
        ]
    ]
    verdicts = claims(settings, rows)
    assert [claim.holds for claim in verdicts] == [True, False, False]
    assert verdicts[0].measured["ratio"] == pytest.approx(1 / 3)
    assert len(table(settings, rows).rows) == 12
