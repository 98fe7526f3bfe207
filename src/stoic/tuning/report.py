"""Report of a study as one page for a browser: results, their trust, and the reasons.

The file holds everything, scripts included: it works offline and can be sent to somebody.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial

from stoic.integrations.optuna import Confirmation, Explanation, Row
from stoic.integrations.recipe import Recipe
from stoic.printable import printable
from stoic.refusal import Refusal
from stoic.tuning.summary import (
    DISTRUSTED,
    Summary,
    deviation,
    infeasible_lines,
    left_out_lines,
    setting,
)
from stoic.tuning.timeline import BELIEVED, DOUBTED, EXPECTED, limits

_TRUST = (DOUBTED, "#c9c9c9", BELIEVED)  # at 0, 1/2, 1; safe for every colour vision
_BAND, _INK = "rgba(0, 114, 178, 0.18)", "#222222"
_POINTS = 81  # points of a slice
_ROOM = 12  # letters beside an axis of parallel coordinates
_LAYOUT = {
    "template": "plotly_white",
    "margin": {"l": 60, "r": 20, "t": 20, "b": 50},
    "font": {"family": "system-ui, sans-serif", "size": 13, "color": _INK},
    "legend": {"orientation": "h", "y": -0.22},
    "hovermode": "closest",
}


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
    def of(cls, study: optuna.Study, recipe: Recipe | None = None) -> Report:
        """Summarise a study, by default by its own recipe; costs one fit of the model."""
        summary = Summary.of(study, recipe)
        # Afterwards: every trial of the summary must be here, even one that ends meanwhile.
        trials = {trial.number: trial for trial in study.get_trials(deepcopy=False)}
        known = summary.explanation
        space: Mapping[str, BaseDistribution] = {}
        if known is not None and known.recommended is not None:
            space = {
                name: distribution
                for name, distribution in known.recommended.distributions.items()
                if name in known.model_optimum and not distribution.single()
            }
        return cls(summary, trials, space)

    def write(self, path: Path) -> None:
        """Write the page.

        Raises
        ------
        Refusal
            If plotly is missing, or the file cannot be written.
        """
        page = self.page()
        try:
            path.write_text(page, encoding="utf-8")
        except OSError as error:
            raise Refusal(f"Cannot write {str(path)!r}: {error.strerror}.") from error

    def page(self) -> str:
        """Return the HTML of the page."""
        plotly = _plotly()
        known = self.summary.explanation
        sections = [_section("What came of it", self._cards())]
        if known is not None:
            draw = _Drawings(self, known, plotly)
            sections.append(_section("History", draw.history(), _HISTORY))
            if self.space:
                sections.append(_section("What the model believes", draw.slices(), _SLICES))
            sections.append(_section("Surprise over time", draw.surprise(), _SURPRISE))
            if len(self.space) > 1:
                sections.append(_section("All parameters", draw.parallel(), _PARALLEL))
            if known.confirmation is not None:
                sections.append(_section("Confirmed", self._confirmed(known.confirmation)))
            sections.append(_section("Distrusted", self._distrusted()))
        sections.append(_section("Failed", self._failed()))
        title = _escaped(f"{self.summary.name} ({self.summary.direction})")
        script = plotly.offline.get_plotlyjs()
        return _PAGE.format(
            title=title, style=_STYLE, script=script, body="\n".join(sections),
        )  # fmt: skip

    def _cards(self) -> str:
        summary, known = self.summary, self.summary.explanation
        counts = ", ".join(f"{count} {state}" for state, count in summary.counts.items())
        cards = [_card("Trials", str(sum(summary.counts.values())), counts)]
        if summary.unmodelled:
            cards.append(_card("Not modelled", "", " ".join(summary.unmodelled)))
        if known is None:
            return _grid([*cards, _card("Recommended", "none", "No trial has a value yet.")])
        best, recommended = known.observed_best, known.recommended
        if recommended is not None:
            estimate = f"{known.recommended_mean:.6g} ± {deviation(known.recommended_std)}"
            number = f"trial {recommended.number}, told {recommended.value:.6g}"
            run = next(
                (row.executed for row in known.rows if row.number == recommended.number), None
            )
            if run is not None and run != recommended.params:
                number += f", run as {setting(run)}"
            cards.append(_card("Recommended", estimate, number, setting(recommended.params)))
        if known.certified is not None:
            lines = [known.certified.unreachable(), known.certified.sentence()]
            cards.append(_card("Certificate", "", ". ".join(line for line in lines if line)))
        if best is not None:
            trust = next((row.trust for row in known.rows if row.number == best.number), math.nan)
            doubt = f", distrusted (trust {trust:.2f})" if trust < DISTRUSTED else ""
            cards.append(
                _card(
                    "Observed best", f"{best.value:.6g}", f"trial {best.number}{doubt}",
                    setting(best.params),
                )
            )  # fmt: skip
        if summary.command is not None:
            cards.append(_card("Command, as the storage says", "", "", summary.command))
        return _grid(cards)

    def _confirmed(self, found: Confirmation) -> str:
        rows = [
            (
                candidate.number, f"{candidate.mean:.6g} ± {deviation(candidate.std)}",
                f"{candidate.probability:.2f}", candidate.measurements, candidate.failures,
                setting(candidate.params),
            )
            for candidate in found.candidates
        ]  # fmt: skip
        heads = ("trial", "estimated", "probability", "measured", "failed", "parameters")
        return f"<p>{_escaped(found.sentence())}.</p>" + _table(heads, rows)

    def _distrusted(self) -> str:
        rows = [
            (
                row.number, f"{row.value:.6g}", f"{row.expected:.6g} ± {deviation(row.sd)}",
                f"{row.residual:+.3g}", f"{row.trust:.2f}",
                setting(self.trials[row.number].params),
            )
            for row in self.summary.distrusted
        ]  # fmt: skip
        heads = ("trial", "told", "expected", "standard deviations off", "trust", "parameters")
        table = _table(heads, rows) or "<p>Every value is believed.</p>"
        known = self.summary.explanation
        lines = [] if known is None else left_out_lines(known) + infeasible_lines(known)
        return table + "".join(f"<p>{_escaped(line.strip())}</p>" for line in lines)

    def _failed(self) -> str:
        rows = [
            (
                failed, reason, self.summary.kinds.get(failed) or "not known",
                setting(self.trials[failed].params),
            )
            for reason, numbers in self.summary.failures.items()
            for failed in numbers
        ]  # fmt: skip
        rows.sort()
        return _table(("trial", "reason", "kind", "parameters"), rows) or "<p>None.</p>"


class _Drawings:
    """Figures of a report, each as a piece of HTML."""

    def __init__(self, report: Report, known: Explanation, plotly: Any) -> None:
        self.report, self.known = report, known
        self.go, self.io = plotly.graph_objects, plotly.io
        self.rows = sorted(known.rows, key=lambda row: row.number)
        self.low, self.high = limits(list(self.rows))
        # Observations are at the executed parameters; so is an uncertified recommendation.
        trials = report.trials
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
            (False, "circle", "believed"),
            (True, "diamond", "distrusted"),
        ):
            part = [row for row in self.rows if (row.trust < DISTRUSTED) == doubted]
            self._results(figure, part, symbol, f"{name} ({len(part)})")
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
        figure.update_layout(
            xaxis_title="number of the trial", yaxis_title="value told",
            yaxis_range=[self.low, self.high], height=440, **_LAYOUT,
        )  # fmt: skip
        return self._html(figure)

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
                "size": [8.0 + 7.0 * (1.0 - row.trust) for row in rows],
                "color": [_colour(row.trust) for row in rows],
                "line": {"width": 0.6, "color": "black"},
            },
        )

    def surprise(self) -> str:
        """Plot leave-one-out residuals in standard deviations; asinh makes room for any of them."""
        figure = self.go.Figure()
        off = [float(np.arcsinh(np.clip(row.residual, -1e300, 1e300))) for row in self.rows]
        figure.add_bar(
            x=[row.number for row in self.rows], y=off,
            text=[self._hover(row) for row in self.rows], hoverinfo="text", textposition="none",
            marker={
                "color": [_colour(row.trust) for row in self.rows],
            },
        )  # fmt: skip
        low, high = min([*off, -math.asinh(1.0)]), max([*off, math.asinh(1.0)])
        top = max(-low, high)
        ticks, gap = [0.0], 0.16 * max(math.asinh(3.0), top)
        for tick in (1.0, 3.0, 10.0, 100.0, 1e3, 1e6, 1e12, 1e50, 1e100, 1e300):
            if math.asinh(ticks[-1]) + gap <= math.asinh(tick) <= 1.05 * top + 0.9:
                ticks.append(tick)
        marks = sorted({sign * tick for tick in ticks for sign in (-1.0, 1.0)})
        figure.update_layout(
            xaxis_title="number of the trial",
            yaxis={
                "title": "standard deviations off",
                "range": [1.08 * low, 1.08 * high],
                "tickvals": [math.asinh(t) for t in marks],
                "ticktext": [f"{t + 0.0:g}" for t in marks],
            },
            height=320,
            **_LAYOUT,
        )
        return self._html(figure)

    def slices(self) -> str:
        """Plot posterior mean and band along each parameter, through the recommended setting."""
        parts = []
        for name, distribution in self.report.space.items():
            values = _along(distribution)
            mean, std = self.known.predict([{**self.here, name: value} for value in values])
            parts.append(self._slice(name, distribution, values, mean, std))
        return f'<div class="slices">{"".join(parts)}</div>'

    def _slice(
        self, name: str, distribution: BaseDistribution, values: Sequence[Any], mean: Any, std: Any
    ) -> str:
        figure = self.go.Figure()
        observed = [
            (row, self.run[row.number][name]) for row in self.rows if name in self.run[row.number]
        ]
        category = isinstance(distribution, CategoricalDistribution)
        shown = [_plain(label) for label in _labels(values)] if category else values
        x: list[Any] = list(shown)
        if category:
            figure.add_scatter(
                x=x, y=mean, error_y={"array": 2.0 * std, "thickness": 2}, mode="markers",
                marker={"color": BELIEVED, "size": 11}, name="mean ± 2 sd",
            )  # fmt: skip
        else:
            figure.add_scatter(
                x=[*x, *x[::-1]], y=[*(mean + 2.0 * std), *(mean - 2.0 * std)[::-1]],
                mode="lines", fill="toself", fillcolor=_BAND, line={"width": 0}, hoverinfo="skip",
                name="± 2 sd",
            )  # fmt: skip
            figure.add_scatter(
                x=x, y=mean.tolist(), mode="lines", line={"color": BELIEVED}, name="mean"
            )
        figure.add_scatter(
            x=[shown[values.index(value)] if category else value for _, value in observed],
            y=[self._inside(row.value) for row, _ in observed],
            mode="markers", name="told", text=[self._hover(row) for row, _ in observed],
            hoverinfo="text", cliponaxis=False,
            marker={
                "symbol": [self._symbol(row.value, "circle") for row, _ in observed],
                "color": [_colour(row.trust) for row, _ in observed],
                "size": 6, "opacity": 0.75,
            },
        )  # fmt: skip
        figure.add_vline(
            x=values.index(self.here[name]) if category else self.here[name],
            line={"color": _INK, "dash": "dot", "width": 1},
        )
        log = bool(getattr(distribution, "log", False))
        figure.update_layout(
            xaxis={
                "title": _plain(name),
                "type": "category" if category else "log" if log else "linear",
                **({"dtick": 1, "exponentformat": "power"} if log else {}),
            },
            yaxis_range=[self.low, self.high], height=300, showlegend=False,
            **{key: value for key, value in _LAYOUT.items() if key != "legend"},
        )  # fmt: skip
        return f"<div>{self._html(figure)}</div>"

    def parallel(self) -> str:
        """Plot every trusted trial as a line through its parameters and its value."""
        names = list(self.report.space)
        rows = [
            row
            for row in self.rows
            if row.trust >= DISTRUSTED and set(names) <= self.run[row.number].keys()
        ]
        axes = [
            _axis(name, self.report.space[name], [self.run[row.number][name] for row in rows])
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
                    "reversescale": self.report.summary.direction == "minimize",
                    "showscale": True,
                    "colorbar": {"thickness": 10},
                },
            )
        )
        layout = {**_LAYOUT, "margin": {"l": 60, "r": 40, "t": 60, "b": 30}}
        figure.update_layout(height=380, **layout)
        return f'<div style="min-width: {110 * len(axes)}px">{self._html(figure)}</div>'

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
            f"trial {row.number}: told {row.value:.6g}<br>expected {row.expected:.6g} "
            f"± {deviation(row.sd)}<br>trust {row.trust:.2f}<br>"
            + _plain(setting(self.run[row.number]))
        )

    def _html(self, figure: Any) -> str:
        text = self.io.to_html(
            figure, full_html=False, include_plotlyjs=False,
            config={"responsive": True, "displayModeBar": False},
        )  # fmt: skip
        return str(text)


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


def _escaped(text: object) -> str:
    """Escape a text for the page."""
    return html.escape(printable(text))


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


def _plotly() -> Any:
    try:
        import_module("plotly.graph_objects")
        import_module("plotly.offline")
        import_module("plotly.io")
        return import_module("plotly")
    except ImportError as error:
        raise Refusal(
            "A report needs plotly, which is not installed: pip install 'stoic[report]'."
        ) from error


def _section(title: str, body: str, caption: str = "") -> str:
    said = f'<p class="caption">{caption}</p>' if caption else ""
    return f'<section><h2>{title}</h2>{said}<div class="wide">{body}</div></section>'


def _card(title: str, number: str, line: str, code: str = "") -> str:
    parts = [f"<h3>{_escaped(title)}</h3>"]
    if number:
        parts.append(f'<p class="number">{_escaped(number)}</p>')
    if line:
        parts.append(f"<p>{_escaped(line)}</p>")
    if code:
        parts.append(f"<code>{_escaped(code)}</code>")
    return f'<div class="card">{"".join(parts)}</div>'


def _grid(cards: Iterable[str]) -> str:
    return f'<div class="cards">{"".join(cards)}</div>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    if not rows:
        return ""
    cell: Callable[[object], str] = lambda value: f"<td>{_escaped(value)}</td>"  # noqa: E731
    head = "".join(f"<th>{_escaped(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_HISTORY = (
    "Each value as it was told: from blue, believed, over grey to large and orange, not believed. "
    "What lies beyond the axis is a triangle at its edge. Grey marks are what all other trials "
    "make one expect."
)
_SLICES = (
    "The model along each parameter, the others as in the recommended trial (dotted line). Dots "
    "are all values told, wherever their other parameters were."
)
_SURPRISE = (
    "How far each value was from what the others make one expect, in standard deviations of such "
    "a value; the axis is logarithmic away from zero."
)
_PARALLEL = "Every believed trial is a line; drag along an axis to select."

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fafafa; margin: 0; }
main { max-width: 1100px; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 0 0 .25rem; }
h3 { font-size: .85rem; margin: 0; color: #555; font-weight: 600; }
section { background: #fff; border: 1px solid #e2e2e2; border-radius: 8px; padding: 1rem;
  margin: 1rem 0; }
.caption { color: #555; font-size: .875rem; margin: 0 0 .5rem; }
.wide { overflow-x: auto; }
.cards { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(220px, 1fr)); }
.card { border-left: 4px solid #0072B2; padding-left: .75rem; min-width: 0; }
.card p { margin: 0; font-size: .9rem; }
.card .number { font-size: 1.35rem; font-weight: 600; }
code { font-size: .8rem; overflow-wrap: anywhere; }
.slices { display: grid; gap: .5rem; grid-template-columns: repeat(auto-fit, minmax(280px, 1fr)); }
.slices > div { min-width: 0; }
table { border-collapse: collapse; font-size: .875rem; }
th, td { text-align: left; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid #eee;
  vertical-align: top; }
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
<script>{script}</script>
</head>
<body>
<main>
<h1>{title}</h1>
{body}
</main>
<script>addEventListener("load", () => dispatchEvent(new Event("resize")))</script>
</body>
</html>
"""
