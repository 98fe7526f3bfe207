"""Not in a paper: the default against widely used optimizers, on ordinary scenes.

Six smooth functions of two to six dimensions, 60 trials. In scenes with outliers one result in ten
is one. The number is the true value of the final recommendation, as a user would judge it: 0 is the
optimum and 1 the median of random settings. Problems, seeds, noise and outliers are the same for
all contenders. The default is chosen on these scenes, so they are no test set: ``contest/final``
is, and is run once.
"""

from __future__ import annotations

from stoic.experiments.contest.comparison import Settings, figure
from stoic.experiments.contest.contenders import DEFAULT, installed
from stoic.experiments.contest.functions import FUNCTIONS
from stoic.experiments.contest.scenes import SCENES, Ground

LABEL = "true score of what is recommended (0: the optimum, 1: the median of random settings)"
PROBLEMS = ("branin", "camel", "hart3", "levy4", "bowl5", "hart6")


def ground(scene: str, problem: str, seed: int) -> Ground:
    """Return the function of this name."""
    return FUNCTIONS[problem]


FIGURE = figure(
    "contest/development",
    "The default against other optimizers, with outliers and without",
    Settings(games=dict.fromkeys(SCENES, PROBLEMS)),
    ground,
    SCENES,
    LABEL,
)
# The same in minutes: three functions, 30 trials, two seeds.
QUICK = figure(
    "contest/quick",
    "The contest in minutes: three functions, 30 trials, two seeds",
    Settings(
        trials=2,
        rounds=30,
        games=dict.fromkeys(SCENES, ("branin", "hart3", "bowl5")),
        methods=(DEFAULT, *installed(("GPSampler", "TPE", "random"))),
        few=(),
    ),
    ground,
    SCENES,
    LABEL,
)
