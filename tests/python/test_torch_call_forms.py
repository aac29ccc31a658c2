# SPDX-License-Identifier: Apache-2.0
"""Calls with PyTorch's names and order of arguments beside PyTorch, where the array standard or NumPy has others for the function of that name."""

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(71)
VALUES = {
    "X": RNG.standard_normal((4, 6)),
    "V": RNG.standard_normal(5),
    "B": RNG.standard_normal((2, 3, 4)),
    "N": np.arange(12).reshape(3, 4),
    "S": np.sort(RNG.standard_normal((2, 3, 9)), axis=-1),
}

# Evaluated with T = torch and with T = weft, whose names are tensors of the same elements.
FORMS = """
T.diag_embed(X, 1, dim1=0, dim2=2), T.diag_embed(B, -2), T.diag_embed(B, dim1=1, dim2=0), T.diagflat(V, offset=1)
T.topk(X, 2, dim=0, largest=False, sorted=True), X.topk(2, 0, True, True)
T.softmax(X, 1, dtype=T.float32), T.log_softmax(X, dim=1, dtype=T.float64)
T.nanquantile(X, 0.3, dim=0, interpolation="lower"), T.quantile(X, 0.3, dim=1, interpolation="higher")
T.repeat_interleave(N, T.tensor([1, 2, 0]), dim=0, output_size=3), T.repeat_interleave(T.tensor([1, 2, 0, 3])), N.repeat_interleave(2, dim=1)
T.searchsorted(T.tensor([1, 3, 5]), T.tensor([2, 5, 1]), right=True), T.searchsorted(T.tensor([1, 3, 5]), T.tensor([[2], [5]]), side="right")
T.searchsorted(S, B[..., :3]), T.searchsorted(S, S, right=True), T.searchsorted(S, S), T.searchsorted(N, N, right=True)
T.sub(X, X, alpha=2), T.add(X, X, alpha=0.5), X.add(X, alpha=-3), X.sub(1, alpha=2), T.subtract(N, 1, alpha=2)
T.svd(X, some=True)[1], T.svd(X, compute_uv=True)[1], (lambda u, s, v: u * s @ v.T)(*T.svd(X))
T.swapaxes(X, axis0=0, axis1=1), T.swapdims(X, dim0=0, dim1=1), X.swapaxes(axis0=1, axis1=0)
T.take(N, index=T.tensor([3, 5])), T.take_along_dim(X, indices=T.argsort(X, 1), dim=1)
T.tensor_split(N, sections=2, dim=1), T.tensor_split(N, indices=(1, 3), dim=1), T.tile(N, dims=(2, 1))
T.triu_indices(3, 4, offset=1), T.tril_indices(row=3, col=4, offset=-1), T.triu_indices(2, 5, offset=0), T.tril_indices(row=3, col=3)
T.unique_consecutive(T.tensor([[1, 1], [1, 1], [2, 1]]), dim=0), T.unique_consecutive(T.tensor([[1, 1, 2], [3, 3, 4]]), return_inverse=True, return_counts=True, dim=1)
T.scatter(X, 1, T.tensor([[0], [2], [1], [5]]), 9.0), T.scatter(X, 1, T.tensor([[0, 1], [2, 0], [1, 3], [5, 4]]), X * 2), T.scatter(X, dim=1, index=T.tensor([[0], [2], [1], [5]]), src=X)
T.put(N, T.tensor([1, 5]), T.tensor([7, 8])), T.put(N, T.tensor([1, 1]), T.tensor([7, 8]), accumulate=True)
T.gradient(X, spacing=0.5, dim=0), T.gradient(V), T.gradient(X, spacing=(2.0, 3.0)), T.gradient(X, dim=(1,), edge_order=2)
T.linspace(start=0, end=1, steps=5), T.linspace(0, end=1, steps=5), T.heaviside(X, values=T.tensor(0.5, dtype=T.float64)), T.float_power(abs(X), exponent=2)
T.nn.functional.softplus(X, beta=2, threshold=1), T.nn.functional.softplus(X, 0.5, 30)
T.linalg.vecdot(X, X, dim=0), T.linalg.vecdot(B, B, dim=1), T.fft.fftshift(X, dim=1), T.fft.ifftshift(X, dim=(0,))
""".strip().splitlines()


def flat(value):
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in flat(part)]
    return [
        value.detach().numpy() if isinstance(value, torch.Tensor) else np.asarray(value.numpy())
    ]


@pytest.mark.parametrize("form", FORMS)
def test_form(form):
    want = flat(eval(form, {"T": torch, **{k: torch.tensor(v) for k, v in VALUES.items()}}))
    ours = {k: weft.Tensor(weft.asarray(v)) for k, v in VALUES.items()}
    got = flat(eval(form, {"T": weft, **ours}))
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert a.shape == b.shape and a.dtype.kind == b.dtype.kind
        close = 1e-6 if np.float32 in (a.dtype, b.dtype) else 1e-12
        np.testing.assert_allclose(a, b, rtol=close, atol=close)


def test_gradients_of_forms():
    x, t = weft.Tensor(weft.asarray(VALUES["X"])), torch.tensor(VALUES["X"], requires_grad=True)
    for of in (
        lambda T, v: T.nn.functional.softplus(v, 2, 1).sum(),
        lambda T, v: (v.diag_embed(0, 0, 2) ** 2).sum(),
        lambda T, v: T.softmax(v, 1, dtype=T.float64).sum() + v.add(v, alpha=2).sum(),
    ):
        x.grad = t.grad = None
        of(weft, x).backward()
        of(torch, t).backward()
        np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-6)


def test_rows_that_do_not_fit():
    with pytest.raises(weft.ShapeError) as refused:
        weft.searchsorted(weft.asarray(VALUES["S"]), weft.asarray(VALUES["B"][:1]))
    assert refused.value.code == "array.searchsorted.rows" and "(1, 3, 4)" in str(refused.value)
