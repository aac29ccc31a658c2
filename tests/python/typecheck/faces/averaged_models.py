# SPDX-License-Identifier: Apache-2.0
"""Stochastic weight averaging: an averaged model, its own rate, batch norms brought up to date."""

from __future__ import annotations

import weft
from weft import nn, optim
from weft.data import DataLoader, TensorDataset
from weft.optim import lr_scheduler
from weft.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn


def main() -> None:
    weft.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    averaged = AveragedModel(model)
    smooth = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    cosine = lr_scheduler.CosineAnnealingLR(optimizer, 4)
    late = SWALR(optimizer, swa_lr=0.05, anneal_epochs=2, anneal_strategy="linear")
    x = weft.random.normal((32, 3))
    loader = DataLoader(TensorDataset(x, x.sum(axis=1, keepdims=True)), batch_size=8)
    for epoch in range(8):
        for inputs, wanted in loader:
            optimizer.zero_grad()
            loss: weft.Tensor = nn.functional.mse_loss(model(inputs), wanted)
            loss.backward()
            optimizer.step()
        smooth.update_parameters(model)
        if epoch < 4:
            cosine.step()
        else:
            averaged.update_parameters(model)
            late.step()
    update_bn(loader, averaged)
    count: int = averaged.n_averaged
    rates: list[float] = late.get_last_lr()
    again = AveragedModel(model)
    again.load_state_dict(averaged.state_dict())
    guess: weft.Tensor = again.eval()(x)
    print(count, rates, guess.shape, smooth.n_averaged, len(again.parameters()))


if __name__ == "__main__":
    main()
