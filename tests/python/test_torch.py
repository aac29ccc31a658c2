# SPDX-License-Identifier: Apache-2.0
"""weft.torch: results, gradients, meta kernels, layouts, integers, refusals."""

import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402
import weft.torch as wt  # noqa: E402

CASES = [
    ("add", (3, 4), (3, 4)),
    ("add", (3, 1), (4,)),
    ("add", (), (5,)),
    ("mul", (2, 3, 4), (3, 1)),
    ("mul", (0, 3), (3,)),
    ("mv", (3, 4), (4,)),
    ("matmul", (3, 4), (4, 5)),
    ("matmul", (4,), (4, 5)),
    ("matmul", (2, 3, 4), (4,)),
    ("matmul", (2, 1, 3, 4), (5, 4, 2)),
    ("matmul", (4,), (4,)),
    ("matmul", (32, 512), (512, 512)),
    ("mul", (1,), (100003,)),
]


def draw(shape, dtype):
    g = torch.Generator().manual_seed(sum(shape) + 7)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=g, dtype=torch.float64).to(dtype)
    return torch.randint(-5, 6, shape, generator=g).to(dtype)


@pytest.mark.parametrize("name,sa,sb", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.int32])
def test_against_torch(name, sa, sb, dtype):
    a, b = draw(sa, dtype), draw(sb, dtype)
    a0, b0 = a.clone(), b.clone()
    want = getattr(torch, name)(a, b)
    got = getattr(wt, name)(a, b, device="cpu")
    assert got.dtype == want.dtype and got.shape == want.shape
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(
        getattr(torch.ops.weft, name)(a, b, None), want, rtol=1e-4, atol=1e-4
    )
    assert torch.equal(a, a0) and torch.equal(b, b0)  # inputs are never written


@pytest.mark.parametrize("name,sa,sb", CASES[:11])
def test_gradcheck(name, sa, sb):
    a = draw(sa, torch.float64).requires_grad_()
    b = draw(sb, torch.float64).requires_grad_()
    if a.numel() == 0:
        getattr(wt, name)(a, b).sum().backward()
        assert a.grad.shape == a.shape
        return
    assert torch.autograd.gradcheck(getattr(wt, name), (a, b))
    assert torch.autograd.gradgradcheck(getattr(wt, name), (a, b))


NO_ARITHMETIC = {("wse:4x4", "array.device.eager")}


def computes(name):
    """None when the device adds two arrays, else why it does not."""
    device = weft.device(name)
    if not device.available:
        return device.reason
    try:
        weft.ones((4,), device=device) + weft.ones((4,), device=device)
    except weft.Error as error:
        # Those that are known not to; any other failure is one.
        if (name, error.code) not in NO_ARITHMETIC:
            raise
        return f"{error.code}: {error.message}"
    return None


