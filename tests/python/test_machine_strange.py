# SPDX-License-Identifier: Apache-2.0
"""Random tensor programs in unusual forms (random_strange_programs.py) on the simulated machines: what `weft.accepts` takes
builds and computes what the reference interpreter computes; what it refuses, `weft.build` refuses with the same code. And the
small programs that they found."""

import random

import numpy as np
import pytest
from random_strange_programs import random_program

import weft
from weft import _core

# target, least number of 120 programs that are accepted and run
ROWS = [("qpu", 40), ("vta", 9), ("wse:4x4", 30)]
NEAR = {"float16": 2e-2, "bfloat16": 2e-2}


def need(target):
    if target.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {target} target")


def values(params, seed):
    random = np.random.default_rng(seed)
    for _, shape, dtype in params:
        if dtype == "bool":
            yield random.random(shape) < 0.5
        else:
            low = 0 if dtype[0] == "u" else -4
            yield random.integers(low, 6, shape).astype(dtype.replace("bfloat16", "float32"))


def outcome(seed, target):
    """True for a right result, the code of a refusal, or what is wrong."""
    text, params, number = random_program(seed, target.split(":")[0])
    program = weft.script.from_source(text)
    refusal = weft.accepts(program, target)
    if refusal is not None:
        if str(refusal).count("\n") == 0 and not refusal.help:
            return f"no reason: {refusal}"
        with pytest.raises(weft.Error) as caught:
            weft.build(program, target=target)
        same = caught.value.code == refusal.code
        return refusal if same else f"{refusal.code}, then {caught.value.code}"
    try:
        module = weft.build(program, target=target)
    except weft.Error as error:
        return f"accepted and not built: {error}"
    try:
        modules = {"ref": weft.build(program, target="ref"), target: module}
    except weft.Error as error:  # it races; then no target has a meaning for it
        return error
    given, results = list(values(params, seed)), {}
    for device, module in modules.items():
        held = [weft.asarray(a, device=device).astype(t) for a, (_, _, t) in zip(given, params)]
        try:
            module["main"](*held, *([] if number is None else [number]))
        except weft.Error as error:
            if device == "ref" or error.code == "qpu.launch.qpus":
                return error
            return f"fails: {error}"
        results[device] = [a.numpy() for a in held]
    for (name, _, dtype), want, got in zip(params, *results.values()):
        if not np.allclose(
            got.astype("f8"),
            want.astype("f8"),
            rtol=NEAR.get(dtype, 1e-3),
            atol=NEAR.get(dtype, 1e-3),
        ):
            return f"{name} is {got.ravel()[:6]}, on ref {want.ravel()[:6]}"
    return True


@pytest.mark.parametrize("target, least", ROWS)
def test_right_or_refused(target, least):
    need(target)
    found = {seed: outcome(seed, target) for seed in range(300, 420)}
    wrong = [f"seed {s}: {o}" for s, o in found.items() if isinstance(o, str)]
    assert not wrong, "\n".join(wrong)
    assert sum(o is True for o in found.values()) >= least


def same_as_ref(text, target, given):
    program = weft.script.from_source(text)
    assert weft.accepts(program, target) is None
    results = []
    for device in ("ref", target):
        held = [weft.asarray(a, device=device) for a in given]
        weft.build(program, target=device)["main"](*held)
        results.append([a.numpy() for a in held])
    for want, got in zip(*results):
        np.testing.assert_array_equal(got, want)
    return results[1]


EMPTY = """
@T.prim_func
def main(A: T.Buffer((7, {n}), "int32"), C: T.Buffer((7,), "int32")):
    for i in range(7):
        with T.block("F"):
            v = T.axis.spatial(7, i)
            C[v] = T.int32(5)
    for {loops}:
        with T.block("S"):
            v = T.axis.spatial(7, {v})
            r = T.axis.reduce({n}, k)
            {where}
            with T.init():
                C[v] = T.int32(-3)
            C[v] = C[v] + A[v, r]
"""


@pytest.mark.parametrize("target", ["qpu", "wse:4x4"])
@pytest.mark.parametrize(
    "loops, v, where",
    [
        ("i, k in T.grid(7, {n})", "i", ""),
        ("k, i in T.grid({n}, 7)", "i", ""),
        ("o, j, k in T.grid(3, 3, {n})", "o * 3 + j", "T.where(o * 3 + j < 7 and k < {n})"),
        ("i, k in T.grid(5, {n})", "i", ""),
    ],
)
def test_a_sum_over_no_point_is_its_init(target, loops, v, where):
    need(target)
    for n in (0, 3):
        text = (
            EMPTY.replace("{loops}", loops)
            .replace("{where}", where or "T.where(True)")
            .replace("{v}", v)
        )
        got = same_as_ref(
            text.replace("{n}", str(n)), target, [np.ones((7, n), "int32"), np.zeros(7, "int32")]
        )
        assert got[1][0] == n - 3


