# SPDX-License-Identifier: Apache-2.0
"""Calls beside the table of public functions: work in place on turned views, columns by positions, extremes of truth values,
limits of integers, counts, diagonals, norms, inner products, quantiles, stacks of small matrices."""

import numpy as np
from case import Case, varied

STACKS = varied((400, 4, 4), (60, 24, 24))
_positions = {}


def columns(m, x):
    """x[:, i] of as many positions as there are columns, drawn once for a library and a width."""
    key = m.__name__, x.shape[1]
    if key not in _positions:
        at = np.random.default_rng(3).integers(0, x.shape[1], x.shape[1])
        _positions[key] = m.from_numpy(at) if m.__name__ == "torch" else m.asarray(at)
    return x[:, _positions[key]]


def doubled(m, x):
    x *= 1
    return x


def norm(m, x):
    return (m.linalg.norm if m is np else m.linalg.vector_norm)(x)


def stacks(rng, dtype):
    return [rng.standard_normal((n, k, k)).astype(dtype) for n, k, _ in STACKS]


def products(m, small, larger):
    turned = (lambda x: x.mT) if m.__name__ == "torch" else (lambda x: m.swapaxes(x, -1, -2))
    return small @ turned(small), larger @ larger


def cases():
    t, whole, reals = ("float32",), ("int32",), ("float32", "float64")
    flat, matrices = ("4", "1e3", "1e5"), ("mid2d", "odd", "tall", "transposed")

    def case(name, ours, torch=None, numpy=None, **options):
        return Case("rarer", name, ours, numpy or ours, torch or ours, **options)

    return [
        case("x *= 1", doubled, layouts=matrices, dtypes=("float32", "int32")),
        case("x[:, i]", columns, layouts=("mid2d", "tall", "wide"), dtypes=("float32", "int32")),
        case("argmax axis 0", lambda m, x: m.argmax(x, axis=0), lambda m, x: m.argmax(x.byte() if x.dtype == m.bool else x, 0),
             layouts=matrices, dtypes=("float32", "bool")),
        case("max axis -1", lambda m, x: m.max(x, axis=-1), lambda m, x: m.amax(x, -1), layouts=matrices, dtypes=("bool",)),
        case("clip", lambda m, x: m.clip(x, 10, 50), layouts=(*flat, "transposed"), dtypes=whole),
        case("bincount", lambda m, x: m.bincount(x), layouts=("1e3", "1e5"), dtypes=whole),
        case("histogram 10", lambda m, x: m.histogram(x, 10)[0], lambda m, x: m.histc(x, 10).long(), layouts=("1e3", "1e5"), dtypes=t, check=False),
        case("diag", lambda m, x: m.diag(x), layouts=("4", "1e3", "mid2d"), dtypes=t),
        case("trace", lambda m, x: m.trace(x), layouts=("mid2d", "odd"), dtypes=t),
        case("norm", norm, layouts=(*flat, "mid2d"), dtypes=reals),
        case("dot", lambda m, x, y: m.dot(x, y), inputs=2, layouts=flat, dtypes=("float32", "int32", "complex64")),
        case("median", lambda m, x: m.median(x), layouts=("1e3", "1e5"), dtypes=reals, check=False),
        case("quantile 0.3", lambda m, x: m.quantile(x, 0.3), layouts=("1e3", "1e5"), dtypes=reals, tolerance="float32"),
        case("partition, the middle", lambda m, x: m.partition(x, x.shape[-1] // 2)[..., x.shape[-1] // 2], lambda m, x: m.kthvalue(x, x.shape[-1] // 2 + 1)[0],
             layouts=("1e3", "1e5", "mid2d"), dtypes=(*reals, "int32")),
        case("argpartition", lambda m, x: m.argpartition(x, x.shape[-1] // 2), lambda m, x: m.argsort(x), layouts=("1e3", "1e5"), dtypes=t, check=False),
        case("nan_to_num", lambda m, x: m.nan_to_num(x), layouts=flat, dtypes=reals),
        case("nansum", lambda m, x: m.nansum(x), layouts=flat, dtypes=reals, tolerance="float32"),
        case("nanmax", lambda m, x: m.nanmax(x), lambda m, x: m.where(m.isnan(x), -m.inf, x).max(), layouts=("1e3", "1e5"), dtypes=reals),
        case("cbrt", lambda m, x: m.cbrt(x), lambda m, x: m.sign(x) * m.abs(x) ** (1 / 3), layouts=flat, dtypes=reals),
        case("fmod", lambda m, x, y: m.fmod(x, y), inputs=2, layouts=flat, dtypes=("int32", "float32")),
        case("convolve 5", lambda m, x: m.convolve(x, x[:5]), lambda m, x: m.nn.functional.conv1d(x[None, None], x[:5].flip(0)[None, None], padding=4)[0, 0],
             layouts=("1e3", "1e5"), dtypes=reals),
        case("ij,ij->i", lambda m, x, y: m.einsum("ij,ij->i", x, y), inputs=2, layouts=("mid2d", "odd", "tall"), dtypes=reals),
        case("mean axis 0", lambda m, x: m.mean(x, axis=0), lambda m, x: m.mean(x.float(), 0), layouts=("mid2d", "tall"), dtypes=("bool",), tolerance="float32"),
        case("cummax", lambda m, x: m.cummax(x, 0)[0], None, lambda m, x: np.maximum.accumulate(x), layouts=flat, dtypes=(*reals, "int32")),
        case("isin", lambda m, x: m.isin(x, x[:50]), layouts=("1e3", "1e5"), dtypes=(*reals, "int32")),
        case("weighted bincount", lambda m, x: m.bincount(x, x / 2), layouts=("1e3", "1e5"), dtypes=whole),
        case("cumprod of a method", lambda m, x: x.cumprod(0), layouts=("1e3", "1e5"), dtypes=reals, domain=(0.99, 1.01), tolerance="float32"),
        case("x.T @ x", lambda m, x: x.T @ x, layouts=("mid2d", "tall"), dtypes=reals),
        case("insert, delete", lambda m, x: m.delete(m.insert(x, 3, 1), 5), lambda m, x: m.cat([x[:3], x.new_ones(1), x[3:4], x[5:]]), layouts=("1e3", "1e5"), dtypes=t),
        case("pad of rows", lambda m, x: m.pad(x, ((1, 1), (1, 1))), lambda m, x: m.nn.functional.pad(x, (1, 1, 1, 1)), layouts=("mid2d", "tall"), dtypes=t),
        case("inv of stacks", lambda m, x, y: m.linalg.inv(x), layouts=("stacks",), inputs=stacks, dtypes=reals, tolerance="bfloat16"),
        case("stacks of 4 x 4 and 24 x 24", products, layouts=("stacks",), inputs=stacks, dtypes=reals),
    ]  # fmt: skip
