"""Not in a paper: the Forrester function maximised and minimised, and our defence beside a peer.

One of the two signs is easy. max f is at the edge of the domain and is 16 high, so that an outlier
of 25 is hardly out of the ordinary; max -f is inside and is 6 high, beside a wide plateau.
Relevance pursuit takes seconds a round, so it is run on fewer seeds, and only with corruption;
claims about it hold for the seeds that both methods were run on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stoic.adversaries import ClairvoyantSetting, cube_root
from stoic.adversaries.frequency import AT_ONCE
from stoic.experiments import pictures, regret
from stoic.experiments.figure import Cell, Claim, Figure
from stoic.experiments.methods import A2, GP, LOO, RELEVANCE, installed, method
from stoic.experiments.outliers import functions
from stoic.experiments.regret import Step
from stoic.problems import forrester, forrester_negative
from stoic.problems.synthetic import Synthetic

CLOSE = 0.05  # leave-one-out's allowed cost without corruption, as a share of GP-UCB's regret


@dataclass(frozen=True, slots=True)
class Settings:
    """Two signs, two horizons, with corruption and without.

    Attributes
    ----------
    rounds, short:
        T of the long and of the short runs; floor(T^(1/3)) results are replaced.
    adversary:
        It replaces results of f and of -f by the same values.
    peers:
        Names of slow methods, run only with corruption; none if their library is not installed.
    peer_trials:
        Their runs, the first of the ``trials``.
    peer_rounds:
        The largest T they are run for.
    """

    trials: int = 20
    rounds: int = 100
    short: int = 30
    seed: int = 0
    initial: int = 5
    noise_sd: float = 1.0
    adversary: ClairvoyantSetting = AT_ONCE
    methods: tuple[str, ...] = tuple(m.name for m in (GP, A2, LOO))
    peers: tuple[str, ...] = installed(RELEVANCE)
    peer_trials: int = 5
    peer_rounds: int = 100


class Game(NamedTuple):
    """Problem, horizon and number of corruptions of one panel.

    Attributes
    ----------
    problem:
        The maximised function.
    lies:
        Number of replaced results.
    """

    problem: Synthetic
    rounds: int
    lies: int


def games(settings: Settings) -> dict[str, Game]:
    """Panels by name: those with corruption first."""
    return {
        f"{sign}, T = {rounds}, {f'{count} lies' if count else 'no lies'}": Game(
            problem, rounds, count
        )
        for corrupted in (True, False)
        for sign, problem in (("max f", forrester()), ("max -f", forrester_negative()))
        for rounds in sorted({min(settings.short, settings.rounds), settings.rounds})
        for count in [cube_root(rounds) if corrupted else 0]
    }


def cells(settings: Settings) -> list[Cell]:
    """Every method on every seed, and the peers on some seeds with corruption."""
    few = min(settings.peer_trials, settings.trials)
    found = []
    for panel, game in games(settings).items():
        runs = [(name, settings.trials) for name in settings.methods]
        if game.lies and game.rounds <= settings.peer_rounds:
            runs += [(name, few) for name in settings.peers]
        found += [
            Cell(panel, name, settings.seed + trial)
            for name, trials in runs
            for trial in range(trials)
        ]
    return found


def run(settings: Settings, cell: Cell) -> list[Step]:
    """Play one method with one seed."""
    game = games(settings)[cell.panel]
    return functions.play(
        cell,
        game.problem,
        settings.adversary.against(game.problem.optimum, game.rounds, game.lies),
        rounds=game.rounds,
        initial=settings.initial,
        noise_sd=settings.noise_sd,
    )


def plot(settings: Settings, rows: Sequence[Step]) -> pictures.Picture:
    """Plot mean cumulative regret, with corruption above and without below."""
    by_run = regret.runs(rows)
    panels = games(settings)
    picture = pictures.blank(1.7 * len(panels) + 2.8, 6.6)
    grid = picture.subplots(2, len(panels) // 2, squeeze=False)
    for (panel, game), axes in zip(panels.items(), grid.flat, strict=True):
        for name in (*settings.methods, *settings.peers):
            if (panel, name) in by_run:
                regret.draw(axes, by_run[panel, name], method(name))
        regret.finish(axes, settings.initial, game.rounds)
        axes.set_title(panel, fontsize=9)
    for line in grid:
        line[0].set_ylabel("cumulative regret (units of f)")
    few = f"\n({min(settings.peer_trials, settings.trials)} trials)"

    def named(name: str) -> str:
        return name + few if name in settings.peers else name

    pictures.legend(picture, [grid[0, 0]], named=named, fontsize=8)
    return picture


def claims(settings: Settings, rows: Sequence[Step]) -> tuple[Claim, ...]:
    """Leave-one-out at or below the peer and GP-UCB if corrupted, close to GP-UCB if not."""
    by_run = regret.runs(rows)
    found: list[Claim] = []
    for panel, game in games(settings).items():
        ours = by_run[panel, LOO.name]
        if not game.lies:
            measured = regret.comparison(ours, by_run[panel, GP.name])
            ratio = measured["mean"] / measured["reference_mean"]
            found.append(
                Claim(
                    f"{panel}: {LOO.name} has at most {1.0 + CLOSE:g} times the mean cumulative "
                    f"regret of {GP.name}.",
                    ratio <= 1.0 + CLOSE,
                    {"ratio": ratio, **measured},
                )
            )
            continue
        if (panel, RELEVANCE.name) in by_run:
            peer = by_run[panel, RELEVANCE.name]
            for kind, measured in (
                ("cumulative", regret.comparison(ours, peer)),
                ("inference", regret.inference_comparison(ours, peer)),
            ):
                found.append(
                    Claim(
                        f"{panel}: {LOO.name} has at most the mean {kind} regret of "
                        f"{RELEVANCE.name}.",
                        measured["paired_difference"] <= 0.0,
                        measured,
                    )
                )
        found += functions.less(by_run, panel, (LOO, A2), (GP,), panel)
    return tuple(found)


SETTINGS = Settings()
FIGURE = Figure(
    "outliers/both-signs",
    "Cumulative regret on the Forrester function in both signs, beside relevance pursuit",
    SETTINGS,
    cells,
    run,
    plot,
    regret.against(GP.name),
    claims,
)
