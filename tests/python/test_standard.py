# SPDX-License-Identifier: Apache-2.0
"""The array API standard 2024.12, function by function: signatures, kinds of types, results' types and shapes, and the special
cases that it lists, on each device. (The consortium's own suite runs with tools/array_api_tests, from a checkout of it.)"""

import inspect
import itertools
import math

import numpy as np
import pytest
import weft

DEVICES = [d for d in ("cpu", "opencl:0") if weft.device(d).available]

SIGNATURES = """
arange(start, /, stop=None, step=1, *, dtype=None, device=None)
asarray(obj, /, *, dtype=None, device=None, copy=None)
empty(shape, *, dtype=None, device=None)
empty_like(x, /, *, dtype=None, device=None)
eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)
from_dlpack(x, /, *, device=None, copy=None)
full(shape, fill_value, *, dtype=None, device=None)
full_like(x, /, fill_value, *, dtype=None, device=None)
linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True)
meshgrid(*arrays, indexing='xy')
ones(shape, *, dtype=None, device=None)
ones_like(x, /, *, dtype=None, device=None)
tril(x, /, *, k=0)
triu(x, /, *, k=0)
zeros(shape, *, dtype=None, device=None)
zeros_like(x, /, *, dtype=None, device=None)
astype(x, dtype, /, *, copy=True, device=None)
can_cast(from_, to, /)
finfo(type, /)
iinfo(type, /)
isdtype(dtype, kind)
result_type(*arrays_and_dtypes)
take(x, indices, /, *, axis=None)
take_along_axis(x, indices, /, *, axis=-1)
matmul(x1, x2, /)
matrix_transpose(x, /)
tensordot(x1, x2, /, *, axes=2)
vecdot(x1, x2, /, *, axis=-1)
broadcast_arrays(*arrays)
broadcast_to(x, /, shape)
concat(arrays, /, *, axis=0)
expand_dims(x, /, axis)
flip(x, /, *, axis=None)
moveaxis(x, source, destination, /)
permute_dims(x, /, axes)
repeat(x, repeats, /, *, axis=None)
reshape(x, /, shape, *, copy=None)
roll(x, /, shift, *, axis=None)
squeeze(x, /, axis)
stack(arrays, /, *, axis=0)
tile(x, repetitions, /)
unstack(x, /, *, axis=0)
argmax(x, /, *, axis=None, keepdims=False)
argmin(x, /, *, axis=None, keepdims=False)
count_nonzero(x, /, *, axis=None, keepdims=False)
nonzero(x, /)
searchsorted(x1, x2, /, *, side='left', sorter=None)
where(condition, x1, x2, /)
unique_all(x, /)
unique_counts(x, /)
unique_inverse(x, /)
unique_values(x, /)
argsort(x, /, *, axis=-1, descending=False, stable=True)
sort(x, /, *, axis=-1, descending=False, stable=True)
cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False)
cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False)
max(x, /, *, axis=None, keepdims=False)
mean(x, /, *, axis=None, keepdims=False)
min(x, /, *, axis=None, keepdims=False)
prod(x, /, *, axis=None, dtype=None, keepdims=False)
std(x, /, *, axis=None, correction=0.0, keepdims=False)
sum(x, /, *, axis=None, dtype=None, keepdims=False)
var(x, /, *, axis=None, correction=0.0, keepdims=False)
all(x, /, *, axis=None, keepdims=False)
any(x, /, *, axis=None, keepdims=False)
diff(x, /, *, axis=-1, n=1, prepend=None, append=None)
clip(x, /, min=None, max=None)
linalg.cholesky(x, /, *, upper=False)
linalg.cross(x1, x2, /, *, axis=-1)
linalg.det(x, /)
linalg.diagonal(x, /, *, offset=0)
linalg.eigh(x, /)
linalg.eigvalsh(x, /)
linalg.inv(x, /)
linalg.matmul(x1, x2, /)
linalg.matrix_norm(x, /, *, keepdims=False, ord='fro')
linalg.matrix_power(x, n, /)
linalg.matrix_rank(x, /, *, rtol=None)
linalg.matrix_transpose(x, /)
linalg.outer(x1, x2, /)
linalg.pinv(x, /, *, rtol=None)
linalg.qr(x, /, *, mode='reduced')
linalg.slogdet(x, /)
linalg.solve(x1, x2, /)
linalg.svd(x, /, *, full_matrices=True)
linalg.svdvals(x, /)
linalg.tensordot(x1, x2, /, *, axes=2)
linalg.trace(x, /, *, offset=0, dtype=None)
linalg.vecdot(x1, x2, /, *, axis=-1)
linalg.vector_norm(x, /, *, axis=None, keepdims=False, ord=2)
fft.fft(x, /, *, n=None, axis=-1, norm='backward')
fft.ifft(x, /, *, n=None, axis=-1, norm='backward')
fft.fftn(x, /, *, s=None, axes=None, norm='backward')
fft.ifftn(x, /, *, s=None, axes=None, norm='backward')
fft.rfft(x, /, *, n=None, axis=-1, norm='backward')
fft.irfft(x, /, *, n=None, axis=-1, norm='backward')
fft.rfftn(x, /, *, s=None, axes=None, norm='backward')
fft.irfftn(x, /, *, s=None, axes=None, norm='backward')
fft.hfft(x, /, *, n=None, axis=-1, norm='backward')
fft.ihfft(x, /, *, n=None, axis=-1, norm='backward')
fft.fftfreq(n, /, *, d=1.0, dtype=None, device=None)
fft.rfftfreq(n, /, *, d=1.0, dtype=None, device=None)
fft.fftshift(x, /, *, axes=None)
fft.ifftshift(x, /, *, axes=None)
""".split("\n")[1:-1]  # fmt: skip

