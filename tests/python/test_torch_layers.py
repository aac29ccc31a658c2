# SPDX-License-Identifier: Apache-2.0
"""Layers and habits that programs for PyTorch bring along, beside torch itself."""

import numpy as np
import pytest

import weft
from weft import nn

torch = pytest.importorskip("torch")
F, TF = nn.functional, torch.nn.functional
RNG = np.random.default_rng(11)
IMAGES = RNG.standard_normal((2, 6, 5, 7)).astype("float32")


def _same(ours, theirs, tolerance=1e-5):
    got, expected = (
        np.asarray(x.detach().numpy() if hasattr(x, "detach") else x) for x in (ours, theirs)
    )
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def _both(*arrays):
    return [(weft.Tensor(a), torch.tensor(a, requires_grad=True)) for a in arrays]


ACTIVATIONS = "celu hardsigmoid hardswish hardtanh logsigmoid mish relu6 selu softsign".split()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_and_their_gradients(name):
    ((x, t),) = _both(IMAGES * 3)
    ours, theirs = getattr(F, name)(x), getattr(TF, name)(t)
    _same(ours, theirs)
    (ours * ours).sum().backward()
    (theirs * theirs).sum().backward()
    _same(x.grad, t.grad, 1e-4)
    modules = {m.lower(): m for m in nn.__all__}
    _same(getattr(nn, modules[name])()(x), theirs)


def test_activations_with_arguments():
    ((x, t),) = _both(IMAGES)
    _same(F.softmin(x, dim=1), TF.softmin(t, 1))
    _same(nn.GLU(dim=1)(x), TF.glu(t, 1))
    _same(F.prelu(x, weft.Tensor(np.full(6, 0.3, "float32"))), TF.prelu(t, torch.full((6,), 0.3)))
    _same(nn.PReLU()(x), torch.nn.PReLU()(t))
    _same(nn.GELU(approximate="tanh")(x), TF.gelu(t, approximate="tanh"))
    _same(nn.Hardtanh(-0.5, 0.25)(x), TF.hardtanh(t, -0.5, 0.25))


def test_normalisation_over_groups_and_axes():
    ((x, t),) = _both(IMAGES)
    _same(F.group_norm(x, 3), TF.group_norm(t, 3))
    _same(nn.GroupNorm(2, 6)(x), torch.nn.GroupNorm(2, 6)(t))
    _same(nn.InstanceNorm2d(6)(x), torch.nn.InstanceNorm2d(6)(t))
    _same(F.layer_norm(x, (5, 7)), TF.layer_norm(t, (5, 7)))
    _same(nn.LayerNorm([6, 5, 7])(x), torch.nn.LayerNorm([6, 5, 7])(t))
    plain = nn.LayerNorm(7, elementwise_affine=False)
    _same(plain(x), torch.nn.LayerNorm(7, elementwise_affine=False)(t))
    assert plain.parameters() == []
    _same(nn.BatchNorm2d(6, affine=False)(x), torch.nn.BatchNorm2d(6, affine=False)(t))
    mean, var = RNG.random((2, 6)).astype("float32") + 0.1
    theirs = TF.batch_norm(t, torch.tensor(mean), torch.tensor(var))
    _same(F.batch_norm(x, weft.asarray(mean), weft.asarray(var)), theirs)
    for make in (lambda: nn.GroupNorm(4, 6), lambda: F.group_norm(x, 4)):
        with pytest.raises(weft.ShapeError, match="4 groups do not divide") as refused:
            make()
        assert refused.value.code == "nn.group_norm.shape"
    with pytest.raises(weft.ShapeError, match=r"over \(4, 7\) got shape") as refused:
        F.layer_norm(x, (4, 7))
    assert refused.value.code == "nn.layer_norm.shape"


@pytest.mark.parametrize(
    "size",
    [
        {"size": (8, 3)},
        {"scale_factor": 2},
        {"scale_factor": 1.5},
        {"size": 4},
        {"scale_factor": (0.5, 3)},
    ],
)
def test_images_of_other_sizes(size):
    ((x, t),) = _both(IMAGES)
    _same(F.interpolate(x, **size), TF.interpolate(t, **size))
    for corners in (False, True):
        options = {**size, "mode": "bilinear", "align_corners": corners}
        ours, theirs = nn.Upsample(**options)(x), TF.interpolate(t, **options)
        _same(ours, theirs)
        x.grad = t.grad = None
        (ours * ours).sum().backward()
        (theirs * theirs).sum().backward()
        _same(x.grad, t.grad, 1e-4)


