"""Kernels as formulas in torch, differentiable in x, for GPyTorch."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from stoic import kernels
from stoic.kernels import Kernel

try:
    import torch
    from gpytorch.kernels import Kernel as GPyTorchKernel
except ImportError as error:
    raise ImportError(
        "stoic.integrations.torch_kernels needs GPyTorch, which is not installed: "
        "pip install 'stoic[botorch]'."
    ) from error


@singledispatch
def covariance(kernel: Kernel, x: Any, z: Any) -> Any:
    """Covariance k(x, z), (..., n, m), of tensors x (..., n, d), z (..., m, d); differentiable.

    All kernels of :mod:`stoic.kernels` are known. For one of your own, register the same formula in
    torch: ``covariance.register(Mine, formula)``.

    Raises
    ------
    ValueError
        If the kernel is not known.
    """
    raise ValueError(
        f"There is no formula in torch for the kernel {type(kernel).__name__}: write one and give "
        "it to stoic.integrations.torch_kernels.covariance.register."
    )


def _squares(kernel: kernels.Stationary, x: Any, z: Any) -> Any:
    """Squared distances in lengthscales, from differences: exact wherever the origin is."""
    scale = x.new_tensor(kernel.lengthscale)
    return ((x / scale).unsqueeze(-2) - (z / scale).unsqueeze(-3)).square().sum(-1)


def _root(squares: Any) -> Any:
    """Square root whose gradient at 0 is 0."""
    return squares.clamp_min(1e-36).sqrt()  # a normal number in 32 bits, too


@covariance.register
def _(kernel: kernels.RBF, x: Any, z: Any) -> Any:
    return torch.exp(-0.5 * _squares(kernel, x, z))


@covariance.register
def _(kernel: kernels.Matern12, x: Any, z: Any) -> Any:
    return torch.exp(-_root(_squares(kernel, x, z)))


@covariance.register
def _(kernel: kernels.Matern32, x: Any, z: Any) -> Any:
    r = _root(3.0 * _squares(kernel, x, z))
    return (1.0 + r) * torch.exp(-r)


@covariance.register
def _(kernel: kernels.Matern52, x: Any, z: Any) -> Any:
    squares = 5.0 * _squares(kernel, x, z)
    r = _root(squares)
    return (1.0 + r + squares / 3.0) * torch.exp(-r)


@covariance.register
def _(kernel: kernels.Linear, x: Any, z: Any) -> Any:
    return (x / x.new_tensor(kernel.lengthscale**2)) @ z.transpose(-1, -2)


@covariance.register
def _(kernel: kernels.Polynomial, x: Any, z: Any) -> Any:
    return (kernel.offset + covariance(kernel.linear, x, z)) ** kernel.degree


@covariance.register
def _(kernel: kernels.Precomputed, x: Any, z: Any) -> Any:
    rows, columns = x[..., 0].long(), z[..., 0].long()
    return x.new_tensor(kernel.matrix)[rows.unsqueeze(-1), columns.unsqueeze(-2)]


@covariance.register
def _(kernel: kernels.Scaled, x: Any, z: Any) -> Any:
    return kernel.variance * covariance(kernel.kernel, x, z)


@covariance.register
def _(kernel: kernels.Sum, x: Any, z: Any) -> Any:
    return covariance(kernel.first, x, z) + covariance(kernel.second, x, z)


@covariance.register
def _(kernel: kernels.Product, x: Any, z: Any) -> Any:
    return covariance(kernel.first, x, z) * covariance(kernel.second, x, z)


class Covariance(GPyTorchKernel):  # type: ignore[misc]
    """GPyTorch kernel of a kernel of stoic with its hyperparameters.

    Parameters
    ----------
    kernel:
        The formula; its hyperparameters are constants here.
    """

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.formula = kernel

    def forward(self, x1: Any, x2: Any, diag: bool = False, **params: Any) -> Any:
        if diag:
            # Each row is a table of its own, (..., n, 1, d)
            return covariance(self.formula, x1.unsqueeze(-2), x2.unsqueeze(-2))[..., 0, 0]
        return covariance(self.formula, x1, x2)