INT = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
REAL, COMPLEX, BOOL = ["float32", "float64"], ["complex64", "complex128"], ["bool"]
FLOAT, NUMERIC = REAL + COMPLEX, INT + REAL + COMPLEX
UNARY = {  # name: (types, the result's)
    **dict.fromkeys("acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 reciprocal sin sinh sqrt tan tanh".split(), (FLOAT, "same")),
    **dict.fromkeys("ceil floor trunc".split(), (INT + REAL, "same")),
    **dict.fromkeys("negative positive round sign square".split(), (NUMERIC, "same")),
    **dict.fromkeys("isfinite isinf isnan".split(), (NUMERIC, "bool")),
    "abs": (NUMERIC, "real"), "conj": (COMPLEX, "same"), "imag": (COMPLEX, "real"), "real": (COMPLEX, "real"),
    "signbit": (REAL, "bool"), "bitwise_invert": (BOOL + INT, "same"), "logical_not": (BOOL, "bool"),
}  # fmt: skip
BINARY = {
    **dict.fromkeys("add multiply subtract".split(), (NUMERIC, "same")),
    **dict.fromkeys("floor_divide remainder maximum minimum".split(), (INT + REAL, "same")),
    **dict.fromkeys("atan2 copysign hypot logaddexp nextafter".split(), (REAL, "same")),
    "divide": (FLOAT, "same"), "pow": (NUMERIC, "same"),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor".split(), (BOOL + INT, "same")),
    **dict.fromkeys("bitwise_left_shift bitwise_right_shift".split(), (INT, "same")),
    **dict.fromkeys("equal not_equal".split(), (BOOL + NUMERIC, "bool")),
    **dict.fromkeys("less less_equal greater greater_equal".split(), (INT + REAL, "bool")),
    **dict.fromkeys("logical_and logical_or logical_xor".split(), (BOOL, "bool")),
}  # fmt: skip
IN_NUMPY = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh", "atan2": "arctan2",
            "bitwise_invert": "bitwise_not", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "pow": "power"}  # fmt: skip
SHAPES = [((), ()), ((0,), (0,)), ((5,), (5,)), ((2, 3), (3,)), ((4, 1), (1, 5)), ((3, 1, 2), ()), ((2, 0, 3), (1, 3))]  # fmt: skip


def chosen(types, shapes, device):
    """Types and shapes; on a card, where each type is a kernel to compile, the first and the last type with one shape."""
    return itertools.product(*((types, shapes) if device == "cpu" else ({types[0]: 0, types[-1]: 0}, shapes[3:4])))  # fmt: skip


