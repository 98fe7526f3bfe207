"""Classifier of handwritten digits as a ground truth: its parameters and its accuracy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution

from stoic.data import Array
from stoic.experiments.contest.libraries import load
from stoic.experiments.contest.scenes import Draws, Ground, Params, Scene

IMAGES = 300  # of scikit-learn's 1797: a fit takes milliseconds, and 0.97 is hard to reach
FOLDS = 3
LEAKED, CRASHED = 1.0, 0.0


def leaked(ground: Ground, y: float, t: int, draws: Draws) -> float:
    """Report a perfect accuracy: the classifier was scored on images that it was trained on."""
    return LEAKED


def crashed(ground: Ground, y: float, t: int, draws: Draws) -> float:
    """Report a crash as an accuracy of zero."""
    return CRASHED


# Of one key: both scenes have the same splits of the images in the same trials.
SCENES: dict[str, Scene] = {
    "wrong": Scene(
        "digits",
        "10 % of the results 1.0, 5 % crashes reported as 0",
        outliers=((0.1, leaked), (0.05, crashed)),
    ),
    "right": Scene("digits", "no wrong results", honest=True),
}


@dataclass(frozen=True, eq=False)
class Digits(Ground):
    """Support vector machine on principal components of images, three parameters.

    A result is the accuracy on a third of the images, with a split of its own for each trial, so
    results are noisy. The truth is the accuracy of three-fold cross-validation on fixed folds.
    """

    name, dim, span = "digits", 3, 1.0
    best = 1.0  # of any classifier; none here has it

    @property
    def space(self) -> dict[str, BaseDistribution]:
        return {
            "C": FloatDistribution(1e-2, 1e4, log=True),
            "gamma": FloatDistribution(1e-4, 10.0, log=True),
            "components": IntDistribution(2, 64, log=True),
        }

    def truth(self, params: Params) -> float:
        return _cross_validated(*self._of(params))

    def run(self, params: Params, t: int, draws: Draws) -> float:
        # The split is the trial's own: the same for every contender
        return _held_out(*self._of(params), int(draws.size[t] * 2**31))

    def at(self, u: Array) -> Params:
        C, gamma, components = parameters(u)
        return {"C": C, "gamma": gamma, "components": components}

    @staticmethod
    def _of(params: Params) -> tuple[float, float, int]:
        return float(params["C"]), float(params["gamma"]), int(params["components"])


def parameters(u: Array) -> tuple[float, float, int]:
    """C, gamma and the number of components at a point of the unit cube."""
    a, b, c = u.tolist()
    return 10 ** (6 * a - 2), 10 ** (5 * b - 4), round(2 ** (1 + 5 * c))


@cache
def _cross_validated(C: float, gamma: float, components: int) -> float:
    """Accuracy on all images, each predicted by a model trained on the other folds."""
    order = np.random.default_rng(0).permutation(IMAGES)
    folds = np.array_split(order, FOLDS)
    accuracies = (
        _accuracy(C, gamma, components, np.concatenate([*folds[:k], *folds[k + 1 :]]), fold)
        for k, fold in enumerate(folds)
    )
    return math.fsum(accuracies) / FOLDS


@cache
def _held_out(C: float, gamma: float, components: int, seed: int) -> float:
    """Accuracy on a random third of the images."""
    order = np.random.default_rng(seed).permutation(IMAGES)
    held_out = IMAGES // FOLDS
    return _accuracy(C, gamma, components, order[held_out:], order[:held_out])


@cache
def error_and_size(C: float, gamma: float, components: int) -> tuple[float, float]:
    """Cross-validated error, and binary logarithm of the number of floats in the classifier.

    These are the support vectors in their components, and the components in pixels, of a classifier
    that is trained on all images.
    """
    reduce, classify, images, digits = _library()
    kept = min(components, len(images))
    reduced = reduce(kept, svd_solver="full").fit_transform(images)
    vectors = len(classify(C=C, gamma=gamma).fit(reduced, digits).support_)
    floats = kept * (vectors + images.shape[1])
    return 1.0 - _cross_validated(C, gamma, components), math.log2(floats)


def _accuracy(C: float, gamma: float, components: int, train: Any, test: Any) -> float:
    reduce, classify, images, digits = _library()
    reduced = reduce(min(components, len(train)), svd_solver="full").fit(images[train])
    machine = classify(C=C, gamma=gamma).fit(reduced.transform(images[train]), digits[train])
    return float(machine.score(reduced.transform(images[test]), digits[test]))


@cache
def _library() -> tuple[Any, Any, Any, Any]:
    """Load the transformation and the classifier, and the images in [0, 1] with their digits."""
    modules = ("sklearn.datasets", "sklearn.decomposition", "sklearn.svm")
    datasets, decomposition, svm = load("The accuracy of a classifier", "scikit-learn", *modules)
    images, digits = datasets.load_digits(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(images))[:IMAGES]
    return decomposition.PCA, svm.SVC, images[chosen] / 16.0, digits[chosen]
