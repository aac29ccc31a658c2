# SPDX-License-Identifier: Apache-2.0
"""Products with vectors and convolutions on the host, of odd sizes and layouts, and what a graph keeps of them."""

import gc
import os

import numpy as np
import pytest

import weft
from weft import Tensor, _core, nn


@pytest.fixture
def rng():
    seed = int(os.environ.get("WEFT_SEED", "20261122"))
    print(f"seed {seed}")
    return np.random.default_rng(seed)


@pytest.mark.parametrize("dtype,tolerance", [("float32", 2e-5), ("float64", 1e-13)])
@pytest.mark.parametrize("m", [1, 2, 5, 8, 17, 64, 65, 257, 4099])
def test_products_with_a_vector_of_every_layout(rng, m, dtype, tolerance):
    for k in (1, 2, 7, 8, 16, 33, 100, 513, 9001 if m < 70 else 130):
        a = rng.standard_normal((m, k)).astype(dtype)
        x = rng.standard_normal(k).astype(dtype)
        big = rng.standard_normal((2 * m, 3 * k)).astype(dtype)
        A, X, B = weft.asarray(a), weft.asarray(x), weft.asarray(big)
        T = weft.asarray(np.ascontiguousarray(a.T))
        for what, got, want in [
            ("rows", A @ X, a @ x),
            ("columns", T.T @ X, a @ x),
            ("vector first", X @ T, a @ x),
            ("steps along both axes", B[::2, ::3] @ X, big[::2, ::3] @ x),
            ("rows from the last", A[::-1] @ X, a[::-1] @ x),
            ("columns from the last", A[:, ::-1] @ X, a[:, ::-1] @ x),
            ("vector with steps", A @ weft.asarray(np.repeat(x, 3))[::3], a @ x),
            ("vector from the last", A @ X[::-1], a @ x[::-1]),
            ("one column", (A @ X.reshape(-1, 1))[:, 0], a @ x),
            ("one number repeated", A @ weft.broadcast_to(X[:1], (k,)), a.sum(1) * x[0]),
        ]:
            got = got.numpy()
            limit = tolerance * (np.abs(a) @ np.abs(x) + np.abs(big).sum() / m + 1).max()
            assert got.shape == want.shape and np.abs(got - want).max() <= limit, (what, k)


def test_a_product_with_a_vector_does_not_depend_on_threads(rng):
    a = weft.asarray(rng.standard_normal((1003, 1001)).astype("float32"))
    x = weft.asarray(rng.standard_normal(1001).astype("float32"))
    long = weft.asarray(rng.standard_normal(300_001).astype("float32"))
    before, found = weft.get_threads(), []
    try:
        for threads in (1, 2):
            weft.set_threads(threads)
            found.append([(a @ x).numpy(), (a.T @ a[:, 0]).numpy(), (long @ long).numpy()])
    finally:
        weft.set_threads(before)
    for one, two in zip(*found):
        np.testing.assert_array_equal(one, two)


CONVOLUTIONS = {
    "plain": dict(n=3, c=4, o=5, image=(9, 11), kernel=(3, 3)),
    "one by one": dict(n=3, c=5, o=7, image=(6, 5), kernel=(1, 1)),
    "one by one, strides": dict(n=2, c=3, o=4, image=(7, 8), kernel=(1, 1), stride=(2, 3)),
    "padding beyond the kernel": dict(n=1, c=2, o=3, image=(3, 2), kernel=(2, 3), padding=(4, 5)),
    "strides and dilation": dict(
        n=5, c=3, o=2, image=(13, 17), kernel=(3, 2), stride=(2, 3), padding=(2, 1), dilation=(2, 3)
    ),
    "groups": dict(n=4, c=6, o=9, image=(7, 7), kernel=(3, 3), padding=(1, 1), groups=3),
    "each channel": dict(n=2, c=5, o=5, image=(8, 6), kernel=(3, 3), padding=(1, 1), groups=5),
    "windows in several pieces": dict(
        n=1, c=67, o=3, image=(61, 59), kernel=(3, 3), padding=(1, 1)
    ),
    "many images at once": dict(n=37, c=19, o=11, image=(4, 4), kernel=(3, 3), padding=(1, 1)),
    "no image": dict(n=0, c=2, o=3, image=(4, 4), kernel=(3, 3)),
}


