# SPDX-License-Identifier: Apache-2.0
"""Eager arrays and training steps on a CUDA card beside PyTorch in the same run: bench/gpu/arrays.py [--json F]

Every case is checked against PyTorch before it is timed. Samples are interleaved; figures are medians of wall time
over enough calls that one synchronisation at the end does not matter. TF32 is off on both sides.
"""

import argparse
import json
import statistics
import traceback

import numpy as np
import torch
from timing import sample

import weft
from weft import nn, optim


class Bench:
    def __init__(self):
        self.device = weft.device("cuda:0")
        self.rows = []

    def case(self, name, ours, rival, error, number=20, rounds=7, unit=None, work=0.0):
        mine, theirs, issued = [], [], []
        sample(ours, self.device.synchronize, 3), sample(rival, torch.cuda.synchronize, 3)
        for _ in range(rounds):
            t, host = sample(ours, self.device.synchronize, number)
            mine.append(t)
            issued.append(host)
            theirs.append(sample(rival, torch.cuda.synchronize, number)[0])
        a, b = statistics.median(mine), statistics.median(theirs)
        row = dict(
            name=name, seconds=a, rival=b, ratio=b / a, error=error, host=statistics.median(issued)
        )
        if unit:
            row.update(rate=work / a, unit=unit)
        self.rows.append(row)
        rate = f"{work / a:8.2f} {unit}" if unit else ""
        print(
            f"{name:<34} {a * 1e6:10.2f} us (issued in {row['host'] * 1e6:8.2f})  torch {b * 1e6:10.2f}  ratio {b / a:6.3f} {rate}  error {error:.1e}",
            flush=True,
        )

    def attempt(self, f, *args):
        """A case that fails is a row with the reason, not the end of the run."""
        try:
            f(*args)
        except Exception as problem:  # noqa: BLE001
            traceback.print_exc()
            self.rows.append(dict(name=f.__name__, failed=str(problem)))

    def pair(self, *shape):
        t = torch.randn(*shape, device="cuda")
        return weft.from_dlpack(t), t


def error_of(ours, theirs):
    """Largest difference over the largest value; on the card when it is big."""
    mine = torch.from_dlpack(ours) if ours.size > 1 << 22 else torch.from_numpy(ours.numpy()).cuda()
    top = theirs.abs().max().item() or 1.0
    return float((mine.reshape(theirs.shape) - theirs).abs().max().item() / top)


def small(bench):
    a, ta = bench.pair(16)
    bench.case(
        "a + b, 16 elements", lambda: a + a, lambda: ta + ta, error_of(a + a, ta + ta), 20000
    )
    bench.case("a + 2.0, 16", lambda: a + 2.0, lambda: ta + 2.0, error_of(a + 2.0, ta + 2.0), 20000)
    bench.case(
        "sum, 16", lambda: weft.sum(a), lambda: ta.sum(), error_of(weft.sum(a), ta.sum()), 3000
    )
    p = weft.Tensor(a)
    q = ta.clone().requires_grad_()
    bench.case(
        "autograd add, 16", lambda: p + p, lambda: q + q, error_of((p + p).data, ta + ta), 3000
    )


def elementwise(bench, log):
    n = 1 << log
    (a, ta), (b, tb) = bench.pair(n), bench.pair(n)
    tbs = dict(unit="TB/s", number=10)
    bench.case(
        f"a + b, 2^{log}",
        lambda: a + b,
        lambda: ta + tb,
        error_of(a + b, ta + tb),
        work=12e-12 * n,
        **tbs,
    )
    bench.case(
        f"exp, 2^{log}",
        lambda: weft.exp(a),
        lambda: torch.exp(ta),
        error_of(weft.exp(a), torch.exp(ta)),
        work=8e-12 * n,
        **tbs,
    )
    bench.case(
        f"tanh, 2^{log}",
        lambda: weft.tanh(a),
        lambda: torch.tanh(ta),
        error_of(weft.tanh(a), torch.tanh(ta)),
        work=8e-12 * n,
        **tbs,
    )
    m, tm = a.reshape(1 << (log - 12), 4096), ta.reshape(-1, 4096)
    r, tr = b[:4096], tb[:4096]
    bench.case(
        f"row broadcast add, 2^{log}",
        lambda: m + r,
        lambda: tm + tr,
        error_of(m + r, tm + tr),
        work=8e-12 * n,
        **tbs,
    )


