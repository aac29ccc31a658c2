# SPDX-License-Identifier: Apache-2.0
"""Functions, methods and layers that PyTorch's programs call by name: values and gradients are PyTorch's."""

import numpy as np
import pytest
import weft
from weft import nn
from weft.nn import functional as F

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(42)


def real(*shape):
    return RNG.standard_normal(shape).astype("float32")


X, Y, V, S, IMG = real(3, 5), real(3, 5), real(7), real(4, 4), real(2, 3, 7, 6)
P = S @ S.T + 4 * np.eye(4, dtype="float32")
B3 = real(2, 4, 4)
C = (real(3, 5) + 1j * real(3, 5)).astype("complex64")
W = RNG.integers(-8, 9, (3, 5))
M = X > 0
AT = np.array([2, 0, 2])
IDX = RNG.integers(0, 3, (3, 5))
GRID = RNG.uniform(-1.3, 1.3, (2, 4, 5, 2)).astype("float32")
VOL, GRID3 = real(1, 2, 4, 3, 5), RNG.uniform(-1.2, 1.2, (1, 2, 3, 2, 3)).astype("float32")
TAPS = real(3, 6, 2)
L = np.linalg.cholesky(P).astype("float32")
WAVE = real(2, 90)
DATA = {k: v for k, v in globals().items() if isinstance(v, np.ndarray)}

