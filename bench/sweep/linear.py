# SPDX-License-Identifier: Apache-2.0
"""Products, factorisations, Fourier transforms."""

import numpy as np
from case import FLOATS, Case, draw, varied


def shaped(*shapes, turned=()):
    """Operands of these shapes; the ones named in `turned` are drawn with their last two axes exchanged."""

    def inputs(rng, dtype):
        return [draw(rng, s, dtype, -1, 1) for s in shapes]

    return inputs


PRODUCTS = {
    "4x4x4": ((4, 4), (4, 4)), "64x64x64": ((64, 64), (64, 64)), "512x512x512": ((512, 512), (512, 512)),
    "1024x1024x1024": ((1024, 1024), (1024, 1024)), "257x513x129": ((257, 129), (129, 513)),
    "1x2048x2048": ((1, 2048), (2048, 2048)), "8x2048x2048": ((8, 2048), (2048, 2048)),
    "2048x1x2048": ((2048, 2048), (2048, 1)), "50x60x100000": ((50, 100_000), (100_000, 60)),
    "3000x20x3000": ((3000, 20), (20, 3000)), "64x(32x32x32)": ((64, 32, 32), (64, 32, 32)),
    "12x(128x64x128)": ((12, 128, 64), (12, 64, 128)),
}  # fmt: skip


def products():
    out = []
    for label, shapes in PRODUCTS.items():
        shapes = varied(*shapes)
        for dtype in (*FLOATS, "complex64"):
            common = {"layouts": (label,), "dtypes": (dtype,)}
            out.append(
                Case(
                    "matmul",
                    "a @ b",
                    *3 * [lambda m, a, b: m.matmul(a, b)],
                    inputs=shaped(*shapes),
                    **common,
                )
            )
            a, b = shapes
            if len(a) == 2:
                out.append(Case("matmul", "a.T @ b", *3 * [lambda m, a, b: m.matmul(a.T, b)],
                                inputs=shaped(a[::-1], b), **common))  # fmt: skip
                out.append(Case("matmul", "a @ b.T", *3 * [lambda m, a, b: m.matmul(a, b.T)],
                                inputs=shaped(a, b[::-1]), **common))  # fmt: skip
    for text, shapes in {
        "ij,jk->ik": ((200, 300), (300, 100)), "bij,bjk->bik": ((32, 64, 48), (32, 48, 40)),
        "ij->ji": ((1000, 900),), "ii->i": ((1000, 1000),), "ij,ij->": ((1000, 900), (1000, 900)),
        "bhqd,bhkd->bhqk": ((4, 8, 64, 32), (4, 8, 80, 32)), "ijk->k": ((64, 80, 90),), "i,j->ij": ((900,), (1000,)),
    }.items():  # fmt: skip
        shapes = varied(*shapes)
        out.append(
            Case("einsum", text, *3 * [lambda m, *a, text=text: m.einsum(text, *a)],
                 layouts=("einsum",), dtypes=("float32", "float64"), inputs=shaped(*shapes))
        )  # fmt: skip
    out += [
        Case("einsum", "vecdot", lambda m, a, b: m.vecdot(a, b), lambda m, a, b: m.einsum("...i,...i->...", a, b),
             lambda m, a, b: m.linalg.vecdot(a, b), layouts=("1e6",), dtypes=FLOATS, inputs=shaped((1000, 1000), (1000, 1000))),
        Case("einsum", "tensordot", lambda m, a, b: m.tensordot(a, b, axes=2), lambda m, a, b: m.tensordot(a, b, 2),
             lambda m, a, b: m.tensordot(a, b, 2), layouts=("100",), dtypes=FLOATS, inputs=shaped((80, 30, 40), (30, 40, 50))),
        Case("einsum", "outer", lambda m, a, b: m.linalg.outer(a, b), lambda m, a, b: m.outer(a, b),
             lambda m, a, b: m.outer(a, b), layouts=("3000",), dtypes=FLOATS, inputs=shaped((3000,), (3000,))),
    ]  # fmt: skip
    return out


def positive(n, batch=()):
    def inputs(rng, dtype):
        a = draw(rng, (*batch, n, n), dtype, -1, 1)
        return [a @ np.swapaxes(a, -1, -2).conj() + n * np.eye(n, dtype=a.dtype)]

    return inputs


def factorisations():
    out = []
    for label, n, batch in (("8", 8, ()), ("100", 100, ()), ("400", 400, ()), ("64x16", 16, (64,))):
        batch, (n,) = varied(batch, (n,))
        common = {
            "layouts": (label,),
            "dtypes": ("float32", "float64", "complex64"),
            "inputs": positive(n, batch),
        }
        for name in ("cholesky", "inv", "det", "eigvalsh", "svdvals"):
            numpy = {"svdvals": lambda m, a: m.linalg.svd(a, compute_uv=False)}.get(
                name, lambda m, a, name=name: getattr(m.linalg, name)(a)
            )
            call = lambda m, a, name=name: getattr(m.linalg, name)(a)
            # a determinant grows with the size: compared by its logarithm elsewhere
            out.append(Case("linalg", name, call, numpy, call, check=name != "det", **common))
        out += [
            Case("linalg", "solve", *3 * [lambda m, a: m.linalg.solve(a, a)], **common),
            Case("linalg", "qr", *3 * [lambda m, a: abs(m.linalg.qr(a)[1])], **common),
            Case("linalg", "eigh", *3 * [lambda m, a: m.linalg.eigh(a)[0]], **common),
            Case("linalg", "svd", *3 * [lambda m, a: m.linalg.svd(a)[1]], **common),
            Case("linalg", "pinv", *3 * [lambda m, a: m.linalg.pinv(a)], **common),
        ]
    return out


def fourier():
    out = []
    for label, shape in (
        ("1024", (1024,)),
        ("1e6", (1_000_000,)),
        ("64x4096", (64, 4096)),
        ("prime", (10_007,)),
        ("512x512", (512, 512)),
    ):
        (shape,) = varied(shape)

        def signal(rng, dtype, shape=shape):
            return [draw(rng, shape, dtype, -1, 1)]

        for name in ("fft", "rfft", "fftn"):
            if name == "fftn" and len(shape) == 1:
                continue
            call = lambda m, x, name=name: getattr(m.fft, name)(x)
            for dtype in ("float32", "float64", "complex64"):
                if dtype == "complex64" and name == "rfft":
                    continue
                out.append(Case("fft", name, call, call, call, layouts=(label,), dtypes=(dtype,), inputs=signal,
                                tolerance="float32" if dtype != "float64" else ""))  # fmt: skip
    return out


def cases():
    return [*products(), *factorisations(), *fourier()]