@pytest.mark.parametrize("line", SIGNATURES)
def test_a_signature_is_the_standard_s(line):
    path, rest = line.split("(", 1)
    wanted = inspect.signature(eval(f"lambda {standard_parameters(rest[:-1])}: 0"))
    found = weft
    for name in path.split("."):
        found = getattr(found, name)
    have = inspect.signature(found).parameters
    if any(p.kind == p.VAR_KEYWORD for p in have.values()):
        have = dict(have)
    positional = [p for p in have.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]  # fmt: skip
    for at, p in enumerate(wanted.parameters.values()):
        if p.kind == p.VAR_POSITIONAL:
            assert any(q.kind == q.VAR_POSITIONAL for q in have.values()), (line, list(have))
        elif p.kind == p.KEYWORD_ONLY:
            assert p.name in have and have[p.name].kind != p.POSITIONAL_ONLY, (line, list(have))
            assert same_default(have[p.name].default, p.default), (p.name, have[p.name].default)
        else:
            assert at < len(positional), (line, list(have))
            if p.kind == p.POSITIONAL_OR_KEYWORD:
                assert positional[at].name == p.name, (line, positional[at].name)
            if p.default is not p.empty:
                assert positional[at].default is not p.empty, (line, p.name)


def standard_parameters(text):
    return "x, /, " + text[3:] if text.startswith("x, /") and len(text) > 4 and text[4] != "," else text  # fmt: skip


def same_default(found, wanted):
    return found == wanted or (wanted is None and found is not inspect.Parameter.empty)


def drawn(rng, shape, dtype, name):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        least = 1 if name in ("floor_divide", "remainder") else 0
        most = 4 if name in ("pow", "bitwise_left_shift", "bitwise_right_shift") else 100
        x = rng.integers(least, most, shape).astype(dtype)
        return -x if kind == "i" and name not in ("pow", "bitwise_left_shift", "bitwise_right_shift") and rng.integers(2) else x  # fmt: skip
    low, high = {"acosh": (1.1, 4), "log": (0.1, 4), "log2": (0.1, 4), "log10": (0.1, 4), "sqrt": (0, 4), "pow": (0.2, 3),
                 "acos": (-0.9, 0.9), "asin": (-0.9, 0.9), "atanh": (-0.9, 0.9), "log1p": (-0.9, 3)}.get(name, (-3, 3))  # fmt: skip
    x = rng.uniform(low, high, shape)
    if kind == "c":
        x = x + 1j * rng.uniform(0.1, 0.8, shape)
    return np.asarray(x, dtype)


def compared(found, wanted, dtype, context):
    assert found.dtype.name == np.dtype(wanted.dtype).name and tuple(found.shape) == wanted.shape, (context, found.dtype, found.shape, wanted.dtype, wanted.shape)  # fmt: skip
    if wanted.dtype.kind in "fc":
        close = 2e-5 if np.finfo(dtype).bits == 32 or wanted.dtype.itemsize == 4 else 1e-11
        np.testing.assert_allclose(found.numpy(), wanted, rtol=close, atol=close, err_msg=str(context))  # fmt: skip
    else:
        np.testing.assert_array_equal(found.numpy(), wanted, err_msg=str(context))


def result_of(kind, dtype):
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    return {"same": dtype, "bool": "bool", "real": real}[kind]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", UNARY)
def test_unary_functions(name, device, rng):
    types, kind = UNARY[name]
    for dtype, (shape, _) in chosen(types, SHAPES[:4], device):
        x = drawn(rng, shape, dtype, name)
        reference = getattr(np, IN_NUMPY.get(name, name), None)
        with np.errstate(all="ignore"):
            if name == "sign" and dtype in COMPLEX:  # NumPy 1 has another sign of complex numbers
                wanted = np.where(x == 0, x, x / np.where(x == 0, 1, np.abs(x)))
            else:
                wanted = np.asarray(reference(x))
        wanted = wanted.astype(result_of(kind, dtype))
        compared(getattr(weft, name)(weft.asarray(x, device=device)), wanted, dtype, (name, dtype, shape))  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_broadcast(name, device, rng):
    types, kind = BINARY[name]
    for dtype, (left, right) in chosen(types, SHAPES, device):
        a, b = drawn(rng, left, dtype, name), drawn(rng, right, dtype, name)
        with np.errstate(all="ignore"):
            wanted = np.asarray(getattr(np, IN_NUMPY.get(name, name))(a, b))
        wanted = wanted.astype(result_of(kind, dtype))
        x, y = weft.asarray(a, device=device), weft.asarray(b, device=device)
        compared(getattr(weft, name)(x, y), wanted, dtype, (name, dtype, left, right))