# Expressions of T (torch, or weft), F (functional of layers) and arrays; "~" first: gradients of floats are compared as well.
EXPRESSIONS = """
~T.adjoint(X) ; ~T.complex(X, Y) ; ~T.polar(T.exp(X), Y) ; T.view_as_real(C) ; T.view_as_complex(T.stack([X, Y], -1))
~T.cummax(X, 1)[0] ; ~T.cummin(X, 0)[0] ; T.cummax(W, 0)[1] ; T.cummin(W, 1)[1] ; T.mode(W, 1)[0] ; ~T.renorm(X, 2, 0, 1.0)
~T.chain_matmul(X, X.T, Y) ; T.cholesky_inverse(L) ; T.cholesky_solve(X.T[:4], L) ; T.lu_unpack(*T.linalg.lu_factor(B3))[2]
T.linalg.lu(B3)[0] ; T.linalg.lu_factor(B3)[0] ; T.linalg.lu_factor(B3)[1] ; T.linalg.lu_solve(*T.linalg.lu_factor(B3), B3)
T.inverse(P) ; T.det(P) ; T.pinverse(X) ; T.matrix_exp(S) ; T.qr(S)[1].abs() ; T.mvlgamma(T.abs(X) + 3, 2)
T.triangular_solve(S, T.triu(P))[0] ; T.nuclear_norm(X) ; ~T.frobenius_norm(X) ; T.geqrf(P)[0] ; T.orgqr(*T.geqrf(P))
T.ormqr(*T.geqrf(P), S) ; T.ormqr(*T.geqrf(P), S, False, True) ; T.linalg.householder_product(*T.geqrf(P)) ; T.linalg.vander(V)
T.linalg.inv_ex(P)[1] ; T.linalg.cholesky_ex(P)[0]
~T.diagonal_scatter(S, V[:4]) ; ~T.diagonal_scatter(S, V[:3], 1) ; ~T.select_scatter(X, V[:3], 1, 2) ; T.slice_scatter(X, Y[:, :2], 1, 1, 3, 1)
~T.index_copy(X, 0, AT[:2], Y[:2]) ; ~T.index_put(X, (AT,), Y, True) ; ~T.index_put(X, (AT[1:],), Y[:2]) ; ~T.masked_scatter(X, M, Y)
~T.scatter_reduce(X, 0, IDX, Y, "sum") ; ~T.scatter_reduce(X, 0, IDX, Y, "mean") ; T.scatter_reduce(X, 0, IDX, Y, "amax")
T.scatter_reduce(X, 0, IDX, Y, "amin", include_self=False) ; T.scatter_reduce(X, 0, IDX, Y, "prod") ; T.scatter_reduce(X, 0, IDX[:2], Y, "mean", include_self=False)
T.index_reduce(X, 0, AT, Y, "prod") ; T.index_reduce(X, 0, AT, Y, "mean") ; T.index_reduce(X, 0, AT, Y, "amax", include_self=False)
~T.as_strided(X, (2, 3), (2, 1), 1) ; T.as_strided_scatter(X, Y[:2, :3], (2, 3), (5, 1), 1)
T.hann_window(9) ; T.hamming_window(8, False) ; T.blackman_window(7) ; T.bartlett_window(6) ; T.kaiser_window(9)
~T.stft(WAVE, 16, return_complex=True).abs() ; T.stft(WAVE, 20, 6, 15, T.hann_window(15), return_complex=True)
T.stft(WAVE[0], 16, center=False, normalized=True, onesided=False, return_complex=True)
T.istft(T.stft(WAVE, 16, window=T.hann_window(16), return_complex=True), 16, window=T.hann_window(16))
T.istft(T.stft(WAVE, 16, window=T.hann_window(16), return_complex=True), 16, window=T.hann_window(16), length=80)
T.fft.hfft2(C) ; T.fft.ihfft2(X) ; T.fft.hfftn(C) ; T.fft.ihfftn(X)
~T.conv1d(WAVE[:, None], X[:, None]) ; ~T.conv2d(IMG, real4) ; ~T.cosine_similarity(X, Y) ; ~T.pairwise_distance(X, Y) ; ~T.pdist(X)
T.pdist(X, 1) ; ~T.celu(X) ; ~T.selu(X) ; ~T.hardshrink(X) ; ~T.group_norm(IMG, 3) ; ~T.max_pool2d(IMG, 2)
T.batch_norm(X, None, None, T.abs(V[:5]), T.abs(V[:5]) + 1, False, 0.1, 1e-5, False) ; T.pixel_shuffle(VOL.reshape((2, 4, 3, 5)), 2)
~T.margin_ranking_loss(X, Y, T.sign(X), 0.1, 1) ; ~T.threshold(X, 0.1, 2.0) ; ~T.poisson_nll_loss(X, T.abs(Y), True, False, 1e-8, 1)
T.constant_pad_nd(X, (1, 2), 3.0) ; ~T.rsub(X, Y) ; T.range(1, 4) ; T.scalar_tensor(3.0) ; T.is_nonzero(T.ones(1)) ; T.is_same_size(X, Y)
~T.lstm_cell(X, (Y, X), real20, real20)[0] ; ~T.gru_cell(X, Y, real15, real15) ; ~T.rnn_tanh_cell(X, Y, real5, real5)
X.angle() ; ~X.digamma() ; (X * 0.2).erfinv() ; X.sgn() ; X.signbit() ; W.gcd(W + 3) ; X.heaviside(Y) ; X.is_signed() ; X.logical_not()
X.matrix_power(2) if X.shape[0] == X.shape[1] else P.matrix_power(2) ; P.slogdet()[1] ; P.mH ; P.H ; X.itemsize if 0 else X.element_size()
~X.lgamma() ; X.float_power(2.0) ; ~X.fmax(Y) ; ~X.logaddexp2(Y) ; X.frexp()[0] ; X.ldexp(AT[0]) ; X.corrcoef() ; X.histc(4, -1, 1)
~F.grid_sample(IMG, GRID) ; ~F.grid_sample(IMG, GRID, "bilinear", "border", True) ; ~F.grid_sample(IMG, GRID, "bilinear", "reflection")
~F.grid_sample(IMG, GRID, "bilinear", "reflection", True) ; F.grid_sample(IMG, GRID, "nearest") ; F.grid_sample(IMG, GRID, "nearest", "border", True)
~F.grid_sample(IMG, GRID, "bicubic") ; F.grid_sample(IMG, GRID, "bicubic", "border") ; F.grid_sample(IMG, GRID, "bicubic", "reflection", True)
~F.grid_sample(VOL, GRID3) ; F.grid_sample(VOL, GRID3, "nearest", "reflection") ; ~F.affine_grid(B3[:, :2, :3], (2, 3, 5, 4))
F.affine_grid(B3[:1, :3, :4], (1, 2, 3, 4, 5), True) ; ~F.max_pool2d_with_indices(IMG, 3, 2, 1)[0] ; F.max_pool2d_with_indices(IMG, 3, 2, 1)[1]
F.max_pool1d_with_indices(WAVE, 4)[1] ; F.max_pool3d_with_indices(VOL, 2)[1] ; F.adaptive_max_pool2d_with_indices(IMG, (3, 2))[1]
~F.max_unpool2d(*F.max_pool2d_with_indices(IMG, 2), 2) ; F.max_unpool1d(*F.max_pool1d_with_indices(WAVE, 2), 2)
F.max_unpool2d(*F.max_pool2d_with_indices(IMG, 2), 2, output_size=(7, 6))
F.fractional_max_pool2d(IMG, 2, (3, 3), _random_samples=T.abs(T.tanh(IMG[:, :, 0, :2])))
F.fractional_max_pool3d(VOL, 2, (2, 1, 3), _random_samples=T.abs(T.tanh(VOL[:, :, 0, 0, :3])))
F.conv_tbc(IMG[0], TAPS, V[:2])
F.upsample_nearest(IMG, scale_factor=2) ; F.upsample_bilinear(IMG, scale_factor=2) ; F.max_pool2d(IMG, kernel_size=2, stride=2)
F.leaky_relu(X, negative_slope=0.2, inplace=False) ; F.interpolate(input=IMG, scale_factor=2.0) ; F.relu(X, inplace=False)
"""
CASES = [e.strip() for e in EXPRESSIONS.replace("\n", ";").split(";") if e.strip()]
MORE = {
    "real4": real(4, 3, 2, 2),
    "real20": real(20, 5),
    "real15": real(15, 5),
    "real5": real(5, 5),
}


