# SPDX-License-Identifier: Apache-2.0
"""Functions that NumPy's programs call by name: each expression gives over weft what it gives over NumPy."""

import io

import numpy as np
import pytest
import weft

RNG = np.random.default_rng(41)
X = RNG.standard_normal((3, 5))
V = RNG.standard_normal(7)
C = V + 1j * RNG.standard_normal(7)
B = RNG.integers(0, 2, (3, 11)).astype(bool)
K = RNG.integers(-9, 9, (4, 3))
S = RNG.standard_normal((4, 4))
NAN = np.where(V > 0.5, np.nan, V)

# An expression of xp and of arrays, which are xp's.
EXPRESSIONS = """
    xp.array_equiv(X, X + 0) ; xp.array_equiv(X, X[0]) ; xp.array_equiv(V, X) ; xp.asanyarray(X) ; xp.ascontiguousarray(X.T)
    xp.asfortranarray(X) ; xp.isfortran(xp.asfortranarray(X)) ; xp.isfortran(X) ; xp.require(X.T, None, ["C"])
    xp.frombuffer(b"abcdefgh", dtype=xp.uint8) ; xp.frombuffer(b"abcdefgh", dtype=xp.int32, count=1, offset=4)
    xp.fromfunction(lambda i, j: i * 2 + j, (3, 4)) ; xp.fromiter((i * i for i in range(5)), dtype=xp.float64)
    xp.fromstring("1 2 3.5", sep=" ") ; xp.isscalar(3.0) ; xp.isscalar(V) ; xp.iscomplexobj(C) ; xp.isrealobj(C) ; xp.iterable(V)
    xp.may_share_memory(X, X[1:]) ; xp.may_share_memory(X, X.copy()) ; xp.shares_memory(X[:, ::2], X[:, 1::2])
    xp.shares_memory(X[:, ::2], X[:, 2:]) ; xp.apply_over_axes(xp.sum, X, [0, 1]) ; xp.diag_indices_from(S)
    xp.tril_indices_from(S) ; xp.triu_indices_from(X, 1) ; xp.mask_indices(4, xp.triu) ; xp.nancumprod(NAN)
    xp.packbits(B) ; xp.packbits(B, axis=1) ; xp.packbits(B, axis=0, bitorder="little")
    xp.unpackbits(xp.packbits(B, axis=1), axis=1, count=11) ; xp.unpackbits(xp.packbits(B)) ; xp.real_if_close(C * 1e-20 + V)
    xp.real_if_close(C) ; xp.row_stack([V, V]) ; xp.sort_complex(C) ; xp.sort_complex(V) ; xp.spacing(V)
    xp.mgrid[0:3, 1:4] ; xp.mgrid[0:1:5j] ; xp.ogrid[0:3, 0:2][1] ; xp.r_[1:4, 0, 9] ; xp.c_[V, V] ; list(xp.ndindex(2, 3))
    [(i, float(v)) for i, v in xp.ndenumerate(X)] ; xp.vectorize(lambda a, b: a + b if a > 0 else b)(X, V[:5])
    xp.vectorize(lambda a: (a, -a))(V) ; xp.polyadd(V, V[:3]) ; xp.polysub(V[:2], V) ; xp.polymul(V, V[:3])
    xp.polydiv(V, V[:3]) ; xp.polyder(V) ; xp.polyder(V, 2) ; xp.polyint(V) ; xp.polyint(V, 2, [1.0, 2.0])
    xp.poly1d(V)(2.0) ; (xp.poly1d(V) * xp.poly1d(V[:2])).coef ; xp.poly1d(V).deriv().coef ; xp.poly1d(V)[1]
    xp.histogram_bin_edges(V, 4) ; xp.histogram_bin_edges(V, "sturges") ; xp.histogram_bin_edges(V, "auto")
    xp.histogram_bin_edges(V, "fd") ; xp.histogram(V, bins="auto")[0] ; xp.histogramdd(X, 2)[0]
    xp.histogramdd(X[:, :2], (2, 3), density=True)[0] ; xp.binary_repr(-3, 5) ; xp.base_repr(77, 7) ; xp.euler_gamma
    xp.issubdtype(X.dtype, xp.floating) ; xp.issubdtype(K.dtype, xp.integer) ; xp.issubdtype(xp.float32, xp.float64)
    str(xp.promote_types(xp.int8, xp.uint8)) ; str(xp.min_scalar_type(300)) ; str(xp.min_scalar_type(-1))
    xp.common_type(X, C) == C.dtype ; X.ptp() ; X.searchsorted(0.0) if X.ndim == 1 else 0 ; K.choose([V[:3], V[:3] + 1], mode="clip")
    V.compress(V > 0) ; X.flags.c_contiguous ; list(X.flat)[4] ; X.itemsize ; C.conjugate() ; sorted(V.argpartition(3)[:3].tolist())
    xp.zeros((2, 3), float) ; xp.ones(3, int) ; xp.full((2,), 1.5, float) ; xp.array([1, 2], ndmin=2) ; xp.linspace(0, 1).shape
    xp.mean([1.0, 2.0, 6.0]) ; xp.std([1.0, 2.0, 6.0], ddof=1) ; xp.var(X, axis=0, ddof=1) ; xp.dot([1, 2], [3, 4])
    xp.expand_dims([1, 2], 0) ; xp.exp([1.0, 2.0]) ; xp.maximum([1, 5], 3) ; xp.round(X, 2) ; xp.squeeze([[1.0]])
    xp.reshape(X, (5, 3), order="F") ; xp.ravel(X, order="F") ; xp.stack([[1, 2], [3, 4]]) ; xp.outer([1, 2], [3, 4])
    xp.linalg.inv([[1, 2], [3, 5]]) ; xp.linalg.det(xp.array([[2, 0], [0, 3]])) ; xp.sum(X, axis=0, where=X > 0)
    xp.max(X, initial=9.0) ; xp.kron([1, 2], [1, 2]) ; xp.cross([1, 2, 3], [4, 5, 6]) ; xp.meshgrid([1, 2], [3, 4, 5])
    xp.diff([1, 3, 6]) ; xp.searchsorted([1, 2, 3], 2) ; xp.clip([1, 5], 2, 3) ; xp.triu([[1, 2], [3, 4]]) ; xp.tile([1, 2], 2)
    xp.zeros(3, dtype="f4").dtype.itemsize ; xp.zeros(3, dtype="int").dtype.itemsize ; xp.isnan([1.0]) ; xp.roll([1, 2, 3], 1)
"""
CASES = [e.strip() for e in EXPRESSIONS.replace("\n", ";").split(";") if e.strip()]
DATA = {"X": X, "V": V, "C": C, "B": B, "K": K % 2, "S": S, "NAN": NAN}


