# SPDX-License-Identifier: Apache-2.0
"""torch.device("weft"): order, factorisations, least squares, CTC, integers on the device, and memory that others ask for."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402
from present import torch_device  # noqa: E402

torch_device()
DEVICE = "weft:0"


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def on_both(function, *tensors):
    """Results on the host and on the device, as tensors of the host."""
    want = function(*tensors)
    got = function(*(t.to(DEVICE) for t in tensors))
    return [g.cpu() for g in got], want


def same(function, *tensors, rtol=1e-4, atol=1e-5):
    for g, w in zip(*on_both(function, *tensors), strict=True):
        torch.testing.assert_close(g, w, rtol=rtol, atol=atol)


def refused(code, text, function):
    with pytest.raises(weft.Error) as refusal:
        function()
    assert refusal.value.code == code and text in str(refusal.value)
    return refusal.value


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int32, torch.uint8])
def test_order_of_equal_elements(dtype):
    x = torch.randint(0, 9, (7, 40)).to(dtype)
    for f in (
        lambda x: x.mode(1),
        lambda x: x.mode(0, keepdim=True),
        lambda x: x.topk(5),
        lambda x: x.topk(3, dim=0, largest=False),
        lambda x: x.kthvalue(11),
        lambda x: x.median(1),
        lambda x: x.sort(0, descending=True),
    ):
        (values, places), want = on_both(f, x)
        assert torch.equal(values, want[0])
        axis = 0 if places.shape[-1] == 40 else 1
        if places.dim() < 2:
            places, values = places[:, None], values[:, None]
        assert torch.equal(x.gather(axis, places), values)  # any place of an equal element will do


def test_gradients_of_the_mode():
    x = torch.rand(5, 33)
    found = []
    for device in ("cpu", DEVICE):
        y = x.clone().to(device).requires_grad_()
        y.mode().values.square().sum().backward()
        found.append(y.grad.cpu())
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("lengths", ["lists", "tensors"])
def test_ctc(lengths, reduction):
    log_probs = torch.randn(12, 5, 6).log_softmax(2)
    steps, counts = [12, 9, 7, 5, 3], [5, 3, 2, 5, 4]  # no alignment of the last one exists
    labels = torch.randint(1, 6, (5, 5))
    labels[0] = 2  # equal neighbours need a blank between them
    for flat in (False, True):
        given = torch.cat([row[:n] for row, n in zip(labels, counts)]) if flat else labels
        found = []
        for device in ("cpu", DEVICE):
            x = log_probs.clone().to(device).requires_grad_()
            how = [steps, counts]
            if lengths == "tensors":
                how = [torch.tensor(n, device=device) for n in how]
            loss = torch.nn.functional.ctc_loss(x, given.to(device), *how, reduction=reduction, zero_infinity=True)  # fmt: skip
            loss.sum().backward()
            found.append((loss.detach().cpu(), x.grad.cpu()))
        for g, w in zip(found[1], found[0]):
            torch.testing.assert_close(g, w, rtol=1e-4, atol=1e-5)


def test_ctc_without_an_alignment():
    x = torch.randn(2, 2, 4).log_softmax(2)
    found = []
    for device in ("cpu", DEVICE):
        y = x.clone().to(device).requires_grad_()
        loss = torch.nn.functional.ctc_loss(y, torch.tensor([[1, 1], [2, 3]], device=device), [2, 0], [2, 0], reduction="none")  # fmt: skip
        loss.sum().backward()
        found.append((loss.detach().cpu(), y.grad.cpu()))
    for g, w in zip(found[1], found[0]):
        torch.testing.assert_close(g, w, equal_nan=True)


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
def test_least_squares(driver):
    for m, n in ((7, 3), (3, 3)):
        same(lambda a, b: torch.linalg.lstsq(a, b, driver=driver), torch.randn(m, n), torch.randn(m, 2), rtol=1e-3, atol=1e-3)  # fmt: skip
    same(lambda a, b: [torch.linalg.lstsq(a, b).solution], torch.randn(4, 5, 3), torch.randn(4, 5, 1), rtol=1e-3, atol=1e-3)  # fmt: skip


def test_least_squares_gradient_and_refusal():
    a, b = torch.randn(7, 3), torch.randn(7, 2)
    found = []
    for device in ("cpu", DEVICE):
        x = a.clone().to(device).requires_grad_()
        torch.linalg.lstsq(x, b.to(device)).solution.square().sum().backward()
        found.append(x.grad.cpu())
    torch.testing.assert_close(found[1], found[0], rtol=1e-3, atol=1e-3)
    x = a.to(DEVICE)
    refused("torch.device.lstsq", "legal: 'gels'", lambda: torch.ops.aten.linalg_lstsq(x, b.to(DEVICE), driver="gelsq"))  # fmt: skip


def test_vectors_of_factorisations():
    a = torch.randn(5, 4)
    u, s, vh = torch.linalg.svd(a.to(DEVICE), full_matrices=False)
    torch.testing.assert_close((u @ torch.diag(s) @ vh).cpu(), a, rtol=1e-4, atol=1e-5)
    assert torch.linalg.svd(a.to(DEVICE)).U.shape == (5, 5)
    definite = a.T @ a
    values, vectors = torch.linalg.eigh(definite.to(DEVICE))
    back = (vectors @ torch.diag(values) @ vectors.mT).cpu()
    torch.testing.assert_close(back, definite, rtol=1e-4, atol=1e-4)
    values, vectors = torch.linalg.eig(torch.randn(4, 4).to(DEVICE))
    assert values.is_complex() and vectors.shape == (4, 4)


def test_arithmetic_of_integers():
    a = torch.tensor([7, -7, 9, 0, -128, 5, 1, -1, 3])
    b = torch.tensor([2, 2, -4, 3, 7, -5, -3, -3, 70])
    same(
        lambda a, b: [a // b, a % b, a.fmod(b), torch.div(a, b, rounding_mode="trunc"), 17 // b],
        a,
        b,
    )
    same(lambda a, b: [a << b.abs(), a >> b.abs(), a**b, a.clone().floor_divide_(b)], a, b)
    small = a.to(torch.int8), b.to(torch.int32)
    same(lambda a, b: [a // b, a % b, a**b], *small)
    x, zero = a.to(DEVICE), torch.zeros_like(a).to(DEVICE)
    for f in (lambda: x // zero, lambda: x % zero, lambda: x.fmod(zero)):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            f()


def test_positions_in_a_given_length():
    x = torch.tensor([0, 3, 0, 5, 1])
    for size in (2, 3, 6):
        same(lambda x: [torch.nonzero_static(x, size=size, fill_value=-7)], x)
    same(lambda x: [torch.combinations(x)], x)


def test_capsules():
    x = torch.arange(6.0).reshape(2, 3).to(DEVICE)
    y = torch.from_dlpack(x)
    assert y.device.type == "cpu" and torch.equal(y, torch.arange(6.0).reshape(2, 3))
    y[0, 0] = 9
    assert x[0, 0].item() == 9  # one memory
    n = np.from_dlpack(x.t())
    assert n.shape == (3, 2) and n[2, 1] == 5
    assert weft.from_dlpack(x).shape == (2, 3) and x.__dlpack_device__() == (1, 0)
    for wrong in (
        x.clone().requires_grad_(),
        torch.ones(2, dtype=torch.complex64).to(DEVICE).conj(),
    ):
        with pytest.raises(BufferError, match="x[.](detach|resolve_conj)"):
            wrong.__dlpack__()
    machine = torch.ones(3).to("weft:qpu")
    with pytest.raises(BufferError, match="exported by a copy to the host only"):
        torch.from_dlpack(machine)
    assert np.from_dlpack(machine, device="cpu").tolist() == [1, 1, 1]
    assert torch.equal(torch.from_dlpack(torch.arange(3)), torch.arange(3))  # the host's as before


def test_sharing_between_processes_is_refused():
    from multiprocessing.reduction import ForkingPickler

    for f in (
        lambda: torch.ones(3).to(DEVICE).share_memory_(),
        lambda: torch.nn.Linear(2, 2).to(DEVICE).share_memory(),
        lambda: ForkingPickler.dumps(torch.ones(3).to(DEVICE)),
        lambda: ForkingPickler.dumps(torch.nn.Parameter(torch.ones(3).to(DEVICE))),
    ):
        assert "x.cpu()" in str(refused("torch.device.shared", "between processes", f))
    assert torch.ones(2).share_memory_().is_shared()
    ForkingPickler.dumps(torch.ones(3))


def test_layouts_are_refused():
    eye = torch.eye(3)
    for f in (
        lambda: eye.to_sparse().to(DEVICE),
        lambda: torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2), device=DEVICE),
        lambda: eye.to_sparse_csr().to(DEVICE) @ eye.to(DEVICE),
        lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8).to(DEVICE),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]).to(DEVICE),
    ):
        assert "x.to_dense()" in str(refused("torch.device.layout", "are dense", f))


def test_modules_without_sizes_yet():
    for make, x in (
        (lambda: torch.nn.LazyLinear(4), torch.randn(2, 3)),
        (lambda: torch.nn.LazyConvTranspose2d(4, 3), torch.randn(2, 3, 8, 5)),
        (lambda: torch.nn.LazyBatchNorm1d(), torch.randn(5, 3)),
    ):
        module = torch.nn.Sequential(make(), torch.nn.Softshrink(0.1)).to(DEVICE)
        got = module(x.to(DEVICE))
        assert all(p.device.type == "weft" and p.dim() for p in module.parameters())
        torch.testing.assert_close(got.cpu(), module.to("cpu")(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["MultiMarginLoss", "MultiLabelMarginLoss", "Hardshrink", "Softshrink"]
)
def test_gradients_of_losses_and_shrinks(name):
    make, x = getattr(torch.nn, name), torch.randn(5, 4)
    if name == "MultiMarginLoss":
        labels = torch.tensor([0, 3, 1, 1, 2])
        ways = [dict(reduction=r, p=p, margin=0.7, weight=w) for r in ("none", "mean", "sum") for p, w in ((1, None), (2, torch.rand(4)))]  # fmt: skip
    elif name == "MultiLabelMarginLoss":
        labels = torch.tensor([[0, 2, -1, 1], [3, -1, -1, -1], [-1, 0, 1, 2], [0, 1, 2, 3], [2, 2, -1, 0]])  # fmt: skip
        ways = [dict(reduction=r) for r in ("none", "mean", "sum")]
    else:
        labels, ways, x = None, [{}], torch.tensor([-0.7, -0.5, 0.0, 0.5, 0.6, float("nan")])
    given = [(x, labels)] + ([] if labels is None else [(x[0], labels[0])])
    for how in ways:
        for a, t in given:
            found = []
            for device in ("cpu", DEVICE):
                y = a.clone().to(device).requires_grad_()
                f = make(**how).to(device)
                out = f(y) if t is None else f(y, t.to(device))
                (out * 1.5).sum().backward()
                found.append((out.detach().cpu(), y.grad.cpu()))
            for g, w in zip(found[1], found[0]):
                torch.testing.assert_close(g, w, equal_nan=True)


KINDS = [
    ("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2), ("nearest", 1), ("nearest", 2), ("nearest", 3),
    ("nearest-exact", 1), ("nearest-exact", 2), ("nearest-exact", 3),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mode, axes", KINDS)
def test_gradients_of_resized_images(mode, axes, dtype):
    corners = [None] if "nearest" in mode else [False, True]
    x = torch.randn(2, 3, *(5, 4, 6)[:axes]).to(dtype)
    for size, scale in (((7, 3, 5)[:axes], None), (None, 1.5), (None, 0.6)):
        for align in corners:

            def gradient(x):
                x = x.detach().requires_grad_()
                y = torch.nn.functional.interpolate(x, size, scale, mode, align)
                weights = torch.linspace(-1, 1, y.numel()).reshape(y.shape).to(x)
                return torch.autograd.grad((y * weights).sum(), x)  # noqa: B023 - called at once

            (got,), (want,) = on_both(gradient, x)
            torch.testing.assert_close(got, want)


def test_rolled_along_several_axes():
    x = torch.arange(24.0).reshape(2, 3, 4)
    for how in (((1, 1), (0, 1)), ((2,), (1,)), (5,), ((1, -2, 3), (0, 1, 2)), ((1, 1), (0, 0))):
        same(lambda x, how=how: [torch.roll(x, *how)], x)
