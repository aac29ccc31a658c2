# SPDX-License-Identifier: Apache-2.0
"""One transformer block over all ranks: mpirun -n 2 python examples/distributed/tensor_parallel.py

Heads and hidden channels are shared out; the result is compared with the whole block on this rank.
"""

import numpy as np

import weft
from weft import distributed as dist
from weft import nn


def main(channels=64, heads=8):
    dist.init()
    device = dist.device()
    weft.random.seed(0)
    attention = [nn.Linear(channels, channels).to(device) for _ in range(4)]
    up, down = (
        nn.Linear(channels, 4 * channels).to(device),
        nn.Linear(4 * channels, channels).to(device),
    )
    shared = dist.ParallelAttention(*attention, heads=heads)
    wide, narrow = dist.ColumnParallelLinear(up), dist.RowParallelLinear(down)
    alone = dist.ParallelAttention(
        *attention, heads=heads, group=dist.Group(dist.group.job(), [dist.rank()], None)
    )
    x = np.random.default_rng(0).standard_normal((2, 32, channels)).astype("float32")
    x = weft.Tensor(weft.asarray(x).to(device), requires_grad=False)
    y = x + shared(x)
    y = y + narrow(nn.functional.relu(wide(y)))
    z = x + alone(x)
    z = z + down(nn.functional.relu(up(z)))
    error = float(np.abs(y.numpy() - z.numpy()).max())
    if dist.rank() == 0:
        print(f"{dist.size()} ranks, {shared.heads} heads each: largest difference {error:.1e}")
    return error


if __name__ == "__main__":
    raise SystemExit(main() > 1e-4)
