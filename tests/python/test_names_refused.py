# SPDX-License-Identifier: Apache-2.0
"""What the functions of NumPy's and PyTorch's names do not take: each refusal's code and text."""

import numpy as np
import pytest
import weft
from weft import nn
from weft.nn import functional as F

X = weft.asarray(np.arange(12.0, dtype="float32").reshape(3, 4))
WHOLE = weft.asarray([[1, 2], [3, 4]])
IMAGE = weft.ones((1, 2, 4, 4))
LEAF = weft.tensor([1.0, 2.0], requires_grad=True)
WAVE = weft.ones(40)

REFUSED = [
    (lambda: weft.complex(WHOLE, 1j), "array.complex.type", "complex64"),
    (lambda: weft.view_as_real(X), "array.view_as_real.type", "float32"),
    (lambda: weft.view_as_complex(X), "array.view_as_complex.shape", "(3, 4)"),
    (lambda: weft.empty_strided((2, 3), (1,)), "array.empty_strided", "a step for each extent"),
    (lambda: weft.is_nonzero(X), "array.is_nonzero.size", "12 elements"),
    (lambda: weft.set_float32_matmul_precision("low"), "array.precision", "'low'"),
    (lambda: weft.set_num_interop_threads(0), "array.threads", "0 threads"),
    (lambda: weft.range(3, 1), "array.range.step", "towards the end"),
    (lambda: weft.geqrf(weft.ones(3)), "array.geqrf.shape", "(3,)"),
    (lambda: weft.lu(weft.ones(3)), "array.lu.shape", "(3,)"),
    (lambda: weft.linalg.lu_factor_ex(weft.zeros((2, 2)), check_errors=True), "array.lu.singular", "singular"),
    (lambda: weft.svd_lowrank(X, 9), "array.svd_lowrank.rank", "rank 9"),
    (lambda: weft.masked_scatter(X, X > 3, [1.0]), "array.masked_scatter.count", "1 elements"),
    (lambda: weft.scatter_reduce(X, 0, [[7]], X, "sum"), "array.scatter_reduce.index", "axis of 3"),
    (lambda: weft.scatter_reduce(X, 0, [[0]], X, "median"), "array.scatter_reduce.reduce", "'median'"),
    (lambda: weft.index_reduce(X, 0, [0], X[:1], "first"), "array.index_reduce.reduce", "'first'"),
    (lambda: weft.segment_reduce(X, "sum"), "array.segment_reduce", "lengths or offsets"),
    (lambda: weft.segment_reduce(X, "sum", lengths=[1, 1]), "array.segment_reduce.lengths", "add up to 2"),
    (lambda: weft.segment_reduce(X, "best", lengths=[1, 2]), "array.segment_reduce.reduce", "'best'"),
    (lambda: weft.select([X > 1], []), "array.select.count", "1 masks and 0 values"),
    (lambda: weft.select_scatter(X, X[0], 0, 5), "array.select_scatter.index", "entry 5"),
    (lambda: weft.slice_scatter(X, X, 0, 1), "array.slice_scatter.shape", "(2, 4)"),
    (lambda: weft.as_strided(X, (2,), (1, 1)), "array.as_strided.layout", "a step for each extent"),
    (lambda: weft.as_strided(X, (4, 4), (4, 1)), "array.as_strided.range", "0 to 15 of 12"),
    (lambda: weft.as_strided_scatter(X, X, (9, 9), (4, 1)), "array.as_strided_scatter.range", "of 12"),
    (lambda: weft.stft(WHOLE, 4), "array.stft.shape", "int64"),
    (lambda: weft.stft(WAVE, 4, pad_mode="odd"), "array.stft.pad_mode", "'odd'"),
    (lambda: weft.stft(WAVE, 4, 0), "array.stft.frame", "hop of 0"),
    (lambda: weft.stft(WAVE, 4, window=weft.ones(3)), "array.stft.window", "(3,)"),
    (lambda: weft.stft(weft.ones(3), 16), "array.stft.pad", "mirrored"),
    (lambda: weft.stft(WAVE, 60, center=False), "array.stft.length", "40 samples"),
    (lambda: weft.hann_window(-1), "array.hann_window.length", "-1"),
    (lambda: weft.istft(weft.ones((4, 3)) * 1j, 4, onesided=True), "array.istft.shape", "n_fft 4"),
    (lambda: weft.istft(weft.ones((3, 3)) * 1j, 4, hop_length=0), "array.istft.frame", "hop of 0"),
    (lambda: weft.istft(weft.ones((3, 3)) * 1j, 4, window=weft.zeros(4)), "array.istft.window", "without weight"),
    (lambda: weft.autograd.grad(LEAF.sum(), [LEAF.detach()]), "autograd.grad.input", "requires no gradient"),
    (lambda: weft.autograd.grad(LEAF.sum(), weft.tensor([1.0], requires_grad=True)), "autograd.grad.unused", "input 0"),
    (lambda: weft.init.dirac_(weft.Tensor([1.0])), "init.dirac.shape", "(1,)"),
    (lambda: F.affine_grid(X, (2, 1, 3, 3)), "nn.affine_grid.shape", "(3, 4)"),
    (lambda: F.grid_sample(X, X), "nn.grid_sample.shape", "(3, 4)"),
    (lambda: F.grid_sample(IMAGE, weft.ones((1, 2, 2, 2)), "cubic"), "nn.grid_sample.mode", "'cubic'"),
    (lambda: F.multi_head_attention_forward(IMAGE, IMAGE, IMAGE, 4, 2, X, None, X, None, False, 0.0, X, None), "nn.attention.option", "bias_k"),
    (lambda: F.fractional_max_pool2d(IMAGE, 2), "nn.fractional_pool.size", "one of the two"),
    (lambda: F.fractional_max_pool2d(IMAGE, 2, 9), "nn.fractional_pool.shape", "fit each axis"),
    (lambda: F.max_unpool2d(IMAGE, weft.ones((1, 2)), 2), "nn.max_unpool.shape", "equal shapes"),
    (lambda: F.max_unpool2d(IMAGE, weft.full((1, 2, 4, 4), 999), 2), "nn.max_unpool.index", "output_size"),
    (lambda: weft.random.hypergeometric(2, 2, 9), "random.hypergeometric.range", "nsample at most"),
    (lambda: weft.random.triangular(3.0, 1.0, 2.0), "random.triangular.range", "out of order"),
    (lambda: weft.random.vonmises(0.0, -1.0), "random.vonmises.range", "negative kappa"),
    (lambda: weft.random.zipf(1.0), "random.zipf.range", "a above 1"),
    (lambda: weft.random.logseries(2.0), "random.logseries.range", "above 0"),
    (lambda: weft.random.weibull(-1.0), "random.weibull.range", "not positive"),
]  # fmt: skip


@pytest.mark.parametrize("call, slug, words", REFUSED, ids=[r[1] for r in REFUSED])
def test_refusals(call, slug, words):
    with pytest.raises(weft.Error) as caught:
        call()
    assert caught.value.code == slug and words in str(caught.value), str(caught.value)


def test_lists_that_do_not_fit_keep_their_errors():
    with pytest.raises(weft.DTypeError) as caught:
        weft.exp(["a"])
    assert caught.value.code == "array.exp.array" and "list" in str(caught.value)
    with pytest.raises(weft.DTypeError) as caught:
        weft.mean([1.0], unknown=3)
    assert caught.value.code == "python.arguments" and "unknown" in str(caught.value)
    with pytest.raises(weft.ShapeError) as caught:
        weft.concat([weft.ones((2, 2)), weft.ones((1, 3))])
    assert caught.value.code == "array.concat.shape"


def test_sampling_by_torch_gradients_of_given_leaves():
    w = weft.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (first,) = weft.autograd.grad((w**3).sum(), w, create_graph=True)
    (second,) = weft.autograd.grad(first.sum(), [w])
    np.testing.assert_allclose(second.numpy(), [6.0, 12.0, 18.0])
    assert w.grad is None and nn.Module
