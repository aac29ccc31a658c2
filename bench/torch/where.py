# SPDX-License-Identifier: Apache-2.0
"""Where the time of torch.compile(backend="weft") goes on a card: bench/torch/where.py [NAME...] [--train] [--small]

For each model of models.py (bfloat16), eager, weft, and weft with mode="reduce-overhead": time of a call, time on the host, time
of all kernels and their number, the kernels by time; then weft's steps: where each kind runs, and what the first call measured for both sides.
"""

import argparse
import collections
import time

import torch
from models import first, models
from torch.profiler import ProfilerActivity, profile

import weft.torch
from weft.torch import _backend

VIEWS = "view t transpose expand permute unsqueeze _unsafe_view slice select".split()


def timed(f, number):
    """(seconds of a call, of which until the host was done), the median of five samples."""
    samples = []
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(number):
            f()
        host = time.perf_counter() - start
        torch.cuda.synchronize()
        samples.append(((time.perf_counter() - start) / number, host / number))
    return sorted(samples)[2]


def kernels(f, number):
    """{name: (launches, seconds)} of one call."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        for _ in range(number):
            f()
        torch.cuda.synchronize()
    found = collections.defaultdict(lambda: [0, 0.0])
    for event in p.events():
        if str(event.device_type).endswith("CUDA"):
            row = found[event.name]
            row[0] += 1 / number
            row[1] += event.device_time * 1e-6 / number
    return found


def show_steps(programs):
    rows = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for program in programs:
        for step in getattr(program, "steps", []):
            names = [op.name.split(".")[1] for op in step.unit.ops]
            names = [n for n in names if n not in VIEWS]
            if step.where != "view":
                row = rows[step.where, " ".join(names)[:70], step.reason[:60]]
                row[0] += 1
                row[1] += step.seconds.get("weft", 0) * 1e6
                row[2] += step.seconds.get("torch", 0) * 1e6
    for (where, names, reason), (n, mine, theirs) in sorted(rows.items(), key=lambda r: -max(r[1][1:]))[:16]:  # fmt: skip
        print(f"   {where:5s} {n:4d} x weft {mine / n:8.1f} torch {theirs / n:8.1f} us  {names}  {reason}")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for name, make, args, kwargs in models(not given.small):
        if given.names and name not in given.names:
            continue
        torch.manual_seed(0)
        move = lambda t: t.to("cuda", torch.bfloat16 if t.is_floating_point() else t.dtype)  # noqa: E731
        args, kwargs = tuple(map(move, args)), {k: move(v) for k, v in kwargs.items()}
        model = make().to("cuda", torch.bfloat16).train(given.train)
        torch._dynamo.reset()
        sides = {
            "eager": model,
            "weft": torch.compile(model, backend="weft"),
            "weft graphs": torch.compile(model, backend="weft", mode="reduce-overhead"),
        }
        for side, f in sides.items():
            programs = []
            before = _backend.watch(programs)

            def once(f=f, args=args, kwargs=kwargs, model=model):
                if not given.train:
                    with torch.no_grad():
                        return f(*args, **kwargs)
                first(f(*args, **kwargs)).float().square().mean().backward()
                model.zero_grad()

            for _ in range(5):
                once()
            _backend.watch(before)
            wall, host = timed(once, 10)
            found = kernels(once, 3)
            busy, launches = (sum(v[i] for v in found.values()) for i in (1, 0))
            print(f"== {name} {side}: {wall * 1e3:.3f} ms, host {host * 1e3:.3f}, kernels {busy * 1e3:.3f} in {launches:.0f} launches", flush=True)  # fmt: skip
            for kernel, (n, s) in sorted(found.items(), key=lambda k: -k[1][1])[:12]:
                print(f"     {s * 1e6:9.1f} us {n:6.1f} x {kernel[:110]}")
            if side != "eager":
                show_steps(programs)


if __name__ == "__main__":
    main()
