# SPDX-License-Identifier: Apache-2.0
"""Operations of every day on 10^7 and 10^4 elements beside NumPy and torch in one run; medians (beside.py says how).

PYTHONPATH=python python bench/array/everyday.py [--threads N] [--size N] [--only TEXT ...] [--json F]

The ratio is the best rival's time divided by ours.
"""

import argparse
import json

from beside import Bench  # first: it tells NumPy how many threads to have

import numpy as np

import weft

try:
    import torch
except ImportError:
    torch = None


class Data:
    """The same numbers for all three libraries: attributes n<name>, w<name>, t<name>."""

    def __init__(self, size):
        rng = np.random.default_rng(0)
        self.size, self.columns = size, 100 if size < 10**6 else 1000
        self.add("x", rng.random(size, dtype="float32") + np.float32(0.1))
        self.add("y", rng.random(size, dtype="float32") + np.float32(0.1))
        self.add("d", rng.random(size) + 0.1)
        self.add("i", rng.integers(-1000, 1000, size, dtype="int32"))
        self.add("l", rng.integers(-1000, 1000, size, dtype="int64"))
        self.add("u", rng.integers(0, 255, size, dtype="uint8"))
        self.add("h", (rng.random(size, dtype="float32") + np.float32(0.1)).astype("float16"))
        self.add("k", rng.integers(0, size, size))
        self.add("mask", rng.random(size) < 0.5)
        self.add("f", np.zeros(size, bool))
        self.add("m", self.nx.reshape(-1, self.columns))
        self.add("z", np.zeros(size, "float32"))

    def add(self, name, array):
        setattr(self, "n" + name, array)
        setattr(self, "w" + name, weft.asarray(array))
        setattr(self, "t" + name, torch.from_numpy(array) if torch else None)


def compare(bench, d, name, ours, numpy, other=None, **options):
    """`other`: torch's name for the same thing, called with torch."""
    bench.case(
        f"{name} {d.size:.0e}".replace("e+0", "e"),
        ours,
        numpy=numpy,
        torch=torch and other,
        **options,
    )


def statistics_(b, d):
    compare(b, d, "mean", lambda: weft.mean(d.wx), lambda: d.nx.mean(), lambda: d.tx.mean())
    compare(b, d, "var", lambda: weft.var(d.wx), lambda: d.nx.var(), lambda: d.tx.var(False))
    for a in (0, 1):
        compare(
            b,
            d,
            f"var axis {a}",
            lambda: weft.var(d.wm, axis=a),
            lambda: d.nm.var(a),
            lambda: d.tm.var(a, False),
        )
    compare(
        b,
        d,
        "std axis 1",
        lambda: weft.std(d.wm, axis=1),
        lambda: d.nm.std(1),
        lambda: d.tm.std(1, False),
    )
    compare(b, d, "min", lambda: weft.min(d.wx), lambda: d.nx.min(), lambda: d.tx.min())
    compare(b, d, "argmax", lambda: weft.argmax(d.wx), lambda: d.nx.argmax(), lambda: d.tx.argmax())
    for a in (0, 1):
        compare(
            b,
            d,
            f"argmax axis {a}",
            lambda: weft.argmax(d.wm, axis=a),
            lambda: d.nm.argmax(a),
            lambda: d.tm.argmax(a),
        )
    compare(
        b,
        d,
        "argmin int32",
        lambda: weft.argmin(d.wi),
        lambda: d.ni.argmin(),
        lambda: d.ti.argmin(),
    )
    compare(b, d, "any bool", lambda: weft.any(d.wf), lambda: d.nf.any(), lambda: d.tf.any())
    compare(b, d, "all float32", lambda: weft.all(d.wx), lambda: d.nx.all())
    compare(
        b,
        d,
        "count_nonzero bool",
        lambda: weft.count_nonzero(d.wmask),
        lambda: np.count_nonzero(d.nmask),
        lambda: torch.count_nonzero(d.tmask),
    )
    compare(b, d, "sum int32", lambda: weft.sum(d.wi), lambda: d.ni.sum(), lambda: d.ti.sum())
    compare(b, d, "sum int64", lambda: weft.sum(d.wl), lambda: d.nl.sum(), lambda: d.tl.sum())
    compare(b, d, "sum uint8", lambda: weft.sum(d.wu), lambda: d.nu.sum(), lambda: d.tu.sum())
    compare(b, d, "max uint8", lambda: weft.max(d.wu), lambda: d.nu.max(), lambda: d.tu.max())
    compare(b, d, "max int64", lambda: weft.max(d.wl), lambda: d.nl.max(), lambda: d.tl.max())
    compare(b, d, "sum float64", lambda: weft.sum(d.wd), lambda: d.nd.sum(), lambda: d.td.sum())
    compare(
        b,
        d,
        "sum float16",
        lambda: weft.sum(d.wh, dtype=weft.float32),
        lambda: d.nh.sum(dtype="float32"),
        lambda: d.th.sum(dtype=torch.float32),
    )
    compare(
        b,
        d,
        "prod float64",
        lambda: weft.prod(d.wd),
        lambda: d.nd.prod(),
        lambda: d.td.prod(),
    )
    compare(
        b,
        d,
        "cumulative_sum",
        lambda: weft.cumulative_sum(d.wd),
        lambda: d.nd.cumsum(),
        lambda: d.td.cumsum(0),
    )
    compare(
        b,
        d,
        "cumulative_sum float32 axis 1",
        lambda: weft.cumulative_sum(d.wm, axis=1),
        lambda: d.nm.cumsum(1),
        lambda: d.tm.cumsum(1),
        tol=1e-3,
    )
    compare(
        b,
        d,
        "cumulative_sum float32 axis 0",
        lambda: weft.cumulative_sum(d.wm, axis=0),
        lambda: d.nm.cumsum(0),
        lambda: d.tm.cumsum(0),
        tol=1e-3,
    )


