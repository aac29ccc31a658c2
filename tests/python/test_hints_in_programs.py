# SPDX-License-Identifier: Apache-2.0
"""What a program says for speed alone changes no result: likely conditions, stores past the caches, prefetches."""

import numpy as np
import pytest
import weft
from conftest import SEED
from weft import script as T

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((37,), "float32"), N: T.Buffer((37,), "int32"), B: T.Buffer((37,), "float32")):
    for i in {loop}:
        with T.block("b"):
            v = T.axis.spatial(37, i)
            {text}
"""
# name: the body, and its values
BODIES = {
    "likely": (
        "if T.likely(N[v] % 3 != 1):\n                B[v] = A[v] * T.float32(2)\n            else:\n                B[v] = T.float32(-1)",
        lambda a, n: np.where(n % 3 != 1, a * 2, -1),
    ),
    "likely value": (
        "B[v] = T.Select(T.likely(A[v] > T.float32(0.5)), A[v], T.float32(7))",
        lambda a, n: np.where(a > 0.5, a, 7),
    ),
    "likely number": ("B[v] = T.Cast('float32', T.likely(N[v]) + 3)", lambda a, n: n + 3),
    "unlikely arm": (
        "B[v] = T.if_then_else(T.likely(N[v] > 4), A[v], T.likely(A[v]) * T.float32(3))",
        lambda a, n: np.where(n > 4, a, a * 3),
    ),
}  # fmt: skip


@pytest.mark.parametrize("loop", ["range(37)", "T.vectorized(37)", "T.unroll(37)"])
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("target", ["ref", "cpu", "c"])
def test_likely_conditions(target, name, loop):
    text, wanted = BODIES[name]
    rng = np.random.default_rng(SEED)
    a, n = rng.random(37, "float32"), rng.integers(0, 9, 37).astype("int32")
    b = weft.zeros(37, device=target)
    module = weft.build(T.from_source(PROGRAM.format(loop=loop, text=text)), target=target)
    module["main"](weft.asarray(a, device=target), weft.asarray(n, device=target), b)
    np.testing.assert_array_equal(b.numpy(), wanted(a, n).astype("float32"))


@pytest.mark.parametrize("name", BODIES)
def test_likely_conditions_of_cards(name):
    device = weft.device("opencl:0")
    if not device.available:
        pytest.skip(device.reason)
    text, wanted = BODIES[name]
    rng = np.random.default_rng(SEED)
    a, n = rng.random(37, "float32"), rng.integers(0, 9, 37).astype("int32")
    b = weft.zeros(37, device=device)
    loop = 'T.thread_binding(37, thread="threadIdx.x")'
    module = weft.build(T.from_source(PROGRAM.format(loop=loop, text=text)), target="opencl")
    module["main"](weft.asarray(a, device=device), weft.asarray(n, device=device), b)
    np.testing.assert_array_equal(b.numpy(), wanted(a, n).astype("float32"))
