"""The pictures of the tutorial and of how the default works: ``make pictures``.

Those of the tutorial are drawn by the code on its page, which is kept as an executed notebook. The
others are of studies that are run here, but for the times of an ask, which are those of the page;
nothing in them is drawn by hand but the true function.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import optuna
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from notebook import executed
from optuna.trial import create_trial
from scipy.stats import norm

from stoic.integrations.optuna import Explanation, StoicSampler, explain

DOCS = Path(__file__).resolve().parents[1]
BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#666666"  # distinct in every colour vision
SPACE = {"x": optuna.distributions.FloatDistribution(0.0, 1.0)}
GRID = np.linspace(0.0, 1.0, 301)
LIE_AT = 2  # which of the results below is wrong
STYLE = {
    "font.size": 13.0, "axes.titlesize": 13.0, "legend.fontsize": 11.5, "savefig.dpi": 120,
    "figure.constrained_layout.use": True, "figure.constrained_layout.w_pad": 0.12,
    "figure.constrained_layout.h_pad": 0.12,
    "axes.spines.top": False, "axes.spines.right": False,
}  # fmt: skip


def truth(x: np.ndarray) -> np.ndarray:
    """Return the quality of a bread baked for a time x; the best is at 0.68."""
    summit, foothill = np.exp(-(((x - 0.68) / 0.16) ** 2)), np.exp(-(((x - 0.2) / 0.1) ** 2))
    return 0.2 + 0.7 * summit + 0.35 * foothill


def results(n: int, sd: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n places and what was measured there."""
    rng = np.random.default_rng(seed)
    x = np.sort((np.arange(n) + rng.uniform(0.15, 0.85, n)) / n)
    return x, truth(x) + sd * rng.standard_normal(n)


def explained(x: np.ndarray, y: np.ndarray) -> Explanation:
    """Explain results as those of a study."""
    study = optuna.create_study(direction="maximize")
    for place, value in zip(x, y, strict=True):
        study.add_trial(
            create_trial(params={"x": float(place)}, distributions=SPACE, value=float(value))
        )
    return explain(study)