def order(b, d):
    s = dict(check=True)
    compare(
        b, d, "sort", lambda: weft.sort(d.wx), lambda: np.sort(d.nx), lambda: d.tx.sort()[0], **s
    )
    compare(
        b,
        d,
        "argsort",
        lambda: weft.argsort(d.wx),
        lambda: np.argsort(d.nx, kind="stable"),
        lambda: d.tx.argsort(),
        **s,
    )
    compare(
        b, d, "sort float64", lambda: weft.sort(d.wd), lambda: np.sort(d.nd), lambda: d.td.sort()[0]
    )
    compare(
        b, d, "sort int32", lambda: weft.sort(d.wi), lambda: np.sort(d.ni), lambda: d.ti.sort()[0]
    )
    compare(
        b, d, "sort int64", lambda: weft.sort(d.wk), lambda: np.sort(d.nk), lambda: d.tk.sort()[0]
    )
    compare(
        b, d, "sort uint8", lambda: weft.sort(d.wu), lambda: np.sort(d.nu), lambda: d.tu.sort()[0]
    )
    for a in (0, 1):
        compare(
            b,
            d,
            f"sort axis {a}",
            lambda: weft.sort(d.wm, axis=a),
            lambda: np.sort(d.nm, a),
            lambda: d.tm.sort(a)[0],
        )
    compare(
        b,
        d,
        "unique_values int32",
        lambda: weft.unique_values(d.wi),
        lambda: np.unique(d.ni),
        lambda: d.ti.unique(),
    )
    compare(
        b,
        d,
        "unique_values float32",
        lambda: weft.unique_values(d.wx),
        lambda: np.unique(d.nx),
        lambda: d.tx.unique(),
    )
    compare(
        b,
        d,
        "unique_counts int64",
        lambda: weft.unique_counts(d.wl).counts,
        lambda: np.unique(d.nl, return_counts=True)[1],
        lambda: d.tl.unique(return_counts=True)[1],
    )
    ordered, places = np.sort(d.nx), d.ny
    wo, to = weft.asarray(ordered), torch and torch.from_numpy(ordered)
    compare(
        b,
        d,
        "searchsorted",
        lambda: weft.searchsorted(wo, d.wy),
        lambda: np.searchsorted(ordered, places),
        lambda: torch.searchsorted(to, d.ty),
    )
    if d.size <= 10**6:
        return
    compare(
        b,
        d,
        "topk 10",
        lambda: weft.topk(d.wx, 10).values,
        lambda: np.sort(np.partition(d.nx, -10)[-10:])[::-1],
        lambda: d.tx.topk(10)[0],
    )


