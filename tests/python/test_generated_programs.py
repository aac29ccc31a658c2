# SPDX-License-Identifier: Apache-2.0
"""Random tensor programs with fixed seeds on every target here (a long run: tools/generate_programs), and the small programs that
earlier runs found."""

import numpy as np
import pytest
import weft
from generate import aliases
from generate import compare
from generate import expressions as X
from generate import programs as P

TARGETS = [t for t in ("ref", "cpu", "c", "opencl") if weft.device(compare.device_of(t)).available]
COUNTS = {"ref": 150, "cpu": 60, "c": 8, "opencl": 8}


@pytest.mark.parametrize("target", ["cuda:arch=sm_90", "opencl"])
def test_passes_for_grids_keep_the_meaning(target):
    if target.split(":")[0] not in weft._core.targets():
        pytest.skip(f"built without the target {target}")
    for seed in range(25):
        weft.build(weft.script.from_source(P.text(compare.case(seed)[0])[0]), target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_random_programs_agree_with_the_reference(target):
    compared = 0
    for seed in range(COUNTS[target]):
        story = compare.story(seed, target, budget=100)
        assert story is None, story
        program, arrays = compare.case(seed)
        compared += not isinstance(compare.run(program, target, arrays), weft.Error)
    assert compared * 10 >= COUNTS[target] * 9  # refusals are the exception


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "opencl"])  # there threads overlap
def test_parameters_that_overlap_follow_the_order_of_the_program(target):
    for seed in range({"ref": 150, "cpu": 60, "c": 8}[target]):
        story = aliases.story(seed, target)
        assert story is None, story


# Found by the generators: arithmetic on data wraps, so none of these may be simplified as if it had no ends.
FOUND = {
    "product in a comparison": ("bool", "(T.int64(-2) * A_int64[v]) <= A_int64[v]"),
    "sum below its operand": ("int32", "T.max(A_int32[v] + T.Cast('int32', v), A_int32[v])"),
    "constants far apart": (
        "int32",
        "T.Select(T.int64(-2) >= T.int64(9223372036854775806), T.int32(0), A_int32[v])",
    ),
    "a large number that a choice leaves": (
        "int32",
        "T.Select(T.Select(T.bool(True), T.int64(9223372036854775807), T.int64(31)) < T.int64(0), A_int32[v], T.int32(31))",
    ),
    "the larger of what a choice leaves": (
        "int64",
        "T.max(T.Select(T.bool(True), T.int64(9223372036854775807), T.int64(31)), T.int64(-5))",
    ),
    "negation that is widened": (
        "uint64",
        "A_uint64[v] - T.Cast('uint64', A_int32[v] * T.int32(-1))",
    ),
    "widened sum": ("int64", "T.Cast('int64', A_int32[v] + T.int32(1)) - T.int64(1)"),
    "sum compared with its operand": ("bool", "A_int32[v] + T.int32(1) > A_int32[v]"),
    "quotient of a product": ("int32", "(A_int32[v] * T.int32(8)) // T.int32(8)"),
    "remainder of a product": ("int64", "(A_int64[v] * T.int64(6)) % T.int64(3)"),
    "product of uint16": ("uint16", "(A_uint16[v] * A_uint16[v]) >> T.uint16(1)"),
    "quotient of a positive sum": (
        "int32",
        "(T.max(A_int32[v], T.int32(0)) + T.int32(1)) // T.int32(7)",
    ),
    "quotient by the least number": (
        "int32",
        "T.int32(1) // (T.int32(-2147483648) + T.Cast('int32', v))",
    ),
    # aliases, seed 10620189: of loop variables alone, whose bounds leave the type
    "larger of a sum of a loop variable": (
        "int32",
        "T.max(T.int32(2147483640) + T.Cast('int32', v), T.int32(0))",
    ),
    "smaller of a sum of a loop variable": (
        "int32",
        "T.min(T.int32(-2147483640) - T.Cast('int32', v), T.int32(0))",
    ),
    "sum of a loop variable compared": (
        "bool",
        "T.Cast('int32', v) + T.int32(2147483640) > T.int32(0)",
    ),
    "quotient of a product of a loop variable": (
        "int32",
        "(T.Cast('int32', v) * T.int32(100000000)) // T.int32(100000000)",
    ),
    "narrowed loop variable": (
        "int32",
        "T.max(T.Cast('int32', T.Cast('int8', v * 9)), T.int32(-3))",
    ),
}
TEXT = """
@T.prim_func
def main(A_int32: T.Buffer((29,), "int32"), A_int64: T.Buffer((29,), "int64"), A_uint16: T.Buffer((29,), "uint16"), A_uint64: T.Buffer((29,), "uint64"), O: T.Buffer((29,), "{dtype}")):
    for i in range(29):
        with T.block("o"):
            v = T.axis.spatial(29, i)
{body}
"""


