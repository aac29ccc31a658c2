# SPDX-License-Identifier: Apache-2.0
"""The product whose threads have roles (examples/tensorir/roles.py) beside torch.matmul in the same run.

Samples are interleaved, figures are medians; the eager product stands beside, timed as in halves.py. Each form is
checked against a float32 product of the same operands before it is timed."""

import argparse

import halves
import ladder
import roles
import torch
import weft

FORMS = (
    dict(groups=2, columns=256, stages=4, together=16),
    dict(groups=2, columns=256, stages=4, together=8),
    dict(groups=2, columns=256, stages=3, together=16),
    dict(groups=2, columns=128, stages=6, together=16),
    dict(groups=1, columns=256, stages=4, together=16),
)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="2048,4096,8192")
    parser.add_argument("--dtypes", default="bfloat16,float16")
    parser.add_argument("--forms", type=int, default=len(FORMS))
    args = parser.parse_args()
    halves.busy = torch.randn(8192, 8192, device="cuda").to(torch.bfloat16)
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    print(torch.cuda.get_device_name(0), "torch", torch.__version__)
    rows = halves.Rows()
    for dtype in args.dtypes.split(","):
        for n in map(int, args.sizes.split(",")):
            torch.manual_seed(n)
            a, b = (torch.randn(n, n, device="cuda").to(getattr(torch, dtype)) for _ in range(2))
            want, c = a.float() @ b.float(), torch.empty_like(a)
            A, B = weft.from_dlpack(a), weft.from_dlpack(b)
            for form in FORMS[: args.forms]:
                program = roles.product(n, n, n, dtype, blocks=processors, **form)
                f = weft.build(program, target="cuda")["main"]
                C = weft.from_dlpack(torch.full_like(a, float("nan")))
                f(A, B, C)
                error = halves.error_of(C, want.double())
                assert error < 5e-3, (n, form, error)
                name = f"{dtype} {n} " + " ".join(f"{k} {v}" for k, v in form.items())
                ours, rival = ladder.interleave(
                    lambda times: f.time(A, B, C, number=times, repeat=1).median,
                    lambda: torch.matmul(a, b, out=c),
                )
                print(
                    f"{name:<56} {ours * 1e6:9.1f} us {2e-12 * n**3 / ours:7.1f} TFLOP/s  torch {rival * 1e6:9.1f}"
                    f"  ratio {rival / ours:5.3f}  error {error:.1e}",
                    flush=True,
                )
            error = halves.error_of(A @ B, want.double())
            rows.case(
                f"{dtype} {n} A @ B",
                lambda: A @ B,
                lambda: torch.matmul(a, b, out=c),
                2.0 * n**3,
                error,
            )


if __name__ == "__main__":
    main()
