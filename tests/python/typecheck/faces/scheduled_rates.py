# SPDX-License-Identifier: Apache-2.0
"""Learning rates over time, groups with rates of their own, a closure, clipped gradients."""

from __future__ import annotations

import weft
from weft import nn, optim
from weft.optim import lr_scheduler


def rates(
    optimizer: optim.Optimizer, schedule: lr_scheduler.LRScheduler, steps: int
) -> list[float]:
    out: list[float] = []
    for _ in range(steps):
        optimizer.step()
        schedule.step()
        out += schedule.get_last_lr()
    return out


def main() -> None:
    weft.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = optim.AdamW(
        [{"params": model[0].parameters(), "lr": 0.02}, {"params": model[2].parameters()}],
        lr=0.01,
        weight_decay=0.1,
    )
    x = weft.Tensor(weft.ones((8, 2)), requires_grad=False)
    model(x).sum().backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    warm = lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=2)
    print(rates(optimizer, warm, 3), float(norm) > 0)
    plateau = lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    for _ in range(4):
        plateau.step(1.0)
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)

    def closure() -> weft.Tensor:
        optimizer.zero_grad()
        loss: weft.Tensor = (model(x) ** 2).mean()
        loss.backward()
        return loss

    print(optimizer.param_groups[0]["lr"], optimizer.step(closure))


if __name__ == "__main__":
    main()
