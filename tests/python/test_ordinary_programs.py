# SPDX-License-Identifier: Apache-2.0
"""Programs as users of NumPy and PyTorch write them, over either library: weft gives NumPy's results."""

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(8)
PROGRAMS = []


def program(*data):
    def keep(f):
        PROGRAMS.append(pytest.param(f, data, id=f.__name__))
        return f

    return keep


def reals(*shape):
    return RNG.standard_normal(shape)


def below(n, *shape):
    return RNG.integers(0, n, shape)


@program(reals(300, 5), reals(4, 5))
def k_means(xp, x, centres):
    for _ in range(3):
        near = xp.argmin(xp.sum((x[:, None, :] - centres[None]) ** 2, axis=-1), axis=1)
        centres = xp.stack([xp.mean(x[near == k], axis=0) for k in range(4)])
    return centres


@program(below(50, 400), below(50, 400))
def page_rank(xp, source, target):
    degree, rank = xp.bincount(source, minlength=50), xp.full((50,), 0.02, dtype=xp.float64)
    for _ in range(5):
        share = (rank / xp.maximum(degree, 1))[source]
        rank = 0.85 * xp.bincount(target, weights=share, minlength=50) + 0.003
    return rank


@program(below(30, 500), reals(500))
def means_by_group(xp, key, value):
    order = xp.argsort(key, kind="stable")
    key, value = key[order], value[order]
    first = xp.flatnonzero(xp.concatenate([xp.asarray([True]), key[1:] != key[:-1]]))
    sums = xp.concatenate([xp.zeros(1, dtype=xp.float64), xp.cumsum(value)])
    last = xp.concatenate([first[1:], xp.asarray([500])])
    names, where, count = xp.unique(key, return_inverse=True, return_counts=True)
    return (
        (sums[last] - sums[first]) / (last - first),
        xp.bincount(where, weights=value) / count,
        names,
    )


@program(below(2, 20, 30))
def life(xp, board):
    for _ in range(3):
        turns = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        n = sum(xp.roll(xp.roll(board, i, axis=0), j, axis=1) for i, j in turns)
        board = ((n == 3) | ((board == 1) & (n == 2))).astype(xp.int64)
    return board


@program(reals(24, 30))
def filter_by_frequency(xp, x):
    f = xp.fft.fftfreq(24)[:, None] ** 2 + xp.fft.fftfreq(30)[None] ** 2
    return xp.real(xp.fft.ifft2(xp.fft.fft2(x) * (f < 0.05))), xp.fft.irfft2(
        xp.fft.rfft2(x), s=(24, 30)
    )


@program(reals(90))
def rolling(xp, x):
    sums = xp.cumsum(xp.concatenate([xp.zeros(1, dtype=xp.float64), x]))
    view = getattr(xp, "sliding_window_view", None) or xp.lib.stride_tricks.sliding_window_view
    w = view(x, 7)
    grid = view(x.reshape(9, 10), (2, 3), axis=(0, 1))
    return (sums[7:] - sums[:-7]) / 7, w.max(axis=-1), xp.median(w, axis=-1), grid.sum(axis=(2, 3))


@program(reals(20, 4), reals(30, 4), below(20, 200), below(30, 200), reals(200))
def factors(xp, u, v, i, j, y):
    u, v = xp.array(u), xp.array(v)
    for k in range(0, 200, 50):
        a, b = i[k : k + 50], j[k : k + 50]
        rows, columns = u[a], v[b]
        e = (y[k : k + 50] - xp.sum(rows * columns, axis=1))[:, None]
        xp.add.at(u, a, 0.01 * e * columns)
        xp.subtract.at(v, b, -0.01 * e * rows)
    return u, v


@program(below(4, 40), below(4, 40))
def edit_distance(xp, a, b):
    before = xp.arange(41)
    for i in range(40):
        here = xp.minimum(before[:-1] + (b != a[i]), before[1:] + 1)
        here = xp.concatenate([xp.asarray([i + 1]), here]) - xp.arange(41)
        before = xp.minimum.accumulate(here) + xp.arange(41)
    return before


@program(reals(60) + 1j * reals(60))
def complex_numbers(xp, z):
    w = xp.angle(z * xp.exp(1j * xp.abs(z))) + xp.real(xp.conj(z) / (1 + z))
    return w, z**2, z**3, z**-1, xp.angle(z.real), xp.angle(z, deg=True)


@program(reals(70, 5, 3), reals(70, 1, 3), reals(5, 1), below(9, 70, 1, 3))
def odd_axes(xp, a, b, c, n):
    y = xp.maximum((a + b) * c, a - b * b) / (1 + n)
    return (
        y.sum(axis=(0, 2)),
        xp.transpose(y, (2, 0, 1)),
        xp.transpose(y),
        (a.astype(xp.float32) * n).max(axis=1),
    )