@pytest.mark.parametrize("dtype,tolerance", [("float32", 2e-4), ("float64", 1e-11)])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_and_gradients_against_torch(rng, name, transposed, dtype, tolerance):
    torch = pytest.importorskip("torch")
    s = dict(stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1) | CONVOLUTIONS[name]
    if transposed and name == "padding beyond the kernel":
        s["padding"] = (1, 1)
    g = s["groups"]
    x = rng.standard_normal((s["n"], s["c"], *s["image"])).astype(dtype)
    shape = (s["c"], s["o"] // g) if transposed else (s["o"], s["c"] // g)
    w = rng.standard_normal((*shape, *s["kernel"])).astype(dtype)
    options = {k: s[k] for k in ("stride", "padding", "dilation", "groups")}
    ours, theirs = (
        (nn.functional.conv_transpose2d, torch.nn.functional.conv_transpose2d)
        if transposed
        else (nn.functional.conv2d, torch.nn.functional.conv2d)
    )
    if transposed:
        options["output_padding"] = tuple(v - 1 for v in s["stride"])
    before, found = weft.get_threads(), []
    try:
        for threads in (1, 2):
            weft.set_threads(threads)
            a, b = Tensor(x), Tensor(w)
            y = ours(a, b, **options)
            seed = np.random.default_rng(1).standard_normal(y.shape).astype(dtype)
            y.backward(weft.asarray(seed))
            found.append([y.numpy(), a.grad.numpy(), b.grad.numpy()])
    finally:
        weft.set_threads(before)
    ta, tb = (torch.tensor(v, requires_grad=True) for v in (x, w))
    ty = theirs(ta, tb, **options)
    ty.backward(torch.tensor(seed))
    for one, two, want in zip(*found, (ty.detach(), ta.grad, tb.grad)):
        np.testing.assert_array_equal(one, two)
        size = max(1.0, float(want.abs().max())) if want.numel() else 1.0
        np.testing.assert_allclose(one, want.numpy(), rtol=tolerance, atol=tolerance * size)


def test_a_convolution_keeps_no_windows(rng):
    device = weft.device("cpu")
    x = Tensor(rng.standard_normal((8, 32, 32, 32)).astype("float32"))
    w = Tensor(rng.standard_normal((32, 32, 3, 3)).astype("float32"))
    before = device.stats()["bytes.live"]
    y = nn.functional.conv2d(x, w, padding=1)
    kept = device.stats()["bytes.live"] - before
    assert y.size * 4 <= kept <= y.size * 4 + 65536


def test_a_graph_keeps_only_what_gradients_read(rng):
    device, n = weft.device("cpu"), 1 << 18
    x = Tensor(rng.standard_normal(n).astype("float32"))
    gc.collect()
    before = device.stats()["bytes.live"]
    y = (x + 1.0).reshape(512, 512).T + 2.0  # sums and views: no gradient reads values
    assert device.stats()["bytes.live"] - before <= n * 4 + 4096  # y alone
    z = weft.relu(y * 3.0)
    del y
    assert (
        device.stats()["bytes.live"] - before <= n * 4 + 4096
    )  # z alone: relu's gradient reads it
    order = _core.topological(z)
    assert [t.op for t in order] == ["", "add", "reshape", "transpose", "add", "multiply", "relu"]
    assert all(t.size == n and t.dtype == "float32" and t.device == device for t in order)
    assert "released, shape=" in repr(order[1]) and "op=add" in repr(order[1])
    with pytest.raises(weft.ArgumentError, match="result of add, shape") as info:
        order[1].numpy()
    assert info.value.code == "array.tensor.released"
    z.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 3.0 * (3.0 * (x.numpy() + 3.0) > 0))


def test_values_stay_while_someone_holds_them_or_a_gradient_reads_them(rng):
    a = rng.standard_normal((3, 4))
    x = Tensor(a)
    held = x + 1.0
    y = weft.exp(held) * held.sum()
    np.testing.assert_array_equal(held.numpy(), a + 1.0)
    inner = y.inputs[0]  # exp's gradient reads its result
    np.testing.assert_allclose(inner.numpy(), np.exp(a + 1.0), rtol=1e-14)
    held.data = weft.asarray(a)  # a tensor whose values are replaced is not released
    np.testing.assert_array_equal(held.numpy(), a)


