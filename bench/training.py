# SPDX-License-Identifier: Apache-2.0
"""Training steps of whole models beside PyTorch eager, from equal weights: python3 bench/training.py [--device cuda|cpu] [--size small|host|card] [--cpu-time] [MODEL ...]

Each model is written once, over a namespace that is `weft` or `torch`. Ten losses are compared (relative 1e-3; 1e-2 for models with batch norm over few
elements), then steps are timed in turns; the first step, which compiles every kernel, is printed apart. --size: of tests, of steps of
a tenth of a second on one thread (the host's default), of a card. --cpu-time: one thread, the process's processor time. --steps 0: losses only.
"""

import argparse
import math
import pathlib
import re
import statistics
import sys
import time

import numpy as np
import torch

import weft

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from recording import Record


class Weft:
    """What models use, by weft."""

    nn, F, cat = weft.nn, weft.nn.functional, staticmethod(weft.concat)
    attention = staticmethod(weft.nn.functional.scaled_dot_product_attention)


class Torch:
    nn, F, cat = torch.nn, torch.nn.functional, staticmethod(torch.cat)

    @staticmethod
    def attention(q, k, v, is_causal=False):
        if hasattr(torch.nn.functional, "scaled_dot_product_attention"):  # from torch 2 on
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if is_causal:
            later = torch.ones(scores.shape[-2:], device=q.device).triu(1).bool()
            scores = scores.masked_fill(later, -math.inf)
        return scores.softmax(-1) @ v


def of(size, small, host, card):
    return {"small": small, "host": host, "card": card}[size]


def lenet(lib, size):
    nn = lib.nn
    batch = of(size, 8, 64, 64)
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    return model, ((batch, 1, 28, 28), 10)


def basic_block(lib, inside, outside, stride):
    nn, F = lib.nn, lib.F

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(inside, outside, 3, stride=stride, padding=1, bias=False)
            self.norm1 = nn.BatchNorm2d(outside)
            self.conv2 = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
            self.norm2 = nn.BatchNorm2d(outside)
            self.short = (
                nn.Sequential()
                if stride == 1 and inside == outside
                else nn.Sequential(
                    nn.Conv2d(inside, outside, 1, stride=stride, bias=False),
                    nn.BatchNorm2d(outside),
                )
            )

        def forward(self, x):
            y = F.relu(self.norm1(self.conv1(x)))
            return F.relu(self.norm2(self.conv2(y)) + self.short(x))

    return Block()


def resnet18(lib, size):
    nn = lib.nn
    width, side, batch = of(size, (8, 64, 4), (64, 64, 8), (64, 224, 64))
    blocks = []
    inside = width
    for stage in range(4):
        for i in range(2):
            outside = width << stage
            blocks.append(basic_block(lib, inside, outside, 2 if stage and not i else 1))
            inside = outside
    model = nn.Sequential(
        nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1),
        *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 100),
    )  # fmt: skip
    return model, ((batch, 3, side, side), 100)


