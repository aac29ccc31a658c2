# SPDX-License-Identifier: Apache-2.0
"""Module files that were changed on purpose: they are refused, and never touch memory that is not theirs."""

import json
import struct

import numpy as np
import pytest
import weft
from weft import script as T

MASK = (1 << 64) - 1


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def combine(seed, value):
    return mix(seed ^ ((mix(value) + 0x9E3779B97F4A7C15 + (seed << 6) + (seed >> 2)) & MASK))


def checksum(data):
    h = mix(len(data))
    whole = len(data) // 8 * 8
    for (word,) in struct.iter_unpack("<Q", data[:whole]):
        h = combine(h, word)
    return combine(h, int.from_bytes(data[whole:], "little"))


def edited(path, edit):
    """The module file at `path` with its header and payload changed by `edit` and a good checksum."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[12:20], "little")
    header = json.loads(raw[20 : 20 + length])
    sizes = header["payloads"]
    payload = raw[20 + length : 20 + length + sizes[0]]
    payload = edit(header, payload) or payload
    header["payloads"] = [len(payload), sizes[1]]
    text = json.dumps(header, separators=(",", ":")).encode()
    body = raw[:12] + struct.pack("<Q", len(text)) + text + payload
    body += raw[20 + length + sizes[0] : -8]
    path.write_bytes(body + struct.pack("<Q", checksum(body)))
    return path


@T.prim_func
def scale(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.remap("S", [i])
            B[vi] = A[vi] * T.float32(2)


def attacked(tmp_path, target, edit):
    """What the changed module raises when it is loaded and called."""
    path = tmp_path / "m.weft-mod"
    weft.build(scale, target=target).save(path)
    edited(path, edit)
    device = weft.device(target)
    a = weft.asarray(np.ones(64, np.float32), device=device)
    b = weft.zeros((64,), dtype="float32", device=device)
    with pytest.raises(weft.Error) as caught:
        weft.load(path)["scale"](a, b)
    return caught.value


def launch(header):
    return next(s for s in header["plans"][0]["steps"] if s["kind"] == "launch")


def test_an_edit_that_changes_nothing_runs(tmp_path):
    path = tmp_path / "m.weft-mod"
    weft.build(scale, target="ref").save(path)
    edited(path, lambda header, payload: None)
    a, b = weft.asarray(np.ones(64, np.float32)), weft.zeros((64,), dtype="float32")
    weft.load(path)["scale"](a, b)
    assert np.array_equal(b.numpy(), np.full(64, 2, np.float32))


@pytest.mark.parametrize("target", ["cpu", "c", "ref", "wse:4x4"])
@pytest.mark.parametrize("offset", [-4, 260, 1 << 40, (1 << 63) - 1, -(1 << 63)])
def test_offsets_stay_inside_their_buffer(tmp_path, target, offset):
    def edit(header, payload):
        launch(header)["args"][1]["offset"] = [offset]

    error = attacked(tmp_path, target, edit)
    assert error.code == "plan.offset" and f"+ {offset}" in error.message, error


@pytest.mark.parametrize("target", ["ref", "wse:4x4"])
@pytest.mark.parametrize("offset", [4, 255, 256])
def test_interpreted_programs_stay_inside_their_buffer(tmp_path, target, offset):
    def edit(header, payload):
        launch(header)["args"][1]["offset"] = [offset]

    error = attacked(tmp_path, target, edit)
    assert error.code in ("ref.bounds", "device.access") and "256 bytes" in error.message, error


@pytest.mark.parametrize("kind", ["release", "allocate"])
def test_parameters_are_not_the_plans_to_release(tmp_path, kind):
    def edit(header, payload):
        header["plans"][0]["steps"].insert(0, {"kind": kind, "target": 1, "value": [8]})

    error = attacked(tmp_path, "cpu", edit)
    assert error.code == "plan.parameter" and f'"{kind}" of buffer 1' in error.message


def test_buffers_are_used_after_they_are_allocated(tmp_path):
    def edit(header, payload):
        header["plans"][0]["buffers"] = 3
        launch(header)["args"][1]["buffer"] = 2

    error = attacked(tmp_path, "cpu", edit)
    assert error.code == "plan.buffer" and "before it is allocated" in error.message


def test_small_buffers_are_not_read_as_large_ones(tmp_path):
    def edit(header, payload):
        plan = header["plans"][0]
        plan["buffers"] = 3
        launch(header)["args"][1]["buffer"] = 2
        plan["steps"].insert(0, {"kind": "allocate", "target": 2, "value": [8], "text": "global"})

    for target in ("ref", "wse:4x4"):
        assert attacked(tmp_path, target, edit).code in ("ref.bounds", "device.access")


def test_arguments_are_what_the_kernel_takes(tmp_path):
    def number(header, payload):
        launch(header)["args"][1] = {"scalar": [7]}

    error = attacked(tmp_path, "cpu", number)
    assert error.code == "module.file.plan" and "a number as argument 2" in error.message

    def fewer(header, payload):
        header["kernels"][0]["params"].pop()
        launch(header)["args"].pop()

    assert attacked(tmp_path, "ref", fewer).code == "ref.binary.signature"


def large(plan):
    plan["buffers"][1]["shape"] = [1 << 30]


def elsewhere(plan):
    plan["stages"][-1]["output"]["base"] = [1 << 20]


def before(plan):
    plan["stages"][-1]["output"]["base"] = [-8]


def other_buffer(plan):
    plan["stages"][0]["inputs"][0]["buffer"] = 99


def fewer_dimensions(plan):
    plan["stages"][0]["inputs"][0]["base"] = []


def no_factor(plan):
    plan["stages"][-1]["output"]["coef"] = [[]]


def huge(plan):
    plan["stages"][-1]["output"]["extent"] = [1 << 40]


def empty_chunk(plan):
    plan["stages"][-1]["iters"][0]["chunk"] = 0


def far_strides(plan):
    array = plan["stages"][0]["inputs"][0]
    array["strides"] = [1000 + s for s in array["strides"]]


def own_view(plan):
    plan["buffers"][1].update(view_of=1, index=[{"i": 0}])


def wrong_operands(plan):
    plan["buffers"][1].update(view_of=0, index=[["add"]])


@pytest.mark.parametrize(
    "change",
    [large, elsewhere, before, other_buffer, fewer_dimensions, no_factor, huge, empty_chunk]
    + [far_strides, own_view, wrong_operands],
)
def test_plans_of_the_wafer_stay_inside_their_buffers(tmp_path, change):
    def edit(header, payload):
        kernels = json.loads(payload)
        change(kernels[0]["plan"])
        return json.dumps(kernels).encode()

    error = attacked(tmp_path, "wse:4x4", edit)
    assert error.code in ("wse.plan", "device.access"), error


def test_arithmetic_of_plans_wraps(tmp_path):
    def edit(header, payload):
        plan = header["plans"][0]
        slot, plan["slots"] = plan["slots"], plan["slots"] + 1
        for op, wanted in (("//", -(1 << 63)), ("%", 0)):
            value = [-(1 << 63), -1, op]
            plan["steps"].insert(0, {"kind": "set", "target": slot, "value": value})
            check = {"kind": "assert", "value": [*value, wanted, "=="], "text": "wraps"}
            plan["steps"].insert(1, check)
        plan["steps"].append({"kind": "assert", "value": [0], "text": "reached"})

    error = attacked(tmp_path, "cpu", edit)
    assert error.code == "call.assert" and "reached" in error.message


@pytest.mark.parametrize(
    "code, steps, says",
    [
        ("plan.index", [{"kind": "set", "target": 9999, "value": [1]}], "target 9999"),
        ("plan.operation", [{"kind": "set", "target": 0, "value": [1, 2, "^"]}], '"^"'),
        ("plan.expression", [{"kind": "set", "target": 0, "value": [1, "+"]}], "lacks operands"),
        ("plan.expression", [{"kind": "set", "target": 0, "value": [1, 2]}], "2 values are left"),
        ("plan.step", [{"kind": "jump"}], '"jump"'),
        ("plan.step", [{"kind": "assert"}], "has no value"),
    ],
)
def test_steps_that_are_none(tmp_path, code, steps, says):
    def edit(header, payload):
        header["plans"][0]["slots"] = 1
        header["plans"][0]["steps"] += steps

    error = attacked(tmp_path, "cpu", edit)
    assert error.code == code and says in error.message


def test_plans_of_impossible_size(tmp_path):
    def nested(header, payload):
        step = {"kind": "assert", "value": [1], "text": "innermost"}
        for _ in range(70):
            step = {"kind": "branch", "value": [1], "body": [step]}
        header["plans"][0]["steps"].append(step)

    def many(header, payload):
        header["plans"][0]["slots"] = 1 << 40

    def tensor(header, payload):
        header["kernels"][0]["params"][0].update(box=[1] * 6, steps=[1])

    for code, edit in (("plan.depth", nested), ("plan.size", many), ("module.file.tensor", tensor)):
        assert attacked(tmp_path, "cpu", edit).code == code


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), 3601.0])
def test_samples_of_impossible_length(seconds):
    f = weft.build(scale, target="cpu")["scale"]
    a, b = weft.ones((64,), dtype="float32"), weft.zeros((64,), dtype="float32")
    with pytest.raises(weft.Error) as caught:
        f.time(a, b, min_seconds=seconds)
    assert caught.value.code == "call.time.seconds" and "legal: 0 to 3600" in str(caught.value)


def test_headers_have_a_limit(tmp_path):
    def edit(header, payload):
        header["metadata"] = "x" * (33 << 20)

    error = attacked(tmp_path, "cpu", edit)
    assert error.code == "module.file.header" and "33.0 MiB" in error.message
