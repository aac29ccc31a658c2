# SPDX-License-Identifier: Apache-2.0
"""float8_e4m3fn and float8_e5m2: conversions of every code against a table made from the formats' definition, programs on
every target that has the types, arrays, and products with scales."""

import itertools
import math

import numpy as np
import pytest
import weft
import weft.io
from refusal import refused
from weft import script as T
from weft import te

TYPES = ("float8_e4m3fn", "float8_e5m2")
FORMATS = {"float8_e4m3fn": (3, 7, 0x7F, None), "float8_e5m2": (2, 15, 0x7C, 0x7C)}
TARGETS = [t for t in ("ref", "cpu", "c", "opencl") if weft.device(t).available]


def decoded(name):
    """The values of the 256 codes, from the definition: sign, exponent with a bias, mantissa."""
    mantissa, bias, special, infinity = FORMATS[name]
    out = []
    for code in range(256):
        low = code & 0x7F
        exponent, fraction = low >> mantissa, (low & ((1 << mantissa) - 1)) / (1 << mantissa)
        if low >= special:
            value = math.inf if low == infinity else math.nan
        else:
            value = (
                fraction * 2.0 ** (1 - bias)
                if exponent == 0
                else (1 + fraction) * 2.0 ** (exponent - bias)
            )
        out.append(math.copysign(value, -1.0 if code & 0x80 else 1.0))
    return np.array(out)


def encoded(name, values):
    """The nearest code of each number, ties to the even code: by comparing with all."""
    mantissa, bias, special, infinity = FORMATS[name]
    table = decoded(name)[:special]  # positive and finite
    step = table[-1] - table[-2]
    grid = np.append(
        table, table[-1] + step
    )  # what lies half a step above the largest is rounded up
    out = []
    for v in np.asarray(values, dtype=np.float64):
        sign = 0x80 if math.copysign(1.0, v) < 0 else 0
        if math.isnan(v):
            out.append((sign | (0x7F if infinity is None else 0x7E), True))
            continue
        a = min(abs(v), grid[-1])
        high = int(np.searchsorted(grid, a))
        low = max(high - 1, 0)
        if grid[high] == a:
            best = high
        else:
            below, above = a - grid[low], grid[high] - a
            best = low if below < above or (below == above and low % 2 == 0) else high
        best = min(best, special)
        out.append((sign | best, best == special and infinity is None))
    return out


def numbers_near(name):
    """Every number, every middle of two neighbours, and what lies just beside each; beyond the largest; tiny ones."""
    table = decoded(name)
    finite = np.unique(np.abs(table[np.isfinite(table)]))
    middles = (finite[1:] + finite[:-1]) / 2
    last = finite[-1] + (finite[-1] - finite[-2]) / 2
    points = np.concatenate([finite, middles, [last, 2 * last, 1e30, 1e-30, 1e-45]])
    beside = np.concatenate([np.nextafter(points, np.inf), np.nextafter(points, -np.inf)])
    points = np.concatenate([points, beside, [np.inf, np.nan]])
    return np.concatenate([points, -points])


def codes_of(x):
    return np.frombuffer(weft._core._to_bytes(x.to(weft.device("cpu"))), dtype=np.uint8)


def from_codes(name, codes, shape=None):
    codes = np.asarray(codes, dtype=np.uint8)
    return weft._core._from_bytes(codes.tobytes(), shape or codes.shape, weft.dtype(name))


def same(name, got, want):
    """Codes, where NaN is NaN with either sign and any payload."""
    table = decoded(name)
    for g, (w, nan) in zip(got, want):
        assert math.isnan(table[g]) if nan or math.isnan(table[w]) else g == w, (hex(g), hex(w))


