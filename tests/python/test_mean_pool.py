# SPDX-License-Identifier: Apache-2.0
"""Means of windows and losses of labels, on the host and on a device with a grid, beside plain loops of NumPy."""

import itertools

import numpy as np
import pytest
from present import present

import weft
import weft.nn.functional as F

GRID = present("opencl")


def means(x, starts, ends, counts):
    """x (planes, h, w) in float64; of each axis the windows' first elements, ends and divisors."""
    out = np.zeros((x.shape[0], len(starts[0]), len(starts[1])))
    for i, j in itertools.product(range(len(starts[0])), range(len(starts[1]))):
        part = x[:, starts[0][i] : ends[0][i], starts[1][j] : ends[1][j]]
        out[:, i, j] = part.sum((1, 2)) / counts(i, j)
    return out


def box(n, kernel, stride, padding, ceil):
    room = n + 2 * padding - kernel
    count = (-(-room // stride) if ceil else room // stride) + 1
    if ceil and (count - 1) * stride >= n + padding:
        count -= 1
    first = np.arange(count) * stride - padding
    return np.maximum(first, 0), np.minimum(first + kernel, n), np.minimum(first + kernel, n + padding) - first  # fmt: skip


def gradient(f, x, g, device):
    t = weft.Tensor(weft.asarray(x, device=device), requires_grad=True)
    y = f(t)
    y.backward(weft.Tensor(weft.asarray(g(y.shape), device=device), requires_grad=False))
    return y.data.to("cpu").numpy(), t.grad.data.to("cpu").numpy()


def numeric(f, x, g):
    """The gradient of a linear function: what each element adds."""
    out = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        one = np.zeros_like(x)
        one[at] = 1
        out[at] = (f(one) * g).sum()
    return out


@pytest.mark.parametrize("device", ["cpu", GRID])
@pytest.mark.parametrize(
    "kernel, stride, padding, ceil, border, divisor",
    [
        ((3, 3), (1, 1), (1, 1), False, True, None),
        ((3, 2), (2, 3), (1, 0), True, True, None),
        ((3, 2), (2, 3), (1, 1), True, False, None),
        ((2, 4), (2, 1), (0, 2), False, True, -3),
        ((5, 6), (1, 1), (0, 0), False, True, None),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_boxes(kernel, stride, padding, ceil, border, divisor, dtype, device):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((2, 3, 5, 6)).astype(dtype)
    spans = [box(n, *v, ceil) for n, *v in zip((5, 6), kernel, stride, padding)]

    def counts(i, j):
        if divisor:
            return divisor
        a, b = spans
        return a[2][i] * b[2][j] if border else (a[1][i] - a[0][i]) * (b[1][j] - b[0][j])

    def want(y):
        flat = y.reshape(-1, 5, 6).astype("float64")
        out = means(flat, [s[0] for s in spans], [s[1] for s in spans], counts)
        return out.reshape(*y.shape[:2], *out.shape[1:])

    g = rng.standard_normal(want(x).shape).astype(dtype)
    got, slope = gradient(
        lambda t: F.avg_pool2d(t, kernel, stride, padding, ceil, border, divisor), x, lambda s: g, device
    )  # fmt: skip
    close = {"rtol": 1e-5, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(got, want(x), **close)
    np.testing.assert_allclose(slope, numeric(want, x.astype("float64"), g), **close)


@pytest.mark.parametrize("device", ["cpu", GRID])
@pytest.mark.parametrize("size", [(4, 5), (5, 1), (7, 3)])
def test_adaptive(size, device):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((2, 2, 5, 6)).astype("float32")
    first = [np.arange(m) * n // m for m, n in zip(size, (5, 6))]
    end = [-(-(np.arange(1, m + 1) * n) // m) for m, n in zip(size, (5, 6))]

    def want(y):
        count = lambda i, j: (end[0][i] - first[0][i]) * (end[1][j] - first[1][j])  # noqa: E731
        out = means(y.reshape(-1, 5, 6).astype("float64"), first, end, count)
        return out.reshape(*y.shape[:2], *size)

    g = rng.standard_normal((2, 2, *size)).astype("float32")
    got, slope = gradient(lambda t: F.adaptive_avg_pool2d(t, size), x, lambda s: g, device)
    np.testing.assert_allclose(got, want(x), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(slope, numeric(want, x.astype("float64"), g), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", ["cpu", GRID])
def test_narrow_floats_and_volumes(device):
    rng = np.random.default_rng(5)
    x = weft.asarray(rng.standard_normal((1, 2, 4, 5, 6)).astype("float32"))
    half = weft.Tensor(x.astype("bfloat16").to(device), requires_grad=False)
    wide = weft.Tensor(x.astype("bfloat16").astype("float32"), requires_grad=False)
    a = F.avg_pool3d(half, 3, 2, 1).data.astype("float32").to("cpu").numpy()
    b = F.avg_pool3d(wide, 3, 2, 1).data.numpy()
    np.testing.assert_allclose(a, b, rtol=2**-8, atol=2**-8)


@pytest.mark.parametrize("divisor", [0, 2.5, True])
def test_divisors_are_checked(divisor):
    with pytest.raises(weft.ArgumentError) as caught:
        F.avg_pool2d(weft.Tensor(weft.ones((1, 1, 4, 4))), 2, divisor_override=divisor)
    assert caught.value.code == "nn.pool.divisor"
    assert "divisor_override" in str(caught.value)


@pytest.mark.parametrize("classes", [3, 20_000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_losses_of_labels(classes, dtype):
    """Of many classes: their logarithms are not in memory, the label's part is added to the others' gradient."""
    rng = np.random.default_rng(6)
    x = weft.asarray(rng.standard_normal((4, classes)) * 3).astype(dtype)
    labels = rng.integers(0, classes, 4)
    exact = x.astype("float64").numpy()
    share = np.exp(exact - exact.max(1, keepdims=True))
    share /= share.sum(1, keepdims=True)
    weights = np.array([1.0, -2.0, 0.5, 0.0])
    want = share * weights[:, None]
    want[np.arange(4), labels] -= weights
    t = weft.Tensor(x.to(GRID), requires_grad=True)
    losses = F.cross_entropy(t, weft.asarray(labels, device=GRID), reduction="none")
    tolerance = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 2e-2}[dtype]
    picked = -np.log(share[np.arange(4), labels])
    np.testing.assert_allclose(losses.data.astype("float64").to("cpu").numpy(), picked, rtol=tolerance)  # fmt: skip
    (losses * weft.asarray(weights, device=GRID).astype(dtype)).sum().backward()
    got = t.grad.data.astype("float64").to("cpu").numpy()
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * np.abs(want).max())


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (300, 3), (37, 1001), (600, 130), (2, 70_001)])
@pytest.mark.parametrize("labels_of", ["int64", "int32", "uint8"])
def test_losses_of_any_shape(shape, labels_of):
    rng = np.random.default_rng(9)
    x = rng.standard_normal(shape).astype("float32") * 4
    labels = rng.integers(0, min(shape[1], 256), shape[0])
    top = x.astype("float64") - x.max(1, keepdims=True)
    share = np.exp(top) / np.exp(top).sum(1, keepdims=True)
    rows = np.arange(shape[0])
    given = weft.asarray(labels.astype(labels_of), device=GRID)
    for scores in (
        weft.asarray(x, device=GRID),
        weft.asarray(np.asfortranarray(x).T.copy(), device=GRID).T,
    ):
        t = weft.Tensor(scores, requires_grad=True)
        loss = F.cross_entropy(t, given)
        loss.backward()
        assert abs(loss.item() + np.log(share[rows, labels]).mean()) < 1e-5
        want = share.copy()
        want[rows, labels] -= 1
        got = t.grad.data.to("cpu").numpy()
        np.testing.assert_allclose(got, want / shape[0], rtol=1e-4, atol=1e-6 / shape[0])


def test_losses_of_infinite_scores():
    x = np.array([[np.inf, 1, 2], [-np.inf, 0, 0], [np.nan, 0, 1], [-np.inf] * 3], "float32")
    labels = weft.asarray([1, 1, 1, 0], device=GRID)
    got = F.cross_entropy(weft.Tensor(weft.asarray(x, device=GRID)), labels, reduction="none")
    want = [np.inf, np.log(2), np.nan, np.nan]
    np.testing.assert_allclose(got.data.to("cpu").numpy(), want, rtol=1e-6)


def test_gradients_of_gradients_of_losses():
    rng = np.random.default_rng(10)
    x = rng.standard_normal((5, 7))
    labels = weft.asarray(rng.integers(0, 7, 5), device=GRID)

    def of(device):
        given = labels.to(device)
        f = lambda a: F.cross_entropy(a, given)  # noqa: E731
        second = weft.hessian(f)(weft.asarray(x, device=device))
        return getattr(second, "data", second).to("cpu").numpy()

    np.testing.assert_allclose(of(GRID), of("cpu"), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_are_one_kernel(reduction):
    """A loss of differences on a grid: the composition's result and gradients, in float32 whatever lies between."""
    rng = np.random.default_rng(7)
    x, y = rng.standard_normal((2, 33, 17)).astype("float32")
    t, u = (weft.Tensor(weft.asarray(v, device=GRID), requires_grad=True) for v in (x, y))
    loss = F.huber_loss(t, u, reduction=reduction, delta=0.7)
    (loss.sum() if reduction == "none" else loss).backward()
    d = (x - y).astype("float64")
    each = np.where(abs(d) < 0.7, d * d / 2, 0.7 * (abs(d) - 0.35))
    want = {"mean": each.mean(), "sum": each.sum(), "none": each}[reduction]
    np.testing.assert_allclose(loss.data.to("cpu").numpy(), want, rtol=1e-5, atol=1e-6)
    slope = np.clip(d, -0.7, 0.7) / (d.size if reduction == "mean" else 1)
    np.testing.assert_allclose(t.grad.data.to("cpu").numpy(), slope, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(u.grad.data.to("cpu").numpy(), -slope, rtol=1e-5, atol=1e-7)


def test_means_of_tensors():
    rng = np.random.default_rng(8)
    x = rng.standard_normal((3, 4, 5)).astype("float32")
    for axes, keep in ((1, True), ((0, 2), False), (None, False)):
        want = x.astype("float64").mean(axes, keepdims=keep)
        g = rng.standard_normal(want.shape).astype("float32")
        got, slope = gradient(lambda t: t.mean(axes, keep), x, lambda s: g, GRID)  # noqa: B023
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        wide = g if keep or axes is None else np.expand_dims(g, axes)
        each = np.broadcast_to(wide, x.shape) * (want.size / x.size)
        np.testing.assert_allclose(slope, each, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("n", range(2, 9))
def test_windows_that_begin_behind_the_last_element(n, kind):
    """With ceil_mode a window that would begin in the border behind the elements is left out."""
    torch = pytest.importorskip("torch")
    x = np.arange(1, n + 1, dtype=np.float32).reshape(1, 1, n)
    for kernel, stride in ((2, 2), (2, 3), (2, 4), (3, 3), (3, 4), (3, 5), (4, 6)):
        for padding in range(kernel // 2 + 1):
            if n + 2 * padding < kernel:
                continue
            layer = f"{kind.title()}Pool1d"
            found = getattr(weft.nn, layer)(kernel, stride, padding, ceil_mode=True)(
                weft.asarray(x)
            )
            wanted = getattr(torch.nn, layer)(kernel, stride, padding, ceil_mode=True)(
                torch.from_numpy(x)
            )
            np.testing.assert_allclose(
                found.numpy(), wanted.numpy(), rtol=1e-6, err_msg=f"{kernel} {stride} {padding}"
            )


@pytest.mark.parametrize("device", ["cpu", "opencl:0"])
@pytest.mark.parametrize("counted", [True, False])
def test_windows_that_hang_over_the_last_element(device, counted):
    """With ceil_mode and no border: the mean is over the elements that are there."""
    present(device)
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(6)
    for shape, kernel, stride in [((2, 3, 7, 5), 2, 2), ((1, 2, 8, 11), (3, 4), (3, 4)), ((1, 4, 6, 6), 2, 2), ((2, 1, 9, 10), (2, 3), (3, 2)), ((3, 2, 7, 16), 3, 3)]:  # fmt: skip
        x = rng.standard_normal(shape).astype("float32")
        mine = weft.Tensor(weft.asarray(x, device=device), requires_grad=True)
        theirs = torch.tensor(x, requires_grad=True)
        options = dict(ceil_mode=True, count_include_pad=counted)
        found = F.avg_pool2d(mine, kernel, stride, **options)
        wanted = torch.nn.functional.avg_pool2d(theirs, kernel, stride, **options)
        np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy(), rtol=1e-5, atol=1e-6)  # fmt: skip
        (found * found).sum().backward()
        (wanted * wanted).sum().backward()
        np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("device", ["cpu", "opencl:0"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_maxima_of_windows_with_nan_and_infinities(device, dtype):
    """NaN wins, -inf is a value, and a border is none; each window's gradient goes to one element."""
    present(device)
    x = np.random.default_rng(8).standard_normal((2, 3, 9, 10)).astype(dtype)
    x[0, 0, 2, 3], x[0, 1], x[1, 2, :, ::2] = np.nan, -np.inf, -np.inf
    x[1, 0, 8, 9] = np.inf
    mine = weft.Tensor(weft.asarray(x, device=device), requires_grad=True)
    for kernel, stride, padding in (((2, 2), (2, 2), (0, 0)), ((3, 2), (2, 1), (1, 1)), ((3, 3), (3, 3), (0, 0))):  # fmt: skip
        wide = np.pad(x, [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2], constant_values=-np.inf)  # fmt: skip
        seen = np.lib.stride_tricks.sliding_window_view(wide, kernel, axis=(2, 3))[:, :, :: stride[0], :: stride[1]]  # fmt: skip
        found = F.max_pool2d(mine, kernel, stride, padding)
        np.testing.assert_array_equal(found.detach().numpy(), seen.max((-1, -2)))
        mine.grad = None
        found.sum().backward()
        assert float(weft.sum(mine.grad.astype("float32"))) == found.size
