# SPDX-License-Identifier: Apache-2.0
"""Parameters shared out among the ranks, with checkpoints: mpirun -n 2 python examples/distributed/sharded.py FOLDER [steps]

Run it again, with another number of ranks if you like: it goes on from the last checkpoint in FOLDER.
"""

import os
import sys

import numpy as np

import weft
from weft import distributed as dist
from weft import nn, optim


def main(folder, steps=10):
    dist.init()
    device = dist.device()
    weft.random.seed(0)
    layers = [nn.Linear(128, 128) for _ in range(4)]
    model = dist.ShardedParallel(nn.Sequential(*layers).to(device), stage=3)
    optimizer = optim.SGD(model.parameters(), lr=0.05)
    begin = 0
    if os.path.exists(os.path.join(folder, "index.json")):
        begin = model.load(folder, optimizer)["step"]
    losses = []
    for step in range(begin, begin + steps):
        rng = np.random.default_rng(step)
        x = rng.standard_normal((16 * dist.size(), 128)).astype("float32")
        rows = slice(16 * dist.rank(), 16 * (dist.rank() + 1))
        out = model(weft.Tensor(weft.asarray(x[rows]).to(device), requires_grad=False))
        loss = (
            (out - weft.Tensor(weft.asarray(x[rows]).to(device), requires_grad=False)) ** 2
        ).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(dist.all_reduce(loss.detach(), "mean").item()))
    held = sum(p.data.nbytes for p in model.parameters())
    if dist.rank() == 0:
        print(
            f"steps {begin} to {begin + steps}: loss {losses[0]:.4f} to {losses[-1]:.4f}; {held} bytes of parameters on a rank"
        )
    model.save(folder, optimizer, {"step": begin + steps})
    return losses


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]))