def plain(value):
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value.numpy() if hasattr(value, "numpy") else value


def compare(got, want):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for a, b in zip(got, want):
            compare(a, b)
    elif isinstance(want, (str, bytes)):
        assert got == want
    else:
        got, want = np.asarray(got), np.asarray(want)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("text", CASES)
def test_expression(text):
    own = {k: weft.asarray(v) for k, v in DATA.items()}
    got, want = eval(text, {"xp": weft, **own}), eval(text, {"xp": np, **DATA})
    compare(plain(got), want)


def test_writing_functions():
    for xp, x in ((np, X.copy()), (weft, weft.asarray(X.copy()))):
        xp.copyto(x, 0.0, where=x > 1)
        xp.putmask(x, x < -0.5, xp.asarray([1.0, 2.0]))
        x.itemset(0, 5.0)
        x.put([3, 4], [7.0, 8.0])
        if xp is np:
            want = x
    np.testing.assert_allclose(x.numpy(), want)
    place = weft.zeros((3, 5), dtype="float64")
    assert weft.exp(weft.asarray(X), out=place) is place
    np.testing.assert_allclose(place.numpy(), np.exp(X), rtol=1e-12)


def test_text_files(tmp_path):
    x = weft.asarray(X)
    weft.savetxt(tmp_path / "x.txt", x)
    np.testing.assert_array_equal(weft.loadtxt(tmp_path / "x.txt").numpy(), X)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "x.txt"), X)
    assert weft.loadtxt(io.StringIO("1,2\n3,4"), delimiter=",", dtype=weft.int64).tolist() == [
        [1, 2],
        [3, 4],
    ]
    filled = weft.genfromtxt(io.StringIO("1,,3"), delimiter=",")
    assert np.isnan(filled.numpy()[1])
    weft.savez_compressed(tmp_path / "x.npz", a=x)
    np.testing.assert_array_equal(weft.load_arrays(tmp_path / "x.npz")["a"].numpy(), X)
    x.tofile(tmp_path / "x.bin")
    np.testing.assert_array_equal(weft.fromfile(tmp_path / "x.bin").numpy(), X.reshape(-1))


