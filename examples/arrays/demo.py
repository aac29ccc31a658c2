# SPDX-License-Identifier: Apache-2.0
"""An MLP learns to tell two spirals apart; its loss curve as a picture."""

import time

import numpy as np
import weft
from weft import nn, optim


def spirals(count, rng):
    t = rng.random(count) * 3 + 0.3
    label = rng.integers(0, 2, count)
    angle = t * 2.2 + label * np.pi
    points = np.stack([t * np.cos(angle), t * np.sin(angle)], 1) + rng.normal(0, 0.03, (count, 2))
    return points.astype("float32"), label.astype("int32")


def curve(losses, width=420, height=160):
    """The losses as an SVG line."""
    top = max(losses)
    points = " ".join(
        f"{10 + i * (width - 20) / (len(losses) - 1):.1f},{height - 10 - v / top * (height - 20):.1f}"
        for i, v in enumerate(losses)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"><rect width="100%" height="100%" fill="#fafafa"/>'
        f'<polyline fill="none" stroke="#06c" stroke-width="2" points="{points}"/></svg>'
    )


def demo(quick=False, progress=lambda text: None):
    rng = np.random.default_rng(5)
    x, y = spirals(1000, rng)
    weft.random.seed(5)
    model = nn.Sequential(
        nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
    )
    opt = optim.Adam(model.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()
    inputs, labels = weft.Tensor(weft.asarray(x), requires_grad=False), weft.asarray(y)
    losses, started = [], time.perf_counter()
    steps = 60 if quick else 200
    for step in range(steps):
        opt.zero_grad()
        loss = loss_of(model(inputs), labels)
        loss.backward()
        opt.step()
        losses.append(float(loss.numpy()))
        progress(f"step {step + 1} of {steps}, loss {losses[-1]:.4f}")
    seconds = (time.perf_counter() - started) / steps
    # 0.69 is guessing; a net that does not learn stays there.
    yield dict(
        program=f"MLP, {steps} Adam steps",
        device="cpu",
        seconds=seconds,
        rate=0,
        unit="",
        error=losses[-1],
        limit=0.35 if quick else 0.1,
        note=f"loss {losses[0]:.3f} to {losses[-1]:.3f}; the error column is the loss",
    )
    yield ("MLP on two spirals: loss by step", curve(losses))
