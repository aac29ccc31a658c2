# SPDX-License-Identifier: Apache-2.0
"""Candidates are put together from nests that were scheduled apart: their steps, taken on the whole program, lead to the same."""

import importlib.util
import json
import pathlib
import random

import numpy as np
import pytest

import weft
from weft import _core
from weft import script as T

_file = pathlib.Path(__file__).parents[2] / "bench" / "schedule" / "proposing.py"
_spec = importlib.util.spec_from_file_location("proposing", _file)
proposing = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(proposing)

from weft import te  # noqa: E402

# One that overwrites what it read, in buffers of the caller and of its own.
IN_PLACE = """
@T.prim_func
def main(A: T.Buffer((37, 41), "float32"), B: T.Buffer((37, 41), "float32"), C: T.Buffer((37,), "float32")):
    D = T.alloc_buffer((37, 41), "float32")
    for i, j in T.grid(37, 41):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.exp(A[vi, vj])
    for i, j in T.grid(37, 41):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = D[vi, vj] + T.float32(1)
    for i, k in T.grid(37, 41):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + B[vi, vk] * D[vi, vk]
    for i, j in T.grid(37, 41):
        with T.block("again"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = B[vi, vj] * C[vi]
"""

PROGRAMS = {
    "product": lambda: proposing.product(67),
    "convolution": lambda: proposing.convolution(1, 7, 11),
    "softmax": lambda: proposing.softmax(37, 1003),
    "attention": lambda: proposing.attention(3, 37, 19),
    "cross entropy": lambda: proposing.cross_entropy(11, 103),
    "convolutions": lambda: proposing.convolutions(1, 5, 13),
    "winograd": lambda: proposing.winograd(1, 5, 10),
    "feed forward": lambda: proposing.feed_forward(13, 37),
    "transformer": lambda: proposing.transformer_block(9, 36, 3),
    "lstm": lambda: proposing.lstm_cell(7, 33),
    "maps": lambda: proposing.maps(33, 5),
}
DRAWS = 50


def program(name):
    if name == "in place":
        return T.from_source(IN_PLACE)
    return te.create_prim_func(PROGRAMS[name]())


def answers(seed):
    """Draws as the tuner's: some near the first choices."""
    rng = random.Random(seed)
    near = rng.choice((0.9, 0.75, 0.5, 0.0))
    return lambda _, choices: choices[0] if rng.random() < near else rng.choice(choices)


def refusal_or_hash(opened, seed):
    """Also the schedule, or None where a step is refused."""
    try:
        made = weft.Schedule(opened(answers(seed)))
    except weft.ScheduleError as refused:
        return refused.code, None
    return _core.structural_hash(made.func._core), made


@pytest.mark.parametrize("target", ["cpu", "cuda:arch=sm_90a"])
@pytest.mark.parametrize("name", [*PROGRAMS, "in place"])
def test_steps_taken_on_the_whole_program_lead_to_the_same(name, target):
    main = program(name)
    opened = _core.OpenSchedule(main._core, target)
    legal, found = 0, {}
    for seed in range(DRAWS):
        found[seed], made = refusal_or_hash(opened, seed)
        if made is None:
            continue
        legal += 1
        whole = weft.Schedule.replay(main, made.trace.as_json())
        assert _core.structural_hash(whole.func._core) == found[seed], seed
        assert json.loads(whole.trace.as_json()) == json.loads(made.trace.as_json())
    assert legal > DRAWS // 10
    for seed in random.Random(name).sample(range(DRAWS), 5):
        # Nothing depends on which candidates were asked for before.
        assert refusal_or_hash(_core.OpenSchedule(main._core, target), seed)[0] == found[seed]
        assert refusal_or_hash(opened, seed)[0] == found[seed]


@pytest.mark.parametrize("name", [*PROGRAMS, "in place"])
def test_whatever_is_put_together_computes_the_same(name):
    main = program(name)
    rng = np.random.default_rng(len(name))
    parameters = weft.build(main, target="cpu", tuned=False).plan(main.name)["params"]
    values = [rng.normal(size=[c[0] for c in p["shape"]]).astype("float32") for p in parameters]

    def results(schedule, target):
        arrays = [weft.asarray(v.copy()) for v in values]
        weft.build(schedule, target=target, tuned=False)(*arrays)
        return [a.numpy() for a in arrays]

    opened = _core.OpenSchedule(main._core, "cpu")
    expected = results(main, "ref")
    for seed in range(6):
        made = weft.Schedule(opened(answers(seed)))
        for got, want in zip(results(made, "cpu"), expected):
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4, err_msg=str(seed))
