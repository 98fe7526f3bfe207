"""Examples of each policy that needs arguments: from a domain to those of one or more."""

from stoic.distances import Distance
from stoic.kernels import RBF
from stoic.policies import UCB, Elimination, ExpectedImprovement, Initial, RareSwitching, Requery
from stoic.policies.satisficing import Satisficing
from stoic.policies.stable import StableOpt

EXAMPLES = {
    Elimination: lambda domain: [{}, {"design": RareSwitching(growth=1.0, share=0.0, first=1)}],
    Satisficing: lambda domain: [
        {"threshold": 0.5, "candidates": 100},
        {"threshold": 0.5, "p": 1.0, "candidates": 100},
        {"p": 2.0, "margin": 0.3, "candidates": 100},
        {"threshold": 9.0, "distance": Distance.of_kernel(RBF(3.0)), "candidates": 100},
        {"threshold": 0.5, "probe": True, "retries": 1, "candidates": 100},
    ],
    StableOpt: lambda domain: [
        {"radius": 1.5, "candidates": 100},
        {"radius": 0.0, "distance": Distance("cityblock"), "candidates": 100},
        {"radius": 1.5, "probe": True, "candidates": 100},
    ],
    Initial: lambda domain: [{"then": UCB(), "n": 4}, {"then": Initial(UCB(), 2), "n": 40}],
    UCB: lambda domain: [{}, {"retries": 1}],
    Requery: lambda domain: [{"then": UCB()}, {"then": ExpectedImprovement(), "rate": 1.0}],
    ExpectedImprovement: lambda domain: [{}, {"widened": True, "retries": 1}],
}
