# SPDX-License-Identifier: Apache-2.0
"""Random numbers of torch's generator that weft draws: the same bits, and the generator goes on where torch's would."""

import math

import pytest

torch = pytest.importorskip("torch")

import weft.torch as wt  # noqa: E402
from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(
        f"torch.compile needs torch 2.4, this is {torch.__version__}: tools/test_torch2 runs this file",
        allow_module_level=True,
    )

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from watched import run  # noqa: E402
from weft.torch.rules import random_numbers  # noqa: E402

PREFERENCES = ("weft", "fastest")


def test_this_torch_draws_as_weft_does():
    assert random_numbers._as_torch()


@pytest.mark.parametrize("before", [0, 1, 623, 624, 625])
@pytest.mark.parametrize("count", [0, 1, 5, 312, 313, 1023, 2049])
def test_numbers_and_states(before, count):
    mine, theirs = (torch.Generator().manual_seed(3) for _ in range(2))
    for g in (mine, theirs):
        torch.empty(before, dtype=torch.int32).random_(generator=g)
    for p in (0.0, 1e-300, 0.1, 0.5, math.nextafter(1.0, 0.0), 1.0):
        got = random_numbers._bernoulli_of(mine, (count,), p)
        want = torch.empty(count, dtype=torch.bool).bernoulli_(p, generator=theirs)
        assert torch.equal(torch.from_dlpack(got), want)
    for kind, dtype in (("float32", torch.float32), ("float64", torch.float64)):
        got = random_numbers._uniform_of(mine, (count,), kind)
        want = torch.rand(count, dtype=dtype, generator=theirs)
        assert torch.equal(torch.from_dlpack(got), want)
    assert torch.equal(mine.get_state(), theirs.get_state())


def _dropouts(c):
    model = nn.Sequential(
        nn.Linear(6, 40), nn.Dropout(0.3), nn.GELU(), nn.Dropout(0.5), nn.Linear(40, 3)
    )
    f, x = c(model), torch.randn(11, 6)
    out = []
    for _ in range(3):  # the trying call, then generated code; another draw of torch's in between
        y = f(x)
        y.square().sum().backward()
        out += [y.detach(), torch.rand(2)]
    return out + [p.grad for p in model.parameters()]


def _of_channels(c):
    f = c(lambda x: F.dropout2d(x, 0.4, True).sin() + torch.rand_like(x))
    x = torch.randn(3, 5, 4, 2)
    return [f(x), f(x), torch.rand(3)]


def _of_transposes(c):
    f = c(lambda x: F.dropout(x * 2, 0.4, True))
    x = torch.randn(7, 9).T
    return [f(x), f(x), torch.rand(3)]


def _uniform(c):
    f = c(lambda x: x + torch.empty_like(x).uniform_(0, 3.7) * torch.empty_like(x).uniform_(-1, 1))
    x = torch.randn(9, 5, dtype=torch.float64)
    return [f(x), f(x), torch.rand(3)]


@pytest.mark.parametrize("prefer", PREFERENCES)
@pytest.mark.parametrize("program", [_dropouts, _of_channels, _of_transposes, _uniform])
def test_as_eager(program, prefer):
    want, _ = run(program, lambda f: f)
    got, made = run(program, lambda f: torch.compile(f, backend="weft", options={"prefer": prefer}))
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w)
    drawn = [
        s for p in made for s in p.steps for op in s.unit.ops
        if op.name in ("aten.bernoulli.p", "aten.rand_like.default")
    ]  # fmt: skip
    assert program is _uniform or (drawn and all(s.able for s in drawn))


def test_explain_counts_masks():
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2))
    assert wt.explain(model, torch.randn(3, 4), options={"prefer": "weft"}).share == 1.0


def test_another_generator_stays_with_torch(monkeypatch):
    """Where this torch draws other numbers than weft, torch draws them, and the report says so."""
    monkeypatch.setattr(random_numbers, "_as_torch", lambda: False)
    torch.manual_seed(0)
    report = wt.explain(nn.Dropout(0.5), torch.randn(8), options={"prefer": "weft"})
    assert ("aten.bernoulli.p", "random numbers are torch's") in report.reasons()
