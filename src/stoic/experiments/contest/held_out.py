"""Not in a paper: the default against other optimizers on functions that nothing was made on.

The functions of COCO's bbob that are no twin of those of ``contest/final``, in three and ten
dimensions, 60 trials: clean, with noise, with one result in ten too good, and with results slightly
better than the optimum and failures. It is run once, after the default is frozen.
"""

from __future__ import annotations

from stoic.experiments.contest import suites
from stoic.experiments.contest.comparison import Settings, figure
from stoic.experiments.contest.contenders import DEFAULT, FAST, installed
from stoic.experiments.contest.networks import SPOILT
from stoic.experiments.contest.scenes import ORDINARY, SCENES, Ground, Scene, ordinary

_DIMENSIONS = (3, 10)
_FUNCTIONS = tuple(f for f in range(1, 25) if f not in suites.TWINS.values())
_SCENES: dict[str, Scene] = {
    "clean": SCENES["clean"],
    "noise": SCENES["noise"],
    "wrong": ordinary(0.1, *ORDINARY),
    "spoilt": Scene(
        "spoilt", "5 % slightly too good, 10 % nan, noise 5 %", noise=0.05, outliers=SPOILT
    ),
}
GAMES = dict.fromkeys(_SCENES, tuple(f"f{f} d{d}" for d in _DIMENSIONS for f in _FUNCTIONS))


def ground(scene: str, problem: str, seed: int) -> Ground:
    """Return the instance of this function that belongs to the seed."""
    return suites.bbob(*suites.function_and_dim(problem), seed)


FIGURE = figure(
    "contest/held-out",
    "The default against other optimizers on functions that it was not made on",
    Settings(trials=5, games=GAMES, methods=(DEFAULT, *installed(FAST)), few=()),
    ground,
    _SCENES,
    "true score of what is recommended (0: the optimum, 1: the median of random settings)",
    early=True,
)
