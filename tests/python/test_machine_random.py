# SPDX-License-Identifier: Apache-2.0
"""Random small programs on the simulated machines: what `weft.accepts` takes builds and computes what the reference
interpreter computes; what it refuses is refused by `weft.build` with the same code, and the cause is named."""

import numpy as np
import pytest

import weft
from random_programs import random_program
from weft import _core

# target, seeds, how many of them must be accepted at least
ROWS = [("qpu", 500, 490), ("vta", 500, 180), ("wse:4x4", 500, 440)]
PART = 100


def inputs(params, seed):
    random = np.random.default_rng(seed)
    return [random.integers(0 if t[0] == "u" else -4, 6, shape).astype(t) for _, shape, t in params]


def run(module, arrays, device):
    held = [weft.asarray(a, device=device) for a in arrays]
    module["main"](*held)
    return [a.numpy() for a in held]


def check(seed, target):
    """Whether the program was accepted."""
    text, params = random_program(seed, target.split(":")[0])
    program = weft.script.from_source(text)
    refusal = weft.accepts(program, target)
    if refusal is not None:
        assert str(refusal).count("\n") > 0 or refusal.help, f"seed {seed}: {refusal}"
        with pytest.raises(weft.Error) as caught:
            weft.build(program, target=target)
        assert caught.value.code == refusal.code, f"seed {seed}"
        return False
    try:
        module = weft.build(program, target=target)
    except weft.Error as error:
        pytest.fail(f"seed {seed} is accepted and does not build: {error}\n{text}")
    given = inputs(params, seed)
    wanted = run(weft.build(program, target="ref"), given, "ref")
    got = run(module, given, target)
    for (name, _, dtype), want, have in zip(params, wanted, got):
        where = f"seed {seed}, {name}\n{text}"
        if dtype.startswith("float"):
            near = 2e-2 if dtype == "float16" else 1e-3
            want, have = want.astype("float64"), have.astype("float64")
            np.testing.assert_allclose(have, want, rtol=near, atol=near, err_msg=where)
        else:
            np.testing.assert_array_equal(have, want, err_msg=where)
    return True


@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("row", ROWS, ids=[r[0] for r in ROWS])
def test_what_is_accepted_builds_and_is_right(row, part):
    target, seeds, least = row
    if target.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {target} target")
    first = 7000 + part * PART
    accepted = sum(check(seed, target) for seed in range(first, first + PART))
    assert accepted * seeds >= least * PART * 0.8, f"{accepted} of {PART} accepted"


CAST = """
@T.prim_func
def main(A: T.Buffer((16, 16), "{of}"), C: T.Buffer((16, 1), "int32")):
    for i, j, k in T.grid(16, 1, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.int32(0)
            C[vi, vj] = {value}
"""
TERM = 'T.cast(T.cast(A[vi, vk], "{to}"), "int32")'
FORMS = {
    "sum": f"C[vi, vj] + {TERM}",
    "largest": f"T.max(C[vi, vj], {TERM})",
    "product": f"C[vi, vj] + {TERM} * {TERM}",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "of, to",
    [
        ("int32", "uint8"),
        ("int32", "int8"),
        ("int8", "uint8"),
        ("uint8", "int8"),
        ("int8", "int16"),
    ],
)
def test_a_cast_inside_a_reduction_keeps_its_meaning_or_is_refused(form, of, to):
    if "vta" not in _core.targets():
        pytest.skip("built without the vta target")
    program = weft.script.from_source(CAST.format(of=of, value=FORMS[form].format(to=to)))
    refusal = weft.accepts(program, "vta")
    if refusal is not None:
        assert refusal.code in ("vta.accepts.operand", "vta.accepts.dtype"), refusal
        return
    x = np.random.default_rng(3).integers(-300, 300, (16, 16)).astype(of)
    wide = x.astype(to).astype("int32")
    want = {
        "sum": wide.sum(1),
        "largest": np.maximum(wide.max(1), 0),
        "product": (wide * wide).sum(1),
    }[form]
    got = run(weft.build(program, target="vta"), [x, np.zeros((16, 1), "int32")], "vta")[1]
    np.testing.assert_array_equal(got[:, 0], want)


