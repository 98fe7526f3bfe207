"""Not in a paper: whether the recommended setting is really the best of those tried.

Four small functions, noise of 5 % of the range, 40 trials, and then 10 more: spent on searching
further, which recommends the estimated or the observed best; on confirming measurements; or on
measuring the five best results twice again, as people do by hand. The loss is that of the
recommended setting, in ranges of the function: against the optimum, and against the best setting
that was tried in the same study.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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
from stoic.experiments.figure import Cell, Claim, Figure, Table, every, tabulate
from stoic.experiments.statistics import Interval, mean, mean_ratio, share
from stoic.experiments.trials import Trials, grouped
from stoic.integrations.optuna import CONFIRM, confirm, explain
from stoic.integrations.optuna.confirming import confirms

CONFIRMED, TOP, OBSERVED = ", confirmed", ", top 5 twice again", ", observed best"
BINS = 10  # of the stated probability
_TOP = 5
_FEWEST = 5  # studies of a bin that is judged
# Wilson's interval of one bin: with ten of them, one is missed in 5 % of the figures by chance.
_Z = 2.807033768343811
_RATIO = 0.7  # the goal, of losses as a share of that of a longer search
_COLOURS = {DEFAULT: VERMILION, "TPE": GREEN}
_LOSSES = {"loss": "the optimum", "missed": "the best setting it tried"}


class Outcome(NamedTuple):
    """Outcome of one study that was finished in one way: a row of the CSV file.

    Attributes
    ----------
    method:
        The contender, and how its study was finished.
    loss, missed:
        The optimum, and f at the best setting tried, less f at the recommended setting; in ranges.
    best:
        True if the recommended setting is the best of those tried.
    probability, expected:
        Stated probability of that, and stated expected loss in ranges; nan if none is stated.
    covered, repeats_covered:
        True if the stated 95 % interval has the true value, None without one; and if that of the
        mean of the repeats alone has it, with the known noise.
    measurements, settled:
        Number of confirming measurements, or of repeats; and True if the confirmation was settled,
        None without one.
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
    rounds, measurements:
        Number of results of the search, and of those after it.
    problems, methods:
        Names of functions and of contenders.
    """

    trials: int = 50
    rounds: int = 40
    measurements: int = 10
    seed: int = 0
    problems: tuple[str, ...] = ("branin", "bowl3", "hart3", "forrester")
    methods: tuple[str, ...] = (DEFAULT,)


def run(settings: Settings, cell: Cell) -> list[Outcome]:
    """Play one study, and finish it in each way."""
    world = World.of(FUNCTIONS[cell.panel], ordinary(0.0, *ORDINARY), cell.seed)
    ground, method = world.ground, contender(cell.method)
    total = settings.rounds + settings.measurements

    def objective(trial: optuna.Trial) -> float:
        params = {name: trial.suggest_float(name, 0.0, 1.0) for name in ground.space}
        return world.observe(params, trial.number)

    def outcome(way: str, study: Study, params: Mapping[str, Any], **stated: Any) -> Outcome:
        trials = study.get_trials(deepcopy=False)
        value, tried = ground.truth(params), max(ground.truth(t.params) for t in trials)
        loss, missed = ((most - value) / ground.span for most in (ground.best, tried))
        repeats = sum(map(confirms, trials))
        unstated = Outcome(
            cell.panel, cell.method + way, cell.seed, loss, missed, value >= tried, math.nan,
            math.nan, None, None, repeats, None,
        )  # fmt: skip
        return unstated._replace(**stated)

    with quiet():
        sampler = method.sampler(ground.space, cell.seed, total)
        searched = optuna.create_study(sampler=sampler, direction="maximize")
        searched.optimize(objective, n_trials=total)
        # One search serves all ways: they go on from the same first trials
        begun = searched.get_trials(deepcopy=False)[: settings.rounds]
        confirmed, repeated = _study(begun), _study(begun)
        known, found = explain(searched), confirm(confirmed, objective, settings.measurements)
        _repeat_top(repeated, objective, settings.measurements)
    rows = [outcome(OBSERVED, searched, searched.best_params)]
    if not method.peer:  # a peer recommends its observed best
        assert known.recommended is not None
        params, (_, lower, upper) = known.recommended.params, interval(known)
        covered = bool(lower <= ground.truth(params) <= upper)
        rows.append(outcome("", searched, params, covered=covered))
    assert found is not None
    params = found.recommended.params
    truth = ground.truth(params)
    repeats = [
        value_of(t)
        for t in confirmed.get_trials(deepcopy=False)
        if t.params == params and confirms(t)
    ]
    # sigma is known here, unlike in a study
    half = SDS_95 * world.scene.noise * ground.span / math.sqrt(max(len(repeats), 1))
    stated = {
        "probability": found.probability,
        "expected": found.expected_loss / ground.span,
        "covered": bool(found.lower <= truth <= found.upper),
        "repeats_covered": bool(abs(np.mean(repeats) - truth) <= half) if repeats else None,
        "settled": found.settled,
    }
    rows.append(outcome(CONFIRMED, confirmed, params, **stated))
    return [*rows, outcome(TOP, repeated, _best_of_top(repeated))]


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


def _best_of_top(study: Study) -> dict[str, Any]:
    """Return the repeated setting with the best mean of all its results."""
    trials = study.get_trials(deepcopy=False)
    means = {
        t.number: float(np.mean([value_of(o) for o in trials if o.params == t.params]))
        for t in trials
        if confirms(t)
    }
    return dict(trials[max(means, key=lambda number: means[number])].params)


def _found(settings: Settings, rows: Sequence[Outcome]) -> dict[str, Trials[Outcome]]:
    """Studies of each contender that are finished in each way; rows by function and seed."""
    found = grouped(sorted(rows), lambda panel: "")
    return {name + way: found["", name + way] for name in settings.methods for way in _ways(name)}


def _ways(name: str) -> tuple[str, ...]:
    own = () if contender(name).peer else ("",)
    return (CONFIRMED, *own, OBSERVED, TOP)


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

    def loss(column: str) -> Callable[[Trials[Outcome]], str]:
        return lambda studies: mean(studies.final(column)).text(".2f", 100.0, " %")

    def often(column: str) -> Callable[[Trials[Outcome]], str]:
        return lambda studies: share(studies.final(column)).text(".0f", 100.0, " %")

    def stated(studies: Trials[Outcome]) -> str:
        probabilities = studies.final("probability")
        none = math.isnan(probabilities[0])
        return "" if none else f"{100 * np.mean(probabilities):.0f} %"

    return tabulate(
        f"{settings.rounds} trials and {settings.measurements} more, with 95 % intervals. Losses "
        "are in percent of the range; the best is that of the settings tried.",
        ("contender",),
        (
            ("studies", lambda studies: str(len(studies))),
            ("loss to the optimum", loss("loss")),
            ("loss to the best tried", loss("missed")),
            ("is the best", often("best")),
            ("stated", stated),
            ("interval covers", often("covered")),
            ("that of the repeats alone", often("repeats_covered")),
            ("repeats", lambda studies: f"{studies.final('measurements').mean():.1f}"),
        ),
        {(name,): studies for name, studies in _found(settings, rows).items()},
    )


def claims(settings: Settings, rows: Sequence[Outcome]) -> tuple[Claim, ...]:
    """Our claims: calibrated probabilities, intervals that cover, and a smaller loss."""
    found, made = _found(settings, rows), []
    for name in settings.methods:
        ours = found[name + CONFIRMED]
        calibrated = (
            f"{name}: the stated probability of being the best is calibrated: in each of ten bins "
            f"with at least {_FEWEST} studies it is in the 99.5 % interval of the frequency (ours)."
        )
        columns = {"stated": "probability", "came true": "best", "expected loss": "expected",
                   "loss to the best tried": "missed"}  # fmt: skip
        measured = {"studies": float(len(ours))}
        measured |= {key: float(ours.final(column).mean()) for key, column in columns.items()}
        right = True
        for stated, came in _bins(ours.ends):
            number, n = share(came, _Z), len(came)
            right = right and (n < _FEWEST or number.lower <= stated <= number.upper)
            measured |= number.named(f"{stated:.3f} of {n}")
        made.append(Claim(calibrated, right, measured))
        covers = f"{name}: the confirmed 95 % interval covers the truth in 90 to 98 % of the "
        covered, alone = (share(ours.final(which)) for which in ("covered", "repeats_covered"))
        measured = covered.limits("covered") | {"of the repeats alone": alone.value}
        holds = COVERS[0] <= covered.value <= COVERS[1]
        made.append(Claim(f"{covers}studies (ours).", holds, measured))
        # All but the confirmed one itself
        for other in (name + way for way in _ways(name)[1:]):
            for which, to in _LOSSES.items():
                losses = {
                    "ours": ours.final(which),
                    "theirs": found[other].final(which),
                }
                ratio = mean_ratio(*losses.values())
                means = {key: float(each.mean()) for key, each in losses.items()}
                sentence = f"The loss of {name + CONFIRMED!r} to {to} is on average at most "
                sentence += f"{_RATIO:g} of that of {other!r} after as many trials (ours)."
                numbers = ratio.limits("ratio") | means
                made.append(Claim(sentence, ratio.value <= _RATIO, numbers))
    return tuple(made)


def plot(settings: Settings, rows: Sequence[Outcome]) -> pictures.Picture:
    """Plot the frequency against the stated probability, and the mean losses."""
    found = _found(settings, rows)
    picture = pictures.blank(10.5, 4.2)
    left, right = picture.subplots(1, 2)
    left.plot([0, 1], [0, 1], color="0.6", lw=1, zorder=0)
    for k, name in enumerate(settings.methods):
        bins = _bins(found[name + CONFIRMED].ends)
        stated = np.array([probability for probability, _ in bins]) + 0.008 * k
        came, lower, upper = np.array([share(each) for _, each in bins]).T
        error = np.maximum([came - lower, upper - came], 0.0)
        look: dict[str, Any] = {
            "fmt": "os"[k % 2],
            "label": name + CONFIRMED,
            "ms": 6,
            "capsize": 3,
        }
        left.errorbar(stated, came, yerr=error, color=_COLOURS.get(name, BLACK), **look)
    left.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    left.set_xlabel("stated probability of being the best of those tried")
    left.set_ylabel("how often it was")
    if len(settings.methods) > 1:
        left.legend(frameon=False, loc="upper left")
    for which, colour, marker, offset, label in (
        ("loss", BLUE, "o", -0.13, "to the optimum"),
        ("missed", BLACK, "D", 0.13, "to the best setting tried"),
    ):
        means = [mean(studies.final(which)) for studies in found.values()]
        # A single study has no interval, and nan limits would hide its point
        numbers = [n if n.lower == n.lower else Interval(*3 * (n.value,)) for n in means]
        heights = [height + offset for height in range(len(found))]
        look = {"fmt": marker, "ms": 6, "capsize": 3, "label": label}
        pictures.points(right, heights, numbers, colour, look, 100.0)
    right.set_yticks(range(len(found)), found)
    right.set_ylim(len(found) - 0.5, -0.5)
    right.set_xlim(left=0.0)
    right.set_xlabel("mean loss of the recommended setting, % of the range")
    right.grid(alpha=0.3, lw=0.5, axis="x")
    pictures.legend(picture, [right], "outside upper right", ncols=2)
    return picture


FIGURE = Figure(
    "contest/confirm",
    "Is the recommended setting the best? Ten confirming measurements after 40 trials",
    Settings(), every(lambda settings: settings.problems), run, plot, table, claims,
)  # fmt: skip
