# SPDX-License-Identifier: Apache-2.0
"""The walk through needle's arrays, cell by cell, on every device that is there; and what is said of one that is not."""

import os
import sys

import numpy as np
import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "compat", "needle"))

import needle as ndl  # noqa: E402
import weft  # noqa: E402
from needle import backend_ndarray as nd  # noqa: E402

DEVICES = [d for d in nd.all_devices() if d.enabled()]


@pytest.fixture(params=DEVICES, ids=str)
def device(request):
    return request.param


def test_an_array_and_its_arithmetic(device):
    x = nd.NDArray([1, 2, 3], device=device)
    assert x.device == device and x.dtype == "float32" and str(device) == f"{device.name}()"
    y = x + 1
    assert y.numpy().tolist() == [2, 3, 4] and y.device == device
    assert (x + x).numpy().tolist() == [2, 4, 6] and (x * 2).numpy().tolist() == [2, 4, 6]
    assert repr(y) == f"NDArray([2. 3. 4.], device={device.name}())"
    handle = nd.NDArray([1, 2, 3], device=device)._handle
    device.from_numpy(np.array([7, 8, 9], "float32"), handle)
    assert device.to_numpy(handle, (3,), (1,), 0).tolist() == [7, 8, 9]


def test_views_made_by_hand(device):
    x = nd.NDArray([0, 1, 2, 3, 4, 5], device=device)
    z = nd.NDArray.make(shape=(2, 3), strides=(3, 1), device=x.device, handle=x._handle, offset=0)
    assert z.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    b = nd.NDArray.make(
        shape=(2, 3, 4), strides=(3, 1, 0), device=z.device, handle=z._handle, offset=0
    )
    np.testing.assert_array_equal(
        b.numpy(), np.broadcast_to(np.arange(6.0).reshape(2, 3, 1), (2, 3, 4))
    )
    y = nd.NDArray.make(
        shape=(3, 2, 2), strides=(2, 1, 0), device=x.device, handle=x._handle, offset=0
    )
    assert y.numpy()[2].tolist() == [[4, 4], [5, 5]]
    w = nd.NDArray([1, 2, 3, 4], device=device)
    assert nd.NDArray.make(
        shape=(2, 2), strides=(2, 1), device=w.device, handle=w._handle, offset=0
    ).numpy().tolist() == [[1, 2], [3, 4]]
    assert nd.NDArray.make(
        shape=(2, 1), strides=(2, 1), device=w.device, handle=w._handle, offset=1
    ).numpy().tolist() == [[2], [4]]
    with pytest.raises(weft.IndexError, match="handle that holds 4") as info:
        nd.NDArray.make(shape=(3, 2), strides=(2, 1), device=w.device, handle=w._handle, offset=0)
    assert info.value.code == "array.make.outside"


def test_the_cells_of_the_lecture_one_by_one(device, capsys):
    """The walk of lecture 14 in its order; shell cells and those that only print are left out."""
    x = nd.NDArray([1, 2, 3], device=device)
    print(nd.cuda())
    assert capsys.readouterr().out == "cuda()\n"
    if not nd.cuda().enabled():
        with pytest.raises(
            weft.DeviceError, match=r"cuda\(\) is not here: .*(libcuda|NVIDIA|card)"
        ) as info:
            nd.NDArray([1, 2, 3], device=nd.cuda())
        assert info.value.code == "needle.device.absent"
        assert "no attribute" not in str(info.value)
    assert x.device == device
    y = x + 1
    assert repr(y) == f"NDArray([2. 3. 4.], device={device.name}())"
    y = x + x
    assert y.numpy().tolist() == [2, 4, 6] and y.device == device
    assert isinstance(y.numpy(), np.ndarray) and y.numpy().dtype == np.float32
    for name in ("from_numpy", "to_numpy", "scalar_add", "ewise_add", "compact"):
        assert callable(getattr(x.device, name))  # what the trace of the call shows
    assert nd.NDArray([1, 2, 3]).device == nd.default_device() == nd.cpu_numpy()
    for field in ("_handle", "_shape", "_strides", "_offset", "_device"):
        assert hasattr(x, field)
    x = nd.NDArray([0, 1, 2, 3, 4, 5], device=device)
    z = nd.NDArray.make(shape=(2, 3), strides=(3, 1), device=x.device, handle=x._handle, offset=0)
    assert z.numpy().tolist() == [[0, 1, 2], [3, 4, 5]] and "NDArray([[0. 1. 2.]" in repr(z)
    b = nd.NDArray.make(
        shape=(2, 3, 4), strides=(3, 1, 0), device=z.device, handle=z._handle, offset=0
    )
    assert b.numpy()[1, 2].tolist() == [5, 5, 5, 5]
    assert (x * 2).numpy().tolist() == [0, 2, 4, 6, 8, 10]  # the operator that the lecture adds
    x = ndl.Tensor([1, 2, 3], device=device, dtype="float32")
    y = ndl.Tensor([2, 3, 5], device=device, dtype="float32")
    z = x + y
    assert z.numpy().tolist() == [3, 5, 8] and z.device == device
    assert type(z.cached_data) is nd.NDArray


def test_a_tensor_over_the_array(device):
    x = ndl.Tensor([1, 2, 3], device=device, dtype="float32")
    y = ndl.Tensor([2, 3, 5], device=device, dtype="float32")
    z = x + y
    assert (
        z.numpy().tolist() == [3, 5, 8]
        and z.device == device
        and isinstance(z.cached_data, nd.NDArray)
    )
    (z * z).sum().backward()
    assert x.grad.numpy().tolist() == [6, 10, 16]


def test_a_device_that_is_not_here_says_so():
    if nd.cuda().enabled():
        pytest.skip("this machine has the device")
    with pytest.raises(weft.DeviceError, match=r"cuda\(\) is not here"):
        nd.NDArray([1, 2, 3], device=nd.cuda())


def test_padding_flipping_and_stacking_give_the_right_numbers(device):
    a = np.arange(24, dtype="float32").reshape(2, 3, 4)
    x = nd.NDArray(a, device=device)
    np.testing.assert_array_equal(
        x.pad(((0, 0), (1, 2), (0, 1))).numpy(), np.pad(a, ((0, 0), (1, 2), (0, 1)))
    )
    np.testing.assert_array_equal(x.flip((0, 2)).numpy(), np.flip(a, (0, 2)))
    t = [ndl.Tensor(a + i, device=device) for i in range(3)]
    np.testing.assert_array_equal(ndl.stack(t, 1).numpy(), np.stack([a, a + 1, a + 2], 1))


def test_a_residual_network_learns(device):
    np.random.seed(0)
    patterns = np.random.randn(3, 3, 8, 8)
    labels = np.arange(48) % 3
    images = patterns[labels] + 0.3 * np.random.randn(48, 3, 8, 8)
    nn = ndl.nn
    model = nn.Sequential(
        nn.Conv(3, 8, 3, device=device),
        nn.BatchNorm2d(8, device=device),
        nn.ReLU(),
        nn.Residual(nn.Conv(8, 8, 3, device=device)),
        nn.Flatten(),
        nn.Linear(512, 3, device=device),
    )
    opt = ndl.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(8):
        opt.reset_grad()
        loss = nn.SoftmaxLoss()(
            model(ndl.Tensor(images, device=device)), ndl.Tensor(labels, device=device)
        )
        loss.backward()
        opt.step()
        losses.append(loss.numpy().item())
    assert losses[-1] < 0.3 * losses[0]
