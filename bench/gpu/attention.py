# SPDX-License-Identifier: Apache-2.0
"""Attention beside PyTorch on one card: correctness of random cases, then times.

    python bench/gpu/attention.py [SECONDS_OF_CASES]

PyTorch's time is that of its fastest back end (cuDNN, FlashAttention, memory-efficient). Both libraries are called in turns.
"""

import math
import pathlib
import statistics
import sys
import time
import warnings

import numpy as np
import torch
import weft
from torch.nn.attention import SDPBackend, sdpa_kernel
from weft import _core

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from recording import Record

DEVICE = weft.device("cuda:0")
TOLERANCE = {"float32": 3e-5, "float16": 4e-3, "bfloat16": 2.5e-2}


def reference(q, k, v, g, mask=None, padding=None, lengths=None, band=None, scale=1.0):
    """In float64, on the card by PyTorch."""
    q, k, v, g = (torch.from_numpy(x).double().cuda() for x in (q, k, v, g))
    group, n, m = q.shape[1] // k.shape[1], q.shape[2], k.shape[2]
    whole_k, whole_v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = q @ whole_k.mT * scale
    seen = torch.ones(s.shape, dtype=torch.bool, device="cuda")
    if band is not None:
        ahead = torch.arange(m, device="cuda")[None] - torch.arange(n, device="cuda")[:, None]
        seen &= (ahead >= band[0]) & (ahead <= band[1])
    if padding is not None:
        seen &= torch.from_numpy(padding).cuda()[:, None, None]
    if lengths is not None:
        seen &= (torch.arange(m)[None] < torch.from_numpy(lengths)[:, None]).cuda()[:, None, None]
    if mask is not None:
        mask = torch.from_numpy(np.ascontiguousarray(mask)).cuda()
        if mask.dtype == torch.bool:
            seen &= mask
        else:
            s = s + mask.double()
    s = torch.where(seen, s, -math.inf)
    top = s.amax(-1, keepdim=True)
    e = torch.exp(s - torch.where(torch.isfinite(top), top, 0.0))
    total = e.sum(-1, keepdim=True)
    p = torch.where(total == 0, 0.0, e / total)
    out = p @ whole_v
    ds = p * (g @ whole_v.mT - (g * out).sum(-1, keepdim=True)) * scale
    per = lambda x, like: x.reshape(like.shape[0], like.shape[1], group, *like.shape[2:]).sum(2)  # noqa: E731
    found = out, ds @ whole_k, per(ds.mT @ q, k), per(p.mT @ g, v)
    return [x.cpu().numpy() for x in found]


def case(rng, big=False):
    dtype = str(rng.choice(list(TOLERANCE)))
    keys, group, batch = int(rng.integers(1, 4)), int(rng.integers(1, 3)), int(rng.integers(1, 3))
    n, m = (int(rng.choice([1, 7, 63, 65, 129, 300, 1000])) for _ in range(2))
    width = int(rng.choice([8, 16, 31, 64, 64, 96, 128, 128, 200, 256]))
    value = width if rng.random() < 0.7 else int(rng.choice([1, 40, 64, 128]))
    heads, opts, host = keys * group, {}, {}
    draw = lambda *s: rng.standard_normal(s).astype("float32")  # noqa: E731
    shapes = (
        (batch, heads, n, width),
        (batch, keys, m, width),
        (batch, keys, m, value),
        (batch, heads, n, value),
    )
    arrays = [weft.asarray(draw(*s)).astype(dtype) for s in shapes]
    kind = int(rng.integers(0, 8))
    if kind in (1, 2, 3):
        shape = [(batch, heads, n, m), (1, 1, n, m), (n, m), (batch, 1, 1, m)][int(rng.integers(4))]
        mask = rng.random(shape) < 0.8 if kind == 1 else draw(*shape)
        if kind == 3:
            mask[rng.random(shape) < 0.2] = -np.inf
        mask = weft.asarray(mask)
        mask = mask if kind == 1 else mask.astype(dtype)
        opts["mask"] = mask.to(DEVICE)
        host["mask"] = np.broadcast_to(
            mask.numpy() if kind == 1 else mask.astype("float32").numpy(), (batch, heads, n, m)
        )
    if rng.random() < 0.2:
        host["padding"] = rng.random((batch, m)) < 0.8
    if rng.random() < 0.2:
        host["lengths"] = rng.integers(0, m + 2, batch).astype("int32")
    for name in ("padding", "lengths"):
        if name in host:
            opts[name] = weft.asarray(host[name]).to(DEVICE)
    if rng.random() < 0.5:
        bands = [(-(2**40), 0), (-10, 0), (-5, 5), (-(2**40), m - n), (3, 20)]
        opts["band"] = host["band"] = bands[int(rng.integers(5))]
    opts["scale"] = host["scale"] = float(
        rng.choice([1 / math.sqrt(width), 0.3 / math.sqrt(width)])
    )
    return dtype, arrays, opts, host


