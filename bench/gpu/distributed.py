# SPDX-License-Identifier: Apache-2.0
"""Collectives and parallel training on the cards of one host beside torch.distributed in the same processes.

    PYTHONPATH=python torchrun --nproc-per-node 2 bench/gpu/distributed.py [--quick]

Both sides use NCCL, each its own communicator; samples are taken in turns, each of many calls and one synchronisation. Weak scaling: the time of a step on
one card (the other idle) over the time on all, with the same batch on each card; the rival is DistributedDataParallel.
"""

import os
import statistics
import sys
import time

import numpy as np
import torch
import torch.distributed as td

import weft
from weft import distributed as dist
from weft import nn, optim

QUICK = "--quick" in sys.argv


def timed(f, sync, number):
    sync()
    td.barrier()
    start = time.perf_counter()
    for _ in range(number):
        f()
    sync()
    return (time.perf_counter() - start) / number


def beside(name, ours, rival, sync, bytes_moved, number):
    for f in (ours, rival):
        timed(f, sync, 2)
    times = {"weft": [], "torch": []}
    for _ in range(5):
        times["weft"].append(timed(ours, sync, number))
        times["torch"].append(timed(rival, sync, number))
    a, b = (statistics.median(t) for t in times.values())
    if dist.rank() == 0:
        print(
            f"{name:28s} {a * 1e6:9.1f} us {bytes_moved / a / 1e9:7.1f} GB/s  torch {b * 1e6:9.1f}  ratio {b / a:.3f}",
            flush=True,
        )


def collectives(group, sync):
    n, device = dist.size(), dist.device()
    for kib in (4, 1 << 10, 16 << 10, 256 << 10, *(() if QUICK else (1 << 20,))):
        count = kib * 256
        t = torch.randn(count, device="cuda")
        x = weft.asarray(t.cpu().numpy()).to(device)
        want = t.clone()
        td.all_reduce(want, group=group)
        got = dist.all_reduce(x)
        np.testing.assert_allclose(
            got[:4096].numpy() if count > 4096 else got.numpy(),
            want[:4096].cpu().numpy(),
            rtol=1e-5,
        )
        number = 200 if kib <= 16 << 10 else 20
        beside(
            f"all_reduce {kib} KiB",
            lambda: dist.all_reduce(x),
            lambda: td.all_reduce(t, group=group),
            sync,
            count * 4,
            number,
        )
        if kib != 256 << 10:
            continue
        whole = torch.empty(count * n, device="cuda")
        beside(
            "all_gather 256 MiB a rank",
            lambda: dist.all_gather(x),
            lambda: td.all_gather_into_tensor(whole, t, group=group),
            sync,
            count * 4 * (n - 1),
            number,
        )
        part = torch.empty(count // n, device="cuda")
        beside("reduce_scatter 256 MiB", lambda: dist.reduce_scatter(x),
               lambda: td.reduce_scatter_tensor(part, t, group=group), sync, count * 4 * (n - 1) // n, number)  # fmt: skip
        big = torch.empty(count, device="cuda")
        beside("all_to_all 256 MiB", lambda: dist.all_to_all(x), lambda: td.all_to_all_single(big, t, group=group), sync,
               count * 4 * (n - 1) // n, number)  # fmt: skip


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.width = width

    def forward(self, x):
        b, t, c = x.shape
        y = self.qkv(self.one(x)).reshape((b, t, 3, c // 64, 64)).permute((2, 0, 3, 1, 4))
        y = nn.functional.scaled_dot_product_attention(y[0], y[1], y[2], is_causal=True)
        x = x + self.out(y.permute((0, 2, 1, 3)).reshape((b, t, c)))
        return x + self.down(nn.functional.relu(self.up(self.two(x))))


def blocks(width, depth):
    weft.random.seed(0)
    return nn.Sequential(*[Block(width) for _ in range(depth)])


class TorchBlock(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one, self.two = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        y = self.qkv(self.one(x)).reshape(b, t, 3, c // 64, 64).permute(2, 0, 3, 1, 4)
        y = torch.nn.functional.scaled_dot_product_attention(y[0], y[1], y[2], is_causal=True)
        x = x + self.out(y.permute(0, 2, 1, 3).reshape(b, t, c))
        return x + self.down(torch.relu(self.up(self.two(x))))


def stepper(model, optimizer, x):
    def step():
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def alone(f, sync, number):
    """Seconds on rank 0 while the others wait."""
    out = 0.0
    td.barrier()
    if dist.rank() == 0:
        for _ in range(3):
            f()
        sync()
        start = time.perf_counter()
        for _ in range(number):
            f()
        sync()
        out = (time.perf_counter() - start) / number
    td.barrier()
    return out


def together(f, sync, number):
    timed(f, sync, 3)
    return statistics.median(timed(f, sync, number) for _ in range(3))


def training(group, sync):
    width, depth, batch, length = 768, 4 if QUICK else 12, 8, 512
    device, number = dist.device(), 5
    array = (
        np.random.default_rng(dist.rank()).standard_normal((batch, length, width)).astype("float32")
    )
    x = weft.Tensor(weft.asarray(array).to(device), requires_grad=False)
    single = blocks(width, depth).to(device)
    one = alone(stepper(single, optim.SGD(single.parameters(), lr=1e-4), x), sync, number)
    shared = dist.DataParallel(blocks(width, depth).to(device))
    many = together(stepper(shared, optim.SGD(shared.parameters(), lr=1e-4), x), sync, number)
    t = torch.from_numpy(array).cuda()
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[TorchBlock(width) for _ in range(depth)]).cuda()
    torch_one = alone(stepper(model, torch.optim.SGD(model.parameters(), lr=1e-4), t), sync, number)
    ddp = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
    torch_many = together(stepper(ddp, torch.optim.SGD(ddp.parameters(), lr=1e-4), t), sync, number)
    if dist.rank() == 0:
        n = dist.size()
        print(f"{depth} blocks of {width}, {batch} x {length} a card: one card {one * 1e3:.1f} ms, {n} cards {many * 1e3:.1f} ms, "
              f"factor {n * one / many:.3f}; DDP {torch_one * 1e3:.1f}, {torch_many * 1e3:.1f}, factor {n * torch_one / torch_many:.3f}",
              flush=True)  # fmt: skip


def memory():
    """Bytes that parameters, gradients and Adam's states hold on this rank after a step."""
    device = dist.device()
    x = weft.Tensor(weft.asarray(np.ones((1, 64, 1024), "float32")).to(device), requires_grad=False)

    def peak(make):
        before = device.stats()["bytes.live"]
        model = make(blocks(1024, 8).to(device))
        optimizer = optim.Adam(model.parameters(), lr=1e-4)
        for _ in range(2):
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        device.synchronize()
        return device.stats()["bytes.live"] - before

    whole = peak(lambda m: m)
    parts = {
        stage: peak(lambda m, s=stage: dist.ShardedParallel(m, stage=s)) for stage in (1, 2, 3)
    }
    if dist.rank() == 0:
        text = ", ".join(f"stage {s} {b / whole:.2f}" for s, b in parts.items())
        print(f"held after a step, of one card's {whole >> 20} MiB: {text}", flush=True)


def main():
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    torch.backends.cuda.matmul.allow_tf32 = False
    dist.init()
    group = td.new_group(backend="nccl")
    device = dist.device()

    def sync():
        device.synchronize()
        torch.cuda.synchronize()

    collectives(group, sync)
    training(group, sync)
    memory()


if __name__ == "__main__":
    main()
