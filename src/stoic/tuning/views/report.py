"""Report of a study as one page for a browser: results, their trust, and the reasons.

The file holds everything, scripts included: it works offline and can be sent to somebody.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from stoic.data import DISTRUSTED
from stoic.integrations.optuna.encoding import searched
from stoic.integrations.optuna.explanation import (
    estimated,
    excluded_lines,
    expected,
    residual,
    run_as,
    setting,
    unfinished_lines,
)
from stoic.integrations.optuna.objective import stored_aim
from stoic.integrations.optuna.unmodelled import modelled_space
from stoic.integrations.recipe import Recipe
from stoic.printable import at_least, printable, probability, written
from stoic.refusal import RefusalError
from stoic.tuning.trials import last_error
from stoic.tuning.views.durations import duration, median_duration
from stoic.tuning.views.front import as_image
from stoic.tuning.views.front import draw as draw_front
from stoic.tuning.views.report_figures import Drawings
from stoic.tuning.views.summary import Summary

_LONGEST = 200  # letters of an error


class Card(NamedTuple):
    """Box of the page: a title, a number in large letters, a line of text, and code."""

    title: str
    number: str = ""
    text: str = ""
    code: str = ""


@dataclass(frozen=True)
class Report:
    """Data of a study at one moment, ready to be drawn.

    Attributes
    ----------
    summary:
        Numbers of the study.
    trials:
        All trials, by number.
    space:
        Name -> distribution of the parameters that the model uses.
    """

    summary: Summary
    trials: Mapping[int, FrozenTrial]
    space: Mapping[str, BaseDistribution]

    @classmethod
    def of(
        cls,
        study: optuna.Study,
        recipe: Recipe | None = None,
        possible: Sequence[float] | None = None,
    ) -> Report:
        """Summarise a study, by default by its own recipe and range; costs one fit of the model."""
        summary = Summary.of(study, recipe, possible=possible)
        # Afterwards: every trial of the summary must be here, even one that ends meanwhile.
        trials = {trial.number: trial for trial in study.get_trials(deepcopy=False)}
        known = summary.explanation
        space: Mapping[str, BaseDistribution] = {}
        if known is not None and known.recommended is not None:
            own = known.recommended.params
            modelled = modelled_space(list(trials.values()), shared=stored_aim(study) is not None)
            space = {name: d for name, d in searched(modelled).items() if name in own}
        return cls(summary, trials, space)

    def write(self, path: Path) -> None:
        """Write the page."""
        page = self.page()
        try:
            path.write_text(page, encoding="utf-8")
        except OSError as error:
            raise RefusalError(f"Cannot write {str(path)!r}: {error.strerror}.") from error

    def page(self) -> str:
        """Return the HTML of the page."""
        go, io = _installed("plotly.graph_objects"), _installed("plotly.io")
        offline, jinja2 = _installed("plotly.offline"), _installed("jinja2")
        summary, known = self.summary, self.summary.explanation
        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("stoic.tuning", "views"),
            autoescape=True,
            # Texts of a storage may have control characters, which escaping leaves in
            finalize=lambda value: value if hasattr(value, "__html__") else printable(value),
            undefined=jinja2.StrictUndefined,
        )
        draws: list[tuple[str, Drawings]] = []
        names = () if known is None else known.objectives or ("",)
        directions = (known.directions if known else ()) or (summary.direction,)
        for name, direction in zip(names, directions, strict=False):
            assert known is not None
            rows = tuple(row for row in known.rows if (row.objective or "") == name)
            of = replace(known, rows=rows, importances=partial(known.importances, name or None))
            drawings = Drawings(of, self.trials, self.space, direction == "minimize", go, io)
            draws.append((f": {name}" if name else "", drawings))
        several = known is not None and known.objectives
        page: str = environment.get_template("report.html").render(
            title=f"{summary.name} ({summary.direction})",
            script=offline.get_plotlyjs(),
            cards=self.cards(),
            draws=draws,
            front=as_image(draw_front(known)) if known is not None and several else None,
            front_heads=("trial", *known.objectives, "parameters") if known and several else (),
            front_rows=self._front(),
            slices=len(self.space),
            confirmation=None if known is None else known.confirmation,
            candidates=self._candidates(),
            distrusted=self._distrusted(),
            notes=[]
            if known is None
            else [*unfinished_lines(known.partial), *excluded_lines(known)],
            failed=self._failed(),
        )
        return page

    def cards(self) -> list[Card]:
        """Return the numbers at the top of the page."""
        summary, known = self.summary, self.summary.explanation
        counts = ", ".join(f"{count} {state}" for state, count in summary.counts.items())
        each = median_duration(self.trials.values())
        if each is not None:
            counts += f"; {duration(each)} each (median)"
        cards = [Card("Trials", str(sum(summary.counts.values())), counts)]
        if summary.explanation is not None and (sources := summary.explanation.sources):
            cards.append(Card("Warm start", text="; ".join(each.sentence() for each in sources)))
        if summary.unmodelled:
            cards.append(Card("Not modelled", text=" ".join(summary.unmodelled)))
        if known is None:
            return [*cards, Card("Recommended", "none", "No trial has a value yet.")]
        if known.objectives:
            text = "Estimated by trusted values, with 95 % intervals below."
            if known.feasible is not None:
                text += f" Each is feasible with probability {at_least(known.feasible)}."
            cards.append(Card("Recommended front", str(len(known.front)), text))
            if known.undecided is not None:
                cards.append(Card("Undecided", text=known.undecided))
            text = "As observed: some of them may be outliers."
            return [*cards, Card("Observed front", str(len(known.observed_front)), text)]
        rows = {row.number: row for row in known.rows}
        best, recommended = known.observed_best, known.recommended
        if recommended is not None:
            estimate = estimated(known.recommended_mean, known.recommended_std, "±")
            observed = written(recommended.value, known.recommended_std)
            text = f"trial {recommended.number}, observed {observed}{known.caveats}"
            if known.feasible is not None:
                text += f", feasible with probability {probability(known.feasible)}"
            text += _run_as(recommended) + known.others("±")
            cards.append(Card("Recommended", estimate, text, setting(recommended.params)))
        if known.repeated is not None:
            cards.append(Card("Repeated", text=known.repeated))
        if known.undecided is not None:
            cards.append(Card("Undecided", text=known.undecided))
        if known.certified is not None:
            lines = [known.certified.unreachable(), known.certified.sentence()]
            cards.append(Card("Certificate", text=". ".join(line for line in lines if line)))
        if best is not None:
            trust = rows[best.number].trust if best.number in rows else math.nan
            doubt = f", distrusted (trust {trust:.2f})" if trust < DISTRUSTED else ""
            text = f"trial {best.number}{doubt}{_run_as(best)}"
            value = written(best.value, known.recommended_std)
            cards.append(Card("Observed best", value, text, setting(best.params)))
        if summary.command is not None:
            cards.append(Card("Command, as the storage says", code=summary.command))
        return cards

    def _front(self) -> list[tuple[object, ...]]:
        known = self.summary.explanation
        return [
            (
                point.trial.number,
                *point.estimates,
                setting(point.trial.params) + _run_as(point.trial),
            )
            for point in (() if known is None else known.front)
        ]

    def _candidates(self) -> list[tuple[object, ...]]:
        known = self.summary.explanation
        if known is None or known.confirmation is None:
            return []
        return [
            (
                candidate.number, estimated(candidate.mean, candidate.std, "±"),
                f"{candidate.probability:.2f}", candidate.measurements, candidate.failures,
                setting(candidate.params),
            )
            for candidate in known.confirmation.candidates
        ]  # fmt: skip

    def _distrusted(self) -> list[tuple[object, ...]]:
        return [
            (
                row.of.removeprefix("trial "), written(row.value, row.sd),
                expected(row, "±"), residual(row), f"{row.trust:.2f}",
                setting(self.trials[row.number].params),
            )
            for row in self.summary.distrusted
        ]  # fmt: skip

    def _failed(self) -> list[tuple[object, ...]]:
        kinds = self.summary.kinds
        return sorted(
            (
                number, reason, kinds.get(number, "not known"), setting(self.trials[number].params),
                last_error(self.trials[number])[:_LONGEST],
            )
            for reason, numbers in self.summary.failures.items()
            for number in numbers
        )  # fmt: skip


def _run_as(trial: FrozenTrial) -> str:
    ran = run_as(trial)
    return ran and f", {ran}"


def _installed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise RefusalError(
            f"A report needs {name.partition('.')[0]}, which is not installed: "
            "pip install 'stoic[report]'."
        ) from error
