# SPDX-License-Identifier: Apache-2.0
"""torch.device("weft"): complex tensors, and those that torch conjugates or negates lazily, beside the host's."""

import io

import pytest

torch = pytest.importorskip("torch")

from present import torch_device  # noqa: E402

torch_device()
DEVICE = "weft:0"


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


FUNCTIONS = {
    "sums": lambda x, y: [x + y, x - 1, y - x, x.sum(0), x.mean(1), x.cumsum(0), x.var(), x.std(1)],
    "products": lambda x, y: [x * y, x / y, 1 / x, x * 2j, x.prod(), x.prod(1), x @ y, x.clone().mul_(y), x.pow(2)],
    "parts": lambda x, y: [x.real, x.imag, x.abs(), x.angle(), torch.view_as_real(x), torch.complex(x.real, x.imag)],
    "lazily conjugated": lambda x, y: [x.conj(), x.conj() * y, x.mH @ x, x.conj().imag, x.imag.neg() + x.conj().imag, x.conj().contiguous()],
    "functions": lambda x, y: [x.exp(), x.sqrt(), x.sin(), x.reciprocal(), x.sgn(), torch.polar(x.abs(), x.angle())],
    "comparisons": lambda x, y: [x == y, x != x, x.isnan(), torch.where(x.real > 0, x, y)],
    "shapes": lambda x, y: [x[1:, ::2], torch.stack([x[0], y]), x.flip(0), x.t().contiguous(), torch.zeros_like(x), x.roll(1, 0)],
    "types": lambda x, y: [x.real.to(torch.complex64), x.to(torch.complex128), x.conj().to(torch.complex128)],
    "matrices": lambda x, y: [torch.linalg.inv(x @ x.mH + torch.eye(3, device=x.device)), torch.linalg.vector_norm(x), torch.einsum("ij,j->i", x.conj(), y)],
    "transforms": lambda x, y: [torch.fft.fft(x), torch.fft.rfft(x.real), torch.fft.irfft2(x), torch.fft.ifft(x.conj(), norm="ortho")],
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_on_the_host(name):
    x, y = torch.randn(3, 5, dtype=torch.complex64), torch.randn(5, dtype=torch.complex64)
    want = FUNCTIONS[name](x, y)
    got = FUNCTIONS[name](x.to(DEVICE), y.to(DEVICE))
    for g, w in zip(got, want, strict=True):
        assert g.device.type == "weft"
        torch.testing.assert_close(g.cpu(), w, rtol=1e-4, atol=1e-5)


def test_marks_are_copied_as_values():
    x = torch.randn(2, 3, dtype=torch.complex64)
    a = x.to(DEVICE)
    for source in (a.conj(), a.conj().imag, a.imag.neg()):
        assert torch.equal(source.cpu(), source.cpu().resolve_conj().resolve_neg())
    assert torch.equal(a.conj().cpu(), x.conj())
    assert torch.equal(a.conj().imag.cpu(), x.conj().imag)
    b = torch.zeros_like(a)
    b.conj().copy_(a)
    assert torch.equal(b.cpu(), x.conj().resolve_conj())
    b.conj().copy_(x.conj())
    assert torch.equal(b.cpu(), x)
    b.imag.copy_(x.real)
    assert torch.equal(b.cpu(), torch.complex(x.real, x.real))
    b.conj().imag.fill_(3.0)
    assert torch.equal(b.imag.cpu(), torch.full((2, 3), -3.0))


def test_training():
    start, x = torch.randn(5, 4, dtype=torch.complex64), torch.randn(3, 5, dtype=torch.complex64)
    found = []
    for device in ("cpu", DEVICE):
        w = torch.nn.Parameter(start.clone().to(device))
        optimizer = torch.optim.Adam([w], 1e-2)
        for _ in range(3):
            optimizer.zero_grad()
            z = torch.fft.fft(x.to(device) @ w)
            ((z * z.conj()).real.sum() + z.abs().mean()).backward()
            optimizer.step()
        found.append(w.detach().cpu())
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)


def test_printed_saved_drawn():
    x = torch.tensor([1 + 2j, 3], device=DEVICE)
    assert "1.+2.j" in repr(x) and "device='weft:0'" in repr(x) and x[0].item() == 1 + 2j
    kept = io.BytesIO()
    torch.save(x, kept)
    kept.seek(0)
    assert torch.equal(torch.load(kept).cpu(), x.cpu())
    torch.manual_seed(3)
    want = torch.randn(4, dtype=torch.complex64)
    torch.manual_seed(3)
    assert torch.equal(torch.randn(4, dtype=torch.complex64, device=DEVICE).cpu(), want)