def test_borders_and_shuffled_pixels():
    ((x, t),) = _both(IMAGES)
    for widths, mode, value in [
        ((1, 2), "constant", 0.0),
        ((1, 2, 3, 0), "constant", -np.inf),
        ((-1, 2, 0, -2), "constant", 2.0),
        ((1, 2, 3, 0), "reflect", 0.0),
        ((1, 2, 3, 0), "replicate", 0.0),
        ((1, 2, 3, 0), "circular", 0.0),
    ]:
        _same(F.pad(x, widths, mode, value), TF.pad(t, widths, mode, value))
    _same(nn.ReflectionPad2d(2)(x), torch.nn.ReflectionPad2d(2)(t))
    _same(nn.ZeroPad2d((1, 0, 2, 1))(x), torch.nn.ZeroPad2d((1, 0, 2, 1))(t))
    y = RNG.standard_normal((2, 8, 3, 4)).astype("float32")
    _same(nn.PixelShuffle(2)(weft.Tensor(y)), TF.pixel_shuffle(torch.tensor(y), 2))
    _same(nn.Unflatten(1, (2, 3))(x), torch.nn.Unflatten(1, (2, 3))(t))
    for code, text, call in [
        ("nn.pad.widths", r"by \(1,\), mode 'constant'", lambda: F.pad(x, (1,))),
        ("nn.pad.widths", "mode 'mirror'", lambda: F.pad(x, (1, 1), "mirror")),
        ("nn.interpolate.size", "size None and scale_factor None", lambda: F.interpolate(x)),
        (
            "nn.interpolate.mode",
            "no interpolation is called 'cubic'",
            lambda: F.interpolate(x, 3, mode="cubic"),
        ),
        ("nn.pixel_shuffle.shape", "a multiple of 4", lambda: F.pixel_shuffle(x, 2)),
    ]:
        with pytest.raises(weft.Error, match=text) as refused:
            call()
        assert refused.value.code == code


def test_a_border_of_any_number_around_a_tensor():
    x = weft.Tensor([[1e-8, 2.0]])
    y = weft.pad(x, ((0, 0), (1, 1)), value=-np.inf)
    assert y.tolist() == [[-np.inf, float(np.float32(1e-8)), 2.0, -np.inf]]
    weft.pad(x, 1, value=3.0).sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0]]
    assert weft.pad(weft.ones((2, 3)), (1, 2)).shape == (5, 6)
    for widths in ((1, 2, 3), 1.5):
        with pytest.raises(weft.ArgumentError, match="each axis has a pair") as refused:
            weft.pad(x, widths)
        assert refused.value.code == "array.pad.width"


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("ignore", [None, 3])
def test_losses_with_weights(reduction, smoothing, ignore):
    logits = RNG.standard_normal((9, 4)).astype("float32")
    labels, weight = RNG.integers(0, 4, 9), RNG.random(4).astype("float32")
    labels[:2] = 3, 1
    loss = nn.CrossEntropyLoss(weight, ignore, smoothing, reduction)
    theirs = TF.cross_entropy(
        torch.tensor(logits),
        torch.tensor(labels),
        torch.tensor(weight),
        ignore_index=-100 if ignore is None else ignore,
        label_smoothing=smoothing,
        reduction=reduction,
    )
    _same(loss(weft.Tensor(logits), weft.asarray(labels)), theirs)
    target = RNG.random((9, 4)).astype("float32")
    _same(
        nn.BCEWithLogitsLoss(reduction, pos_weight=weight * 3)(weft.Tensor(logits), target),
        TF.binary_cross_entropy_with_logits(
            torch.tensor(logits),
            torch.tensor(target),
            pos_weight=torch.tensor(weight * 3),
            reduction=reduction,
        ),
    )
    _same(
        nn.HuberLoss(reduction, 0.5)(weft.Tensor(logits), target),
        TF.huber_loss(torch.tensor(logits), torch.tensor(target), reduction, 0.5),
    )
    with pytest.raises(weft.ShapeError, match="4 classes need as many weights") as refused:
        F.cross_entropy(weft.Tensor(logits), labels, weight=weight[:2])
    assert refused.value.code == "nn.cross_entropy.weight"


