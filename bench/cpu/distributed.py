# SPDX-License-Identifier: Apache-2.0
"""A data parallel MLP step of ranks on one host, weft under MPI beside PyTorch with Gloo; each under its own launcher.

    mpirun -n 2 python bench/cpu/distributed.py weft
    torchrun --nproc-per-node 2 bench/cpu/distributed.py torch

784-1024-1024-10, 64 images a rank, float32, SGD; one thread a rank. Prints the median and the least of 60 steps, and the median of the processor's time of rank
0's process, which other work on the machine changes less.
"""

import statistics
import sys
import time

import numpy as np

SHAPE, BATCH, STEPS = (784, 1024, 1024, 10), 64, 60


def weft_step():
    import weft
    from weft import distributed as dist
    from weft import nn, optim

    dist.init()
    weft.set_threads(1)
    layers = []
    for i, o in zip(SHAPE, SHAPE[1:]):
        layers += [nn.Linear(i, o), nn.ReLU()]
    model = dist.DataParallel(nn.Sequential(*layers[:-1]))
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    rng = np.random.default_rng(dist.rank())
    x = weft.Tensor(rng.standard_normal((BATCH, SHAPE[0])).astype("float32"), requires_grad=False)
    y = weft.asarray(rng.integers(0, 10, BATCH))

    def step():
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        return model.parameters()[-1].data.numpy()

    return step, dist.rank(), dist.size()


def torch_step():
    import torch
    import torch.distributed as td
    from torch import nn

    td.init_process_group("gloo")
    torch.set_num_threads(1)
    layers = []
    for i, o in zip(SHAPE, SHAPE[1:]):
        layers += [nn.Linear(i, o), nn.ReLU()]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers[:-1]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rng = np.random.default_rng(td.get_rank())
    x = torch.from_numpy(rng.standard_normal((BATCH, SHAPE[0])).astype("float32"))
    y = torch.from_numpy(rng.integers(0, 10, BATCH))

    def step():
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step, td.get_rank(), td.get_world_size()


def main(side):
    step, rank, size = weft_step() if side == "weft" else torch_step()
    for _ in range(5):
        step()
    times, busy = [], []
    for _ in range(STEPS):
        start, used = time.perf_counter(), time.process_time()
        step()
        times.append(time.perf_counter() - start)
        busy.append(time.process_time() - used)
    if rank == 0:
        median = statistics.median
        print(
            f"{side:5s} {size} ranks: median {median(times) * 1e3:.2f} ms, least {min(times) * 1e3:.2f} ms, processor {median(busy) * 1e3:.2f} ms"
        )


if __name__ == "__main__":
    main(sys.argv[1])
