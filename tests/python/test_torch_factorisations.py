# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="weft") of linear algebra in a loss, and of tensors whose memory holds conjugates."""

import pytest

torch = pytest.importorskip("torch")

import weft.torch as wt  # noqa: E402
from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(
        f"torch.compile needs torch 2.4, this is {torch.__version__}: tools/test_torch2 runs this file",
        allow_module_level=True,
    )

WEFT = {"prefer": "weft"}
L = torch.linalg


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def randn(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype)


def definite(x):
    return x @ x.mH + torch.eye(x.shape[-2], dtype=x.dtype)


CASES = {
    "cholesky": lambda x: L.cholesky(definite(x)),
    "cholesky upper": lambda x: L.cholesky(definite(x), upper=True),
    "cholesky_solve": lambda x: torch.cholesky_solve(x, L.cholesky(definite(x))),
    "cholesky_inverse": lambda x: torch.cholesky_inverse(L.cholesky(definite(x))),
    "solve": lambda x: L.solve(definite(x), x),
    "solve, rows by columns": lambda x: L.solve(definite(x).mT, x),
    "solve a vector": lambda x: L.solve(definite(x), x[..., 0]),
    "solve from the right": lambda x: L.solve(definite(x), x.mT, left=False),
    "solve, not symmetric": lambda x: L.solve(definite(x) + x[..., :3].triu(1), x),
    "solve, not symmetric, by columns": lambda x: L.solve((definite(x) + x[..., :3].triu(1)).mT, x),
    "inv": lambda x: L.inv(definite(x)),
    "det": lambda x: L.det(x[..., :3, :3]),
    "det of columns": lambda x: L.det(x[..., :3, :3].mT),
    "slogdet": lambda x: L.slogdet(x[..., :3, :3])[1],
    "lu": lambda x: L.lu(x),
    "lu_solve": lambda x: L.lu_solve(*L.lu_factor(definite(x)), x),
    "lu_solve of the adjoint": lambda x: L.lu_solve(*L.lu_factor(x[..., :3]), x.mT[..., :3], adjoint=True, left=False),
    "triangular": lambda x: L.solve_triangular(x[..., :3], x, upper=True),
    "triangular, right, unit": lambda x: L.solve_triangular(x[..., :3], x.mT, upper=False, left=False, unitriangular=True),
    "qr": lambda x: L.qr(x.mT),
    "qr complete": lambda x: L.qr(x.detach().mT, mode="complete"),
    "pinv": lambda x: L.pinv(x),
    "pinv hermitian": lambda x: L.pinv(x[..., :3], hermitian=True),
    "pinv with bounds": lambda x: L.pinv(x.detach(), atol=0.4, rtol=0.1),
}  # fmt: skip
REAL = {
    "svdvals": lambda x: L.svdvals(x),
    "eigvalsh": lambda x: L.eigvalsh(x[..., :3]),
    "eigvalsh upper": lambda x: L.eigvalsh(x[..., :3], UPLO="U"),
    "matrix_exp": lambda x: L.matrix_exp(x[..., :3] * 4),
    "nuclear": lambda x: L.matrix_norm(x, "nuc"),
}


def check(f, x, gradient=True):
    def step(f):
        given = x.clone().requires_grad_(gradient)
        out = f(given)
        out = [out] if isinstance(out, torch.Tensor) else list(out)
        terms = [t.abs().square().sum() * (k + 1) for k, t in enumerate(out) if t.requires_grad]
        if terms:
            sum(terms).backward()
        return [t.detach() for t in out], given.grad

    want = step(f)
    compiled = torch.compile(f, backend="weft", options=WEFT)
    for _ in range(2):
        got = step(compiled)
        for g, w in zip(got[0], want[0], strict=True):
            torch.testing.assert_close(g, w, check_stride=True)
        torch.testing.assert_close(got[1], want[1])


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 5)])
@pytest.mark.parametrize("name", [*CASES, *REAL])
def test_as_eager(name, shape):
    check({**CASES, **REAL}[name], randn(*shape))


# torch has no complex derivative of some, and its own aot_eager gives another pinv in a first call.
@pytest.mark.parametrize(
    "name", [n for n in CASES if not n.startswith(("pinv", "det", "slogdet")) and n != "lu"]
)
def test_complex_as_eager(name):
    check(CASES[name], randn(3, 5, dtype=torch.complex128))


@pytest.mark.parametrize("name", [*CASES, *REAL])
def test_of_float32(name):
    check({**CASES, **REAL}[name], randn(3, 5, dtype=torch.float32), gradient=False)


def test_weft_takes_them():
    def f(x):
        a = definite(x)
        c = L.cholesky(a)
        return torch.logdet(a) + L.solve(a, x).sum() + torch.cholesky_solve(x, c).sum() + L.svdvals(x).sum()  # fmt: skip

    assert wt.explain(f, randn(3, 5), options=WEFT).share == 1.0


@pytest.mark.parametrize("f", [L.cholesky, L.inv, lambda a: L.solve(a, a), L.eigvalsh, L.svdvals])
def test_torch_says_what_is_wrong(f):
    good, bad = torch.eye(3), torch.zeros(3, 3)
    if f in (L.eigvalsh, L.svdvals):
        bad = torch.full((3, 3), torch.nan)
    with pytest.raises(L.LinAlgError) as want:
        f(bad)
    compiled = torch.compile(f, backend="weft", options=WEFT)
    compiled(good)
    with pytest.raises(L.LinAlgError) as got:
        compiled(bad)
    assert str(got.value) == str(want.value)


def test_vectors_have_the_signs_of_torch():
    x = randn(6, 4)
    f = lambda x: (*L.svd(x, full_matrices=False), *L.eigh(x.mT @ x))  # noqa: E731
    for g, w in zip(torch.compile(f, backend="weft", options=WEFT)(x), f(x)):
        torch.testing.assert_close(g, w)


def test_conjugates_and_negatives_are_read():
    z = randn(4, dtype=torch.complex128)
    real = (lambda r: r * 2, lambda r: r.exp().sum(), lambda r: torch.cat([r, r]))
    both = (lambda z: z * 2, lambda z: z.imag + z.real.sin(), lambda z: (z.conj() * z).real)
    cases = [(f, t) for f in both for t in (z, z.conj(), z.conj()[::2])]
    cases += [(f, t) for f in real for t in (z.conj().imag, z.imag)]
    for f, t in cases:
        compiled = torch.compile(f, backend="weft", options=WEFT)
        for _ in range(2):
            torch.testing.assert_close(compiled(t).resolve_conj(), f(t).resolve_conj())
    check(lambda x: torch.exp(1j * x).imag, randn(5))
