# SPDX-License-Identifier: Apache-2.0
"""What floats become as integers: the same on all targets wherever the carrying type (ir/float_cast.h) holds the number, alone and in vectors."""

import numpy as np
import pytest
import weft
from weft import _core

TEXT = """
@T.prim_func
def main(A: T.Buffer((64,), "{source}"), C: T.Buffer((64,), "{to}")):
    for i in T.{loop}:
        with T.block("C"):
            vi = T.axis.remap("S", [i])
            C[vi] = T.cast(A[vi], "{to}")
"""
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def carried(to):
    """The signed type that takes the number without its fraction; for uint64 its own numbers."""
    bits = np.iinfo(to).bits
    return "int32" if bits < 32 else "int64" if to == "uint32" else to


def numbers(source, to):
    range_ = np.iinfo(carried(to))
    limit = min(float(range_.max), float(np.finfo(source).max)) * 0.99
    draws = np.random.default_rng(5).uniform(max(float(range_.min) * 0.99, -limit), limit, 32)
    edges = [0, -0.0, 0.99, -0.99, -1, -3, -3.7, 127.5, 128, 255.5, 256, 300, -300, 32768, 60000, -60000]  # fmt: skip
    x = np.array([*draws, *edges, *edges]).astype(source)
    return np.abs(x) if to == "uint64" else x


@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
@pytest.mark.parametrize("loop", ["serial(64)", "vectorized(64)"])
@pytest.mark.parametrize("target", ["ref", "cpu", "c", "wse:4x4"])
def test_programs(target, loop, source, to):
    if target.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {target} target")
    program = weft.script.from_source(TEXT.format(source=source, to=to, loop=loop))
    if weft.accepts(program, target) is not None:
        assert target.startswith("wse")
        return
    x = numbers(source, to)
    held = [weft.asarray(x, device=target), weft.asarray(np.zeros(64, to), device=target)]
    weft.build(program, target=target)(*held)
    want = np.trunc(x.astype("float64")).astype(carried(to)).astype(to)
    np.testing.assert_array_equal(np.asarray(held[1].to("cpu")), want)


@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("source", ["float16", "float32", "float64"])
def test_arrays(source, to):
    x = numbers(source, to)
    want = np.trunc(x.astype("float64")).astype(carried(to)).astype(to)
    w = weft.asarray(x)
    np.testing.assert_array_equal(np.asarray(w.astype(to)), want)
    fused = weft.compile(lambda a: (a + 0.0).astype(to))
    np.testing.assert_array_equal(np.asarray(fused(w)), want)
