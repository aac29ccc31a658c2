# SPDX-License-Identifier: Apache-2.0
"""Rarer arguments of layers, losses, optimizers and schedules, by name and by PyTorch's place, beside PyTorch."""

import numpy as np
import pytest

import weft
from weft import nn, optim

torch = pytest.importorskip("torch")
TN = torch.nn
wt = pytest.importorskip("weft.torch")

RNG = np.random.default_rng(1212)


def draw(*shape):
    return RNG.standard_normal(shape).astype("float32")


def like(ours, theirs):
    """Ours with the elements of theirs."""
    state = theirs.state_dict()
    if not any("bias" in name for name in ours.state_dict()):  # it was told to have none
        state = {k: v for k, v in state.items() if "bias" not in k}
    wt.load_state_dict(ours, state)
    return ours


def beside(ours, theirs, inputs, close=2e-5, mine=None, his=None):
    """Results and gradients of both, of floating inputs and of parameters that both have."""
    ws = [weft.Tensor(x) if x.dtype.kind == "f" else weft.asarray(x) for x in inputs]
    ts = [torch.tensor(x, requires_grad=x.dtype.kind == "f") for x in inputs]
    got, want = ours(*ws, **(mine or {})), theirs(*ts, **(his or {}))
    got, want = (
        [v for v in (y if isinstance(y, tuple) else (y,)) if v is not None] for y in (got, want)
    )
    for a, b in zip(got, want):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=close, atol=close)
    ((got[0] * got[0]).sum()).backward()
    ((want[0] * want[0]).sum()).backward()
    for w, t in zip(ws, ts):
        if t.grad is not None:
            np.testing.assert_allclose(w.grad.numpy(), t.grad.numpy(), rtol=close, atol=20 * close)
    have = dict(ours.named_parameters())
    for name, p in theirs.named_parameters():
        if name in have and p.grad is not None:
            mine_of, his_of = have[name].grad.numpy(), p.grad.numpy()
            his_of = (
                his_of
                if mine_of.shape == his_of.shape and "out_proj.weight" not in name
                else his_of.T
            )
            np.testing.assert_allclose(mine_of, his_of, rtol=close, atol=20 * close)


def unbiased(theirs):
    """PyTorch's layer with biases of zeros, which older versions cannot leave out."""
    for name, p in theirs.named_parameters():
        if name.endswith("bias"):
            p.data.zero_()
    return theirs


@pytest.mark.parametrize("training", [True, False])
def test_norms_without_bias(training):
    image = draw(3, 4, 5, 6)
    for ours, theirs in (
        (nn.LayerNorm(6, bias=False), TN.LayerNorm(6)),
        (nn.LayerNorm((5, 6), 1e-3, True, False), TN.LayerNorm((5, 6), 1e-3)),
        (nn.GroupNorm(2, 4, bias=False), TN.GroupNorm(2, 4)),
        (nn.BatchNorm2d(4, bias=False), TN.BatchNorm2d(4)),
        (nn.BatchNorm2d(4, 1e-3, 0.2, True, False), TN.BatchNorm2d(4, 1e-3, 0.2, True, False)),
        (nn.InstanceNorm2d(4, affine=True, bias=False), TN.InstanceNorm2d(4, affine=True)),
    ):
        theirs = unbiased(theirs).train(training)
        ours = like(ours, theirs).train(training)
        beside(ours, theirs, [image])
    assert nn.LayerNorm(6, bias=False).bias is None and nn.GroupNorm(2, 4, bias=False).bias is None


@pytest.mark.parametrize("shape", [(3, 4, 7), (3, 4, 5, 6), (2, 4, 3, 4, 5)])
def test_instance_norms_keep_statistics(shape):
    name = f"InstanceNorm{len(shape) - 2}d"
    theirs = getattr(TN, name)(4, 1e-4, 0.3, True, True)
    ours = like(getattr(nn, name)(4, 1e-4, 0.3, True, True), theirs)
    for _ in range(3):
        beside(ours, theirs, [draw(*shape) + 1])
    for kept in ("running_mean", "running_var"):
        np.testing.assert_allclose(
            getattr(ours, kept).numpy(), getattr(theirs, kept).numpy(), rtol=1e-5
        )
    beside(ours.eval(), theirs.eval(), [draw(*shape)])
    mean, var = draw(4), np.abs(draw(4)) + 1
    x = draw(*shape)
    for stats in (True, False):
        kept = [weft.asarray(mean.copy()), weft.asarray(var.copy())]
        told = [torch.tensor(mean.copy()), torch.tensor(var.copy())]
        got = nn.functional.instance_norm(
            weft.Tensor(x), *kept, use_input_stats=stats, momentum=0.2
        )
        want = TN.functional.instance_norm(
            torch.tensor(x), *told, use_input_stats=stats, momentum=0.2
        )
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(kept[0].numpy(), told[0].numpy(), rtol=1e-5, atol=1e-6)


