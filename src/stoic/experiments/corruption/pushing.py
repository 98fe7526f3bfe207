"""Figure 1 of [Bogunovic2022]_: the pushing robot under the two most effective attacks.

These are runs of figure 3. The caption does not say which method ends with less regret; it is
measured as well. GP-UCB loses to these attacks as much as RGP-PE pays for its exploration only on
some draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stoic.experiments import pictures, regret
from stoic.experiments.contender import BLACK, BLUE, VERMILION
from stoic.experiments.corruption import comparison, growth
from stoic.experiments.corruption.algorithms import GP_UCB, RGP_PE
from stoic.experiments.corruption.trials import Groups, Row, Settings, cells, grouped, run
from stoic.experiments.corruption.worlds import NO_ATTACK, ROBOT3D
from stoic.experiments.figure import OURS, Claim, Figure


def most_effective(groups: Groups) -> list[str]:
    """Find the two attacks under which GP-UCB ends with most mean regret, the worse one last."""
    finals = {
        attack: float(trials.final.mean())
        for (attack, name), trials in groups.items()
        if name == GP_UCB.name and attack != NO_ATTACK
    }
    return sorted(finals, key=finals.__getitem__)[-2:]


def plot(settings: Settings, rows: Sequence[Row]) -> pictures.Picture:
    """Plot one panel per method: no attack and the two attacks that cost GP-UCB most."""
    groups = grouped(rows)
    styles = zip((BLACK, BLUE, VERMILION), ("-", "--", "-."), strict=True)
    picture = pictures.blank(7.6, 3.6)
    panels = picture.subplots(1, 2, sharey=True)
    for attack, (colour, line) in zip((NO_ATTACK, *most_effective(groups)), styles, strict=False):
        for name, axes in zip((GP_UCB.name, RGP_PE.name), panels, strict=True):
            group = groups[attack, name]
            style = replace(GP_UCB, name=attack, colour=colour, line=line)
            regret.curve(axes, group.rounds, group.cumulative, style, band="deviation")
            axes.set_title(name, fontsize=10)
            axes.set_xlabel("round t")
    comparison.frame(panels, settings)
    panels[0].set_ylabel("cumulative regret\n(units of f)")
    pictures.legend(picture, [panels[0]], "outside lower center", ncols=3)
    picture.suptitle(
        f"{settings.world}, C = {settings.budget:g}: mean of {settings.trials} trials, "
        "band: one standard deviation",
        fontsize=10,
    )
    return picture


def claims(settings: Settings, rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Claims of the caption, for the attacks it must mean and for those that these runs name."""
    groups = grouped(rows)
    chosen = most_effective(groups)
    clean = groups[NO_ATTACK, GP_UCB.name]
    costs = {
        attack: growth.measured(groups[attack, GP_UCB.name])["mean"] for attack in settings.attacks
    }
    found = [
        Claim(
            "The two attacks that cost GP-UCB most mean regret are Top-3 and Top-5.",
            set(chosen) == {"Top-3", "Top-5"},
            costs,
        )
    ]
    for attack in chosen:
        numbers = growth.less(clean, groups[attack, GP_UCB.name])
        found += [
            Claim(
                f"{attack}: {GP_UCB.learner} ends with more mean cumulative regret than with no "
                "attack, by more than two standard errors of the paired difference.",
                -numbers["paired_difference"] > 2.0 * numbers["paired_standard_error"],
                numbers,
            ),
            comparison.robust_flattens(groups, attack, RGP_PE),
            comparison.less_regret(groups, attack, RGP_PE, GP_UCB, OURS),
        ]
    return tuple(found)


FIGURE = Figure(
    "corruption/figure-1",
    "GP-UCB and RGP-PE on Robot3D under the two most effective attacks, with C = 100",
    Settings("Robot3D", 100.0, ROBOT3D.draw, methods=(GP_UCB.name, RGP_PE.name)),
    cells,
    run,
    plot,
    comparison.table,
    claims,
    "Bogunovic2022, Fig. 1",
)
