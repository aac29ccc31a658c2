# SPDX-License-Identifier: Apache-2.0
"""Forms of the programs of attention that no rule chooses yet, beside those that one does: results first, then times.

    python bench/gpu/attention_variants.py

- gradient: dq added up by threads (the present form), by bulk copies, and with its products last in each step.
- forward: the present program and the persistent one, with two to four groups.
- float32: all gradients in one pass beside one pass for queries and one for keys; tiles of several sizes.
"""

import math
import re
import statistics
import time

import numpy as np
import weft
from weft import _core

D = weft.device("cuda:0")
PROCESSORS = 132
CAUSAL = -(2**30)


def timed(f, count=8):
    f(), D.synchronize()
    samples = []
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(count):
            f()
        D.synchronize()
        samples.append((time.perf_counter() - start) / count)
    return statistics.median(samples)


def late(text):
    """The products of dq last: the other group's part is waited for while dk and the next scores are made."""
    i = text.index("                    T.meet(7, 256)\n")
    j = text.index(
        '                    with T.async_("wgmma", scored):\n                        T.tile_multiply(T.address_of(DK'
    )
    part, text = text[i:j], text[:i] + text[j:]
    k = re.search(r"                    T\.wait\(scored, [23]\)\n", text)
    return text[: k.start()] + part + "                    T.wait(scored, 0)\n" + text[k.end() :]


class Case:
    """Operands on the card, and results of the default programs."""

    def __init__(self, batch, heads, n, width, causal, dtype="bfloat16"):
        self.shape, self.causal, self.dtype = (batch, heads, n, width), causal, dtype
        rng = np.random.default_rng(0)
        self.q, self.k, self.v, self.g = (
            weft.asarray(rng.standard_normal(self.shape, dtype="float32")).astype(dtype).to(D)
            for _ in range(4)
        )
        self.scale, self.band = 1 / math.sqrt(width), (CAUSAL, 0) if causal else None
        options = {"band": self.band, "scale": self.scale}
        self.out, self.sums = _core._attention_forward(self.q, self.k, self.v, **options)
        self.gradients = _core._attention_backward(
            self.g, self.q, self.k, self.v, self.out, self.sums, **options
        )
        self.work = 4.0 * batch * heads * n * n * width * (0.5 if causal else 1)

    def empty(self, like):
        return weft.zeros(like.shape, dtype=like.dtype, device=D)

    def numbers(self, blocks, tiles, more=()):
        batch, heads, n, width = self.shape
        return [blocks, tiles, batch, heads, 1, n, n, *more] + [
            heads * n * width,
            n * width,
            width,
        ] * 4

    def tail(self):
        return ([-2 * self.shape[2], 0] if self.causal else []) + [self.scale]

    def report(self, name, run, got, want, factor):
        try:
            run()
            errors = []
            for x, y in zip(got, want):
                a, b = (z.astype("float32").numpy().astype("float64").reshape(-1) for z in (x, y))
                errors.append(float(np.linalg.norm(a - b) / np.linalg.norm(b)))
            seconds = timed(run)
        except weft.Error as e:
            return print(f"  {name}: {e}", flush=True)
        good = all(e < (2e-5 if self.dtype == "float32" else 1e-2) for e in errors)
        print(
            f"  {name}: {seconds * 1e6:.0f} us, {factor * self.work / seconds / 1e12:.0f} TFLOP/s, {'right' if good else f'WRONG {errors}'}",
            flush=True,
        )


def build(text):
    return weft.build(_core.parse_func(text), target="cuda")


