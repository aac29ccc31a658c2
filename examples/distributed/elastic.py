# SPDX-License-Identifier: Apache-2.0
"""Training that survives the death of a rank: torchrun --nproc-per-node 2 --max-restarts 3 examples/distributed/elastic.py FOLDER [steps] [die]

A checkpoint is written every fifth step. When a rank dies, torchrun ends the others and starts all again; they go on from the last checkpoint. With `die`, rank
1 is killed (SIGKILL) before that step of the first attempt.
"""

import os
import signal
import sys

import numpy as np

import weft
from weft import distributed as dist
from weft import nn, optim


def main(folder, steps=20, die=None):
    dist.init(timeout=20)  # a rank that cannot join is started again, too
    device, attempt = dist.device(), int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))
    weft.random.seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)).to(device)
    model = dist.ShardedParallel(model, stage=3, resident_bytes=0)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    begin = 0
    if os.path.exists(os.path.join(folder, "index.json")):
        begin = model.load(folder, optimizer)["step"]
        if dist.rank() == 0:
            print(f"attempt {attempt} goes on at step {begin}", flush=True)
    total = None  # of the last step, where one is left to do
    for step in range(begin, steps):
        if die == step and attempt == 0 and dist.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        x = np.random.default_rng([step, dist.rank()]).standard_normal((16, 64)).astype("float32")
        x = weft.Tensor(weft.asarray(x).to(device), requires_grad=False)
        loss = ((model(x) - x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total = float(dist.all_reduce(loss.detach(), "mean").item())
        if (step + 1) % 5 == 0:
            model.save(folder, optimizer, {"step": step + 1})
    if dist.rank() == 0:
        what = "all was done before" if total is None else f"loss {total:.6f}"
        print(f"attempt {attempt}: step {max(begin, steps)}, {what}", flush=True)
    return total


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:4]))
