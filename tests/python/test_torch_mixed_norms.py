# SPDX-License-Identifier: Apache-2.0
"""Norms of 16-bit activations with float32 weights, as autocast makes them, and means and logic of complex numbers."""

import copy

import pytest

torch = pytest.importorskip("torch")

from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(
        f"torch.compile needs torch 2.4, this is {torch.__version__}: tools/test_torch2 runs this file",
        allow_module_level=True,
    )

from torch import nn  # noqa: E402
from weft.torch import opinfo  # noqa: E402
from weft.torch._backend import Options  # noqa: E402


class _Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.conv, self.out = nn.Conv2d(3, 6, 3, padding=1), nn.Linear(6 * 35, 4)
        norms = {
            "batch": nn.BatchNorm2d(6), "batch of no weights": nn.BatchNorm2d(6, affine=False),
            "group": nn.GroupNorm(2, 6), "layer": nn.LayerNorm([6, 5, 7]), "instance": nn.InstanceNorm2d(6, affine=True),
        }  # fmt: skip
        self.norm = norms[kind]

    def forward(self, x):
        return self.out(self.norm(self.conv(x)).relu().flatten(1))


def _gradients(model, f, x, narrow):
    for p in model.parameters():
        p.grad = None
    with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        y = f(x)
    (y.to(torch.float64).square().mean()).backward()
    parts = [model.conv.weight, model.out.weight, *model.norm.parameters()]
    return [y.detach().double(), *(p.grad.double() for p in parts)]


@pytest.mark.parametrize("kind", ["batch", "batch of no weights", "group", "layer", "instance"])
@pytest.mark.parametrize("prefer", ["fastest", "weft"])
def test_training_under_autocast_is_as_near_to_float64_as_eager_is(kind, prefer):
    torch.manual_seed(5)
    model, x = _Net(kind), torch.randn(7, 3, 5, 7)
    wide = copy.deepcopy(model).double()
    exact = _gradients(wide, wide, x.double(), False)
    eager = _gradients(model, model, x, True)
    torch._dynamo.reset()
    f = torch.compile(model, backend="weft", options={"prefer": prefer})
    for _ in range(2):
        found = _gradients(model, f, x, True)
        for e, t, g in zip(exact, eager, found, strict=True):
            apart = lambda v: float((v - e).norm() / e.norm())  # noqa: B023, E731
            assert apart(g) <= 1.5 * apart(t) + 2e-3


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_the_other_side_reads_what_a_norm_saved(mode):
    """The forward graph on one side, the backward graph on the other one."""
    x = torch.randn(5, 4, 3, 3).bfloat16().requires_grad_()
    norm = nn.BatchNorm2d(4).train(mode == "train")
    want = torch.autograd.grad(norm(x).float().sin().sum(), [x, norm.weight, norm.bias])
    for forward in ("weft", "fastest"):
        torch._dynamo.reset()
        f = torch.compile(norm, backend="weft", options={"prefer": forward})
        got = torch.autograd.grad(f(x).float().sin().sum(), [x, norm.weight, norm.bias])
        torch.testing.assert_close(got, want, rtol=4e-2, atol=4e-2)


def _complex(*shape):
    return torch.randn(shape, dtype=torch.complex64)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x.mean(1, keepdim=True) + y.mean(),
        lambda x, y: torch.logical_and(x, y) | torch.logical_xor(x, y) | torch.logical_not(y),
        lambda x, y: torch.logical_or(x, y),
        lambda x, y: x.isnan() | (x / y).isinf(),
        lambda x, y: torch.lerp(x, y, 0.3) + torch.lerp(y, x, 0.8),
        lambda x, y: torch.lerp(x, y, y),
        lambda x, y: x.to(torch.float64) + y.to(torch.int32),
        lambda x, y: torch.narrow_copy(x, 1, 1, 3) * y[:, :3],
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_operators_of_complex_numbers(function):
    torch.manual_seed(2)
    x, y = _complex(4, 7), _complex(4, 7)
    x[1, 2], y[3, 3], x[3, 3] = complex("nan"), 0, 0
    x[0, 0] = 0
    tally = opinfo.Tally()
    opinfo.check(lambda x, y: [function(x, y)], [x, y], tally, Options(prefer="weft"), "case")
    assert (tally.passed, tally.total) == (1, 1), (tally.failures, tally.untraced)
    assert tally.able == tally.nodes, tally.reasons


@pytest.mark.parametrize("shape", [(300,), (2, 300), (700, 3)])
def test_identities_of_many_rows(shape):
    """torch's own form of eye counts in uint16 here, which it has no kernels for."""
    f = torch.compile(lambda x: x + torch.eye(*shape), backend="weft")
    torch.testing.assert_close(f(torch.ones(1)), torch.eye(*shape) + 1)


@pytest.mark.parametrize("wanted", [True, False])
def test_gradients_of_group_norm(wanted):
    tally = opinfo.Tally()
    tensors = [torch.randn(3, 6, 5), *((torch.randn(6), torch.randn(6)) if wanted else ())]
    norm = lambda x, *p: [torch.nn.functional.group_norm(x, 3, *p)]  # noqa: E731
    opinfo.check(norm, tensors, tally, Options(prefer="weft"), "case", opinfo.with_gradients)
    assert (tally.passed, tally.total) == (1, 1), (tally.failures, tally.untraced)
    assert tally.able == tally.nodes, tally.reasons
