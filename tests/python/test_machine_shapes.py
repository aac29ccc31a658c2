# SPDX-License-Identifier: Apache-2.0
"""Random operations, shapes, layouts and types on the simulated machines: what the host computes, or a refusal that names the
machine. More of them: tools/generate_programs --kind machines."""

import numpy as np
import pytest

import weft
from generate import machines
from weft import _core

rng = np.random.default_rng(5)


def need(machine):
    if machine.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {machine} target")


@pytest.mark.parametrize(
    "machine, seeds, least", [("qpu", 60, 35), ("vta", 300, 60), ("wse:4x4", 200, 130)]
)
def test_right_or_refused(machine, seeds, least):
    need(machine)
    wrong, right = [], 0
    for seed in range(500, 500 + seeds):
        draw, found = machines.outcome(seed, machine)
        right += found is True
        if isinstance(found, str) and found != "host":
            wrong.append(f"seed {seed}: {draw.story()}: {found}")
    assert not wrong, "\n".join(wrong)
    assert right >= least, f"{right} of {seeds} gave a result"


@pytest.mark.parametrize("machine", ["qpu", "wse:4x4"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16"])
def test_elements_that_share_a_word_with_what_is_assigned_stay(machine, dtype):
    need(machine)
    for n in (2, 3, 4, 5, 7, 8, 9):
        for end in range(1, n + 1):
            x = np.ones(n, dtype) if dtype == "bool" else rng.integers(1, 9, n).astype(dtype)
            y = weft.asarray(x, device=machine)
            y[:end] = False if dtype == "bool" else 0
            x[:end] = 0
            np.testing.assert_array_equal(y.numpy(), x, err_msg=f"{end} of {n}")


@pytest.mark.parametrize("machine", ["qpu", "wse:4x4"])
@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_numbers_beside_truth_values(machine, name):
    """A number is true when it is not 0; 0.5 and 2 are."""
    need(machine)
    x = np.array([0, 1.5, -2, 0], "f4")
    for number in (0, 2, -1, 0.0, 0.5):
        got = getattr(weft, name)(weft.asarray(x, device=machine), number).numpy()
        np.testing.assert_array_equal(got, getattr(np, name)(x, number), err_msg=str(number))


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_vta_takes_arrays_that_begin_between_elements(dtype):
    need("vta")
    x = rng.integers(-4, 5, 80).astype(dtype)
    held = weft.asarray(x, device="vta")
    for first in (1, 3, 16, 17, 64):
        for n in (16, 13):
            part = slice(first, first + n)
            if part.stop > x.size:
                continue
            np.testing.assert_array_equal((held[part] + held[:n]).numpy(), x[part] + x[:n])
            out = weft.asarray(np.zeros(80, dtype), device="vta")
            out[part] = held[:n] + held[part]
            want = np.zeros(80, dtype)
            want[part] = x[:n] + x[part]
            np.testing.assert_array_equal(out.numpy(), want, err_msg=f"{n} from {first}")


def test_a_declared_alignment_is_honoured_on_vta():
    need("vta")
    text = """
@T.prim_func
def main(A: T.Buffer((32,), "int32", align=4), C: T.Buffer((32,), "int32", align=4)):
    for i in range(32):
        with T.block("C"):
            v = T.axis.spatial(32, i)
            C[v] = A[v] + 3
"""
    module = weft.build(weft.script.from_source(text), target="vta")
    x = rng.integers(-90, 90, 40).astype("i4")
    held, out = weft.asarray(x, device="vta"), weft.asarray(np.zeros(40, "i4"), device="vta")
    module["main"](held[3:35], out[5:37])
    want = np.zeros(40, "i4")
    want[5:37] = x[3:35] + 3
    np.testing.assert_array_equal(out.numpy(), want)


@pytest.mark.parametrize("machine", ["qpu", "wse:4x4"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "int64"])
def test_take_along_axis(machine, dtype):
    need(machine)
    for shape, axis, count in [
        ((5,), 0, 3),
        ((3, 7), 1, 2),
        ((3, 7), 0, 5),
        ((2, 3, 5), 1, 4),
        ((2, 5, 3), -1, 1),
    ]:
        x = rng.integers(-9, 9, shape).astype(dtype)
        some = list(shape)
        some[axis] = count
        at = rng.integers(-shape[axis], shape[axis], some)
        got = weft.take_along_axis(
            weft.asarray(x, device=machine), weft.asarray(at, device=machine), axis=axis
        )
        np.testing.assert_array_equal(got.numpy(), np.take_along_axis(x, at % shape[axis], axis))


@pytest.mark.parametrize("machine", ["qpu", "wse:4x4"])
def test_floats_as_64_bit_integers(machine):
    need(machine)
    x = np.array([3.7, -3.7, 0, 2**30], "f4")
    got = weft.asarray(x, device=machine).astype("int64")
    np.testing.assert_array_equal(got.numpy(), x.astype("int64"))
    # What is no number has no integer; it may be replaced afterwards, as the buckets of T5 are.
    y = weft.log(weft.asarray(np.array([0, 1], "f4"), device=machine)).astype("int64")
    kept = weft.where(weft.asarray(np.array([False, True]), device=machine), y, 7)
    np.testing.assert_array_equal(kept.numpy(), [7, 0])
    with pytest.raises(weft.ArgumentError) as caught:
        weft.asarray(np.array([1, -1e12], "f4"), device=machine).astype("int64")
    assert caught.value.code == "array.int64.range"


BIG = {
    "add": (lambda x, y: x + y),
    "add transposed": (lambda x, y: x.T + y.T),
    "compare": (lambda x, y: x < y),
    "sum": (lambda x, y: x.sum()),
    "sum of columns": (lambda x, y: x.sum(axis=0)),
    "sum of rows": (lambda x, y: x.sum(axis=1)),
    "largest": (lambda x, y: x.max(axis=1)),
    "product": (lambda x, y: x[:70] @ y.T),
}


@pytest.mark.parametrize("name", BIG)
def test_what_the_wafer_has_no_room_for_is_done_in_halves(name):
    """Operands of 1.2 MB on 16 PEs of 48 KB."""
    need("wse:4x4")
    a, b = (rng.standard_normal((601, 500)).astype("f4") for _ in range(2))
    got = BIG[name](*(weft.asarray(x, device="wse:4x4") for x in (a, b)))
    assert str(got.device) == "wse:4x4"
    want = BIG[name](a.astype("f8"), b.astype("f8"))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-2)


def test_positions_in_halves():
    """Scatter looks for places by their number, which goes on in the second half."""
    need("wse:4x4")
    x = rng.standard_normal((3000, 40)).astype("f4")
    y = weft.asarray(x, device="wse:4x4")
    rows = np.array([5, 2999, 17, 1500])
    y[weft.asarray(rows, device="wse:4x4")] = weft.asarray(x[:4] * 2, device="wse:4x4")
    want = x.copy()
    want[rows] = x[:4] * 2
    np.testing.assert_array_equal(y.numpy(), want)


@pytest.mark.parametrize("shape", [(9000, 30), (30, 9000)])
def test_positions_that_are_searched_for_in_halves(shape):
    """Gathers look for the places that are named, in the second half too."""
    need("wse:4x4")
    x = rng.standard_normal(shape).astype("f4")
    y = weft.asarray(x, device="wse:4x4")
    axis = int(shape[1] > shape[0])
    few = np.array([8999, 4500, 5, -1])
    at = weft.asarray(few, device="wse:4x4")
    np.testing.assert_array_equal(weft.take(y, at, axis=axis).numpy(), x.take(few, axis))
    along = np.expand_dims(few, 1 - axis).repeat(30, 1 - axis)
    got = weft.take_along_axis(y, weft.asarray(along, device="wse:4x4"), axis=axis)
    np.testing.assert_array_equal(got.numpy(), np.take_along_axis(x, along, axis))


def test_a_program_of_the_user_is_still_refused():
    """Halves are for operations of arrays; weft.build keeps its word."""
    need("wse:4x4")
    A = weft.te.placeholder((601, 500), name="A")
    B = weft.te.compute((601, 500), lambda i, j: A[i, j] + 1.0, name="B")
    refusal = weft.accepts(weft.te.create_prim_func([A, B]), "wse:4x4")
    assert refusal is not None and refusal.code == "wse.lower.capacity"