INF, NAN, PI = math.inf, math.nan, math.pi
SPECIAL = {  # as the standard lists them: arguments, result
    "acos": [(1.5, NAN), (-1.5, NAN), (1.0, 0.0)],
    "acosh": [(0.5, NAN), (1.0, 0.0), (INF, INF)],
    "asin": [(1.5, NAN), (-1.5, NAN), (0.0, 0.0), (-0.0, -0.0)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (INF, PI / 2), (-INF, -PI / 2)],
    "atanh": [(-1.5, NAN), (1.5, NAN), (-1.0, -INF), (1.0, INF), (0.0, 0.0), (-0.0, -0.0)],
    "ceil": [(INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0), (-0.5, -0.0)],
    "floor": [(INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0)],
    "trunc": [(INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0), (-0.5, -0.0)],
    "round": [(INF, INF), (-INF, -INF), (0.0, 0.0), (-0.0, -0.0), (0.5, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, -0.0)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0)],
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0)],
    "log": [(-1.0, NAN), (0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF)],
    "log1p": [(-2.0, NAN), (-1.0, -INF), (-0.0, -0.0), (0.0, 0.0), (INF, INF)],
    "log2": [(-1.0, NAN), (0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF)],
    "log10": [(-1.0, NAN), (0.0, -INF), (-0.0, -INF), (1.0, 0.0), (INF, INF)],
    "reciprocal": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0)],
    "sqrt": [(-1.0, NAN), (0.0, 0.0), (-0.0, -0.0), (INF, INF)],
    "sign": [(0.0, 0.0), (-0.0, 0.0), (-3.0, -1.0), (INF, 1.0)],
    "abs": [(-0.0, 0.0), (-INF, INF)],
    "atan2": [(1.0, 0.0, PI / 2), (1.0, -0.0, PI / 2), (0.0, 1.0, 0.0), (0.0, 0.0, 0.0), (0.0, -0.0, PI), (0.0, -1.0, PI), (-0.0, 1.0, -0.0),
              (-0.0, 0.0, -0.0), (-0.0, -0.0, -PI), (-0.0, -1.0, -PI), (-1.0, 0.0, -PI / 2), (1.0, INF, 0.0), (1.0, -INF, PI), (-1.0, INF, -0.0),
              (-1.0, -INF, -PI), (INF, 1.0, PI / 2), (-INF, 1.0, -PI / 2), (INF, INF, PI / 4), (INF, -INF, 3 * PI / 4), (-INF, INF, -PI / 4),
              (-INF, -INF, -3 * PI / 4), (NAN, 1.0, NAN)],
    "pow": [(2.0, 0.0, 1.0), (NAN, 0.0, 1.0), (NAN, -0.0, 1.0), (NAN, 1.0, NAN), (1.5, INF, INF), (1.5, -INF, 0.0), (1.0, INF, 1.0), (-1.0, -INF, 1.0),
            (0.5, INF, 0.0), (0.5, -INF, INF), (INF, 2.0, INF), (INF, -2.0, 0.0), (-INF, 3.0, -INF), (-INF, 2.0, INF), (-INF, -3.0, -0.0),
            (-INF, -2.0, 0.0), (0.0, 2.0, 0.0), (0.0, -2.0, INF), (-0.0, 3.0, -0.0), (-0.0, 2.0, 0.0), (-0.0, -3.0, -INF), (-0.0, -2.0, INF),
            (-2.0, 0.5, NAN)],
    "divide": [(INF, INF, NAN), (0.0, 0.0, NAN), (1.0, 0.0, INF), (1.0, -0.0, -INF), (-1.0, 0.0, -INF), (0.0, -1.0, -0.0), (1.0, -INF, -0.0)],
    "floor_divide": [(1.0, INF, 0.0), (-1.0, -INF, 0.0), (-7.0, 2.0, -4.0), (7.0, -2.0, -4.0)],
    "remainder": [(INF, 1.0, NAN), (1.0, 0.0, NAN), (0.0, 3.0, 0.0), (-0.0, 3.0, 0.0), (0.0, -3.0, -0.0), (2.0, INF, 2.0), (-2.0, -INF, -2.0),
                  (-7.0, 2.0, 1.0), (7.0, -2.0, -1.0)],
    "add": [(INF, -INF, NAN), (-0.0, -0.0, -0.0), (-0.0, 0.0, 0.0)],
    "multiply": [(INF, 0.0, NAN), (-0.0, 1.0, -0.0), (INF, -2.0, -INF)],
    "hypot": [(INF, NAN, INF), (NAN, -INF, INF), (3.0, 4.0, 5.0), (-0.0, -0.0, 0.0)],
    "copysign": [(3.0, -0.0, -3.0), (-3.0, 0.0, 3.0), (NAN, -1.0, NAN)],
    "maximum": [(NAN, 1.0, NAN), (1.0, NAN, NAN)],
    "minimum": [(NAN, 1.0, NAN), (1.0, NAN, NAN)],
    "logaddexp": [(NAN, 1.0, NAN), (INF, 1.0, INF), (1.0, INF, INF), (-INF, -INF, -INF)],
    "isfinite": [(INF, False), (NAN, False), (1.0, True)],
    "isnan": [(NAN, True), (INF, False)],
    "signbit": [(-0.0, True), (0.0, False), (-INF, True)],
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_cases(name, dtype, device):
    rows = np.array(SPECIAL[name], "float64")
    *arguments, wanted = rows.T
    given = [weft.asarray(a.astype(dtype), device=device) for a in arguments]
    found = getattr(weft, name)(*given).numpy().astype("float64")
    for row, got, want in zip(SPECIAL[name], found, wanted, strict=True):
        same = math.isnan(got) if math.isnan(want) else math.isclose(got, want, rel_tol=1e-6) and (want != 0 or math.copysign(1, got) == math.copysign(1, want))  # fmt: skip
        assert same, (name, dtype, row, got)


