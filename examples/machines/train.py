# SPDX-License-Identifier: Apache-2.0
"""A classifier learns on a simulated machine and, beside it, on the host: the losses agree.

python examples/machines/train.py [qpu | wse:16x16] [mlp | convolution] [STEPS]
"""

import sys
import time

import numpy as np
import weft
from weft import nn, optim


def network(kind, inputs=784, hidden=128, classes=10, size=8):
    """(the network, the shape of one example): inputs-hidden-classes, or a convolution, a pool and a linear layer."""
    if kind == "mlp":
        layers = nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, classes)
        return nn.Sequential(*layers), (inputs,)
    flat = 4 * (size // 2) ** 2
    layers = (
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(flat, classes),
    )
    return nn.Sequential(*layers), (1, size, size)


def train(device, kind="mlp", batch=32, steps=3, rate=0.1, optimizer="SGD", **sizes):
    """[(loss, seconds of this process)] of each step on `device`. The same numbers everywhere: weights are drawn on the
    host."""
    weft.random.seed(0)
    with weft.use("cpu"):
        net, shape = network(kind, **sizes)
    net = net.to(device)
    rng = np.random.default_rng(0)
    examples = rng.standard_normal((batch, *shape)).astype(np.float32)
    labels = rng.integers(0, 10, batch)
    out = []
    with weft.use(device):
        x, y = (weft.asarray(v, device=device) for v in (examples, labels))
        steps_of = getattr(optim, optimizer)(net.parameters(), lr=rate)
        loss_of = nn.CrossEntropyLoss()
        for _ in range(steps):
            start = time.process_time()
            steps_of.zero_grad()
            loss = loss_of(net(weft.Tensor(x)), y)
            loss.backward()
            steps_of.step()
            out.append((float(loss.numpy()), time.process_time() - start))
    return out


def main(device="qpu", kind="mlp", steps="3"):
    host = train("cpu", kind, steps=int(steps))
    there = train(device, kind, steps=int(steps))
    print(f"{'step':>4} {'loss on cpu':>12} {'on ' + device:>12} {'processor seconds':>18}")
    for step, ((want, _), (got, seconds)) in enumerate(zip(host, there)):
        print(f"{step:4} {want:12.5f} {got:12.5f} {seconds:18.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