EXTREME = """
@T.prim_func
def main(A: T.Buffer(({m}, {n}), "{dtype}"), C: T.Buffer(({m}, 1), "{dtype}")):
    for i, j, k in T.grid({m}, 1, {n}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.{dtype}({init})
            C[vi, vj] = T.{how}(C[vi, vj], A[vi, vk])
"""


@pytest.mark.parametrize("how", ["min", "max"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
@pytest.mark.parametrize("target", [row[0] for row in ROWS])
def test_extremes_of_whole_ranges(target, dtype, how):
    """Unsigned values with their highest bit set are large, in one lane, across lanes and across PEs."""
    if target.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {target} target")
    info = np.iinfo(dtype)
    for m, n in [(1, 1), (1, 700), (8, 14), (40, 3), (16, 16)]:
        init = min(int(info.max), 2**31 - 1) if how == "min" else 0
        program = weft.script.from_source(EXTREME.format(m=m, n=n, dtype=dtype, how=how, init=init))
        refusal = weft.accepts(program, target)
        if refusal is not None:
            assert refusal.code.endswith("dtype"), refusal
            continue
        x = np.random.default_rng(n).integers(
            info.min, info.max, (m, n), endpoint=True, dtype=dtype
        )
        got = run(weft.build(program, target=target), [x, np.zeros((m, 1), dtype)], target)[1][:, 0]
        first = np.array(init, dtype)
        want = np.minimum(x.min(1), first) if how == "min" else np.maximum(x.max(1), first)
        np.testing.assert_array_equal(got, want, err_msg=f"{m} x {n}")


UNREAD = """
@T.prim_func
def main(A: T.Buffer((2, 24), "int32"), C: T.Buffer((2, 24), "int32")):
    S = T.alloc_buffer((48, 1), "int8")
    R = T.alloc_buffer((48, 1), "int8")
    for i, j in T.grid(48, 1):
        with T.block("S"):
            vi, vj = T.axis.remap("SS", [i, j])
            S[vi, vj] = T.cast(A[vi // 24, vi % 24], "int8")
    for i, j in T.grid(48, 1):
        with T.block("R"):
            vi, vj = T.axis.remap("SS", [i, j])
            R[vi, vj] = S[vi, vj]
    for i, j in T.grid(2, 24):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * 2
"""


@pytest.mark.parametrize("target", [row[0] for row in ROWS])
def test_results_that_nobody_reads_do_no_harm(target):
    if target.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {target} target")
    text = UNREAD if target == "vta" else UNREAD.replace("int8", "int32")
    x = np.arange(48, dtype="int32").reshape(2, 24) - 20
    got = run(weft.build(weft.script.from_source(text), target=target), [x, x * 0], target)[1]
    np.testing.assert_array_equal(got, x * 2)


def test_accepts_names_unknown_targets_and_programs():
    program = weft.script.from_source(UNREAD)
    with pytest.raises(weft.ArgumentError) as caught:
        weft.accepts(program, "nowhere")
    assert caught.value.code == "target.unknown"
    with pytest.raises(weft.DTypeError) as caught:
        weft.accepts(program, 3)
    assert caught.value.code == "build.target"
    assert weft.accepts(program, "ref") is None


@pytest.mark.parametrize("target", ["qpu", "vta"])
def test_listings_of_modules_assemble(target):
    """What `weft dis` prints of a module is what `weft asm` reads."""
    if target not in _core.targets():
        pytest.skip(f"built without the {target} target")
    listed = 0
    for seed in range(12):
        program = weft.script.from_source(random_program(seed, target)[0])
        if weft.accepts(program, target) is not None:
            continue
        text = weft.build(program, target=target).source()
        words = _core.assemble(target, text, "listing")
        again = _core.assemble(target, _core.disassemble(target, words), "words")
        assert again == words, seed
        listed += len(words) > 0
    assert listed >= 4