@pytest.mark.parametrize("name", TYPES)
def test_every_code_in_every_type(name):
    x, table = from_codes(name, np.arange(256)), decoded(name)
    for wide in ("float16", "bfloat16", "float32", "float64"):
        got = x.astype(wide).astype("float64").numpy()
        np.testing.assert_array_equal(got, table)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(table))
        same(name, codes_of(x.astype(wide).astype(name)), [(c, False) for c in range(256)])
    for whole in ("int8", "int16", "int32", "int64", "uint8", "uint32", "bool"):
        low, high = (0, 2) if whole == "bool" else (np.iinfo(whole).min, np.iinfo(whole).max)
        with np.errstate(invalid="ignore"):
            fits = (np.trunc(table) >= low) & (np.trunc(table) <= high)
        want = table[fits].astype(whole)
        np.testing.assert_array_equal(
            from_codes(name, np.arange(256)[fits]).astype(whole).numpy(), want
        )
    assert [float(v) for v in x[:20]] == list(table[:20])


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("wide", ["float32", "float64"])
def test_rounding_from_wider_types(name, wide):
    with np.errstate(over="ignore"):
        values = numbers_near(name).astype(wide)
    got = codes_of(weft.asarray(values).astype(name))
    same(name, got, encoded(name, values))
    assert codes_of(weft.asarray(np.float64(1.0625 + 2**-40)).astype("float8_e4m3fn"))[0] == 0x39


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize(
    "whole", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
)
def test_rounding_from_whole_numbers(name, whole):
    values = np.arange(0, 600) if whole not in ("int8", "uint8", "bool") else np.arange(0, 100)
    if whole[0] == "i":
        values = np.concatenate([values, -values])
    if whole[-2:] in ("32", "64"):
        values = np.concatenate([values, [57344, 61439, 61440, 2**30, 2**30 + 1]])
    values = values.astype(whole)
    same(
        name, codes_of(weft.asarray(values).astype(name)), encoded(name, values.astype(np.float64))
    )


def run(build, target, *arrays):
    device = weft.device(target)
    moved = [a.to(device) for a in arrays]
    build(*moved)
    return [m.to(weft.device("cpu")) for m in moved]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", TYPES)
def test_programs_convert_in_both_directions(name, target):
    values = numbers_near(name).astype(np.float32)
    n = len(values)
    A = te.placeholder((n,), "float32", name="A")
    B = te.compute((n,), lambda i: A[i].astype(name), name="B")
    f = weft.build(te.create_prim_func([A, B]), target=target)["main"]
    _, out = run(f, target, weft.asarray(values), from_codes(name, np.zeros(n)))
    same(name, codes_of(out), encoded(name, values))
    C = te.placeholder((256,), name, name="C")
    D = te.compute((256,), lambda i: C[i].astype("float32"), name="D")
    f = weft.build(te.create_prim_func([C, D]), target=target)["main"]
    _, out = run(f, target, from_codes(name, np.arange(256)), weft.zeros((256,), dtype="float32"))
    np.testing.assert_array_equal(out.numpy(), decoded(name).astype(np.float32))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", TYPES)
def test_arithmetic_rounds_each_operation(name, target):
    table = decoded(name)
    codes = np.arange(256)[np.isfinite(table)]
    a, b = (
        np.array(c) for c in zip(*itertools.islice(itertools.product(codes, codes), 0, None, 11))
    )
    n = len(a)
    A, B = te.placeholder((n,), name, name="A"), te.placeholder((n,), name, name="B")
    C = te.compute((n,), lambda i: A[i] * B[i] + A[i], name="C")
    f = weft.build(te.create_prim_func([A, B, C]), target=target)["main"]
    *_, out = run(
        f, target, from_codes(name, a), from_codes(name, b), from_codes(name, np.zeros(n))
    )
    product = encoded(name, (table[a] * table[b]).astype(np.float32))
    rounded = np.array([math.nan if nan else table[c] for c, nan in product])
    with np.errstate(invalid="ignore"):
        want = encoded(name, (rounded + table[a]).astype(np.float32))
    same(name, codes_of(out), want)


