# SPDX-License-Identifier: Apache-2.0
"""Tuning for machines without a grid: judged by simulated cycles, never worse than the default schedule, right results."""

import random

import numpy as np
import pytest

import weft
from weft import _core, te
from weft.tuning.machines import machine_sketches, replayed
from weft.tuning.measure import Measurer
from weft.tuning.search import _Draw

MACHINES = ("qpu", "wse:4x4")


def product(m, n, depth):
    A, B = te.placeholder((m, depth), name="A"), te.placeholder((depth, n), name="B")
    k = te.reduce_axis(depth, name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return te.create_prim_func([A, B, C])


def convolution(h, w):
    X, W = te.placeholder((h, w), name="X"), te.placeholder((3, 3), name="W")
    p, q = te.reduce_axis(3, name="p"), te.reduce_axis(3, name="q")
    S = te.compute(
        (h - 2, w - 2), lambda y, x: te.sum(X[y + p, x + q] * W[p, q], axis=[p, q]), name="S"
    )
    R = te.compute((h - 2, w - 2), lambda y, x: te.max(S[y, x], te.const(0, "float32")), name="R")
    return te.create_prim_func([X, W, R])


def turned(h, w):
    X = te.placeholder((h, w), name="X")
    return te.create_prim_func([X, te.compute((w, h), lambda i, j: X[j, i] * 2.0, name="Y")])


def column_sums(h, w, kind):
    X, k = te.placeholder((h, w), kind, name="X"), te.reduce_axis(h, name="k")
    return te.create_prim_func([X, te.compute((w,), lambda j: te.sum(X[k, j], axis=k), name="Y")])


PROGRAMS = {
    "product": product(13, 20, 9), "row": product(1, 37, 16), "column": product(17, 1, 8), "one": product(1, 1, 5),
    "convolution": convolution(9, 22), "turned": turned(7, 18), "sums": column_sums(11, 19, "int32"),
}  # fmt: skip


def needs(device):
    if device.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {device} target")


@pytest.mark.parametrize("device", MACHINES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_whatever_is_drawn_is_right_or_refused(device, name):
    """The measurer compares results with the untuned program's on the host; `tune.wrong` is a difference."""
    needs(device)
    program = PROGRAMS[name]
    measurer = Measurer(program, program.name, device, None, 0)
    (sketch,) = machine_sketches(device).values()
    ran = 0
    for seed in range(8):
        schedule = weft.Schedule(program)
        try:
            sketch(_Draw(random.Random(seed), None, seed == 0), schedule)
            _, cycles = measurer.measure(schedule, None)
        except weft.Error as refusal:
            assert refusal.code.startswith(
                ("schedule.", f"{device.split(':')[0]}.", "lower.", "stages.")
            ), refusal
            continue
        ran += cycles > 0
    assert ran >= 2


def integer_programs():
    from weft.vta import env, op

    machine = env()
    return {
        "product": op.matmul(33, 70, 40, shift=4),
        "transposed": op.matmul(20, 64, 96, shift=6, clip=(0, 127), transposed=True),
        "convolution": op.conv2d_packed(machine, 1, 32, 11, 9, 48, 3, 2, 1, bias=True, shift=7, clip=(0, 127)),
        "sums": column_sums(24, 40, "int32"),
    }  # fmt: skip


@pytest.mark.parametrize("name", ("product", "transposed", "convolution", "sums"))
def test_every_answer_is_a_right_schedule_on_vta(name):
    """Tiles and orders that the default schedule would not take. No answer may be refused: those that do not fit are not offered."""
    needs("vta")
    program = integer_programs()[name]
    measurer = Measurer(program, program.name, "vta", None, 0)
    (sketch,) = machine_sketches("vta").values()
    cycles = set()
    for seed in range(8):
        schedule = weft.Schedule(program)
        sketch(_Draw(random.Random(seed), None, 1.0 if seed == 0 else 0.0), schedule)
        again = replayed(program, "vta", schedule.trace.as_json())
        assert again.script() == schedule.script()
        cycles.add(measurer.measure(again, None)[1])
        if seed == 0:
            first = schedule.trace.as_json()
            assert first == weft.vta.default_schedule(program).trace.as_json()
    assert len(cycles) >= 3, "the answers make no difference"


def cycles_of(schedule, device, shapes, kind="float32"):
    where = weft.device(device)
    held = [weft.asarray(np.ones(s, kind), device=where) for s in shapes]
    module = weft.build(schedule, target=device, tuned=False)
    return module.time_evaluator(module.functions[0], number=1)(*held).cycles


@pytest.mark.parametrize(
    "device, shapes",
    [("qpu", ((48, 32), (32, 40), (48, 40))), ("wse:4x4", ((48, 32), (32, 40), (48, 40)))],
)
def test_tuned_is_never_worse_and_the_same_in_every_run(device, shapes, tmp_path):
    needs(device)
    program = product(shapes[0][0], shapes[1][1], shapes[0][1])
    found = [
        weft.tune(program, target=device, trials=20, database=tmp_path / f"{k}.db", progress=False)
        for k in range(2)
    ]
    assert str(found[0].trace.as_json()) == str(found[1].trace.as_json())
    default = cycles_of(program, device, shapes)
    assert cycles_of(found[0], device, shapes) <= default


def test_a_tuned_program_of_vta_is_built_from_its_packed_form(tmp_path, monkeypatch):
    needs("vta")
    program = integer_programs()["product"]
    shapes = ((33, 40), (40, 70), (33, 70))
    path = tmp_path / "tune.db"
    found = weft.tune(program, target="vta", trials=12, database=path, progress=False)
    assert cycles_of(found, "vta", shapes, "int8") <= cycles_of(program, "vta", shapes, "int8")
    monkeypatch.setenv("WEFT_TUNE_DB", str(path))
    module = weft.build(program, target="vta")
    assert not any("does not replay" in note for note in module.notes), module.notes


def test_a_program_that_takes_the_machine_no_time_is_tuned(tmp_path):
    """VTA's host moves data: a border of zeros takes no cycle, which is a time and not a failure."""
    x = te.placeholder((2, 8), "int32", name="X")
    zero = te.const(0, "int32")

    def value(i, j):
        return te.if_then_else(te.all(i >= 1, i < 3, j < 8), x[i - 1, j], zero)

    program = te.create_prim_func([x, te.compute((4, 9), value, name="D")])
    found = weft.tune(program, "vta", trials=3, database=tmp_path / "tune.db", progress=False)
    module, rng = weft.build(found, target="vta"), np.random.default_rng(2)
    given = rng.integers(-9, 9, (2, 8)).astype("int32")
    out = weft.zeros((4, 9), dtype="int32", device="vta")
    module["main"](weft.asarray(given, device="vta"), out)
    assert np.array_equal(out.numpy(), np.pad(given, ((1, 1), (0, 1))))