@program(reals(40, 6))
def statistics(xp, x):
    some = xp.where(x > 1, xp.nan, x)
    out = (
        xp.percentile(x, [5, 50, 95], axis=0),
        xp.quantile(x, 0.3, axis=1),
        xp.corrcoef(x, rowvar=False),
    )
    return *out, xp.nanmean(some), xp.nanstd(some), xp.histogram(x, bins=13)[0], xp.var(x, axis=1)


@program(below(3, 50), reals(50).round(1))
def orders(xp, a, b):
    order = xp.lexsort((b, a))
    return order, a[order], xp.argsort(b, kind="stable"), xp.sort(b, kind="mergesort")


@program(reals(6, 7), reals(6, 7))
def small_matrices(xp, a, b):
    return (
        xp.triu(a, 1) + xp.tril(b, -1),
        xp.add.outer(a[0], b[0]),
        xp.multiply.reduce(a, axis=1),
        xp.cross(a[:, :3], b[:, :3]),
    )


@program(reals(2, 3, 7), reals(2, 5, 3), reals(7))
def letters(xp, a, b, c):
    y = (
        xp.einsum("bij,bki->bkj", a, b),
        xp.einsum("bij,bkl->bijkl", a, b),
        xp.einsum("bij,j->i", a, c),
    )
    return (
        *y,
        xp.einsum("...ij,...ki->...kj", a, b),
        xp.einsum("bii->b", xp.einsum("bij,bkj->bik", a, a)),
    )


@program(reals(90), reals(7), reals(5, 1, 3), reals(4, 3))
def signals_and_vectors(xp, a, k, p, q):
    modes = [
        f(x, y, mode=m)
        for f in (xp.convolve, xp.correlate)
        for m in ("full", "same", "valid")
        for x, y in ((a, k), (k, a))
    ]
    return (
        *modes,
        xp.cross(p, q),
        xp.dot(a[:7], k),
        xp.linalg.norm(p, axis=2),
        xp.repeat(q, 3, axis=1),
        xp.repeat(q, 1),
    )


def host(x):
    if isinstance(x, (tuple, list)):
        return [host(v) for v in x]
    return x.numpy() if isinstance(x, weft.NDArray) else np.asarray(x)


def compare(got, want):
    if isinstance(want, list):
        assert len(got) == len(want)
        for a, b in zip(got, want):
            compare(a, b)
        return
    assert got.shape == want.shape
    if want.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, equal_nan=True)


@program(reals(60))
def kalman_filter(xp, seen):
    f, h = xp.array([[1, 1], [0, 1]], dtype=float), xp.array([[1.0, 0]])
    x, p, out = xp.zeros((2, 1)), xp.eye(2), []
    for z in seen:
        x, p = f @ x, f @ p @ f.T + xp.eye(2) * 0.01
        gain = p @ h.T @ xp.linalg.inv(h @ p @ h.T + xp.array([[1.0]]))
        x, p = x + gain @ (z - h @ x), (xp.eye(2) - gain @ h) @ p
        out.append(x[0, 0])
    return xp.array(out)


@program(reals(80, 2))
def gaussian_mixture(xp, x):
    n, d = x.shape
    mean, cov, part = x[[0, 5]], xp.stack([xp.eye(d)] * 2), xp.ones(2) / 2
    for _ in range(3):
        r = xp.empty((n, 2))
        for k in range(2):
            far = x - mean[k]
            size = xp.einsum("ni,ij,nj->n", far, xp.linalg.inv(cov[k]), far)
            r[:, k] = part[k] * xp.exp(-0.5 * size) / xp.sqrt(xp.linalg.det(cov[k]))
        r /= r.sum(1, keepdims=True)
        mass = r.sum(0)
        mean = (r.T @ x) / mass[:, None]
        cov = xp.stack(
            [((r[:, k, None] * (x - mean[k])).T @ (x - mean[k])) / mass[k] for k in range(2)]
        )
        part = mass / n
    return mean, cov, part


@program(reals(6, 5), reals(6, 6), reals(5, 6))
def recurrent_network_by_hand(xp, wx, wh, wy):
    h, loss, states, shares = xp.zeros((6, 1)), 0, [xp.zeros((6, 1))], []
    for a in range(4):
        x = xp.zeros((5, 1))
        x[a] = 1
        h = xp.tanh(wx @ x + 0.1 * wh @ h)
        p = xp.exp(wy @ h - xp.max(wy @ h))
        p /= xp.sum(p)
        loss += -xp.log(p[a + 1, 0])
        states.append(h)
        shares.append(p)
    slope = xp.zeros_like(wy)
    for t in reversed(range(4)):
        back = xp.copy(shares[t])
        back[t + 1] -= 1
        slope += xp.dot(back, states[t + 1].T)
    xp.clip(slope, -0.5, 0.5, out=slope)
    return loss, slope