def test_a_pass_that_retains_nothing_gives_memory_back_on_its_way(rng):
    device, n = weft.device("cpu"), 1 << 18
    values = rng.random(n).astype("float32")
    kept, gradients = [], []
    for retain in (True, False):
        x = loss = None
        gc.collect()
        x = Tensor(values)
        before = device.stats()["bytes.live"]
        y = x
        for _ in range(12):
            y = weft.tanh(y)  # its gradient reads the result
        loss = y.sum()
        del y
        assert device.stats()["bytes.live"] - before >= 12 * n * 4
        loss.backward(retain_graph=retain)
        kept.append(device.stats()["bytes.live"] - before)
        gradients.append(x.grad.numpy())
        x.grad = None
        if retain:
            loss.backward()
            np.testing.assert_array_equal(x.grad.numpy(), gradients[0])
        else:
            with pytest.raises(weft.ArgumentError, match="retain_graph=True") as info:
                loss.backward()
            assert info.value.code == "array.tensor.released"
            assert [t.op for t in _core.topological(loss)] == ["", *["tanh"] * 12, "sum"]
    np.testing.assert_array_equal(*gradients)
    assert kept[0] >= 12 * n * 4 and kept[1] <= 2 * n * 4
    held = weft.tanh(Tensor(values))
    held.sum().backward()  # as torch: nothing is retained unless asked for
    np.testing.assert_allclose(held.numpy(), np.tanh(values), rtol=1e-6)  # someone holds it


def test_the_first_layer_computes_no_gradient_of_its_input(rng):
    x = Tensor(rng.standard_normal((4, 3)), requires_grad=False)
    w = Tensor(rng.standard_normal((3, 2)))
    (x @ w).sum().backward()
    assert x.grad is None
    np.testing.assert_allclose(w.grad.numpy(), x.numpy().sum(0)[:, None] * np.ones((1, 2)))


@pytest.mark.parametrize("dtype,tolerance", [("complex64", 2e-6), ("complex128", 1e-14)])
def test_complex_products_of_every_layout(rng, dtype, tolerance):
    def numbers(*shape):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)

    for m, n, k in [
        (8, 8, 1), (8, 9, 3), (9, 17, 400), (100, 33, 7), (257, 513, 129), (64, 1100, 353), (13, 520, 705), (1, 5, 9),
        (7, 7, 7), (5, 1, 900), (3000, 9, 2), (1, 700, 300), (700, 1, 300), (3, 400, 50), (12, 400, 50),
    ]:  # fmt: skip
        a, b = numbers(m, k), numbers(k, n)
        want, scale = a @ b, np.abs(a) @ np.abs(b)
        wide = np.repeat(np.repeat(a, 2, 0), 3, 1)
        for left in (
            weft.asarray(a),
            weft.asarray(np.ascontiguousarray(a.T)).T,
            weft.asarray(wide)[::2, ::3],
        ):
            for right in (weft.asarray(b), weft.asarray(np.ascontiguousarray(b.T)).T):
                error = np.abs((left @ right).numpy() - want) / scale
                assert error.max() < tolerance, (m, n, k)
    a, b = numbers(3, 1, 20, 30), numbers(4, 30, 25)
    np.testing.assert_allclose(
        (weft.asarray(a) @ weft.asarray(b)).numpy(), a @ b, atol=300 * tolerance
    )


def test_complex_products_on_any_number_of_threads(rng):
    a, b = (
        weft.asarray((rng.standard_normal(s) + 1j * rng.standard_normal(s)).astype("complex64"))
        for s in ((300, 400), (400, 600))
    )
    before, found = weft.get_threads(), set()
    try:
        for threads in (1, 2, 8):
            weft.set_threads(threads)
            found.add((a @ b).numpy().tobytes() + (a[:1] @ b).numpy().tobytes())
    finally:
        weft.set_threads(before)
    assert len(found) == 1


