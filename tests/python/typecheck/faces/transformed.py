# SPDX-License-Identifier: Apache-2.0
"""Functions of functions: gradients of each example, Hessians, products with Jacobians, a model as a function."""

from __future__ import annotations

import weft
from weft import func, nn


def energy(x: weft.NDArray) -> weft.NDArray:
    return (x**4).sum() / 4.0


def squares(v: weft.NDArray) -> weft.NDArray:
    return v * v


def main() -> None:
    x = weft.asarray([1.0, 2.0])
    slope: weft.NDArray = func.grad(energy)(x)
    both, value = func.grad_and_value(energy)(x)
    curvature: weft.NDArray = func.hessian(energy)(x)
    out, tangent = func.jvp(energy, (x,), (weft.ones(2),))
    result, pull = func.vjp(energy, x)
    (back,) = pull(weft.asarray(1.0))
    each: weft.NDArray = func.vmap(func.grad(energy))(weft.ones((3, 2)))
    forward: weft.NDArray = func.jacfwd(squares)(x)
    print(
        slope.tolist(), both.tolist(), value.item(), curvature.tolist(), out.item(), tangent.item()
    )
    print(result.item(), back.tolist(), each.shape, forward.tolist())

    model = nn.Linear(2, 1)
    weights = {name: p.data for name, p in model.named_parameters().items()}

    def loss(weights: dict[str, weft.NDArray], x: weft.NDArray) -> weft.NDArray:
        y: weft.NDArray = func.functional_call(model, weights, (x,))
        return (y * y).mean()

    per_example = func.vmap(func.grad(loss), in_axes=(None, 0))(weights, weft.ones((5, 1, 2)))
    print({name: g.shape for name, g in per_example.items()})


if __name__ == "__main__":
    main()
