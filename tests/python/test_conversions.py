# SPDX-License-Identifier: Apache-2.0
"""Conversions between all types, and integer division, with extreme values: through te on every device that computes
them, and through arrays, against NumPy's definitions."""

import itertools

import numpy as np
import pytest
import weft
from weft import te

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
TYPES = ["bool", *INTEGERS, *FLOATS]
DEVICES = [d for d in ("cpu", "c", "ref", "opencl") if weft.device(d).available]


def extremes(name):
    """Values at the ends and in the middle of a type."""
    if name == "bool":
        return np.array([False, True])
    if name in INTEGERS:
        info = np.iinfo(name)
        picks = [0, 1, 2, 7, 100, 127, 128, 255, 256, 32767, 32768, 65535, 65536]
        picks += [2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]
        picks += [-p for p in picks] + [info.min, info.min + 1, info.max - 1, info.max]
        return np.array(sorted({p for p in picks if info.min <= p <= info.max}), name)
    info = np.finfo(name)
    picks = [0.0, -0.0, 0.5, -0.5, 0.99, -1.0, 1.5, 2.5, -2.5, 100.75, 1e4, info.max, info.min]
    picks += [info.tiny, info.smallest_subnormal, np.inf, -np.inf, np.nan, 2049.0, 16777217.0]
    with np.errstate(over="ignore"):
        return np.array(picks, name)


def defined(values, to):
    """Those that have a value in the other type: a float outside an integer type has none."""
    if values.dtype.kind != "f" or to not in INTEGERS:
        return values
    info = np.iinfo(to)
    wide = values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        inside = (np.trunc(wide) >= float(info.min)) & (np.trunc(wide) < float(info.max) + 1)
        inside &= np.trunc(wide) <= float(info.max) if info.bits < 64 else inside
    return values[inside]


def converted(values, to):
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(to)


def te_results(device, operations, out, *arrays):
    """The result of each operation, all by one program: that compiles once."""
    inputs = [te.placeholder(a.shape, str(a.dtype), name=f"A{i}") for i, a in enumerate(arrays)]
    results = [
        te.compute(arrays[0].shape, lambda i, f=f: f(*(x[i] for x in inputs)), name=f"out{n}")
        for n, f in enumerate(operations)
    ]
    assert {str(r.dtype) for r in results} == {out}
    module = weft.build(te.create_prim_func([*inputs, *results]), target=device)
    there = [weft.asarray(a, device=device) for a in arrays]
    answers = [weft.zeros(arrays[0].shape, dtype=out, device=device) for _ in results]
    module(*there, *answers)
    return [a.numpy() for a in answers]


