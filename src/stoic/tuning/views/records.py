"""Trials as records, printed as JSON, YAML, CSV, a table or bare values."""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.study import StudySummary
from optuna.trial import FrozenTrial

from stoic.integrations.optuna.internals import constraints
from stoic.integrations.optuna.objectives import values_of
from stoic.integrations.recipe import Recipe
from stoic.printable import printable, to_json
from stoic.refusal import RefusalError
from stoic.tuning.constraint import Constraint
from stoic.tuning.explaining import explanation
from stoic.tuning.trials import as_stored
from stoic.tuning.views.summary import number

FORMATS = ("value", "json", "table", "yaml", "csv")

Record = dict[str, Any]  # a value may be a dict, for instance of parameters


def trial_record(
    trial: FrozenTrial, objectives: Sequence[str] = (), limited: Sequence[Constraint] = ()
) -> Record:
    """Return the columns that ``optuna trials`` shows, in its order.

    With several ``objectives`` their names and values in the place of a value. Of ``limited``
    outputs also these, since a constraint has their distance from a limit.
    """
    values: Record = {"value": trial.values[0] if trial.values else None}
    if objectives:
        found = values_of(trial, len(objectives))
        each = [None] * len(objectives) if found is None else as_stored(found.tolist())
        values = {"values": dict(zip(objectives, each, strict=True))}
    limits = constraints(trial)
    outputs = {each.name: each.output(limits[each.name]) for each in limited if each.name in limits}
    return {
        "number": trial.number,
        **values,
        "datetime_start": _time(trial.datetime_start),
        "datetime_complete": _time(trial.datetime_complete),
        "duration": None if trial.duration is None else str(trial.duration),
        "params": dict(trial.params),
        **({"constraints": limits} if limits else {}),
        **({"outputs": outputs} if outputs else {}),
        "user_attrs": dict(trial.user_attrs),
        "state": trial.state.name,
    }


def study_record(summary: StudySummary) -> Record:
    """Return the columns of one study in a list of them."""
    return {
        "name": summary.study_name,
        "direction": "/".join(each.name.lower() for each in summary.directions),
        "trials": summary.n_trials,
        "datetime_start": _time(summary.datetime_start),
    }


def best_records(
    study: optuna.Study,
    form: str,
    recipe: Recipe | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> Record | list[Record]:
    """Return the observed best trial, as ``optuna best-trial`` shows it, and the recommended one.

    For JSON and YAML the recommended one is a key of the observed one; else it is a second row.
    Both have the values in ``fixed``; a recommended setting that was not run has no number.
    """
    known = explanation(study, recipe, fixed)
    untried = None if known is None else known.untried
    if known is not None and untried is not None and known.instead_of is None:
        given = " and ".join(f"{name}={value}" for name, value in known.fixed.items())
        raise RefusalError(
            f"No trial of the study {study.study_name!r} with {given} is trusted: stoic show says "
            "what the model takes for the best there."
        )
    if known is None or known.observed_best is None or not (known.recommended or untried):
        if known is not None and known.observed_best is not None and not known.infeasible:
            raise RefusalError(
                f"No parameter of the study {study.study_name!r} is modelled, so nothing is "
                "recommended; stoic show says why."
            )
        such = "satisfies its constraints and " * bool(known and known.infeasible)
        raise RefusalError(
            f"No trial of the study {study.study_name!r} {such}has a finite value yet."
        )
    observed = trial_record(known.observed_best)
    recommended: Record = {"number": None, "value": None, "params": untried}
    if known.recommended is not None:
        recommended = trial_record(known.recommended)
    estimate = {"mean": known.recommended_mean, "std": number(known.recommended_std)}
    if form in ("json", "yaml"):
        return observed | {"recommended": recommended | estimate}
    return [
        {"which": "observed best"} | observed,
        {"which": "recommended"} | recommended | estimate,
    ]


def render(records: Sequence[Record] | Record, form: str, flatten: bool = False) -> str:
    """Format records, or one, in one of the ``FORMATS``.

    Parameters
    ----------
    records:
        What to print; for JSON and YAML one record stays one object.
    form:
        One of the ``FORMATS``.
    flatten:
        True to turn a nested column such as params into params_lr, params_C, ...; so does CSV.
    """
    several = [records] if isinstance(records, Mapping) else list(records)
    if flatten or form == "csv":
        several = [_flat(record) for record in several]
    shown: Any = several[0] if isinstance(records, Mapping) else several
    if form == "json":
        return to_json(shown)
    if form == "yaml":
        import yaml  # type: ignore[import-untyped]

        return str(yaml.safe_dump(shown, sort_keys=False)).strip()
    columns = list(dict.fromkeys(name for record in several for name in record))
    if form == "csv":
        file = io.StringIO()
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        # An empty cell is a parameter that a trial lacks
        writer.writerows(
            {n: "None" if v is None and n.startswith("params_") else v for n, v in record.items()}
            for record in several
        )
        return file.getvalue().rstrip("\n")
    cells = [
        ["" if record.get(name) is None else printable(record[name]) for name in columns]
        for record in several
    ]
    if form == "value":
        return "\n".join(" ".join(row) for row in cells)
    return _table(columns, cells, several)


def _table(columns: list[str], cells: list[list[str]], records: Sequence[Record]) -> str:
    heads = [printable(name) for name in columns]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    numeric = [all(_numeric(record.get(name)) for record in records) for name in columns]
    rule = "+" + "".join("-" * (width + 2) + "+" for width in widths)

    def line(row: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        return "|" + "".join(f" {cell} |" for cell in padded)

    return "\n".join([rule, line(heads), rule, *map(line, cells), rule])


def _numeric(value: object) -> bool:
    """Return True for a number, one that has been written out, or None."""
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, int | float | None)


def _flat(record: Record) -> Record:
    flat: Record = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            flat.update({f"{name}_{key}": inner for key, inner in value.items()})
        else:
            flat[name] = value
    return flat


def _time(moment: datetime.datetime | None) -> str | None:
    return None if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S")
