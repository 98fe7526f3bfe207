"""Figure 1 of [Ezzerg2026]_: a few corruptions by an adversary that knows the maximiser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stoic.adversaries import ClairvoyantSetting
from stoic.adversaries import frequency as adversaries
from stoic.experiments import pictures, regret
from stoic.experiments.figure import OURS, Cell, Claim, Figure, crossed
from stoic.experiments.methods import (
    A2,
    A2_COUNTED,
    A2_NOISE,
    A2_PAPER,
    A2_THEORY,
    A2_WIDE,
    DIAGNOSTICS,
    DIAGNOSTICS_LOO,
    FC,
    FC_COUNTED,
    FC_NOISE,
    FC_PAPER,
    FC_QUANTILE,
    FC_THEORY,
    GP,
    GP_LOO,
    LOO,
    RANDOM,
    RELEVANCE,
    ROBUST,
    STUDENT,
    STUDENT_LOO,
    installed,
)
from stoic.experiments.outliers import functions
from stoic.experiments.regret import Step
from stoic.experiments.trials import grouped, names
from stoic.problems import forrester

AT_ONCE = "appendix, at once"  # section 5.3 read without the schedule of appendix I.4.2


@dataclass(frozen=True, slots=True)
class Settings:
    """Experiment of section 5.3 with corruption, under each published adversary and a harder one.

    Attributes
    ----------
    rounds:
        T; the adversary may corrupt floor(T^(1/3)) results.
    adversaries:
        One panel each.
    decisive, more:
        Methods of the paper's claims, and how many times the ``trials`` they run: 20 seeds tell
        A2-RCGP-UCB from GP-UCB, but not FC-RCGP-UCB with the paper's standardisation, whose
        differences have standard errors of 98 and 99.
    peers:
        Names of slow methods, which meet fewer adversaries on fewer seeds; none if their library is
        not installed.
    peer_trials:
        Their runs, the first of the ``trials``.
    peer_adversaries:
        The panels they are run in.
    """

    trials: int = 20
    rounds: int = 100
    seed: int = 0
    initial: int = 5
    noise_sd: float = 1.0
    adversaries: Mapping[str, ClairvoyantSetting] = field(
        default_factory=lambda: {**adversaries.SETTINGS, AT_ONCE: adversaries.AT_ONCE}
    )
    methods: tuple[str, ...] = names(
        GP, GP_LOO, FC, A2, FC_THEORY, A2_THEORY, FC_PAPER, FC_QUANTILE, FC_COUNTED, A2_PAPER,
        A2_COUNTED, FC_NOISE, A2_NOISE, A2_WIDE, LOO, ROBUST, STUDENT, STUDENT_LOO, DIAGNOSTICS,
        DIAGNOSTICS_LOO, RANDOM,
    )  # fmt: skip
    decisive: tuple[str, ...] = names(
        GP, GP_LOO, FC, A2, FC_QUANTILE, STUDENT, STUDENT_LOO
    )  # fmt: skip
    more: int = 5
    peers: tuple[str, ...] = installed(RELEVANCE)
    peer_trials: int = 5
    peer_adversaries: tuple[str, ...] = ("appendix",)


# Rows of the picture: the widths, and the other choices.
ROWS = (
    ("widths", (GP, FC, A2, FC_THEORY, A2_THEORY, RANDOM)),
    (
        "fit, standardisation and shape",
        (
            GP,
            GP_LOO,
            FC,
            A2,
            FC_PAPER,
            FC_QUANTILE,
            FC_COUNTED,
            A2_PAPER,
            A2_COUNTED,
            FC_NOISE,
            A2_NOISE,
        ),
    ),
    (
        "other models and defences",
        (
            GP,
            A2,
            A2_WIDE,
            LOO,
            ROBUST,
            STUDENT,
            STUDENT_LOO,
            DIAGNOSTICS,
            DIAGNOSTICS_LOO,
            RELEVANCE,
        ),
    ),
)


def cells(settings: Settings) -> list[Cell]:
    """Every method against every adversary, each on its seeds, and the peers on some of them."""
    found: list[Cell] = []
    for panel in settings.adversaries:
        peers = settings.peers if panel in settings.peer_adversaries else ()
        for name in (*settings.methods, *peers):
            found += crossed([panel], [name], seed=settings.seed, trials=trials(settings, name))
    return found


def trials(settings: Settings, name: str) -> int:
    """Return how many seeds a method has."""
    if name in settings.peers:
        return min(settings.peer_trials, settings.trials)
    return settings.trials * (settings.more if name in settings.decisive else 1)


def run(settings: Settings, cell: Cell) -> list[Step]:
    """Play one method with one seed against one adversary."""
    problem = forrester()
    adversary = settings.adversaries[cell.panel].against(problem.optimum, settings.rounds)
    return functions.play(settings, cell, problem, adversary, settings.rounds)


def plot(settings: Settings, rows: Sequence[Step]) -> pictures.Picture:
    """Plot one column per adversary; above the widths, below the other choices."""
    panels = [
        [
            regret.Panel(panel, _describe(panel, adversary), settings.rounds, methods)
            for panel, adversary in settings.adversaries.items()
        ]
        for _, methods in ROWS
    ]
    others = (*settings.decisive, *settings.peers)
    return regret.picture(
        grouped(rows),
        panels,
        (3.6 * len(settings.adversaries) + 2.8, 3.4 * len(ROWS)),
        [f"{subject}\ncumulative regret (units of f)" for subject, _ in ROWS],
        settings.initial,
        {name: f" ({trials(settings, name)} trials)" for name in others},
        title_size=8,
    )[0]


def claims(settings: Settings, rows: Sequence[Step]) -> tuple[Claim, ...]:
    """Robust methods against GP-UCB with their fit, which the paper shows, and against others."""
    groups = grouped(rows)
    found: list[Claim] = []
    for panel in settings.adversaries:
        said = f"Adversary of the {panel}"
        source = OURS if panel == AT_ONCE else ""
        for one in (A2, FC):
            # Of the caption of figure 1; Diagnostics performs well, it says
            found += functions.less(groups, panel, (one,), (GP_LOO, STUDENT_LOO), said, source)
            others = (GP, STUDENT, RANDOM, DIAGNOSTICS, RELEVANCE)
            found += functions.less(groups, panel, (one,), others, said, OURS)
        # Section 5.3: GP-UCB suffers the highest regret, and A2 demonstrates superior performance
        baselines = (STUDENT_LOO, DIAGNOSTICS_LOO)
        found += functions.less(groups, panel, baselines, (GP_LOO,), said, source)
        found += functions.less(groups, panel, (A2,), (FC,), said, source)
        # Counting T_c resulted in good performance (5.1), and T_c = 0 yields strong results (5.6)
        papers = (FC_QUANTILE, FC_PAPER, FC_COUNTED, A2_PAPER, A2_COUNTED)
        found += functions.less(groups, panel, papers, (GP_LOO,), said, source)
        found += functions.less(groups, panel, (FC_QUANTILE,), (STUDENT_LOO,), said, source)
        found += functions.less(groups, panel, (FC_QUANTILE,), (GP,), said, OURS)
        references = (GP, A2, DIAGNOSTICS, RELEVANCE)
        found += functions.less(groups, panel, (LOO, ROBUST), references, said, OURS)
    return tuple(found)


def _describe(panel: str, setting: ClairvoyantSetting) -> str:
    schedule = ", released at 1, 8, 27, ..." if setting.scheduled else ""
    return (
        f"adversary of the {panel}{schedule}\n"
        f"within {setting.near:g}: {setting.low:g}, beyond {setting.far:g}: {setting.high:g}"
    )


FIGURE = Figure(
    "outliers/forrester-corrupted",
    "Cumulative regret on the Forrester function with T^(1/3) lies of a clairvoyant adversary",
    Settings(), cells, run, plot, regret.against(GP.name), claims, "Ezzerg2026, Fig. 1",
)  # fmt: skip
