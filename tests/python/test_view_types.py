# SPDX-License-Identifier: Apache-2.0
"""x.view(dtype): the memory of an array as another element type, beside NumPy's view of the same bytes."""

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(1215)
TYPES = ("int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32", "int64", "float64", "complex64", "complex128")  # fmt: skip


@pytest.mark.parametrize("new", TYPES)
@pytest.mark.parametrize("old", TYPES)
def test_types(old, new):
    a = RNG.integers(0, 256, (3, 5, 48), dtype="uint8").view(old)
    got = weft.asarray(a).view(new)
    want = a.view(new)
    assert got.shape == want.shape and str(got.dtype) == new
    np.testing.assert_array_equal(got.numpy().view("uint8"), want.view("uint8"))


@pytest.mark.parametrize("word", ["uint16", "int16", "float16"])
def test_bfloat16(word):
    words = RNG.integers(0, 2**16, (7, 9), dtype="uint16")
    x = weft.asarray(words.view(word)).view("bfloat16")
    assert x.dtype == weft.bfloat16 and x.shape == (7, 9)
    wide = (words.astype("uint32") << 16).view("float32")
    np.testing.assert_array_equal(x.astype("float32").numpy(), wide)
    np.testing.assert_array_equal(x.view(weft.uint16).numpy(), words)
    pairs = weft.asarray(words[:, :8].copy()).view("bfloat16").view("float32")
    np.testing.assert_array_equal(pairs.numpy().view("uint16"), words[:, :8])


def test_layouts_and_memory():
    a = RNG.standard_normal((6, 10)).astype("float32")
    x = weft.asarray(a)
    for part in (lambda v: v.T, lambda v: v[::-2, 1::3], lambda v: v[2]):
        np.testing.assert_array_equal(part(x).view("int32").numpy(), part(a).view("int32"))
    np.testing.assert_array_equal(x[1:, 2:8].view("int64").numpy(), a[1:, 2:8].view("int64"))
    y = x.copy()
    y.view("uint32")[2, 3] = 0
    assert y[2, 3].item() == 0


@pytest.mark.parametrize(
    "make",
    [lambda x: x.T, lambda x: x[:, 1:8], lambda x: x[:, ::2], lambda x: x[0, 0], lambda x: x[:, :7]],
)  # fmt: skip
def test_refused(make):
    x = make(weft.zeros((6, 10), dtype="float32"))
    with pytest.raises(weft.Error) as caught:
        x.view("float64")
    text = str(caught.value)
    assert (
        "array.view.size" in text
        and "float64 of 8 bytes" in text
        and "x.copy().view(dtype)" in text
    )
