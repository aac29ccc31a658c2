# SPDX-License-Identifier: Apache-2.0
"""An operation with a gradient of its own, checked against differences; gradients without .grad."""

from __future__ import annotations

import weft
from weft import autograd


class Cube(autograd.Function):
    @staticmethod
    def forward(ctx: autograd.Context, x: weft.Tensor) -> weft.Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: autograd.Context, grad: weft.Tensor) -> weft.Tensor:
        x: weft.Tensor = ctx.saved_tensors[0]
        return grad * 3.0 * x * x


def wrong(x: weft.Tensor) -> weft.Tensor:
    return x.detach() * x


def cube(x: weft.Tensor) -> weft.Tensor:
    y: weft.Tensor = Cube.apply(x)
    return y


@autograd.no_grad()
def shifted(x: weft.Tensor) -> weft.Tensor:
    return x + 1.0


def main() -> None:
    x = weft.tensor([1.0, 2.0, 3.0], dtype="float64", requires_grad=True)
    right: bool = autograd.gradcheck(cube, (x,))
    twice: bool = autograd.gradgradcheck(cube, (x,))
    (slope,) = autograd.grad(cube(x).sum(), [x], create_graph=True)
    (bend,) = autograd.grad(slope.sum(), x)
    matrix = autograd.functional.jacobian(cube, x)
    autograd.backward([cube(x).sum()])
    with autograd.detect_anomaly():
        print(right, twice, slope.tolist(), bend.tolist(), matrix.shape, x.grad)
    with weft.no_grad():
        print(cube(x).requires_grad or "no graph", shifted(x).tolist())
    try:
        autograd.gradcheck(wrong, (x,))
    except autograd.GradcheckError as found:
        print(found.code)


if __name__ == "__main__":
    main()
