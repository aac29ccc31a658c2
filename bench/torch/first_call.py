# SPDX-License-Identifier: Apache-2.0
"""Seconds of a compiled model's first call, and where they go: bench/torch/first_call.py [NAME...] [--train] [--device cuda] [--large] [--dtype bfloat16] [--inductor]

Each row is a fresh process: first with empty caches, then with the caches that the first one filled. Eager runs before, so that
libraries are loaded. Parts: torch's tracing (what remains of the call), plans, kernels built side by side, steps tried one
after another, and of them the comparison with torch.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time


def parts_of_weft():
    """{part: seconds}, filled while programs run."""
    from weft.torch import program

    found = {"plans": 0.0, "build": 0.0, "steps": 0.0, "compare": 0.0}
    counts = {"steps": 0, "built": 0, "recalled": 0, "weft": 0}

    def timed(owner, name, part, note=lambda result, given: None):
        inner = getattr(owner, name)

        def run(*given):
            start = time.perf_counter()
            result = inner(*given)
            found[part] += time.perf_counter() - start
            note(result, given)
            return result

        setattr(owner, name, run)

    def built(result, given):
        counts["built"] += len(result or ())
        counts["steps"] += len(given[0].steps)

    timed(program.Program, "_prepare", "plans")
    timed(program, "build_kernels", "build", built)
    timed(program.Trial, "step", "steps")
    timed(program, "measure", "compare")
    recall = program.remembered.recall

    def recalled(p):
        known = recall(p)
        counts["recalled"] += known
        return known

    program.remembered.recall = recalled
    return found, counts


def once(given, name):
    """The first call of one model in this process."""
    import torch
    from models import first, models

    import weft
    import weft.torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    weft.set_threads(torch.get_num_threads())
    dtype = getattr(torch, given.dtype)
    for key, make, args, kwargs in models(given.large):
        if key != name:
            continue
        torch.manual_seed(0)
        move = lambda t: t.to(given.device, dtype if t.is_floating_point() else t.dtype)  # noqa: E731
        args, kwargs = tuple(map(move, args)), {k: move(v) for k, v in kwargs.items()}
        model = make().to(given.device, dtype).train(given.train)

        def call(f):
            if given.train:
                first(f(*args, **kwargs)).float().square().mean().backward()
                model.zero_grad()
            else:
                with torch.no_grad():
                    f(*args, **kwargs)
            if given.device == "cuda":
                torch.cuda.synchronize()

        call(model)
        found, counts = parts_of_weft() if given.side == "weft" else ({}, {})
        compiled = torch.compile(model, backend=given.side, mode=given.mode)
        start = time.perf_counter()
        call(compiled)
        total = time.perf_counter() - start
        rest = total - sum(v for k, v in found.items() if k != "compare")
        parts = "".join(f"  {k} {v:.1f}" for k, v in found.items())
        start = time.perf_counter()
        call(compiled)
        second = time.perf_counter() - start
        print(f"{total:6.1f} s  tracing {rest:.1f}{parts}  {counts or ''}  second call {second:.2f} s", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--mode", default="default", choices=["default", "reduce-overhead"])
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--inductor", action="store_true")
    parser.add_argument("--side", help="one process: the back end that it calls")
    given = parser.parse_args()
    if given.side:
        return once(given, given.names[0])
    passed = [a for a in sys.argv[1:] if a not in given.names and a != "--inductor"]
    for name in given.names or ["resnet18"]:
        for side in ["weft", "inductor"][: 1 + given.inductor]:
            with tempfile.TemporaryDirectory(dir=os.path.expanduser("~")) as folder:
                own = dict(os.environ, WEFT_CACHE_DIR=f"{folder}/weft", TORCHINDUCTOR_CACHE_DIR=f"{folder}/inductor", TRITON_CACHE_DIR=f"{folder}/triton")  # fmt: skip
                for state in ("empty", "filled"):
                    print(f"{name:13s} {side:8s} {state:6s} ", end="", flush=True)
                    subprocess.run([sys.executable, __file__, name, *passed, "--side", side], env=own, check=True)  # fmt: skip


if __name__ == "__main__":
    main()
