# SPDX-License-Identifier: Apache-2.0
"""Data parallel training: mpirun -n 2 python examples/distributed/data_parallel.py [steps] (or torchrun, srun; alone too)

Each rank trains on its part of the batch; the losses printed are those of the whole batch.
"""

import sys

import numpy as np

import weft
from weft import distributed as dist
from weft import nn, optim


def main(steps=20):
    dist.init()
    device = dist.device()
    weft.random.seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
    model = dist.DataParallel(model)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(1)
    answers = rng.standard_normal((64, 10))
    losses = []
    for step in range(steps):
        x = rng.standard_normal((64 * dist.size(), 64)).astype("float32")
        y = (x @ answers).argmax(1)
        rows = slice(64 * dist.rank(), 64 * (dist.rank() + 1))
        tensor = weft.Tensor(weft.asarray(x[rows]).to(device), requires_grad=False)
        loss = nn.functional.cross_entropy(model(tensor), weft.asarray(y[rows]).to(device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(dist.all_reduce(loss.detach(), "mean").item()))
        if dist.rank() == 0 and step % 5 == 0:
            print(f"step {step:3d}  loss {losses[-1]:.4f}  on {dist.size()} x {device.name}")
    return losses


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