@pytest.mark.parametrize("padding", ["same", "valid", 2, (1, 0)])
def test_paddings_of_convolutions(padding):
    ((x, t),) = _both(IMAGES)
    theirs = torch.nn.Conv2d(6, 3, 3, padding=padding)
    ours = nn.Conv2d(6, 3, 3, padding=padding)
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    _same(ours(x), theirs(t))


def test_paddings_that_no_convolution_has():
    with pytest.raises(weft.ArgumentError, match="some") as refused:
        nn.Conv2d(1, 1, 3, padding="some")
    assert refused.value.code == "nn.conv.padding"


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("mode", ["zeros", "reflect", "circular"])
def test_even_kernels_keep_the_size(axes, mode, rng):
    if mode == "reflect" and axes == 3:
        mode = "replicate"
    for kernel, dilation, groups in ((4, 1, 1), (2, 3, 2), (3, 2, 1)):
        name = f"Conv{axes}d"
        theirs = getattr(torch.nn, name)(
            4, 6, kernel, padding="same", dilation=dilation, groups=groups, padding_mode=mode
        )
        ours = getattr(nn, name)(
            4, 6, kernel, padding="same", dilation=dilation, groups=groups, padding_mode=mode
        )
        ours.load_state_dict({k: v.detach().numpy() for k, v in theirs.state_dict().items()})
        x = rng.standard_normal((2, 4, *(9, 8, 7)[:axes])).astype("float32")
        _same(ours(weft.Tensor(x)), theirs(torch.tensor(x)))
    weight = rng.standard_normal((3, 4, *(2, 3, 4)[:axes])).astype("float32")
    for padding in ("same", "valid"):
        got = getattr(nn.functional, f"conv{axes}d")(
            weft.Tensor(x), weft.Tensor(weight), padding=padding
        )
        _same(
            got,
            getattr(torch.nn.functional, f"conv{axes}d")(
                torch.tensor(x), torch.tensor(weight), padding=padding
            ),
        )


def test_parameters_change_inside_no_grad():
    """The loop of every introduction: p -= rate * p.grad. Elsewhere x += y makes a new tensor, as the graph needs."""
    net = nn.Linear(2, 3)
    before = [p.numpy().copy() for p in net.parameters()]
    net(weft.Tensor(np.ones((1, 2), "float32"))).sum().backward()
    with weft.no_grad():
        for p in net.parameters():
            p -= 0.5 * p.grad
    for old, p in zip(before, net.parameters()):
        assert np.allclose(p.numpy(), old - 0.5) and p.requires_grad and isinstance(p, nn.Parameter)
    x = weft.Tensor([1.0, 2.0])
    y = x
    y += 1.0
    assert x.tolist() == [1.0, 2.0] and y.tolist() == [2.0, 3.0] and y.requires_grad

    with weft.no_grad():
        for change, expected in [
            (lambda: x.add_(weft.asarray([1.0, 1.0]), alpha=2), [3.0, 4.0]),
            (lambda: x.mul_(2), [6.0, 8.0]),
            (lambda: x.sub_(2), [4.0, 6.0]),
            (lambda: x.div_(2), [2.0, 3.0]),
            (lambda: x.pow_(2), [4.0, 9.0]),
            (lambda: x.clamp_(5, 8), [5.0, 8.0]),
            (lambda: x.copy_(1), [1.0, 1.0]),
            (lambda: x.zero_(), [0.0, 0.0]),
            (lambda: x.fill_(7), [7.0, 7.0]),
        ]:
            assert change() is x and x.tolist() == expected
    array = weft.zeros((100,))
    view = array[::2]
    array.normal_(5.0, 0.1)
    assert 4 < float(view.mean()) < 6
    array.uniform_(1.0, 2.0)
    assert 1 <= float(weft.min(view)) <= float(weft.max(view)) < 2
    with pytest.raises(
        weft.ArgumentError, match=r"add_ would change a tensor of shape \(2,\)"
    ) as refused:
        x.add_(1)
    assert refused.value.code == "tensor.inplace.graph"
    with pytest.raises(weft.DTypeError, match="cannot hold"):
        weft.asarray([1, 2]).add_(0.5)