def check(rng):
    dtype, arrays, opts, host = case(rng)
    q, k, v = (weft.Tensor(x.to(DEVICE), requires_grad=True) for x in arrays[:3])
    out = _core._attention(q, k, v, **opts)
    out.backward(weft.Tensor(arrays[3].to(DEVICE)))
    wide = lambda x: x.astype("float32").numpy()  # noqa: E731
    want = reference(*(wide(x) for x in arrays), **host)
    errors = []
    for a, b in zip((out.data, q.grad.data, k.grad.data, v.grad.data), want):
        a = wide(a).astype("float64")
        # Where queries see one key, gradients of scores are differences of equal numbers.
        size = max(np.linalg.norm(b), 0.05 * math.sqrt(b.size))
        errors.append(float(np.linalg.norm(a - b) / size) if not np.isnan(a).any() else math.nan)
    good = all(e < TOLERANCE[dtype] * 2 for e in errors)
    told = (
        dtype,
        [x.shape for x in arrays[:3]],
        {k: host[k] for k in ("band", "scale") if k in host},
    )
    return good, told, sorted(host), errors


def timed(f, sync, seconds=0.15):
    f(), sync()
    start = time.perf_counter()
    f(), sync()
    once = max(time.perf_counter() - start, 2e-5)
    count = max(3, min(200, int(seconds / once)))

    def run():
        start = time.perf_counter()
        for _ in range(count):
            f()
        sync()
        return (time.perf_counter() - start) / count

    return run


BACKENDS = {
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}


def row(record, dtype, batch, heads, n, width, causal, backward):
    shape = (batch, heads, n, width)
    kind = getattr(torch, dtype)
    t = [torch.randn(shape, device="cuda", dtype=kind, requires_grad=backward) for _ in range(3)]
    w = [weft.asarray(x.detach().float().cpu().numpy()).astype(dtype).to(DEVICE) for x in t]
    g = torch.randn(shape, device="cuda", dtype=kind)
    wg = weft.asarray(g.float().cpu().numpy()).astype(dtype).to(DEVICE)
    scale, band = 1 / math.sqrt(width), (-(2**40), 0) if causal else None
    runs = {}
    for name, backend in BACKENDS.items():
        try:
            with sdpa_kernel(backend):
                out = torch.nn.functional.scaled_dot_product_attention(*t, is_causal=causal)

                def theirs(backend=backend, out=out):
                    if backward:
                        torch.autograd.grad(out, t, g, retain_graph=True)
                    else:
                        with sdpa_kernel(backend):
                            torch.nn.functional.scaled_dot_product_attention(*t, is_causal=causal)

                runs[name] = timed(theirs, torch.cuda.synchronize)
        except RuntimeError:
            continue
    result = _core._attention_forward(*w, band=band, scale=scale)

    def ours():
        if backward:
            _core._attention_backward(wg, *w, *result, band=band, scale=scale)
        else:
            _core._attention_forward(*w, band=band, scale=scale)

    runs["weft"] = timed(ours, DEVICE.synchronize)
    times = {name: [] for name in runs}
    for _ in range(3):
        for name, run in runs.items():
            times[name].append(run())
    times = {name: statistics.median(x) for name, x in times.items()}
    best = min((s, name) for name, s in times.items() if name != "weft")
    record.row(
        f"{'backward' if backward else 'forward'} {dtype}",
        f"{'causal' if causal else 'full'} {batch} x {heads} x {n} x {width}",
        times["weft"],
        {best[1]: best[0]},
    )
    work = 4.0 * batch * heads * n * n * width * (2.5 if backward else 1) * (0.5 if causal else 1)
    print(
        f"{dtype:9} {'bwd' if backward else 'fwd'} {'causal' if causal else 'full  '} b{batch} h{heads} n{n} d{width}: "
        f"weft {times['weft'] * 1e6:8.0f} us {work / times['weft'] / 1e12:6.1f} TFLOP/s, torch {best[1]} "
        f"{best[0] * 1e6:8.0f} us {work / best[0] / 1e12:6.1f}, ratio {best[0] / times['weft']:.2f}",
        flush=True,
    )


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    start, count, bad = time.time(), 0, 0
    while time.time() - start < seconds and count < 200 and bad < 6:
        try:
            good, told, options, errors = check(np.random.default_rng(count))
        except Exception as e:  # the next case may still tell something
            good, told, options, errors = False, repr(e)[:600], [], []
        if not good:
            print("WRONG", count, told, options, errors, flush=True)
            bad += 1
        count += 1
    print(f"{count} random cases, {bad} wrong, {time.time() - start:.0f} s", flush=True)
    warnings.filterwarnings("ignore")
    rows = [
        ("float32", 4, 8, 2048, 64, False),
        ("float32", 4, 8, 2048, 128, False),
        ("float32", 4, 8, 2048, 64, True),
        ("bfloat16", 4, 16, 2048, 128, False),
        ("bfloat16", 4, 16, 2048, 128, True),
        ("bfloat16", 1, 16, 8192, 128, False),
        ("bfloat16", 1, 16, 8192, 128, True),
        ("bfloat16", 1, 16, 16384, 128, False),
        ("bfloat16", 4, 16, 2048, 64, False),
        ("bfloat16", 8, 16, 1024, 64, True),
        ("float16", 1, 16, 8192, 64, False),
        ("bfloat16", 2, 16, 2048, 96, False),
        ("bfloat16", 2, 16, 2048, 256, False),
    ]
    asked = {f"{w} bfloat16": {"least": a} for w, a in (("forward", 1.0), ("backward", 0.95))}
    record = Record("attention", "cuda", asked)
    for backward in (True, False):
        for r in rows:
            try:
                row(record, *r, backward)
            except Exception as e:
                print("failed", r, repr(e)[:300], flush=True)


if __name__ == "__main__":
    main()
