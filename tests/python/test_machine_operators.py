# SPDX-License-Identifier: Apache-2.0
"""Every public function over arrays, element type by element type, on the simulated machines: what the host computes, or a
refusal that names the machine and a reason. There is no third outcome. `pytest -s` prints the table."""

import re
from collections import Counter

import numpy as np
import pytest

import weft
from weft import _core, linalg

MACHINES = {
    # device: types, and how many calls at least give a result for the first of them
    "qpu": ("float32 int32 uint32 int16 uint16 int8 uint8 bool int64 float16 float64 complex64", 120),
    "vta": ("int8 int32 int16 uint8 uint16 uint32 bool int64 float32", 50),
    "wse:4x4": ("float32 int32 uint32 float16 int16 uint16 int8 bool int64 float64", 110),
}  # fmt: skip

UNARY = """abs acos acosh asin asinh atan atanh bitwise_invert cbrt ceil conj cos cosh erf exp exp2 expm1 floor gelu hardswish imag isfinite
isinf isnan log log10 log1p log2 logical_not negative positive real reciprocal relu round rsqrt sigmoid sign signbit silu sin
sinh sqrt square tan tanh trunc""".split()
BINARY = """add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide elu equal
floor_divide greater greater_equal hypot leaky_relu less less_equal logaddexp logical_and logical_or logical_xor maximum minimum
maximum_number minimum_number multiply nextafter not_equal pow remainder replace_nan subtract""".split()
POSITIVE = {"acosh", "log", "log10", "log1p", "log2", "rsqrt", "sqrt", "pow", "bitwise_left_shift", "divide", "reciprocal",
            "bitwise_right_shift", "floor_divide", "remainder", "logaddexp", "prod", "cumulative_prod"}  # fmt: skip
UNIT = {"acos", "asin", "atanh"}

CASES = {name: (lambda x, y, f=name: getattr(weft, f)(x)) for name in UNARY}
CASES |= {name: (lambda x, y, f=name: getattr(weft, f)(x, y)) for name in BINARY}


def _typed(x):
    """Sums of the operand's own type: without it integers add up in 64 bits."""
    return {} if x.dtype == weft.bool else {"dtype": x.dtype}


def _at(x, *places):
    return weft.asarray(np.array(places, "int64"), device=x.device)


