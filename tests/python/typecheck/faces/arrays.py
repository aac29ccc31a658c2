# SPDX-License-Identifier: Apache-2.0
"""Trains a small network on synthetic data and saves it."""

from __future__ import annotations

import pathlib

import numpy as np
import numpy.typing as npt
import weft
from weft import nn, optim
from weft.data import DataLoader, TensorDataset


def make_data(count: int, seed: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    x = generator.random((count, 2), dtype=np.float32) * 2 - 1
    return x, (x[:, 0] * x[:, 1] > 0).astype(np.int64)


class Net(nn.Module):
    def __init__(self, hidden: int = 32) -> None:
        super().__init__()
        self.first = nn.Linear(2, hidden)
        self.second = nn.Linear(hidden, 2)

    def forward(self, x: weft.Tensor) -> weft.Tensor:
        return self.second(weft.tanh(self.first(x)))


def accuracy(model: nn.Module, x: weft.Tensor, y: weft.Tensor) -> float:
    with weft.no_grad():
        guess = weft.argmax(model(x), axis=1)
    return float((guess == y).numpy().mean())


def train(model: nn.Module, epochs: int = 20) -> list[float]:
    x, y = make_data(512, 0)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    schedule = optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.5)
    losses: list[float] = []
    for _ in range(epochs):
        for xs, ys in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(xs), ys)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
    return losses


def doubled(y: weft.NDArray) -> weft.NDArray:
    return y * 2.0


def mixed(model: weft.nn.Module, x: weft.Tensor) -> float:
    """Autocast, its scaler, and what stands beside models."""
    from weft import amp, cuda, data, func, polynomial
    from weft.optim import swa_utils

    scaler = amp.GradScaler(init_scale=8.0)
    with weft.autocast("cpu", dtype=weft.bfloat16):
        loss = model(x).sum()
    scaler.scale(loss).backward()
    count: int = cuda.device_count()
    for batch in data.DataLoader(data.ArrayDataset(weft.ones((4, 2))), batch_size=2, num_workers=2):
        print(batch, count)
    line = polynomial.Polynomial.fit(weft.ones(3), weft.ones(3), 1)
    steeper: polynomial.Polynomial = line.deriv() * 2
    path, text = weft.einsum_path("ij,jk->ik", weft.ones((2, 2)), weft.ones((2, 2)))
    print(steeper, path, text, func.grad_and_value(doubled), swa_utils.AveragedModel(model))
    return scaler.get_scale()


def main() -> None:
    weft.manual_seed(0)
    model = Net()
    losses = train(model)
    x, y = make_data(128, 1)
    print(
        len(losses), losses[-1] < losses[0], accuracy(model, weft.Tensor(x), weft.Tensor(y)) > 0.8
    )

    def square(v: weft.NDArray) -> weft.NDArray:
        return (v * v).sum()

    f = weft.grad(square)
    print(f(weft.asarray([1.0, 2.0])).tolist())
    path = pathlib.Path("net.npz")
    weft.save(model.state_dict(), path)
    model.load_state_dict(weft.load(path))
    path.unlink()


if __name__ == "__main__":
    main()
