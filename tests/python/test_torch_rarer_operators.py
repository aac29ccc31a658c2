# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="weft") of histograms, pieces of an axis, reflectors, samples of volumes, modes and polynomials."""

import itertools

import pytest

torch = pytest.importorskip("torch")

import weft.torch as wt  # noqa: E402
from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(
        f"torch.compile needs torch 2.4, this is {torch.__version__}: tools/test_torch2 runs this file",
        allow_module_level=True,
    )

from torch.nn import functional as F  # noqa: E402

WEFT = {"prefer": "weft"}
INF, NAN = float("inf"), float("nan")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def randn(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=dtype)


def flat(out):
    return [out] if isinstance(out, torch.Tensor) else [t for o in out for t in flat(o)]


def as_eager(f, *args, taken=True):
    """Results, and the gradients of floats where there are any; every operator by weft."""

    def step(f):
        given = [a.detach().clone().requires_grad_(a.requires_grad) for a in args]
        out = flat(f(*given))
        terms = [t.square().sum() for t in out if t.requires_grad]
        if terms:
            sum(terms).backward()
        return [t.detach() for t in out], [a.grad for a in given if a.requires_grad]

    want = step(f)
    compiled = torch.compile(f, backend="weft", options=WEFT)
    for _ in range(2):
        for got, wanted in zip(step(compiled), want):
            for g, w in zip(got, wanted, strict=True):
                torch.testing.assert_close(g, w, equal_nan=True)
    if taken:
        report = wt.explain(f, *args, options=WEFT)
        assert report.able == report.nodes, str(report)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_histograms(dtype):
    x = torch.cat([randn(3, 67, dtype=dtype).flatten(), torch.arange(-3, 4).to(dtype)])
    weight = torch.rand(x.shape, dtype=dtype)
    edges = torch.tensor([-1.0, -0.5, 0.25, 2.0], dtype=dtype)
    as_eager(lambda x: torch.histc(x, 7), x)
    as_eager(lambda x: torch.histc(x, 13, -1, 2), x)
    as_eager(lambda x: torch.histc(x * 0 + 2, 4), x)
    as_eager(lambda x: torch.histogram(x, 11), x)
    as_eager(lambda x: torch.histogram(x, 6, range=(-3.0, 3.0), density=True), x)
    as_eager(lambda x, w: torch.histogram(x, 5, range=(-1.0, 1.0), weight=w), x, weight)
    as_eager(lambda x, e: torch.histogram(x, e, density=True), x, edges)
    points, of = randn(41, 2, dtype=dtype), torch.rand(41, dtype=dtype)
    as_eager(lambda x: torch.histogramdd(x, [3, 5], density=True), points)
    as_eager(
        lambda x, w: torch.histogramdd(x, [4, 3], range=(-1.0, 1.0, -2.0, 0.5), weight=w),
        points,
        of,
    )
    as_eager(lambda x, e: torch.histogramdd(x, [e, 2 * e]), points, edges)


PIECES = [
    (torch.tensor([2, 0, 3, 1]), 0, (6, 5)),
    (torch.tensor([[1, 3], [4, 0], [2, 2]]), 1, (3, 4, 2)),
]


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("lengths, axis, shape", PIECES)
@pytest.mark.parametrize("initial", [None, 1.5])
@pytest.mark.parametrize("by", ["lengths", "offsets"])
def test_pieces(reduce, lengths, axis, shape, initial, by):
    if by == "lengths":
        pieces = {"lengths": lengths}
    else:
        pieces = {
            "offsets": torch.cat([torch.zeros_like(lengths[..., :1]), lengths.cumsum(-1)], -1)
        }
    x = randn(*shape)
    if reduce in ("max", "min"):
        x = x.mul(2).round().div(2)  # equal elements share the gradient
        if initial is None:
            x[0, 0] = NAN
    f = lambda x: torch.segment_reduce(x, reduce, axis=axis, initial=initial, unsafe=True, **pieces)  # noqa: E731
    as_eager(f, x)
    if not (reduce == "mean" and initial is not None):
        finite = x.nan_to_num(0.25)
        as_eager(lambda x: f(x).nan_to_num(posinf=0.0, neginf=0.0), finite.requires_grad_(), taken=False)  # fmt: skip


