# SPDX-License-Identifier: Apache-2.0
"""Functions that PyTorch has and that are methods of tensors here: each gives what the method gives, and takes arrays too."""

import numpy as np
import pytest
import weft

X = np.random.default_rng(7).normal(size=(3, 4, 4)).astype("float32")
Y = np.random.default_rng(8).normal(size=(3, 4, 4)).astype("float32")
ORDER = np.array([2, 0, 1, 3])
# Arguments after the first; functions of matrices and vectors get the first of X's.
BATCHED = {
    "bmm": [Y], "baddbmm": [X, Y], "addbmm": [X, Y], "addcdiv": [X, np.abs(Y) + 1], "addcmul": [X, Y],
    "allclose": [X], "chunk": [2, 1], "clamp": [-0.5, 0.5], "clamp_max": [0.5], "clamp_min": [0.5], "cumprod": [1],
    "cumsum": [1], "dist": [Y], "div": [Y], "eq": [X], "fmod": [Y], "ge": [Y], "gt": [Y], "le": [Y], "lt": [Y], "ne": [Y],
    "index_add": [1, np.array([0, 2]), X[:, :2]], "index_fill": [1, np.array([0, 2]), 3.0], "index_select": [1, ORDER],
    "gather": [1, np.zeros((3, 4, 4), "int64")], "take_along_dim": [np.zeros((3, 4, 4), "int64"), 1], "isclose": [Y],
    "kthvalue": [2], "lerp": [Y, 0.25], "logcumsumexp": [1], "masked_fill": [X > 0, 1.5], "masked_select": [X > 0],
    "movedim": [0, 2], "mul": [Y], "narrow": [1, 1, 2], "permute": [2, 0, 1], "quantile": [0.25], "repeat_interleave": [2],
    "scatter_add": [1, np.zeros((3, 4, 4), "int64"), Y], "split": [2, 1], "split_with_sizes": [[1, 3], 1],
    "sub": [Y], "swapaxes": [0, 1], "swapdims": [0, 1], "tensor_split": [2, 1], "transpose": [0, 1], "true_divide": [Y],
    "unflatten": [1, (2, 2)], "unsqueeze": [1], "xlogy": [np.abs(Y)], "nansum": [1], "nanmean": [1], "logit": [1e-3],
    "diag_embed": [], "flatten": [1], "unbind": [1], "arccos": [], "arcsin": [],
}  # fmt: skip
MATRICES = {
    "addmm": [X[1], Y[0]], "addmv": [X[1], Y[0, 0]], "mm": [Y[0]], "mv": [Y[0, 0]], "addr": [X[0, 0], Y[0, 0]], "kron": [Y[0]],
    "t": [], "trace": [], "diag": [],
}  # fmt: skip
VECTORS = {
    "cross": [Y[0, 0, :3]], "dot": [Y[0, 0, :3]], "vdot": [Y[0, 0, :3]], "inner": [Y[0, 0, :3]], "ger": [Y[0, 0]],
    "outer": [Y[0, 0]],
}  # fmt: skip


def case(name):
    if name == "bincount":
        return np.array([3, 1, 1, 0]), []
    if name in MATRICES:
        return X[0], MATRICES[name]
    if name in VECTORS:
        return X[0, 0, :3], VECTORS[name]
    return X, BATCHED.get(name, [])


def flat(value):
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in flat(v)]
    return [np.asarray(value.numpy() if hasattr(value, "numpy") else value)]


def arrays(values):
    return [weft.asarray(v) if isinstance(v, np.ndarray) else v for v in values]


@pytest.mark.parametrize("name", weft._torch_all)
def test_of_arrays_and_tensors(name):
    x, more = case(name)
    function = getattr(weft, name)
    start = X[0, 0] if name == "addmv" else x
    tensor = weft.Tensor(start, requires_grad=False)
    want = flat(getattr(tensor, name)(*arrays(more)))
    of_tensor, of_array = (
        function(tensor, *arrays(more)),
        function(weft.asarray(start), *arrays(more)),
    )
    for got in (of_tensor, of_array):
        assert len(flat(got)) == len(want)
        for a, b in zip(flat(got), want):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)

    def kinds(value):
        if isinstance(value, (tuple, list)):
            return {k for v in value for k in kinds(v)}
        positions = getattr(value, "dtype", None) in (weft.bool, weft.int64)
        return set() if positions and isinstance(value, weft.NDArray) else {type(value)}

    assert weft.Tensor not in kinds(of_array)
    assert weft.NDArray not in kinds(
        of_tensor
    )  # beside masks and positions, which have no gradient


def test_gradients_batches_and_compiled_functions():
    x = weft.Tensor(X, requires_grad=True)
    weft.bmm(x, weft.asarray(Y)).sum().backward()
    np.testing.assert_allclose(
        x.grad.numpy(), np.broadcast_to(Y.sum(2)[:, None], X.shape), rtol=1e-5
    )
    got = weft.vmap(weft.mm)(weft.asarray(X), weft.asarray(Y))
    np.testing.assert_allclose(got.numpy(), X @ Y, rtol=1e-4, atol=1e-5)
    f = weft.compile(lambda a, b: weft.clamp(weft.addcmul(a, a, b, value=2.0), -1.0, 1.0))
    np.testing.assert_allclose(
        f(weft.asarray(X), weft.asarray(Y)).numpy(),
        np.clip(X + 2 * X * Y, -1, 1),
        rtol=1e-5,
        atol=1e-6,
    )


def test_what_does_not_fit():
    with pytest.raises(weft.DTypeError) as caught:
        weft.bmm(weft.ones((2, 2, 2)))
    assert caught.value.code == "python.arguments" and "accepted: bmm(input, other)" in str(
        caught.value
    )
