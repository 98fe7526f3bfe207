"""Not in a paper: a report on a frozen default.

No problem here was used while the default was developed: six other tables of trained networks;
COCO's bbob-noisy in two and five dimensions, where a noise-free twin exists; and Hartmann's
function as BoTorch corrupts it. 60 trials each.
"""

from __future__ import annotations

from stoic.experiments.contest import networks, suites
from stoic.experiments.contest.comparison import Settings, figure
from stoic.experiments.contest.networks import trained
from stoic.experiments.contest.scenes import Ground, Scene

_DIMENSIONS = (2, 5)
_BBOB = {
    "gauss": Scene("gauss", "bbob-noisy, Gaussian noise", honest=True),
    "uniform": Scene("uniform", "bbob-noisy, uniform noise", honest=True),
    "cauchy": Scene("cauchy", "bbob-noisy, seldom Cauchy noise", marked=False),
}
_BOTORCH = {
    "constant": Scene("constant", "BoTorch's Hartmann 6, 10 % are 100", marked=False),
    "elsewhere": Scene("elsewhere", "BoTorch's Hartmann 6, 10 % of a random point", marked=False),
}
SCENES: dict[str, Scene] = {**networks.SCENES, **_BBOB, **_BOTORCH}
LABEL = (
    "tables: fraction of all configurations truly better than the recommended one; others: true "
    "score of what is recommended (0: the optimum, 1: the median of random settings)"
)
GAMES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(networks.SCENES, networks.FINAL),
    **{
        kind: tuple(f"f{f} d{d}" for f in suites.functions(kind) for d in _DIMENSIONS)
        for kind in _BBOB
    },
    **dict.fromkeys(_BOTORCH, ("hart6",)),
}


def ground(scene: str, problem: str, seed: int) -> Ground:
    """Build the ground truth of a panel; its library is loaded now."""
    if scene in _BBOB:
        return suites.bbob_noisy(*suites.function_and_dim(problem), seed)
    if scene in _BOTORCH:
        return suites.corrupted_hartmann6(scene, seed)
    return trained(problem)


FIGURE = figure(
    "contest/final",
    "The default against other optimizers on scenes that it was not made on",
    Settings(trials=5, games=GAMES, few=()),
    ground,
    SCENES,
    LABEL,
    # A first run ended after 1,260 of 1,302 studies, for want of a library
    early=True,
)