@pytest.mark.parametrize("shape", [(7, 7), (9, 4), (2, 3, 6, 5)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_reflectors(shape, dtype):
    a, tau = torch.geqrf(randn(*shape, dtype=dtype))
    tau[..., 1] = 0  # a reflector that leaves all as it is
    as_eager(torch.linalg.householder_product, a, tau)
    other, beside = (
        randn(*shape[:-1], 3, dtype=dtype),
        randn(*shape[:-2], 2, shape[-2], dtype=dtype),
    )
    for turned in (False, True):
        as_eager(lambda a, t, x: torch.ormqr(a, t, x, transpose=turned), a, tau, other)  # noqa: B023
        as_eager(lambda a, t, x: torch.ormqr(a, t, x, left=False, transpose=turned), a, tau, beside)  # noqa: B023


SAMPLES = itertools.product(
    ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True), (2, 3)
)


@pytest.mark.parametrize(
    "mode, border, align, rank", [s for s in SAMPLES if s[0] != "bicubic" or s[3] == 2]
)
def test_images_and_volumes_between_their_elements(mode, border, align, rank):
    x = randn(2, 3, *(5, 4, 7)[:rank]).requires_grad_()
    places = (randn(2, *(3, 4, 2)[:rank], rank) * 0.9).requires_grad_()
    as_eager(lambda x, g: F.grid_sample(x, g, mode, border, align), x, places)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.7, 2.0, 3.0, INF])
def test_distances_of_all_rows(p):
    x = randn(7, 5)
    x[3] = x[1]
    x[2, 4] = x[5, 4]
    as_eager(lambda x: F.pdist(x, p), x.requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (4, 9)])
def test_powers_of_two_of_whole_numbers(shape, dtype):
    """The compiler makes a call of ldexp of them."""
    e = torch.randint(-30, 30, shape, dtype=torch.int32)
    as_eager(lambda x, e: x / torch.exp2(e.to(x.dtype)), randn(*shape, dtype=dtype), e)


def test_scores_changed_by_a_function():
    """flex_attention's operator has functions among its arguments; torch computes it."""
    attention = pytest.importorskip(
        "torch.nn.attention.flex_attention", reason="flex_attention came with torch 2.5"
    )
    flex_attention = attention.flex_attention
    q, k, v = (torch.randn(1, 2, 16, 8) for _ in range(3))
    f = lambda q, k, v: flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: s + (i - j) * 0.1)  # noqa: E731
    as_eager(f, q, k, v, taken=False)


def test_frozen_statistics_in_training():
    """Batch norm that only reads its statistics, and keeps tensors without elements for its gradient."""
    norm = torch.nn.BatchNorm2d(3).double().eval()
    norm.running_mean.normal_()
    as_eager(norm, randn(2, 3, 5, 4).requires_grad_())


def test_numbers_drawn_by_probabilities_and_in_other_layouts():
    draws = [
        lambda x: torch.bernoulli(torch.full_like(x, 0.3)),
        lambda x: torch.bernoulli(x.permute(2, 0, 1).sigmoid()),
        lambda x: torch.empty_like(x.permute(2, 0, 1)).uniform_(),
    ]
    x = randn(3, 4, 5)
    for f in draws:
        torch._dynamo.reset()
        compiled, found = torch.compile(f, backend="weft", options=WEFT), []
        for g in (f, compiled):
            torch.manual_seed(3)
            found.append([g(x), g(x)])
        for want, got in zip(*found):
            torch.testing.assert_close(got, want, check_stride=True)


def test_values_put_where_a_mask_holds():
    x, source = randn(5, 7).requires_grad_(), randn(6, 6).requires_grad_()
    as_eager(lambda x, m, s: x.masked_scatter(m, s), x, randn(5, 7) > 0.3, source)
    as_eager(lambda x, m, s: x.masked_scatter(m, s), x, randn(7) > 0.3, source)


def test_modes():
    x = torch.randint(-2, 3, (5, 13, 4))
    as_eager(lambda x: torch.mode(x, 1), x)
    as_eager(lambda x: torch.mode(x, -1, keepdim=True), x.double().requires_grad_())
    long = torch.randint(0, 30, (3, 200))
    as_eager(lambda x: torch.mode(x, 1)[0], long)
    as_eager(lambda x: torch.mode(x, 1)[0], torch.tensor([[NAN, 1.0, 1.0]]), taken=False)


