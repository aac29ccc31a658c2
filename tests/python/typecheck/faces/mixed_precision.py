# SPDX-License-Identifier: Apache-2.0
"""Trains in bfloat16 under autocast with a scaled loss, as a PyTorch program would."""

from __future__ import annotations

import weft
from weft import amp, nn, optim


def step(
    model: nn.Module, optimizer: optim.Optimizer, scaler: amp.GradScaler, x: weft.Tensor
) -> float:
    optimizer.zero_grad()
    with weft.autocast("cpu", dtype=weft.bfloat16):
        loss = (model(x) ** 2).mean()
    scaled: weft.Tensor = scaler.scale(loss)
    scaled.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return float(loss)


@weft.autocast("cpu", dtype=weft.bfloat16)
def product(a: weft.NDArray, b: weft.NDArray) -> weft.NDArray:
    return a @ b


def main() -> None:
    weft.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    scaler = amp.GradScaler("cpu", init_scale=8.0, growth_interval=100)
    x = weft.Tensor(weft.random.normal((16, 4)), requires_grad=False)
    losses = [step(model, optimizer, scaler, x) for _ in range(10)]
    state = scaler.state_dict()
    again = amp.GradScaler("cpu")
    again.load_state_dict(state)
    scale: float = again.get_scale()
    good: int = again.get_growth_interval()
    print(losses[-1] < losses[0], scale == 8.0, good, not weft.is_autocast_enabled("cpu"))
    print(product(weft.ones((2, 3)), weft.ones((3, 2))).dtype)


if __name__ == "__main__":
    main()