def test_embeddings():
    index = np.array([[1, 4, 4], [0, 4, 2]])
    for options in (
        {"max_norm": 1.0},
        {"max_norm": 1.5, "norm_type": 1.0},
        {"scale_grad_by_freq": True},
        {"padding_idx": -3},
    ):
        theirs = TN.Embedding(7, 5, **options)
        ours = like(nn.Embedding(7, 5, **options), theirs)
        beside(ours, theirs, [index])
        np.testing.assert_allclose(
            ours.weight.detach().numpy(), theirs.weight.detach().numpy(), rtol=1e-5
        )


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode):
    square, row = RNG.integers(0, 9, (4, 6)), RNG.integers(0, 9, 13)
    offsets = np.array([0, 0, 5, 12])
    weights = draw(13)
    for options in ({}, {"padding_idx": 3}, {"include_last_offset": True}):
        theirs = TN.EmbeddingBag(9, 5, mode=mode, **options)
        ours = like(nn.EmbeddingBag(9, 5, mode=mode, **options), theirs)
        ends = np.append(offsets, 13) if "include_last_offset" in options else offsets
        beside(ours, theirs, [row, ends])
        if "include_last_offset" not in options:
            beside(ours, theirs, [square])
        if mode == "sum":
            beside(
                ours, theirs, [row, ends],
                mine={"per_sample_weights": weft.Tensor(weights)}, his={"per_sample_weights": torch.tensor(weights)},
            )  # fmt: skip
    with pytest.raises(weft.ArgumentError) as refused:
        nn.EmbeddingBag(9, 5, mode="mean")(
            weft.asarray(square), per_sample_weights=weft.asarray(draw(4, 6))
        )
    assert refused.value.code == "nn.embedding_bag.weights" and "'mean'" in str(refused.value)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments(reduce):
    data, lengths = RNG.standard_normal((12, 3)), [3, 0, 5, 4]
    w, t = weft.Tensor(weft.asarray(data)), torch.tensor(data, requires_grad=True)
    got = weft.segment_reduce(w, reduce, lengths=weft.asarray(lengths), initial=1.5)
    want = torch.segment_reduce(
        t, reduce, lengths=torch.tensor(lengths), axis=0, unsafe=False, initial=None
    )
    full = [0, 2, 3]
    np.testing.assert_allclose(got.numpy()[full], want.detach().numpy()[full], rtol=1e-12)
    assert (got.numpy()[1] == 1.5).all()
    got[weft.asarray(full)].sum().backward()
    want[full].sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), t.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize(
    "added",
    [{"add_bias_kv": True}, {"add_zero_attn": True}, {"add_bias_kv": True, "add_zero_attn": True}],
)
@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_with_keys_of_its_own(added, need_weights):
    theirs = TN.MultiheadAttention(8, 2, 0.0, True, **added, batch_first=True)
    ours = like(nn.MultiheadAttention(8, 2, 0.0, True, **added, batch_first=True), theirs)
    parts = [draw(3, 5, 8), draw(3, 7, 8), draw(3, 7, 8)]
    hidden = RNG.random((3, 7)) < 0.3
    mask = np.triu(np.ones((5, 7), bool), 3)
    for masks in (
        {},
        {"key_padding_mask": hidden},
        {"attn_mask": mask},
        {"key_padding_mask": hidden, "attn_mask": mask},
    ):
        beside(
            ours, theirs, parts,
            mine={"need_weights": need_weights, **{k: weft.asarray(v) for k, v in masks.items()}},
            his={"need_weights": need_weights, **{k: torch.tensor(v) for k, v in masks.items()}},
        )  # fmt: skip


def test_transformers_without_bias():
    theirs = unbiased(TN.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", 1e-4, True, True))
    ours = like(nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", 1e-4, True, True, False), theirs)
    assert not [name for name, _ in ours.named_parameters() if name.endswith("bias")]
    beside(ours, theirs.train(), [draw(3, 5, 8)])
    whole = nn.Transformer(
        8,
        2,
        1,
        1,
        16,
        0.0,
        bias=False,
        custom_decoder=nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0), 1),
    )
    assert (
        whole.encoder.layers[0].linear1.bias is None
        and whole.decoder.layers[0].linear1.bias is not None
    )