POLYNOMIALS = [n for n in dir(torch.special) if "polynomial" in n]


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    f = getattr(torch.special, name)
    x = torch.cat([torch.linspace(-1.5, 1.5, 41, dtype=torch.float64), torch.tensor([1.0, -1.0, 0.0])])  # fmt: skip
    n = torch.arange(44) % 12 - 2
    for g, args in ((f, (x, n)), (lambda x: f(x, 9), (x,)), (lambda n: f(0.375, n), (n,)), (f, (x.float(), n))):  # fmt: skip
        compiled, want = torch.compile(g, backend="weft", options=WEFT), g(*args)
        most = {"rtol": 1e-9, "atol": 1e-9} if want.dtype == torch.float64 else {}
        for _ in range(2):
            torch.testing.assert_close(compiled(*args), want, **most)
        assert wt.explain(g, *args, options=WEFT).share == 1.0


def test_products_added_to_what_counts_nothing():
    """beta=0 leaves out what is not finite, too; as many matrices as rows, so that an exchange of the axes would fit."""
    a, b = torch.randn(3, 3, 4, requires_grad=True), torch.randn(3, 4, 5, requires_grad=True)
    hole = torch.full((3, 5), float("nan"))
    as_eager(lambda s, a, b: torch.addmm(s, a[0], b[0], beta=0), hole, a, b)
    as_eager(lambda s, a, b: torch.baddbmm(s, a, b, beta=0, alpha=2), hole.expand(3, 3, 5), a, b)
    as_eager(lambda s, a, b: torch.addbmm(s, a, b, alpha=0.5), torch.randn(3, 5), a, b)


def test_variances_with_corrections_beyond_the_count():
    x = torch.tensor([[1.0, 2.0, 4.0], [3.0, -1.0, 0.5]])
    for correction in (0, 1, 2, 3, 7):
        as_eager(lambda x, c=correction: torch.var(x, dim=0, correction=c), x)
        as_eager(lambda x, c=correction: torch.std(x, dim=1, correction=c), x)


def test_copies_of_a_range_that_is_counted_from_the_end():
    x = torch.arange(20.0).reshape(4, 5)
    as_eager(lambda x: torch.narrow_copy(x, 1, -3, 2), x)
    as_eager(lambda x: torch.narrow_copy(x, -2, 1, 3), x)


def test_attention_with_masks():
    """The operator of processors takes heads of one size; a mask is added, or chooses."""
    sdpa = torch.nn.functional.scaled_dot_product_attention
    q = torch.randn(2, 2, 9, 8, requires_grad=True)
    k, v = (torch.randn(2, 2, 7, 8, requires_grad=True) for _ in range(2))
    for mask in (torch.randn(9, 7), torch.rand(2, 1, 9, 7) > 0.2):
        mask[..., 0] = True  # each row has a key
        as_eager(lambda q, k, v, m: sdpa(q, k, v, attn_mask=m), q, k, v, mask)
    as_eager(lambda q, k, v: sdpa(q, k, v, scale=0.3), q, k, v)
    as_eager(lambda q: sdpa(q, q, q, is_causal=True), q)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("padding", [None, 3])
@pytest.mark.parametrize("mode", ["max", "sum", "mean"])
def test_bags(mode, padding, last):
    """Of a bag's largest rows, the first; empty bags; NaN first and later; gradients of weights of positions."""
    table = randn(7, 5).requires_grad_()
    with torch.no_grad():
        table[4] = table[1]
        if mode == "max":
            table[2, 1] = NAN
    at = torch.tensor([2, 1, 3, 5, 4, 1, 3, 6, 2, 0])
    ends = torch.tensor([0, 3, 3, 6, 7] + [10] * last)
    weights = [randn(10).requires_grad_()] if mode == "sum" else []
    as_eager(
        lambda table, *w: F.embedding_bag(
            at, table, ends, mode=mode, padding_idx=padding, include_last_offset=last,
            per_sample_weights=w[0] if w else None,
        ), table, *weights,
    )  # fmt: skip
