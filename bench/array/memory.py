# SPDX-License-Identifier: Apache-2.0
"""Peak resident memory of training steps beside torch, each in a process of its own.

PYTHONPATH=python python bench/array/memory.py [--steps N] [--json F]

What is counted: the largest resident memory during the steps less that after importing the library and making the data
(Linux: VmHWM, which /proc/self/clear_refs sets back). The project asks for at most torch's.
"""

import argparse
import json
import subprocess
import sys

MODELS = {  # name: shape of a batch
    "MLP b256 784-512-512-10": (256, 784),
    "convolution net b32": (32, 3, 32, 32),
    "Transformer layer b16 t64 d128": (16, 64, 128),
}


def resident(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))


def measure(step, steps):
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = resident("VmRSS")
    losses = [step() for _ in range(steps)]
    assert losses[-1] < losses[0], losses
    return dict(bytes=resident("VmHWM") - before, losses=losses)


def model_of(nn, name, transformer, **convolution):
    """The network `name` in either library, whose modules have the same names."""
    if name.startswith("MLP"):
        return nn.Sequential(
            nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
        )
    if name.startswith("conv"):
        layers = []
        for a, b, stride in ((3, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2)):
            layers += [
                nn.Conv2d(a, b, 3, stride=stride, **convolution),
                nn.BatchNorm2d(b),
                nn.ReLU(),
            ]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 8 * 8, 10))
    return nn.Sequential(transformer(), nn.Flatten(), nn.Linear(64 * 128, 10))


def train(nn, optim, model, data, target, steps):
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    loss_of = nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        loss = loss_of(model(data), target)
        loss.backward()
        optimizer.step()
        return loss.item()

    return measure(step, steps)


def in_weft(name, x, labels, steps):
    import weft
    from weft import nn, optim

    weft.set_threads(1)
    model = model_of(nn, name, lambda: nn.TransformerLayer(128, 8, 512), padding=1)
    data, target = weft.Tensor(x, requires_grad=False), weft.asarray(labels)
    return train(nn, optim, model, data, target, steps)


def in_torch(name, x, labels, steps):
    import torch
    from torch import nn, optim

    torch.set_num_threads(1)

    def transformer():
        return nn.TransformerEncoderLayer(128, 8, 512, 0.0, batch_first=True, norm_first=True)

    model = model_of(nn, name, transformer, padding=1)
    return train(nn, optim, model, torch.from_numpy(x), torch.from_numpy(labels), steps)


def child(library, name, steps):
    import numpy as np

    rng = np.random.default_rng(0)
    shape = MODELS[name]
    x = rng.standard_normal(shape).astype("float32")
    labels = rng.integers(0, 10, shape[0])
    print(json.dumps((in_weft if library == "weft" else in_torch)(name, x, labels, steps)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--child", nargs=2)
    options = parser.parse_args()
    if options.child:
        return child(*options.child, options.steps)
    rows = []
    for name in MODELS:
        if options.only and not any(text in name for text in options.only):
            continue
        peak = {}
        for library in ("weft", "torch"):
            command = [
                sys.executable,
                __file__,
                "--child",
                library,
                name,
                "--steps",
                str(options.steps),
            ]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            peak[library] = json.loads(done.stdout.splitlines()[-1])["bytes"]
        ratio = peak["torch"] / peak["weft"]
        rows.append(dict(case=name, ratio=ratio, **peak))
        text = "  ".join(f"{library} {n / 1e6:7.1f} MB" for library, n in peak.items())
        print(f"{name:32s} {text}   ratio {ratio:.2f}{'' if ratio >= 1 else '  <'}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(dict(rows=rows), file, indent=1)


if __name__ == "__main__":
    main()
