# SPDX-License-Identifier: Apache-2.0
"""Weights of 4 and 8 bits, one row of bfloat16: quantized_linear as it is called, and its kernel in every form, checked and timed.

A form says how many packed rows a thread takes at once, how many threads share an output, and how many vectors of
outputs lie beside each other in a block. Time on the card, calls queued ahead, medians in turns.
"""

import argparse
import concurrent.futures
import itertools
import statistics

import numpy as np
import weft
from weft.nn import _quantized_card as card
from weft.nn import functional as F


def forms(inputs, outputs, size, bits, most):
    packed, runs_of = size * bits // 8, inputs * bits // 8
    for run, threads, beside in itertools.product(
        (4, 8, 16, 32), (32, 64, 128, 256, 512), (1, 2, 4, 8)
    ):
        if packed % run or (runs_of // run) % threads or outputs % (beside * card._LANES):
            continue
        if 128 <= threads * beside <= most:
            yield run, threads, beside


def kernel(device, sizes, form):
    run, threads, beside = form
    rows, inputs, outputs, size, bits = sizes
    program = card._program(rows, inputs, outputs, size, bits, "bfloat16", False, False, run)
    try:
        return weft.build(
            card._schedule(program, threads, beside, False), target=device, tuned=False
        )["main"]
    except weft.Error as reason:
        return reason


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--group", type=int, default=128)
    parser.add_argument("--bits", type=int, nargs="*", default=[4, 8])
    parser.add_argument("--samples", type=int, default=9)
    args = parser.parse_args()
    device, n = weft.device(args.device), args.size
    most = device.limits["threads_per_block"]
    rng = np.random.default_rng(3)
    for bits in args.bits:
        host = rng.standard_normal((n, n), dtype=np.float32)
        packed, scales = F.quantize_weight(weft.asarray(host), bits=bits, group_size=args.group)
        x = weft.asarray(rng.standard_normal((1, n), dtype=np.float32)).astype("bfloat16")
        exact = F.dequantize_weight(packed, scales, bits=bits).numpy().astype(np.float64)
        want = x.astype("float32").numpy().astype(np.float64) @ exact
        x, packed, scales = (a.to(device) for a in (x, packed, scales))
        words, out = (
            weft._core._as_words(packed),
            weft.empty((1, n), dtype="bfloat16", device=device),
        )
        sizes = (1, n, n, args.group, bits)
        some = list(forms(n, n, args.group, bits, most))
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            built = dict(zip(some, pool.map(lambda form: kernel(args.device, sizes, form), some)))
        taken, calls = card.form(n, n, args.group, bits, most), {}
        for form, f in built.items():
            if isinstance(f, weft.Error):
                print(f"{bits} bits {form}: {str(f).partition(chr(10))[0]}")
                continue
            f(x, words, scales, out, card.EXPONENT)
            error = np.linalg.norm(out.astype("float32").numpy() - want) / np.linalg.norm(want)
            assert error < 4e-3, (form, error)
            calls[form] = lambda k, f=f: (
                f.time(x, words, scales, out, card.EXPONENT, number=k, repeat=1).median
            )
        samples = {form: [] for form in calls}
        for form, call in itertools.chain(*[calls.items()] * args.samples):
            samples[form].append(call(50))
        times = {form: 1e6 * statistics.median(t) for form, t in samples.items()}
        for form, t in sorted(times.items(), key=lambda pair: pair[1]):
            print(
                f"{bits} bits {form}: {t:.2f} us{'  <- taken' if form == taken else ''}", flush=True
            )
        F.quantized_linear(x, packed, scales, bits=bits)
        from timing import seconds

        whole = [
            seconds(
                lambda: F.quantized_linear(x, packed, scales, bits=bits), device.synchronize, 200
            )
            for _ in range(9)
        ]
        print(
            f"{bits} bits, quantized_linear, calls one by one: {1e6 * statistics.median(whole):.2f} us",
            flush=True,
        )


if __name__ == "__main__":
    main()
