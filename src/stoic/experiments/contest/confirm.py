"""Not in a paper: whether the recommended setting is really the best of those tried.

Four small functions, noise of 5 % of the range, 40 trials, and then 10 more: spent on searching
further, which recommends the estimated or the observed best; on confirming measurements; or on
measuring the five best results twice again, as people do by hand. The loss is that of the
recommended setting, in ranges of the function: against the optimum, and against the best setting
that was tried in the same study.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.study import Study
from optuna.trial import FrozenTrial

from stoic.data import SDS_95
from stoic.experiments import pictures
from stoic.experiments.contender import BLACK, BLUE, GREEN, VERMILION
from stoic.experiments.contest.contenders import DEFAULT, contender
from stoic.experiments.contest.functions import FUNCTIONS
from stoic.experiments.contest.ordinary import COVERS
from stoic.experiments.contest.scenes import ORDINARY, World, ordinary
from stoic.experiments.contest.studies import interval, quiet, value_of
from stoic.experiments.figure import Cell, Claim, Figure, Table, every
from stoic.experiments.statistics import Interval, mean_ratio, share
from stoic.integrations.optuna import CONFIRM, Confirmation, confirm, explain

CONFIRMED, TOP, OBSERVED = ", confirmed", ", top 5 twice again", ", observed best"
BINS = 10  # of the stated probability
_TOP = 5
_FEWEST = 5  # studies of a bin that is judged
# Wilson's interval of one bin: with ten of them, one is missed in 5 % of the figures by chance.
_Z = 2.807033768343811
_RATIO = 0.7  # the goal, of losses as a share of that of a longer search
_COLOURS = {DEFAULT: VERMILION, "TPE": GREEN}


class Outcome(NamedTuple):
    """Outcome of one study that was finished in one way: a row of the CSV file.

    Attributes
    ----------
    panel, method, seed:
        Key of the study, and how it was finished.
    loss, missed:
        The optimum, and f at the best setting tried, less f at the recommended setting; in ranges.
    best:
        True if the recommended setting is the best of those tried.
    probability, expected:
        Stated probability of that, and stated expected loss in ranges; nan if none is stated.
    covered:
        True if the stated 95 % interval has the true value; None without one.
    repeats_covered:
        True if that of the mean of the repeats alone has it, with the known noise.
    measurements:
        Number of confirming measurements, or of repeats.
    settled:
        True if the confirmation was settled; None without one.
    """

    panel: str
    method: str
    seed: int
    loss: float
    missed: float
    best: bool
    probability: float
    expected: float
    covered: bool | None
    repeats_covered: bool | None
    measurements: int
    settled: bool | None


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the studies.

    Attributes
    ----------
    trials:
        Independent studies of each function; seeds start at ``seed``.
    rounds, measurements:
        Number of results of the search, and of those after it.
    seed:
        First seed, of the world and of the sampler.
    problems, methods:
        Names of functions and of contenders.
    """

    trials: int = 50
    rounds: int = 40
    measurements: int = 10
    seed: int = 0
    problems: tuple[str, ...] = ("branin", "bowl3", "hart3", "forrester")
    methods: tuple[str, ...] = (DEFAULT,)


cells = every(lambda settings: settings.problems)


def run(settings: Settings, cell: Cell) -> list[Outcome]:
    """Play one study, and finish it in each way."""
    world = World.of(FUNCTIONS[cell.panel], ordinary(0.0, *ORDINARY), cell.seed)
    method, space = contender(cell.method), dict(world.ground.space)
    total = settings.rounds + settings.measurements

    def objective(trial: optuna.Trial) -> float:
        params = {name: trial.suggest_float(name, 0.0, 1.0) for name in space}
        return world.observe(params, trial.number)

    with quiet():
        searched = optuna.create_study(
            sampler=method.sampler(space, cell.seed, total), direction="maximize"
        )
        searched.optimize(objective, n_trials=total)
        # One search serves all ways: they go on from the same first trials
        begun = searched.get_trials(deepcopy=False)[: settings.rounds]
        confirmed, repeated = _study(begun), _study(begun)
        outcome = confirm(confirmed, objective, settings.measurements)
        _repeat_top(repeated, objective, settings.measurements)
        known = explain(searched)
    assert outcome is not None
    assert known.recommended is not None
    trials = searched.get_trials(deepcopy=False)
    rows = [_outcome(world, cell, OBSERVED, trials, searched.best_params)]
    if not method.peer:  # a peer recommends its observed best
        params, (_, lower, upper) = known.recommended.params, interval(known)
        covered = bool(lower <= world.ground.truth(params) <= upper)
        rows.append(_outcome(world, cell, "", trials, params)._replace(covered=covered))
    rows.append(_confirmed(world, cell, confirmed.get_trials(deepcopy=False), outcome))
    trials = repeated.get_trials(deepcopy=False)
    return [*rows, _outcome(world, cell, TOP, trials, _best_of_top(trials))]