@pytest.mark.parametrize(
    "dtype,tolerance", [("float64", 1e-12), ("float32", 2e-5), ("bfloat16", 0.3)]
)
def test_depthwise_convolutions(rng, dtype, tolerance):
    for c, h, w, kh, kw, padding, dilation, stride in [
        (3, 7, 9, 3, 3, 1, 1, 1), (5, 6, 6, 3, 3, 0, 1, 1), (4, 5, 5, 5, 5, 4, 1, 1), (2, 9, 9, 3, 3, 2, 2, 1),
        (3, 4, 4, 2, 3, 5, 1, 1), (3, 8, 40, 3, 7, 3, 1, (2, 1)), (1, 3, 3, 1, 1, 0, 1, 1), (2, 9, 5, 3, 3, 6, 3, 1),
        (3, 9, 9, 3, 3, 1, 1, 2),
    ]:  # fmt: skip
        x, k = rng.standard_normal((2, c, h, w)), rng.standard_normal((c, 1, kh, kw))
        sy, sx = stride if isinstance(stride, tuple) else (stride, stride)
        padded = np.pad(x, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
        oh = (h + 2 * padding - dilation * (kh - 1) - 1) // sy + 1
        ow = (w + 2 * padding - dilation * (kw - 1) - 1) // sx + 1
        want = np.zeros((2, c, oh, ow))
        for i in range(kh):
            for j in range(kw):
                at = padded[:, :, i * dilation :, j * dilation :][:, :, ::sy, ::sx][:, :, :oh, :ow]
                want += at * k[:, 0, i, j][:, None, None]
        a, b = (Tensor(weft.asarray(v).astype(dtype), requires_grad=False) for v in (x, k))
        got = nn.functional.conv2d(
            a, b, stride=stride, padding=padding, dilation=dilation, groups=c
        )
        np.testing.assert_allclose(got.data.astype("float64").numpy(), want, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_convolutions_are_rounded_once(rng, dtype):
    x = weft.asarray(rng.standard_normal((2, 3, 11, 12))).astype(dtype)
    w = weft.asarray(rng.standard_normal((4, 3, 3, 3))).astype(dtype)
    results = []
    for to in (dtype, "float32"):
        a, b = (Tensor(v.astype(to), requires_grad=True) for v in (x, w))
        y = nn.functional.conv2d(a, b, padding=1)
        y.backward(weft.ones(y.shape, dtype=to))
        results.append([v.astype(dtype).tolist() for v in (y.data, a.grad, b.grad)])
    assert results[0] == results[1]


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float32", "complex64", "complex128"])
def test_repeated_and_interleaved_elements(dtype):
    """Copies whose innermost runs are short."""
    a = np.arange(5 * 7 * 3).reshape(5, 7, 3)
    x = weft.asarray(a).astype(dtype)
    for times in (2, 3, 4, 5):
        wide = x.reshape((5, 7, 3, 1)).broadcast_to((5, 7, 3, times)).reshape((5, 7, 3 * times))
        want = weft.asarray(np.repeat(a, times, 2)).astype(dtype)
        assert weft.all(wide == want)
    assert weft.all(weft.stack([x, x], axis=-1)[..., 1] == x)
    y = weft.zeros((5, 7, 3, 2), dtype=dtype)
    y[..., ::-1] = x.reshape((5, 7, 3, 1))
    assert weft.all(y[..., 0] == x) and weft.all(y[..., 1] == x)


def test_views_of_diagonals():
    a = np.arange(4 * 5 * 6).reshape(4, 5, 6)
    x = weft.asarray(a)
    for offset in range(-8, 9):
        got = weft.linalg.diagonal(x, offset=offset)
        np.testing.assert_array_equal(got.numpy(), np.diagonal(a, offset, -2, -1))
    assert weft.linalg.diagonal(x, offset=2**62).shape == (4, 0)
    assert weft.linalg.diagonal(x, offset=-(2**62)).shape == (4, 0)
    square = weft.asarray(np.arange(9).reshape(3, 3))
    weft.einsum("ii->i", square)[...] = 0
    assert square.tolist() == [[0, 1, 2], [3, 0, 5], [6, 7, 0]]
    with pytest.raises(weft.IndexError) as refused:
        _core._diagonal(x, 1, -2)
    assert refused.value.code == "array.diagonal.axes"
    assert "axis 1 twice" in str(refused.value)
    with pytest.raises(weft.IndexError) as refused:
        weft.linalg.diagonal(weft.asarray([1, 2]))
    assert refused.value.code == "array.diagonal.axis"


@pytest.mark.parametrize("scale", [2, 3, (1, 4)])
def test_enlarging_by_whole_numbers(rng, scale):
    v = rng.standard_normal((2, 3, 5, 4))
    x = Tensor(v, dtype="float64", requires_grad=True)
    sy, sx = scale if isinstance(scale, tuple) else (scale, scale)
    got = nn.functional.interpolate(x, scale_factor=scale)
    np.testing.assert_array_equal(got.data.numpy(), np.repeat(np.repeat(v, sy, 2), sx, 3))
    seed = rng.standard_normal(got.shape)
    got.backward(weft.asarray(seed))
    want = seed.reshape(2, 3, 5, sy, 4, sx).sum((3, 5))
    np.testing.assert_allclose(x.grad.numpy(), want, atol=1e-12)