CASES |= {
    "all": lambda x, y: weft.all(x, axis=1),
    "any": lambda x, y: weft.any(x, axis=0),
    "argmax": lambda x, y: weft.argmax(x, axis=1),
    "argmin": lambda x, y: weft.argmin(x, axis=0),
    "argsort": lambda x, y: weft.argsort(x, axis=1),
    "array": lambda x, y: weft.array(x),
    "asarray": lambda x, y: weft.asarray(x, copy=True),
    "astype": lambda x, y: x.astype("int32"),
    "astype to float32": lambda x, y: x.astype("float32"),
    "astype to int8": lambda x, y: x.astype("int8"),
    "astype to bool": lambda x, y: x.astype("bool"),
    "astype to int64": lambda x, y: x.astype("int64"),
    "broadcast_arrays": lambda x, y: weft.broadcast_arrays(x, y[:1])[1],
    "broadcast_to": lambda x, y: weft.broadcast_to(x[:1], (3, 5)),
    "clip": lambda x, y: weft.clip(x, 1, 3),
    "concat": lambda x, y: weft.concat([x, y], axis=1),
    "count_nonzero": lambda x, y: weft.count_nonzero(x),
    "cumulative_prod": lambda x, y: weft.cumulative_prod(x, axis=1, **_typed(x)),
    "cumulative_sum": lambda x, y: weft.cumulative_sum(x, axis=1, **_typed(x)),
    "diff": lambda x, y: weft.diff(x),
    "einsum": lambda x, y: weft.einsum("ij,kj->ik", x, y),
    "empty_like": lambda x, y: weft.full_like(weft.empty_like(x), 1),
    "expand_dims": lambda x, y: weft.expand_dims(x, axis=1),
    "flip": lambda x, y: weft.flip(x, axis=1),
    "full_like": lambda x, y: weft.full_like(x, 1),
    "isin": lambda x, y: weft.isin(x, y[0]),
    "layer_norm": lambda x, y: weft.layer_norm(x, y[0], y[1]),
    "log_softmax": lambda x, y: weft.log_softmax(x),
    "logsumexp": lambda x, y: weft.logsumexp(x),
    "matmul": lambda x, y: weft.matmul(x, y.T),
    "matrix_transpose": lambda x, y: weft.matrix_transpose(x),
    "max": lambda x, y: weft.max(x, axis=1),
    "mean": lambda x, y: weft.mean(x, axis=0),
    "meshgrid": lambda x, y: weft.meshgrid(x[0], y[0])[1],
    "min": lambda x, y: weft.min(x),
    "moveaxis": lambda x, y: weft.moveaxis(x, 0, 1),
    "nonzero": lambda x, y: weft.nonzero(x)[1],
    "ones_like": lambda x, y: weft.ones_like(x),
    "pad": lambda x, y: weft.pad(x, ((1, 0), (0, 2))),
    "permute_dims": lambda x, y: weft.permute_dims(x, (1, 0)),
    "prod": lambda x, y: weft.prod(x, axis=1, **_typed(x)),
    "repeat": lambda x, y: weft.repeat(x, 2, axis=1),
    "reshape": lambda x, y: weft.reshape(x.T, (15,)),
    "roll": lambda x, y: weft.roll(x, 2, axis=1),
    "scatter": lambda x, y: weft.scatter(x, 1, weft.asarray(np.array([[1, 0, 2, 4, 3]] * 3), device=x.device), y),
    "searchsorted": lambda x, y: weft.searchsorted(weft.sort(x[0]), y[0]),
    "softmax": lambda x, y: weft.softmax(x),
    "sort": lambda x, y: weft.sort(x, axis=1),
    "squeeze": lambda x, y: weft.squeeze(x[:1], axis=0),
    "stack": lambda x, y: weft.stack([x, y], axis=1),
    "std": lambda x, y: weft.std(x, axis=1),
    "sum": lambda x, y: weft.sum(x, axis=0, **_typed(x)),
    "sum of all": lambda x, y: weft.sum(x),
    "take": lambda x, y: weft.take(x, _at(x, 2, 0, 1, -1), axis=0),
    "take_along_axis": lambda x, y: weft.take_along_axis(x, _at(x, [1], [0], [4]), axis=1),
    "tensordot": lambda x, y: weft.tensordot(x, y, axes=([1], [1])),
    "tile": lambda x, y: weft.tile(x, (2, 1)),
    "topk": lambda x, y: weft.topk(x, 2)[0],
    "tril": lambda x, y: weft.tril(x),
    "triu": lambda x, y: weft.triu(x, k=1),
    "unique_all": lambda x, y: weft.unique_all(x)[0],
    "unique_counts": lambda x, y: weft.unique_counts(x)[1],
    "unique_inverse": lambda x, y: weft.unique_inverse(x)[1],
    "unique_values": lambda x, y: weft.unique_values(x),
    "unstack": lambda x, y: weft.unstack(x, axis=1)[2],
    "var": lambda x, y: weft.var(x, axis=1),
    "vecdot": lambda x, y: weft.vecdot(x, y),
    "where": lambda x, y: weft.where(weft.asarray(np.eye(3, 5) > 0, device=x.device), x, y),
    "zeros_like": lambda x, y: weft.zeros_like(x),
    # Views, numbers, positions and assignments.
    "index by a mask": lambda x, y: x[weft.asarray(np.eye(3, 5) > 0, device=x.device)],
    "a view with a step": lambda x, y: weft.positive(x[1:, ::2]) if x.dtype != weft.bool else x[1:, ::2].copy(),
    "a reversed view": lambda x, y: (x[::-1, ::-1] == y),
    "a transposed view": lambda x, y: weft.equal(x.T, y.T),
    "a number beside": lambda x, y: x + 2,
    "assign a slice": lambda x, y: _assigned(x, (slice(1, 3), slice(0, 5, 2)), y[1:, ::2]),
    "assign a number": lambda x, y: _assigned(x, (0, slice(1, 4)), 1),
    "assign at positions": lambda x, y: _assigned(x, _at(x, 2, 0), y[:2]),
    "no element": lambda x, y: weft.equal(x[:0], y[:0]),
    "one element": lambda x, y: weft.equal(x[0, 0], y[1, 1]),
    "linalg cross": lambda x, y: linalg.cross(x[:, :3], y[:, :3]),
    "linalg det": lambda x, y: linalg.det(x[:, :3]),
    "linalg diagonal": lambda x, y: linalg.diagonal(x[:, :3]).copy(),
    "linalg inv": lambda x, y: linalg.inv(x[:, :3]),
    "linalg matrix_norm": lambda x, y: linalg.matrix_norm(x),
    "linalg matrix_power": lambda x, y: linalg.matrix_power(x[:, :3], 3),
    "linalg outer": lambda x, y: linalg.outer(x[0], y[0]),
    "linalg qr": lambda x, y: linalg.qr(x)[1],
    "linalg solve": lambda x, y: linalg.solve(x[:, :3], y),
    "linalg svdvals": lambda x, y: linalg.svdvals(x),
    "linalg trace": lambda x, y: linalg.trace(x, **_typed(x)),
    "linalg vector_norm": lambda x, y: linalg.vector_norm(x),
}  # fmt: skip

