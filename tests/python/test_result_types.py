# SPDX-License-Identifier: Apache-2.0
"""Types and shapes of results are NumPy's: of linear algebra, of parts of complex numbers, of arrays without elements."""

import operator

import numpy as np
import pytest
from present import present

import weft

TYPES = ["float32", "float64", "complex64", "complex128"]
present("opencl:0")
FUNCTIONS = "det inv pinv svdvals svd qr eig eigvals eigh eigvalsh cholesky slogdet matrix_rank cond norm".split()


def parts(value):
    return [p for v in value for p in parts(v)] if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_linear_algebra(name, dtype):
    rng = np.random.default_rng(3)
    for shape in ((3, 3), (1, 1), (2, 4, 4)):
        a = rng.standard_normal(shape)
        a = (a @ a.swapaxes(-1, -2) + 4 * np.eye(shape[-1])).astype(dtype)
        if np.iscomplexobj(a):
            a = a + 1j * np.triu(rng.standard_normal(shape), 1).astype(dtype)
            a = ((a + a.conj().swapaxes(-1, -2)) / 2).astype(dtype)
        x = weft.asarray(a)
        if name == "svdvals":
            want = [np.linalg.svd(a, compute_uv=False)]
        elif name == "norm":
            want = [np.linalg.norm(a, axis=(-2, -1))]
        else:
            want = parts(getattr(np.linalg, name)(a))
        got = parts(
            weft.linalg.norm(x, axis=(-2, -1)) if name == "norm" else getattr(weft.linalg, name)(x)
        )
        assert len(got) == len(want)
        for g, w in zip(got, map(np.asarray, want)):
            kind = str(w.dtype)
            if name in ("eig", "eigvals"):  # always complex here
                kind = {"float32": "complex64", "float64": "complex128"}.get(kind, kind)
            if name == "matrix_rank":
                kind = "int64"
            assert (tuple(g.shape), str(g.dtype)) == (w.shape, kind)


@pytest.mark.parametrize("device", ["cpu", "opencl:0"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(0,), (0, 0), (3, 0), (0, 3), (2, 0, 2)])
def test_complex_arrays_without_elements(shape, dtype, device):
    z = weft.zeros(shape, dtype=dtype, device=device)
    a = np.zeros(shape, dtype)
    for function in ("real", "imag", "conj", "abs", "angle", "negative", "exp", "flip", "square"):
        got, want = getattr(weft, function)(z), getattr(np, function)(a)
        assert (tuple(got.shape), str(got.dtype)) == (want.shape, str(want.dtype)), function
    for got, want in (
        (z.real, a.real),
        (z.imag, a.imag),
        (z[..., ::-1], a),
        (z + 1j, a),
        (z == z, a == a),
    ):
        assert (tuple(got.shape), str(got.dtype)) == (want.shape, str(want.dtype))
    assert all(part.imag.shape == part.shape for part in weft.unstack(z, axis=-1))
    assert "dtype=" + dtype in repr(z) and z.numpy().shape == shape
    assert (weft.sum(z).item(), weft.prod(z).item()) == (0, 1)


def test_numpys_names_of_element_types():
    """Its letters, its codes with and without a byte order, its names after C and its classes of scalars."""
    same = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
    c = "byte short intc int_ longlong intp ubyte ushort uintc uint ulonglong uintp half single double csingle cdouble bool_".split()
    assert all(weft.dtype(getattr(np, name)) == np.dtype(getattr(np, name)) for name in c)
    names = [*same, *c, "long", "ulong", *"?bhilqpBHILQPefdFD"]
    for order in ("", "<", "=", "|"):
        names += [f"{order}{np.dtype(name).kind}{np.dtype(name).itemsize}" for name in same]
    for name in names:
        got, want = weft.dtype(name), np.dtype(name)
        assert got.name == want.name and got == want and hash(got) == hash(weft.dtype(want)), name
        assert weft.zeros(1, dtype=name).numpy().dtype == want, name


def test_pythons_types_as_element_types_and_what_is_none():
    assert [weft.dtype(t).name for t in (bool, int)] == [np.dtype(t).name for t in (bool, int)]
    # Their default of real numbers has 32 bits.
    assert [weft.dtype(t).name for t in (float, complex)] == ["float32", "complex64"]
    for t in (bool, int, float, complex):
        assert weft.dtype(t) == weft.dtype(t.__name__) == weft.asarray(t(1)).dtype
        assert weft.ones(2, dtype=t).dtype == weft.dtype(t)
    for wrong in (">f4", "<", "f3", "b2", "<<f4", "float 32"):
        with pytest.raises(weft.DTypeError, match="unknown"):
            weft.dtype(wrong)
    for wrong in (str, object, 3, [], np.dtype("S3"), np.longdouble):
        with pytest.raises(weft.DTypeError, match="not an element type") as info:
            weft.dtype(wrong)
        assert info.value.code == "array.dtype.unknown"
        assert weft.float32 != wrong


def test_lists_of_integers_beyond_int64():
    for given in ([2**63, 1], [1, 2**64 - 1], [[0], [2**63]]):
        found, wanted = weft.asarray(given), np.array(given, np.uint64)
        assert str(found.dtype) == "uint64"
        np.testing.assert_array_equal(found.numpy(), wanted)
    assert str(weft.asarray([2**63 - 1, 0]).dtype) == "int64"


INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_numbers_at_the_ends_of_integers(dtype):
    """One beyond an end is refused where it would be stored, and compared by its value."""
    least, most = (int(v) for v in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    x = weft.asarray([least, 0, 1, most], dtype=dtype)
    stored = (lambda v: weft.full(3, v, dtype=dtype), lambda v: weft.where(x == 0, v, x), lambda v: x + v, lambda v: weft.pad(x, 1, value=v))  # fmt: skip
    for number in (least, most):
        assert weft.full(2, number, dtype=dtype).tolist() == [number, number]
    for number in (least - 1, most + 1):
        for call in stored:
            with pytest.raises(weft.Error) as caught:
                call(number)
            assert caught.value.code == "array.scalar.range", caught.value
    for number in (least - 2, least - 1, least, least + 1, most - 1, most, most + 1, most + 2):
        for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
            op = getattr(weft, name)
            want = [bool(getattr(operator, {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne"}[name])(v, number)) for v in x.tolist()]  # fmt: skip
            assert op(x, number).tolist() == want, (name, number)


def test_types_of_two_arrays():
    """As NumPy's, but where integers meet floats: these keep their type; uint64 beside signed integers has none."""
    floats, complexes = ["float32", "float64"], ["complex64", "complex128"]
    for a in ["bool", *INTEGERS, *floats, *complexes]:
        for b in ["bool", *INTEGERS, *floats, *complexes]:
            kinds = {np.dtype(t).kind for t in (a, b)}
            if kinds & {"f", "c"} and kinds & {"i", "u", "b"}:
                want = a if np.dtype(a).kind in "fc" else b
            else:
                want = str(np.promote_types(a, b))
            if kinds == {"i", "u"} and want == "float64":
                with pytest.raises(weft.DTypeError):
                    weft.result_type(a, b)
                continue
            assert str(weft.result_type(a, b)) == want, (a, b)
            x, y = weft.ones(2, dtype=a), weft.ones(2, dtype=b)
            assert str(weft.where(x == y, x, y).dtype) == str(weft.concat([x, y]).dtype) == want, (a, b)  # fmt: skip