GUARDED = """
@T.prim_func
def main(A: T.Buffer((11,), "int32"), C: T.Buffer((5, 11), "int32")):
    for i, o, j in T.grid(5, {o}, {f}):
        {kind}
        with T.block("S"):
            v = T.axis.spatial(5, i)
            w = T.axis.spatial(11, o * {f} + j)
            T.where(o * {f} + j < 11 and {data})
            C[v, w] = A[w] * 2 + T.cast(v, "int32")
"""


@pytest.mark.parametrize("target", ["qpu", "wse:4x4"])
@pytest.mark.parametrize("f", [2, 4, 5, 16])
@pytest.mark.parametrize(
    "data",
    [
        "A[o * {f} + j] > 1",
        "(A[o * {f} + j] > 1 or A[T.min(o * {f} + j + 1, 10)] < 0)",
        "A[o * {f} + j] > 1 and i % 2 == 0",
    ],
)
def test_what_a_condition_reads_lies_inside(target, f, data):
    """The second half of a condition is read only where the first holds."""
    need(target)
    text = GUARDED.replace("{data}", data).replace("        {kind}\n", "")
    text = text.replace("{f}", str(f)).replace("{o}", str(-(-11 // f)))
    same_as_ref(text, target, [np.arange(11, dtype="int32") % 4 - 1, np.full((5, 11), 77, "int32")])


OWN = """
@T.prim_func
def main(A: T.Buffer((19, 33), "float32"), C: T.Buffer((19, 33), "float32")):
    for i, j in T.grid(19, 33):
        with T.block("S"):
            v, w = T.axis.remap("SS", [i, j])
            L = T.alloc_buffer((2,), "float32")
            L[0] = A[v, w] * T.float32(2)
            L[1] = A[18 - v, w]
            C[v, w] = T.Select(L[0] < L[1], L[1], L[0])
"""


def test_what_a_block_allocates_is_each_points_own():
    need("qpu")
    same_as_ref(
        OWN,
        "qpu",
        [np.random.default_rng(3).integers(-9, 9, (19, 33)).astype("f4"), np.zeros((19, 33), "f4")],
    )


CONDITION_OUTSIDE = """
@T.prim_func
def main(A: T.Buffer((24,), "int32"), C: T.Buffer((3, 24), "int32")):
    for i in range(3):
        for j in {kind}:
            if A[j] > 1:
                with T.block("S"):
                    v, w = T.axis.remap("SS", [i, j])
                    C[v, w] = A[w] + T.cast(v, "int32")
"""


@pytest.mark.parametrize("kind", ["T.vectorized(24)", "T.parallel(24)", "range(24)"])
def test_a_condition_around_a_loop_that_is_divided(kind):
    """24 lanes are two steps of 16, of which the second has eight."""
    need("qpu")
    given = [np.arange(24, dtype="int32") % 4, np.full((3, 24), 77, "int32")]
    same_as_ref(CONDITION_OUTSIDE.replace("{kind}", kind), "qpu", given)


REPEATED = """
@T.prim_func
def main(A: T.Buffer((5, 4), "float32"), C: T.Buffer((5,), "float32")):
    for i in range(5):
        for k in T.vectorized(4):
            for q in range({times}):
                with T.block("S"):
                    v, r = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[v] = T.float32(1)
                    C[v] = C[v] + A[v, r]
"""


def test_a_loop_inside_a_sum_across_lanes_that_repeats_its_terms():
    need("qpu")
    given = [np.arange(20, dtype="float32").reshape(5, 4), np.zeros(5, "float32")]
    same_as_ref(REPEATED.replace("{times}", "1"), "qpu", given)
    program = weft.script.from_source(REPEATED.replace("{times}", "2"))
    refusal = weft.accepts(program, "qpu")
    assert refusal.code == "lower.cross_thread.repeat" and '"q"' in str(refusal)
    with pytest.raises(weft.Error) as caught:
        weft.build(program, target="qpu")
    assert caught.value.code == refusal.code and "move that loop" in str(caught.value)


def test_a_block_that_never_runs_stores_no_init():
    """The loop without steps lies around a block that holds the reduction."""
    need("wse")
    text = EMPTY.replace(
        "for {loops}:\n", "for i, k in T.grid(7, 0):\n      with T.block('outer'):\n"
    )
    text = text.replace("{v}", "i").replace("{where}", "T.where(True)").replace("{n}", "0")
    given = [np.ones((7, 0), "int32"), np.zeros(7, "int32")]
    assert same_as_ref(text, "wse:4x4", given)[1].tolist() == [5] * 7


MEET = """
@T.prim_func
def main(A: T.Buffer((20, 12), "int32"), C: T.Buffer((20,), "int32")):
    for o in range(20):
        for p in {kind}(12):
            for q in range(3):
                if {when}:
                    with T.block("S"):
                        v = T.axis.spatial(20, o)
                        r = T.axis.reduce(12, p)
                        with T.init():
                            C[v] = T.int32(0)
                        C[v] = {value}
"""


@pytest.mark.parametrize("target", ["ref", "cpu", "c", "qpu"])
@pytest.mark.parametrize("when", ["p <= o", "p > o - 9", "o == 10 and p < o"])
@pytest.mark.parametrize("value", ["T.max(C[v], T.int32(2))", "C[v] + A[v, r]"])
def test_parallel_iterations_that_meet_later_than_at_first(target, when, value):
    """At the first iteration of the loop around, a condition lets one parallel iteration in (or none)."""
    need(target)
    text = MEET.replace("{when}", when).replace("{value}", value)
    program = weft.script.from_source(text.replace("{kind}", "T.parallel"))
    refusal = weft.accepts(program, target)
    assert refusal.code == "verify.race" and '"C"' in str(refusal)
    with pytest.raises(weft.Error) as caught:
        weft.build(program, target=target)
    assert caught.value.code == refusal.code
    assert weft.accepts(weft.script.from_source(text.replace("{kind}", "range")), target) is None


def marked_program(seed):
    """A sum, or what is like one, whose three loops come in any order and are marked in any way, under a condition that
    ties them together; the text with loops of a mark, and without."""
    r = random.Random(seed)
    n, m, k = r.choice([1, 5, 12, 19, 33]), r.choice([2, 3, 13, 24]), r.choice([1, 3, 31])
    loops = [("a", n), ("b", m), ("c", k)]
    r.shuffle(loops)
    conditions = [
        "b <= a",
        "b > a - 5",
        "a == 10 and b < 6",
        f"b == a % {m}",
        "(a + b) % 3 == 0",
        "c <= a and b <= c",
    ]
    conditions += [
        "b < 1 or a > 3",
        "a * 2 < b",
        "b // 2 == a // 2",
        "c == 0",
        "b % 4 == c % 4",
        "a >= b * 3",
    ]
    condition, where, own = r.choice(conditions), r.random() < 0.5, r.random() < 0.3
    at, dtype = ("va, vb" if own else "va"), r.choice(["int32", "float32"])
    value = r.choice(
        [f"T.max(C[{at}], T.{dtype}(2))", f"C[{at}] + A[va, vb]", f"T.min(C[{at}], A[va, vb])"]
    )
    text = f'@T.prim_func\ndef main(A: T.Buffer(({n}, {m}), "{dtype}"), C: T.Buffer(({at.replace("va", str(n)).replace("vb", str(m))},), "{dtype}")):\n'
    margin = "    "
    for name, extent in loops:
        text += f"{margin}for {name} in {{{r.choice(['serial', 'unroll', 'vectorized', 'parallel', 'parallel'])}}}({extent}):\n"
        margin += "    "
    if not where:
        text += f"{margin}if {condition}:\n"
        margin += "    "
    lines = ['with T.block("S"):', f"    va = T.axis.spatial({n}, a)"]
    lines += [
        f"    vb = T.axis.{'spatial' if own else 'reduce'}({m}, b)",
        f"    vc = T.axis.reduce({k}, c)",
    ]
    lines += [f"    T.where({condition})"] * where
    if r.random() < 0.7:
        lines += ["    with T.init():", f"        C[{at}] = T.{dtype}(0)"]
    text += "".join(f"{margin}{line}\n" for line in [*lines, f"    C[{at}] = {value}"])
    kinds = ["serial", "unroll", "vectorized", "parallel"]
    shapes = (n, m), ((n, m) if own else (n,))
    return (
        text.format(**{x: "T." + x for x in kinds}),
        text.format(**dict.fromkeys(kinds, "range")),
        shapes,
        dtype,
    )


@pytest.mark.parametrize("target, least", [("qpu", 150), ("wse:4x4", 220)])
def test_loops_marked_in_any_way(target, least):
    """What is accepted does what it does without marks: iterations that meet are refused, and a sum begins anew only where
    the first of its steps runs."""
    need(target)
    right = 0
    for seed in range(300):
        text, plain, shapes, dtype = marked_program(seed)
        program = weft.script.from_source(text)
        if (refusal := weft.accepts(program, target)) is not None:
            with pytest.raises(weft.Error) as caught:
                weft.build(program, target=target)
            assert caught.value.code == refusal.code, f"{seed}: {text}"
            continue
        generator = np.random.default_rng(seed)
        given = [generator.integers(0, 9, shape).astype(dtype) for shape in shapes]
        results = []
        for device, source in (("ref", weft.script.from_source(plain)), (target, program)):
            held = [weft.asarray(a.copy(), device=device) for a in given]
            weft.build(source, target=device)["main"](*held)
            results.append(held[1].numpy())
        np.testing.assert_array_equal(*results[::-1], err_msg=f"{seed}: {text}")
        right += 1
    assert right >= least
