# SPDX-License-Identifier: Apache-2.0
"""Sorting, scans, selection, gather and scatter on a CUDA card beside PyTorch: bench/gpu/algorithms.py [--json F]

Every case is checked against PyTorch before it is timed. Samples are interleaved; figures are medians of wall time.
A call that gives its number of results to the host waits for the card on both sides.
"""

import argparse
import json
import statistics
import time

import torch
from timing import seconds as sample

import weft
from weft import nn


class Bench:
    def __init__(self, seconds):
        self.device, self.rows, self.seconds = weft.device("cuda:0"), [], seconds

    def case(self, name, floor, ours, rival, check):
        """Checks check(ours(), rival()), then times both in turns for about `seconds`."""
        row = dict(name=name, floor=floor)
        self.rows.append(row)
        try:
            start = time.perf_counter()
            mine = ours()
            self.device.synchronize()
            row["first"] = time.perf_counter() - start
            row["right"] = bool(check(mine, rival()))
            del mine
            once = max(
                sample(ours, self.device.synchronize, 1), sample(rival, torch.cuda.synchronize, 1)
            )
            rounds = 7
            number = max(1, min(50, int(self.seconds / (2 * rounds * once))))
            a, b = [], []
            for _ in range(rounds):
                a.append(sample(ours, self.device.synchronize, number))
                b.append(sample(rival, torch.cuda.synchronize, number))
            row.update(seconds=statistics.median(a), rival=statistics.median(b))
            row["ratio"] = row["rival"] / row["seconds"]
        except Exception as e:  # a case that fails is a row with its reason
            row["reason"] = f"{type(e).__name__}: {e}".splitlines()[0][:150]

    def table(self):
        print(f"{'case':<36}{'ours us':>10}{'torch us':>10}{'ratio':>8}{'floor':>7}  first s")
        for r in self.rows:
            if "reason" in r:
                print(f"{r['name']:<36} {r['reason']}")
                continue
            marks = ("" if r["right"] else " WRONG") + (" short" if r["ratio"] < r["floor"] else "")
            print(
                f"{r['name']:<36}{r['seconds'] * 1e6:>10.1f}{r['rival'] * 1e6:>10.1f}{r['ratio']:>8.3f}{r['floor']:>7}  {r['first']:.2f}{marks}"
            )


def same(a, b):
    return torch.equal(torch.from_dlpack(a), b)


def near(a, b, tolerance=1e-4):
    a, b = torch.from_dlpack(a).double(), b.double()
    return (a - b).norm() <= tolerance * b.norm()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=0.4)
    options = parser.parse_args()
    bench = Bench(options.seconds)
    torch.manual_seed(0)
    n = 1 << 24
    give = weft.from_dlpack
    x = torch.randn(n, device="cuda")
    big = torch.randint(-(1 << 62), 1 << 62, (n,), device="cuda")
    wx, wbig = give(x), give(big)
    stable = dict(stable=True)
    bench.case("sort 2^24 float32", 1.0, lambda: weft.sort(wx), lambda: torch.sort(x)[0], same)
    bench.case(
        "argsort 2^24 float32",
        1.0,
        lambda: weft.argsort(wx),
        lambda: torch.argsort(x, **stable),
        same,
    )
    bench.case("sort 2^24 int64", 1.0, lambda: weft.sort(wbig), lambda: torch.sort(big)[0], same)
    few = big[: 1 << 20] % 100_000
    wfew = give(few)
    bench.case(
        "unique 2^20", 0.8, lambda: weft.unique_values(wfew), lambda: torch.unique(few), same
    )
    square = x.reshape(4096, 4096)
    ws = give(square)
    bench.case(
        "sort 4096 x 4096 rows", 1.0, lambda: weft.sort(ws), lambda: torch.sort(square)[0], same
    )
    bench.case(
        "topk 64 of 4096 x 4096",
        0.8,
        lambda: weft.topk(ws, 64).values,
        lambda: torch.topk(square, 64)[0],
        same,
    )
    for name, a, wa, axis in (
        ("2^24", x, wx, 0),
        ("4096^2 axis 0", square, ws, 0),
        ("4096^2 axis 1", square, ws, 1),
    ):
        bench.case(
            f"cumulative sum {name}",
            1.0,
            lambda: weft.cumulative_sum(wa, axis=axis),
            lambda: torch.cumsum(a, axis),
            near,
        )
    mask = x > 0.5
    wm = give(mask.view(torch.uint8)).astype("bool")
    bench.case("x[mask] 2^24", 1.0, lambda: wx[wm], lambda: x[mask], same)
    bench.case(
        "nonzero 2^24", 0.8, lambda: weft.nonzero(wm)[0], lambda: torch.nonzero(mask)[:, 0], same
    )
    index = torch.randint(0, n, (n,), device="cuda")
    wi = give(index)
    bench.case(
        "take 2^24", 0.8, lambda: weft.take(wx, wi, axis=0), lambda: torch.take(x, index), same
    )
    bench.case("x[index] 2^24", 0.8, lambda: wx[wi], lambda: x[index], same)
    places = torch.sort(x[: 1 << 20])[0]
    wp = give(places)
    bench.case(
        "searchsorted 2^24 in 2^20",
        0.8,
        lambda: weft.searchsorted(wp, wx),
        lambda: torch.searchsorted(places, x),
        same,
    )
    small = torch.randint(0, 1000, (1 << 22,), device="cuda")
    wsmall = give(small)
    tsmall = weft.Tensor(wsmall, requires_grad=False)
    bench.case(
        "bincount of 2^22 in 1000",
        0.8,
        lambda: tsmall.bincount(),
        lambda: torch.bincount(small),
        same,
    )

    table = torch.randn(50257, 768, device="cuda", requires_grad=True)
    token = torch.randint(0, 50257, (8, 512), device="cuda")
    wtable, wtoken = weft.Tensor(give(table.detach())), give(token)
    g = torch.randn(8, 512, 768, device="cuda")
    wg = weft.Tensor(give(g), requires_grad=False)
    bench.case(
        "embedding forward",
        0.8,
        lambda: nn.functional.embedding(wtable, wtoken).data,
        lambda: torch.nn.functional.embedding(token, table).detach(),
        same,
    )

    def back(ours):
        if ours:
            wtable.grad = None
            (nn.functional.embedding(wtable, wtoken) * wg).sum().backward()
            return wtable.grad.data
        table.grad = None
        (torch.nn.functional.embedding(token, table) * g).sum().backward()
        return table.grad

    bench.case("embedding with gradient", 0.8, lambda: back(True), lambda: back(False), near)
    images = torch.randn(64, 64, 112, 112, device="cuda", requires_grad=True)
    wimages = weft.Tensor(give(images.detach()))
    for kernel, stride, padding in ((3, 2, 1), (2, 2, 0)):

        def ours():
            wimages.grad = None
            nn.functional.max_pool2d(wimages, kernel, stride, padding).sum().backward()
            return wimages.grad.data

        def rival():
            images.grad = None
            torch.nn.functional.max_pool2d(images, kernel, stride, padding).sum().backward()
            return images.grad

        bench.case(f"max_pool2d {kernel} step {stride} with gradient", 0.8, ours, rival, same)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(bench.rows, f, indent=1)
    bench.table()


if __name__ == "__main__":
    main()