def _study(trials: Sequence[FrozenTrial]) -> Study:
    """Make a study of these trials."""
    # The sampler is not used: all further trials are enqueued
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), direction="maximize")
    study.add_trials(trials)
    return study


def _repeat_top(study: Study, objective: Any, count: int) -> None:
    """Measure the settings with the best results again, in turn."""
    best = sorted(study.trials, key=lambda t: -value_of(t))[:_TOP]
    for k in range(count):
        study.enqueue_trial(best[k % len(best)].params, user_attrs={CONFIRM: True})
        study.optimize(objective, n_trials=1)


def _best_of_top(trials: Sequence[FrozenTrial]) -> dict[str, Any]:
    """Return the repeated setting with the best mean of all its results."""
    means = {
        t.number: float(np.mean([value_of(o) for o in trials if o.params == t.params]))
        for t in trials
        if t.user_attrs.get(CONFIRM)
    }
    return dict(trials[max(means, key=lambda number: means[number])].params)


def _confirmed(
    world: World, cell: Cell, trials: Sequence[FrozenTrial], outcome: Confirmation
) -> Outcome:
    params, truth = outcome.recommended.params, world.ground.truth(outcome.recommended.params)
    repeats = [value_of(t) for t in trials if t.params == params and t.user_attrs.get(CONFIRM)]
    # sigma is known here, unlike in a study
    half = SDS_95 * world.scene.noise * world.ground.span / math.sqrt(max(len(repeats), 1))
    return _outcome(world, cell, CONFIRMED, trials, params)._replace(
        probability=outcome.probability,
        expected=outcome.expected_loss / world.ground.span,
        covered=bool(outcome.lower <= truth <= outcome.upper),
        repeats_covered=bool(abs(np.mean(repeats) - truth) <= half) if repeats else None,
        settled=outcome.settled,
    )


def _outcome(
    world: World, cell: Cell, way: str, trials: Sequence[FrozenTrial], params: Any
) -> Outcome:
    ground = world.ground
    value, tried = ground.truth(params), max(ground.truth(t.params) for t in trials)
    return Outcome(
        cell.panel,
        cell.method + way,
        cell.seed,
        loss=(ground.best - value) / ground.span,
        missed=(tried - value) / ground.span,
        best=value >= tried,
        probability=math.nan,
        expected=math.nan,
        covered=None,
        repeats_covered=None,
        measurements=sum(bool(t.user_attrs.get(CONFIRM)) for t in trials),
        settled=None,
    )


def _names(settings: Settings) -> list[str]:
    return [name + way for name in settings.methods for way in _ways(name)]


def _ways(name: str) -> tuple[str, ...]:
    own = () if contender(name).peer else ("",)
    return (CONFIRMED, *own, OBSERVED, TOP)


def _of(rows: Sequence[Outcome], method: str) -> list[Outcome]:
    # By panel and seed, which pairs the rows of two methods
    return sorted(row for row in rows if row.method == method)


def _mean(values: Sequence[float]) -> Interval:
    return mean_ratio(values, [1.0] * len(values))  # with its bootstrap interval


def _bins(rows: Sequence[Outcome]) -> list[tuple[float, list[bool]]]:
    """List the mean stated probability of each bin, and of which studies it came true."""
    bins: list[list[Outcome]] = [[] for _ in range(BINS)]
    for row in rows:
        bins[min(int(row.probability * BINS), BINS - 1)].append(row)
    return [
        (float(np.mean([row.probability for row in here])), [row.best for row in here])
        for here in bins
        if here
    ]


def table(settings: Settings, rows: Sequence[Outcome]) -> Table:
    """Table with a line for each way to finish a study."""
    lines = []
    for name in _names(settings):
        here = _of(rows, name)
        stated = [row.probability for row in here]
        lines.append(
            (
                name,
                str(len(here)),
                _percent(_mean([row.loss for row in here]), 2),
                _percent(_mean([row.missed for row in here]), 2),
                _percent(share([row.best for row in here])),
                "" if math.isnan(stated[0]) else f"{100 * np.mean(stated):.0f} %",
                _percent(share([row.covered for row in here])),
                _percent(share([row.repeats_covered for row in here])),
                f"{np.mean([row.measurements for row in here]):.1f}",
            )
        )
    caption = (
        f"{settings.rounds} trials and {settings.measurements} more, with 95 % intervals. Losses "
        "are in percent of the range; the best is that of the settings tried."
    )
    headings = (
        "contender", "studies", "loss to the optimum", "loss to the best tried", "is the best",
        "stated", "interval covers", "that of the repeats alone", "repeats",
    )  # fmt: skip
    return Table(caption, headings, tuple(lines))


def _percent(number: Interval, digits: int = 0) -> str:
    return number.text(f".{digits}f", 100.0, " %")


