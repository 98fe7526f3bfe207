"""Shared by all figures of cumulative regret: rows, means with standard errors, curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from stoic.data import Array, Integers
from stoic.experiments.contender import Contender
from stoic.experiments.figure import Cell, Table
from stoic.simulate import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MARKS = 200  # rounds that are kept of a run too long to keep whole


class Step(NamedTuple):
    """One observation of one run: a row of the CSV file.

    Attributes
    ----------
    round:
        Round number, from 1; 0 for the clean initial points.
    x:
        The executed point, coordinates separated by spaces.
    value, observed, corrupted:
        f(x), the observation, and whether an adversary changed it.
    regret, cumulative_regret:
        f(x*) - f(x), noiseless, and its running sum, initial points included.
    inference_regret:
        f(x*) - f(recommended point) at the end of the run, repeated in each of its rows.
    """

    panel: str
    method: str
    seed: int
    round: int
    x: str
    value: float
    observed: float
    corrupted: bool
    regret: float
    cumulative_regret: float
    inference_regret: float


def steps(cell: Cell, trace: Trace) -> list[Step]:
    """Rows of one run."""
    instantaneous, cumulative = trace.regret, trace.cumulative_regret
    return [
        Step(
            cell.panel,
            cell.method,
            cell.seed,
            round=max(0, row - trace.initial + 1),
            x=" ".join(map(repr, trace.executed[row].tolist())),
            value=float(trace.value[row]),
            observed=float(trace.observed[row]),
            corrupted=bool(trace.corrupted[row]),
            regret=float(instantaneous[row]),
            cumulative_regret=float(cumulative[row]),
            inference_regret=trace.inference_regret,
        )
        for row in range(len(trace))
    ]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean over trials and its standard error, nan for a single trial."""

    mean: float
    error: float

    @classmethod
    def of(cls, values: Array) -> Estimate:
        """Estimate the mean from one value per trial, shape (trials,)."""
        error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        return cls(float(values.mean()), float(error))

    def __str__(self) -> str:
        error = "" if math.isnan(self.error) else f" ± {self.error:.3g}"
        return f"{self.mean:.4g}{error}"


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """All trials of one method in one panel, in the order of their seeds.

    Attributes
    ----------
    cumulative:
        Cumulative regret, shape (trials, n).
    inference:
        Inference regret, shape (trials,).
    seeds:
        Seeds of the trials; by default the first ones.
    """

    cumulative: Array
    inference: Array
    seeds: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.seeds:
            object.__setattr__(self, "seeds", tuple(range(len(self.inference))))

    @property
    def final(self) -> Array:
        """Cumulative regret at the end, shape (trials,)."""
        return self.cumulative[:, -1]

    def among(self, seeds: Container[int]) -> Run:
        """Select the trials that have one of the ``seeds``, in rising order."""
        kept = sorted((seed, row) for row, seed in enumerate(self.seeds) if seed in seeds)
        rows = [row for _, row in kept]
        return Run(self.cumulative[rows], self.inference[rows], tuple(seed for seed, _ in kept))


def runs(rows: Sequence[Step]) -> dict[tuple[str, str], Run]:
    """Trials of each (panel, method), in the order of the rows."""
    collected: dict[tuple[str, str], dict[int, list[Step]]] = {}
    for row in rows:
        collected.setdefault((row.panel, row.method), {}).setdefault(row.seed, []).append(row)
    return {
        key: Run(
            np.array([[s.cumulative_regret for s in trial] for trial in trials.values()]),
            np.array([trial[-1].inference_regret for trial in trials.values()]),
            tuple(trials),
        )
        for key, trials in collected.items()
    }


def comparison(run: Run, reference: Run) -> dict[str, float]:
    """Mean final cumulative regret of two methods on the seeds of both, and paired difference."""
    ours, theirs = run.among(reference.seeds), reference.among(run.seeds)
    return compared(ours.final, theirs.final)