def test_printing():
    with weft.printoptions(precision=2):
        assert weft.array2string(weft.asarray([1.23456])) == "[1.23]"
    assert weft.get_printoptions()["precision"] == 8
    with weft.errstate(divide="ignore"):
        assert float(weft.asarray(1.0) / 0.0) == float("inf")
    with pytest.raises(weft.ArgumentError) as caught:
        weft.seterr(all="raise")
    assert caught.value.code == "array.errstate.raise"


REFUSED = [
    (lambda: weft.asarray_chkfinite([float("nan")]), "array.chkfinite", "infinite"),
    (lambda: weft.require(X, None, ["Q"]), "array.require", "requirements"),
    (lambda: weft.frombuffer(b"abc", dtype="int32"), "array.frombuffer.size", "3 bytes"),
    (lambda: weft.fromiter([1], "int32", 3), "array.fromiter.count", "1 elements of 3"),
    (
        lambda: weft.putmask(weft.ones(3), weft.ones(3) > 0, []),
        "array.putmask.values",
        "without values",
    ),
    (lambda: weft.copyto(3, 4), "array.write.place", "to write to"),
    (lambda: weft.diag_indices_from(X), "array.square", "shape (3, 5)"),
    (lambda: weft.packbits(B, bitorder="odd"), "array.bits.order", "'odd'"),
    (lambda: weft.unpackbits(weft.ones(3)), "array.bits.type", "float32"),
    (lambda: weft.bitwise_count(weft.ones(3)), "array.bits.count", "float32"),
    (lambda: weft.r_["0,2", V], "array.r.text", "0,2"),
    (lambda: weft.ndindex(-1), "array.ndindex.shape", "(-1,)"),
    (lambda: weft.vectorize(abs, signature="(n)->()"), "array.vectorize.signature", "signature"),
    (lambda: weft.vectorize(abs)(weft.zeros(0)), "array.vectorize.empty", "no elements"),
    (lambda: weft.genfromtxt(io.StringIO("1"), names=True), "array.genfromtxt.option", "names"),
    (lambda: weft.savetxt("x", weft.ones((2, 2, 2))), "array.savetxt.shape", "(2, 2, 2)"),
    (lambda: weft.set_printoptions(profile="loud"), "array.print.profile", "loud"),
    (lambda: weft.base_repr(3, 99), "array.base_repr.base", "99"),
    (lambda: weft.binary_repr(-9, 3), "array.binary_repr.width", "-9"),
    (lambda: weft.seterr(noise="warn"), "array.errstate", "noise"),
    (lambda: weft.min_scalar_type(2**70), "array.scalar.range", "64 bits"),
    (lambda: weft.common_type(weft.ones(2) > 0), "array.common_type", "truth values"),
    (lambda: weft.set_default_dtype(weft.float64), "array.default_dtype", "float64"),
    (lambda: weft.polyadd(X, V), "array.poly.shape", "(3, 5)"),
    (lambda: weft.polydiv(V, [0.0, 1.0]), "array.polydiv.lead", "is 0"),
    (lambda: weft.polyder(V, -1), "array.polyder.order", "-1"),
    (lambda: weft.polyint(V, -1), "array.polyint.order", "-1"),
    (lambda: weft.polyint(V, 3, [1.0, 2.0]), "array.polyint.constants", "2 constants of 3"),
    (lambda: weft.histogram_bin_edges(V, "best"), "array.histogram.rule", "best"),
    (lambda: weft.histogramdd(X, (1, 2)), "array.histogramdd.bins", "2 bins for 5"),
]


@pytest.mark.parametrize("call, slug, words", REFUSED, ids=[r[1] for r in REFUSED])
def test_refusals(call, slug, words):
    with pytest.raises(weft.Error) as caught:
        call()
    assert caught.value.code == slug and words in str(caught.value)