def places(b, d):
    n = d.size
    compare(b, d, "x[mask]", lambda: d.wx[d.wmask], lambda: d.nx[d.nmask], lambda: d.tx[d.tmask])
    compare(
        b, d, "nonzero", lambda: weft.nonzero(d.wmask)[0], lambda: d.nmask.nonzero()[0],
        lambda: d.tmask.nonzero()[:, 0],
    )  # fmt: skip
    compare(b, d, "x[index]", lambda: d.wx[d.wk], lambda: d.nx[d.nk], lambda: d.tx[d.tk])
    compare(
        b,
        d,
        "take rows",
        lambda: weft.take(d.wm, d.wk[: n // d.columns] % (n // d.columns), axis=0),
        lambda: d.nm.take(d.nk[: n // d.columns] % (n // d.columns), 0),
        lambda: d.tm.index_select(0, d.tk[: n // d.columns] % (n // d.columns)),
    )
    columns = np.arange(d.columns)[::-1].copy()
    wc, tc = weft.asarray(columns), torch and torch.from_numpy(columns)
    compare(
        b,
        d,
        "take columns",
        lambda: weft.take(d.wm, wc, axis=1),
        lambda: d.nm.take(columns, 1),
        lambda: d.tm.index_select(1, tc),
    )
    order = np.argsort(d.nm, 1)
    wo, to = weft.asarray(order), torch and torch.from_numpy(order)
    compare(
        b,
        d,
        "take_along_axis",
        lambda: weft.take_along_axis(d.wm, wo, axis=1),
        lambda: np.take_along_axis(d.nm, order, 1),
        lambda: d.tm.gather(1, to),
    )

    def assign(target, mask, value):
        target[mask] = value
        return target

    compare(
        b,
        d,
        "x[mask] = 0",
        lambda: assign(d.wz, d.wmask, 0),
        lambda: assign(d.nz, d.nmask, 0),
        lambda: assign(d.tz, d.tmask, 0),
    )
    compare(
        b,
        d,
        "x[index] = y",
        lambda: assign(d.wz, d.wk, d.wy),
        lambda: assign(d.nz, d.nk, d.ny),
        lambda: assign(d.tz, d.tk, d.ty),
    )
    part = slice(1, -1)
    compare(
        b,
        d,
        "x[1:-1] = y",
        lambda: assign(d.wz, part, d.wy[2:]),
        lambda: assign(d.nz, part, d.ny[2:]),
        lambda: assign(d.tz, part, d.ty[2:]),
    )
    step = slice(None, None, 2)
    compare(
        b,
        d,
        "x[::2] = y",
        lambda: assign(d.wz, step, d.wy[::2]),
        lambda: assign(d.nz, step, d.ny[::2]),
        lambda: assign(d.tz, step, d.ty[::2]),
    )
    compare(
        b, d, "x[::2] copy", lambda: d.wx[::2].copy(), lambda: d.nx[::2].copy(), lambda: d.tx[::2].clone()
    )  # fmt: skip
    compare(
        b, d, "x[::-1] copy", lambda: d.wx[::-1].copy(), lambda: d.nx[::-1].copy(), lambda: d.tx.flip(0)
    )  # fmt: skip
    compare(b, d, "copy", lambda: d.wx.copy(), lambda: d.nx.copy(), lambda: d.tx.clone())
    compare(
        b,
        d,
        "where with broadcast",
        lambda: weft.where(d.wm > 0.5, d.wm[0], 0.0),
        lambda: np.where(d.nm > 0.5, d.nm[0], np.float32(0)),
        lambda: torch.where(d.tm > 0.5, d.tm[0], 0.0),
    )
    compare(
        b,
        d,
        "concat",
        lambda: weft.concat([d.wx, d.wy]),
        lambda: np.concatenate([d.nx, d.ny]),
        lambda: torch.cat([d.tx, d.ty]),
    )
    compare(
        b,
        d,
        "stack axis 1",
        lambda: weft.stack([d.wx, d.wy], axis=1),
        lambda: np.stack([d.nx, d.ny], 1),
        lambda: torch.stack([d.tx, d.ty], 1),
    )
    compare(
        b,
        d,
        "concat axis 1",
        lambda: weft.concat([d.wm, d.wm], axis=1),
        lambda: np.concatenate([d.nm, d.nm], 1),
        lambda: torch.cat([d.tm, d.tm], 1),
    )
    compare(
        b, d, "tile", lambda: weft.tile(d.wm, (1, 2)), lambda: np.tile(d.nm, (1, 2)), lambda: d.tm.tile(1, 2)
    )  # fmt: skip
    compare(
        b,
        d,
        "repeat 2",
        lambda: weft.repeat(d.wx, 2),
        lambda: d.nx.repeat(2),
        lambda: d.tx.repeat_interleave(2),
    )
    compare(
        b, d, "roll", lambda: weft.roll(d.wx, 5), lambda: np.roll(d.nx, 5), lambda: d.tx.roll(5)
    )
    compare(
        b,
        d,
        "tril",
        lambda: weft.tril(d.wm),
        lambda: np.tril(d.nm),
        lambda: d.tm.tril(),
    )
    compare(b, d, "diff", lambda: weft.diff(d.wx), lambda: np.diff(d.nx), lambda: d.tx.diff())
    compare(
        b,
        d,
        "pad",
        lambda: weft.pad(d.wm, ((1, 1), (2, 2))),
        lambda: np.pad(d.nm, ((1, 1), (2, 2))),
        lambda: torch.nn.functional.pad(d.tm, (2, 2, 1, 1)),
    )


def creation(b, d):
    n = d.size
    compare(b, d, "arange", lambda: weft.arange(n), lambda: np.arange(n), lambda: torch.arange(n))
    compare(
        b,
        d,
        "linspace float32",
        lambda: weft.linspace(0, 1, n, dtype=weft.float32),
        lambda: np.linspace(0, 1, n, dtype="float32"),
        lambda: torch.linspace(0, 1, n),
        tol=1e-3,
    )
    compare(
        b,
        d,
        "full",
        lambda: weft.full(n, 2.0),
        lambda: np.full(n, np.float32(2)),
        lambda: torch.full((n,), 2.0),
    )
    compare(
        b, d, "ones", lambda: weft.ones(n), lambda: np.ones(n, "float32"), lambda: torch.ones(n)
    )
    compare(
        b,
        d,
        "zeros_like",
        lambda: weft.zeros_like(d.wx),
        lambda: np.full_like(d.nx, 0),
        lambda: torch.zeros_like(d.tx),
    )
    rng = np.random.default_rng(0)
    compare(
        b, d, "random uniform", lambda: weft.random.uniform((n,)), lambda: rng.random(n, dtype="float32"),
        lambda: torch.rand(n), check=False,
    )  # fmt: skip
    compare(
        b, d, "random normal", lambda: weft.random.normal((n,)),
        lambda: rng.standard_normal(n, dtype="float32"), lambda: torch.randn(n), check=False,
    )  # fmt: skip
    compare(
        b,
        d,
        "asarray(numpy) copy",
        lambda: weft.asarray(d.nx, copy=True),
        lambda: d.nx.copy(),
        lambda: torch.tensor(d.nx),
    )
    compare(b, d, "numpy()", lambda: d.wx.numpy(), lambda: d.nx.copy(), lambda: d.tx.numpy().copy())


def values(b, d):
    compare(
        b, d, "clip", lambda: weft.clip(d.wx, 0.3, 0.6), lambda: d.nx.clip(0.3, 0.6), lambda: d.tx.clip(0.3, 0.6)
    )  # fmt: skip
    for tag, name in (("x", "float32"), ("d", "float64"), ("i", "int32"), ("l", "int64"), ("u", "uint8"), ("h", "float16")):  # fmt: skip
        n, w, t = (getattr(d, k + tag) for k in "nwt")
        compare(b, d, f"add {name}", lambda: w + w, lambda: n + n, lambda: t + t)
        compare(b, d, f"multiply {name}", lambda: w * w, lambda: n * n, lambda: t * t, tol=1e-2)
        compare(b, d, f"less {name}", lambda: w < w[::1], lambda: n < n, lambda: t < t)
        compare(
            b,
            d,
            f"maximum {name}",
            lambda: weft.maximum(w, w),
            lambda: np.maximum(n, n),
            lambda: torch.maximum(t, t),
        )
        compare(
            b, d, f"floor_divide {name}", lambda: w // 3, lambda: n // n.dtype.type(3),
            lambda: torch.div(t, 3, rounding_mode="floor"),
        )  # fmt: skip
        compare(b, d, f"abs {name}", lambda: abs(w), lambda: abs(n), lambda: abs(t))
        if name != "float16":
            compare(
                b, d, f"remainder {name}", lambda: w % 3, lambda: n % n.dtype.type(3), lambda: t % 3
            )
    compare(
        b, d, "divide int32", lambda: d.wi / 3.0, lambda: d.ni / np.float32(3), lambda: d.ti / 3.0
    )
    compare(b, d, "exp float64", lambda: weft.exp(d.wd), lambda: np.exp(d.nd), lambda: d.td.exp())
    compare(b, d, "log float64", lambda: weft.log(d.wd), lambda: np.log(d.nd), lambda: d.td.log())
    compare(b, d, "sin", lambda: weft.sin(d.wx), lambda: np.sin(d.nx), lambda: d.tx.sin())
    compare(b, d, "cos float64", lambda: weft.cos(d.wd), lambda: np.cos(d.nd), lambda: d.td.cos())
    compare(b, d, "exp float16", lambda: weft.exp(d.wh), lambda: np.exp(d.nh), tol=1e-2)
    compare(b, d, "expm1", lambda: weft.expm1(d.wx), lambda: np.expm1(d.nx), lambda: d.tx.expm1())
    compare(b, d, "power 2", lambda: d.wx**2, lambda: d.nx**2, lambda: d.tx**2)
    compare(b, d, "power 3", lambda: d.wx**3, lambda: d.nx**3, lambda: d.tx**3)
    compare(b, d, "power 0.5", lambda: d.wx**0.5, lambda: d.nx**0.5, lambda: d.tx**0.5)
    compare(b, d, "power float32", lambda: d.wx**d.wy, lambda: d.nx**d.ny, lambda: d.tx**d.ty)
    compare(b, d, "power float64", lambda: d.wd**1.7, lambda: d.nd**1.7, lambda: d.td**1.7)
    compare(b, d, "power int64 2", lambda: d.wl**2, lambda: d.nl**2, lambda: d.tl**2)
    compare(
        b,
        d,
        "atan2",
        lambda: weft.atan2(d.wx, d.wy),
        lambda: np.arctan2(d.nx, d.ny),
        lambda: torch.atan2(d.tx, d.ty),
    )
    compare(
        b,
        d,
        "hypot",
        lambda: weft.hypot(d.wx, d.wy),
        lambda: np.hypot(d.nx, d.ny),
        lambda: torch.hypot(d.tx, d.ty),
    )
    compare(b, d, "round", lambda: weft.round(d.wx), lambda: np.round(d.nx), lambda: d.tx.round())
    compare(b, d, "floor", lambda: weft.floor(d.wx), lambda: np.floor(d.nx), lambda: d.tx.floor())
    compare(b, d, "sign", lambda: weft.sign(d.wx), lambda: np.sign(d.nx), lambda: d.tx.sign())
    compare(b, d, "isnan", lambda: weft.isnan(d.wx), lambda: np.isnan(d.nx), lambda: d.tx.isnan())
    compare(
        b,
        d,
        "logical_and",
        lambda: weft.logical_and(d.wmask, d.wf),
        lambda: np.logical_and(d.nmask, d.nf),
        lambda: torch.logical_and(d.tmask, d.tf),
    )
    compare(b, d, "invert bool", lambda: ~d.wmask, lambda: ~d.nmask, lambda: ~d.tmask)
    compare(b, d, "bitwise_and int32", lambda: d.wi & 15, lambda: d.ni & 15, lambda: d.ti & 15)
    compare(
        b,
        d,
        "x += y",
        lambda: d.wz.__iadd__(d.wf),
        lambda: d.nz.__iadd__(d.nf),
        lambda: d.tz.__iadd__(d.tf),
    )
    for source, target in (("x", "float16"), ("h", "float32"), ("u", "float32"), ("i", "float32"), ("x", "uint8"), ("d", "float32"), ("l", "float64"), ("x", "bool")):  # fmt: skip
        n, w, t = (getattr(d, k + source) for k in "nwt")
        compare(
            b, d, f"{n.dtype} to {target}", lambda: w.astype(target), lambda: n.astype(target),
            lambda: t.to(getattr(torch, target)), tol=1e-2,
        )  # fmt: skip


def complex_(b, d):
    """Numbers (re, im) of both sizes, a tenth as many: they are up to four times as long."""
    rng = np.random.default_rng(1)
    n = max(d.size // 10, 10**4)
    for name in ("complex64", "complex128"):
        part = "float32" if name == "complex64" else "float64"
        x, y = ((rng.random(2 * n) + 0.1).astype(part).view(name) for _ in range(2))
        wx, wy = weft.asarray(x), weft.asarray(y)
        tx, ty = (torch.from_numpy(x), torch.from_numpy(y)) if torch else (None, None)
        for what, ours, numpy, other in (
            ("add", lambda: wx + wy, lambda: x + y, lambda: tx + ty),
            ("multiply", lambda: wx * wy, lambda: x * y, lambda: tx * ty),
            ("multiply by a number", lambda: wx * (1 + 2j), lambda: x * x.dtype.type(1 + 2j), lambda: tx * (1 + 2j)),
            ("divide", lambda: wx / wy, lambda: x / y, lambda: tx / ty),
            ("abs", lambda: weft.abs(wx), lambda: np.abs(x), lambda: tx.abs()),
            ("sum", lambda: weft.sum(wx), lambda: x.sum(), lambda: tx.sum()),
            ("cumulative_sum", lambda: weft.cumulative_sum(wx), lambda: x.cumsum(), lambda: tx.cumsum(0)),
            ("sqrt", lambda: weft.sqrt(wx), lambda: np.sqrt(x), lambda: tx.sqrt()),
            ("exp", lambda: weft.exp(wx), lambda: np.exp(x), lambda: tx.exp()),
            ("log", lambda: weft.log(wx), lambda: np.log(x), lambda: tx.log()),
            ("sin", lambda: weft.sin(wx), lambda: np.sin(x), lambda: tx.sin()),
            ("tanh", lambda: weft.tanh(wx), lambda: np.tanh(x), lambda: tx.tanh()),
            ("asin", lambda: weft.asin(wx), lambda: np.arcsin(x), lambda: tx.asin()),
            ("pow", lambda: wx**wy, lambda: x**y, lambda: tx**ty),
        ):  # fmt: skip
            compare(b, d, f"{what} {name}", ours, numpy, other)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--size", type=int, nargs="*", default=[10_000, 10_000_000])
    parser.add_argument("--seconds", type=float, default=0.3, help="for each case, about")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--group", nargs="*", default=[])
    options = parser.parse_args()
    weft.set_threads(options.threads)
    if torch:
        torch.set_num_threads(options.threads)
    bench = Bench(options.only, options.seconds, 0.15 if options.threads > 1 else 0.0, 2)
    for size in options.size:
        data = Data(size)
        for group in (statistics_, order, places, creation, values, complex_):
            if not options.group or group.__name__.strip("_") in options.group:
                group(bench, data)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(dict(threads=options.threads, rows=bench.rows), file, indent=1)


if __name__ == "__main__":
    main()
