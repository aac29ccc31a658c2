# SPDX-License-Identifier: Apache-2.0
"""Arrays where PyTorch's users have tensors: their methods, functions of weft.nn.functional, and layers."""

import numpy as np
import pytest

import weft
from weft import _methods, nn

F = nn.functional
RNG = np.random.default_rng(20261123)


def draw(*shape):
    return weft.asarray(RNG.standard_normal(shape).astype("float32"))


X2, X3, X4, X5 = draw(6, 4), draw(2, 4, 8), draw(2, 4, 8, 8), draw(1, 2, 4, 4, 4)
Y = weft.asarray(RNG.integers(0, 4, 6))
ONES, SIGNS = weft.ones((6, 4)), weft.asarray([1.0, -1, 1, -1, 1, 1])
PART = X2.softmax()
FUNCTIONS = {
    "conv1d": (X3, draw(3, 4, 3), draw(3)), "conv2d": (X4, draw(3, 4, 3, 3)), "conv3d": (X5, draw(3, 2, 2, 2, 2)),
    "conv_transpose1d": (X3, draw(4, 3, 3)), "conv_transpose2d": (X4, draw(4, 3, 3, 3)), "conv_transpose3d": (X5, draw(2, 3, 2, 2, 2)),
    "batch_norm": (X4, weft.zeros(4), weft.ones(4)), "layer_norm": (X4, (8,)), "group_norm": (X4, 2, draw(4), draw(4)), "instance_norm": (X4,),
    "local_response_norm": (X4, 2), "rms_norm": (X4, (8,)), "normalize": (X4,), "linear": (X2, draw(4, 3), draw(3)),
    "bilinear": (X2, X2, draw(5, 4, 4)), "embedding": (Y, draw(9, 3)), "embedding_bag": (Y.reshape(2, 3), draw(9, 3)), "one_hot": (Y,),
    "cross_entropy": (X2, Y), "nll_loss": (X2, Y), "mse_loss": (X2, ONES), "l1_loss": (X2, ONES), "smooth_l1_loss": (X2, ONES),
    "huber_loss": (X2, ONES), "kl_div": (X2, PART), "binary_cross_entropy": (PART, PART), "binary_cross_entropy_with_logits": (X2, PART),
    "cosine_similarity": (X2, ONES), "pairwise_distance": (X2, ONES), "cosine_embedding_loss": (X2, ONES, SIGNS),
    "margin_ranking_loss": (X2, ONES, ONES), "triplet_margin_loss": (X2, ONES, PART), "hinge_embedding_loss": (X2, ONES), "mse": (X2, ONES),
    "multi_margin_loss": (X2, Y), "multilabel_soft_margin_loss": (X2, ONES), "soft_margin_loss": (X2, ONES), "gaussian_nll_loss": (X2, ONES, ONES),
    "poisson_nll_loss": (X2, ONES), "max_pool1d": (X3, 2), "max_pool2d": (X4, 2), "max_pool3d": (X5, 2), "avg_pool1d": (X3, 2),
    "avg_pool2d": (X4, 2), "avg_pool3d": (X5, 2), "lp_pool1d": (X3, 2, 2), "lp_pool2d": (X4, 2, 2), "lp_pool3d": (X5, 2, 2), "adaptive_avg_pool1d": (X3, 2),
    "adaptive_avg_pool2d": (X4, 2), "adaptive_avg_pool3d": (X5, 2), "adaptive_max_pool1d": (X3, 2), "adaptive_max_pool2d": (X4, 2),
    "adaptive_max_pool3d": (X5, 2), "interpolate": (X4, None, 2), "pad": (X4, (1, 1)), "unfold": (X4, 2), "fold": (draw(2, 16, 9), (4, 4), 2),
    "pixel_shuffle": (X4, 2), "pixel_unshuffle": (X4, 2), "channel_shuffle": (X4, 2), "scaled_dot_product_attention": (X4, X4, X4),
    "prelu": (X4, draw(4)), "glu": (X4, 1), "threshold": (X4, 0.0, 1.0), "multilabel_margin_loss": (X2, weft.asarray([[1, -1, 0, 0]] * 6)),
    **{f"adaptive_max_pool{n}d_with_indices": (x, 2) for n, x in ((1, X3), (2, X4), (3, X5))},
    **{f"max_pool{n}d_with_indices": (x, 2) for n, x in ((1, X3), (2, X4), (3, X5))},
    **{f"max_unpool{n}d": (x, weft.zeros(x.shape, dtype="int64"), 2) for n, x in ((1, X3), (2, X4), (3, X5))},
    **{f"fractional_max_pool2d{more}": (X4, 2, 3, None, False, weft.zeros((2, 4, 2))) for more in ("", "_with_indices")},
    **{f"fractional_max_pool3d{more}": (X5, 2, 2, None, False, weft.zeros((1, 2, 3))) for more in ("", "_with_indices")},
    "affine_grid": (draw(2, 2, 3), (2, 3, 4, 5)), "grid_sample": (X4, draw(2, 3, 3, 2)), "conv_tbc": (X3, draw(2, 8, 3), draw(3)),
    "native_channel_shuffle": (X4, 2), "threshold_": (X4 * 1, 0.0, 1.0), "upsample": (X4, None, 2), "upsample_bilinear": (X4, None, 2),
    "upsample_nearest": (X4, None, 2), "pdist": (X2,), "multi_head_attention_forward": None,
    "triplet_margin_with_distance_loss": (X2, ONES, PART), "attention": None, "ctc_loss": None, "dequantize_weight": None,
    "grouped_linear": None, "quantize_weight": None, "quantized_linear": None, "scaled_mm": None,
}  # fmt: skip
# None: functions of arrays of their own kind, tested where they are.
RANDOM = {"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "gumbel_softmax", "rrelu"}  # fmt: skip


def tensors(values):
    return [_methods.of_arrays.constant(v) for v in values]


def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize(
    "name", sorted(n for n in set(F.__all__) - RANDOM if FUNCTIONS.get(n, ()) is not None)
)
def test_functions_of_arrays(name):
    arguments = FUNCTIONS.get(name, (X4,))
    want, got = (flat(getattr(F, name)(*a)) for a in (tensors(arguments), arguments))
    assert all(isinstance(g, weft.NDArray) for g in got) and len(want) == len(got)
    for w, g in zip(want, got):
        np.testing.assert_array_equal(np.asarray(g), w.numpy())


def test_one_tensor_makes_the_result_a_tensor():
    weight = nn.Parameter(draw(3, 4, 3, 3))
    F.conv2d(X4, weight).sum().backward()
    assert weight.grad.shape == weight.shape
    loss = F.cross_entropy(weft.Tensor(X2), Y)
    assert isinstance(loss, weft.Tensor) and loss.requires_grad


LAYERS = {
    "conv": (nn.Conv2d(4, 3, 3), X4), "norm": (nn.BatchNorm2d(4), X4), "layer norm": (nn.LayerNorm(8), X4), "linear": (nn.Linear(4, 3), X2),
    "pool": (nn.MaxPool2d(2), X4), "lstm": (nn.LSTM(8, 5), X3), "flatten": (nn.Flatten(), X4), "softmax": (nn.Softmax(1), X4),
    "chain": (nn.Sequential(nn.Conv2d(4, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 2)), X4), "embedding": (nn.Embedding(4, 3), Y),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_arrays(name):
    layer, x = LAYERS[name]
    got, want = flat(layer(x))[0], flat(layer(*tensors([x])))[0]
    assert isinstance(got, weft.Tensor)
    np.testing.assert_array_equal(got.numpy(), want.numpy())
    if list(layer.parameters()):
        got.sum().backward()
        assert all(p.grad is not None for p in layer.parameters() if "hh" not in str(p.shape))


SHARED = _methods.members(_methods.OF_ARRAYS[-1])
# None: other operands are needed; the adapter is the same.
POSITIONS = weft.asarray([[0, 1, 0, 2], [1, 1, 2, 0]])
ARGUMENTS = {
    **dict.fromkeys("add sub mul div pow eq ne lt le gt ge maximum minimum atan2 hypot remainder floor_divide copysign logaddexp".split(), (ONES,)),
    **dict.fromkeys("subtract multiply divide true_divide greater greater_equal less less_equal not_equal fmod xlogy dist expand_as".split(), (ONES,)),
    **dict.fromkeys("equal isclose allclose type_as reshape_as view_as".split(), (ONES,)),
    **dict.fromkeys("matmul mm kron".split(), (draw(4, 2),)), "bmm": (draw(6, 4, 2),), "inner": (draw(3, 4),), "mv": (draw(4),),
    **dict.fromkeys("outer ger vdot addcmul_ addcdiv_".split(), None), "addmm": (draw(6, 2), draw(2, 4)), "addmv": None, "addr": None,
    "addbmm": (draw(2, 6, 2), draw(2, 2, 4)), "baddbmm": None, "addcmul": (ONES, ONES), "addcdiv": (ONES, ONES), "lerp": (ONES, 0.25), "as_strided_scatter": (weft.ones((2, 2)), (2, 2), (4, 1), 1),
    "masked_fill": (X2 > 0, 2.0), "masked_select": (X2 > 0,), "clamp": (-1, 1), "clamp_min": (0,), "clamp_max": (0,), "unsqueeze": (0,),
    "split": (2, 1), "split_with_sizes": ([1, 3], 1), "chunk": (2,), "narrow": (1, 1, 2), "expand": (3, 6, 4), "select": (1, 2),
    "view": (4, 6), "unflatten": (1, (2, 2)), "unfold": (1, 2, 1), "tensor_split": (3,), "sum_to_size": (1, 4), "moveaxis": (0, 1),
    "movedim": (0, 1), "roll": (1,), "index_select": (1, weft.asarray([2, 0])), "gather": (0, POSITIONS), "topk": (2,), "swapdims": (0, 1),
    "index_fill": (1, weft.asarray([2, 0]), 5.0), "scatter_add": (0, POSITIONS, ONES), "scatter": (0, POSITIONS, ONES), "tile": (2, 1),
    "index_add": (1, weft.asarray([2, 0]), draw(6, 2)), "take_along_dim": (POSITIONS, 0), "repeat_interleave": (2,), "kthvalue": (2,),
    "bincount": None, "register_hook": None, "quantile": (0.3,), "cross": (ONES[:, :3],), "logical_and": None, "logical_or": None, "logical_xor": None,
    "to": None, "cuda": None, "type": (weft.float64,), "new_full": ((2,), 3.0), "new_tensor": ([1.0],), "new_zeros": (2,), "new_ones": (2,),
    "new_empty": None, "bernoulli": None, "cumprod": (1,), "logcumsumexp": (1,), "swapaxes": (0, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(n for n in SHARED if ARGUMENTS.get(n, ()) is not None))
def test_methods_of_arrays(name):
    """Each gives what the method of the tensor gives, as an array."""
    arguments = ARGUMENTS.get(name, ())
    x = X2[:, :3] if name == "cross" else PART if name in ("logit", "atanh", "acosh") else X2
    want = flat(getattr(weft.Tensor(x, requires_grad=False), name)(*arguments))
    got = flat(getattr(x, name)(*arguments))
    assert len(want) == len(got) and not any(isinstance(g, weft.Tensor) for g in got)
    for w, g in zip(want, got):
        if isinstance(w, (weft.Tensor, weft.NDArray)):
            np.testing.assert_array_equal(np.asarray(g), np.asarray(w.numpy()))
        else:
            assert g == w


@pytest.mark.parametrize("name", ["exp_", "clip_", "masked_fill_", "tril_", "abs_"])
def test_changes_in_place_are_written_through(name):
    x = X2.copy()
    view = x[1:3]
    arguments = {"clip_": (-0.5, 0.5), "masked_fill_": (view > 0, 9.0)}.get(name, ())
    want = getattr(view, name[:-1])(*arguments)
    assert getattr(view, name)(*arguments) is view
    np.testing.assert_array_equal(np.asarray(x[1:3]), np.asarray(want))
    np.testing.assert_array_equal(np.asarray(x[3:]), np.asarray(X2[3:]))


def test_what_numpy_means_stands():
    x = X2.copy()
    assert x.sort() is None
    np.testing.assert_array_equal(np.asarray(x), np.sort(np.asarray(X2)))
    cube = RNG.standard_normal((3, 4, 5))
    ours = weft.asarray(cube)
    for arguments in ((), (1,), (-1, 1, 2), (0, 2, 0)):
        np.testing.assert_array_equal(
            np.asarray(ours.diagonal(*arguments)), cube.diagonal(*arguments)
        )
        np.testing.assert_allclose(
            np.asarray(ours.trace(*arguments)), cube.trace(*arguments), rtol=1e-12
        )
    assert ours.tobytes() == cube.tobytes() and ours.detach() is ours
    turned = ours.permute(2, 1, 0).contiguous()
    assert turned.is_contiguous() and ours.contiguous() is ours
    np.testing.assert_array_equal(np.asarray(turned), cube.T)
    np.testing.assert_allclose(
        np.asarray(ours.logsumexp((0, 2))), np.log(np.exp(cube).sum((0, 2))), rtol=1e-12
    )


def test_parts_of_complex_tensors():
    z = weft.Tensor(np.array([1 + 2j, 3 - 1j], "complex64"), requires_grad=False)
    assert (
        z.real.tolist() == [1, 3]
        and z.imag.tolist() == [2, -1]
        and z.conj().tolist() == [1 - 2j, 3 + 1j]
    )
    x = weft.Tensor([1.0, 2.0])
    assert x.real is x and x.conj() is x and x.imag.tolist() == [0, 0] and x.nbytes == 8
