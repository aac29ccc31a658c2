# SPDX-License-Identifier: Apache-2.0
"""Functions and methods of arrays and layers where random one-line faults (tools/mutate) once survived: mixed kinds of arguments,
unbatched inputs, defaults, one element where many are usual."""

import os

import numpy as np
import pytest
import weft

nn, F = weft.nn, weft.nn.functional


def drawn(*shape, seed=1, dtype="float32"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def tensor(a, **options):
    return weft.Tensor(weft.asarray(a), **{"requires_grad": False, **options})


def close(got, want, tolerance=1e-5):
    got = got.numpy()
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, tolerance, tolerance)


@pytest.mark.parametrize("kinds", range(8))
def test_layer_norm_of_arrays_and_tensors_mixed(kinds):
    given = [drawn(3, 5), drawn(5, seed=2), drawn(5, seed=3)]
    centred = given[0] - given[0].mean(-1, keepdims=True)
    want = centred / np.sqrt(given[0].var(-1, keepdims=True) + 1e-5) * given[1] + given[2]
    args = [tensor(a) if kinds >> k & 1 else weft.asarray(a) for k, a in enumerate(given)]
    got = weft.layer_norm(*args)
    assert isinstance(got, weft.Tensor if kinds else weft.NDArray)
    close(got, want)


def test_rounding_of_python():
    x = np.array([1.26, -2.5, 0.04, 1234.56])
    for digits in (None, 0, 1, 2):
        close(round(weft.asarray(x), digits), np.round(x, digits or 0), 1e-12)
        assert round(weft.asarray(x[0]), digits) == round(1.26, digits)
    close(round(weft.asarray(x)), np.round(x), 1e-12)


@pytest.mark.parametrize(
    ("shape", "sizes"), [((1,), (3,)), ((1,), ((3,),)), ((), (2,)), ((2, 1), (2, 4)), ((2, 1), ((2, 4),)), ((2, 1), (3, -1, 4)), ((2, 1), ([5, 2, 1],))],
)  # fmt: skip
def test_expand(shape, sizes):
    x = drawn(*shape)
    flat = sizes[0] if not isinstance(sizes[0], int) else sizes
    want = [x.shape[i - len(flat)] if n == -1 else n for i, n in enumerate(flat)]
    close(tensor(x).expand(*sizes), np.broadcast_to(x, want))


def test_keys_that_are_split_share_no_words():
    keys = weft.random.key(7).split(40)
    words = [w for k in keys for w in (k.seed & 0xFFFFFFFF, k.seed >> 32)]
    assert len(set(words)) == len(words) == 80
    assert [k.seed for k in keys] == [k.seed for k in weft.random.key(7).split(40)]
    assert {k.seed for k in weft.random.key(8).split(40)}.isdisjoint(k.seed for k in keys)
    assert len({tuple(weft.random.uniform((3,), key=k).numpy().tolist()) for k in keys}) == 40


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", None])
def test_normal_numbers_of_every_type_are_as_fine_as_the_type(dtype):
    weft.random.seed(5)
    x = weft.random.normal((20001,), 1.0, 2.0, dtype=dtype).numpy()
    assert x.dtype == (dtype or "float32")
    assert abs(x.astype(float).mean() - 1) < 0.06 and abs(x.astype(float).std() - 2) < 0.05
    # Numbers of float64 that were drawn as float32 stay float32's.
    assert (dtype == "float64") == bool((x.astype(np.float32).astype(float) != x).any())


