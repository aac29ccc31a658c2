# SPDX-License-Identifier: Apache-2.0
"""First training steps in fresh processes: python3 bench/first_step.py [--device cuda] [--small] [MODEL ...]

Each model runs twice with a cache directory of its own, empty and filled. Columns: seconds of the first step, of the second, processor seconds of the first
(all threads), kernels' modules on disk afterwards. gpt12 is the GPT of bench/training.py with twelve blocks. Only weft runs; losses are printed so that both runs can be compared.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time


def step_of(model, x, y, weft):
    rate = weft.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        loss = weft.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        rate.step()
        rate.zero_grad()
        return float(loss.item())

    return step


def child(name, where, small, cache):
    import numpy as np
    import training

    import weft

    weft._core.set_cache_directory(cache)
    depth = {"gpt12": 12}.get(name)
    make = training.MODELS["gpt" if depth else name]
    size = "small" if small else "card"
    model, (shape, classes, *tokens) = (
        make(training.Weft, size, depth) if depth else make(training.Weft, size)
    )
    device = weft.device(where)
    model = model.to(device)
    rng = np.random.default_rng(0)
    x = (
        rng.integers(0, tokens[0], shape)
        if tokens
        else rng.standard_normal(shape).astype(np.float32)
    )
    count = {"dlrm": shape[1], "unet": shape[0] * shape[-1] ** 2}.get(name, shape[0])
    count = int(np.prod(shape)) if name.startswith("gpt") or name == "lstm" else count
    x, y = (weft.asarray(v).to(device) for v in (x, rng.integers(0, classes, count)))
    step = step_of(model, x, y, weft)
    device.synchronize()
    start, used = time.perf_counter(), time.process_time()
    losses = [step()]
    first, used = time.perf_counter() - start, time.process_time() - used
    start = time.perf_counter()
    losses.append(step())
    second = time.perf_counter() - start
    print(
        f"{first:8.3f} {second:8.3f} {used:8.2f} {len(os.listdir(cache)):6}  {losses[0]:.6f} {losses[1]:.6f}"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=["gpt12", "resnet18"])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--child", metavar="CACHE", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.models[0], args.device, args.small, args.child)
    print(f"{'':20} {'first':>8} {'second':>8} {'cpu':>8} {'files':>6}  losses")
    for name in args.models:
        with tempfile.TemporaryDirectory(dir=os.path.expanduser("~")) as folder:
            for state in ("empty", "filled"):
                line = [sys.executable, __file__, name, "--device", args.device]
                line += ["--child", os.path.join(folder, "cache")] + ["--small"] * args.small
                print(f"{name:10} {state:9}", end=" ", flush=True)
                subprocess.run(line, check=True)


if __name__ == "__main__":
    main()
