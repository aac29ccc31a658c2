# SPDX-License-Identifier: Apache-2.0
"""A GPT's training step beside PyTorch eager from equal weights: python3 bench/gpu/gpt.py [--device cuda|cpu] [--small]

50257 tokens, 768 channels, 4 blocks, batches of 8 x 512, float32, SGD; ten losses are compared (relative 1e-3), then steps are timed in turns. The
first step's time, which compiles every kernel, is printed apart.
"""

import statistics
import sys
import time

import numpy as np
import torch

import weft
from weft import nn, optim

SMALL = "--small" in sys.argv
DEVICE = sys.argv[sys.argv.index("--device") + 1] if "--device" in sys.argv else "cuda"
TOKENS, WIDTH, DEPTH, BATCH, LENGTH = (300, 64, 2, 2, 16) if SMALL else (50257, 768, 4, 8, 512)
HEAD = 64 if WIDTH % 128 == 0 else 32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        y = self.qkv(self.one(x)).reshape((b, t, 3, c // HEAD, HEAD)).permute((2, 0, 3, 1, 4))
        y = nn.functional.scaled_dot_product_attention(y[0], y[1], y[2], is_causal=True)
        x = x + self.out(y.permute((0, 2, 1, 3)).reshape((b, t, c)))
        return x + self.down(nn.functional.gelu(self.up(self.two(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(DEPTH)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS, bias=False)

    def forward(self, index, places):
        x = self.token(index) + self.place(places)
        return self.head(self.norm(self.blocks(x)))


class TorchBlock(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        y = self.qkv(self.one(x)).reshape(b, t, 3, c // HEAD, HEAD).permute(2, 0, 3, 1, 4)
        y = torch.nn.functional.scaled_dot_product_attention(y[0], y[1], y[2], is_causal=True)
        x = x + self.out(y.permute(0, 2, 1, 3).reshape(b, t, c))
        return x + self.down(torch.nn.functional.gelu(self.up(self.two(x))))


class TorchGpt(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = (
            torch.nn.Embedding(TOKENS, WIDTH),
            torch.nn.Embedding(LENGTH, WIDTH),
        )
        self.blocks = torch.nn.Sequential(*[TorchBlock() for _ in range(DEPTH)])
        self.norm, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, TOKENS, bias=False)

    def forward(self, index, places):
        return self.head(self.norm(self.blocks(self.token(index) + self.place(places))))


def main():
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    theirs = TorchGpt().to(DEVICE)
    with torch.no_grad():
        theirs.token.weight.mul_(0.05), theirs.place.weight.mul_(0.05)
    device = weft.device("cuda:0" if DEVICE == "cuda" else DEVICE)
    ours = Gpt().to(device)
    wanted = dict(theirs.named_parameters())
    for name, p in ours.named_parameters().items():
        value = wanted[name].detach().cpu().numpy()
        value = (
            value.T if value.ndim == 2 and name.split(".")[0] not in ("token", "place") else value
        )
        p.data = weft.asarray(np.ascontiguousarray(value).reshape(p.shape)).to(device)
    rng = np.random.default_rng(0)
    tokens, places = rng.integers(0, TOKENS, (BATCH, LENGTH + 1)), np.arange(LENGTH)
    index, answer = tokens[:, :-1].copy(), tokens[:, 1:].reshape(-1).copy()
    wi, wa, wp = (weft.asarray(v).to(device) for v in (index, answer, places))
    ti, ta, tp = (torch.from_numpy(v).to(DEVICE) for v in (index, answer, places))
    mine = optim.SGD(ours.parameters(), lr=0.1)
    other = torch.optim.SGD(theirs.parameters(), lr=0.1)

    def step():
        loss = nn.functional.cross_entropy(ours(wi, wp).reshape((BATCH * LENGTH, TOKENS)), wa)
        loss.backward()
        mine.step()
        mine.zero_grad()
        return loss

    def torch_step():
        loss = torch.nn.functional.cross_entropy(theirs(ti, tp).reshape(BATCH * LENGTH, TOKENS), ta)
        loss.backward()
        other.step()
        other.zero_grad()
        return loss

    def sync():
        device.synchronize()
        if DEVICE == "cuda":
            torch.cuda.synchronize()

    start = time.perf_counter()
    losses = [float(step().item())]
    first = time.perf_counter() - start
    losses += [float(step().item()) for _ in range(9)]
    want = [float(torch_step().item()) for _ in range(10)]
    worst = max(abs(a - b) / abs(b) for a, b in zip(losses, want))
    times = {"weft": [], "torch": []}
    for _ in range(5):
        for name, f in (("weft", step), ("torch", torch_step)):
            sync()
            start = time.perf_counter()
            for _ in range(3):
                f()
            sync()
            times[name].append((time.perf_counter() - start) / 3)
    a, b = (statistics.median(t) for t in times.values())
    peak = device.stats().get("bytes.peak", 0)
    print(
        f"GPT step: first {first:.2f} s, then {a * 1e3:.2f} ms; torch {b * 1e3:.2f} ms; ratio {b / a:.3f}; losses within {worst:.1e}"
    )
    if DEVICE == "cuda":
        print(
            f"peak memory: {peak / 2**30:.2f} GiB, torch {torch.cuda.max_memory_allocated() / 2**30:.2f}"
        )
    return worst > 1e-3


if __name__ == "__main__":
    sys.exit(main())
