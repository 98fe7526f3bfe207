"""Columns of the threat matrix: every recipe, in one setting for all rows.

A recipe is given the parameters of the threat it is made for, whatever the row: C = 50, eps = 0.5,
the horizon, the radius of moves, and as the threshold of satisficing the best value that can be
kept within that radius. All that go round by round have the same base width, 2, and enlarge it as
they do, so that columns differ by their defence and not by their default width. Phased ones keep
the constants of their papers' experiments, and the linear reduction those of its theory, as it has
no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from stoic import balancing, recipes
from stoic.confidence import Fixed, Theory
from stoic.experiments.matrix.worlds import BUDGET, ERROR, Game, worst_within
from stoic.experiments.methods import RandomSearch
from stoic.posteriors.features import Nystroem
from stoic.simulate import Player

CORRUPTION = ("Clipping, C = 50", "Top-3, C = 50")
OUTLIERS = ("outliers +10", "outliers -10", "outliers +1e6", "outliers -1e6")
TAILS = ("Student-t(2)", "Pareto(2)")
WRONG = ("misspecified",)
MOVED = ("moved inputs",)
CLEAN = ("clean",)
ALL = (*CLEAN, *CORRUPTION, *OUTLIERS, *TAILS, *WRONG)  # but for moves

WIDTH = Fixed(2.0)
_WITH_HORIZON = ("ata_gp_ucb", "linear_reduction", "contextual_ec_gp_ucb", "any_threat")
Build = Callable[[Game, int, int], Player]


@dataclass(frozen=True, slots=True)
class Column:
    """Recipe with its settings.

    Attributes
    ----------
    name, made_for:
        Name of the recipe, as in tables; and rows that it is made for.
    build:
        Function from a game, the number of rounds and a seed to a learner.
    batch:
        Number of rounds queried at once.
    slow:
        True if it judges all results anew before every query, in a time that grows with their
        square: then it plays fewer rounds.
    """

    name: str
    build: Build
    made_for: tuple[str, ...]
    batch: int = 1
    slow: bool = False


def _column(
    name: str,
    made_for: tuple[str, ...],
    settings: Callable[[Game], Mapping[str, object]] = lambda game: {},
    batch: int = 1,
    slow: bool = False,
) -> Column:
    """Column of a recipe with these settings, and the horizon if it takes one."""
    recipe = getattr(recipes, name)

    def build(game: Game, rounds: int, seed: int) -> Player:
        own: dict[str, object] = {}
        if name in _WITH_HORIZON:
            proved = name == "linear_reduction"
            own["theory"] = Theory("theory" if proved else "practice", horizon=rounds)
        if name == "ata_gp_ucb":
            own["features"] = Nystroem(horizon=rounds, seed=seed)
        written = recipe(prior=game.prior, **own, **settings(game))
        return balancing.build(game.problem.domain, written, seed)

    return Column(name, build, made_for, batch, slow)


def _sequential(
    name: str, made_for: tuple[str, ...], *, slow: bool = False, **settings: float
) -> Column:
    return _column(name, made_for, lambda game: {"confidence": WIDTH, **settings}, slow=slow)


def _phased(name: str, made_for: tuple[str, ...], **settings: float) -> Column:
    # Planned before their results: a batch changes nothing
    return _column(name, made_for, lambda game: settings, batch=64)


def _stable(game: Game) -> Mapping[str, object]:
    return {"confidence": WIDTH, "radius": game.radius}


def _satisficing(game: Game) -> Mapping[str, object]:
    return {"confidence": WIDTH, "threshold": float(worst_within(game).max())}


def _contextual(game: Game) -> Mapping[str, object]:
    kappa = float(game.prior.kernel.diagonal(game.problem.domain.points).max())
    reach = 3.0 * (kappa + game.prior.noise) ** 0.5  # as any_threat has it
    # The formula has one learner where T < gamma_T^2.
    return {"confidence": WIDTH, "span": (-reach, reach), "learners": 4}


def _random(game: Game, rounds: int, seed: int) -> Player:
    return RandomSearch(game.problem.domain, seed)


COLUMNS = {
    column.name: column
    for column in (
        _column("robust", OUTLIERS, slow=True),
        _sequential("gp_ucb", CLEAN),
        _sequential("tp_ucb", ()),
        _sequential("fc_rcgp_ucb", OUTLIERS),
        _sequential("a2_rcgp_ucb", OUTLIERS),
        _sequential("loo_gp_ucb", OUTLIERS, slow=True),
        _sequential("diagnostics_gp_ucb", OUTLIERS, slow=True),
        _sequential("tgp_ucb", TAILS),
        _sequential("ata_gp_ucb", TAILS),
        _sequential("mom_gp_ucb", TAILS),
        _sequential("rgp_ucb", CORRUPTION, budget=BUDGET),
        _phased("rgp_pe", CORRUPTION, budget=BUDGET),
        _phased("linear_reduction", CORRUPTION, budget=BUDGET),
        _sequential("ec_gp_ucb", WRONG, error=ERROR),
        _phased("phased_gp_us", WRONG),
        _column("contextual_ec_gp_ucb", WRONG, _contextual),
        _column("stable_opt", MOVED, _stable),
        _column("advers_1", MOVED, _satisficing),
        _column("advers_2", MOVED, _satisficing),
        _column("advers_g", MOVED, _satisficing),
        _sequential("any_threat", ALL),
        Column("random search", _random, ()),
    )
}