@program()
def escaping_points(xp):
    y, x = xp.mgrid[-1.2:1.2:20j, -2:0.5:25j]
    c = x + 1j * y
    z, count = xp.zeros_like(c), xp.zeros(c.shape, dtype=int)
    for _ in range(12):
        inside = xp.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
        count[inside] += 1
    return count


@program(below(20, 4, 5))
def chosen_entries(xp, x):
    x[xp.ix_([0, 2], [1, 3])] = -1
    x[x > 15] = 0
    return (
        xp.argwhere(x == -1), xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1), xp.delete(x, 1, axis=0),
        xp.insert(x, 0, 9, axis=1), xp.select([x < 0, x > 10], [0, 1], default=5), xp.where(x == 0)[0], xp.rot90(x),
        xp.apply_along_axis(xp.sum, 1, x), xp.quantile(xp.sum(x, axis=1) * 1.0, [0.25, 0.75]),
    )  # fmt: skip


@program(below(5, 40))
def pairs_of_words(xp, words):
    count, pairs = xp.bincount(words, minlength=5), xp.zeros((5, 5), int)
    xp.add.at(pairs, (words[:-1], words[1:]), 1)
    order = xp.lexsort((xp.arange(40), words))
    names, first, number = xp.unique(words, return_inverse=True, return_counts=True)
    parts = xp.split(words[order], xp.cumsum(number)[:-1])
    return count, pairs, first, xp.array([len(p) for p in parts]), -xp.sort(-count)


@program(reals(40), reals(8, 8))
def windows_and_waves(xp, x, image):
    w = xp.lib.stride_tricks.sliding_window_view(x, 5)
    k = xp.arange(8)
    waves = xp.sqrt(2 / 8) * xp.cos(xp.pi * (2 * k[None] + 1) * k[:, None] / 16)
    waves[0] /= xp.sqrt(2)
    return (
        w.mean(axis=-1),
        xp.convolve(x, xp.ones(5) / 5, mode="valid"),
        xp.round(waves @ image @ waves.T, 2),
    )


@pytest.mark.parametrize("f, data", PROGRAMS)
def test_program(f, data):
    compare(host(f(weft, *(weft.asarray(d) for d in data))), host(f(np, *data)))


def test_operations_that_do_not_combine():
    with pytest.raises(weft.ArgumentError, match="divide.accumulate") as refusal:
        weft.divide.accumulate(weft.ones(3))
    assert refusal.value.code == "array.operation.method"


@pytest.mark.parametrize("p", [0, 1, 2, 3, float("inf")])
def test_distances(p):
    a, b = reals(5, 3), reals(7, 3)
    want = np.linalg.norm(a[:, None] - b[None], ord=p, axis=-1)
    np.testing.assert_allclose(
        weft.cdist(weft.asarray(a), weft.asarray(b), p).numpy(), want, rtol=1e-12
    )
    with pytest.raises(weft.ArgumentError) as refusal:
        weft.cdist(weft.ones((2, 3)), weft.ones((2, 4)))
    assert refusal.value.code == "array.cdist.shape"


def test_pytorch_names_on_arrays():
    x = weft.asarray(reals(3, 4, 5))
    assert x.to(weft.float16).dtype == weft.float16 and x.flatten(1).shape == (3, 20)
    assert x.transpose(-1, 0).shape == (5, 4, 3) and weft.transpose(x, 0, 1).shape == (4, 3, 5)
    np.testing.assert_allclose(x.var(-1, unbiased=True).numpy(), x.numpy().var(-1, ddof=1))
    windows = x.unfold(1, 2, 2)
    assert windows.shape == (3, 2, 5, 2)
    np.testing.assert_array_equal(windows.numpy()[:, 1, :, 0], x.numpy()[:, 2])
    with pytest.raises(weft.ArgumentError) as refusal:
        weft.sliding_window_view(x, 6, 0)
    assert refusal.value.code == "array.sliding_window_view.shape"
    with pytest.raises(weft.ArgumentError) as refusal:
        weft.lexsort(())
    assert refusal.value.code == "array.lexsort.keys"
    at, to = weft.asarray([2, 0, 2]), weft.zeros((3, 4))
    src = weft.asarray(reals(3, 4)).astype(weft.float32)
    want = np.zeros((3, 4), "float32")
    np.add.at(want, [2, 0, 2], src.numpy())
    spread = at.reshape(3, 1).broadcast_to((3, 4))
    for got in (to.index_add(0, at, src), to.scatter_add(0, spread, src)):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