def plain(value):
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value.detach().numpy() if hasattr(value, "detach") else value


def close(got, want):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for a, b in zip(got, want):
            close(a, b)
    else:
        got, want = np.asarray(got), np.asarray(want)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


def differentiated(text, names, T, functional, make):
    tensors = {}
    for k, v in names.items():
        x = make(v)
        if v.dtype == np.float32:
            x.requires_grad = True
        tensors[k] = x
    out = eval(text, {"T": T, "F": functional, "np": np, **tensors})
    if isinstance(out, (tuple, list)):
        out = out[0]
    total = (out.abs() ** 2).sum() if out.is_complex() else (out * out).sum()
    total.backward()
    return {k: np.zeros_like(names[k]) if x.grad is None else plain(x.grad) for k, x in tensors.items() if names[k].dtype == np.float32}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", CASES)
def test_expression(text):
    names = {k: v for k, v in {**DATA, **MORE}.items() if k in text}
    own = {k: weft.tensor(v) for k, v in names.items()}
    theirs = {k: torch.tensor(v) for k, v in names.items()}
    short = text.lstrip("~")
    got = eval(short, {"T": weft, "F": F, "np": np, **own})
    want = eval(short, {"T": torch, "F": torch.nn.functional, "np": np, **theirs})
    close(plain(got), plain(want))
    if text[0] == "~":
        one = differentiated(short, names, weft, F, weft.tensor)
        two = differentiated(short, names, torch, torch.nn.functional, torch.tensor)
        for k in one:
            np.testing.assert_allclose(one[k], two[k], rtol=2e-3, atol=2e-4, err_msg=k)


