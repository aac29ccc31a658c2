# SPDX-License-Identifier: Apache-2.0
"""Decoding with a GPT-2 of 12 layers and 768 channels, one sequence, cached keys and values: bench/torch/decode.py [--device cuda] [--dtype bfloat16]

One token a step, 1024 places in the cache, random weights. Eager torch, eager torch in a CUDA graph, Inductor and weft, both with
mode="reduce-overhead". Logits are compared with eager's first; then steps are timed in turns, tokens per second are shown.
"""

import argparse
import statistics
import time

import torch

import weft
import weft.torch

F = torch.nn.functional


class Block(torch.nn.Module):
    def __init__(self, width, heads, places):
        super().__init__()
        self.heads = heads
        self.one, self.two = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        shape = (1, heads, places, width // heads)
        self.register_buffer("keys", torch.zeros(shape))
        self.register_buffer("values", torch.zeros(shape))

    def forward(self, x, at, mask):
        q, k, v = self.qkv(self.one(x)).view(1, 1, 3, self.heads, -1).unbind(2)
        self.keys.index_copy_(2, at, k.transpose(1, 2))
        self.values.index_copy_(2, at, v.transpose(1, 2))
        y = F.scaled_dot_product_attention(
            q.transpose(1, 2), self.keys, self.values, attn_mask=mask
        )
        x = x + self.out(y.transpose(1, 2).reshape(1, 1, -1))
        return x + self.down(F.gelu(self.up(self.two(x)), approximate="tanh"))


class Gpt(torch.nn.Module):
    def __init__(self, words=50257, width=768, depth=12, heads=12, places=1024):
        super().__init__()
        self.token, self.place = torch.nn.Embedding(words, width), torch.nn.Embedding(places, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads, places) for _ in range(depth))
        self.norm, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, words, bias=False)
        self.register_buffer("count", torch.arange(places))

    def forward(self, token, at):
        """Logits of the next token; `at` is the place of this one, an array of one number."""
        mask = (self.count <= at)[None, None, None, :]
        x = self.token(token) + self.place(at)
        for block in self.blocks:
            x = block(x, at, mask)
        return self.head(self.norm(x))


def graphed(model, token, at):
    """The eager model as a CUDA graph over fixed inputs."""
    token, at = token.clone(), at.clone()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(token, at)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(token, at)

    def step(t, a):
        token.copy_(t), at.copy_(a)
        graph.replay()
        return out

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--dtype", default="bfloat16", choices=["float32", "bfloat16"])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--no-inductor", action="store_true")
    given = parser.parse_args()
    card = given.device == "cuda"
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(0)
    size = dict(words=300, width=64, depth=2, heads=4, places=32) if given.small else {}
    model = Gpt(**size).to(given.device, getattr(torch, given.dtype)).eval()
    mode = dict(mode="reduce-overhead") if card else {}
    sides = {"eager": model}
    if card:
        sides["eager in a graph"] = None
    if not given.no_inductor:
        sides["inductor"] = torch.compile(model, **mode)
    sides["weft"] = torch.compile(model, backend="weft", **mode)
    tokens = torch.randint(0, size.get("words", 50257), (24,), device=given.device)
    at = [torch.tensor([i], device=given.device) for i in range(24)]

    def sync():
        if card:
            torch.cuda.synchronize()

    want = None
    with torch.no_grad():
        for name in sides:
            for buffer in model.buffers():
                if buffer.dim() == 4:
                    buffer.zero_()
            start = time.perf_counter()
            if sides[name] is None:
                sides[name] = graphed(model, tokens[:1].view(1, 1), at[0])
            f, rows = sides[name], []
            for i in range(24):
                rows.append(f(tokens[i : i + 1].view(1, 1), at[i]).double().cpu())
            sync()
            got = torch.cat(rows)
            want = got if want is None else want
            print(f"{name}: within {float((got - want).abs().max() / want.abs().max()):.1e}, first 24 steps {time.perf_counter() - start:.1f} s", flush=True)  # fmt: skip
        times = {name: [] for name in sides}
        t, a = tokens[:1].view(1, 1), at[5]
        for _ in range(7):
            for name, f in sides.items():
                sync()
                start = time.perf_counter()
                for _ in range(20):
                    f(t, a)
                sync()
                times[name].append((time.perf_counter() - start) / 20)
    mine = statistics.median(times["weft"])
    for name, samples in times.items():
        s = statistics.median(samples)
        print(f"{name:18s} {s * 1e6:8.0f} us  {1 / s:7.0f} tokens/s  {s / mine:.2f} of weft's time", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
