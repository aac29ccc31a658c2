# SPDX-License-Identifier: Apache-2.0
"""Two networks learn on synthetic images: an MLP of weft.nn and needle's ResNet-9, on every device that trains.

Both start from the same numbers on each device; the last losses must agree. The curves are drawn as pictures.
"""

import contextlib
import io
import pathlib
import sys
import time

import numpy as np
import weft
from weft import nn, optim


def images(count, shape, classes=10, noise=0.5, seed=7):
    """`classes` random patterns with noise, and their labels, as NumPy arrays."""
    data = weft.data.synthetic_images(count, classes=classes, shape=shape, noise=noise, seed=seed)
    return data.arrays[0].numpy(), data.arrays[1].numpy()


def train_mlp(device, steps, batch=64):
    """Losses of an MLP with Adam."""
    x, y = images(512, (3, 8, 8), noise=4.0)
    weft.random.seed(5)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(192, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
    ).to(device)
    opt = optim.Adam(model.parameters(), lr=0.002)
    inputs, labels = weft.asarray(x).to(device), weft.asarray(y).to(device)
    losses = []
    for step in range(steps):
        at = step * batch % 512
        opt.zero_grad()
        picked = weft.Tensor(inputs[at : at + batch], requires_grad=False)
        loss = nn.functional.cross_entropy(model(picked), labels[at : at + batch])
        loss.backward()
        opt.step()
        losses.append(float(loss.item()))
    return losses


def train_resnet(device, steps, batch=16):
    """Losses of needle's ResNet-9 (431,946 parameters, 32 x 32 images) with Adam."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "compat" / "needle"))
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # it says hello
            import needle as ndl
        from apps.models import ResNet9
    finally:
        sys.path.pop(0)
    where = {"cpu": ndl.cpu, "cuda:0": ndl.cuda}[device.name]()
    x, y = images(16 * batch, (3, 32, 32), classes=10, noise=2.0)
    np.random.seed(0)  # needle draws its weights from NumPy's generator
    model = ResNet9(device=where)
    model.train()
    opt = ndl.optim.Adam(model.parameters(), lr=0.002)
    loss_of = ndl.nn.SoftmaxLoss()
    losses = []
    for step in range(steps):
        at = step % 16 * batch
        opt.reset_grad()
        logits = model(ndl.Tensor(x[at : at + batch], device=where))
        loss = loss_of(logits, ndl.Tensor(y[at : at + batch], device=where))
        loss.backward()
        opt.step()
        losses.append(float(loss.numpy().item()))
    return losses


PROGRAMS = (  # title, function, steps, steps when quick, largest last loss
    ("MLP on 8 x 8 images", train_mlp, 80, 40, 0.35),
    ("needle's ResNet-9 on 32 x 32 images", train_resnet, 40, 24, 0.4),
)
AGREE = 0.02  # last losses on two devices, relative: sums are taken in another order


def demo(quick=False, progress=lambda text: None, output="out"):
    devices = [d for d in (weft.device("cpu"), weft.device("cuda:0")) if d.available]
    for title, train, whole, short, limit in PROGRAMS:
        steps, series = (short if quick else whole), {}
        for device in devices:
            progress(f"{title} on {device.name}")
            started = time.perf_counter()
            losses = train(device, steps)
            seconds = (time.perf_counter() - started) / steps
            # 2.30 is guessing among ten classes; a net that does not learn stays there.
            last = float(np.mean(losses[-4:]))
            series[device.name] = np.asarray(losses)
            yield {
                "program": f"{title}, {steps} steps",
                "device": device.name,
                "seconds": seconds,
                "rate": 0,
                "unit": "",
                "limit": limit * (2 if quick else 1),
                "loss": last,
                "note": f"loss {losses[0]:.3f} to {last:.4f}, at most {limit * (2 if quick else 1):g} allowed",
            }
        first = series["cpu"]
        for name, losses in list(series.items())[1:]:
            yield {
                "program": f"{title}: {name} against cpu",
                "device": name,
                "seconds": 0,
                "rate": 0,
                "unit": "",
                "got": losses[:8],
                "wanted": first[:8],
                "limit": AGREE,
                "note": "the first eight losses",
            }
        yield {
            "chart": "lines",
            "title": f"{title}: loss by step",
            "series": {name: losses.tolist() for name, losses in series.items()},
            "x": "steps",
            "y": "loss",
            "log": True,
        }