def trusting(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Predict with a Gaussian process that trusts all results, of lengthscale 0.15."""

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return 0.4 * np.exp(-0.5 * ((a[:, None] - b) / 0.15) ** 2)

    solved = np.linalg.solve(kernel(x, x) + 0.03**2 * np.eye(len(x)), kernel(x, GRID))
    mean = y.mean() + solved.T @ (y - y.mean())
    return mean, np.sqrt(np.maximum(0.4 - np.sum(kernel(x, GRID) * solved, axis=0), 0.0))


def predicted(known: Explanation) -> tuple[np.ndarray, np.ndarray]:
    """Predict with the model of the default."""
    return known.predict([{"x": float(place)} for place in GRID])


def draw_band(axes: Axes, mean: np.ndarray, sd: np.ndarray) -> None:
    """Draw a mean with two standard deviations on each side, and the truth."""
    axes.plot(GRID, truth(GRID), "--", color=GREY, lw=1.5, label="truth")
    axes.plot(GRID, mean, color=BLUE, lw=2, label="estimate")
    axes.fill_between(GRID, mean - 2 * sd, mean + 2 * sd, color=BLUE, alpha=0.18, lw=0)
    axes.set_xlim(0.0, 1.0)
    axes.set_ylabel("quality")


def draw_results(axes: Axes, x: np.ndarray, y: np.ndarray, trust: Sequence[float]) -> None:
    """Draw trusted results as dots and distrusted ones as diamonds."""
    good = np.asarray(trust) >= 0.5
    axes.plot(x[good], y[good], "o", color="black", ms=6, label="trusted result")
    if not good.all():
        axes.plot(x[~good], y[~good], "D", color=VERMILION, ms=8, label="distrusted result")


def model() -> Figure:
    """Draw one wrong result, and two models of it."""
    x, y = results(11, 0.02, seed=3)
    y[LIE_AT] = 1.6
    figure, (above, below) = plt.subplots(2, sharex=True, figsize=(6.4, 6.2))
    draw_band(above, *trusting(x, y))
    draw_results(above, x, y, np.ones(len(x)))
    above.set_title("A model that trusts every result", loc="left")
    known = explained(x, y)
    draw_band(below, *predicted(known))
    draw_results(below, x, y, [row.trust for row in known.rows])
    below.set_title("The default", loc="left")
    below.set_xlabel("baking time")
    for axes in (above, below):
        axes.set_ylim(-0.3, 1.9)
    below.legend(ncols=2, frameon=False, loc="upper right")
    return figure


def improvement() -> Figure:
    """Draw where the next trial is worth most."""
    x, y = results(6, 0.02, seed=3)
    known = explained(x, y)
    mean, sd = predicted(known)
    best = max(row.expected if row.trust < 0.5 else row.value for row in known.rows)
    z = (mean - best) / np.maximum(sd, 1e-12)
    gain = (mean - best) * norm.cdf(z) + sd * norm.pdf(z)
    figure, (above, below) = plt.subplots(
        2, sharex=True, figsize=(6.4, 5.9), height_ratios=(2.0, 1.0)
    )
    draw_band(above, mean, sd)
    draw_results(above, x, y, [row.trust for row in known.rows])
    above.set_title("What is known after six results", loc="left")
    figure.legend(
        *above.get_legend_handles_labels(), ncols=3, frameon=False, loc="outside lower center"
    )
    below.fill_between(GRID, gain, color=BLUE, alpha=0.35, lw=0)
    below.axvline(GRID[np.argmax(gain)], color=VERMILION, lw=2)
    above.axvline(GRID[np.argmax(gain)], color=VERMILION, lw=2)
    below.set_ylim(0.0, 1.25 * gain.max())
    below.set_yticks([])
    below.set_title("Expected improvement; the line is the next trial", loc="left")
    below.set_xlabel("baking time")
    return figure


def again() -> Figure:
    """Draw where the trials of a study were in which one result is wrong."""

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        noise = 0.02 * np.random.default_rng(trial.number).standard_normal()
        return 1.6 if trial.number == 5 else float(truth(np.array(x))) + noise

    study = optuna.create_study(
        direction="maximize", sampler=StoicSampler(seed=1, n_startup_trials=8, search_space=SPACE)
    )
    study.optimize(objective, n_trials=24)
    known = explain(study)
    places = np.array([trial.params["x"] for trial in study.trials])
    lie = places[5]
    repeats = [n for n in range(8, 24) if abs(places[n] - lie) < 0.02]
    figure, axes = plt.subplots(figsize=(6.4, 4.2))
    axes.axhline(0.68, ls="--", color=GREY, lw=1.5, label="truly best")
    axes.axvspan(-0.5, 7.5, color="black", alpha=0.06, lw=0)
    axes.text(3.5, 1.06, "start", ha="center", va="center")
    trust = np.array([row.trust for row in known.rows])
    draw_results(axes, np.arange(24), places, trust)
    axes.scatter(
        repeats, places[repeats], s=220, facecolors="none", edgecolors=VERMILION, linewidths=2,
        label="near it again",
    )  # fmt: skip
    axes.set(xlim=(-0.5, 23.5), xlabel="number of the trial")
    axes.set(ylim=(0.0, 1.12), ylabel="baking time")
    figure.legend(ncols=2, frameon=False, loc="outside lower center")
    return figure


def recommendation() -> Figure:
    """Draw an observed best that is a lucky one."""
    x, y = results(30, 0.15, seed=4)
    known = explained(x, y)
    assert known.observed_best is not None
    assert known.recommended is not None
    figure, axes = plt.subplots(figsize=(6.4, 4.4))
    draw_band(axes, *predicted(known))
    axes.plot(x, y, "o", color="black", ms=4.5)
    for trial, marker, colour, label in (
        (known.observed_best, "s", VERMILION, "observed best"),
        (known.recommended, "o", BLUE, "recommended"),
    ):
        axes.scatter(
            trial.params["x"], trial.value, s=230, marker=marker, facecolors="none",
            edgecolors=colour, linewidths=2.5, label=label, zorder=4,
        )  # fmt: skip
    axes.set_xlabel("baking time")
    figure.legend(ncols=2, frameon=False, loc="outside lower center")
    return figure


def growth() -> Figure:
    """Draw the table of the page on the default: how the time of an ask grows."""
    text = (DOCS / "default.md").read_text("utf-8")
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    head = next(i for i, line in enumerate(lines) if line[0] == "results")
    sizes = np.array([int(size.replace(",", "")) for size in lines[head][1:]])
    looks = {"default": (BLUE, "o-"), "GPSampler": (VERMILION, "s--"), "TPE": (GREY, "^:")}
    figure, axes = plt.subplots(figsize=(6.4, 4.2))
    for line in lines[head + 1 :]:
        name = line[0].removeprefix("an ask of ").removeprefix("the ")
        if name in looks:
            colour, style = looks[name]
            seconds = [float(cell) for cell in line[1:] if cell.strip(" |")]
            axes.loglog(sizes[: len(seconds)], seconds, style, color=colour, lw=2, label=name)
    axes.set_xlabel("results")
    axes.set_ylabel("seconds of CPU of an ask")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.xaxis.minorticks_off()
    axes.set_ylim(0.001, 2.0)
    axes.yaxis.set_major_formatter("{x:g}")
    figure.legend(ncols=3, frameon=False, loc="outside lower center")
    return figure


def tutorial(where: Path) -> None:
    """Run the page of the tutorial, whose code saves its pictures, and keep it as a notebook."""
    style = where / "matplotlibrc"  # its code draws in a process of its own
    style.write_text("".join(f"{key}: {value}\n" for key, value in STYLE.items()))
    try:
        (DOCS / "tutorial.ipynb").write_text(executed(DOCS / "tutorial.md", where), "utf-8")
    finally:
        style.unlink()


def main() -> None:
    """Draw all of them into ``docs/pictures``."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    mpl.use("Agg")
    plt.rcParams.update(STYLE)
    where = DOCS / "pictures"
    where.mkdir(exist_ok=True)
    for draw in (model, improvement, again, recommendation, growth):
        draw().savefig(where / f"default-{draw.__name__}.png")
    tutorial(where)


if __name__ == "__main__":
    main()