def inference_comparison(run: Run, reference: Run) -> dict[str, float]:
    """Mean inference regret of two methods on the seeds of both, and the paired difference."""
    ours, theirs = run.among(reference.seeds), reference.among(run.seeds)
    return compared(ours.inference, theirs.inference)


def compared(ours: Array, theirs: Array) -> dict[str, float]:
    """Compare two samples of regret, shape (trials,), of the same trials."""
    mine, other = Estimate.of(ours), Estimate.of(theirs)
    paired = Estimate.of(ours - theirs)
    return {
        "mean": mine.mean,
        "standard_error": mine.error,
        "reference_mean": other.mean,
        "reference_standard_error": other.error,
        "paired_difference": paired.mean,
        "paired_standard_error": paired.error,
        "trials_with_less_regret": float((ours < theirs).sum()),
        "trials": float(len(ours)),
    }


def marks(rounds: int) -> list[int]:
    """Select the rounds to keep, rising: evenly spaced, the last and the middle one among them."""
    even = np.rint(np.linspace(0.0, rounds, min(MARKS, rounds) + 1)).astype(int)
    return sorted({*even.tolist(), rounds // 2} - {0})


def draw(axes: Axes, run: Run, method: Contender[..., Any]) -> None:
    """Draw mean cumulative regret over the observations, with a band of one standard error."""
    observations = np.arange(1, run.cumulative.shape[1] + 1)
    curve(axes, observations, run.cumulative, method)


def curve(
    axes: Axes,
    x: Array | Integers,
    values: Array,
    line: Contender[..., Any],
    band: Literal["error", "deviation", "half"] = "error",
) -> None:
    """Draw a mean over trials with a band; no band for a single trial.

    Parameters
    ----------
    axes:
        Axes to draw on.
    x:
        Shape (n,).
    values:
        Shape (trials, n).
    line:
        Name, colour and style.
    band:
        One standard error of the mean, or one or half a standard deviation over the trials.
    """
    mean = values.mean(axis=0)
    above = 2.0 if line.line == "-" else 2.5  # a broken line shows what it covers
    axes.plot(x, mean, line.line, color=line.colour, label=line.name, lw=1.6, zorder=above)
    if len(values) > 1:
        half = values.std(axis=0, ddof=1)
        if band == "error":
            half = half / math.sqrt(len(values))
        elif band == "half":
            half = 0.5 * half
        axes.fill_between(x, mean - half, mean + half, color=line.colour, alpha=0.15, lw=0)


def table(rows: Sequence[Step], reference: str) -> Table:
    """Table of final regrets, and of the paired difference to the ``reference`` method."""
    by_run = runs(rows)
    lines = []
    for (panel, method), run in by_run.items():
        paired = comparison(run, by_run[panel, reference])
        difference = Estimate(paired["paired_difference"], paired["paired_standard_error"])
        final, inference = Estimate.of(run.final), Estimate.of(run.inference)
        less = "" if method == reference else str(difference)
        lines.append((panel, method, str(len(run.seeds)), str(final), less, str(inference)))
    caption = (
        "Mean over the trials ± one standard error, in units of f; differences over the seeds that "
        "both were run on."
    )
    regrets = ("cumulative regret", f"less {reference}", "inference regret")
    return Table(caption, ("panel", "method", "trials", *regrets), tuple(lines))


def against(reference: str) -> Callable[[Any, Sequence[Step]], Table]:
    """Table of a figure whose differences are to the ``reference`` method."""
    return lambda settings, rows: table(rows, reference)


def finish(axes: Axes, initial: int, rounds: int) -> None:
    """Set labels and limits, and mark where the initial points end and the rounds begin."""
    axes.axvline(initial + 0.5, color="0.6", lw=0.8, ls=":")
    axes.set_xlabel(f"observations (the first {initial}: initial design)")
    axes.set_xlim(1, initial + rounds)
    axes.set_ylim(bottom=0.0)
    axes.grid(alpha=0.3, lw=0.5)