# Public names that are no functions of arrays, or are exercised by tests of their own.
OTHERS = set(
    """accepts arange broadcast_shapes build can_cast capture checkpoint compile device devices empty enable_grad eye fallbacks finfo
    from_dlpack full functional_call get_autocast_dtype get_threads grad hessian iinfo is_autocast_available
    is_autocast_enabled is_deterministic isdtype jacfwd jacobian jacrev jvp linearize
    linspace load load_arrays load_gguf load_safetensors no_grad ones profile result_type save save_safetensors savez
    set_threads stop_gradient target_limits tree_map tune use use_deterministic value_and_grad vjp vmap zeros""".split()
)
REFUSALS = re.compile(
    r"(qpu|vta|wse)\.(accepts|lower)\.|target\.dtype|stages\.|array\.\w+\.(kernel|device)|array\.searchsorted\.dtype"
)


def _assigned(x, where, value):
    x = x.copy()
    x[where] = value
    return x


def values(name, dtype, seed):
    rng, shape = np.random.default_rng(seed), (3, 5)
    if name in UNIT and dtype[0] in "biu":
        return np.zeros(shape, dtype)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool) | (name in POSITIVE)
    if dtype.startswith(("int", "uint")):
        x = rng.integers(1, 6, shape)
        signed = dtype[0] == "i" and name not in POSITIVE
        return (x * rng.choice([-1, 1], shape) if signed else x).astype(dtype)
    x = rng.uniform(0.1, 0.9, shape) if name in UNIT else rng.uniform(1.1, 2.9, shape)
    return (x if name in POSITIVE | UNIT else x * rng.choice([-1, 1], shape)).astype(dtype)


def outcome(name, dtype, device):
    """None where the host has no such operation, True for a right result, the refusal, or what is wrong."""
    given = [values(name, dtype, seed) for seed in (1, 2)]
    try:
        want = CASES[name](*(weft.asarray(a, device="cpu") for a in given)).numpy()
    except weft.Error:
        return None
    held = [weft.asarray(a, device=device) for a in given]
    try:
        out = CASES[name](*held)
        got = out.numpy()
    except weft.Error as refusal:
        good = REFUSALS.match(refusal.code) and device.split(":")[0] in str(refusal)
        return refusal if good else f"refused without a reason: {refusal}"
    if str(out.device) != str(held[0].device):
        return f"computed on {out.device}"
    if (got.shape, got.dtype) != (want.shape, want.dtype):
        return f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    near = 2e-2 if "16" in dtype and dtype[0] == "f" else 2e-4
    if not np.allclose(got, want, rtol=near, atol=near, equal_nan=True):
        return f"got {got.ravel()[:6]}, not {want.ravel()[:6]}"
    if any((h.numpy() != g).any() for h, g in zip(held, given)):
        return "an operand changed"
    return True


def test_the_table_has_every_public_function():
    weft.tune  # loaded on first use  # noqa: B018
    public = {
        name
        for name, f in vars(weft).items()
        if not name.startswith("_") and callable(f) and not isinstance(f, (type, weft.dtype))
    }
    # PyTorch's and NumPy's functions, composed of the others
    later = " ".join(weft._functions.later._TABLE["weft"].values()).split()
    made_of_these = {*weft._torch_all, *weft._functions.functions, *later}
    assert public - set(CASES) - OTHERS - made_of_these == set()
    assert OTHERS - public == set()


@pytest.mark.parametrize("device", MACHINES)
def test_right_or_refused(device):
    if device.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {device} target")
    types, least = MACHINES[device]
    wrong, rows = [], []
    for dtype in types.split():
        found = {name: outcome(name, dtype, device) for name in CASES}
        passed = sum(o is True for o in found.values())
        refused = {n: o for n, o in found.items() if isinstance(o, weft.Error)}
        wrong += [f"{name} of {dtype}: {o}" for name, o in found.items() if isinstance(o, str)]
        kinds = ", ".join(f"{n} {c}" for c, n in Counter(o.code for o in refused.values()).items())
        rows.append((dtype, passed, len(refused), kinds))
    print(f"\n{device:8} {'type':10} passed refused")
    for dtype, passed, refused, kinds in rows:
        print(f"{'':8} {dtype:10} {passed:6} {refused:7}  {kinds}")
    assert not wrong, "\n".join(wrong)
    assert rows[0][1] >= least, rows[0]