def test_windows():
    x = np.abs(draw(2, 3, 6, 7, 8))
    got = nn.LPPool3d(3, (2, 3, 2), stride=2, ceil_mode=False)(weft.Tensor(x)).numpy()
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3, 2), axis=(2, 3, 4))[
        :, :, ::2, ::2, ::2
    ]
    np.testing.assert_allclose(got, (windows**3).sum((-1, -2, -3)) ** (1 / 3), rtol=1e-5)
    beside(
        nn.AdaptiveMaxPool2d((2, 3), return_indices=True),
        TN.AdaptiveMaxPool2d((2, 3), return_indices=True),
        [draw(2, 3, 7, 8)],
    )
    beside(
        nn.Upsample(scale_factor=1.7, mode="linear", recompute_scale_factor=True),
        TN.Upsample(scale_factor=1.7, mode="linear", recompute_scale_factor=True),
        [draw(2, 3, 7)],
    )


def test_losses_take_weights_first():
    logits, labels, weight = draw(5, 4), np.array([0, 3, 1, 1, 2]), np.abs(draw(4)) + 0.1
    share = 1 / (1 + np.exp(-draw(5, 4)))
    w, t = weft.asarray(weight), torch.tensor(weight)
    for ours, theirs, inputs in (
        (nn.CrossEntropyLoss(w), TN.CrossEntropyLoss(t), (logits, labels)),
        (nn.NLLLoss(w, reduction="sum"), TN.NLLLoss(t, reduction="sum"), (logits, labels)),
        (nn.BCELoss(w), TN.BCELoss(t), (share, share[::-1].copy())),
        (nn.BCEWithLogitsLoss(w), TN.BCEWithLogitsLoss(t), (logits, share)),
        (
            nn.PoissonNLLLoss(True, True, None, 1e-4),
            TN.PoissonNLLLoss(True, True, None, 1e-4),
            (logits, share),
        ),
    ):
        got = ours(*(weft.Tensor(x) if x.dtype.kind == "f" else weft.asarray(x) for x in inputs))
        np.testing.assert_allclose(
            got.numpy(), theirs(*map(torch.tensor, inputs)).numpy(), rtol=1e-5
        )
    x, y = weft.Tensor(logits), weft.asarray(labels)
    F, TF = nn.functional, TN.functional
    for name, a, b in (("cross_entropy", logits, labels), ("nll_loss", logits, labels)):
        got = getattr(F, name)(weft.Tensor(a), weft.asarray(b), w)
        np.testing.assert_allclose(
            got.numpy(), getattr(TF, name)(torch.tensor(a), torch.tensor(b), t).numpy(), rtol=1e-5
        )
    for name in ("binary_cross_entropy", "binary_cross_entropy_with_logits"):
        got = getattr(F, name)(weft.Tensor(share), weft.asarray(share), w)
        want = getattr(TF, name)(torch.tensor(share), torch.tensor(share), t)
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5)
    assert F.cross_entropy(x, y, 1).item() == F.cross_entropy(x, y, ignore_index=1).item()
    assert nn.CrossEntropyLoss(2).ignore_index == 2 and nn.BCELoss("sum").reduction == "sum"


def trained(make, P, steps=6):
    """The parameter after some steps of a quadratic, by an optimizer that `make` makes."""
    p = P(np.linspace(-1, 2, 7).astype("float32"))
    opt = make([p])
    for k in range(steps):
        opt.zero_grad()
        ((p - 0.3) ** 2 * (k + 1)).sum().backward()
        opt.step()
    return p.detach().numpy()