def mobilenet(lib, size):
    """MobileNetV3-Small: depthwise convolutions, squeeze and excitation, hardswish."""
    nn, F = lib.nn, lib.F
    # kernel, expanded, out, squeeze, activation, stride
    rows = [
        (3, 16, 16, True, "relu", 2), (3, 72, 24, False, "relu", 2), (3, 88, 24, False, "relu", 1), (5, 96, 40, True, "hardswish", 2),
        (5, 240, 40, True, "hardswish", 1), (5, 120, 48, True, "hardswish", 1), (5, 288, 96, True, "hardswish", 2), (5, 576, 96, True, "hardswish", 1),
    ]  # fmt: skip
    rows = rows[:4] if size == "small" else rows
    side, batch = of(size, (64, 4), (96, 8), (224, 64))

    class Squeeze(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.down, self.up = (
                nn.Conv2d(channels, channels // 4, 1),
                nn.Conv2d(channels // 4, channels, 1),
            )

        def forward(self, x):
            return x * F.hardsigmoid(self.up(F.relu(self.down(self.pool(x)))))

    class Inverted(nn.Module):
        def __init__(self, inside, kernel, expanded, outside, squeeze, activation, stride):
            super().__init__()
            act = nn.Hardswish if activation == "hardswish" else nn.ReLU
            parts = []
            if expanded != inside:
                parts += [
                    nn.Conv2d(inside, expanded, 1, bias=False),
                    nn.BatchNorm2d(expanded),
                    act(),
                ]
            parts += [
                nn.Conv2d(expanded, expanded, kernel, stride=stride, padding=kernel // 2, groups=expanded, bias=False), nn.BatchNorm2d(expanded), act(),
            ]  # fmt: skip
            parts += [Squeeze(expanded)] if squeeze else []
            parts += [nn.Conv2d(expanded, outside, 1, bias=False), nn.BatchNorm2d(outside)]
            self.body, self.same = nn.Sequential(*parts), stride == 1 and inside == outside

        def forward(self, x):
            return x + self.body(x) if self.same else self.body(x)

    inside, blocks = 16, []
    for kernel, expanded, outside, squeeze, activation, stride in rows:
        blocks.append(Inverted(inside, kernel, expanded, outside, squeeze, activation, stride))
        inside = outside
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(16), nn.Hardswish(), *blocks,
        nn.Conv2d(inside, 6 * inside, 1, bias=False), nn.BatchNorm2d(6 * inside), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(6 * inside, 256), nn.Hardswish(), nn.Linear(256, 100),
    )  # fmt: skip
    return model, ((batch, 3, side, side), 100)


def transformer_block(lib, width, heads, is_causal):
    """Norm, attention, norm, two linear layers, with residual sums."""
    nn, F = lib.nn, lib.F

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (
                self.qkv(self.one(x))
                .reshape((b, t, 3, heads, c // heads))
                .permute((2, 0, 3, 1, 4))
                .unbind(0)
            )
            y = lib.attention(q, k, v, is_causal=is_causal)
            x = x + self.out(y.permute((0, 2, 1, 3)).reshape((b, t, c)))
            return x + self.down(F.gelu(self.up(self.two(x))))

    return Block()


def vit(lib, size):
    nn, cat = lib.nn, lib.cat
    side, patch, width, depth, heads, batch = of(
        size, (32, 8, 48, 2, 3, 4), (64, 8, 256, 4, 4, 8), (224, 16, 768, 12, 12, 16)
    )
    tokens = (side // patch) ** 2

    class Vit(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, stride=patch)
            self.token, self.places = nn.Embedding(1, width), nn.Embedding(tokens + 1, width)
            self.layers, self.norm, self.head = (
                nn.Sequential(*[transformer_block(lib, width, heads, False) for _ in range(depth)]),
                nn.LayerNorm(width),
                nn.Linear(width, 100),
            )

        def forward(self, x):
            x = self.patches(x).flatten(2).permute((0, 2, 1))
            first = self.token.weight.expand((x.shape[0], 1, width))
            return self.head(self.norm(self.layers(cat([first, x], 1) + self.places.weight))[:, 0])

    return Vit(), ((batch, 3, side, side), 100)


def unet(lib, size):
    nn, cat = lib.nn, lib.cat
    width, side, batch = of(size, (4, 32, 2), (16, 64, 4), (32, 256, 8))

    def twice(inside, outside):
        return nn.Sequential(
            nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.ReLU(),
            nn.Conv2d(outside, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.ReLU(),
        )  # fmt: skip

    class Unet(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [width << i for i in range(4)]
            self.downs = nn.ModuleList([twice(a, b) for a, b in zip([3] + widths, widths)])
            self.pool = nn.MaxPool2d(2)
            self.ups = nn.ModuleList(
                [nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(widths, widths[1:])]
            )
            self.joins = nn.ModuleList([twice(2 * a, a) for a in widths[:-1]])
            self.last = nn.Conv2d(width, 5, 1)

        def forward(self, x):
            kept = []
            for i, down in enumerate(self.downs):
                x = down(x if not i else self.pool(x))
                kept.append(x)
            for i in reversed(range(3)):
                x = self.joins[i](cat([self.ups[i](x), kept[i]], 1))
            return self.last(x).permute((0, 2, 3, 1)).reshape((-1, 5))

    return Unet(), ((batch, 3, side, side), 5)


def lstm(lib, size):
    nn = lib.nn
    tokens, width, length, batch = of(
        size, (50, 16, 12, 4), (1000, 256, 32, 32), (10000, 512, 64, 64)
    )

    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Embedding(tokens, width)
            self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
            self.head = nn.Linear(width, tokens)

        def forward(self, index):
            y, _ = self.lstm(self.token(index))
            return self.head(y).reshape((-1, tokens))

    return Language(), ((batch, length), tokens, tokens)


def dlrm(lib, size):
    """Bags of embeddings, their dot products in pairs, two small networks."""
    nn, cat = lib.nn, lib.cat
    tables, rows, width, batch, bag = of(
        size, (3, 40, 8, 16, 4), (8, 10000, 64, 256, 10), (8, 100000, 64, 2048, 10)
    )

    class Dlrm(nn.Module):
        def __init__(self):
            super().__init__()
            self.bags = nn.ModuleList(
                [nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables)]
            )
            self.bottom = nn.Sequential(
                nn.Linear(bag, 4 * width), nn.ReLU(), nn.Linear(4 * width, width), nn.ReLU()
            )
            self.top = nn.Sequential(
                nn.Linear(width + (tables + 1) ** 2, 4 * width), nn.ReLU(), nn.Linear(4 * width, 2)
            )

        def forward(self, index):
            dense = self.bottom(index[0].float() * (1.0 / rows))
            vectors = [dense] + [b(index[i]) for i, b in enumerate(self.bags)]
            all_of = cat([v.reshape((-1, 1, width)) for v in vectors], 1)
            pairs = (all_of @ all_of.permute((0, 2, 1))).reshape((-1, (tables + 1) ** 2))
            return self.top(cat([dense, pairs], 1))

    return Dlrm(), ((tables, batch, bag), 2, rows)


def gpt(lib, size, depth=None):
    nn = lib.nn
    tokens, width, blocks, heads, batch, length = of(
        size, (300, 64, 2, 2, 2, 16), (1000, 256, 2, 4, 8, 64), (50257, 768, 4, 12, 8, 512)
    )
    depth = depth or blocks

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.places = nn.Embedding(tokens, width), nn.Embedding(length, width)
            self.blocks, self.norm = (
                nn.Sequential(*[transformer_block(lib, width, heads, True) for _ in range(depth)]),
                nn.LayerNorm(width),
            )
            self.head = nn.Linear(width, tokens, bias=False)

        def forward(self, index):
            x = self.token(index) + self.places.weight
            return self.head(self.norm(self.blocks(x))).reshape((-1, tokens))

    return Gpt(), ((batch, length), tokens, tokens)


MODELS = {f.__name__: f for f in (lenet, resnet18, mobilenet, vit, unet, lstm, dlrm, gpt)}
RATES = {"lstm": 0.5}
FEW_IMAGES = 0.001  # a rate at which eight images are not learnt by heart in ten steps


def name_in_weft(name):
    """torch counts the layers of a recurrent network in its parameters' names."""
    found = re.fullmatch(r"(.*)\.(weight|bias)_(ih|hh)_l(\d+)", name)
    return f"{found[1]}.cells.{found[4]}.{found[2]}_{found[3]}" if found else name


def copy_weights(ours, theirs, device):
    """The values of a torch model's parameters; weft's linear and recurrent layers keep (in, out)."""
    wanted = {name_in_weft(n): p for n, p in theirs.named_parameters()}
    mine = dict(ours.named_parameters())
    assert mine.keys() == wanted.keys(), sorted(mine.keys() ^ wanted.keys())
    modules = dict(ours.named_modules())
    for name, p in mine.items():
        value = wanted[name].detach().cpu().numpy()
        kind = type(modules.get(name.rpartition(".")[0])).__name__
        if value.ndim == 2 and "Embedding" not in kind and name != "token.weight":
            value = value.T
        assert tuple(p.shape) == value.shape, (name, p.shape, value.shape)
        p.data = weft.asarray(np.ascontiguousarray(value)).to(device)


class Pair:
    """One model in both libraries with equal weights, data and optimizers."""

    clock = staticmethod(time.perf_counter)

    def __init__(self, name, size, where):
        torch.manual_seed(0)
        self.name, self.where = name, where
        there = where if where == "cuda" else "cpu"
        self.device = weft.device("cuda:0" if where == "cuda" else where)
        theirs, (shape, classes, *tokens) = MODELS[name](Torch, size)
        ours, _ = MODELS[name](Weft, size)
        with torch.no_grad():
            for module in theirs.modules():
                if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)):
                    module.weight.mul_(0.05)
        self.theirs, self.ours = theirs.to(there), ours.to(self.device)
        copy_weights(self.ours, self.theirs, self.device)
        rng = np.random.default_rng(0)
        x = (
            rng.integers(0, tokens[0], shape)
            if tokens
            else rng.standard_normal(shape).astype(np.float32)
        )
        with torch.no_grad():
            count = self.theirs(torch.from_numpy(x).to(there)).shape[0]
        y = rng.integers(0, classes, count)
        self.x, self.y = (weft.asarray(v).to(self.device) for v in (x, y))
        self.tx, self.ty = (torch.from_numpy(v).to(there) for v in (x, y))
        # the forward pass above has moved the running statistics of torch's norms; training does not read them
        rate = FEW_IMAGES if name == "resnet18" and size == "host" else RATES.get(name, 0.01)
        self.mine = weft.optim.SGD(self.ours.parameters(), lr=rate, momentum=0.9)
        self.other = torch.optim.SGD(self.theirs.parameters(), lr=rate, momentum=0.9)

    def step(self):
        loss = weft.nn.functional.cross_entropy(self.ours(self.x), self.y)
        loss.backward()
        self.mine.step()
        self.mine.zero_grad()
        return loss

    def torch_step(self):
        loss = torch.nn.functional.cross_entropy(self.theirs(self.tx), self.ty)
        loss.backward()
        self.other.step()
        self.other.zero_grad()
        return loss

    def sync(self):
        self.device.synchronize()
        if self.where == "cuda":
            torch.cuda.synchronize()

    def losses(self, count=10):
        """Of both libraries; and the seconds of weft's first step."""
        start = time.perf_counter()
        ours = [float(self.step().item())]
        first = time.perf_counter() - start
        ours += [float(self.step().item()) for _ in range(count - 1)]
        return ours, [float(self.torch_step().item()) for _ in range(count)], first

    def seconds(self, rounds, count):
        times = ([], [])
        for _ in range(rounds):
            for f, t in zip((self.step, self.torch_step), times):
                self.sync()
                start = self.clock()
                for _ in range(count):
                    f()
                self.sync()
                t.append((self.clock() - start) / count)
        return [statistics.median(t) for t in times]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help=", ".join(MODELS))
    parser.add_argument(
        "--device", default="cpu", help="of weft; torch is on the card with it, or on the host"
    )
    parser.add_argument("--size", choices=["small", "host", "card"])
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if args.cpu_time:
        if args.device != "cpu":
            parser.error("--cpu-time is for one thread of the host")
        torch.set_num_threads(1)
        weft.set_threads(1)
        Pair.clock = staticmethod(time.process_time)
    size = args.size or ("card" if args.device == "cuda" else "host")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    ratios, wrong = [], 0
    record = Record(f"training steps, {size}", args.device, {"": {"least": 1.0}})
    for name in args.models or MODELS:
        pair = Pair(name, size, args.device)
        ours, theirs, first = pair.losses()
        worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
        wrong += not worst < 1e-3
        line = f"{name:10s} losses {theirs[0]:.4f} to {theirs[-1]:.4f}, within {worst:.1e}{'' if worst < 1e-3 else ' WRONG'}; first step {first:.2f} s"
        if args.steps:
            if args.device == "cuda":  # of a step; work that waits for kernels keeps its arrays
                pair.device.clear_stats()
                torch.cuda.reset_peak_memory_stats()
            a, b = pair.seconds(args.rounds, args.steps)
            ratios.append(b / a)
            facts = {} if worst < 1e-3 else {"wrong": f"losses differ by {worst:.1e}"}
            record.row("models", name, a, {"torch": b}, **facts)
            line += f"; then {a * 1e3:.2f} ms, torch {b * 1e3:.2f} ms, ratio {b / a:.3f}"
            if args.device == "cuda":
                line += f"; peak {pair.device.stats().get('bytes.peak', 0) / 2**30:.2f} GiB, torch {torch.cuda.max_memory_allocated() / 2**30:.2f}"
        print(line, flush=True)
    if ratios:
        print(
            f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.3f}, least {min(ratios):.3f}"
        )
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
