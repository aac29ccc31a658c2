# SPDX-License-Identifier: Apache-2.0
"""The likelihood of a Gaussian process by Cholesky's factor, its gradient; eigenvalues, singular values, lu."""

from __future__ import annotations

import math

import weft
from weft import linalg, nn, optim


def likelihood(x: weft.NDArray, y: weft.NDArray, length: weft.Tensor) -> weft.Tensor:
    n = x.shape[0]
    apart = (x[:, None] - x[None, :]) ** 2
    kernel = weft.exp(-0.5 * apart / length**2) + 0.01 * weft.eye(n)
    factor = linalg.cholesky(kernel)
    half = linalg.solve_triangular(factor, y[:, None], upper=False)
    return (
        0.5 * (half**2).sum()
        + weft.log(linalg.diagonal(factor)).sum()
        + 0.5 * n * math.log(2 * math.pi)
    )


def main() -> None:
    weft.manual_seed(0)
    x = weft.linspace(0.0, 3.0, 12)
    y = weft.sin(x)
    length = nn.Parameter(weft.asarray(0.4))
    optimizer = optim.Adam([length], lr=0.05)
    losses: list[float] = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = likelihood(x, y, length)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    a = weft.Tensor(weft.eye(3) * 2.0 + 0.1, requires_grad=True)
    values, vectors = linalg.eigh(a)
    total: weft.Tensor = (
        values.sum() + linalg.svdvals(a).sum() + linalg.det(a) + linalg.inv(a).sum()
    )
    total.backward()
    plain = weft.asarray([[4.0, 1.0], [2.0, 3.0]])
    q, r = linalg.qr(plain)
    u, s, vh = linalg.svd(plain, full_matrices=False)
    packed, pivots = linalg.lu_factor(plain)
    p, lower, upper = linalg.lu(plain)
    solved: weft.NDArray = linalg.lu_solve(packed, pivots, weft.ones((2, 1)))
    factor, info = linalg.cholesky_ex(plain @ plain.mT)
    sign, size = linalg.slogdet(plain)
    norm: weft.NDArray = linalg.norm(plain)
    print(
        losses[-1] < losses[0], vectors.shape, a.grad is not None, (q @ r).shape, (u * s @ vh).shape
    )
    print(
        (p @ lower @ upper).tolist(),
        solved.shape,
        factor.shape,
        info.item(),
        sign.item(),
        size.item(),
        norm.item(),
    )


if __name__ == "__main__":
    main()
