"""Slow twins: the formulas as they stand in the books, with explicit inverses and loops.

Tests of the fast code compare with these; nothing here imports the code it is the twin of.
"""

from __future__ import annotations

import numpy as np


def rbf(x, z, lengthscale=1.0):
    """exp(-r^2 / 2), entry by entry."""
    return np.array([[np.exp(-0.5 * np.sum(((a - b) / lengthscale) ** 2)) for b in z] for a in x])


def posterior(kernel, x, values, noise, z, mean=0.0):
    """Mean and covariance of f at ``z``: eqs. (2.23)-(2.24) of Rasmussen and Williams."""
    if not len(x):
        return np.full(len(z), mean), kernel(z, z)
    inverse = np.linalg.inv(kernel(x, x) + np.diag(noise))
    K = kernel(z, x)
    return mean + K @ inverse @ (values - mean), kernel(z, z) - K @ inverse @ K.T


def information(kernel, x, noise):
    """0.5 log det(I + D^-1/2 K D^-1/2)."""
    root = np.sqrt(noise)
    return 0.5 * np.linalg.slogdet(np.eye(len(x)) + kernel(x, x) / np.outer(root, root))[1]


def log_normal_pdf(y, mean, variance):
    return -0.5 * np.log(2.0 * np.pi * variance) - 0.5 * (y - mean) ** 2 / variance


def plateau(y, noise, half_width, shape, centre, unit="value"):
    """Target, row noise and trust of one observation, from w and the derivative of log w^2."""
    sigma = np.sqrt(noise)
    c = shape * sigma if unit == "noise" else shape
    z = max(abs(y - centre) - half_width, 0.0)
    w = sigma / np.sqrt(2.0) * (1.0 + z**2 / c**2) ** -0.5
    J = noise / (2.0 * w**2)
    m = noise * (-2.0 * np.sign(y - centre) * z / (c**2 + z**2))
    return y - m, noise * J, 1.0 / J


def plateaus(values, noise, half_widths, shape, centres, unit="value"):
    """Targets, noise and trust of rows that share noise and shape."""
    rows = np.broadcast(values, half_widths, centres)
    rows = [plateau(y, noise, half_width, shape, g, unit) for y, half_width, g in rows]
    return np.array(rows).reshape(-1, 3).T


def psi(corruptions, kappa, noise):
    """Factor of the deviation without the corrupted rows: Lemma D.11."""
    ratio = corruptions * kappa / noise
    return np.sqrt(1.0 + ratio * (1.0 + ratio))


def influence(half_width, shape, noise, deviation):
    """C_w: what a corrupted row adds to the width, its centre being off by the deviation."""
    sigma = np.sqrt(noise)
    C_m = 4.0 * noise / (3.0 * np.sqrt(3.0) * shape)
    C_1 = sigma / np.sqrt(2.0) * (np.sqrt(half_width**2 + shape**2) + deviation + C_m)
    return np.sqrt(2.0) * C_1 / noise


def weighted_leave_one_out(kernel, x, observed, values, row_noise, own_noise, weights, mean):
    """n sum omega_i log N(y_i; mu_-i, v_-i), each by a posterior without row i."""
    total = 0.0
    for i in range(len(x)):
        others = np.arange(len(x)) != i
        mu, covariance = posterior(
            kernel, x[others], values[others], row_noise[others], x[[i]], mean
        )
        density = log_normal_pdf(observed[i], mu[0], covariance[0, 0] + own_noise[i])
        total += weights[i] / weights.sum() * density
    return len(x) * total


def one(domain, observations):
    """Location 0 and scale 1: results are in their own units."""
    return 0.0, 1.0