def same(found, wanted):
    return found.dtype == wanted.dtype and np.array_equal(
        found, wanted, equal_nan=wanted.dtype.kind == "f"
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("source", TYPES)
def test_every_type_to_every_type_through_te(device, source):
    # One program with a result for each type. The driver for the host has no half arithmetic.
    half = device == "opencl"
    if half and source == "float16":
        source = "float32"
    targets = [t for t in TYPES if t != source and not (half and t == "float16")]
    inputs, results, arrays = [], [], []
    for to in targets:
        values = defined(extremes(source), to)
        x = te.placeholder(values.shape, source, name=f"A_{to}")
        y = te.compute(values.shape, lambda i, x=x, to=to: x[i].astype(to), name=f"to_{to}")
        inputs.append(x)
        results.append(y)
        arrays.append(values)
    module = weft.build(te.create_prim_func([*inputs, *results]), target=device)
    answers = [
        weft.zeros(v.shape, dtype=to, device=device) for v, to in zip(arrays, targets, strict=True)
    ]
    module(*(weft.asarray(v, device=device) for v in arrays), *answers)
    for to, values, answer in zip(targets, arrays, answers, strict=True):
        found, wanted = answer.numpy(), converted(values, to)
        assert same(found, wanted), f"{device}: {source} to {to}: {values} {found} {wanted}"


@pytest.mark.parametrize("source", TYPES)
def test_every_type_to_every_type_of_arrays(source):
    for to in TYPES:
        values = defined(extremes(source), to)
        # Long enough for vector code, and with a tail; and as a view that is not contiguous.
        long = np.resize(values, 131)
        assert same(weft.asarray(long).astype(to).numpy(), converted(long, to)), (source, to)
        assert same(weft.asarray(long)[::-3].astype(to).numpy(), converted(long[::-3], to))
        assert same(weft.asarray(values[:1]).astype(to).numpy(), converted(values[:1], to))
        assert weft.asarray(values[:0]).astype(to).numpy().shape == (0,)


def pairs(name):
    values = extremes(name)
    grid = np.array(list(itertools.product(values, values)), name)
    return np.ascontiguousarray(grid[:, 0]), np.ascontiguousarray(grid[:, 1])


def quotients(x, y, name):
    """Exact, wrapped to the type; by zero 0."""
    info = np.iinfo(name)
    span = 1 << info.bits

    def wrap(v):
        v %= span
        return v - span if v > info.max else v

    rows = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if b == 0:
            rows.append((0, 0, 0, 0))
            continue
        q, r = divmod(a, b)
        t = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        rows.append((wrap(q), r, wrap(t), a - t * b))
    return [np.array(column, name) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", INTEGERS)
def test_division_by_what_is_known_at_run_time(device, name):
    x, y = pairs(name)
    wanted = quotients(x, y, name)
    operations = [
        lambda a, b: a // b,
        lambda a, b: a % b,
        lambda a, b: te.truncdiv(a, b),
        lambda a, b: te.truncmod(a, b),
    ]
    results = te_results(device, operations, name, x, y)
    for what, found, want in zip("//, %, div, mod".split(", "), results, wanted, strict=True):
        wrong = np.flatnonzero(found != want)
        assert not wrong.size, (what, x[wrong][:5], y[wrong][:5], found[wrong][:5], want[wrong][:5])


@pytest.mark.parametrize("device", DEVICES)
def test_a_constant_zero_divides_to_zero(device):
    x = extremes("int32")
    operations = (
        lambda a: a // 0,
        lambda a: a % 0,
        lambda a: te.truncdiv(a, te.const(0, "int32")),
    )
    for result in te_results(device, operations, "int32", x):
        assert not result.any()


@pytest.mark.parametrize("device", DEVICES)
def test_division_by_constants(device):
    x, divisors = extremes("int8"), [1, 2, 3, 7, 8, -1, -2, -3, -8, 127, -128]
    operations = [f for d in divisors for f in (lambda a, d=d: a // d, lambda a, d=d: a % d)]
    results = iter(te_results(device, operations, "int8", x))
    for divisor in divisors:
        for want in quotients(x, np.full_like(x, divisor), "int8")[:2]:
            assert np.array_equal(next(results), want), divisor


@pytest.mark.parametrize("name", INTEGERS)
def test_division_of_arrays(name):
    x, y = pairs(name)
    quotient, remainder, _, _ = quotients(x, y, name)
    a, b = weft.asarray(x), weft.asarray(y)
    assert np.array_equal((a // b).numpy(), quotient)
    assert np.array_equal((a % b).numpy(), remainder)


def rounded_once(values, bits, least, most):
    """Nearest numbers of so many significant bits, ties to even, by scaling with powers of two, which is exact."""
    exponent = np.maximum(np.frexp(values)[1] - 1, least)
    unit = np.ldexp(1.0, exponent - bits + 1)
    out = np.rint(values / unit) * unit
    return np.where(np.abs(out) > most, np.copysign(np.inf, values), out)


@pytest.mark.parametrize(
    ("narrow", "bits", "least", "most"),
    [("float16", 11, -14, 65504.0), ("bfloat16", 8, -126, 2.0**127 * (2 - 2.0**-7))],
)
def test_float64_is_rounded_once(narrow, bits, least, most):
    rng = np.random.default_rng(22)
    count = 4001
    exponents = rng.integers(least - bits - 3, least + 12, count)
    exponents[::3] = rng.integers(-14, 16, exponents[::3].size)
    values = np.ldexp(rng.integers(1 << bits, 2 << bits, count) / float(1 << bits), exponents)
    # Ties of the narrow type, and what lies beside them by less than float32 sees.
    beside = rng.choice([0.0, 2.0**-52, -(2.0**-52), 2.0**-30, -(2.0**-30), 2.0**-26], count)
    values *= (1 + beside) * rng.choice([-1.0, 1.0], count)
    values[-6:] = [most, most * (1 + 2.0**-bits), most * (1 + 2.0 ** -(bits + 2)), 0.0, -0.0, 1e300]
    want = rounded_once(values, bits, least, most)
    got = weft.asarray(values).astype(getattr(weft, narrow)).astype(weft.float64).numpy()
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(values))


@pytest.mark.parametrize("other", ["bool", *INTEGERS, "float64", "bfloat16"])
def test_float16_by_way_of_float32(other):
    """Groups of 32 and what is left over of them."""
    rng = np.random.default_rng(23)
    for n in (1, 31, 32, 33, 64, 95, 1000):
        half = rng.integers(0, 100, n).astype("float16")
        there = weft.asarray(half).astype(getattr(weft, other))
        np.testing.assert_array_equal(
            there.astype(weft.float64).numpy(), half.astype(bool if other == "bool" else "float64")
        )
        np.testing.assert_array_equal(
            there.astype(weft.float16).numpy(),
            half.astype(bool).astype("float16") if other == "bool" else half,
        )


NARROW = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("source", ["float64", "float32", "float16"])
def test_nans_of_any_payload_stay_nans(source):
    """A payload whose bits are all in the part that is cut off would leave an infinity."""
    width = np.dtype(source).itemsize * 8
    digits = {"float64": 52, "float32": 23, "float16": 10}[source]
    kind = f"uint{width}"
    payloads = [1, 2, 1 << (digits - 1), (1 << digits) - 1, 1 << (digits // 2), 3 << (digits - 2)]
    rng = np.random.default_rng(4)
    payloads += [int(p) for p in rng.integers(1, 1 << min(digits, 16), 21)]
    exponent = (1 << (width - 1 - digits)) - 1 << digits
    bits = [exponent | p | s << (width - 1) for p in payloads for s in (0, 1)]
    nans = np.array(bits, kind).view(source)
    assert np.isnan(nans).all()
    for to in [t for t in ("float32", *NARROW) if t != source]:
        there = weft.asarray(nans)
        assert np.isnan(there.astype(to).astype("float32").numpy()).all(), to
        n = nans.size
        for device, loop in itertools.product(("cpu", "c", "ref"), ("range", "T.vectorized")):
            text = f"""
@T.prim_func
def main(A: T.Buffer(({n},), "{source}"), B: T.Buffer(({n},), "float32")):
    for o in range({n // 2}):
        for i in {loop}(2):
            with T.block("b"):
                v = T.axis.spatial({n}, o * 2 + i)
                B[v] = T.Cast("float32", T.Cast("{to}", A[v]))
"""
            try:
                module = weft.build(weft.script.from_source(text), target=device)
            except weft.Error as error:  # types that a target does not compute with
                assert to.startswith("float8") and error.code, error
                continue
            found = weft.zeros(n, device=device)
            module["main"](weft.asarray(nans, device=device), found)
            assert np.isnan(found.numpy()).all(), (to, device, loop)
