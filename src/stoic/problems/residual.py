"""Residual network for small images, trained by torch, and the files of CIFAR-10.

The network is that of [He2016]_, section 4.2: 6 n + 2 layers, three stages of n blocks with 16, 32
and 64 channels, a shortcut around every block that pads with zeros where the shape changes.
"""

from __future__ import annotations

import pickle
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stoic.problems.base import outside
from stoic.refusal import RefusalError

TRAINING = tuple(f"data_batch_{k}" for k in range(1, 6))
TEST = "test_batch"
FOLDER = "cifar-10-batches-py"
MOMENTUM = 0.9

Bytes = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]


class Images(NamedTuple):
    """Images with their classes, to train on and to score by.

    Attributes
    ----------
    train, test:
        Pixels, shape (images, 3, 32, 32).
    train_labels, test_labels:
        Classes 0 to 9.
    """

    train: Bytes
    train_labels: Labels
    test: Bytes
    test_labels: Labels


def load_images(path: str | Path) -> Images:
    """CIFAR-10 from the files of its python version.

    The files are pickles. Only arrays, bytes, lists and dictionaries are read from them: a file
    that asks for anything else is refused, so that it cannot run code.
    """
    training, last = files(path)
    parts = [_batch(part) for part in training]
    test, test_labels = _batch(last)
    train = np.concatenate([pixels for pixels, _ in parts])
    return Images(train, np.concatenate([labels for _, labels in parts]), test, test_labels)


def files(path: str | Path) -> tuple[list[Path], Path]:
    """Find the files of CIFAR-10 to train on and to test by, in a directory or in their folder.

    Fewer than five training files are fewer images, not an error.
    """
    directory = Path(path)
    if (directory / FOLDER).is_dir():
        directory = directory / FOLDER
    present = [name for name in TRAINING if (directory / name).is_file()]
    if not present or not (directory / TEST).is_file():
        raise RefusalError(
            f"{directory} needs the files {TRAINING[0]} to {TRAINING[-1]} and {TEST} of CIFAR-10, "
            "python version."
        )
    return [directory / name for name in present], directory / TEST


def train_and_score(
    images: Images,
    rate: float,
    decay: float,
    seed: int,
    *,
    epochs: int = 4,
    blocks: int = 3,
    batch: int = 128,
    device: str = "auto",
) -> float:
    """Train with this learning rate and weight decay, and return the accuracy on test images.

    Stochastic gradients with momentum 0.9, a constant rate, images flipped at random. A training
    that diverges has the accuracy of a guess, and is no error. On a CPU the same seed is the same
    result; torch does not guarantee that between its versions, nor on a GPU.
    """
    torch = _torch()
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.random.fork_rng(devices=[]):  # the caller's generator is left as it was
        torch.manual_seed(seed)
        network = _network(blocks).to(device)
    order = torch.Generator().manual_seed(seed)
    pixels, classes, test, truth = (torch.from_numpy(part).to(device) for part in images)
    mean, sd = _moments(images.train)
    mean, sd = (torch.tensor(m, device=device).view(1, 3, 1, 1) for m in (mean, sd))
    loss = torch.nn.CrossEntropyLoss()
    descent = torch.optim.SGD(network.parameters(), lr=rate, momentum=MOMENTUM, weight_decay=decay)
    network.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(pixels), generator=order).split(batch):
            if len(rows) < 2:  # a batch of one has no spread to normalise by
                continue
            flipped = torch.rand(len(rows), generator=order) < 0.5
            shown = (pixels[rows.to(device)].float() - mean) / sd
            shown = torch.where(flipped.to(device).view(-1, 1, 1, 1), shown.flip(3), shown)
            descent.zero_grad()
            loss(network(shown), classes[rows.to(device)]).backward()
            descent.step()
    network.eval()
    right = 0
    with torch.no_grad():
        for first in range(0, len(test), 1000):
            shown = (test[first : first + 1000].float() - mean) / sd
            right += int((network(shown).argmax(1) == truth[first : first + 1000]).sum())
    return right / len(test)


def _moments(pixels: Bytes) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each channel."""
    mean = pixels.mean(axis=(0, 2, 3), dtype=np.float64)
    # Without a copy of all pixels as floats.
    squares = np.square(np.arange(256.0))
    power = [squares[pixels[:, c]].mean() for c in range(pixels.shape[1])]
    sd = np.sqrt(np.maximum(power - mean**2, 0.0))
    return mean.tolist(), np.where(sd > 0.0, sd, 1.0).tolist()


class _PlainUnpickler(pickle.Unpickler):
    """Unpickler of arrays and plain containers, and nothing that could run."""

    def find_class(self, module: str, name: str) -> Any:
        # In numpy.core, or numpy._core since NumPy 2
        if name == "_reconstruct" and module.endswith(".multiarray"):
            return np._core.multiarray._reconstruct  # type: ignore[attr-defined]
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if (module, name) == ("_codecs", "encode"):  # of bytes, in pickles of protocol 2
            return import_module("_codecs").encode
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def _batch(path: Path) -> tuple[Bytes, Labels]:
    """Pixels (n, 3, 32, 32) and classes (n,) of one file."""
    try:
        with path.open("rb") as file:
            pixels, labels = _contents(file)
        rows = np.asarray(pixels)
        classes = np.asarray(labels, dtype=np.int64)
        if rows.dtype != np.uint8 or rows.shape != (len(classes), 3072) or not len(classes):
            raise ValueError(f"data of shape {rows.shape} and {len(classes)} labels")
        if classes.min() < 0 or classes.max() > 9:
            raise ValueError(f"labels from {classes.min()} to {classes.max()}")
    except Exception as error:  # whatever a file of another form makes of itself
        raise RefusalError(
            f"{path} is not a batch of CIFAR-10, python version, with bytes 'data' (n, 3072) and "
            f"'labels' 0 to 9: {error}."
        ) from error
    return rows.reshape(-1, 3, 32, 32), classes


def _contents(file: IO[bytes]) -> tuple[Any, Any]:
    table = _PlainUnpickler(file, encoding="bytes").load()
    named = {key.decode() if isinstance(key, bytes) else key: part for key, part in table.items()}
    return named["data"], named["labels"]


def _network(blocks: int) -> Any:
    """Build the residual network, 6 ``blocks`` + 2 layers."""
    nn, block = _torch().nn, _block()
    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    channels = 16
    for stage in (16, 32, 64):
        for k in range(blocks):
            layers.append(block(channels, stage, 2 if k == 0 and stage > 16 else 1))
            channels = stage
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(*layers)


@cache
def _block() -> Any:
    """Define the class of a residual block, whose base class needs torch."""
    torch = _torch()
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        """ReLU(x + g(x)), g two convolutions."""

        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.stride, self.padding = stride, after - before
            self.residual = nn.Sequential(
                nn.Conv2d(before, after, 3, stride, padding=1, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(),
                nn.Conv2d(after, after, 3, padding=1, bias=False),
                nn.BatchNorm2d(after),
            )

        def forward(self, x: Any) -> Any:
            shortcut = x[:, :, :: self.stride, :: self.stride]
            if self.padding:  # option A of the paper: zeros, no parameters
                shortcut = nn.functional.pad(shortcut, (0, 0, 0, 0, 0, self.padding))
            return nn.functional.relu(shortcut + self.residual(x))

    return Block


@cache
def _torch() -> Any:
    return outside("torch", "Training on CIFAR-10 needs torch", "pip install 'stoic[botorch]'")