IN_PLACE = {
    "atan2_": [Y], "bitwise_and_": [W], "bitwise_or_": [W], "bitwise_xor_": [W], "bitwise_not_": [], "copysign_": [Y], "eq_": [Y],
    "fmod_": [Y], "gcd_": [W], "hypot_": [Y], "index_add_": [0, AT, Y], "index_copy_": [0, AT[:2], Y[:2]], "index_fill_": [0, AT, 2.0],
    "lcm_": [W], "lerp_": [Y, 0.3], "masked_fill_": [M, 3.0], "masked_scatter_": [M, Y], "remainder_": [Y], "renorm_": [2, 0, 1.0],
    "scatter_": [0, IDX, Y], "scatter_add_": [0, IDX, Y], "scatter_reduce_": [0, IDX, Y, "sum"], "xlogy_": [np.abs(Y)], "addcdiv_": [X, np.abs(Y) + 1],
    "addcmul_": [X, Y], "clamp_max_": [0.3], "clamp_min_": [0.1], "clip_": [-0.2, 0.4], "clamp_": [-0.2, 0.4], "cumsum_": [1], "cumprod_": [1],
    "floor_divide_": [Y], "float_power_": None, "ge_": [Y], "heaviside_": [Y], "ldexp_": [W], "le_": [Y], "nextafter_": [Y], "pow_": [2], "sub_": [Y],
    "arctan2_": [Y], "greater_": [Y], "greater_equal_": [Y], "less_": [Y], "less_equal_": [Y], "lt_": [Y], "gt_": [Y], "ne_": [Y], "not_equal_": [Y],
    "logical_and_": [Y], "logical_or_": [Y], "logical_xor_": [Y], "add_": [Y], "mul_": [Y], "div_": [Y], "subtract_": [Y], "multiply_": [Y],
    "divide_": [Y], "true_divide_": [Y], "fill_": [2.0], "copy_": [Y], "zero_": [], "index_put_": [(AT,), Y, True], "put_": [AT, Y[0, :3]],
    "bitwise_left_shift_": [np.abs(W) % 3], "bitwise_right_shift_": [np.abs(W) % 3], "index_reduce_": [0, AT, Y, "amax"], "fill_diagonal_": [2.0],
    "logit_": [1e-3], "mvlgamma_": None, "addmm_": None, "addbmm_": None, "addmv_": None, "addr_": None, "baddbmm_": None, "bernoulli_": None,
    "uniform_": None, "normal_": None, "round_": [], "nan_to_num_": [], "fix_": [],
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", sorted(weft._methods.inplace.IN_PLACE | {"put_", "fill_diagonal_"})
)
def test_in_place(name):
    more = IN_PLACE.get(name, [])
    if more is None or not hasattr(torch.Tensor, name):
        assert callable(getattr(weft.Tensor, name))
        return
    whole = any(k in name for k in ("bitwise", "gcd", "lcm"))
    start = np.abs(W) + 1 if whole else np.clip(np.abs(X), 0.05, 0.95) if name in ("erfinv_", "logit_", "acos_", "atanh_", "arctanh_", "digamma_", "lgamma_") else X  # fmt: skip
    own, theirs = weft.tensor(start), torch.tensor(start)
    pick = lambda f, a: (
        tuple(f(i) for i in a) if isinstance(a, tuple) else f(a) if isinstance(a, np.ndarray) else a
    )  # noqa: E731
    back = getattr(own, name)(*[pick(weft.tensor, a) for a in more])
    getattr(theirs, name)(*[pick(torch.tensor, a) for a in more])
    assert back is own
    np.testing.assert_allclose(own.numpy(), theirs.numpy(), rtol=2e-4, atol=2e-5)
    array = weft.asarray(start.copy())
    assert getattr(array, name)(*[pick(weft.asarray, a) for a in more]) is array
    np.testing.assert_allclose(array.numpy(), theirs.numpy(), rtol=2e-4, atol=2e-5)


def test_what_would_change_shapes():
    x = weft.tensor(X)
    with pytest.raises(weft.ArgumentError) as caught:
        x.unsqueeze_(0)
    assert caught.value.code == "tensor.inplace.shape" and "unsqueeze(dim)" in str(caught.value)
    with pytest.raises(weft.ArgumentError) as caught:
        x.to_sparse()
    assert caught.value.code == "tensor.foreign" and "dense" in str(caught.value)
    with pytest.raises(weft.ShapeError) as caught:
        weft.tensor(IMG).H
    assert caught.value.code == "array.H.shape" and "mH" in str(caught.value)


def test_lazy_layers_become_plain():
    model = nn.Sequential(
        nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2)
    )
    assert tuple(model(weft.tensor(IMG)).shape) == (2, 2)
    assert [type(m) for m in model.children()][::4] == [nn.Conv2d, nn.Linear]
    assert len(model.parameters()) == 6
    with pytest.raises(weft.ShapeError) as caught:
        nn.LazyConv3d(2, 3)(weft.tensor(X))
    assert caught.value.code == "nn.lazy.shape" and "LazyConv3d" in str(caught.value)


