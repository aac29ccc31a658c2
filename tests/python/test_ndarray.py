# SPDX-License-Identifier: Apache-2.0
"""Views, indexing, interop and errors of NDArray against NumPy."""

import copy
import gc
import pickle

import numpy as np
import pytest

import weft

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def random_array(rng, shape, dtype):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        return rng.integers(0, 100, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (
        (x + 1j * rng.standard_normal(shape)).astype(dtype)
        if dtype.startswith("complex")
        else x.astype(dtype)
    )


def same(a, b):
    a = a.numpy()
    assert a.shape == b.shape and a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_round_trip(rng, dtype):
    for shape in [(), (0,), (3,), (2, 0, 4), (3, 4, 5)]:
        x = random_array(rng, shape, dtype)
        same(weft.array(x), x)
        same(weft.asarray(x), x)
        same(weft.asarray(x[::-1] if x.ndim else x), x[::-1] if x.ndim else x)


def test_asarray_shares_and_array_copies():
    x = np.zeros(4, "float32")
    shared, copied = weft.asarray(x), weft.array(x)
    x[1] = 5
    assert shared[1].item() == 5 and copied[1].item() == 0
    shared[2] = 7
    assert x[2] == 7


KEYS = [
    (2,),
    (-1,),
    (slice(None),),
    (slice(1, 5, 2),),
    (slice(None, None, -1),),
    (slice(4, 0, -2),),
    (slice(3, 3),),
    (None,),
    (Ellipsis,),
    (1, 2),
    (slice(None), 1),
    (Ellipsis, 1),
    (None, slice(1, 3), None, 2),
    (1, Ellipsis, -1),
    (slice(None, None, -1), slice(None, None, -2), slice(1, None)),
    (0, 0, 0),
    (slice(100, 200),),
    (slice(-100, 2),),
]
ARRAY_KEYS = [
    ([0, 2, 1],),
    (np.array([[0, 1], [-1, 2]]),),
    (slice(None), [1, 0]),
    ([0, 1], [1, 2]),
    ([0, 1], slice(None), [1, 2]),
    (1, slice(None), [1, 2]),
    (slice(None), [[0], [1]], [1, 2, 3]),
    (np.array([], dtype=int),),
    (Ellipsis, [0, 0, 3]),
    (np.array([True, False, True, False, True]),),
    (slice(None), np.array([True, False, True, True])),
    (None, [1, 2]),
    ([1, 2], None, slice(1, 3)),
]


@pytest.mark.parametrize("key", KEYS + ARRAY_KEYS, ids=repr)
def test_getitem(rng, key):
    x = rng.standard_normal((5, 4, 6)).astype("float32")
    same(weft.asarray(x)[key], x[key])
    y = np.asfortranarray(x)[::-1]
    same(weft.asarray(y)[key], y[key])


def test_boolean_mask(rng):
    x = rng.standard_normal((5, 4, 6))
    for mask in (x > 0, x[:, :, 0] > 0, x[:, 0, 0] > 0, x > 100):
        same(weft.asarray(x)[weft.asarray(mask)], x[mask])
        y, z = x.copy(), weft.array(x)
        y[mask] = -1
        z[weft.asarray(mask)] = -1
        same(z, y)


@pytest.mark.parametrize("key", KEYS + ARRAY_KEYS, ids=repr)
def test_setitem(rng, key):
    x = rng.standard_normal((5, 4, 6)).astype("float32")
    y = weft.array(x)
    value = rng.standard_normal(x[key].shape).astype("float32")
    if not any(isinstance(k, (list, np.ndarray)) for k in key) or _distinct(x, key):
        x[key] = value
        y[key] = value
        same(y, x)
    x[key] = 3
    y[key] = 3
    same(y, x)
    x[key] = np.float64(2.5)
    y[key] = weft.asarray(2.5)
    same(y, x)


def _distinct(x, key):
    """Does the key name every element at most once? Otherwise the last writer is not defined."""
    at = np.arange(x.size).reshape(x.shape)[key].ravel()
    return len(set(at.tolist())) == at.size


def test_views_write_through(rng):
    x = weft.array(rng.standard_normal((4, 6)))
    v = x.T[1:5:2, ::-1]
    v += 1
    v[0] = 0
    y = x.numpy()
    assert (y[::-1, 1] == 0).all() and v.handle == x.handle
    flat = x.reshape(24)
    flat[5] = 99
    assert x[0, 5].item() == 99


def test_overlapping_assignment():
    x = weft.arange(10)
    x[1:] = x[:-1]
    same(x, np.array([0, 0, 1, 2, 3, 4, 5, 6, 7, 8]))
    x = weft.arange(6)
    x[::-1] += x
    same(x, np.full(6, 5))


def test_make_refuses_what_reaches_outside():
    x = weft.arange(6, dtype=weft.float32)
    z = weft.NDArray.make((2, 3), strides=(3, 1), handle=x.handle)
    same(z, np.arange(6, dtype="float32").reshape(2, 3))
    same(
        weft.NDArray.make((2, 3, 4), strides=(3, 1, 0), handle=x.handle),
        np.broadcast_to(np.arange(6, dtype="float32").reshape(2, 3, 1), (2, 3, 4)),
    )
    for args in [
        dict(shape=(7,)),
        dict(shape=(2, 3), strides=(4, 1)),
        dict(shape=(3,), offset=4),
        dict(shape=(3,), strides=(-1,)),
        dict(shape=(2,), offset=-1),
        dict(shape=(3,), strides=(2**62,)),
    ]:
        with pytest.raises(weft.IndexError, match="handle that holds 6") as info:
            weft.NDArray.make(handle=x.handle, **args)
        assert info.value.code == "array.make.outside"
    same(
        weft.NDArray.make((3,), strides=(-1,), handle=x.handle, offset=2),
        np.array([2, 1, 0], "float32"),
    )


def test_strides_are_in_elements_and_compact():
    x = weft.zeros((3, 4))
    assert x.strides == (4, 1) and x.T.strides == (1, 4) and x[1:].offset == 4
    assert x.is_compact() and not x.T.is_compact() and not x[1:].is_compact()
    assert x.T.compact().is_compact() and x.compact().handle == x.handle


@pytest.mark.parametrize("shape", [(24,), (2, 3, 4), (4, 3, 2), (-1, 6), (24, 1), (1, 2, 1, 12)])
def test_reshape(rng, shape):
    x = rng.standard_normal((4, 6))
    for view, expected in [
        (weft.asarray(x), x),
        (weft.asarray(x).T, x.T),
        (weft.asarray(x)[::-1], x[::-1]),
    ]:
        same(view.reshape(shape), expected.reshape(shape))
        same(view.reshape(*shape), expected.reshape(shape))
    with pytest.raises(weft.ShapeError, match="24 elements"):
        weft.asarray(x).reshape(5, 5)
    with pytest.raises(weft.ArgumentError) as info:
        weft.reshape(weft.asarray(x).T, (24,), copy=False)
    assert info.value.code == "array.reshape.copy"


ERRORS = [
    (lambda x: x[7], weft.IndexError, "array.index.range", "outside axis 0"),
    (lambda x: x[0, 0, 0], weft.IndexError, "array.index.count", "3 indices"),
    (lambda x: x[..., ...], weft.IndexError, "array.index.ellipsis", "2 ellipses"),
    (lambda x: x["a"], weft.IndexError, "array.index.type", "str"),
    (lambda x: x[weft.asarray([1.0])], weft.IndexError, "array.index.dtype", "float32"),
    (
        lambda x: x[weft.asarray([True, False, True])],
        weft.IndexError,
        "array.index.mask",
        r"\(3,\)",
    ),
    (lambda x: x[weft.asarray([9])], weft.IndexError, "array.index.range", "index 9"),
    (lambda x: x + weft.ones((3,)), weft.ShapeError, "array.add.broadcast", r"\(2, 2\) and \(3,\)"),
    (lambda x: x.broadcast_to((3, 2)), weft.ShapeError, "array.broadcast_to.shape", r"\(3, 2\)"),
    (lambda x: x.permute((0, 0)), weft.ArgumentError, "array.permute.repeated", "axis 0 twice"),
    (lambda x: x.permute((0,)), weft.ShapeError, "array.permute.rank", "1 axes"),
    (lambda x: weft.squeeze(x, 0), weft.ShapeError, "array.squeeze.extent", "extent is 2"),
    (lambda x: x.sum(axis=2), weft.IndexError, "array.sum.axis", "axis 2"),
    (lambda x: x.sum(axis=(0, 0)), weft.ArgumentError, "array.sum.repeated", "axis 0 twice"),
    (lambda x: weft.zeros((0,)).max(), weft.ArgumentError, "array.max.empty", r"\(0,\)"),
    (lambda x: weft.argmax(weft.zeros((0,))), weft.ArgumentError, "array.argmax.empty", r"\(0,\)"),
    (lambda x: weft.asarray([[1], [1, 2]]), weft.ShapeError, "array.asarray.ragged", "ragged"),
    (lambda x: weft.asarray(object()), weft.DTypeError, "array.asarray.type", "object"),
    (
        lambda x: weft.asarray(300, dtype=weft.int8),
        weft.ArgumentError,
        "array.scalar.range",
        "300 does not fit in int8",
    ),
    (lambda x: weft.asarray(2**70), weft.ArgumentError, "array.scalar.range", "64 bits"),
    (lambda x: weft.empty((2**40, 2**40)), weft.ArgumentError, "array.size.overflow", "64 bits"),
    (lambda x: weft.empty((2**100,)), weft.ArgumentError, "array.size.overflow", "beyond 64 bits"),
    (lambda x: weft.empty((-1,)), weft.ArgumentError, "array.shape.negative", "-1"),
    (lambda x: weft.empty((1,) * 65), weft.ArgumentError, "array.ndim.limit", "65"),
    (
        lambda x: weft.empty((2**46,)),
        weft.OutOfMemoryError,
        "device.memory.exhausted",
        "256.0 TiB|bytes",
    ),
    (lambda x: x @ weft.ones((3, 2)), weft.ShapeError, "array.matmul.inner_extent", "2 and 3"),
    (
        lambda x: weft.matmul(x, weft.asarray(1.0)),
        weft.ShapeError,
        "array.matmul.rank",
        "right is 0-d",
    ),
    (
        lambda x: weft.concat([x, weft.ones((1, 3))]),
        weft.ShapeError,
        "array.concat.shape",
        r"\(1, 3\)",
    ),
    (lambda x: weft.bitwise_and(x, x), weft.DTypeError, "array.bitwise_and.dtype", "float32"),
    (
        lambda x: weft.asarray([1], dtype="uint64") + weft.asarray([1], dtype="int64"),
        weft.DTypeError,
        "array.promote.none",
        "uint64 and int64",
    ),
    (lambda x: x.__iadd__(1j), weft.DTypeError, "array.add.inplace", "complex64"),
    (
        lambda x: x.__iadd__(weft.ones((3, 2, 2))),
        weft.ShapeError,
        "array.add.inplace",
        r"\(3, 2, 2\)",
    ),
    (
        lambda x: x.__setitem__(0, weft.ones((3,))),
        weft.ShapeError,
        "array.assign.broadcast",
        r"\(2,\) and \(3,\)",
    ),
    (lambda x: x.__setitem__(0, 1j), weft.DTypeError, "array.assign.dtype", "complex"),
    (lambda x: bool(x), weft.DTypeError, "array.item.size", "truth value"),
    (lambda x: weft.dtype("flaot32"), weft.DTypeError, "dtype.unknown", "float32"),
    (lambda x: weft.dtype("bf16"), weft.DTypeError, "dtype.unknown", 'did you mean "bfloat16"'),
    (lambda x: weft.dtype("i64"), weft.DTypeError, "dtype.unknown", 'did you mean "int64"'),
    (lambda x: weft.device("warp:0"), weft.ArgumentError, "device.unknown|target.unknown", "warp"),
    (lambda x: x.T.T[0].T, weft.ShapeError, "array.T.rank", "has 1"),
    (
        lambda x: weft.asarray(x, dtype="float64", copy=False),
        weft.ArgumentError,
        "array.asarray.copy",
        "copy=False",
    ),
    (
        lambda x: weft.less(x.astype("complex64"), x),
        weft.DTypeError,
        "array.less.dtype",
        "complex64",
    ),
    (lambda x: weft.searchsorted(x, x[0]), weft.ShapeError, "array.searchsorted.rank", "1-d"),
    (lambda x: weft.nonzero(weft.asarray(1)), weft.ArgumentError, "array.nonzero.rank", "0-d"),
    (
        lambda x: weft.take_along_axis(x, weft.asarray([1])),
        weft.ShapeError,
        "array.take_along_axis.rank",
        "dimensions",
    ),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors_name_the_case(case):
    import re

    f, kind, code, text = ERRORS[case]
    x = weft.ones((2, 2))
    with pytest.raises(kind, match=text) as info:
        f(x)
    assert re.fullmatch(code, info.value.code) and isinstance(info.value, weft.Error)
    assert info.value.message and info.value.kind
    same(x, np.ones((2, 2), "float32"))


def test_error_classes_are_what_python_programmers_catch():
    assert issubclass(weft.ShapeError, ValueError) and issubclass(weft.DTypeError, TypeError)
    assert issubclass(weft.IndexError, IndexError) and issubclass(
        weft.OutOfMemoryError, MemoryError
    )
    assert issubclass(weft.Fault, RuntimeError) and issubclass(weft.DeviceError, RuntimeError)


def test_dlpack_both_ways_and_lifetimes(rng):
    torch = pytest.importorskip("torch")
    x = weft.array(rng.standard_normal((3, 4)).astype("float32"))
    t = torch.from_dlpack(x)
    t[0, 0] = 42
    assert x[0, 0].item() == 42
    expected = x.numpy()
    del x
    gc.collect()
    np.testing.assert_array_equal(t.numpy(), expected)
    back = weft.from_dlpack(t)
    del t
    gc.collect()
    same(back, expected)
    # Negative strides are copied, a consumer cannot cope with them.
    flipped = weft.asarray(expected)[::-1]
    np.testing.assert_array_equal(torch.from_dlpack(flipped).numpy(), expected[::-1])
    with pytest.raises(BufferError, match="negative"):
        flipped.__dlpack__(copy=False)
    assert "dltensor_versioned" in repr(weft.asarray(expected).__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(weft.asarray(expected).__dlpack__())
    same(weft.from_dlpack(weft.asarray(expected)), expected)
    with pytest.raises(BufferError):
        weft.asarray(expected).__dlpack__(dl_device=(2, 0))
    unused = weft.asarray(expected).__dlpack__()
    del unused  # the capsule's destructor frees the export


def test_numpy_protocols(rng):
    x = weft.array(rng.standard_normal((3, 4)))
    view = np.asarray(x)
    view[0, 0] = 9
    assert x[0, 0].item() == 9
    assert np.array_equal(np.asarray(x.T[::-1]), x.numpy().T[::-1])
    assert isinstance(np.float32(2) * x, weft.NDArray) and isinstance(np.ones(4) + x, weft.NDArray)
    assert memoryview(x).shape == (3, 4)
    assert np.asarray(x, dtype="float32").dtype == np.float32
    kept = np.asarray(weft.arange(5))
    gc.collect()
    assert kept.tolist() == [0, 1, 2, 3, 4]


def test_scalars_and_python_protocols():
    x = weft.asarray([[1, 2], [3, 4]])
    assert len(x) == 2 and [r.tolist() for r in x] == [[1, 2], [3, 4]] and 3 in x.tolist()[1]
    assert (
        int(weft.asarray(3.7)) == 3
        and float(weft.asarray(3)) == 3.0
        and complex(weft.asarray(2j)) == 2j
    )
    assert [10, 20, 30][weft.asarray(1)] == 20 and bool(weft.asarray(0)) is False
    assert (
        pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
        and copy.deepcopy(x).tolist() == x.tolist()
    )
    with pytest.raises(TypeError):
        hash(x)


def test_repr_is_short_and_says_what_it_is():
    x = weft.zeros((1000, 1000))
    text = repr(x)
    assert len(text) < 2000 and "..." in text and "float32" in text and "cpu" in text
    assert str(weft.asarray([1.5, -2])) == "[1.5, -2.]"
    assert repr(weft.zeros((0, 3))).count("shape=(0, 3)") == 1


def test_promotion_lattice():
    for a in DTYPES:
        for b in DTYPES:
            pair = {a, b}
            if "uint64" in pair and pair & {"int8", "int16", "int32", "int64"}:
                continue
            got = weft.result_type(weft.dtype(a), weft.dtype(b)).name
            same_kind = (
                np.dtype(a).kind == np.dtype(b).kind
                or {np.dtype(a).kind, np.dtype(b).kind} == {"i", "u"}
                or pair <= {"float16", "float32", "float64", "complex64", "complex128"}
            )
            if same_kind and pair != {"float16", "complex64"}:
                assert got == np.result_type(a, b).name, (a, b)
            assert got == weft.result_type(weft.dtype(b), weft.dtype(a)).name
    assert (weft.asarray([1], dtype="int8") + 1).dtype == "int8" and (
        weft.ones((1,)) + 1.0
    ).dtype == np.float32
    assert (weft.asarray([1]) + 1.5).dtype == "float32" and (
        weft.ones((1,), dtype="float64") * 2j
    ).dtype == "complex128"
    assert weft.result_type(weft.bfloat16, weft.float16) == "float32"


def test_bfloat16_and_float16_round_to_nearest_even(rng):
    x = rng.standard_normal(10000).astype("float32")
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(
        weft.asarray(x).astype("bfloat16").numpy(), torch.tensor(x).bfloat16().float().numpy()
    )
    np.testing.assert_array_equal(weft.asarray(x).astype("float16").numpy(), x.astype("float16"))
    y = weft.asarray(x).astype("bfloat16") * weft.asarray(x).astype("bfloat16")
    t = torch.tensor(x).bfloat16()
    np.testing.assert_array_equal(y.numpy(), (t * t).float().numpy())


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
def test_integers_beyond_the_type_compare_by_value(dtype):
    import operator

    info = np.iinfo(dtype)
    values = np.array([info.min, 0, 1, info.max], dtype)
    x = weft.asarray(values)
    t = weft.Tensor(x, requires_grad=False)
    numbers = [info.min - 1, info.max + 1, 10**30, -(10**30), 10**400, info.min, info.max, 0]
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        f = getattr(operator, name)
        for n in numbers:
            want = [f(int(v), n) for v in values]
            for got in (f(x, n), f(t, n)):
                assert got.dtype == weft.bool and got.numpy().tolist() == want, (name, n)
            assert f(n, x).tolist() == [f(n, int(v)) for v in values], (name, n)
    assert weft.less(x, info.max + 1).tolist() == [True] * 4
    with pytest.raises(weft.ArgumentError, match=f"does not fit in {dtype}") as e:
        x + (info.max + 1)
    assert e.value.code == "array.scalar.range"
    assert (weft.ones((2,)) + 10**30).tolist() == [float(np.float32(10**30))] * 2


def test_an_item_is_named_as_in_numpy():
    x = np.arange(24.0).reshape(2, 3, 4)
    a = weft.asarray(x)
    for at in ((), (7,), (-1,), ((1, 2, 3),), ((0, -1, -4),), (1, 2, 3), (-2, 0, 1)):
        if at == ():
            assert a[1, 1, 1].item() == x[1, 1, 1].item()
        else:
            assert a.item(*at) == x.item(*at), at
    for wrong in ((24,), ((2, 0, 0),), (0, 3, 0)):
        with pytest.raises(weft.IndexError):
            a.item(*wrong)


@pytest.mark.parametrize("seed", range(40))
def test_keys_of_every_kind_in_every_order(seed):
    """Integers, 0-d arrays, slices, new axes, an ellipsis, arrays, lists and masks: values, shapes and what is assigned."""
    draw = np.random.default_rng(seed)
    for _ in range(25):
        shape = tuple(draw.integers(1, 5, draw.integers(1, 5)))
        x = np.arange(np.prod(shape), dtype="float32").reshape(shape)
        count = tuple(draw.integers(1, 4, draw.integers(0, 3)))  # of the index arrays
        key, axis = [], 0
        while axis < len(shape):
            n = shape[axis]
            kind = draw.choice(["int", "0-d", "slice", "none", "array", "list", "mask", "stop"])
            if kind == "none":
                key.append(None)
                continue
            if kind == "stop":
                break
            key.append(
                {
                    "int": lambda n=n: int(draw.integers(-n, n)),
                    "0-d": lambda n=n: np.array(draw.integers(-n, n)),
                    "slice": lambda: slice(*[[None, -2, 0, 1, 3][i] for i in draw.integers(0, 5, 2)], [None, 2, -1][draw.integers(0, 3)]),
                    "array": lambda n=n: draw.integers(-n, n, count),
                    "list": lambda n=n: draw.integers(-n, n, 1).tolist(),
                    "mask": lambda n=n: draw.random(n) < 0.5,
                }[kind]()
            )  # fmt: skip
            axis += 1
        if draw.random() < 0.3:
            key.insert(int(draw.integers(0, len(key) + 1)), Ellipsis)
        key = tuple(key)
        ours = tuple(weft.asarray(k) if isinstance(k, np.ndarray) else k for k in key)
        try:
            want = x[key]
        except IndexError:  # masks and arrays that do not broadcast
            with pytest.raises(weft.Error):
                weft.asarray(x)[ours]
            continue
        got = weft.asarray(x)[ours]
        assert tuple(got.shape) == want.shape, key
        np.testing.assert_array_equal(got.numpy(), want, err_msg=repr(key))
        a, b = x.copy(), weft.asarray(x.copy())
        a[key], b[ours] = -1, -1
        np.testing.assert_array_equal(b.numpy(), a, err_msg=repr(key))


@pytest.mark.parametrize("key", [lambda i: i, lambda i: (i, slice(None)), lambda i: (..., i), lambda i: (None, i, slice(0, 2))])  # fmt: skip
def test_an_array_without_axes_is_a_position_and_gives_a_view(key):
    for i in (weft.asarray(1), weft.asarray(-2, dtype="int8"), weft.asarray(2, dtype="uint32")):
        x = weft.zeros((3, 4))
        want = np.zeros((3, 4), "float32")
        part, there = x[key(i)], want[key(int(i))]
        part[...] = 5.0
        there[...] = 5.0
        np.testing.assert_array_equal(x.numpy(), want)
