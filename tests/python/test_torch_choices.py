# SPDX-License-Identifier: Apache-2.0
"""What torch.compile(backend="weft") decides for a card, decided without one: sides of steps, masks of attention, numbers beside tensors."""

import pytest

torch = pytest.importorskip("torch")

from weft.torch import _version  # noqa: E402

if not _version.COMPILES:
    pytest.skip(f"torch.compile needs torch 2.4, this is {torch.__version__}", allow_module_level=True)  # fmt: skip

from weft.torch import _backend, choices, graph  # noqa: E402

CARD, HOST = torch.device("cuda:0"), torch.device("cpu")


class Step:
    """costs: (weft's host and device seconds, torch's)."""

    def __init__(self, *costs, kind="fused"):
        self.where, self.kind, self.reason = "weft" if len(costs) == 2 else "torch", kind, ""
        sides = ("weft", "torch") if len(costs) == 2 else ("torch",)
        self.costs = {side: choices.Cost(*c) for side, c in zip(sides, costs)}


def chosen(steps, home=CARD, graphs=False):
    choices.choose(steps, home, graphs)
    return [step.where for step in steps]


def test_a_busy_card_wants_short_kernels():
    steps = [Step((9, 10), (2, 30)), Step((9, 30), (2, 10)), Step((1, 100))]
    assert chosen(steps) == ["weft", "torch", "torch"]


def test_a_busy_host_wants_short_launches():
    """Weft's kernel is shorter, but the host would be later."""
    assert chosen([Step((9, 1), (5, 2)), Step((50, 1))]) == ["torch", "torch"]
    assert chosen([Step((5, 2), (9, 1)), Step((50, 1))]) == ["weft", "torch"]


def test_graphs_cost_the_host_nothing():
    assert chosen([Step((9, 1), (5, 2)), Step((50, 1))], graphs=True) == ["weft", "torch"]


def test_both_are_weighed():
    """The host is late with all on torch, the card with all on weft (44 each): some of each is better."""
    steps = [Step((1, 6), (6, 1)) for _ in range(4)] + [Step((3, 5), (5, 4)) for _ in range(4)]
    choice = chosen(steps)
    host = sum(step.costs[side].host for step, side in zip(steps, choice))
    card = sum(step.costs[side].device for step, side in zip(steps, choice))
    assert max(host, card) < 44


def test_single_operators_must_be_clearly_faster():
    assert chosen([Step((1, 1.0), (1, 1.02), kind="array")], HOST) == ["torch"]
    assert chosen([Step((1, 1.0), (1, 1.02))], HOST) == ["weft"]
    assert chosen([Step((1, 1.0), (1, 1.2), kind="array")], HOST) == ["weft"]


class Seen:
    """What is read of a traced tensor. A fake tensor of a card may ask the driver for the card, which is not there."""

    def __init__(self, t, device):
        self.stride, self.device = t.stride, device


def attention(mask_of, device=CARD):
    """A graph as torch's tracer hands it over: two uses of one mask, seen as on a card."""

    def f(q, mask):
        sdpa = torch.nn.functional.scaled_dot_product_attention
        return sdpa(q, q, q, mask) + sdpa(q, q, q, attn_mask=mask)

    traced = torch.fx.symbolic_trace(f)
    mask = mask_of(torch.ones(2, 1, 8, 8, dtype=torch.bool, device="meta"))
    for node in traced.graph.nodes:
        if node.name == "mask":
            node.meta["example_value"] = Seen(mask, device)
    return traced


def test_masks_without_a_compact_axis_are_copied_once():
    traced = attention(lambda m: m[..., :1].expand(2, 1, 8, 8))
    q, mask = torch.randn(2, 3, 8, 4), (torch.rand(2, 1, 8, 1) < 0.7).expand(2, 1, 8, 8)
    want = traced(q, mask)
    _backend._lay_out_masks(traced)
    copies = [n for n in traced.graph.nodes if n.target == "contiguous"]
    assert len(copies) == 1 and len(copies[0].users) == 2
    torch.testing.assert_close(traced(q, mask), want, equal_nan=True)


@pytest.mark.parametrize("device", [CARD, HOST])
def test_other_masks_stay(device):
    traced = attention(lambda m: m if device == CARD else m.mT, device)
    _backend._lay_out_masks(traced)
    assert not [n for n in traced.graph.nodes if n.target == "contiguous"]


def test_numbers_beside_tensors_are_known():
    """Fused attention gives sizes beside tensors; they may be read by other operators and be results."""
    traced = torch.fx.symbolic_trace(lambda x: (x + 1, x))
    (x, add, out) = traced.graph.nodes
    pair = torch.randn(3, 4)
    x.meta["val"] = pair
    add.meta["val"] = (pair, None, 7)
    with traced.graph.inserting_before(out):
        import operator

        first = traced.graph.call_function(operator.getitem, (add, 0))
        number = traced.graph.call_function(operator.getitem, (add, 2))
    first.meta["val"], number.meta["val"] = pair, 7
    out.args = ((first, number),)
    lowered = graph.lower(traced)
    assert lowered.outputs[1] == 7 and lowered.ops[0].outputs[1:] == [None, None]
    assert isinstance(lowered.outputs[0], graph.Value)