def test_checkpoints_compute_again():
    net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 4))
    x = weft.Tensor(RNG.standard_normal((5, 4)).astype("float32"))
    (net(x) ** 2).sum().backward()
    expected = [x.grad.numpy().copy(), *(p.grad.numpy().copy() for p in net.parameters())]
    for needs in (True, False):  # without it only the parameters ask for gradients
        net.zero_grad()
        y = weft.Tensor(x.data, requires_grad=needs)
        calls = []
        (weft.autograd.checkpoint(lambda t: calls.append(1) or net(t), y) ** 2).sum().backward()
        assert len(calls) == 2 and (y.grad is not None) == needs
        got = [y.grad if needs else expected[0], *(p.grad for p in net.parameters())]
        for a, b in zip(got, expected):
            np.testing.assert_array_equal(np.asarray(a), b)
    with weft.no_grad():
        assert not (x * 2).requires_grad
        with weft.enable_grad():
            assert (x * 2).requires_grad
    with pytest.raises(weft.DTypeError, match="grad takes a function, got a Tensor") as refused:
        weft.grad((x * x).sum())
    assert refused.value.code == "array.grad.function"


def test_modules_by_name():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(inplace=True)).append(nn.Dropout(1.0))
    lack, extra = net.load_state_dict(
        {"0.weight": weft.ones((3, 4)), "old": weft.ones((1,))}, strict=False
    )
    assert (lack, extra) == (["0.bias"], ["old"])
    assert net.get_parameter("0.weight").tolist() == [[1.0] * 4] * 3
    assert net.get_submodule("1") is net[1] and net.get_submodule("") is net
    with pytest.raises(weft.ArgumentError, match="there are: 0, 1, 2") as refused:
        net.get_submodule("7")
    assert refused.value.code == "nn.module.name"
    assert net.double()[0].weight.dtype == "float64" == net[0].bias.dtype
    assert net.to(weft.float32)[0].weight.dtype == "float32" and net[0].weight.requires_grad
    seen = []
    handle = net[0].register_forward_hook(lambda module, given, out: seen.append(out.shape))
    x = weft.Tensor(np.ones((2, 3), "float32"))
    assert net(x).tolist() == [[0.0] * 4] * 2 and seen == [(2, 4)]
    doubled = net.register_forward_hook(lambda module, given, out: out + 1)
    assert net(x).tolist() == [[1.0] * 4] * 2
    handle.remove(), doubled.remove()
    assert net(x).tolist() == [[0.0] * 4] * 2 and len(seen) == 2 and len(net.state_dict()) == 2

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(2, 3)})
            self.rows = nn.ParameterList([weft.ones((2,))])
            self.by = nn.ParameterDict({"scale": weft.ones((1,))})
            self.more = nn.ModuleList([nn.Tanh()])
            self.more += [nn.Linear(1, 1, bias=False)]
            self.register_parameter("free", weft.zeros((1,)))
            self.add_module("last", nn.Identity())

    net = Named()
    names = ["parts.b.weight", "parts.b.bias", "rows.0", "by.scale", "more.1.weight", "free"]
    assert list(net.named_parameters().keys()) == names and len(net.parameters()) == 6
    assert set(net.parts) == {"a", "b"} and "a" in net.parts and len(net.parts) == 2


@pytest.mark.parametrize(
    "method",
    "repeat(2,3) select(1,2) topk(3)[0] topk(2,0,False)[1] sort()[0] sort(0,True)[0] sort()[1] argsort() amax(1) "
    "amin() erf() movedim(0,1) prod() count_nonzero() diff() view_as(x.t()) log1p() atan2(x) new_ones(2,3)".split(),
)
def test_methods(method):
    a = RNG.random((5, 7)).astype("float32")
    ((x, t),) = _both(a)
    _same(eval("x." + method), eval("t." + method, {"t": t, "x": t}))


