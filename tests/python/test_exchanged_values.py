# SPDX-License-Identifier: Apache-2.0
"""Loops whose iterations hand values to each other through memory that all see, bound, vectorized and parallel, on every target:
the loop's numbers, or a refusal by name. Vectorized loops on hosts and cards become serial ones; where the target's order is
the loop's, nothing is refused."""

import numpy as np
import pytest

import weft
from weft import _core

TARGETS = ["cpu", "c", "opencl", "cuda", "metal", "qpu", "vta", "wse:4x4"]
N = 8
# The body, and the kinds of loops on cards that keep its order: t(hreads), v(irtual threads).
BODIES = {
    "reversed": (["C[i] = A[i]", "D[i] = C[7 - i]"], ""),
    "rotated": (["C[i] = A[i]", "D[i] = C[(i + 3) % 8]"], ""),
    "of an earlier one": (["C[i] = A[i]", "D[i] = C[T.max(i - 1, 0)]"], "tv"),
    "of the first": (["C[i] = A[i]", "D[i] = C[0]"], "tv"),
    "of a later one": (["C[i] = A[i]", "D[i] = C[T.min(i + 1, 7)]"], ""),
    "of a later one before": (["D[i] = C[T.min(i + 1, 7)]", "C[i] = A[i]"], "tv"),
    "of an earlier one before": (["D[i] = C[T.max(i - 1, 0)]", "C[i] = A[i]"], ""),
    "stored twice": (["C[i] = A[i]", "C[7 - i] = E[i]"], ""),
    "named": (["with T.let(k, 7 - i):", "    C[i] = A[i]", "    D[i] = C[k]"], ""),
    "recurrence": (["C[i] = C[T.max(i - 1, 0)] + A[i]"], "v"),
    "recurrence backwards": (["C[i] = C[T.min(i + 1, 7)] + A[i]"], "v"),
    "reversed itself": (["C[i] = C[7 - i] + A[i]"], "v"),
    "one place": (["C[0] = A[i]"], "v"),
    "sum": (["C[0] = C[0] + A[i]"], "v"),
    "atomic": (["T.atomic_add(C[0], A[i])", "D[i] = A[i]"], "tv"),
    "atomic, then read": (["T.atomic_add(C[7 - i], A[i])", "D[i] = C[i]"], ""),
    "two branches": (["if i < 4:", "    C[i] = A[i]", "else:", "    D[i] = C[7 - i]"], "v"),
    "parts apart": (["if i < 4:", "    C[i] = A[i]", "D[i] = C[T.max(i, 4)]"], "tv"),
    "by a condition": (["if A[i] > 2:", "    C[i] = A[i]", "D[i] = C[7 - i]"], ""),
    "own sum": (["for k in range(3):", "    C[i] = C[i] + A[k]", "    D[i] = C[i] + D[i]"], "tv"),
    "steps": (["for k in range(3):", "    C[i] = C[i] + A[k]", "    D[i] = C[7 - i] + D[i]"], ""),
    "the same from all": (["for k in range(8):", "    C[k] = A[k]", "D[i] = C[i]"], "tv"),
    "own place": (["C[i] = A[i]", "E[7 - i] = A[i]", "D[i] = C[i] + E[7 - i]"], "tv"),
    "where data says": (["C[i] = A[i]", "D[i] = C[T.min(T.max(A[i], 0), 7)]"], ""),
    "own, where data says": (["C[i] = C[T.min(T.max(A[i], 0), 7)] + 1"], "v"),
    "data's place of another": (["C[i] = A[i]", "D[i] = E[T.min(T.max(A[i], 0), 7)]"], "tv"),
}
AXES = ["threadIdx.x", "blockIdx.x", "vthread", "qpu", "lane", "pe.x"]
LOOPS = {"parallel": "T.parallel(8)", "vectorized": "T.vectorized(8)", "unrolled": "T.unroll(8)"}
LOOPS |= {axis: f'T.thread_binding(8, thread="{axis}")' for axis in AXES}
REFUSALS = (
    "lower.axis.exchanged verify.race qpu.race target.axis lower.axis.unknown stages.statement stages.body"
    " qpu.accepts.intrinsic"
).split()


def text_of(lines, loop, head=()):
    buffers = ", ".join(f'{n}: T.Buffer(({N},), "int32")' for n in "ACDE")
    return "\n".join(
        ["from weft import script as T", "@T.prim_func", f"def main({buffers}):"]
        + [f"    {line}" for line in (*head, f"for i in {loop}:")]
        + [f"        {line}" for line in lines]
    )