def sums(bench, log):
    n = 1 << log
    a, ta = bench.pair(n)
    tbs = dict(unit="TB/s", number=10, work=4e-12 * n)
    want = ta.sum(dtype=torch.float64)
    got = torch.tensor(float(weft.sum(a).item()), device="cuda")
    scale = float(ta.abs().sum(dtype=torch.float64))
    bench.case(
        f"sum, 2^{log}",
        lambda: weft.sum(a),
        lambda: ta.sum(),
        float((got - want).abs()) / scale,
        **tbs,
    )
    m, tm = a.reshape(1 << (log - 12), 4096), ta.reshape(-1, 4096)
    for axis in (0, 1):
        bench.case(
            f"sum axis {axis} of (2^{log - 12}, 4096)",
            lambda: weft.sum(m, axis=axis),
            lambda: tm.sum(axis),
            error_of(weft.sum(m, axis=axis), tm.sum(axis)),
            **tbs,
        )


def rows(bench, columns):
    n = 1 << 27
    a, ta = bench.pair(n // columns, columns)
    w, tw = bench.pair(columns)
    tbs = dict(unit="TB/s", number=10, work=8e-12 * n)
    bench.case(
        f"softmax, rows of {columns}",
        lambda: weft.softmax(a),
        lambda: torch.softmax(ta, 1),
        error_of(weft.softmax(a), torch.softmax(ta, 1)),
        **tbs,
    )
    f = lambda: weft.layer_norm(a, w, w)
    g = lambda: torch.nn.functional.layer_norm(ta, (columns,), tw, tw)
    bench.case(f"layer norm, rows of {columns}", f, g, error_of(f(), g()), **tbs)


def products(bench, m, n, k, layout="NN"):
    """Layout T: the operand is the transpose of a compact array."""
    a, ta = bench.pair(*((k, m) if layout[0] == "T" else (m, k)))
    b, tb = bench.pair(*((n, k) if layout[1] == "T" else (k, n)))
    if layout[0] == "T":
        a, ta = a.T, ta.T
    if layout[1] == "T":
        b, tb = b.T, tb.T
    size = f"{m}" if m == n == k else f"{m}x{n}x{k}"
    bench.case(
        f"matmul float32 {size}{'' if layout == 'NN' else ' ' + layout}",
        lambda: a @ b,
        lambda: ta @ tb,
        error_of(a @ b, ta @ tb),
        number=20 if m * n * k > 1 << 28 else 400,
        unit="TFLOP/s",
        work=2e-12 * m * n * k,
    )


def batched(bench, batch, n):
    (a, ta), (b, tb) = bench.pair(batch, n, n), bench.pair(batch, n, n)
    bench.case(
        f"matmul float32 {batch} of {n}",
        lambda: a @ b,
        lambda: ta @ tb,
        error_of(a @ b, ta @ tb),
        unit="TFLOP/s",
        work=2e-12 * batch * n**3,
    )


PRODUCTS = (
    *((n, n, n) for n in (128, 256, 512, 1024, 2048, 4096)),
    (1000, 1001, 999),
    (4096, 4096, 4096, "NT"),
    (4096, 4096, 4096, "TN"),
    (256, 1024, 784),
    (1024, 784, 256, "TN"),
    (256, 10, 1024),
    (64, 64, 100000),
    (100000, 64, 64),
    (4096, 1, 4096),
)


def convolution(bench):
    x, tx = bench.pair(128, 32, 32, 32)
    w, tw = bench.pair(64, 32, 3, 3)
    p, q = weft.Tensor(x, requires_grad=False), weft.Tensor(w, requires_grad=False)
    f = lambda: weft.nn.functional.conv2d(p, q, padding=1)
    g = lambda: torch.nn.functional.conv2d(tx, tw, padding=1)
    bench.case(
        "conv 32->64 3x3, 32x32, b128",
        f,
        g,
        error_of(f().data, g()),
        unit="TFLOP/s",
        work=2e-12 * 128 * 64 * 32 * 9 * 1024,
    )


def torch_mlp():
    return torch.nn.Sequential(
        torch.nn.Linear(784, 1024),
        torch.nn.ReLU(),
        torch.nn.Linear(1024, 1024),
        torch.nn.ReLU(),
        torch.nn.Linear(1024, 10),
    ).cuda()


def conv_bn(i, o, k, s, side, dtype):
    if side is torch:
        return torch.nn.Sequential(
            torch.nn.Conv2d(i, o, k, s, (k - 1) // 2), torch.nn.BatchNorm2d(o), torch.nn.ReLU()
        )
    d = dict(device="cuda:0", dtype=dtype)
    return nn.Sequential(
        nn.Conv2d(i, o, k, s, (k - 1) // 2, **d), nn.BatchNorm2d(o, **d), nn.ReLU()
    )


def resnet9(side, dtype=None):
    """needle's ResNet-9 for (3, 32, 32)."""
    lib = torch.nn if side is torch else nn
    extra = {} if side is torch else {"device": "cuda:0", "dtype": dtype}

    class Residual(lib.Module):
        def __init__(self, body):
            super().__init__()
            self.body = body

        def forward(self, x):
            return self.body(x) + x

    def block(*args):
        return conv_bn(*args, side, dtype)

    return lib.Sequential(
        block(3, 16, 7, 4), block(16, 32, 3, 2),
        Residual(lib.Sequential(block(32, 32, 3, 1), block(32, 32, 3, 1))),
        block(32, 64, 3, 2), block(64, 128, 3, 2),
        Residual(lib.Sequential(block(128, 128, 3, 1), block(128, 128, 3, 1))),
        lib.Flatten(), lib.Linear(128, 128, **extra), lib.ReLU(), lib.Linear(128, 10, **extra),
    )  # fmt: skip


def copy_parameters(model, theirs):
    """PyTorch's start values; its Linear keeps the transposed weight."""
    mine = model.parameters()
    assert len(mine) == len(list(theirs.parameters()))
    for p, t in zip(mine, theirs.parameters()):
        value = t.detach().cpu().numpy()
        p.data = weft.asarray(
            np.ascontiguousarray(value.T) if value.ndim == 2 else value, device="cuda:0"
        )


def training(bench, name, model, theirs, shape, rounds=5):
    copy_parameters(model, theirs)
    batch = shape[0]
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    labels = np.random.default_rng(1).integers(0, 10, batch)
    hot = np.eye(10, dtype=np.float32)[labels]
    wx = weft.Tensor(weft.asarray(x, device="cuda:0"), requires_grad=False)
    wh = weft.Tensor(weft.asarray(hot, device="cuda:0"), requires_grad=False)
    tx, tl = torch.from_numpy(x).cuda(), torch.from_numpy(labels).cuda()
    mine, other = (
        optim.Adam(model.parameters(), lr=1e-3),
        torch.optim.Adam(theirs.parameters(), lr=1e-3),
    )
    losses = [[], []]

    def ours():
        mine.zero_grad()
        loss = -(model(wx).log_softmax(-1) * wh).sum() * (1.0 / batch)
        loss.backward()
        mine.step()
        return loss

    def rival():
        other.zero_grad()
        loss = torch.nn.functional.cross_entropy(theirs(tx), tl)
        loss.backward()
        other.step()
        return loss

    weft_device = bench.device
    for _ in range(10):
        losses[0].append(float(ours().item()))
        losses[1].append(float(rival().item()))
    error = max(abs(a - b) for a, b in zip(*losses)) / abs(losses[1][0])
    print(name, "losses", [round(v, 4) for v in losses[0]], [round(v, 4) for v in losses[1]])
    weft_device.clear_stats() if hasattr(weft_device, "clear_stats") else None
    before = weft_device.stats() if hasattr(weft_device, "stats") else {}
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    base = torch.cuda.memory_allocated()
    ours()
    after = weft_device.stats() if hasattr(weft_device, "stats") else {}
    rival()
    memory = (after.get("bytes.peak", 0), torch.cuda.max_memory_allocated())
    bench.case(
        f"{name} training step",
        lambda: ours() and None,
        lambda: rival() and None,
        error,
        20,
        rounds,
    )
    bench.rows[-1].update(peak_bytes=memory[0], rival_peak_bytes=memory[1])
    print(
        f"  peak bytes: {memory[0]} against torch {memory[1]} (of which before the step {before.get('bytes.live', 0)} and {base})"
    )


def mlp_step(bench):
    d = "cuda:0"
    model = nn.Sequential(
        nn.Linear(784, 1024, device=d),
        nn.ReLU(),
        nn.Linear(1024, 1024, device=d),
        nn.ReLU(),
        nn.Linear(1024, 10, device=d),
    )
    training(bench, "MLP b256", model, torch_mlp(), (256, 784))


def resnet_step(bench):
    training(bench, "ResNet-9 b128", resnet9(weft), resnet9(torch).cuda(), (128, 3, 32, 32))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a look")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    print(torch.cuda.get_device_name(0), "torch", torch.__version__)
    bench = Bench()
    bench.attempt(small, bench)
    bench.attempt(elementwise, bench, 24 if args.quick else 28)
    bench.attempt(sums, bench, 26 if args.quick else 30)
    for columns in (1000, 1023, 1024, 4096, 4097, 16384, 50257):
        bench.attempt(rows, bench, columns)
    for shape in PRODUCTS:
        bench.attempt(products, bench, *shape)
    bench.attempt(batched, bench, 64, 256)
    bench.attempt(convolution, bench)
    bench.attempt(mlp_step, bench)
    bench.attempt(resnet_step, bench)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(dict(card=torch.cuda.get_device_name(0), rows=bench.rows), file, indent=1)


if __name__ == "__main__":
    main()