def test_products_and_truth():
    a, b = RNG.random((2, 3, 4)).astype("float32"), RNG.random((2, 4, 5)).astype("float32")
    (x, t), (y, u) = _both(a, b)
    _same(x.bmm(y), t.bmm(u))
    _same(x[0].mm(y[0]), t[0].mm(u[0]))
    _same(
        x[0, :, :3].addmm(x[0], x[1].t(), beta=2, alpha=3),
        t[0, :, :3].addmm(t[0], t[1].t(), beta=2, alpha=3),
    )
    _same(x[0, 0].outer(y[0, 0]), t[0, 0].outer(u[0, 0]))
    _same(x[0, 0].dot(x[0, 1]), t[0, 0].dot(t[0, 1]))
    assert x.to(weft.float64).dtype == "float64" and x.to("cpu").dtype == "float32"
    assert x.allclose(x + 1e-9) and not x.allclose(x + 1.0)
    assert float((weft.asarray([1, 2]) == weft.asarray([1, 3])).float().mean()) == 0.5
    assert weft.asarray([1.5]).long().dtype == "int64"


@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_a_u_net_learns_as_torch_does(optimizer):
    """Both sides begin with one set of weights: ten losses and the outputs after them agree."""

    def unet(of, cat):
        def double(i, o):
            parts = [of.Conv2d(i, o, 3, padding=1, bias=False), of.BatchNorm2d(o), of.ReLU()]
            return of.Sequential(
                *parts, of.Conv2d(o, o, 3, padding=1), of.GroupNorm(2, o), of.SiLU()
            )

        class UNet(of.Module):
            def __init__(self):
                super().__init__()
                self.down, self.mid, self.up = (
                    double(2, 4),
                    double(4, 6),
                    of.ConvTranspose2d(6, 4, 2, stride=2),
                )
                self.pool, self.last, self.head = of.MaxPool2d(2), double(8, 4), of.Conv2d(4, 3, 1)
                self.grow = of.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
                self.mix = of.Conv2d(6, 4, 1)

            def forward(self, x):
                a = self.down(x)
                b = self.mid(self.pool(a))
                return self.head(self.last(cat([self.up(b) + self.mix(self.grow(b)), a], 1)))

        return UNet()

    import weft.torch as wt

    torch.manual_seed(0)
    theirs, ours = (
        unet(torch.nn, torch.cat),
        unet(nn, lambda parts, axis: weft.concat(parts, axis=axis)),
    )
    wt.load_state_dict(ours, theirs)
    x, y = RNG.standard_normal((3, 2, 8, 12)).astype("float32"), RNG.integers(0, 3, (3, 8, 12))
    steps = [
        getattr(torch.optim, optimizer)(theirs.parameters(), lr=0.01),
        getattr(weft.optim, optimizer)(ours.parameters(), lr=0.01),
    ]
    for _ in range(10):
        a = TF.cross_entropy(theirs(torch.tensor(x)), torch.tensor(y))
        b = F.cross_entropy(ours(weft.Tensor(x)), weft.asarray(y))
        _same(b, a, 1e-4)
        for step, loss in zip(steps, (a, b)):
            step.zero_grad()
            loss.backward()
            step.step()
    theirs.eval(), ours.eval()
    _same(ours(weft.Tensor(x)), theirs(torch.tensor(x)), 2e-3)


def test_weights_go_back_to_torch():
    import weft.torch as wt

    def make(of):
        class Net(of.Module):
            def __init__(self):
                super().__init__()
                self.embed, self.rnn = of.Embedding(9, 6), of.LSTM(6, 5, num_layers=2)
                self.cell = of.GRUCell(5, 4)
                self.tail = of.Sequential(
                    of.Linear(4, 3), of.BatchNorm1d(3), of.ReLU(), of.Linear(3, 2, bias=False)
                )

            def forward(self, x):
                y, _ = self.rnn(self.embed(x))
                return self.tail(self.cell(y[-1]))

        return Net()

    ours, theirs = make(nn), make(torch.nn)
    x = RNG.integers(0, 9, (7, 3))
    ours(weft.asarray(x))  # moves the running statistics
    left = theirs.load_state_dict(wt.state_dict(ours), strict=False)
    assert left.unexpected_keys == [] and set(left.missing_keys) <= {"tail.1.num_batches_tracked"}
    ours.eval(), theirs.eval()
    _same(ours(weft.asarray(x)), theirs(torch.tensor(x)))
    again = make(nn)
    wt.load_state_dict(again, theirs)
    again.eval()
    _same(again(weft.asarray(x)), theirs(torch.tensor(x)))


