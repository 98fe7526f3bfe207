"""Examples of each kernel that needs arguments: from a domain to those of one or more."""

import numpy as np

from stoic.kernels import (
    RBF,
    Linear,
    Matern32,
    Matern52,
    Polynomial,
    Precomputed,
    Product,
    Scaled,
    Sum,
)

EXAMPLES = {
    Polynomial: lambda domain: [{"degree": 3, "offset": 0.7, "linear": Linear(8.0)}],
    Precomputed: lambda domain: [{"matrix": np.array([[2.0, 0.5], [0.5, 1.0]])}],
    Sum: lambda domain: [{"first": RBF(3.0), "second": Scaled(Linear(np.array([4.0, 2.0])), 2.0)}],
    Product: lambda domain: [
        {"first": Scaled(Matern52(np.array([2.0, 1.0])), 0.3), "second": Linear(5.0)},
        {"first": RBF(2.0), "second": Sum(Matern32(1.0), Polynomial(2, 1.0, Linear(6.0)))},
    ],
    Scaled: lambda domain: [{"kernel": Matern32(np.array([0.5, 3.0])), "variance": 2.5}],
}
