# SPDX-License-Identifier: Apache-2.0
"""Captured training steps beside torch: python3 bench/gpu/captured.py [mlp|resnet9]... [--adam]

MLP of batches of 256 and ResNet-9 of 128, from equal weights, SGD with momentum (or Adam). weft: eager, and the whole step under weft.capture. torch:
eager, and torch.compile(mode="reduce-overhead") of the model and loss with the optimizer outside (foreach), and of the optimizer's step as well where
torch compiles it. Ten losses are compared, then steps are timed in turns. GPU time alone: steps between two synchronisations.
"""

import statistics
import sys
import time

import numpy as np
import torch

import weft
from arrays import copy_parameters, resnet9, torch_mlp
from weft import nn, optim

ADAM = "--adam" in sys.argv
DEVICE = "cuda:0"


def weft_mlp():
    d = DEVICE
    return nn.Sequential(
        nn.Linear(784, 1024, device=d),
        nn.ReLU(),
        nn.Linear(1024, 1024, device=d),
        nn.ReLU(),
        nn.Linear(1024, 10, device=d),
    )


CASES = {
    "mlp": (weft_mlp, torch_mlp, (256, 784)),
    "resnet9": (lambda: resnet9(weft), lambda: resnet9(torch).cuda(), (128, 3, 32, 32)),
}


def weft_step(theirs, make, x, labels):
    model = make()
    copy_parameters(model, theirs)
    p = model.parameters()
    opt = optim.Adam(p, lr=1e-3) if ADAM else optim.SGD(p, lr=0.01, momentum=0.9)

    def step(x, y):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        return loss

    return model, opt, step


def torch_step(model, compiled):
    p = list(model.parameters())
    opt = torch.optim.Adam(p, lr=1e-3, capturable=compiled) if ADAM else torch.optim.SGD(p, lr=0.01, momentum=0.9)  # fmt: skip
    loss_of = lambda x, y: torch.nn.functional.cross_entropy(model(x), y)  # noqa: E731
    update = opt.step
    if compiled:
        loss_of = torch.compile(loss_of, mode="reduce-overhead")

    def step(x, y):
        if compiled:
            torch.compiler.cudagraph_mark_step_begin()
        loss = loss_of(x, y)
        loss.backward()
        update()
        opt.zero_grad()
        return loss

    return step


def run(name):
    make, make_torch, shape = CASES[name]
    torch.manual_seed(0)
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    labels = np.random.default_rng(1).integers(0, 10, shape[0])
    first = make_torch()
    start = {k: v.clone() for k, v in first.state_dict().items()}
    wx = weft.Tensor(weft.asarray(x, device=DEVICE), requires_grad=False)
    wl = weft.asarray(labels, device=DEVICE)
    tx, tl = torch.from_numpy(x).cuda(), torch.from_numpy(labels).cuda()
    _, _, eager = weft_step(first, make, x, labels)
    model, opt, step = weft_step(first, make, x, labels)
    captured = weft.capture(step, state=(model, opt))
    sides = {"weft eager": lambda: eager(wx, wl), "weft captured": lambda: captured(wx, wl)}
    for kind, compiled in (("torch eager", False), ("torch reduce-overhead", True)):
        m = make_torch()
        m.load_state_dict(start)
        f = torch_step(m, compiled)
        sides[kind] = lambda f=f: f(tx, tl)
    losses = {k: [float(f().item()) for _ in range(10)] for k, f in sides.items()}
    want = losses["torch eager"]
    for k, got in losses.items():
        print(f"{name} {k}: losses within {max(abs(a - b) for a, b in zip(got, want)) / abs(want[0]):.1e}", flush=True)  # fmt: skip
    print("launches of a replay", captured.launches)
    device, times = weft.device(DEVICE), {k: [] for k in sides}
    for _ in range(7):
        for k, f in sides.items():
            device.synchronize(), torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(30):
                f()
            device.synchronize(), torch.cuda.synchronize()
            times[k].append((time.perf_counter() - begin) / 30)
    t = {k: statistics.median(v) for k, v in times.items()}
    mine = t["weft captured"]
    print(f"{name} step: " + ", ".join(f"{k} {v * 1e6:.0f} us ({v / mine:.2f} of captured)" for k, v in t.items()), flush=True)  # fmt: skip
    graph = next(r for e in captured._entries.values() for r in e.recordings).recording
    device.synchronize()
    begin = time.perf_counter()
    for _ in range(50):
        graph.replay()
    device.synchronize()
    print(f"{name} replay alone: {(time.perf_counter() - begin) / 50 * 1e6:.0f} us", flush=True)


if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for case in [a for a in sys.argv[1:] if not a.startswith("-")] or CASES:
        run(case)