def test_initial_values_in_place():
    init = nn.init
    weft.random.seed(5)
    linear, conv = nn.Linear(300, 200), nn.Conv2d(16, 32, 3)
    for weight, fan_in, fan_out in ((linear.weight, 300, 200), (conv.weight, 144, 288)):
        for fill, std in [
            (init.xavier_uniform_, (2 / (fan_in + fan_out)) ** 0.5),
            (init.xavier_normal_, (2 / (fan_in + fan_out)) ** 0.5),
            (init.kaiming_uniform_, (2 / fan_in) ** 0.5),
            (
                lambda w: init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu"),
                (2 / fan_out) ** 0.5,
            ),
            (lambda w: init.normal_(w, 1.0, 0.02), 0.02),
            (lambda w: init.uniform_(w, -0.3, 0.3), 0.3 / 3**0.5),
        ]:
            assert fill(weight) is weight and weight.requires_grad
            assert abs(float(weft.std(weight.data)) / std - 1) < 0.05
    x = init.trunc_normal_(linear.weight, 0.0, 1.0, -0.5, 0.7).numpy()
    assert -0.5 <= x.min() < -0.45 and 0.65 < x.max() <= 0.7
    assert init.constant_(linear.bias, 0.5).tolist() == [0.5] * 200
    assert (
        init.zeros_(linear.bias).tolist() == [0.0] * 200
        and init.ones_(linear.bias).tolist() == [1.0] * 200
    )
    assert np.array_equal(init.eye_(linear.weight).numpy(), np.eye(300, 200))
    for shape in ((5, 9), (9, 5), (4, 2, 3)):
        m = init.orthogonal_(weft.Tensor(np.zeros(shape, "float32"))).numpy().reshape(shape[0], -1)
        m = m if m.shape[0] <= m.shape[1] else m.T
        np.testing.assert_allclose(m @ m.T, np.eye(m.shape[0]), atol=1e-5)
    for name, slope in (
        ("relu", None),
        ("tanh", None),
        ("leaky_relu", 0.2),
        ("selu", None),
        ("conv2d", None),
    ):
        assert (
            abs(init.calculate_gain(name, slope) - torch.nn.init.calculate_gain(name, slope)) < 1e-6
        )
    for code, kind, text, call in [
        (
            "init.gain",
            weft.ArgumentError,
            "no gain is known for 'swish'",
            lambda: init.calculate_gain("swish"),
        ),
        (
            "init.fan",
            weft.ShapeError,
            r"shape \(200,\) has no fan-in",
            lambda: init.xavier_normal_(linear.bias),
        ),
    ]:
        with pytest.raises(kind, match=text) as refused:
            call()
        assert refused.value.code == code


def test_parts_of_data_sets_and_late_groups():
    whole = weft.data.TensorDataset(weft.arange(10), weft.arange(10) * 2)
    parts = weft.data.random_split(whole, [7, 3], key=weft.random.key(1))
    seen = [int(p[i][0]) for p in parts for i in range(len(p))]
    assert sorted(seen) == list(range(10)) and [len(p) for p in parts] == [7, 3]
    assert [len(p) for p in weft.data.random_split(whole, [0.55, 0.45])] == [6, 4]
    loader = weft.data.DataLoader(parts[0], batch_size=3)
    assert [tuple(a.shape) for a, b in loader] == [(3,), (3,), (1,)]
    assert all(np.array_equal(b.numpy(), 2 * a.numpy()) for a, b in loader)
    with pytest.raises(
        weft.ArgumentError, match=r"lengths \[7, 4\] of a data set of 10"
    ) as refused:
        weft.data.random_split(whole, [7, 4])
    assert refused.value.code == "data.split.lengths"

    first, late = nn.Linear(2, 3), nn.Linear(3, 1)
    opt = weft.optim.SGD(first.parameters(), lr=0.1, momentum=0.9)
    opt.add_param_group({"params": late.parameters(), "lr": 0.01})
    assert [g["lr"] for g in opt.param_groups] == [0.1, 0.01] and opt.param_groups[1][
        "momentum"
    ] == 0.9
    with pytest.raises(weft.ArgumentError, match="more than one group"):
        opt.add_param_group({"params": first.weight})
    assert len(opt.param_groups) == 2