def test_reparametrized_weights():
    layer = nn.Linear(5, 4)
    want = layer(weft.tensor(X)).numpy()
    nn.utils.weight_norm(layer)
    np.testing.assert_allclose(layer(weft.tensor(X)).detach().numpy(), want, rtol=1e-5, atol=1e-6)
    assert sorted(layer.named_parameters().keys()) == ["bias", "weight_g", "weight_v"]
    layer(weft.tensor(X)).sum().backward()
    assert layer.weight_g.grad is not None and tuple(layer.weight_g.shape) == (1, 4)
    nn.utils.remove_weight_norm(layer)
    assert sorted(layer.named_parameters().keys()) == ["bias", "weight"]
    nn.utils.spectral_norm(layer, n_power_iterations=50)
    assert abs(float(weft.linalg.svdvals(layer.weight.detach().data)[0]) - 1) < 1e-3
    with pytest.raises(weft.ArgumentError) as caught:
        nn.utils.remove_weight_norm(nn.Linear(2, 2))
    assert caught.value.code == "nn.utils.norm" and "not reparametrized" in str(caught.value)
    with pytest.raises(weft.ArgumentError) as caught:
        nn.utils.weight_norm(layer, "scale")
    assert caught.value.code == "nn.utils.parameter" and "'scale'" in str(caught.value)


def test_fused_convolution_and_norm():
    conv, bn = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
    bn(conv(weft.tensor(IMG)))
    bn.eval()
    fused = nn.utils.fuse_conv_bn_eval(conv, bn)
    want = bn(conv(weft.tensor(IMG))).detach().numpy()
    np.testing.assert_allclose(fused(weft.tensor(IMG)).detach().numpy(), want, rtol=1e-4, atol=1e-5)


def test_adaptive_softmax_sums_to_one():
    layer = nn.AdaptiveLogSoftmaxWithLoss(5, 12, [3, 7])
    x = weft.tensor(X)
    np.testing.assert_allclose(
        np.exp(layer.log_prob(x).detach().numpy()).sum(1), np.ones(3), rtol=1e-5
    )
    out, loss = layer(x, weft.asarray([0, 5, 11]))
    np.testing.assert_allclose(float(loss), -out.detach().numpy().mean(), rtol=1e-5)
    with pytest.raises(weft.ArgumentError) as caught:
        nn.AdaptiveLogSoftmaxWithLoss(5, 12, [7, 3])
    assert caught.value.code == "nn.adaptive_softmax.cutoffs" and "ascending" in str(caught.value)
    with pytest.raises(weft.ArgumentError) as caught:
        nn.DataParallel(layer)
    assert caught.value.code == "nn.data_parallel" and "distributed" in str(caught.value)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_finds_the_least_squares(search):
    a, b = weft.tensor(P), weft.tensor(V[:4])
    x = weft.tensor(np.zeros(4, "float32"), requires_grad=True)
    opt = weft.optim.LBFGS([x], lr=1.0 if search else 0.5, max_iter=60, line_search_fn=search)

    def closure():
        opt.zero_grad()
        loss = ((a @ x - b) ** 2).sum()
        loss.backward()
        return loss

    for _ in range(4):
        opt.step(closure)
    np.testing.assert_allclose(x.detach().numpy(), np.linalg.solve(P, V[:4]), rtol=2e-2, atol=2e-3)
    with pytest.raises(weft.ArgumentError) as caught:
        opt.step()
    assert caught.value.code == "optim.lbfgs.closure" and "closure" in str(caught.value)
    with pytest.raises(weft.ArgumentError) as caught:
        weft.optim.LBFGS([x], line_search_fn="fast")
    assert caught.value.code == "optim.lbfgs.search" and "'fast'" in str(caught.value)


@pytest.mark.parametrize("kept", [1, 2, 3, 20])
def test_lbfgs_remembers_the_last_steps(kept):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    a, start = rng.standard_normal((9, 9)), rng.standard_normal(9)
    a = a @ a.T + np.eye(9)

    def found(make, optimizer, count):
        x = make(start)
        opt = optimizer([x], lr=0.1, max_iter=count, history_size=kept)

        def closure():
            opt.zero_grad()
            loss = (x @ make(a, False) * x).sum() + (x**4).sum()
            loss.backward()
            return loss

        opt.step(closure)
        return x.detach().numpy()

    for count in (3, 6, 9):
        ours = found(lambda v, g=True: weft.tensor(v, requires_grad=g), weft.optim.LBFGS, count)
        theirs = found(lambda v, g=True: torch.tensor(v, requires_grad=g), torch.optim.LBFGS, count)
        np.testing.assert_allclose(ours, theirs, rtol=1e-7)


