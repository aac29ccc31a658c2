# SPDX-License-Identifier: Apache-2.0
"""Attention of the host, head by head in blocks of queries, against the formula in float64."""

import numpy as np
import pytest
import weft
from test_attention import TOLERANCE, formula
from weft import _core

F = weft.nn.functional


def drawn(rng, *shape, turned=False):
    """Normal numbers; `turned`: with heads and queries in the other order in memory."""
    if turned:
        shape = (shape[0], shape[2], shape[1], shape[3])
    x = rng.standard_normal(shape)
    return x.transpose(0, 2, 1, 3) if turned else x


def array(x, dtype):
    x = np.asarray(x)
    order = np.argsort([-abs(s) for s in x.strides], kind="stable")
    held = weft.asarray(np.ascontiguousarray(x.transpose(order))).astype(dtype)
    return held.permute(tuple(np.argsort(order).tolist()))


def numbers(x):
    return x.astype("float64").numpy()


MASKS = {
    "nothing": {},
    "causal": {"band": (-(1 << 40), 0)},
    "window": {"band": (-3, 2)},
    "future": {"band": (5, 1 << 40)},  # the last queries see no key
    "allowed": {"mask": lambda r, b, h, n, m: r.random((b, h, n, m)) < 0.6},
    "for all heads": {"mask": lambda r, b, h, n, m: r.random((b, 1, 1, m)) < 0.6},
    "no key": {"mask": lambda r, b, h, n, m: np.arange(n)[None, None, :, None] % 3 != np.zeros((1, 1, 1, m))},
    "added": {"mask": lambda r, b, h, n, m: r.standard_normal((1, h, n, m))},
    "added, turned": {"mask": lambda r, b, h, n, m: r.standard_normal((b, h, m, n)).transpose(0, 1, 3, 2)},
}  # fmt: skip


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "shape", [(2, 4, 2, 13, 29, 7, 5), (1, 3, 3, 1, 70, 16, 16), (1, 2, 1, 301, 37, 24, 8)], ids=str
)
def test_of_the_host(shape, dtype, mask):
    batch, heads, keys, n, m, width, values = shape
    rng = np.random.default_rng(len(mask) + n)
    q, g = (
        drawn(rng, batch, heads, n, width, turned=True),
        drawn(rng, batch, heads, n, values, turned=True),
    )
    k, v = drawn(rng, batch, keys, m, width), drawn(rng, batch, keys, m, values, turned=True)
    given = dict(MASKS[mask])
    if "mask" in given:
        given["mask"] = given["mask"](rng, batch, heads, n, m)
    arrays = [array(x, dtype) for x in (q, k, v, g)]
    options = {"scale": 0.3, **given}
    if "mask" in given:
        of = "bool" if given["mask"].dtype == bool else dtype
        options["mask"] = array(given["mask"], of)
        given["mask"] = given["mask"] if of == "bool" else numbers(options["mask"])
        given["mask"] = np.broadcast_to(given["mask"], (batch, heads, n, m))
    want = formula(*map(numbers, arrays), scale=0.3, **given)
    out, sums = _core._attention_forward(*arrays[:3], **options)
    found = _core._attention_backward(arrays[3], *arrays[:3], out, sums, **options)
    with np.errstate(invalid="ignore"):
        for got, right in zip((out, sums, *found), want):
            room = TOLERANCE[dtype] * max(1, np.abs(right[np.isfinite(right)]).max(initial=0))
            np.testing.assert_allclose(
                numbers(got), right.reshape(got.shape), rtol=TOLERANCE[dtype], atol=room
            )
    assert str(out.dtype) == dtype and [x.shape for x in found] == [x.shape for x in arrays[:3]]
    alone, none = _core._attention_forward(*arrays[:3], want_sums=False, **options)
    assert none is None and np.array_equal(numbers(alone), numbers(out))


def test_heads_are_joined_without_a_copy():
    q = weft.ones((2, 3, 5, 4))
    out = _core._attention_forward(q, q, q)[0]
    assert out.permute((0, 2, 1, 3)).is_contiguous


def test_not_a_number_reaches_the_queries_that_see_it():
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 1, 40, 8)).astype("float32") for _ in range(3))
    k[0, 0, 20, 3] = np.nan
    seen = weft.asarray(np.tril(np.ones((1, 1, 40, 40), bool)))
    for options in ({"band": (-(1 << 40), 0)}, {"mask": seen}):
        out, sums = _core._attention_forward(*map(weft.asarray, (q, k, v)), **options)
        for x in (np.isnan(numbers(out)).any(-1), np.isnan(numbers(sums))):
            assert x[0, 0].tolist() == [False] * 20 + [True] * 20
    only = weft.asarray(np.arange(40) == 20).reshape((1, 1, 1, 40))
    out, sums = _core._attention_forward(*map(weft.asarray, (q, k, v)), mask=only)
    assert np.isnan(numbers(out)).all() and np.isnan(numbers(sums)).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_padding_and_lengths_of_many_queries(threads):
    rng = np.random.default_rng(1)
    q, k, v, g = (rng.standard_normal((2, 5, 700, 6)).astype("float32") for _ in range(4))
    padding, lengths = rng.random((2, 700)) < 0.7, np.array([650, 0])
    want = formula(q, k, v, g, padding=padding, lengths=lengths)
    before = weft.get_threads()
    weft.set_threads(threads)
    try:
        three = [weft.Tensor(weft.asarray(x), requires_grad=True) for x in (q, k, v)]
        out = F.attention(
            *three, padding=weft.asarray(padding), lengths=weft.asarray(lengths), scale=1.0
        )
        (out * weft.Tensor(weft.asarray(g))).sum().backward()
    finally:
        weft.set_threads(before)
    for got, right in zip((out, *(x.grad for x in three)), (want[0], *want[2:])):
        np.testing.assert_allclose(got.numpy(), right, rtol=1e-4, atol=1e-4)
