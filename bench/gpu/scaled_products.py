# SPDX-License-Identifier: Apache-2.0
"""Products of float8 arrays with scales beside torch._scaled_mm in one process: time on the card, samples of both in turns.
Casts and products are compared with PyTorch's values and with float32 products first.

    PYTHONPATH=python:bench/gpu python3 bench/gpu/scaled_products.py
"""

import halves
import torch
import weft

scaled_mm = weft.nn.functional.scaled_mm
# m, n, k, whether scales belong to rows and columns
CASES = [
    (256, 256, 256, False),
    (304, 208, 1024, True),
    (64, 96, 128, False),
    (1000, 500, 333, True),
    (2048, 2048, 2048, False),
    (4096, 4096, 4096, False),
    (8192, 8192, 8192, False),
    (8192, 8192, 8192, True),
]


def operand(rows, columns, dtype="float8_e4m3fn"):
    x = torch.randn(rows, columns, device="cuda")
    theirs, ours = x.to(getattr(torch, dtype)), weft.from_dlpack(x).astype(dtype)
    assert bool((torch.from_dlpack(ours.astype("float32")) == theirs.float()).all()), "casts differ"
    return theirs, ours


def case(m, n, k, rows):
    a, A = operand(m, k)
    b, B = operand(n, k)
    sa = torch.rand(*((m, 1) if rows else (1,)), device="cuda") + 0.5
    sb = torch.rand(*((1, n) if rows else (1,)), device="cuda") + 0.5
    SA, SB, BT = weft.from_dlpack(sa), weft.from_dlpack(sb), weft.matrix_transpose(B)
    want = (a.float() @ b.float().t()) * sa * sb
    error = lambda x: float((x.float() - want).norm() / want.norm())
    ours = lambda: scaled_mm(A, BT, SA, SB)
    text = f"{m}x{n}x{k} {'rows' if rows else 'one '} error {error(torch.from_dlpack(ours())):.1e}"
    if k % 16 or n % 16:  # PyTorch refuses these
        return print(text, flush=True)
    number = max(3, min(40, int(2e-3 / (2 * m * n * k / 1e15))))
    for fast in (True, False):
        scales = (sa, sb) if rows else (sa.reshape(()), sb.reshape(()))
        rival = lambda: torch._scaled_mm(
            a,
            b.t(),
            scale_a=scales[0],
            scale_b=scales[1],
            out_dtype=torch.bfloat16,
            use_fast_accum=fast,
        )
        theirs = error(rival())
        mine, other = halves.beside(ours, rival, number, 5)
        print(
            f"{text} {mine * 1e6:8.1f} us {2e-12 * m * n * k / mine:6.0f} TFLOP/s  torch, fast sums {fast}: "
            f"{other * 1e6:8.1f} ratio {other / mine:5.3f} error {theirs:.1e}",
            flush=True,
        )


def main():
    halves.busy = torch.randn(8192, 8192, device="cuda").to(torch.bfloat16)
    a, A = operand(512, 512, "float8_e5m2")
    b, B = operand(512, 512)
    got = torch.from_dlpack(scaled_mm(A, weft.matrix_transpose(B), dtype="float32"))
    want = a.float() @ b.float().t()
    print(f"e5m2 by e4m3, float32: error {float((got - want).norm() / want.norm()):.1e}")
    for arguments in CASES:
        try:
            case(*arguments)
        except Exception as e:  # one case must not lose the rest
            print("FAILED", *arguments, type(e).__name__, str(e)[:800], flush=True)


if __name__ == "__main__":
    main()
