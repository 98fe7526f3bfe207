"""Not in a paper: the Forrester function maximised and minimised, and our defence beside a peer.

One of the two signs is easy. max f is at the edge of the domain and is 16 high, so that an outlier
of 25 is hardly out of the ordinary; max -f is inside and is 6 high, beside a wide plateau.
Relevance pursuit takes seconds a round, so it is run on fewer seeds, and only with corruption;
claims about it hold for the seeds that both methods were run on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from stoic.adversaries import ClairvoyantSetting, cube_root
from stoic.adversaries.frequency import AT_ONCE
from stoic.experiments import pictures, regret
from stoic.experiments.claims import Beside, judge, not_above
from stoic.experiments.figure import Cell, Claim, Figure, crossed
from stoic.experiments.methods import A2, GP, LOO, RELEVANCE, installed, method
from stoic.experiments.outliers import functions
from stoic.experiments.outliers.functions import Game, playing
from stoic.experiments.regret import INFERENCE, Step
from stoic.experiments.trials import REGRET, comparison, grouped, names
from stoic.problems import forrester, forrester_negative

CLOSE = 0.05  # leave-one-out's allowed cost without corruption, as a share of GP-UCB's regret


@dataclass(frozen=True, slots=True)
class Settings(functions.Settings):
    """Two signs, two horizons, with corruption and without.

    Attributes
    ----------
    rounds, short:
        T of the long and of the short runs.
    adversary:
        It replaces results of f and of -f by the same values.
    peers, peer_trials, peer_rounds:
        Names of slow methods, run only with corruption, none if their library is not installed;
        their runs, the first of the ``trials``; and the largest T they are run for.
    """

    trials: int = 20
    # Section 5.3 has 100 rounds with corruption and 30 without; here both have both
    short: int = 30
    adversary: ClairvoyantSetting = AT_ONCE
    methods: tuple[str, ...] = names(GP, A2, LOO)
    peers: tuple[str, ...] = installed(RELEVANCE)
    peer_trials: int = 5
    peer_rounds: int = 100


def games(settings: Settings) -> dict[str, Game]:
    """Panels by name: those with corruption first."""
    return {
        f"{sign}, T = {rounds}, {f'{count} lies' if count else 'no lies'}": Game(
            problem, rounds, settings.adversary.against(problem.optimum, rounds, count)
        )
        for corrupted in (True, False)
        for sign, problem in (("max f", forrester()), ("max -f", forrester_negative()))
        # One panel where a short run makes both the same
        for rounds in sorted({min(settings.short, settings.rounds), settings.rounds})
        for count in [cube_root(rounds) if corrupted else 0]
    }


def cells(settings: Settings) -> list[Cell]:
    """Every method on every seed, and the peers on some seeds with corruption."""
    found = games(settings)

    def seeds(panel: str, name: str) -> int:
        if name in settings.methods:
            return settings.trials
        met = found[panel].lies and found[panel].rounds <= settings.peer_rounds
        return min(settings.peer_trials, settings.trials) if met else 0

    return crossed(found, (*settings.methods, *settings.peers), settings.seed, seeds)


def plot(settings: Settings, rows: Sequence[Step]) -> pictures.Picture:
    """Plot mean cumulative regret, with corruption above and without below."""
    methods = [method(name) for name in (*settings.methods, *settings.peers)]
    panels = [
        regret.Panel(panel, panel, game.rounds, methods) for panel, game in games(settings).items()
    ]
    across, few = len(panels) // 2, min(settings.peer_trials, settings.trials)
    return regret.picture(
        grouped(rows),
        (panels[:across], panels[across:]),
        (1.7 * len(panels) + 2.8, 6.6),
        2 * ["cumulative regret (units of f)"],
        settings.initial,
        dict.fromkeys(settings.peers, f"\n({few} trials)"),
        one_scale=False,
    )[0]


def claims(settings: Settings, rows: Sequence[Step]) -> tuple[Claim, ...]:
    """Leave-one-out at or below the peer and GP-UCB if corrupted, close to GP-UCB if not."""
    groups = grouped(rows)
    found: list[Claim] = []
    for panel, game in games(settings).items():
        if not game.lies:
            measured = comparison(groups[panel, LOO.name], groups[panel, GP.name])
            ratio = measured["mean"] / measured["reference_mean"]
            sentence = f"at most {1.0 + CLOSE:g} times the mean cumulative regret of {GP.name}"
            numbers = {"ratio": ratio, **measured}
            found.append(
                Claim(f"{panel}: {LOO.name} has {sentence}.", ratio <= 1.0 + CLOSE, numbers)
            )
            continue
        for kind, column in (("cumulative", REGRET), ("inference", INFERENCE)):
            sentence = f"{{0.name}} has at most the mean {kind} regret of {{1.name}}."
            pairs = [Beside((LOO,), (RELEVANCE,), "", sentence, not_above)]
            found += judge(groups, panel, pairs, f"{panel}: ", partial(comparison, column=column))
        found += judge(groups, panel, [Beside((LOO, A2), (GP,))], f"{panel}: ")
    return tuple(found)


FIGURE = Figure(
    "outliers/both-signs",
    "Cumulative regret on the Forrester function in both signs, beside relevance pursuit",
    Settings(), cells, playing(games), plot, regret.against(GP.name), claims,
)  # fmt: skip
