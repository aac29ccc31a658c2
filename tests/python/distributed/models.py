# SPDX-License-Identifier: Apache-2.0
"""Run by a launcher: an MLP, a GPT and a ResNet-9 have the losses of one device over 20 steps. Arguments: device [steps] [large]."""

import sys
import time

import numpy as np

import weft
from weft import distributed as dist
from weft import nn, optim

dist.init()
r, n = dist.rank(), dist.size()
device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
if device == "cuda":
    device = dist.device().name
STEPS = int(sys.argv[2]) if len(sys.argv) > 2 else 20
LARGE = "large" in sys.argv
WIDTH = 256 if LARGE else 32
TOKENS, LENGTH = (1000, 128) if LARGE else (50, 12)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        y = self.qkv(self.one(x)).reshape((b, t, 3, 4, c // 4)).permute((2, 0, 3, 1, 4))
        y = nn.functional.scaled_dot_product_attention(y[0], y[1], y[2], is_causal=True)
        x = x + self.out(y.permute((0, 2, 1, 3)).reshape((b, t, c)))
        return x + self.down(nn.functional.gelu(self.up(self.two(x))))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(TOKENS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(2)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS)

    def forward(self, index):
        places = weft.asarray(np.arange(LENGTH), device=index.device)
        return self.head(self.norm(self.blocks(self.token(index) + self.place(places))))


class Residual(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return self.body(x) + x


def conv(i, o, k, s):
    layer = nn.Conv2d(i, o, k, s, (k - 1) // 2)
    return nn.Sequential(layer, nn.BatchNorm2d(o), nn.ReLU())


def resnet9():
    w = 16 if LARGE else 4
    return nn.Sequential(
        conv(3, w, 7, 4), conv(w, 2 * w, 3, 2),
        Residual(nn.Sequential(conv(2 * w, 2 * w, 3, 1), conv(2 * w, 2 * w, 3, 1))),
        conv(2 * w, 4 * w, 3, 2), conv(4 * w, 8 * w, 3, 2),
        Residual(nn.Sequential(conv(8 * w, 8 * w, 3, 1), conv(8 * w, 8 * w, 3, 1))),
        nn.Flatten(), nn.Linear(8 * w, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip


def mlp():
    return nn.Sequential(
        nn.Linear(64, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10)
    )  # fmt: skip


def images(rng, rows):
    return rng.standard_normal((rows, 3, 32, 32)).astype("float32"), rng.integers(0, 10, rows)


def rows_of_numbers(rng, rows):
    return rng.standard_normal((rows, 64)).astype("float32"), rng.integers(0, 10, rows)


def sentences(rng, rows):
    text = rng.integers(0, TOKENS, (rows, LENGTH + 1))
    return text[:, :-1], text[:, 1:]


def placed(x):
    array = weft.asarray(np.ascontiguousarray(x)).to(device)
    return weft.Tensor(array, requires_grad=False) if x.dtype == np.float32 else array


def losses(make, batch, wrap):
    weft.random.seed(5)
    model = wrap(make().to(device))
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    alone = isinstance(model, (nn.Sequential, Gpt))
    rows, out = 8 * n, []
    for step in range(STEPS):
        x, y = batch(np.random.default_rng(step), rows)
        if not alone:
            x, y = x[8 * r : 8 * r + 8], y[8 * r : 8 * r + 8]
        logits = model(placed(x))
        loss = nn.functional.cross_entropy(
            logits.reshape((-1, logits.shape[-1])), placed(y.reshape(-1))
        )
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        out.append(float((loss if alone else dist.all_reduce(loss.detach(), "mean")).item()))
    return out


def whole_statistics(model):
    return dist.SyncBatchNorm.convert(model)


for name, make, batch in (
    ("MLP", mlp, rows_of_numbers),
    ("GPT", Gpt, sentences),
    ("ResNet-9", resnet9, images),
):
    begun = time.perf_counter()
    want = losses(make, batch, lambda m: m)
    for kind, wrap in (
        ("data parallel", lambda m: dist.DataParallel(whole_statistics(m))),
        ("sharded 3", lambda m: dist.ShardedParallel(whole_statistics(m), resident_bytes=0)),
    ):
        got = losses(make, batch, wrap)
        worst = max(abs(a - b) / abs(b) for a, b in zip(got, want))
        assert worst < 2e-3, (name, kind, got, want)
        assert got[0] != got[-1]
        if r == 0:
            print(
                f"{name:9s} {kind:14s} {STEPS} steps on {n} x {device}: loss {got[0]:.4f} to {got[-1]:.4f}, worst difference {worst:.1e}, "
                f"{time.perf_counter() - begun:.1f} s", flush=True,
            )  # fmt: skip
dist.barrier()
print(f"models rank {r} of {n}: ok", flush=True)