def test_states():
    weft.manual_seed(3)
    state = weft.get_rng_state()
    first = weft.rand(4).numpy()
    with weft.fork_rng():
        weft.rand(9)
    weft.set_rng_state(state)
    assert (weft.rand(4).numpy() == first).all() and weft.initial_seed() == 3
    one, two = (weft.randn(3, generator=weft.Generator().manual_seed(5)).numpy() for _ in range(2))
    assert (one == two).all()
    with pytest.raises(weft.ArgumentError) as caught:
        weft.set_rng_state(weft.ones(3))
    assert caught.value.code == "random.state" and "16 bytes" in str(caught.value)
    assert weft.is_grad_enabled()
    with weft.set_grad_enabled(False):
        assert not weft.is_grad_enabled()
    with weft.inference_mode():
        assert not (weft.tensor(X, requires_grad=True) * 2).requires_grad
    assert weft.is_grad_enabled() and weft.get_default_dtype() == weft.float32
    assert weft.float == weft.float32 and weft.long == weft.int64 and weft.half == weft.float16


def test_on_another_device_compiled_and_batched():
    calls = [
        lambda x: weft.cummax(x, 1)[0], lambda x: weft.renorm(x, 2, 0, 1.0), lambda x: weft.slice_scatter(x, x[:, :2] * 2, 1, 1, 3),
        lambda x: weft.pdist(x), lambda x: x.logaddexp2(x * 2), lambda x: weft.real(weft.polar(x, x)), lambda x: weft.nancumprod(x, 1),
    ]  # fmt: skip
    for call in calls:
        want = call(weft.asarray(X)).numpy()
        np.testing.assert_allclose(
            call(weft.asarray(X, device="ref")).numpy(), want, rtol=1e-4, atol=1e-5
        )
        np.testing.assert_allclose(
            weft.compile(call)(weft.asarray(X)).numpy(), want, rtol=1e-4, atol=1e-5
        )
    rows = weft.vmap(lambda r: weft.cummax(r, 0)[0])(weft.asarray(X))
    np.testing.assert_allclose(rows.numpy(), np.maximum.accumulate(X, 1))


def test_layers_under_older_names():
    image, labels = weft.tensor(IMG), weft.asarray(RNG.integers(0, 3, (2, 7, 6)))
    plain = nn.NLLLoss()(weft.log(F.softmax(image, 1)), labels)
    assert float(nn.NLLLoss2d()(weft.log(F.softmax(image, 1)), labels)) == float(plain)
    np.testing.assert_array_equal(
        nn.CrossMapLRN2d(2)(image).numpy(), nn.LocalResponseNorm(2)(image).numpy()
    )
    one, two = nn.BatchNorm2d(3), nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(3))
    assert isinstance(two, nn.SyncBatchNorm)
    np.testing.assert_array_equal(two(image).detach().numpy(), one(image).detach().numpy())
    pooled, at = nn.functional.max_pool2d(image, 2, return_indices=True)
    assert tuple(nn.MaxUnpool2d(2)(pooled, at).shape) == (2, 3, 6, 6)
    assert tuple(nn.FractionalMaxPool2d(2, output_size=(3, 2))(image).shape) == (2, 3, 3, 2)
    mean, var = weft.zeros(3), weft.ones(3)
    F.batch_norm(image, mean, var, training=True, momentum=0.5)
    np.testing.assert_allclose(mean.numpy(), IMG.mean((0, 2, 3)) * 0.5, rtol=1e-4, atol=1e-6)


def test_the_largest_eigenvalues():
    """PyTorch's begin at random and may end at others; ours are all computed."""
    p = DATA["P"] if "P" in DATA else MORE["P"]
    values, vectors = weft.lobpcg(weft.tensor(p), 2)
    np.testing.assert_allclose(values.numpy(), np.linalg.eigvalsh(p)[::-1][:2], rtol=2e-4)
    np.testing.assert_allclose(
        p @ vectors.numpy(), vectors.numpy() * values.numpy(), rtol=2e-3, atol=2e-4
    )
