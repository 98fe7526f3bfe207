"""Learning rate and weight decay: of a small network on bundled images, of a ResNet on CIFAR-10.

The task of [Ezzerg2026]_, section 5.4. Points are (log10 learning rate, log10 weight decay) in
[-5, -1] x [-6, -2]; a result is the accuracy on images that were not trained on. Its noise is the
seed of the training: first weights, and the order of the images.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.interpolate import RegularGridInterpolator

from stoic.data import Array
from stoic.domains import Box, as_points
from stoic.problems.base import Optimum, outside
from stoic.problems.residual import Images, load_images, train_and_score

LOWER, UPPER = (-5.0, -6.0), (-1.0, -2.0)


def _box() -> Box:
    return Box(np.array(LOWER), np.array(UPPER))


@dataclass(frozen=True, eq=False)
class DigitsTuning:
    """scikit-learn's multilayer perceptron on its 1797 digits, a few passes by Adam.

    The images are split once, 1297 to train on and 500 to score.

    Parameters
    ----------
    hidden:
        Units of each hidden layer.
    epochs:
        Passes over the training images; as in the paper, too few for a small learning rate.
    batch:
        Images in a step.
    """

    hidden: tuple[int, ...] = (64, 64)
    epochs: int = 4
    batch: int = 64
    domain: Box = field(default_factory=_box, init=False)
    name = "tuning-digits"

    def run(self, x: Array, seed: int) -> float:
        """Train once, and return the accuracy.

        The weight decay is that of the mean loss of a batch, as in other libraries; the ``alpha``
        of scikit-learn is divided by the size of the batch.
        """
        rate, decay = np.power(10.0, as_points(x, 2)[0]).tolist()
        network, quiet = _multilayer_perceptron()
        train, labels, held_out, truth = _digits()
        model = network(
            self.hidden,
            solver="adam",
            alpha=decay * self.batch,
            batch_size=self.batch,
            learning_rate_init=rate,
            max_iter=self.epochs,
            random_state=seed % 2**32,  # the range of its seeds
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", quiet)  # it stops early on purpose
            model.fit(train, labels)
        return float(model.score(held_out, truth))


@dataclass(frozen=True, eq=False)
class CifarTuning:
    """Residual network [He2016]_ on CIFAR-10, by stochastic gradients with momentum.

    Parameters
    ----------
    data:
        The directory of the python version, with ``data_batch_1`` to ``data_batch_5`` and
        ``test_batch``, or the one that contains it.
    epochs:
        Passes over the training images.
    blocks:
        Residual blocks in each of the three stages: 3 make the ResNet-20.
    batch:
        Images in a step.
    device:
        A device of torch; ``"auto"`` is a GPU if there is one.
    """

    data: Path
    epochs: int = 4
    blocks: int = 3
    batch: int = 128
    device: Literal["auto", "cpu", "cuda"] = "auto"
    domain: Box = field(default_factory=_box, init=False)
    name = "tuning-cifar"

    def run(self, x: Array, seed: int) -> float:
        """Train once, and return the accuracy on the test images."""
        rate, decay = np.power(10.0, as_points(x, 2)[0]).tolist()
        return train_and_score(
            _cifar(self.data), rate, decay, seed,
            epochs=self.epochs, blocks=self.blocks, batch=self.batch, device=self.device,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Interpolated:
    """Function on a box, known on a grid and multilinear between: a problem with a maximum.

    Parameters
    ----------
    name:
        A short name for tables.
    domain:
        A box; the grid covers it with even steps, corners included.
    values:
        f at the nodes, finite, an axis for each coordinate, at least two nodes along each.

    Attributes
    ----------
    optimum:
        The best node, which no point between the nodes exceeds.
    """

    name: str
    domain: Box
    values: Array
    optimum: Optimum = field(init=False)
    _surface: RegularGridInterpolator = field(init=False)

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.float64)
        if values.ndim != self.domain.dim or min(values.shape) < 2 or not np.isfinite(values).all():
            raise ValueError(
                f"{self.name} needs finite values with an axis of at least two nodes for each of "
                f"{self.domain.dim} coordinates, got shape {values.shape} with "
                f"{np.count_nonzero(~np.isfinite(values))} entries that are not finite."
            )
        values.flags.writeable = False
        nodes = self.domain.grid(values.shape).points
        best = int(values.argmax())
        axes = [
            np.linspace(a, b, n)
            for a, b, n in zip(self.domain.lower, self.domain.upper, values.shape, strict=True)
        ]
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "optimum", Optimum(nodes[best], float(values.flat[best])))
        object.__setattr__(self, "_surface", RegularGridInterpolator(axes, values))

    def value(self, x: Array) -> Array:
        """f at each row of ``x`` (m, d), shape (m,); ``ValueError`` off the box."""
        points = as_points(x, self.domain.dim)
        self.domain.locate(points)
        # ``locate`` tolerates rounding, the interpolator does not
        inside = np.clip(points, self.domain.lower, self.domain.upper)
        return np.asarray(self._surface(inside), dtype=np.float64)


@cache
def digits_mean(nodes: tuple[int, int] = (25, 5), trainings: int = 20) -> Interpolated:
    """Average the accuracy of ``DigitsTuning()`` over ``trainings`` seeds at all nodes of a grid.

    Regret is measured by it. It has two errors. A mean has one of about 0.01 /
    trainings^(1/2) where training succeeds, more where it fails, and the best of the means is a
    little too high for being the best. Between nodes, where accuracy rises from a guess to a
    success within a decade of learning rates, a line is off by about 0.01. Both are the same for
    every method. The seeds are the first numbers; a search draws its own from 2^31.

    It takes ``trainings`` x nodes x about 30 ms, once in a process.
    """
    program = DigitsTuning()
    points = program.domain.grid(nodes).points
    means = [np.mean([program.run(x, seed) for seed in range(trainings)]) for x in points]
    return Interpolated(program.name, program.domain, np.reshape(means, nodes))


@cache
def _digits() -> tuple[Array, Any, Array, Any]:
    """Images in [0, 1] and digits: to train on, and held out."""
    _multilayer_perceptron()  # its error says what to install
    images, digits = import_module("sklearn.datasets").load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    held_out, train = order[:500], order[500:]
    return images[train] / 16.0, digits[train], images[held_out] / 16.0, digits[held_out]


@cache
def _multilayer_perceptron() -> tuple[Any, Any]:
    """Import the classifier, and the warning that it has not converged."""
    who = "Tuning on the digits needs scikit-learn"
    network = outside("sklearn.neural_network", who).MLPClassifier
    return network, outside("sklearn.exceptions", who).ConvergenceWarning


@cache
def _cifar(data: Path) -> Images:
    return load_images(data)
