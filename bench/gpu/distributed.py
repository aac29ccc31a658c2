# SPDX-License-Identifier: Apache-2.0
"""Collectives and parallel training on the cards of one host beside torch.distributed in the same processes.

    PYTHONPATH=python torchrun --nproc-per-node 2 bench/gpu/distributed.py [collectives|gpt|resnet50]... [--quick] [--buckets=25,100]
    PYTHONPATH=python torchrun --nproc-per-node 2 bench/gpu/distributed.py memory-whole|memory-1|memory-2|memory-3|memory-equal

Both sides use NCCL, each its own communicator; samples are taken in turns, each of many calls and one synchronisation. Weak scaling: the time of a step on
one card (the other idle) over the time on all, with the same batch on each card; the rival is DistributedDataParallel. --buckets: data parallel
training with buckets of so many MiB, one after another, beside the default.
"""

import os
import pathlib
import statistics
import sys
import time

import numpy as np
import torch
import torch.distributed as td

import weft
from weft import distributed as dist
from weft import nn, optim

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from recording import Record

QUICK = "--quick" in sys.argv
BUCKETS = [int(m) << 20 for a in sys.argv if a.startswith("--buckets=") for m in a[10:].split(",")]


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
    for _ in range(9):
        times["weft"].append(timed(ours, sync, number))
        times["torch"].append(timed(rival, sync, number))
    a, b = (statistics.median(t) for t in times.values())
    if dist.rank() == 0:
        print(
            f"{name:28s} {a * 1e6:9.1f} us {bytes_moved / a / 1e9:7.1f} GB/s  torch {b * 1e6:9.1f}  ratio {b / a:.3f}",
            flush=True,
        )
        record.row("collectives", name, a, {"torch.distributed": b}, gigabytes_a_second=round(bytes_moved / a / 1e9, 1))  # fmt: skip


def collectives(group, sync):
    n, device = dist.size(), dist.device()
    for kib in (4, 64, 1 << 10, 16 << 10, 256 << 10, *(() if QUICK else (1 << 20,))):
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


def scaling(name, group, sync, make, rival, array):
    """Weak scaling of SGD steps: n times the time alone over the time together, beside DistributedDataParallel's."""
    device, number = dist.device(), 5
    x = weft.Tensor(weft.asarray(array).to(device), requires_grad=False)
    begun = time.perf_counter()
    single = make().to(device)
    one = alone(stepper(single, optim.SGD(single.parameters(), lr=1e-4), x), sync, number)
    first = time.perf_counter() - begun
    ours = []
    for size in (None, *BUCKETS):
        shared = dist.DataParallel(make().to(device), bucket_bytes=size)
        ours.append(stepper(shared, optim.SGD(shared.parameters(), lr=1e-4), x))
    t = torch.from_numpy(array).cuda()
    torch.manual_seed(0)
    model = rival().cuda()
    torch_one = alone(stepper(model, torch.optim.SGD(model.parameters(), lr=1e-4), t), sync, number)
    ddp = torch.nn.parallel.DistributedDataParallel(model, process_group=group)
    theirs = stepper(ddp, torch.optim.SGD(ddp.parameters(), lr=1e-4), t)
    times = {f: [] for f in (*ours, theirs)}
    for f in times:
        timed(f, sync, 3)
    for _ in range(5):
        for f in times:
            times[f].append(timed(f, sync, number))
    many, *sized, torch_many = (statistics.median(t) for t in times.values())
    # Both alone times once more: clocks move while the others run.
    one = min(one, alone(stepper(single, optim.SGD(single.parameters(), lr=1e-4), x), sync, number))
    torch_one = min(
        torch_one,
        alone(stepper(model, torch.optim.SGD(model.parameters(), lr=1e-4), t), sync, number),
    )
    if dist.rank() == 0:
        n = dist.size()
        print(f"{name}: one card {one * 1e3:.2f} ms, {n} cards {many * 1e3:.2f} ms, factor {n * one / many:.3f}; DDP {torch_one * 1e3:.2f}, "
              f"{torch_many * 1e3:.2f}, factor {n * torch_one / torch_many:.3f}  (first steps {first:.0f} s)", flush=True)  # fmt: skip
        # Of a step alone, so that the ratio is that of the factors.
        record.row("weak scaling", name, many / one, {"DDP": torch_many / torch_one}, factor=round(n * one / many, 3))  # fmt: skip
        for size, took in zip(BUCKETS, sized):
            print(f"    buckets of {size >> 20} MiB: {took * 1e3:.2f} ms, factor {n * one / took:.3f}", flush=True)  # fmt: skip


