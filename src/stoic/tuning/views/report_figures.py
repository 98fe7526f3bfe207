"""Figures of a study's report, drawn by plotly."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState

from stoic.data import Array
from stoic.integrations.optuna import Explanation, Row
from stoic.integrations.optuna.coordinates import Branches
from stoic.integrations.optuna.explanation import expected, setting
from stoic.integrations.optuna.internals import possible
from stoic.integrations.optuna.unmodelled import branches_of
from stoic.printable import printable, written
from stoic.refusal import RefusalError
from stoic.tuning.views.pictures import EXPECTED, REJECTED, TRUSTED
from stoic.tuning.views.timeline import LARGEST, limits, shown_trust

_TRUST = (REJECTED, "#c9c9c9", TRUSTED)  # at 0, 1/2, 1; safe for every colour vision
_BAND, _INK = "rgba(0, 114, 178, 0.18)", "#222222"
_FENCE = 3.5  # interquartile ranges from their middle that an axis has
_STATES = {TrialState.FAIL: "failed"}
_KINDS_OF_CURVES = (  # drawn in this order
    ("trusted", TRUSTED, "solid"),
    ("pruned", "#8c8c8c", "dash"),
    ("failed", "#8c8c8c", "dot"),
    ("running", _INK, "dot"),
    ("distrusted", REJECTED, "solid"),
)
_POINTS = 81  # points of a slice
_STEPS = 200  # points of a curve
_CURVES = 200  # of them, the latest
_ROOM = 12  # letters beside an axis of parallel coordinates
_LAYOUT = {
    "template": "plotly_white",
    "margin": {"l": 60, "r": 20, "t": 20, "b": 50},
    "font": {"family": "system-ui, sans-serif", "size": 13, "color": _INK},
    "legend": {"orientation": "h", "y": -0.22},
    "hovermode": "closest",
}


class Drawings:
    """Figures of a report, each as a piece of HTML."""

    def __init__(
        self,
        known: Explanation,
        trials: Mapping[int, FrozenTrial],
        space: Mapping[str, BaseDistribution],
        minimise: bool,
        go: Any,
        io: Any,
    ) -> None:
        self.known, self.space, self.minimise = known, space, minimise
        self.go, self.io = go, io
        self.trials = trials
        self.rows = sorted(known.rows, key=lambda row: row.number)
        self.low, self.high = limits(list(self.rows))
        # Observations are at the executed parameters; so is an uncertified recommendation.
        self.run = {row.number: row.executed or trials[row.number].params for row in self.rows}
        self.here: Mapping[str, Any] = {}
        if (best := known.recommended) is not None:
            self.here = self.run[best.number] if known.certified is None else best.params

    def history(self) -> str:
        """Plot observed values over the number of the trial; size and colour are trust."""
        figure = self.go.Figure()
        figure.add_scatter(
            x=[row.number for row in self.rows], y=[row.expected for row in self.rows],
            error_y={"array": [row.sd for row in self.rows], "thickness": 1, "width": 0},
            mode="markers", marker={"symbol": "line-ew-open", "color": EXPECTED, "size": 9},
            name="expected from all others, ± sd", hoverinfo="skip",
        )  # fmt: skip
        for doubted, symbol, name in (
            (False, "circle", "trusted"),
            (True, "diamond", "distrusted"),
        ):
            part = [row for row in self.rows if row.distrusted == doubted]
            self._results(figure, part, symbol, f"{name} ({len(part)})")
        self._best_so_far(figure)
        for trial, name, symbol in (
            (self.known.recommended, "recommended", "circle-open"),
            (self.known.observed_best, "observed best", "square-open"),
        ):
            if trial is not None and trial.value is not None:
                figure.add_scatter(
                    x=[trial.number], y=[self._inside(trial.value)], mode="markers", name=name,
                    marker={"symbol": symbol, "size": 20, "color": _INK, "line": {"width": 2}},
                    hoverinfo="skip", cliponaxis=False,
                )  # fmt: skip
        off = sum(row.distrusted for row in self.rows)
        alt = f"{len(self.rows)} values by the number of the trial, {off} of them distrusted"
        return self._html(
            figure, alt, xaxis_title="number of the trial", yaxis_title="observed value",
            yaxis_range=[self.low, self.high], height=440,
        )  # fmt: skip

    def _best_so_far(self, figure: Any) -> None:
        """Add the best value up to each trial: as observed, and of the trusted ones."""
        trusted = [row for row in self.rows if not row.distrusted]
        for rows, name, dash in (
            (self.rows, "best observed so far", "dot"),
            (trusted, "best trusted so far", "solid"),
        ):
            worst = math.inf if self.minimise else -math.inf
            values = [worst if math.isnan(row.value) else row.value for row in rows]
            best = (np.minimum if self.minimise else np.maximum).accumulate(values)
            figure.add_scatter(
                x=[row.number for row in rows], y=list(map(self._inside, best)), name=name,
                mode="lines", line={"shape": "hv", "dash": dash, "color": _INK, "width": 1.2},
                hoverinfo="skip",
            )  # fmt: skip

    def _results(self, figure: Any, rows: Sequence[Row], symbol: str, name: str) -> None:
        """Add values, those beyond the axis as triangles on its edge."""
        figure.add_scatter(
            x=[row.number for row in rows],
            y=[self._inside(row.value) for row in rows],
            mode="markers",
            name=name,
            text=[self._hover(row) for row in rows],
            hoverinfo="text",
            cliponaxis=False,
            marker={
                "symbol": [self._symbol(row.value, symbol) for row in rows],
                "size": [8.0 + 7.0 * (1.0 - shown_trust(row)) for row in rows],
                "color": [_colour(shown_trust(row)) for row in rows],
                "line": {"width": 0.6, "color": "black"},
            },
        )

    def curves(self) -> str:
        """Plot intermediate values over their steps, a line for each trial; empty without any."""
        doubted = {row.number for row in self.rows if row.distrusted}
        lines: dict[str, tuple[list[Any], list[Any], list[str]]] = {}
        seen: list[float] = []
        reporting = [trial for trial in self.trials.values() if trial.intermediate_values]
        for trial in sorted(reporting, key=lambda trial: trial.number)[-_CURVES:]:
            kind = _STATES.get(trial.state, trial.state.name.lower())
            if trial.state == TrialState.COMPLETE:
                kind = "distrusted" if trial.number in doubted else "trusted"
            points = sorted(trial.intermediate_values.items())
            points = points[:: math.ceil(len(points) / _STEPS)]
            x, y, text = lines.setdefault(kind, ([], [], []))
            x += [step for step, _ in points] + [None]  # no line to the next trial
            y += [value if math.isfinite(value) else None for _, value in points] + [None]
            text += [f"trial {trial.number}: {value:.6g}" for _, value in points] + [""]
            seen += [value for _, value in points if math.isfinite(value)]
        if not seen:
            return ""
        figure = self.go.Figure()
        for kind, colour, dash in _KINDS_OF_CURVES:
            if kind in lines:
                x, y, text = lines[kind]
                figure.add_scatter(
                    x=x, y=y, text=text, hoverinfo="text", mode="lines+markers", name=kind,
                    marker={"size": 3}, line={"color": colour, "dash": dash, "width": 1.2},
                )  # fmt: skip
        known = np.clip(seen, -LARGEST, LARGEST)
        first, third = np.quantile(known, [0.25, 0.75])
        inside = known[np.abs(known - 0.5 * (first + third)) <= _FENCE * (third - first)]
        low, high = float(inside.min(initial=first)), float(inside.max(initial=third))
        room = 0.08 * (high - low) or abs(high) or 1.0
        alt = f"intermediate values by step, of {min(len(reporting), _CURVES)} trials"
        return self._html(
            figure, alt, xaxis_title="step", yaxis_title="intermediate value",
            yaxis_range=[low - room, high + room], height=380,
        )  # fmt: skip

    def surprise(self) -> str:
        """Plot leave-one-out residuals in standard deviations; asinh makes room for any of them."""
        figure = self.go.Figure()
        off = [float(np.arcsinh(np.clip(row.residual, -LARGEST, LARGEST))) for row in self.rows]
        figure.add_bar(
            x=[row.number for row in self.rows], y=off,
            text=[self._hover(row) for row in self.rows], hoverinfo="text", textposition="none",
            marker={
                "color": [_colour(shown_trust(row)) for row in self.rows],
            },
        )  # fmt: skip
        low, high = min([*off, -math.asinh(1.0)]), max([*off, math.asinh(1.0)])
        top = max(-low, high)
        ticks, gap = [0.0], 0.16 * max(math.asinh(3.0), top)
        for tick in (1.0, 3.0, 10.0, 100.0, 1e3, 1e6, 1e12, 1e50, 1e100, 1e300):
            if math.asinh(ticks[-1]) + gap <= math.asinh(tick) <= 1.05 * top + 0.9:
                ticks.append(tick)
        marks = sorted({sign * tick for tick in ticks for sign in (-1.0, 1.0)})
        axis = {
            "title": "standard deviations off",
            "range": [1.08 * low, 1.08 * high],
            "tickvals": [math.asinh(t) for t in marks],
            "ticktext": [f"{t + 0.0:g}" for t in marks],
        }
        alt = "no value"
        if self.rows:
            most = max(self.rows, key=lambda row: abs(row.residual))
            alt = f"farthest off, by {most.residual:.3g} standard deviations, is {most.of}"
        return self._html(figure, alt, xaxis_title="number of the trial", yaxis=axis, height=320)

    @cached_property
    def effects(self) -> dict[str, float]:
        """Total effect of each parameter."""
        return self.known.importances()

    def importances(self) -> str:
        """Plot the total effect of each parameter; the largest is on top."""
        found = list(reversed(self.effects.items()))
        figure = self.go.Figure()
        figure.add_bar(
            x=[effect for _, effect in found], y=[_plain(name) for name, _ in found],
            text=[f"{effect:.2f}" for _, effect in found], textposition="auto",
            orientation="h", marker={"color": TRUSTED}, hoverinfo="skip", width=0.6,
        )  # fmt: skip
        effects = ", ".join(f"{name} {effect:.2f}" for name, effect in reversed(found))
        alt = f"share of the model's variance: {effects}"
        return self._html(
            figure, alt, xaxis={"title": "share of the model's variance", "rangemode": "tozero"},
            yaxis={"type": "category", "automargin": True}, height=110 + 26 * len(found),
        )  # fmt: skip

    def slices(self) -> list[str]:
        """Plot posterior mean and band along each parameter, through the recommended setting."""
        parts = []
        branches = branches_of(self.trials.values())
        for name, distribution in self.space.items():
            if name in branches:
                distribution = branches[name].range_of(self.here) or distribution
            values = _along(distribution)
            shown, mean, std = self._predicted(name, values, branches)
            parts.append(self._slice(name, distribution, shown, mean, std))
        return parts

    def _predicted(
        self, name: str, values: Sequence[Any], branches: Mapping[str, Branches]
    ) -> tuple[Sequence[Any], Array, Array]:
        """Predict along a parameter, through the recommended setting.

        Of values with which a setting has other parameters through the best trial of each.
        """
        try:
            settings = [_in_branch({**self.here, name: value}, branches) for value in values]
            return values, *self.known.predict(settings)
        except RefusalError:
            tried = [row for row in self.rows if name in row.params and math.isfinite(row.value)]
            tried.sort(key=lambda row: row.value, reverse=self.minimise)  # the best is the last
            best = {row.params[name]: dict(row.params) for row in tried if not row.distrusted}
            values = [value for value in values if value in best]
            return values, *self.known.predict([best[value] for value in values])

    def _slice(
        self, name: str, distribution: BaseDistribution, values: Sequence[Any], mean: Any, std: Any
    ) -> str:
        figure = self.go.Figure()
        observed = [
            (row, run[name])
            for row in self.rows
            if name in (run := self.run[row.number]) and possible(distribution, run[name])
        ]
        category = isinstance(distribution, CategoricalDistribution)
        shown = [_plain(label) for label in _labels(values)] if category else values
        x: list[Any] = list(shown)
        if category:
            figure.add_scatter(
                x=x, y=mean, error_y={"array": 2.0 * std, "thickness": 2}, mode="markers",
                marker={"color": TRUSTED, "size": 11}, name="mean ± 2 sd",
            )  # fmt: skip
        else:
            figure.add_scatter(
                x=[*x, *x[::-1]], y=[*(mean + 2.0 * std), *(mean - 2.0 * std)[::-1]],
                mode="lines", fill="toself", fillcolor=_BAND, line={"width": 0}, hoverinfo="skip",
                name="± 2 sd",
            )  # fmt: skip
            figure.add_scatter(
                x=x, y=mean.tolist(), mode="lines", line={"color": TRUSTED}, name="mean"
            )
        figure.add_scatter(
            x=[shown[values.index(value)] if category else value for _, value in observed],
            y=[self._inside(row.value) for row, _ in observed],
            mode="markers", name="observed", text=[self._hover(row) for row, _ in observed],
            hoverinfo="text", cliponaxis=False,
            marker={
                "symbol": [self._symbol(row.value, "circle") for row, _ in observed],
                "color": [_colour(shown_trust(row)) for row, _ in observed],
                "size": 6, "opacity": 0.75,
            },
        )  # fmt: skip
        figure.add_vline(
            x=values.index(self.here[name]) if category else self.here[name],
            line={"color": _INK, "dash": "dot", "width": 1},
        )
        log = bool(getattr(distribution, "log", False))
        axis = {
            "title": _plain(name),
            "type": "category" if category else "log" if log else "linear",
            **({"dtick": 1, "exponentformat": "power"} if log else {}),
        }
        shown_range = [self.low, self.high]
        best = int(np.argmin(mean) if self.minimise else np.argmax(mean))
        first, last, top = (
            f"{mean[k]:.4g} at {values[k]:.4g}"
            if isinstance(values[k], float)
            else f"{mean[k]:.4g} at {values[k]}"
            for k in (0, -1, best)
        )
        alt = f"the model along {name}: {first}, {last}, best {top}"
        return self._html(
            figure, alt, xaxis=axis, yaxis_range=shown_range, height=300, showlegend=False
        )

    def parallel(self) -> str:
        """Plot every trusted trial as a line through its parameters and its value."""
        names = list(self.space)
        rows = [
            row
            for row in self.rows
            if not row.distrusted and set(names) <= self.run[row.number].keys()
        ]
        axes = [
            _axis(name, self.space[name], [self.run[row.number][name] for row in rows])
            for name in names
        ]
        values = [row.value for row in rows]
        axes.append({"label": "value", "values": values})
        figure = self.go.Figure(
            self.go.Parcoords(
                dimensions=axes,
                line={
                    "color": values,
                    "colorscale": "Cividis",
                    "reversescale": not self.minimise,  # the best lines are dark
                    "showscale": True,
                    "colorbar": {"thickness": 10},
                },
            )
        )
        alt = f"parameters and values of {len(rows)} trusted trials"
        return self._html(figure, alt, height=380, margin={"l": 60, "r": 40, "t": 60, "b": 30})

    def _inside(self, value: float) -> float:
        """Clip a value to the axis; nan goes to its lower edge."""
        if math.isnan(value):
            return self.low
        return min(max(value, self.low), self.high)

    def _symbol(self, value: float, inside: str) -> str:
        if value > self.high:
            return "triangle-up"
        return "triangle-down" if not value >= self.low else inside

    def _hover(self, row: Row) -> str:
        return (
            f"trial {row.number}: observed {written(row.value, row.sd)}<br>"
            f"expected {expected(row, '±')}<br>trust {row.trust:.2f}<br>"
            + _plain(setting(self.run[row.number]))
        )

    def _html(self, figure: Any, alt: str, **layout: Any) -> str:
        """Draw a figure; ``alt`` is what is read to those who cannot see it."""
        common = {name: layout.pop(name, value) for name, value in _LAYOUT.items()}
        if layout.get("showlegend") is False:
            del common["legend"]
        figure.update_layout(**layout, **common)
        text = self.io.to_html(
            figure, full_html=False, include_plotlyjs=False,
            config={"responsive": True, "displayModeBar": False},
        )  # fmt: skip
        label = html.escape(printable(f"Chart: {alt}."))
        return f'<div role="img" aria-label="{label}">{text}</div>'


def _colour(trust: float) -> str:
    """Interpolate the three colours of trust."""
    at = 2.0 * min(max(trust, 0.0), 1.0)
    low = min(int(at), 1)
    ends = (_TRUST[low], _TRUST[low + 1])
    a, b = ([int(end[k : k + 2], 16) for k in (1, 3, 5)] for end in ends)
    mixed = (round(x + (at - low) * (y - x)) for x, y in zip(a, b, strict=True))
    return f"rgb({', '.join(map(str, mixed))})"


def _along(distribution: BaseDistribution) -> list[Any]:
    """Values of one parameter from end to end."""
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    low, high, step = (getattr(distribution, name) for name in ("low", "high", "step"))
    ends = np.log([low, high]) if getattr(distribution, "log", False) else np.array([low, high])
    values = np.linspace(ends[0], ends[1], _POINTS)
    if getattr(distribution, "log", False):
        values = np.exp(values)
    if step is not None and not getattr(distribution, "log", False):
        values = low + step * np.round((values - low) / step)
    if isinstance(low, int):
        values = np.round(values)
    kept = np.unique(np.clip(values, low, high))
    return [int(value) if isinstance(low, int) else float(value) for value in kept]


def _labels(choices: Sequence[Any]) -> list[str]:
    """Return a text for each choice, its ``repr`` where two of them look alike: '1' and 1."""
    texts = [str(choice) for choice in choices]
    return texts if len(set(texts)) == len(texts) else [repr(choice) for choice in choices]


def _plain(text: str) -> str:
    """Escape a text for plotly, which takes some tags for markup and knows no &quot;."""
    return html.escape(printable(text), quote=False)


def _brief(text: str) -> str:
    return text if len(text) <= _ROOM else text[: _ROOM - 1] + "…"


def _axis(name: str, distribution: BaseDistribution, values: Sequence[Any]) -> dict[str, Any]:
    """One axis of parallel coordinates."""
    label = _plain(_brief(name))
    if isinstance(distribution, CategoricalDistribution):
        choices = list(distribution.choices)
        return {
            "label": label,
            "values": [choices.index(value) for value in values],
            "tickvals": list(range(len(choices))),
            "ticktext": [_brief(printable(text)) for text in _labels(choices)],
        }
    if not getattr(distribution, "log", False):
        return {"label": label, "values": list(values)}
    low, high = (math.log10(getattr(distribution, end)) for end in ("low", "high"))
    powers = [float(k) for k in range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)]
    ticks = powers or [low, high]
    return {
        "label": label,
        "values": [math.log10(value) for value in values],
        "range": [low, high],
        "tickvals": ticks,
        "ticktext": [f"{10.0**tick:.3g}" for tick in ticks],
    }


def _in_branch(setting: dict[str, Any], branches: Mapping[str, Branches]) -> dict[str, Any]:
    """Return the setting with numbers of another branch at the nearest end of its own."""
    moved = dict(setting)
    for name in branches.keys() & setting.keys():
        if (d := branches[name].range_of(setting)) is not None:
            moved[name] = min(max(setting[name], d.low), d.high)
    return moved