def test_names_of_numpy_in_the_small_modules():
    for module, name, ours in [
        (weft.random, "randint", "integers"),
        (weft.random, "randn", "normal"),
        (weft.linalg, "lu_factor", "lu"),
    ]:
        assert callable(getattr(module, name)) and callable(getattr(module, ours))
    with pytest.raises(AttributeError, match="module 'weft.fft' has no attribute 'wavelets'$"):
        weft.fft.wavelets
    for call in (
        lambda: weft.random.normal(0.0, 1.0, (3,)),
        lambda: weft.random.uniform(0, 1, (3,)),
    ):
        with pytest.raises(weft.DTypeError, match=r"a number is expected, got \(3,\)") as refused:
            call()
        assert refused.value.code == "random.shape.place"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("shape", [(7,), (5, 7)])
def test_root_mean_square_norm(dtype, shape, rng):
    """Against the formula in float64; the gradient is test_autograd's."""
    x = weft.asarray(rng.standard_normal((3, 5, 7))).astype(dtype)
    w = weft.asarray(rng.standard_normal(shape)).astype(dtype)
    exact, scale = (v.astype("float64").numpy() for v in (x, w))
    axes, eps = tuple(range(-len(shape), 0)), float(weft.finfo(x.dtype).eps)
    for given, used in ((None, eps), (0.1, 0.1)):
        expected = exact / np.sqrt((exact**2).mean(axes, keepdims=True) + used) * scale
        got = nn.functional.rms_norm(weft.Tensor(x), shape, weft.Tensor(w), given)
        assert got.dtype == x.dtype
        np.testing.assert_allclose(
            got.astype("float64").numpy(), expected, rtol=4 * eps, atol=4 * eps
        )
    layer = nn.RMSNorm(normalized_shape=shape, eps=0.1, dtype=dtype)
    np.testing.assert_allclose(
        layer(weft.Tensor(x)).astype("float64").numpy(),
        expected / scale,
        rtol=4 * eps,
        atol=4 * eps,
    )
    assert nn.RMSNorm(shape, elementwise_affine=False).parameters() == []
    with pytest.raises(weft.ShapeError) as refused:
        nn.functional.rms_norm(weft.Tensor(x), (6,))
    assert refused.value.code == "nn.rms_norm.shape"


def test_convolutions_have_no_padding_unless_told(rng):
    x = rng.standard_normal((2, 3, 12, 12)).astype("float32")
    for kernel, stride in ((4, 4), (3, 1), (5, 2)):
        ours, theirs = nn.Conv2d(3, 6, kernel, stride), torch.nn.Conv2d(3, 6, kernel, stride)
        theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in ours.state_dict().items()})
        _same(ours(weft.Tensor(x)), theirs(torch.tensor(x)))
    with pytest.raises(weft.ArgumentError) as refused:
        nn.Conv2d(3, 6, 3, padding=None)
    assert refused.value.code == "nn.conv.padding"


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 4), (3, 3, 2, 2)])
@pytest.mark.parametrize("momentum", [0.1, 0.5, None])
def test_running_variances_are_of_the_population(shape, momentum, rng):
    layer = {2: weft.nn.BatchNorm1d, 3: weft.nn.BatchNorm1d, 4: weft.nn.BatchNorm2d}[len(shape)](3, momentum=momentum)  # fmt: skip
    mean, var, axes = np.zeros(3), np.ones(3), (0, *range(2, len(shape)))
    for k in range(3):
        x = rng.normal(2, 3, shape).astype("float32")
        layer(weft.Tensor(weft.asarray(x)))
        share = momentum or 1 / (k + 1)
        mean = (1 - share) * mean + share * x.mean(axes)
        var = (1 - share) * var + share * x.astype("float64").var(axes, ddof=1)
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer.running_var.numpy(), var, rtol=1e-4)