def by_hand(name, a, v):
    """The value of a row of FOUND at element v, in Python's integers."""
    i32, i64, u16, u64 = (int(a[t][v]) for t in ("int32", "int64", "uint16", "uint64"))
    return {
        "product in a comparison": lambda: X.wrap(-2 * i64, "int64") <= i64,
        "sum below its operand": lambda: max(X.wrap(i32 + v, "int32"), i32),
        "constants far apart": lambda: i32,
        "a large number that a choice leaves": lambda: 31,
        "the larger of what a choice leaves": lambda: 2**63 - 1,
        "negation that is widened": lambda: X.wrap(u64 - X.wrap(-i32, "int32"), "uint64"),
        "widened sum": lambda: X.wrap(i32 + 1, "int32") - 1,
        "sum compared with its operand": lambda: X.wrap(i32 + 1, "int32") > i32,
        "quotient of a product": lambda: X.wrap(i32 * 8, "int32") // 8,
        "remainder of a product": lambda: X.wrap(i64 * 6, "int64") % 3,
        "product of uint16": lambda: X.wrap(u16 * u16, "uint16") >> 1,
        "quotient of a positive sum": lambda: X.wrap(max(i32, 0) + 1, "int32") // 7,
        "quotient by the least number": lambda: 1 // (-(2**31) + v),
        "larger of a sum of a loop variable": lambda: max(X.wrap(2147483640 + v, "int32"), 0),
        "smaller of a sum of a loop variable": lambda: min(X.wrap(-2147483640 - v, "int32"), 0),
        "sum of a loop variable compared": lambda: X.wrap(v + 2147483640, "int32") > 0,
        "quotient of a product of a loop variable": lambda: X.wrap(v * 10**8, "int32") // 10**8,
        "narrowed loop variable": lambda: max(X.wrap(v * 9, "int8"), -3),
    }[name]()


@pytest.mark.parametrize("held", [False, True], ids=["stored", "named"])
@pytest.mark.parametrize("name", FOUND)
@pytest.mark.parametrize("target", TARGETS)
def test_arithmetic_on_data_wraps(target, name, held):
    dtype, value = FOUND[name]
    lines = [f"x: T.{dtype} = {value}", "O[v] = x"] if held else [f"O[v] = {value}"]
    text = TEXT.format(dtype=dtype, body="\n".join(" " * 12 + line for line in lines))
    arrays = P.inputs(P.rng_of(7))
    for t in ("int32", "int64"):
        info = np.iinfo(t)
        arrays[t][:6] = [info.min, info.max, info.min + 1, info.max - 1, -1, info.max // 8 + 1]
    arrays["uint16"][:2] = [65535, 256]
    device = compare.device_of(target)
    out = weft.zeros((29,), dtype=dtype, device=device)
    given = [weft.asarray(arrays[t], device=device) for t in ("int32", "int64", "uint16", "uint64")]
    weft.build(weft.script.from_source(text), target=target)["main"](*given, out)
    wanted = np.array([by_hand(name, arrays, v) for v in range(29)], dtype)
    np.testing.assert_array_equal(out.numpy(), wanted)


CSL = ["wse2/bytecode", "wse2/native", "wse3/bytecode", "wse3/native"]


@pytest.mark.targets("wse")
@pytest.mark.parametrize("target", CSL)
def test_csl_descriptors_agree_with_an_evaluator(target):
    from generate import csl

    for seed in range(40):
        story = csl.story(seed, target)
        assert story is None, story


@pytest.mark.targets("wse")
def test_a_wrong_csl_operation_is_found_and_cut_down(monkeypatch):
    """The reference is made wrong: the story is a program of one statement."""
    from generate import csl

    monkeypatch.setitem(csl.OPERATIONS, "sub16", ("u16", 2, lambda x, y: (y - x) & 0xFFFF))
    stories = [csl.story(seed, "wse2/bytecode") for seed in range(40)]
    found = [story for story in stories if story]
    assert found
    for story in found:
        assert [
            line.split("(")[0].strip()
            for line in story.splitlines()
            if line.startswith("  @") and "16" in line
        ][0] == "@sub16"
        assert story.count("\n  @sub16") + story.count("{ @sub16") == 1