def claims(settings: Settings, rows: Sequence[Outcome]) -> tuple[Claim, ...]:
    """Our claims: calibrated probabilities, intervals that cover, and a smaller loss."""
    made = []
    for name in settings.methods:
        ours = _of(rows, name + CONFIRMED)
        measured = {
            "studies": float(len(ours)),
            "stated": float(np.mean([row.probability for row in ours])),
            "came true": float(np.mean([row.best for row in ours])),
            "expected loss": float(np.mean([row.expected for row in ours])),
            "loss to the best tried": float(np.mean([row.missed for row in ours])),
        }
        right = True
        for stated, came in _bins(ours):
            number, n = share(came, _Z), len(came)
            right = right and (n < _FEWEST or number.lower <= stated <= number.upper)
            measured |= number.named(f"{stated:.3f} of {n}")
        made.append(
            Claim(
                f"{name}: the stated probability of being the best is calibrated: in each of ten "
                f"bins with at least {_FEWEST} studies it is in the 99.5 % interval of the "
                "frequency (ours).",
                right,
                measured,
            )
        )
        covered = share([row.covered for row in ours])
        alone = share([row.repeats_covered for row in ours]).value
        measured = dict(zip(("covered", "lower", "upper"), covered, strict=True))
        made.append(
            Claim(
                f"{name}: the confirmed 95 % interval covers the truth in 90 to 98 % of the "
                "studies (ours).",
                COVERS[0] <= covered.value <= COVERS[1],
                measured | {"of the repeats alone": alone},
            )
        )
        made += [
            _smaller(rows, name + CONFIRMED, other, which)
            # All but the confirmed one itself
            for other in (name + way for way in _ways(name)[1:])
            for which in ("loss", "missed")
        ]
    return tuple(made)


_LOSSES = {"loss": "the optimum", "missed": "the best setting it tried"}


def _smaller(rows: Sequence[Outcome], ours: str, theirs: str, which: str) -> Claim:
    losses = [[getattr(row, which) for row in _of(rows, name)] for name in (ours, theirs)]
    ratio = mean_ratio(*losses)
    means = {
        name: float(np.mean(each)) for name, each in zip(("ours", "theirs"), losses, strict=True)
    }
    return Claim(
        f"The loss of {ours!r} to {_LOSSES[which]} is on average at most {_RATIO:g} of that of "
        f"{theirs!r} after as many trials (ours).",
        ratio.value <= _RATIO,
        dict(zip(("ratio", "lower", "upper"), ratio, strict=True)) | means,
    )


def plot(settings: Settings, rows: Sequence[Outcome]) -> pictures.Picture:
    """Plot the frequency against the stated probability, and the mean losses."""
    picture = pictures.blank(10.5, 4.2)
    left, right = picture.subplots(1, 2)
    left.plot([0, 1], [0, 1], color="0.6", lw=1, zorder=0)
    for k, name in enumerate(settings.methods):
        bins = _bins(_of(rows, name + CONFIRMED))
        came, lower, upper = np.array([share(each) for _, each in bins]).T
        left.errorbar(
            np.array([stated for stated, _ in bins]) + 0.008 * k,
            came,
            yerr=np.maximum([came - lower, upper - came], 0.0),
            fmt="os"[k % 2],
            ms=6,
            capsize=3,
            color=_COLOURS.get(name, BLACK),
            label=name + CONFIRMED,
        )
    left.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    left.set_xlabel("stated probability of being the best of those tried")
    left.set_ylabel("how often it was")
    if len(settings.methods) > 1:
        left.legend(frameon=False, loc="upper left")
    names = _names(settings)
    for which, colour, marker, offset, label in (
        ("loss", BLUE, "o", -0.13, "to the optimum"),
        ("missed", BLACK, "D", 0.13, "to the best setting tried"),
    ):
        found = [_mean([getattr(row, which) for row in _of(rows, name)]) for name in names]
        # A single study has no interval, and nan limits would hide its point
        numbers = [n if n.lower == n.lower else Interval(n.value, n.value, n.value) for n in found]
        heights = [height + offset for height in range(len(names))]
        look = {"fmt": marker, "ms": 6, "capsize": 3, "label": label}
        pictures.points(right, heights, numbers, colour, look, 100.0)
    right.set_yticks(range(len(names)), names)
    right.set_ylim(len(names) - 0.5, -0.5)
    right.set_xlim(left=0.0)
    right.set_xlabel("mean loss of the recommended setting, % of the range")
    right.grid(alpha=0.3, lw=0.5, axis="x")
    pictures.legend(picture, [right], "outside upper right", ncols=2)
    return picture


FIGURE = Figure(
    "contest/confirm",
    "Is the recommended setting the best? Ten confirming measurements after 40 trials",
    Settings(), cells, run, plot, table, claims,
)  # fmt: skip
