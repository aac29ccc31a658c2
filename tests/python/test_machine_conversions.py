# SPDX-License-Identifier: Apache-2.0
"""Data of the host whose element type a machine lacks becomes an array of one that it has."""

import numpy as np
import pytest

import weft
import weft.nn.functional as F
from weft import _core

MACHINES = {
    "qpu": "float32 int32 int8 bool",
    "vta": "int32 int8 int16",
    "wse:3x5": "float32 float16 int32 int16",
}
SOURCES = "float64 float32 float16 int64 int32 int8 uint8 uint64 bool complex64".split()


def need(machine):
    if machine.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {machine} target")


@pytest.mark.parametrize("machine", MACHINES)
def test_any_type_of_numpy_becomes_any_type_of_the_machine(machine):
    need(machine)
    for source in SOURCES:
        x = np.arange(12).reshape(3, 4).astype(source)
        for dtype in MACHINES[machine].split():
            if source == "complex64" and dtype != "bool":
                continue
            want = x.astype(dtype)
            held = weft.asarray(x)
            for got in (
                weft.asarray(x, dtype=dtype, device=machine),
                weft.array(x.T, dtype=dtype, device=machine).T,
                weft.asarray(held, dtype=dtype, device=machine),
                held.to(machine, dtype),
                held.to(machine, weft.dtype(dtype)),
            ):
                assert str(got.device).startswith(machine.split(":")[0]) and got.dtype == dtype
                np.testing.assert_array_equal(got.numpy(), want, err_msg=f"{source} as {dtype}")


@pytest.mark.parametrize("machine", ["qpu", "wse:3x5"])
def test_tensors_and_their_gradients(machine):
    need(machine)
    x = weft.Tensor(np.arange(6, dtype="float64").reshape(2, 3), requires_grad=True)
    y = x.to(machine, "float32")
    assert y.dtype == "float32" and str(y.device).startswith(machine.split(":")[0])
    (y * y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * x.numpy())
    assert x.grad.dtype == "float64"


POOLS = {
    "adaptive_avg_pool2d 3": lambda x: F.adaptive_avg_pool2d(x, 3),
    "adaptive_avg_pool1d 2": lambda x: F.adaptive_avg_pool1d(x[0], 2),
    "adaptive_max_pool2d 3": lambda x: F.adaptive_max_pool2d(x, 3),
    "border left out": lambda x: F.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False),
    "ceil_mode": lambda x: F.avg_pool2d(x, 2, ceil_mode=True),
    "divisor": lambda x: F.avg_pool2d(x, 2, divisor_override=3),
}


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("machine", ["qpu", "wse:3x5"])
def test_averages_of_windows(machine, name):
    """Their weights are float64 on the host."""
    need(machine)
    x = np.random.default_rng(4).standard_normal((2, 3, 7, 5)).astype("float32")
    want, got = (POOLS[name](weft.asarray(x, device=d)) for d in ("cpu", machine))
    assert str(got.device).startswith(machine.split(":")[0])
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