def forward(case, kind, **form):
    batch, heads, n, width = case.shape
    tiles = -(-n // (64 * form["groups"]))
    f = build(_core._attention_tiles(kind, case.dtype, width, width, band=case.causal, **form))
    out, sums = case.empty(case.out), case.empty(case.sums)
    total = tiles * batch * heads
    together = max(1, min(batch * heads, (16 << 20) // (n * width * 4)))
    persistent = kind == "persistent"
    numbers = case.numbers(
        min(PROCESSORS, total) if persistent else total, tiles, [together] if persistent else []
    )
    arguments = [case.q, case.k, case.v, out, sums, *numbers, *case.tail()]
    flat = [x.reshape(-1) if isinstance(x, weft.NDArray) else x for x in arguments]
    case.report(f"{kind} {form}", lambda: f(*flat), [out, sums], [case.out, case.sums], 1)


def gradient(case, name, change=None, **form):
    """dk and dv of the program alone; dq by the default's last step is not repeated here."""
    batch, heads, n, width = case.shape
    parts, pieces, tiles = batch * heads * -(-n // 64), -(-width // 64), -(-n // 128)
    stats = weft.zeros((parts * 128,), device=D)
    added = weft.zeros((parts * pieces * 4096,), device=D)
    build(_core._attention_tiles("stats", case.dtype, width, width))(
        case.g.reshape(-1), case.out.reshape(-1), case.sums.reshape(-1), stats, added,
        parts, heads, n, heads * n * width, n * width, width,
    )  # fmt: skip
    text = _core._attention_tiles("gradient", case.dtype, width, width, band=case.causal, **form)
    f = build(change(text) if change else text)
    dq, dk, dv = (case.empty(x) for x in case.gradients)
    arguments = [
        case.q,
        case.k,
        case.v,
        case.g,
        stats,
        added,
        dk,
        dv,
        *case.numbers(tiles * batch * heads, tiles),
        *case.tail(),
    ]
    flat = [x.reshape(-1) if isinstance(x, weft.NDArray) else x for x in arguments]
    f(*flat)
    build(_core._attention_tiles("dq", case.dtype, width, width))(
        added, dq.reshape(-1), parts * 2, n, case.scale
    )
    want_q, *want = case.gradients
    a, b = (x.astype("float32").numpy() for x in (dq, want_q))
    print(f"  dq of {name}: error {np.linalg.norm(a - b) / np.linalg.norm(b):.1e}", flush=True)
    case.report(f"gradient {name} {form}", lambda: f(*flat), [dk, dv], want, 2.5)


def without_tensor_cores(case, kind, rows, columns):
    batch, heads, n, width = case.shape
    text = _core._attention_program(
        kind, case.dtype, width, width, rows=rows, columns=columns, band=case.causal
    )
    f, tiles = build(text), -(-n // (16 * rows))
    delta = (case.g.astype("float32") * case.out.astype("float32")).sum(-1)
    dq, dk, dv = (case.empty(x) for x in case.gradients)
    out, sums = case.empty(case.out), case.empty(case.sums)
    results = {"forward": [out, sums], "gradient": [dq, dk, dv], "keys": [dk, dv], "queries": [dq]}[
        kind
    ]
    operands = [case.q, case.k, case.v] + ([] if kind == "forward" else [case.g, case.sums, delta])
    numbers = [tiles * batch * heads, tiles, heads, 1, n, n]
    numbers += [heads * n * width, n * width, width] * (3 if kind == "forward" else 4)
    flat = [x.reshape(-1) for x in (*operands, *results)] + numbers + case.tail()
    factor = {"forward": 1, "gradient": 2.5, "keys": 2, "queries": 1.5}[kind]
    if kind == "gradient":  # dq adds up over the repetitions: only the first result is right
        f(*flat)
        a, b = dq.numpy(), case.gradients[0].numpy()
        print(f"  dq: error {np.linalg.norm(a - b) / np.linalg.norm(b):.1e}", flush=True)
        return case.report(
            f"{kind} {rows} x {columns}", lambda: f(*flat), [dk, dv], case.gradients[1:], factor
        )
    want = {
        "forward": [case.out, case.sums],
        "keys": case.gradients[1:],
        "queries": case.gradients[:1],
    }[kind]
    case.report(f"{kind} {rows} x {columns}", lambda: f(*flat), results, want, factor)


def main():
    for batch, n, width, causal in (
        (1, 8192, 128, False),
        (1, 8192, 128, True),
        (4, 2048, 128, True),
        (1, 8192, 64, False),
        (8, 1024, 64, True),
    ):
        case = Case(batch, 16, n, width, causal)
        print(f"bfloat16 b{batch} h16 n{n} d{width} {'causal' if causal else 'full'}", flush=True)
        for name, change, form in (
            ("", None, {}),
            ("in bulk", None, {"bulk": True}),
            ("late", late, {}),
            ("in bulk, late", late, {"bulk": True}),
        ):
            gradient(case, name, change, **form)
        forms = [dict(groups=2, columns=128, stages=2)]
        if width == 64:
            forms = [
                dict(groups=4, columns=64, stages=3),
                dict(groups=3, columns=128, stages=3),
                dict(groups=2, columns=128, stages=3),
            ]
        for form in forms:
            forward(case, "forward", **form)
            forward(case, "persistent", **form)
    for width in (64, 128):
        case = Case(4, 8, 2048, width, False, "float32")
        print(f"float32 b4 h8 n2048 d{width} full", flush=True)
        for rows, columns in ((8, 8), (8, 4), (4, 8), (4, 4)) if width == 64 else ((8, 4), (4, 4)):
            without_tensor_cores(case, "forward", rows, columns)
        for kind in ("queries", "keys", "gradient"):
            for rows, columns in ((8, 4), (4, 4)) if width == 64 else ((4, 4),):
                without_tensor_cores(case, kind, rows, columns)


if __name__ == "__main__":
    main()