@pytest.mark.parametrize("target", TARGETS)
def test_text_selects_and_vectors(target):
    @T.prim_func
    def f(
        A: T.Buffer((64,), "float8_e4m3fn"),
        B: T.Buffer((64,), "float8_e4m3fn"),
        C: T.Buffer((64,), "uint8"),
    ):
        for i in T.vectorized(64):
            with T.block("b"):
                v = T.axis.spatial(64, i)
                B[v] = T.Select(A[v] > T.float8_e4m3fn(1.0), A[v], T.float8_e4m3fn(1.0))
                C[v] = T.reinterpret("uint8", A[v])

    assert T.from_source(f.script()).script() == f.script()
    codes = np.arange(64) + 16
    x = from_codes("float8_e4m3fn", codes)
    _, b, c = run(
        weft.build(f, target=target)["f"],
        target,
        x,
        from_codes("float8_e4m3fn", codes * 0),
        weft.zeros((64,), dtype="uint8"),
    )
    np.testing.assert_array_equal(
        b.astype("float32").numpy(), np.maximum(decoded("float8_e4m3fn")[codes], 1.0)
    )
    np.testing.assert_array_equal(c.numpy(), codes)


@pytest.mark.parametrize("name", TYPES)
def test_arrays(name):
    rng = np.random.default_rng(3)
    values = rng.normal(size=(7, 12)).astype(np.float32)
    x = weft.asarray(values).astype(name)
    kept = x.astype("float32").numpy()
    assert x.dtype.name == name and x.dtype.itemsize == 1 and x.nbytes == 84
    np.testing.assert_array_equal(x.numpy(), kept)
    np.testing.assert_array_equal(x.T[3:, ::2].astype("float32").numpy(), kept.T[3:, ::2])
    np.testing.assert_array_equal(
        weft.concat([x, x[:2]]).astype("float32").numpy(), np.concatenate([kept, kept[:2]])
    )
    np.testing.assert_array_equal(x[weft.asarray([3, 0, 3])].numpy(), kept[[3, 0, 3]])
    sums = weft.asarray(kept + kept[0]).astype(name).numpy()
    np.testing.assert_array_equal((x + x[0]).numpy(), sums)
    assert (x + x).dtype.name == name and (x + weft.asarray(values)).dtype == weft.float32
    np.testing.assert_array_equal((-x).numpy(), -kept)
    np.testing.assert_array_equal(weft.abs(x).numpy(), np.abs(kept))
    np.testing.assert_array_equal(
        weft.where(x > 0.0, x, weft.zeros_like(x)).numpy(), np.maximum(kept, 0)
    )
    np.testing.assert_array_equal(weft.max(x, axis=1).numpy(), kept.max(axis=1))
    np.testing.assert_array_equal(weft.argmax(x, axis=1).numpy(), kept.argmax(axis=1))
    np.testing.assert_array_equal(weft.sort(x, axis=1).numpy(), np.sort(kept, axis=1))
    np.testing.assert_array_equal(
        weft.exp(x).numpy(), weft.asarray(np.exp(kept)).astype(name).numpy()
    )
    assert "448" in str(weft.asarray([0.5, 448.0]).astype(name)) and name in repr(x)
    y = x.copy()
    y[1] = 0.3
    assert (y[1].numpy() == np.float32(weft.asarray(0.3).astype(name))).all()
    limits = weft.finfo(name)
    assert (
        limits.max == np.nanmax(np.where(np.isfinite(decoded(name)), decoded(name), 0))
        and limits.bits == 8
    )
    back = weft.from_dlpack(x)
    np.testing.assert_array_equal(codes_of(back), codes_of(x))
    assert weft.zeros((0, 3), dtype=name).astype("float32").shape == (0, 3)


def test_files(tmp_path):
    x = from_codes("float8_e4m3fn", np.arange(256), (16, 16))
    weft.io.save_safetensors(tmp_path / "x.safetensors", {"x": x, "y": x.astype("float8_e5m2")})
    read = weft.io.load_safetensors(tmp_path / "x.safetensors")
    assert read["y"].dtype.name == "float8_e5m2"
    np.testing.assert_array_equal(codes_of(read["x"]), np.arange(256))


