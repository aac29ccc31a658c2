# SPDX-License-Identifier: Apache-2.0
"""Programs with two loops bound to one axis, one inside the other. As loops, what is inside runs once for every pair of
iterations; an axis has one position at a time. A target computes what the reference interpreter computes, or refuses."""

import random

import numpy as np
import pytest

import weft
from weft import _core

N = 4
HEAD = "@T.prim_func\ndef main({}):\n".format(
    ", ".join(f'{n}: T.Buffer(({N},), "int32")' for n in "ACDE")
)
GRIDS = ["opencl", "cuda", "metal"]  # targets that run loops as positions
MACHINES = {"qpu": ["qpu", "lane"], "wse:4x4": ["pe.x", "pe.y"], "vta": ["threadIdx.x"]}


def bound(name, axis):
    return f'for {name} in T.thread_binding({N}, thread="{axis}"):'


def text_of(lines, head=HEAD):
    return head + "".join(f"    {line}\n" for line in lines)


def inside(*lines):
    return [f"    {line}" for line in lines]


def twice(axis, *lines):
    """`lines` inside two loops of the axis."""
    return text_of([bound("i", axis), *inside(bound("j", axis), *inside(*lines))])


def results(program, target):
    given = [np.arange(N, dtype="int32") * m + m for m in (1, 3, 5, 7)]
    held = [weft.asarray(a, device=target) for a in given]
    weft.build(program, target=target)["main"](*held)
    return [a.numpy() for a in held]


def needs(target):
    if target.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {target} target")


def refusal_of(program, target):
    with pytest.raises(weft.Error) as caught:
        weft.build(program, target=target)
    return caught.value


UPDATES = {
    "sum": ["C[j] = C[j] + A[j]"],
    "atomic": ["T.atomic_add(C[j], A[j])"],
    "largest": ["C[j] = T.max(C[3 - j], A[j])"],
    "round": ["D[j] = C[j]", "C[j] = D[j] + 1"],
    "under a condition": ["if A[j] > 2:", "    C[j] = C[j] + 1"],
    "by a loop": ["for k in range(3):", "    C[j] = C[j] + A[k]"],
}


@pytest.mark.parametrize("target", GRIDS)
@pytest.mark.parametrize("axis", ["blockIdx.x", "threadIdx.x", "threadIdx.y"])
@pytest.mark.parametrize("form", UPDATES)
def test_an_update_that_the_outer_loop_repeats_is_refused(form, axis, target):
    needs(target)
    program = weft.script.from_source(twice(axis, *UPDATES[form]))
    refusal = refusal_of(program, target)
    assert refusal.code == "lower.axis.repeated", refusal
    assert f'"i" repeats what loop "j" inside it does, but both are bound to {axis}' in " ".join(
        str(refusal).split()
    )
    assert 'store the first value of "' in refusal.help and 'leave "i" serial' in refusal.help


@pytest.mark.parametrize("axis", ["blockIdx.x", "threadIdx.x"])
def test_the_repair_is_one(axis):
    """Begun inside the outer loop, or with the outer loop left serial, the update is what ref computes."""
    needs("opencl")
    begun = twice(axis, "C[j] = 0", "C[j] = C[j] + A[j]")
    serial = twice(axis, "C[j] = C[j] + A[j]").replace(bound("i", axis), f"for i in range({N}):")
    for text, want in ((begun, [1, 2, 3, 4]), (serial, [3 + 4, 6 + 8, 9 + 12, 12 + 16])):
        program = weft.script.from_source(text)
        for target in ("ref", "opencl"):
            np.testing.assert_array_equal(results(program, target)[1], want)


def test_a_value_that_two_statements_store_is_refused():
    needs("opencl")
    lines = [bound("i", "threadIdx.x"), *inside(bound("j", "threadIdx.x"), *inside("C[j] = A[j]"))]
    text = text_of([*lines, *inside("C[i] = C[i] * 2")])
    refusal = refusal_of(weft.script.from_source(text), "opencl")
    assert refusal.code == "lower.axis.repeated"
    assert '"C" is stored there, and by a statement of each iteration of "i", too' in " ".join(
        str(refusal).split()
    )
    assert refusal.help.startswith("give one of the two a buffer of its own")


BLOCKS = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    for i in {outer}:
{begun}        for j in {inner}:
            with T.block("C"):
                v = T.axis.spatial(4, j)
                C[v] = C[v] + A[v]
"""
BEGUN = """        for m in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("zero"):
                z = T.axis.spatial(4, m)
                C[z] = 0