def test_initialisers_want_no_gradient_unless_asked():
    for name in ("zeros", "ones", "constant", "rand", "randn"):
        make = getattr(weft.init, name)
        assert not make(2, 3).requires_grad, name
        assert make(2, 3, requires_grad=True).requires_grad, name


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("rest", [(), (4,), (2, 3)])
def test_soft_labels_with_weights(rest, reduction, smoothing):
    logits, weight = drawn(2, 3, *rest), np.array([0.5, 2.0, 1.0], np.float32)
    target = np.exp(drawn(2, 3, *rest, seed=4))
    target /= target.sum(1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    smoothed = target * (1 - smoothing) + smoothing / 3
    each = -(smoothed * log_p * weight.reshape(1, 3, *(1,) * len(rest))).sum(1)
    want = {"mean": each.mean(), "sum": each.sum(), "none": each}[reduction]
    got = F.cross_entropy(tensor(logits), tensor(target), weight=weft.asarray(weight), reduction=reduction, label_smoothing=smoothing)  # fmt: skip
    close(got, want)


def windows(x, size, step, axis):
    count = (x.shape[axis] - size) // step + 1
    return np.stack(
        [np.take(x, range(k * step, k * step + size), axis) for k in range(count)], axis
    )


@pytest.mark.parametrize("batched", [True, False])
def test_pools_of_inputs_with_and_without_a_batch(batched):
    x = drawn(2, 3, 8, 6) if batched else drawn(3, 8, 6)
    a = x.ndim - 2
    want = windows(windows(x, 2, 2, a + 1), 2, 2, a).max((a + 1, a + 3))
    for module in (nn.MaxPool2d(2), lambda v: F.max_pool2d(v, 2)):
        close(module(tensor(x)), want)
    close(
        nn.AvgPool2d(2)(tensor(x)), windows(windows(x, 2, 2, a + 1), 2, 2, a).mean((a + 1, a + 3))
    )
    line = x[..., 0]
    close(nn.MaxPool1d(3, 2)(tensor(line)), windows(line, 3, 2, a).max(a + 1))
    close(nn.AvgPool1d(3, 2)(tensor(line)), windows(line, 3, 2, a).mean(a + 1))
    powers = np.abs(line) + 0.1
    close(
        nn.LPPool1d(3, 2)(tensor(powers)),
        (windows(powers, 2, 2, a) ** 3).sum(a + 1) ** (1 / 3),
        1e-4,
    )
    powers = np.abs(x) + 0.1
    want = (windows(windows(powers, 2, 2, a + 1), 2, 2, a) ** 3).sum((a + 1, a + 3)) ** (1 / 3)
    close(nn.LPPool2d(3, 2)(tensor(powers)), want, 1e-4)


@pytest.mark.parametrize(
    "name",
    [
        "relu6",
        "silu",
        "gelu",
        "softplus",
        "mish",
        "hardswish",
        "elu",
        "selu",
        "hardtanh",
        "softsign",
    ],
)
def test_activations_of_integers_are_refused_or_right(name):
    """Only real floats are evaluated by chunks."""
    f = getattr(F, name)
    x = np.array([-3, 0, 1, 7], np.int32)
    try:
        got = f(weft.asarray(x)).numpy()
    except weft.Error:
        return
    want = f(weft.asarray(x.astype(np.float64))).numpy()
    np.testing.assert_allclose(got, want.astype(got.dtype), 1e-5, 1e-6)


@pytest.mark.parametrize(
    ("rows", "columns"), [((200, 1), (1, 300)), ((1, 1), (1, 1)), ((200, 1), (1, 1)), ((2, 2), (2, 3)), ((200, 2), (2, 300))],
)  # fmt: skip
def test_scales_of_rows_of_blocks_and_of_all(rows, columns):
    a, b = drawn(200, 256).clip(-3, 3), drawn(256, 300, seed=2).clip(-3, 3)
    a8, b8 = (weft.asarray(v).astype("float8_e4m3fn") for v in (a, b))
    sa, sb = (np.abs(drawn(*s, seed=3)) + 0.5 for s in (rows, columns))

    def wide(scale, shape):
        for axis, extent in enumerate(shape):
            if scale.shape[axis] not in (1, extent):
                scale = np.repeat(scale, 128, axis).take(range(extent), axis)
        return np.broadcast_to(scale, shape)

    want = (a8.astype("float32").numpy() * wide(sa, a.shape)) @ (b8.astype("float32").numpy() * wide(sb, b.shape))  # fmt: skip
    got = F.scaled_mm(a8, b8, weft.asarray(sa), weft.asarray(sb), dtype="float32")
    close(got, want, 2e-3)


def test_files_are_written_where_the_host_has_no_files_without_names(tmp_path, monkeypatch):
    x = weft.asarray(drawn(3, 4))
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    weft.save(tmp_path / "x.npy", x)
    close(weft.load_arrays(tmp_path / "x.npy"), x.numpy())
    assert [p.name for p in tmp_path.iterdir()] == ["x.npy"]
