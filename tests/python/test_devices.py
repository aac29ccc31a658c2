# SPDX-License-Identifier: Apache-2.0
"""Arrays on devices that the host cannot address: rows become programs for the device."""

import numpy as np
import pytest
from present import present

import weft
from weft import _core

from test_ops import draw, reference

DEVICES = [
    d.name
    for d in weft.devices()
    if d.available and not d.host_accessible and d.name.split(":")[0] in ("opencl", "cuda")
]
pytestmark = pytest.mark.skipif(
    not DEVICES, reason="no device beside the host has the array operations"
)


@pytest.fixture(params=DEVICES or ["none"])
def device(request):
    return weft.device(request.param)


# Devices know no complex numbers: rows of these alone are left out.
ROWS = [r for r in _core.elementwise_rows if r["types"] != 16]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["name"])
def test_rows(rng, device, row):
    op, ref = _core.operations[row["name"]], reference(row["name"])
    dtype = "float32" if row["types"] & 8 else "int32" if row["types"] & 2 else "bool"
    shapes = [(6, 8)] if row["arity"] == 1 else [(6, 8), (8,)]
    xs = [draw(rng, s, dtype, row["domain"]) for s in shapes]
    on = [weft.asarray(x).to(device) for x in xs]
    out = op(*on)
    assert out.device == device
    got, want = out.numpy(), np.asarray(ref(*xs))
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(got, want)


def test_views_reductions_products_and_assignment(rng, device):
    x = rng.standard_normal((6, 9)).astype("float32")
    a = weft.asarray(x).to(device)
    np.testing.assert_allclose(
        (a[::2, ::-1].T * 2.0 - 1).numpy(), x[::2, ::-1].T * 2 - 1, rtol=1e-6
    )
    np.testing.assert_allclose((a + a[0]).numpy(), x + x[0], rtol=1e-6)
    for axis in (None, 0, 1):
        np.testing.assert_allclose(a.sum(axis=axis).numpy(), x.sum(axis), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(a.max(axis=axis).numpy(), x.max(axis))
    np.testing.assert_allclose((a @ a.T).numpy(), x @ x.T, rtol=1e-4, atol=1e-5)
    b, y = a.copy(), x.copy()
    b[1:3, ::2] = 7
    y[1:3, ::2] = 7
    b += 1
    y += 1
    np.testing.assert_allclose(b.numpy(), y, rtol=1e-6)
    np.testing.assert_array_equal(a.astype("int32").numpy(), x.astype("int32"))
    assert weft.sum(weft.zeros((0, 3), device=device)).item() == 0


def test_refusals(device):
    a = weft.asarray([1 + 2j]).to(device)
    assert (a + a).to("cpu").tolist() == [2 + 4j]
    with pytest.raises(weft.DeviceError, match="two devices") as info:
        weft.ones((2,), device=device) + weft.ones((2,), device="cpu")
    assert info.value.code == "array.add.device"
    for call, name in (
        (lambda x: weft.linalg.inv(x), "inv"),
        (lambda x: weft.linalg.svd(x), "svd"),
        (lambda x: weft.fft.rfft(x), "rfft"),
    ):
        if device.name.startswith(("cuda", "opencl")):  # those with a grid have all three
            call(weft.eye(3, device=device))
            continue
        with pytest.raises(weft.DeviceError, match=f"no kernel of {name}") as info:
            call(weft.ones((3, 3), device=device))
        assert info.value.code == f"array.{name}.kernel" and "to(...)" in info.value.help
    with pytest.raises(BufferError, match=device.name):
        memoryview(weft.ones((3, 3), device=device))


def test_the_list_of_devices_says_what_opening_them_says():
    listed = weft.devices()
    assert len({d.name for d in listed}) == len(listed)
    for d in listed:
        opened = weft.device(d.name)
        said = [(x.name, x.available, x.kind, bool(x.reason)) for x in (d, opened)]
        assert said[0] == said[1] and d.available == (not d.reason), said
        assert d.description


def test_a_target_without_a_number_is_its_first_device(device):
    first = device.name.partition(":")[0]
    assert weft.device(first) == weft.device(f"{first}:0")
    assert weft.zeros(3, device=first).device == weft.device(f"{first}:0")


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_places_along_an_axis(rng, device, dtype):
    for shape, axis, count in (((5,), 0, 7), ((3, 7), 1, 2), ((3, 7), 0, 1), ((2, 3, 5), -2, 4)):
        x = rng.standard_normal(shape).astype("float32")
        some = list(shape)
        some[axis] = count
        low = 0 if dtype == "uint8" else -shape[axis]
        at = rng.integers(low, shape[axis], some).astype(dtype)
        on = weft.asarray(x).to(device)
        got = weft.take_along_axis(on, weft.asarray(at).to(device), axis=axis)
        np.testing.assert_array_equal(got.numpy(), np.take_along_axis(x, at.astype("int64"), axis))
        for wrong in (shape[axis], -shape[axis] - 1):
            if wrong < low:
                continue
            at.flat[-1] = wrong
            with pytest.raises(weft.IndexError, match=f"index {wrong} is outside axis") as info:
                weft.take_along_axis(on, weft.asarray(at).to(device), axis=axis).numpy()
            assert info.value.code == "array.index.range"


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_a_grid_of_opencl_has_more_groups_than_16_bits_count(axis):
    present("opencl:0")
    program = weft.script.from_source(f"""from weft import script as T

@T.prim_func
def main(A: T.Buffer((70001,), "float32"), B: T.Buffer((70001,), "float32")):
    for i in T.thread_binding(70001, thread="blockIdx.{axis}"):
        for t in T.thread_binding(1, thread="threadIdx.x"):
            with T.block("B"):
                v = T.axis.spatial(70001, i + t)
                B[v] = A[v] * T.float32(2)
""")
    x = np.arange(70001, dtype="float32")
    out = weft.zeros(x.shape, device="opencl:0")
    for target in ("opencl", "opencl:0"):
        weft.build(program, target=target)(weft.asarray(x, device="opencl:0"), out)
        np.testing.assert_array_equal(out.numpy(), x * 2)
