"""Examples of attacks, noises and moves that need arguments: from a domain to those of each."""

import math

import numpy as np

from stoic.adversaries import (
    Always,
    Clairvoyant,
    Clipping,
    Empirical,
    Flip,
    Gaussian,
    Later,
    Pareto,
    Replace,
    Stable,
    StudentT,
    Subtraction,
    TopK,
)
from stoic.adversaries.inputs import GaussianMove, LowestBound, RandomMove, WorstCase
from stoic.distances import Distance
from stoic.kernels import RBF


def in_the_middle(x):
    return abs(x[0] - 0.5) < 0.2


EXAMPLES = {
    Clairvoyant: lambda domain: [
        {
            "optimum": domain.sample(1, np.random.default_rng(5))[0],
            "near": 0.3,
            "far": 0.6,
            "low": -10.0,
            "high": math.inf,
        },
    ],
    Clipping: lambda domain: [{"inside": in_the_middle, "best": 1.0}],
    Subtraction: lambda domain: [{"inside": in_the_middle, "depth": 2.0}],
    TopK: lambda domain: [{"values": np.sin(np.arange(25.0)), "k": 3}],
    Later: lambda domain: [{"attack": Flip()}],
    Gaussian: lambda domain: [{"sd": 0.0}, {"sd": 0.7}],
    StudentT: lambda domain: [{"df": 3.0}, {"df": 1.5, "scale": 0.2}],
    Stable: lambda domain: [{"alpha": 1.5}, {"alpha": 2.0, "scale": 0.2}, {"alpha": 1.0}],
    Pareto: lambda domain: [{}, {"shape": 1.2}],
    Empirical: lambda domain: [{"rewards": np.random.default_rng(6).standard_normal((9, 25))}],
    RandomMove: lambda domain: [
        {"radius": 0.4},
        {"radius": 2.0, "distance": Distance("cityblock")},
    ],
    LowestBound: lambda domain: [{"radius": 2.0}],
    WorstCase: lambda domain: [{"radius": 2.0, "distance": Distance.of_kernel(RBF(3.0))}],
    GaussianMove: lambda domain: [{"sd": 0.3}],
    Always: lambda domain: [{"reported": -10.0}, {"reported": math.nan}],
    Replace: lambda domain: [{"values": {1: math.nan, 2: 1e300, 7: -math.inf}}],
}