@pytest.mark.parametrize("shape", [(5, 7, 40), (1, 1, 1), (16, 16, 256)])
@pytest.mark.parametrize("types", [TYPES, TYPES[::-1], (TYPES[0], TYPES[0])])
def test_scaled_mm(shape, types):
    m, n, k = shape
    rng = np.random.default_rng(m)
    a = weft.asarray(rng.normal(size=(m, k)).astype(np.float32)).astype(types[0])
    b = weft.asarray(rng.normal(size=(n, k)).astype(np.float32)).astype(types[1]).T
    x, y = a.numpy().astype(np.float64), b.numpy().astype(np.float64)
    f = weft.nn.functional.scaled_mm
    for sa, sb in [
        (None, None),
        (np.float32(0.5), np.float32(3.0)),
        (rng.random((m, 1)), rng.random((1, n))),
        (rng.random(m), None),
    ]:
        bias = rng.normal(size=n).astype(np.float32)
        given = [None if s is None else weft.asarray(np.asarray(s, np.float32)) for s in (sa, sb)]
        want = x @ y
        want = want * (1 if sa is None else np.reshape(sa, (-1, 1)) if np.ndim(sa) else sa)
        want = want * (1 if sb is None else sb) + bias
        got = f(a, b, *given, weft.asarray(bias), dtype="float32").numpy()
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert f(a, b).dtype == weft.bfloat16
    groups = -(-k // 128)
    if groups > 1:
        sa, sb = (
            rng.random((m, groups)).astype(np.float32),
            rng.random((groups, -(-n // 128))).astype(np.float32),
        )
        want = (x * np.repeat(sa, 128, 1)[:, :k]) @ (
            y * np.repeat(np.repeat(sb, 128, 0)[:k], 128, 1)[:, :n]
        )
        np.testing.assert_allclose(
            f(a, b, weft.asarray(sa), weft.asarray(sb), dtype="float32").numpy(), want, rtol=1e-4
        )


def test_refusals():
    x = weft.zeros((4, 4), dtype="float8_e4m3fn")
    f = weft.nn.functional.scaled_mm
    for kind, slug, arguments in (
        (weft.DTypeError, "array.scaled_matmul.dtype", (x.astype("float32"), x)),
        (weft.DTypeError, "array.scaled_matmul.dtype", (x, x, None, None, None, "int32")),
        (
            weft.ShapeError,
            "array.scaled_matmul.shape",
            (x, weft.zeros((3, 4), dtype="float8_e4m3fn")),
        ),
        (weft.ShapeError, "array.scaled_matmul.scale", (x, x, weft.ones((3,), dtype="float32"))),
        (
            weft.ShapeError,
            "array.scaled_matmul.scale",
            (x, x, None, None, weft.ones((1,), dtype="float32")),
        ),
    ):
        e = refused(kind, slug, f, *arguments)
        assert "scaled_mm" in str(e) and ("legal" in str(e) or "rule" in str(e))


@pytest.mark.parametrize("target", ["qpu", "vta", "wse"])
def test_machines_without_the_types_refuse_them_by_name(target):
    A = te.placeholder((8,), "float8_e5m2", name="A")
    B = te.compute((8,), lambda i: A[i] + A[i], name="B")
    with pytest.raises(weft.Error, match="float8_e5m2"):
        weft.build(te.create_prim_func([A, B]), target=target)


def test_nextafter_is_refused_where_it_is_lowered():
    @T.prim_func
    def f(A: T.Buffer((8,), "float8_e5m2"), B: T.Buffer((8,), "float8_e5m2")):
        for i in T.serial(8):
            with T.block("b"):
                v = T.axis.spatial(8, i)
                B[v] = T.nextafter(A[v], T.float8_e5m2(0.0))

    e = refused(weft.Error, "lower.float8.nextafter", weft.build, f, "c")
    assert "legal: float16" in str(e) and "reinterpret" in str(e)
    x = from_codes("float8_e5m2", np.arange(1, 9))
    _, y = run(weft.build(f, target="ref")["f"], "ref", x, from_codes("float8_e5m2", np.zeros(8)))
    np.testing.assert_array_equal(codes_of(y), np.arange(8))