def numbers(program, target):
    draw = np.random.default_rng(3)
    held = [weft.asarray(draw.integers(-3, 9, N).astype("int32"), device=target) for _ in range(4)]
    weft.build(program, target=target)["main"](*held)
    return [a.numpy() for a in held]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("body", BODIES)
def test_the_numbers_of_the_loop_or_a_refusal(body, target):
    if target.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {target} target")
    lines, kept = BODIES[body]
    want = numbers(weft.script.from_source(text_of(lines, "range(8)")), "ref")
    for kind, loop in LOOPS.items():
        program = weft.script.from_source(text_of(lines, loop))
        must = kind == "unrolled" and target in ("cpu", "c", "opencl", "qpu")
        must = must or (kind == "vectorized" and target in ("cpu", "c", "opencl"))
        must = must or (
            target in ("opencl", "cuda", "metal") and kind[0] in kept and "hread" in kind
        )
        must = must and not ("atomic" in body and target == "qpu")
        try:
            if target in ("cuda", "metal"):
                weft.build(program, target=target)  # no card: its text
                continue
            got = numbers(program, target)
        except weft.Error as error:
            assert not must and error.code in REFUSALS, f"{body}, {kind} on {target}: {error}"
            continue
        for x, y in zip(want, got):
            np.testing.assert_array_equal(y, x, err_msg=f"{body}, {kind} on {target}")


@pytest.mark.parametrize("target", ["opencl", "cuda", "metal"])
@pytest.mark.parametrize("kind", ["threadIdx.x", "vthread"])
def test_what_another_order_would_change_is_refused(kind, target):
    if target not in _core.targets():
        pytest.skip(f"built without the {target} target")
    for body, (lines, kept) in BODIES.items():
        if kind[0] in kept:
            continue
        with pytest.raises(weft.Error) as caught:
            weft.build(weft.script.from_source(text_of(lines, LOOPS[kind])), target=target)
        assert caught.value.code in ("lower.axis.exchanged", "verify.race"), body


def test_the_refusal_names_both_uses_and_a_repair():
    program = weft.script.from_source(text_of(*BODIES["reversed"][:1], LOOPS["threadIdx.x"]))
    with pytest.raises(weft.Error) as caught:
        weft.build(program, target="opencl")
    text = " ".join(str(caught.value).split())
    assert 'iterations of loop "i", bound to threadIdx.x, use each other\'s values' in text
    assert "C[7 - i] of iteration 3 and C[i] of iteration 4 are one element" in text
    assert caught.value.help.startswith("end the loop behind the statement that stores, and bind")


def test_data_that_chooses_is_refused_where_iterations_run_in_any_order():
    for loop, target in (("T.parallel(8)", "cpu"), (LOOPS["blockIdx.x"], "opencl")):
        if target not in _core.targets():
            continue
        program = weft.script.from_source(text_of(BODIES["where data says"][0], loop))
        with pytest.raises(weft.Error) as caught:
            weft.build(program, target=target)
        assert caught.value.code == "lower.axis.exchanged"
        assert "data chooses which element C[T.min(T.max(A[i], 0), 7)] is" in str(caught.value)


def test_a_vectorized_loop_says_why_it_is_none():
    program = weft.script.from_source(text_of(BODIES["reversed"][0], "T.vectorized(8)"))
    notes = " ".join(map(str, weft.build(program, target="c").notes))
    assert 'loop "i" is not vectorized' in notes and "are one element" in notes


@pytest.mark.parametrize("target", ["cpu", "opencl"])
def test_the_repair_is_one(target):
    """Two loops of one axis, and one loop inside a serial one whose steps hand on what it has stored."""
    if target not in _core.targets():
        pytest.skip(f"built without the {target} target")
    loop = "T.vectorized(8)" if target == "cpu" else LOOPS["threadIdx.x"]
    apart = text_of(["C[i] = A[i]"], loop) + f"\n    for j in {loop}:\n        D[j] = C[7 - j]"
    steps = text_of(["C[i] = C[i] + A[i]"], loop, ["for s in range(3):"]).replace(
        "\n    for i", "\n        for i"
    )
    steps = steps.replace("\n        C[i]", "\n            C[i]")
    steps += f"\n        for j in {loop}:\n            D[j] = C[7 - j] + D[j]"
    for text in (apart, steps):
        program = weft.script.from_source(text)
        for x, y in zip(numbers(program, "ref"), numbers(program, target)):
            np.testing.assert_array_equal(y, x, err_msg=text)
