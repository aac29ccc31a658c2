# SPDX-License-Identifier: Apache-2.0
"""Every operation on two values, of every type, at the ends of the types, as plain loops and as vectors, on each target that compiles:
beside the reference interpreter bit by bit, and beside NumPy."""

import itertools
import platform
import re

import numpy as np
import pytest
import weft
from conftest import SEED
from weft import script as T
from weft import te

TYPES = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64".split()
VALUES = {  # operation: text, and NumPy's meaning (None: the reference interpreter's alone)
    "add": ("{a} + {b}", np.add),
    "sub": ("{a} - {b}", np.subtract),
    "mul": ("{a} * {b}", np.multiply),
    "min": ("T.min({a}, {b})", np.minimum),
    "max": ("T.max({a}, {b})", np.maximum),
    "select": ("T.Select({a} < {b}, {b}, {a})", lambda a, b: np.where(a < b, b, a)),
    "choice": ("T.if_then_else({a} >= {b}, {a}, {b})", lambda a, b: np.where(a >= b, a, b)),
}
TRUTHS = {
    "eq": ("{a} == {b}", np.equal), "ne": ("{a} != {b}", np.not_equal), "lt": ("{a} < {b}", np.less),
    "le": ("{a} <= {b}", np.less_equal), "gt": ("{a} > {b}", np.greater), "ge": ("{a} >= {b}", np.greater_equal),
    "and": ("T.And({a} < {b}, {b} > {zero})", lambda a, b: (a < b) & (b > 0)),
    "or": ("T.Or({a} < {b}, {b} > {zero})", lambda a, b: (a < b) | (b > 0)),
    "not": ("T.Not({a} < {b})", lambda a, b: ~(a < b)),
}  # fmt: skip