def gpt(group, sync):
    width, depth, batch, length = 768, 4 if QUICK else 12, 8, 512
    rng = np.random.default_rng(dist.rank())
    array = rng.standard_normal((batch, length, width)).astype("float32")
    name = f"{depth} blocks of {width}, {batch} x {length} a card"
    scaling(name, group, sync, lambda: blocks(width, depth),
            lambda: torch.nn.Sequential(*[TorchBlock(width) for _ in range(depth)]), array)  # fmt: skip


class Bottleneck(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        after = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(before, width, 1, 1, 0, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, after, 1, 1, 0, bias=False), nn.BatchNorm2d(after),
        )  # fmt: skip
        self.short = None
        if stride != 1 or before != after:
            layer = nn.Conv2d(before, after, 1, stride, 0, bias=False)
            self.short = nn.Sequential(layer, nn.BatchNorm2d(after))

    def forward(self, x):
        return nn.functional.relu(self.body(x) + (x if self.short is None else self.short(x)))


def resnet50_of_weft():
    weft.random.seed(0)
    stem = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
    layers = [stem, nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(before, width, stride if i == 0 else 1))
            before = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def resnet50(group, sync):
    import torchvision

    side, batch = (64, 8) if QUICK else (224, 32)
    rng = np.random.default_rng(dist.rank())
    array = rng.standard_normal((batch, 3, side, side)).astype("float32")
    scaling(f"ResNet-50, {batch} x {side} x {side} a card", group, sync, resnet50_of_weft, torchvision.models.resnet50, array)  # fmt: skip


def peak(device, make, batch, depth, steps=3):
    """The most bytes that arrays held at once in steps of Adam, above what was held before."""
    before = device.stats()["bytes.live"]
    array = np.random.default_rng(0).standard_normal((batch, 128, 1024)).astype("float32")
    x = weft.Tensor(weft.asarray(array).to(device), requires_grad=False)
    model = make(blocks(1024, depth).to(device))
    optimizer = optim.Adam(model.parameters(), lr=1e-4)
    for _ in range(steps):
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()
    device.synchronize()
    found = device.stats()
    return found["bytes.peak"] - before, found["bytes.live"] - before


def memory(kind):
    """The peak of one kind of training in this process: a peak is of the whole process, so that each kind needs its own."""

    def run(group, sync):
        device, n = dist.device(), dist.size()
        dist.all_reduce(weft.zeros((1,)).to(device))
        stage, batch = {"whole": (0, 8), "equal": (3, 8)}.get(kind, (int(kind[-1]) if kind[-1].isdigit() else 0, 8 // n))  # fmt: skip
        most, held = peak(device, lambda m: dist.ShardedParallel(m, stage=stage) if stage else m, batch, 12)  # fmt: skip
        if dist.rank() == 0:
            text = f"stage {stage} on {n} cards" if stage else "one card"
            print(f"{text:20s} batch of a card {batch}: peak {most / 2**20:8.1f} MiB, held after a step {held / 2**20:8.1f} MiB", flush=True)  # fmt: skip

    return run


def main():
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    dist.init()
    group = td.new_group(backend="nccl")
    global record
    asked = {"collectives": {"least": 0.97}, "weak scaling": {"least": 1.0}}
    record = Record("several cards", "cuda", asked, keep=dist.rank() == 0)
    device = dist.device()

    def sync():
        device.synchronize()
        torch.cuda.synchronize()

    parts = {"collectives": collectives, "gpt": gpt, "resnet50": resnet50}
    for name in [a for a in sys.argv[1:] if not a.startswith("-")] or parts:
        part = memory(name[7:]) if name.startswith("memory-") else parts[name]
        part(group, sync)


if __name__ == "__main__":
    main()