"""
ON_AXIS = 'T.thread_binding(4, thread="threadIdx.x")'
STEPS = """
@T.prim_func
def main(A: T.Buffer((3, 4), "int32"), C: T.Buffer((4,), "int32")):
    for k in range(3):
        for i in T.thread_binding(4, thread="threadIdx.x"):
            for j in range(4):
                with T.block("C"):
                    v = T.axis.spatial(4, j)
                    r = T.axis.reduce(3, k)
                    with T.init():
                        C[v] = 0
                    C[v] = C[v] + A[r, v]
"""


@pytest.mark.parametrize("last", [0, 1])
def test_the_step_is_refused(last):
    """Whichever of the two loops is bound last."""
    outer, inner = [ON_AXIS, "range(4)"] if last else ["range(4)", ON_AXIS]
    text = BLOCKS.format(outer=outer, inner=inner, begun="")
    sch = weft.Schedule(weft.script.from_source(text))
    loops = sch.get_loops(sch.get_block("C"))
    with pytest.raises(weft.ScheduleError) as caught:
        sch.bind(loops[last], "threadIdx.x")
    assert caught.value.code == "schedule.bind.repeated"
    assert 'block "C" goes on from "C" in each iteration of "i"' in str(caught.value)
    assert caught.value.help == 'bind "i" to another axis, or leave it serial'


def test_a_first_value_of_a_step_outside_does_not_begin_the_sum_anew():
    sch = weft.Schedule(weft.script.from_source(STEPS))
    with pytest.raises(weft.ScheduleError) as caught:
        sch.bind(sch.get_loops(sch.get_block("C"))[2], "threadIdx.x")
    assert caught.value.code == "schedule.bind.repeated"


def test_the_step_takes_what_each_iteration_begins():
    text = BLOCKS.format(outer=ON_AXIS, inner="range(4)", begun=BEGUN)
    sch = weft.Schedule(weft.script.from_source(text))
    sch.bind(sch.get_loops(sch.get_block("C"))[1], "threadIdx.x")
    needs("opencl")
    for target in ("ref", "opencl"):
        held = [weft.asarray(np.arange(4, dtype="int32"), device=target) for _ in range(2)]
        weft.build(sch, target=target)["main"](*held)
        np.testing.assert_array_equal(held[1].numpy(), np.arange(4))


def statement(draw, names, inner):
    places = ["i", "0", f"{N - 1} - i"] + ["j", f"{N - 1} - j", "j"] * 2 * inner
    to, at = draw.choice(names), draw.choice(places)
    value = f"{draw.choice([*names, 'A'])}[{draw.choice(places)}]"
    line = draw.choice(
        [
            f"{to}[{at}] = {value} + {draw.randrange(3)}",
            f"{to}[{at}] = {to}[{at}] + {value}",
            f"{to}[{at}] = T.int32({draw.randrange(5)})",
            f"T.atomic_add({to}[{at}], 1)",
        ]
    )
    if draw.random() < 0.2:
        return [f"if {draw.choice(places)} < {draw.randrange(1, N)}:", *inside(line)]
    return [line]


def random_text(seed, axis):
    draw, body = random.Random(seed), []
    for _ in range(draw.randrange(1, 4)):
        if draw.random() < 0.75:
            lines = [s for _ in range(draw.randrange(1, 3)) for s in statement(draw, "CDE", True)]
            lines = [bound("j", axis), *inside(*lines)]
            if draw.random() < 0.25:
                lines = [f"for k in range({draw.randrange(1, 3)}):", *inside(*lines)]
            body += lines
        else:
            body += statement(draw, "CDE", False)
    return text_of([bound("i", axis), *inside(*body)])


def same(text, target):
    """Whether the target computes what ref does; None: it refuses."""
    program = weft.script.from_source(text)
    try:
        got = results(program, target)
    except weft.Error:
        return None
    return all(np.array_equal(a, b) for a, b in zip(results(program, "ref"), got))


@pytest.mark.parametrize("target", ["opencl", *MACHINES])
def test_random_nests_are_right_or_refused(target):
    """Of one axis, in two loops."""
    needs(target)
    ran = 0
    for axis in MACHINES.get(target, ["threadIdx.x", "blockIdx.x"]):
        for seed in range(150):
            text = random_text(seed, axis)
            right = same(text, target)
            assert right in (True, None), f"{target}, seed {seed}\n{text}"
            ran += right is True
    assert ran >= 10 or target in MACHINES, ran
