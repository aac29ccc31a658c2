# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of narrow integers wraps inside expressions, too, on machines that compute in 32 bits; what a machine cannot do so is
refused."""

import numpy as np
import pytest
import weft
from weft import _core

TEXT = """
@T.prim_func
def main(A: T.Buffer((16, 16), "{dtype}"), B: T.Buffer((16, 16), "{dtype}"), C: T.Buffer((16, 16), "{dtype}")):
    {temporary}
    for i, j in T.grid(16, 16):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            {first}
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = {value}
"""
A, B, S = "A[vi, vj]", "B[vi, vj]", "S[vi, vj]"
# Values that are inside a larger expression, where no store narrows them.
INNER = [
    f"{A} + {B}", f"{A} - {B}", f"{A} * {B}", f"{A} + T.{{t}}(100)", f"{A} * T.{{t}}(4)", f"T.shift_left({A}, T.{{t}}(2))",
    f"T.abs({A})", f"({A} + {B}) * {B}", f"T.{{t}}(3) - {A}",
]  # fmt: skip
OUTER = [
    "T.max({x}, T.{t}(1))",
    "T.min({x}, B[vi, vj])",
    "T.shift_right({x}, T.{t}(1))",
    "({x}) // T.{t}(4)",
]
LEAST = {"vta": 0.9, "qpu": 0.5, "wse:4x4": 0.5}  # of programs that must be accepted


@pytest.mark.parametrize("apart", [False, True], ids=["in one block", "through a buffer"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint16", "int32"])
@pytest.mark.parametrize("target", LEAST)
def test_values_inside_expressions_wrap(target, dtype, apart):
    if target.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {target} target")
    info, rng = np.iinfo(dtype), np.random.default_rng(7)
    x, y = (rng.integers(info.min, info.max, (16, 16), dtype, endpoint=True) for _ in range(2))
    x[0, :4] = y[0, 2:6] = [info.min, info.max, info.min + 1, info.max - 1]
    accepted, wrong = 0, []
    for inner in INNER:
        for outer in OUTER:
            value = outer.format(x=S if apart else inner.format(t=dtype), t=dtype)
            first = f"{S} = {inner.format(t=dtype)}" if apart else f"{S} = {A}"
            text = TEXT.format(dtype=dtype, value=value, first=first, temporary=f'S = T.alloc_buffer((16, 16), "{dtype}")')  # fmt: skip
            program = weft.script.from_source(text)
            refusal = weft.accepts(program, target)
            if refusal is not None:
                continue
            accepted += 1
            results = {}
            for at in ("ref", target):
                held = [weft.asarray(v, device=at) for v in (x, y, np.zeros_like(x))]
                weft.build(program, target=at)["main"](*held)
                results[at] = held[2].numpy()
            if not np.array_equal(results["ref"], results[target]):
                wrong.append(f"{first}; {value}")
    assert not wrong, "\n".join(wrong)
    if target == "vta" or dtype == "int32":
        assert accepted >= LEAST[target] * len(INNER) * len(OUTER), accepted


CAST = """
@T.prim_func
def main(A: T.Buffer((16, 16), "int32"), C: T.Buffer((16, 16), "int32")):
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = {value}
"""
SUM = """
@T.prim_func
def main(A: T.Buffer((16, 16), "{dtype}"), C: T.Buffer((1, 1), "int32")):
    S = T.alloc_buffer((1, 1), "{dtype}")
    for i, j, k in T.grid(1, 1, 160):
        with T.block("S"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                S[vi, vj] = T.{dtype}(0)
            S[vi, vj] = S[vi, vj] + A[vk // 16, vk % 16]
    for i, j in T.grid(1, 1):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.cast(S[vi, vj], "int32") + 1
"""


@pytest.mark.parametrize("dtype", ["bool", "uint8", "uint16", "int8", "int16"])
@pytest.mark.parametrize("target", LEAST)
def test_values_that_leave_a_type_inside_an_expression(target, dtype):
    """Unsigned ones stay unsigned; a number is true unless it is 0."""
    if target.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {target} target")
    x = np.random.default_rng(1).integers(-(2**20), 2**20, (16, 16)).astype("int32")
    x[0, :8] = [0, 255, 256, -1, 65535, 65536, -(2**31), 2**31 - 1]
    accepted = 0
    for inner in (A, f"T.max({A}, T.int32(0))", f"T.bitwise_and({A}, T.int32(1023))"):
        for outer in ("{x}", "{x} + 2", "T.max({x}, T.int32(100))"):
            value = outer.format(x=f'T.cast(T.cast({inner}, "{dtype}"), "int32")')
            program = weft.script.from_source(CAST.format(value=value))
            if weft.accepts(program, target) is not None:
                continue
            accepted += 1
            results = {}
            for at in ("ref", target):
                held = [weft.asarray(v, device=at) for v in (x, np.zeros_like(x))]
                weft.build(program, target=at)["main"](*held)
                results[at] = held[1].numpy()
            np.testing.assert_array_equal(results[target], results["ref"], err_msg=value)
    assert accepted >= (3 if target == "vta" else 0), accepted


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int8", "int16"])
@pytest.mark.parametrize("high", [3, 250])
def test_sums_into_narrow_integers(dtype, high):
    if "vta" not in _core.targets():
        pytest.skip("built without the vta target")
    program = weft.script.from_source(SUM.format(dtype=dtype))
    assert weft.accepts(program, "vta") is None
    x = np.random.default_rng(high).integers(0, high, (16, 16)).astype(dtype)
    held = [weft.asarray(v, device="vta") for v in (x, np.zeros((1, 1), "int32"))]
    weft.build(program, target="vta")["main"](*held)
    assert held[1].numpy()[0, 0] == int(x.ravel()[:160].sum(dtype=dtype)) + 1
