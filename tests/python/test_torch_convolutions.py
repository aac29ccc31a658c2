# SPDX-License-Identifier: Apache-2.0
"""The back end's rules of convolutions and their gradients beside torch's in float64, on the host and on a device with a grid."""

import pytest

torch = pytest.importorskip("torch")

from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(f"torch.compile needs torch 2.4, this is {torch.__version__}: tools/test_torch2 runs this file", allow_module_level=True)  # fmt: skip

import weft  # noqa: E402
from weft import _core  # noqa: E402
from torch import nn  # noqa: E402
from weft.torch import _backend, rules, whole  # noqa: E402

rules.load()
DEVICES = [d for d in ("cpu", "opencl:0") if d in [w.name for w in weft.devices() if w.available]]

# stride, padding, dilation, groups, transposed
OPTIONS = [
    ((1, 1), (1, 1), (1, 1), 1, False),
    ((2, 2), (0, 1), (1, 2), 1, False),
    ((1, 2), (1, 0), (1, 1), 2, False),
    ((1, 1), (1, 1), (1, 1), 6, False),
    ((2, 2), (1, 1), (1, 1), 1, True),
    ((2, 1), (0, 1), (1, 1), 2, True),
    ((2, 1), (1, 2), (3, 2), 2, True),
]


class Context:
    """What the graph says about the operator's results."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape, self.dtypes = dtype, tuple(shape), [dtype] * 3
        self.kept = None


def away(got, want):
    given = torch.from_dlpack(got.to("cpu").astype("float32")).double()
    assert given.shape == want.shape
    return float((given - want).norm() / want.norm())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype, most", [("float32", 1e-6), ("bfloat16", 4e-3)])
@pytest.mark.parametrize("stride, padding, dilation, groups, transposed", OPTIONS)
def test_convolution(device, dtype, most, stride, padding, dilation, groups, transposed):
    torch.manual_seed(1)
    kind = getattr(torch, dtype)
    shape = (6, 4 // groups, 3, 3) if transposed else (6 if groups == 6 else 8, 6 // groups, 3, 3)
    x, w = torch.randn(2, 6, 9, 11).to(kind), torch.randn(shape).to(kind)
    extra = [max(s, d) - 1 if transposed else 0 for s, d in zip(stride, dilation)]
    options = [list(stride), list(padding), list(dilation), transposed, list(extra), groups]
    x64, w64 = (t.double().requires_grad_() for t in (x, w))
    y = torch.convolution(x64, w64, None, *options)
    g = torch.randn(y.shape).to(kind)
    want = [*torch.autograd.grad(y, [x64, w64], g.double()), g.double().sum((0, 2, 3))]
    c = Context(dtype, y.shape)
    x, w, g = (_core._from_dlpack(torch._C._to_dlpack(t), None, None).to(device) for t in (x, w, g))
    assert away(rules.ARRAYS["aten.convolution.default"](c, x, w, None, *options), y.detach()) < most  # fmt: skip
    backward = rules.ARRAYS["aten.convolution_backward.default"]
    for asked in [(True, True, True), (False, True, False), (True, False, False)]:
        found = backward(c, g, x, w, [y.shape[1]], *options, list(asked))
        for got, expected, flag in zip(found, want, asked):
            assert (got is not None) == flag and (got is None or away(got, expected) < most)


def test_gradients_of_another_shape_are_refused():
    x, w, g = (weft.ones(s, dtype="float32") for s in ((1, 2, 5, 5), (3, 2, 3, 3), (1, 3, 4, 3)))
    with weft.enable_grad(), pytest.raises(weft.Error) as refusal:
        _core._convolution_gradients(g, x, w, True, True, (1, 1), (0, 0), (1, 1), False, (0, 0), 1)
    assert refusal.value.code == "array.conv2d.shape" and "has shape" in str(refusal.value)


def _net(strided):
    layers = [
        nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(16, 16, 3, 1, 1, groups=16),
        nn.Hardswish(), nn.Conv2d(16, 24, 1), nn.AvgPool2d(2), nn.Conv2d(24, 8, (3, 2), strided, dilation=(1, 2)), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 5),
    ]  # fmt: skip
    return nn.Sequential(*layers).double()


@pytest.mark.parametrize("strided", [1, 2])
@pytest.mark.parametrize("training", [False, True])
def test_images_with_their_channels_last(monkeypatch, training, strided):
    """Results, gradients, buffers and strides are eager's in the first call and in later ones, whichever order images have inside."""
    monkeypatch.setattr(whole, "fastest", lambda seconds: len(seconds) - 1)
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, made = _net(strided).train(training), []
    start = {k: v.clone() for k, v in model.state_dict().items()}
    images = [torch.randn(3, 3, 33, 35, dtype=torch.float64) for _ in range(3)]

    def steps(f):
        model.load_state_dict(start)
        found = []
        for x in images:
            x = x.clone().requires_grad_(training)
            y = f(x)
            found.append(y.detach())
            if training:
                model.zero_grad()
                y.square().sum().backward()
                found += [x.grad, *(p.grad.clone() for p in model.parameters())]
        return found + [b.clone() for b in model.buffers()]

    want = steps(model)
    before = _backend.watch(made)
    try:
        for _ in range(2):  # the second time by what the first one left on disk
            torch._dynamo.reset()
            for g, w in zip(steps(torch.compile(model, backend="weft")), want, strict=True):
                torch.testing.assert_close(g, w, check_stride=True)
    finally:
        _backend.watch(before)
    forward = [p for p in made if p.graph.layout is not None]
    assert len(forward) == 2 and all(p.graph.layout.last and not p.faults for p in forward)


def test_memory_is_read_with_torchs_strides():
    """as_strided and views of another type read memory: what weft laid out in another way is laid out as torch has it before."""
    conv = nn.Conv2d(4, 6, 1).to(memory_format=torch.channels_last)

    def f(x):
        y = conv(x)
        return y.as_strided((5, 7), (3, 2), 1) * 2, y.permute(0, 2, 3, 1).view(torch.int32) + 1

    x = torch.randn(2, 4, 5, 3).to(memory_format=torch.channels_last)
    with torch.no_grad():
        g = torch.compile(f, backend="weft", options={"prefer": "weft"})
        for _ in range(2):
            for a, b in zip(g(x), f(x), strict=True):
                if a.dtype.is_floating_point:
                    torch.testing.assert_close(a, b)
                else:  # bits of floats that differ in their last places
                    torch.testing.assert_close(
                        (a - 1).view(torch.float32), (b - 1).view(torch.float32)
                    )