@pytest.mark.parametrize("dtype", INT + FLOAT)
def test_reductions_results(dtype, rng):
    """Default types of sums, empty arrays, kept extents, several axes."""
    widest = {"i": "int64", "u": "uint64"}.get(np.dtype(dtype).kind, dtype)
    for shape in [(), (0,), (4,), (2, 3, 4), (3, 0, 2)]:
        x = drawn(rng, shape, dtype, "add")
        given = weft.asarray(x)
        for axis, keep in itertools.product([None, *range(len(shape)), *([(0, 2)] if len(shape) == 3 else [])], [False, True]):  # fmt: skip
            for name in ("sum", "prod"):
                with np.errstate(all="ignore"):
                    wanted = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keep, dtype=widest))  # fmt: skip
                compared(getattr(weft, name)(given, axis=axis, keepdims=keep), wanted, dtype, (name, shape, axis))  # fmt: skip
            for name in ("any", "all"):
                wanted = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keep))
                compared(getattr(weft, name)(given, axis=axis, keepdims=keep), wanted, dtype, (name, shape, axis))  # fmt: skip
            wanted = np.asarray(np.count_nonzero(x, axis=axis, keepdims=keep), "int64")
            compared(weft.count_nonzero(given, axis=axis, keepdims=keep), wanted, dtype, ("count", shape, axis))  # fmt: skip
            if x.size and dtype not in COMPLEX:
                for name in ("max", "min"):
                    wanted = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keep))
                    compared(getattr(weft, name)(given, axis=axis, keepdims=keep), wanted, dtype, (name, shape, axis))  # fmt: skip


@pytest.mark.parametrize("dtype", BOOL + NUMERIC)
def test_numbers_of_python_take_the_array_s_type(dtype):
    x = weft.ones((2,), dtype=dtype)
    for number in (True, 1, 1.0, 1j):
        kinds = [bool, int, float, complex]
        rank = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}[np.dtype(dtype).kind]
        if kinds.index(type(number)) > rank or (dtype == "bool" and number is not True):
            continue
        assert (x == number).dtype.name == "bool"
        if dtype != "bool" and number is not True:
            for out in (x + number, number + x, x * number, number - x):
                assert out.dtype.name == dtype, (dtype, number, out.dtype)