def pairs(name):
    """All pairs of telling numbers, and some at random."""
    rng = np.random.default_rng(SEED)
    if "int" in name:
        ends = np.iinfo(name)
        few = [ends.min, ends.min + 1, ends.max // 2 + 1, ends.max - 1, ends.max, 0, 1, 2, 3, 100]
        few += [] if name[0] == "u" else [-1, -2, -100]
        numbers = np.array(few, name)
        more = rng.integers(ends.min, ends.max, (2, 24), dtype=name, endpoint=True)
    else:
        kind = "float32" if name == "bfloat16" else name
        few = [0.0, -0.0, 1.0, -1.0, 0.3, 65504.0, -65504.0, 6e-8, -6e-8, np.inf, -np.inf, np.nan]
        numbers, more = np.array(few, kind), rng.normal(size=(2, 24)).astype(kind)
    both = np.array(list(itertools.product(numbers, numbers)), numbers.dtype).T
    both = np.concatenate([both, more], axis=1)
    return np.concatenate([both, both[:, : -both.shape[1] % 8]], axis=1)  # whole vectors of eight


def program(name, n, inner, outer="range({})"):
    """Rows of O are values, rows of P truths as 0 and 1."""
    text = f"""
@T.prim_func
def main(A: T.Buffer(({n},), "{name}"), B: T.Buffer(({n},), "{name}"), O: T.Buffer(({len(VALUES)}, {n}), "{name}"), P: T.Buffer(({len(TRUTHS)}, {n}), "int32")):
"""
    parts = dict(a="A[v]", b="B[v]", zero=f"T.{name}(0)")
    stores = [f"O[{k}, v] = {row[0]}" for k, row in enumerate(VALUES.values())]
    stores += [
        f"P[{k}, v] = T.Select({row[0]}, T.int32(1), T.int32(0))"
        for k, row in enumerate(TRUTHS.values())
    ]
    for k, store in enumerate(stores):
        text += f"    for o in {outer.format(n // 8)}:\n        for i in {inner}:\n            with T.block('b{k}'):\n"
        text += f"                v = T.axis.spatial({n}, o * 8 + i)\n                {store.format(**parts)}\n"
    return T.from_source(text)


def results(target, module, name, a, b):
    device = weft.device(target)
    n = a.size
    out = weft.zeros((len(VALUES), n), dtype=name, device=device)
    truths = weft.zeros((len(TRUTHS), n), dtype="int32", device=device)
    given = [weft.asarray(x, device=device).astype(name) for x in (a, b)]
    module["main"](*given, out, truths)
    as_numbers = out.astype("float32") if name == "bfloat16" else out
    return as_numbers.numpy(), truths.numpy()


def reference(name, a, b):
    return results("ref", weft.build(program(name, a.size, "range(8)"), target="ref"), name, a, b)


@pytest.mark.parametrize("name", TYPES)
def test_operations_of_two_values(name):
    a, b = pairs(name)
    n = a.size
    wanted, truths = reference(name, a, b)
    if name not in ("bfloat16", "float16"):
        with np.errstate(all="ignore"):
            for k, (label, (_, meaning)) in enumerate(VALUES.items()):
                np.testing.assert_array_equal(wanted[k], meaning(a, b), label)
    if name == "bfloat16":
        a, b = (weft.asarray(x).astype(name).astype("float32").numpy() for x in (a, b))
    for k, (label, (_, meaning)) in enumerate(TRUTHS.items()):
        np.testing.assert_array_equal(truths[k], meaning(a, b), label)
    hosts = [("range(8)",), ("T.vectorized(8)",)]
    places = [("cpu", hosts), ("c", hosts)]
    if weft.device("opencl:0").available and name in ("int8", "uint32", "int64", "float32"):
        axis = 'T.thread_binding({}, thread="%s")'
        places.append(("opencl", [((axis % "threadIdx.x").format(8), axis % "blockIdx.x")]))
    for target, ways in places:
        for loops in ways:
            built = weft.build(program(name, n, *loops), target=target)
            values, said = results(target, built, name, a, b)
            for k, label in enumerate(VALUES):
                np.testing.assert_array_equal(values[k], wanted[k], f"{label} on {target}, {loops}")
            np.testing.assert_array_equal(said, truths, f"{target}, {loops}")


@pytest.mark.parametrize(
    "function, name, ending",
    [("sin", "float32", "f"), ("sin", "float64", ""), ("exp", "float64", "")],
)
def test_vectors_call_the_vector_library(function, name, ending):
    """Lane by lane gives the same values in a multiple of the time."""
    if not re.search("x86", platform.machine()):
        pytest.skip("the vector library's names are those of x86")
    text = f"""
@T.prim_func
def main(A: T.Buffer((48,), "{name}"), B: T.Buffer((48,), "{name}")):
    for o in range(3):
        for i in T.vectorized(16):
            with T.block("b"):
                v = T.axis.spatial(48, o * 16 + i)
                B[v] = T.{function}(A[v])
"""
    built = weft.build(T.from_source(text), target="cpu")
    assert re.search(rf"@_ZGV[bde]N\d+v_{function}{ending}\(", built.source())
    a, b = np.random.default_rng(SEED).normal(size=48).astype(name), weft.zeros(48, dtype=name)
    built["main"](weft.asarray(a), b)
    np.testing.assert_allclose(b.numpy(), getattr(np, function)(a), rtol=4 * np.finfo(name).eps)


@pytest.mark.parametrize("target", ["cpu", "c", "ref"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("divisor", [-1, -2, 3])
def test_quotients_by_constants(target, dtype, divisor):
    least = np.iinfo(dtype).min
    x = np.array([least, least + 1, -7, -1, 0, 1, 6, np.iinfo(dtype).max], dtype)
    A = te.placeholder((8,), dtype, name="A")
    B = te.compute((8,), lambda i: te.floordiv(A[i], te.const(divisor, dtype)), name="B")
    C = te.compute((8,), lambda i: te.floormod(A[i], te.const(divisor, dtype)), name="C")
    module = weft.build(te.create_prim_func([A, B, C]), target=target)
    device = weft.device({"c": "c", "ref": "ref"}.get(target, "cpu"))
    a, b, c = (weft.asarray(v, device=device) for v in (x, np.zeros_like(x), np.zeros_like(x)))
    module["main"](a, b, c)
    wanted = [v // divisor for v in x.tolist()]
    wanted = np.array([(w + 2 ** (8 * x.itemsize - 1)) % 2 ** (8 * x.itemsize) - 2 ** (8 * x.itemsize - 1) for w in wanted], dtype)  # fmt: skip
    np.testing.assert_array_equal(b.numpy(), wanted)
    np.testing.assert_array_equal(c.numpy(), np.array([v % divisor for v in x.tolist()], dtype))


@pytest.mark.parametrize("target", ["metal", "opencl", "cuda"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_signed_arithmetic_of_data_is_unsigned_where_overflow_has_no_meaning(target, dtype):
    """Both operands of each operation, wherever the data stands in it."""
    a = te.placeholder((4,), dtype, name="A")
    b = te.compute((4,), lambda i: (a[i] * 3 + 7) * 5 - (2 - a[i]), name="B")
    text = weft.build(te.create_prim_func([a, b]), target=target).source()
    unsigned = re.compile(r"\((uint|ulong|unsigned int|unsigned long long|unsigned long)\)")
    line = next(row for row in text.splitlines() if "* 3" in unsigned.sub("", row).replace("(", "").replace(")", ""))  # fmt: skip
    assert len(unsigned.findall(line)) == 10, line