@pytest.mark.parametrize("name", ["c", "ref", "opencl:0", "cuda:0", "qpu", "wse:4x4"])
def test_operators_and_gradients_on_every_device(name):
    reason = computes(name)
    if reason:
        pytest.skip(f"{name} has no arithmetic on arrays here: {reason[:120]}")
    a, b = draw((5, 7), torch.float32), draw((7, 3), torch.float32)
    v, w = draw((7,), torch.float32), draw((5, 1), torch.float32)
    before = [t.clone() for t in (a, b, v, w)]
    for op, x, y in (
        ("add", a, v),
        ("mul", a, w),
        ("mv", a, v),
        ("matmul", a, b),
        ("matmul", b.t(), v),
    ):
        got, want = getattr(wt, op)(x, y, device=name), getattr(torch, op)(x, y)
        assert got.device.type == "cpu" and got.dtype == want.dtype
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    for t, old in zip((a, b, v, w), before):  # inputs are never written
        assert torch.equal(t, old)
    if name != "qpu":  # an accelerator of floats
        i = draw((5, 7), torch.int32)
        assert torch.equal(wt.add(i, i[:1], device=name), i + i[:1])
        assert torch.equal(wt.mul(i.t()[::2], 3 * i.t()[::2], device=name), 3 * i.t()[::2] ** 2)
    x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
    s, t = a.clone().requires_grad_(), b.clone().requires_grad_()
    wt.matmul(wt.mul(x, v, device=name), y, device=name).square().sum().backward()
    torch.matmul(torch.mul(s, v), t).square().sum().backward()
    torch.testing.assert_close(x.grad, s.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(y.grad, t.grad, rtol=1e-4, atol=1e-4)
    with pytest.raises(weft.Error, match="matmul needs equal inner extents"):
        wt.matmul(a, a, device=name)


@pytest.mark.targets("vta")
def test_a_device_without_such_arithmetic_says_so():
    """vta computes with integers; nothing else stands in for it."""
    a = draw((16, 16), torch.float32)
    for name in ("add", "mul", "matmul"):
        with pytest.raises(weft.Error, match="vta cannot compute with") as info:
            getattr(wt, name)(a, a, device="vta")
        assert info.value.code == "target.dtype"


@pytest.mark.targets("vta")
@pytest.mark.parametrize("dtype", [torch.int8, torch.int32])
def test_integers_on_a_device_of_integers(dtype):
    a, b = draw((16, 16), dtype), draw((16, 16), dtype)
    for name in ("add", "mul"):
        torch.testing.assert_close(
            getattr(wt, name)(a, b, device="vta"), getattr(torch, name)(a, b)
        )


@pytest.mark.skipif(wt.COMPILES, reason="this torch has what the back end needs")
def test_the_back_end_names_the_torch_that_it_needs():
    for call in (
        lambda: wt.backend(None, []),
        lambda: wt.explain(torch.nn.Linear(2, 2), torch.ones(2)),
    ):
        with pytest.raises(
            weft.Error, match=f"needs torch 2.4, this is {torch.__version__[:3]}"
        ) as info:
            call()
        assert info.value.code == "torch.version.compile"


def test_a_torch_without_an_interface_is_refused_at_import():
    from types import SimpleNamespace

    from weft.torch import _version

    old = SimpleNamespace(__version__="1.9.1", from_dlpack=None, autograd=torch.autograd)
    with pytest.raises(
        weft.Error, match="torch 1.9.1 has no torch.library.Library, torch.from_dlpack"
    ) as info:
        _version.check(old)
    assert info.value.code == "torch.version" and "torch 1.13 or newer" in str(info.value)
    assert _version.version_of(SimpleNamespace(__version__="2.11.0+cu130")) == (2, 11)


def test_layouts_that_are_not_contiguous():
    a = torch.randn(6, 8)[::2, 1:7].t()
    b = torch.randn(3, 6).t()
    assert not a.is_contiguous() and not b.is_contiguous()
    torch.testing.assert_close(wt.add(a, b), a + b)
    torch.testing.assert_close(wt.matmul(a, b.t()), a @ b.t())
    e = torch.randn(1, 3).expand(6, 3)
    torch.testing.assert_close(wt.mul(e, b), e * b)
    c = torch.randn(3, dtype=torch.complex64).conj()
    torch.testing.assert_close(wt.mul(c, c), c * c)


def test_promotion_is_torch_s():
    pairs = [
        (torch.ones(3, dtype=torch.int32), torch.ones(3)),
        (torch.ones(3, dtype=torch.float16), torch.ones((), dtype=torch.float64)),
        (torch.ones(3, dtype=torch.uint8), torch.ones(3, dtype=torch.int8)),
        (torch.tensor([True, False]), torch.tensor([True, True])),
        (torch.tensor([True]), torch.tensor([3])),
    ]
    for a, b in pairs:
        for name in ("add", "mul"):
            want, got = getattr(torch, name)(a, b), getattr(wt, name)(a, b)
            assert want.dtype == got.dtype and torch.equal(want, got)


def test_meta_kernels():
    for name, sa, sb in CASES:
        a, b = torch.empty(sa, device="meta"), torch.empty(sb, device="meta")
        out = getattr(wt, name)(a, b)
        assert (
            out.device.type == "meta"
            and out.shape == getattr(torch, name)(torch.zeros(sa), torch.zeros(sb)).shape
        )


def test_refusals():
    with pytest.raises(weft.ShapeError, match="mv needs a matrix") as info:
        wt.mv(torch.ones(3, 4), torch.ones(3))
    assert info.value.code == "torch.mv.shape"
    with pytest.raises(weft.ShapeError, match="inner extents") as info:
        wt.matmul(torch.ones(3, 4), torch.ones(3, 4))
    assert info.value.code == "torch.matmul.shape"
    with pytest.raises(weft.Error, match="add needs shapes"):
        wt.add(torch.ones(3), torch.ones(4))
    with pytest.raises(weft.DTypeError, match="torch.matmul.dtype"):
        wt.matmul(torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64))
    with pytest.raises(weft.Error):
        wt.add(torch.ones(3), torch.ones(3), device="warp:0")


def test_memory_is_shared_and_outlives_either_side():
    t = torch.arange(6.0)
    x = wt.from_torch(t)
    x[0] = 9
    assert t[0] == 9
    del t
    assert x.tolist()[1:] == [1, 2, 3, 4, 5]
    y = wt.to_torch(x)
    del x
    y[1] = 7
    assert y[1] == 7