@pytest.mark.parametrize(
    "make",
    [
        lambda O: lambda p: O.Adam(p, 0.03, (0.8, 0.9), 1e-3, 0.1, True),
        lambda O: lambda p: O.AdamW(p, 0.03, (0.8, 0.9), 1e-3, 0.1),
        lambda O: lambda p: O.SGD(p, 0.03, 0.9, 0.2, 0.1, False),
        lambda O: lambda p: O.RMSprop(p, 0.03, 0.9, 1e-3, 0.1, 0.5, True),
    ],
)
def test_optimizers_by_place(make):
    got = trained(make(optim), lambda x: weft.nn.Parameter(weft.asarray(x)))
    want = trained(make(torch.optim), lambda x: torch.nn.Parameter(torch.tensor(x)))
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def test_decay_apart_from_the_gradient():
    P = lambda x: weft.nn.Parameter(weft.asarray(x))  # noqa: E731
    a = trained(lambda p: optim.Adam(p, 0.03, weight_decay=0.1, decoupled_weight_decay=True), P)
    b = trained(lambda p: optim.AdamW(p, 0.03, weight_decay=0.1), P)
    np.testing.assert_array_equal(a, b)
    for kind in (optim.NAdam, optim.RAdam):
        # One step of each on a gradient: the decay is a factor in front of the step without any.
        p, q = (weft.nn.Parameter(weft.asarray([2.0, -1.0])) for _ in range(2))
        for x, options in ((p, {"weight_decay": 0.1, "decoupled_weight_decay": True}), (q, {})):
            x.grad = weft.Tensor([0.5, -0.25])
            opt = kind([x], lr=0.1, **options)
            opt.step()
        moved = q.numpy() - np.array([2.0, -1.0], "float32")
        np.testing.assert_allclose(p.numpy(), np.array([2.0, -1.0]) * 0.99 + moved, rtol=1e-6)
    assert (
        optim.Adam([p]).param_groups[0]["weight_decay"] == 0.0
        and optim.AdamW([p]).param_groups[0]["weight_decay"] == 0.01
    )


def rates(S, O, P, make, steps=9):
    opt = O([P], lr=0.1)
    schedule, out = make(S, opt), []
    for _ in range(steps):
        out.append(opt.param_groups[0]["lr"])
        opt.step()
        schedule.step()
    return out


@pytest.mark.parametrize(
    "make",
    [
        lambda S, o: (o.param_groups[0].update(initial_lr=0.2), S.LambdaLR(o, lambda n: 0.9**n, 2))[
            1
        ],
        lambda S, o: S.CyclicLR(
            o,
            0.01,
            0.1,
            3,
            scale_fn=lambda n: 1 / (1 + n),
            scale_mode="cycle",
            cycle_momentum=False,
        ),
        lambda S, o: S.CyclicLR(
            o,
            0.01,
            0.1,
            2,
            4,
            scale_fn=lambda n: 0.95**n,
            scale_mode="iterations",
            cycle_momentum=False,
        ),
    ],
)
def test_schedules(make):
    theirs = rates(
        torch.optim.lr_scheduler, torch.optim.SGD, torch.nn.Parameter(torch.ones(2)), make
    )
    ours = rates(optim.lr_scheduler, optim.SGD, weft.nn.Parameter(weft.ones(2)), make)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_schedules_are_taken_up():
    S = optim.lr_scheduler
    for make in (
        lambda o, k: S.StepLR(o, 3, 0.5, last_epoch=k),
        lambda o, k: S.CosineAnnealingLR(o, 8, 1e-3, k),
    ):
        opt = optim.SGD([weft.nn.Parameter(weft.ones(2))], lr=0.1)
        whole = make(opt, -1)
        want = [whole.rate(0.1, n) for n in range(9)]
        for _ in range(4):
            whole.step()
        again = make(opt, 3)
        got = [opt.param_groups[0]["lr"]]
        for _ in range(4):
            again.step()
            got.append(opt.param_groups[0]["lr"])
        assert got == want[4:]


def test_refused():
    opt = optim.SGD([weft.nn.Parameter(weft.ones(2))], lr=0.1)
    with pytest.raises(weft.Error, match="behind the rate go at most 4"):
        optim.Adam([weft.nn.Parameter(weft.ones(2))], 0.1, (0.9, 0.99), 1e-8, 0.0, False, 1)
    for call, code in (
        (lambda: optim.lr_scheduler.StepLR(opt, 3, last_epoch=4), "optim.scheduler.resumed"),
        (
            lambda: optim.lr_scheduler.CyclicLR(opt, 0.01, 0.1, scale_fn=abs, scale_mode="x"),
            "optim.scheduler.mode",
        ),
        (lambda: nn.LSTM(3, 4, proj_size=2), "nn.rnn.projection"),
        (lambda: nn.ConvTranspose1d(1, 1, 3, padding_mode="reflect"), "nn.conv.padding_mode"),
    ):
        with pytest.raises(weft.ArgumentError) as refused:
            call()
        assert refused.value.code == code
