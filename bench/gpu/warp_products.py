# SPDX-License-Identifier: Apache-2.0
"""Warp-specialized products made by schedule steps (examples/tensorir/warp_specialized.py) beside torch in the same run.

Samples are interleaved, figures are medians. Each product is checked against a float32 product of the same operands
before it is timed. The last column is the array library's product of the same operands."""

import argparse
import statistics

import halves
import ladder
import torch
import warp_specialized
import weft

SQUARE = [
    dict(rows=128, columns=256, stages=4, group_rows=16),
    dict(rows=128, columns=256, stages=4, group_rows=8),
    dict(rows=128, columns=128, stages=6, group_rows=16),
]
# (m, n, k), layout, epilogue
OTHERS = [
    ((4096, 4096, 4096), "NT", None),
    ((4096, 4096, 4096), "TN", None),
    ((4096, 4096, 4096), "TT", None),
    ((4096, 4096, 4096), "NN", "bias"),
    ((4096, 4096, 4096), "NN", "residual"),
    ((4000, 4056, 4072), "NN", None),
    ((8192, 96, 4096), "NN", None),
    ((8192, 160, 4096), "NN", None),
    ((8192, 8192, 64), "NN", None),
    ((1000, 1000, 1000), "NN", None),
    ((300, 4096, 2048), "NT", None),
]


def tile_for(m, n, processors):
    """The tile of least expected time: whole rounds of tiles over the processors."""
    best = None
    for rows, columns, stages, step in (
        (128, 256, 4, 0.65),
        (128, 192, 5, 0.5),
        (128, 128, 6, 0.33),
        (64, 256, 5, 0.36),
        (64, 128, 6, 0.22),
        (64, 64, 8, 0.19),
    ):
        tiles = -(-m // rows) * -(-n // columns)
        cost = -(-tiles // processors) * step
        if best is None or cost < best[0]:
            best = cost, dict(rows=rows, columns=columns, stages=stages, group_rows=16)
    return best[1]


class Case:
    def __init__(self, m, n, k, dtype, layout="NN", epilogue=None):
        torch.manual_seed(m + n + k)
        kind = getattr(torch, dtype)
        self.sizes, self.work = (m, n, k), 2e-12 * m * n * k
        self.name = f"{dtype:<8} {m}x{n}x{k} {layout} {epilogue or ''}"
        a, b = (torch.randn(*s, device="cuda").to(kind) for s in ((m, k), (k, n)))
        self.a, self.b = a, b
        self.A = a.t().contiguous() if layout[0] == "T" else a
        self.B = b.t().contiguous() if layout[1] == "T" else b
        left, right = (
            self.A.t() if layout[0] == "T" else a,
            self.B.t() if layout[1] == "T" else b,
        )
        self.bias = torch.randn(n, device="cuda")
        self.residual = torch.randn(m, n, device="cuda").to(kind)
        self.out = torch.full((m, n), float("nan"), device="cuda", dtype=kind)
        want = a.float() @ b.float()
        more = []
        if epilogue:
            want, more = want + self.bias, [self.bias]
        if epilogue == "residual":
            want, more = torch.relu(want) * 0.5 + self.residual.float(), more + [self.residual]
        self.want = want.double()
        self.args = [weft.from_dlpack(x) for x in (self.A, self.B, *more, self.out)]
        narrow = self.bias.to(kind)

        def rival():
            if epilogue is None:
                return torch.matmul(left, right, out=self.rival_out)
            x = torch.addmm(narrow, left, right)
            return torch.relu(x) * 0.5 + self.residual if epilogue == "residual" else x

        self.rival_out = torch.empty_like(self.out)
        self.rival = rival
        self.program = warp_specialized.product(m, n, k, dtype, layout, epilogue=epilogue)
        L, R = weft.from_dlpack(left), weft.from_dlpack(right)
        self.array = (lambda: L @ R) if epilogue is None else None

    def run(self, form, blocks):
        f = weft.build(
            warp_specialized.schedule(self.program, blocks=blocks, **form), target="cuda"
        )["main"]
        self.out.fill_(float("nan"))
        torch.cuda.synchronize()
        f(*self.args)
        weft.device("cuda").sync() if hasattr(weft.device("cuda"), "sync") else None
        error = halves.error_of(self.args[-1], self.want)
        assert error < 5e-3, (self.name, form, error)
        number = max(3, min(40, int(4e-3 / (self.work / 600))))
        ours, rival = ladder.interleave(
            lambda times: f.time(*self.args, number=times, repeat=1).median,
            self.rival,
            rounds=7,
            number=number,
        )
        array = ""
        if self.array:
            self.array()
            both = halves.beside(self.array, self.rival, number, 5)
            array = f" array {both[1] / both[0]:5.3f}"
        text = " ".join(f"{k} {v}" for k, v in form.items())
        print(
            f"{self.name:<36} {text:<44} {ours * 1e6:8.1f} us {self.work / ours:6.1f} TFLOP/s  torch {rival * 1e6:8.1f}"
            f"  ratio {rival / ours:5.3f}{array}  error {error:.1e}",
            flush=True,
        )
        return rival / ours


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="2048,4096,8192")
    args = parser.parse_args()
    halves.busy = torch.randn(8192, 8192, device="cuda").to(torch.bfloat16)
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    print(torch.cuda.get_device_name(0), "torch", torch.__version__)
    ratios = []

    def attempt(make, form):
        try:
            case = make()
            ratios.append(case.run(form or tile_for(*case.sizes[:2], processors), processors))
        except Exception as e:  # one case must not lose the rest
            print("FAILED", type(e).__name__, str(e)[:1200], flush=True)

    for shape, layout, epilogue in OTHERS:
        attempt(lambda: Case(*shape, "bfloat16", layout, epilogue), None)
    for dtype in ("float16", "bfloat16"):
        for n in map(int, args.sizes.split(",")):
            for form in SQUARE[: 1 if dtype == "float16" else None]:
                attempt(lambda: Case(n, n, n, dtype), form)
    print(f"geometric mean {statistics.geometric_mean(ratios):.3f}, least {min(ratios):.3f}")


if __name__ == "__main__":
    main()
