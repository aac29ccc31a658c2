# SPDX-License-Identifier: Apache-2.0
"""weft beside PyTorch: operators on other devices, torch.compile, weights across."""

from __future__ import annotations

import numpy as np
import torch
import weft
import weft.torch as wt


class Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(width, 2 * width), torch.nn.GELU(), torch.nn.Linear(2 * width, width)
        )
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.norm(x + self.layers(x))
        return result


def on_devices(a: torch.Tensor, b: torch.Tensor) -> dict[str, float]:
    worst: dict[str, float] = {}
    for name in ("cpu", "qpu", "wse:4x4"):
        difference = wt.matmul(a, b, device=name) - a @ b
        worst[name] = float(difference.abs().max())
    return worst


def gradient(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    total = wt.matmul(x, w, device="qpu").square().sum()
    (result,) = torch.autograd.grad(total, (w,))
    return result


def weights_across(theirs: torch.nn.Sequential, x: torch.Tensor) -> bool:
    ours = weft.nn.Sequential(weft.nn.Linear(7, 16), weft.nn.GELU(), weft.nn.Linear(16, 3))
    wt.load_state_dict(ours, theirs)
    result = wt.to_torch(ours(weft.Tensor(x.numpy())).data)
    return bool(torch.allclose(result, theirs(x).detach(), rtol=1e-5, atol=1e-5))


def shared_memory() -> float:
    t = torch.zeros(4)
    view: weft.NDArray = wt.from_torch(t)
    view[1] = 7.0
    return float(t[1])


def main() -> None:
    a, b = torch.randn(5, 7), torch.randn(7, 3)
    print(max(on_devices(a, b).values()) < 1e-4)
    x, w = torch.randn(4, 5), torch.randn(5, 5, requires_grad=True)
    print(tuple(gradient(x, w).shape), shared_memory())
    model = Block(7)
    text = str(wt.explain(model, a))
    print(len(text) > 0)
    fast = torch.compile(model, backend="weft")
    print(np.allclose(fast(a).detach().numpy(), model(a).detach().numpy(), atol=1e-5))
    print(
        weights_across(
            torch.nn.Sequential(torch.nn.Linear(7, 16), torch.nn.GELU(), torch.nn.Linear(16, 3)), a
        )
    )


if __name__ == "__main__":
    main()
