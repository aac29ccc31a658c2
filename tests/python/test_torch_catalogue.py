# SPDX-License-Identifier: Apache-2.0
"""Every layer and loss that programs for torch.nn bring along: value and gradients beside torch's, same weights."""

import itertools

import numpy as np
import pytest

import refusal
import weft
from weft import nn

torch = pytest.importorskip("torch")
import weft.torch as wt  # noqa: E402

F, TN, TF = nn.functional, torch.nn, torch.nn.functional


def refused(kind, code, text, f, *arguments):
    assert text in str(refusal.refused(kind, code, f, *arguments))


def close(got, expected, tolerance=2e-5):
    got, expected = (
        x.detach().numpy() if hasattr(x, "detach") else np.asarray(x) for x in (got, expected)
    )
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def taken(x, of):
    """An argument for weft (of=weft) or torch: floats as tensors with gradient, others as they are."""
    if not isinstance(x, np.ndarray):
        return x
    if of is weft:
        return weft.Tensor(x) if x.dtype.kind == "f" else weft.asarray(x)
    return torch.tensor(x, requires_grad=x.dtype.kind == "f")


def beside(ours, theirs, inputs, tolerance=2e-5, seed=3):
    """Results (the first of several) and the gradients of all inputs and parameters."""
    if isinstance(theirs, torch.nn.Module) and list(theirs.state_dict()):
        wt.load_state_dict(ours, theirs)
    a, b = ([taken(x, of) for x in inputs] for of in (weft, torch))
    y, z = ours(*a), theirs(*b)
    y, z = (v[0] if isinstance(v, tuple) else v for v in (y, z))
    close(y, z, tolerance)
    g = np.random.default_rng(seed).standard_normal(y.shape).astype("float32")
    (y * weft.asarray(g)).sum().backward()
    (z * torch.tensor(g)).sum().backward()
    for p, q in zip(a, b):
        if isinstance(p, weft.Tensor):
            close(p.grad, q.grad, tolerance * 5)
    if isinstance(theirs, torch.nn.Module):
        kept = [p.data for p in ours.parameters()]
        grads = {k: q.grad for k, q in theirs.named_parameters()}
        for p in ours.parameters():  # gradients in the parameters' places, under torch's names
            p.data = p.grad.data
        for name, got in wt.state_dict(ours).items():
            if name in grads:
                close(got, grads[name], tolerance * 5)
        for p, data in zip(ours.parameters(), kept):
            p.data = data


ROW, IMAGE, VOLUME = (2, 6, 11), (2, 6, 7, 9), (2, 6, 5, 4, 6)
POOLS = [
    *((f"MaxPool{n}d", s, (3, 2), {"padding": 1}) for n, s in ((1, ROW), (2, IMAGE), (3, VOLUME))),
    *(
        (f"MaxPool{n}d", s, (2,), {"ceil_mode": True})
        for n, s in ((1, ROW), (2, IMAGE), (3, VOLUME))
    ),
    ("MaxPool2d", IMAGE, ((3, 2), (2, 1)), {"padding": (1, 0), "dilation": (1, 3)}),
    ("MaxPool2d", IMAGE, (3, 3), {"padding": 1, "ceil_mode": True, "dilation": 2}),
    ("MaxPool2d", (6, 7, 9), (3, 2), {}),
    ("MaxPool1d", ROW, (3,), {"dilation": 4, "stride": 1}),
    *((f"AvgPool{n}d", s, (3, 2), {"padding": 1}) for n, s in ((1, ROW), (2, IMAGE), (3, VOLUME))),
    *(
        (f"AvgPool{n}d", s, (3, 2), {"padding": 1, "ceil_mode": c, "count_include_pad": False})
        for n, s in ((1, ROW), (2, IMAGE), (3, VOLUME))
        for c in (False, True)
    ),
    ("AvgPool2d", IMAGE, (3, 2), {"padding": 1, "ceil_mode": True}),
    ("AvgPool2d", IMAGE, ((3, 2), (1, 2)), {"divisor_override": 5}),
    ("AvgPool2d", IMAGE, (2,), {}),
    ("AdaptiveAvgPool1d", ROW, (4,), {}),
    ("AdaptiveAvgPool2d", IMAGE, ((3, 4),), {}),
    ("AdaptiveAvgPool2d", IMAGE, ((None, 3),), {}),
    ("AdaptiveAvgPool2d", (2, 3, 4, 6), (2,), {}),
    ("AdaptiveAvgPool2d", (6, 7, 9), (10,), {}),
    ("AdaptiveAvgPool3d", VOLUME, ((2, 3, 4),), {}),
    ("AdaptiveMaxPool1d", ROW, (4,), {}),
    ("AdaptiveMaxPool2d", IMAGE, ((3, 4),), {}),
    ("AdaptiveMaxPool2d", IMAGE, ((12, 1),), {}),
    ("AdaptiveMaxPool3d", VOLUME, (2,), {}),
    ("LPPool1d", ROW, (2, 3), {"stride": 2}),
    ("LPPool2d", IMAGE, (4, 2), {"ceil_mode": True}),
]


@pytest.mark.parametrize(
    "name, shape, args, options", POOLS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_pools(rng, name, shape, args, options):
    x = rng.permutation(int(np.prod(shape))).reshape(shape).astype("float32") * 0.01 + 0.01
    beside(getattr(nn, name)(*args, **options), getattr(TN, name)(*args, **options), [x], 1e-4)


CONVOLUTIONS = [
    *((n, {"stride": 2, "padding": 1, "groups": 2}) for n in (1, 2, 3)),
    *((n, {"stride": 1, "padding": "same", "dilation": 2}) for n in (1, 2, 3)),
    *((n, {"padding": 1, "padding_mode": m}) for n in (1, 2, 3) for m in ("reflect", "circular")),
    (2, {"padding": (1, 2), "padding_mode": "replicate", "bias": False}),
    (
        3,
        {
            "kernel_size": (3, 1, 2),
            "stride": (2, 1, 3),
            "padding": (1, 0, 2),
            "dilation": (2, 1, 1),
        },
    ),
]


@pytest.mark.parametrize("n, options", CONVOLUTIONS, ids=lambda v: str(v))
def test_convolutions(rng, n, options):
    options = {"kernel_size": 3, "padding": 0, **options}
    ours, theirs = (getattr(m, f"Conv{n}d")(6, 4, **options) for m in (nn, TN))
    beside(ours, theirs, [rng.standard_normal((ROW, IMAGE, VOLUME)[n - 1]).astype("float32")], 1e-4)


TRANSPOSED = [
    *((n, {"stride": 2, "padding": 1, "output_padding": 1}) for n in (1, 2, 3)),
    *((n, {"groups": 2, "dilation": 2, "bias": False}) for n in (1, 2, 3)),
    (
        3,
        {
            "kernel_size": (2, 3, 1),
            "stride": (3, 1, 2),
            "padding": (0, 1, 0),
            "output_padding": (2, 0, 1),
        },
    ),
]


@pytest.mark.parametrize("n, options", TRANSPOSED, ids=lambda v: str(v))
def test_transposed_convolutions(rng, n, options):
    options = {"kernel_size": 3, **options}
    ours, theirs = (getattr(m, f"ConvTranspose{n}d")(6, 4, **options) for m in (nn, TN))
    beside(ours, theirs, [rng.standard_normal((ROW, IMAGE, VOLUME)[n - 1]).astype("float32")], 1e-4)


NORMS = [
    ("BatchNorm1d", ROW, {"num_features": 6}),
    ("BatchNorm2d", IMAGE, {"num_features": 6, "momentum": None}),
    ("BatchNorm2d", IMAGE, {"num_features": 6, "track_running_stats": False}),
    ("BatchNorm3d", VOLUME, {"num_features": 6, "momentum": 0.3}),
    ("InstanceNorm1d", ROW, {"num_features": 6, "affine": True}),
    ("InstanceNorm2d", (6, 7, 9), {"num_features": 6}),
    ("InstanceNorm3d", VOLUME, {"num_features": 6, "affine": True}),
    ("LayerNorm", IMAGE, {"normalized_shape": (7, 9)}),
    ("LocalResponseNorm", IMAGE, {"size": 4, "alpha": 0.3}),
    ("LocalResponseNorm", ROW, {"size": 3, "beta": 0.5, "k": 2.0}),
]


@pytest.mark.parametrize(
    "name, shape, options", NORMS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_norms(rng, name, shape, options):
    ours, theirs = (getattr(m, name)(**options) for m in (nn, TN))
    for k in range(3):
        x = rng.standard_normal(shape).astype("float32")
        beside(ours, theirs, [x], 5e-5)
        for p in ours.parameters():
            p.grad = None
        theirs.zero_grad()
    if getattr(theirs, "running_mean", None) is not None:
        close(ours.running_mean, theirs.running_mean)
        close(ours.running_var, theirs.running_var)
    close(ours.eval()(weft.Tensor(x)), theirs.eval()(torch.tensor(x)))


PLAIN = [
    ("Hardshrink", (0.3,)),
    ("Softshrink", (0.3,)),
    ("Tanhshrink", ()),
    ("Threshold", (0.1, 20.0)),
    ("Softmax2d", ()),
    ("ELU", (0.5,)),
    ("CELU", (0.5,)),
    ("LeakyReLU", (0.2,)),
    ("PReLU", (6,)),
    ("PixelUnshuffle", (2,)),
    ("ChannelShuffle", (3,)),
    ("ReflectionPad2d", ((1, 2, 3, 0),)),
    ("ReplicationPad2d", (2,)),
    ("ConstantPad2d", ((1, 0, 2, 3), 3.5)),
    ("ZeroPad2d", (1,)),
    ("UpsamplingNearest2d", ((7, 3),)),
    ("UpsamplingBilinear2d", (None, 2)),
    ("Unfold", ((2, 3), (2, 1), (1, 0), (1, 2))),
    ("Unflatten", (1, (2, 3))),
    ("Flatten", (2,)),
    ("Softmin", (1,)),
]


@pytest.mark.parametrize("name, args", PLAIN, ids=lambda v: v if isinstance(v, str) else "")
def test_plain_layers(rng, name, args):
    x = rng.standard_normal((2, 6, 4, 8)).astype("float32")
    ours, theirs = (getattr(m, name)(*args) for m in (nn, TN))
    if name == "ChannelShuffle":  # torch 1.13 has no gradient of its own
        close(ours(weft.Tensor(x)), theirs(torch.tensor(x)))
        return
    beside(ours, theirs, [x])


@pytest.mark.parametrize("n, shape", [(1, ROW), (3, VOLUME)])
def test_borders_of_rows_and_volumes(rng, n, shape):
    x = rng.standard_normal(shape).astype("float32")
    beside(*(getattr(m, f"ConstantPad{n}d")(2, 1.5) for m in (nn, TN)), [x])
    beside(*(getattr(m, f"ReplicationPad{n}d")(2) for m in (nn, TN)), [x])
    beside(*(getattr(m, f"ReflectionPad{n}d")((2, 1) * n) for m in (nn, TN)), [x])


def test_fold(rng):
    for options in ({}, {"padding": 1, "stride": 2}, {"dilation": (2, 1), "stride": (1, 2)}):
        theirs = TN.Fold((5, 7), (2, 3), **options)
        windows = TN.Unfold((2, 3), **options)(torch.zeros(1, 1, 5, 7)).shape[2]
        x = rng.standard_normal((2, 12, windows)).astype("float32")
        beside(nn.Fold((5, 7), (2, 3), **options), theirs, [x])
    x = weft.Tensor(rng.standard_normal((1, 4, 4)))
    first = weft.grad(lambda v: (F.fold(v, 3, 2) ** 3).sum())(x)
    (first * first).sum().backward()
    t = torch.tensor(x.numpy(), requires_grad=True)
    (g,) = torch.autograd.grad((TF.fold(t, (3, 3), 2) ** 3).sum(), t, create_graph=True)
    (g * g).sum().backward()
    close(x.grad, t.grad, 1e-9)


def test_tables_of_rows(rng):
    index = rng.integers(0, 9, (4, 5))
    index[0, 1] = index[2, 3] = 3
    beside(nn.Embedding(9, 4, padding_idx=3), TN.Embedding(9, 4, padding_idx=3), [index])
    assert not nn.Embedding(9, 4, padding_idx=-2).weight.data[7].any()
    for mode in ("sum", "mean", "max"):
        beside(nn.EmbeddingBag(9, 4, mode=mode), TN.EmbeddingBag(9, 4, mode=mode), [index])
        rows, offsets = rng.integers(0, 9, 11), np.array([0, 4, 4, 9])
        beside(nn.EmbeddingBag(9, 4, mode=mode), TN.EmbeddingBag(9, 4, mode=mode), [rows, offsets])
    table = rng.standard_normal((5, 3)).astype("float32")
    frozen = nn.Embedding.from_pretrained(weft.asarray(table))
    assert not frozen.weight.requires_grad
    close(frozen(weft.asarray([4, 0])), table[[4, 0]])
    close(F.embedding(weft.asarray([1, 2]), weft.Tensor(table)), table[1:3])
    assert F.one_hot(weft.asarray([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]


def test_distances(rng):
    x, y = rng.standard_normal((2, 7, 5)).astype("float32")
    for p in (1.0, 2.0, 3.0, float("inf")):
        beside(nn.PairwiseDistance(p), TN.PairwiseDistance(p), [x, y])
    beside(nn.CosineSimilarity(0), TN.CosineSimilarity(0), [x, y])
    x3 = rng.standard_normal((3, 4, 5)).astype("float32")
    y3 = rng.standard_normal((3, 4, 6)).astype("float32")
    beside(nn.Bilinear(5, 6, 2), TN.Bilinear(5, 6, 2), [x3, y3])
    close(F.normalize(weft.Tensor(x), dim=0), TF.normalize(torch.tensor(x), dim=0))


# ---- losses

SIGNS = np.where(np.arange(7) % 3 == 0, -1, 1)
LOSSES = {
    "MarginRankingLoss": (((7,), (7,)), SIGNS.astype("int64"), {"margin": 0.3}),
    "HingeEmbeddingLoss": (((7,),), SIGNS.astype("int64"), {"margin": 0.7}),
    "CosineEmbeddingLoss": (((7, 4), (7, 4)), SIGNS.astype("int64"), {"margin": 0.1}),
    "SoftMarginLoss": (((7,),), SIGNS.astype("int64"), {}),
    "MultiMarginLoss": (((7, 4),), np.arange(7) % 4, {"margin": 0.8}),
    "MultiMarginLoss, squares": (
        ((7, 4),),
        np.arange(7) % 4,
        {"p": 2, "weight": [0.5, 1.0, 2.0, 0.1]},
    ),
    "MultiLabelMarginLoss": (
        ((3, 4),),
        np.array([[1, 3, -1, 0], [-1, 2, 2, 2], [0, 1, 2, 3]]),
        {},
    ),
    "MultiLabelSoftMarginLoss": (((7, 4),), "bits", {"weight": [0.5, 1.0, 2.0, 0.1]}),
    "TripletMarginLoss": (((7, 4),) * 3, None, {"margin": 2.0, "p": 3.0}),
    "TripletMarginLoss, swapped": (((7, 4),) * 3, None, {"swap": True}),
    "PoissonNLLLoss": (((7, 4),), "counts", {}),
    "PoissonNLLLoss, full": (((7, 4),), "counts", {"full": True}),
    "KLDivLoss": (((7, 4),), "floats", {"log_target": True}),
    "SmoothL1Loss": (((7, 4),), "floats", {"beta": 0.4}),
    "BCEWithLogitsLoss": (
        ((7, 4),),
        "bits",
        {"weight": [0.5, 1.0, 2.0, 0.1], "pos_weight": [2.0, 1.0, 0.5, 3.0]},
    ),
    "NLLLoss": (((7, 4),), np.arange(7) % 4, {"weight": [0.5, 1.0, 2.0, 0.1], "ignore_index": 2}),
    "CrossEntropyLoss": (
        ((7, 4),),
        "shares",
        {"label_smoothing": 0.2, "weight": [0.5, 1.0, 2.0, 0.1]},
    ),
    "CrossEntropyLoss, images": (((3, 4, 2, 5),), "shares", {}),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses(rng, name, reduction):
    shapes, target, options = LOSSES[name]
    inputs = [rng.standard_normal(s).astype("float32") for s in shapes]
    if isinstance(target, str):
        s = shapes[0]
        target = {
            "bits": lambda: rng.integers(0, 2, s).astype("float32"),
            "counts": lambda: rng.integers(0, 5, s).astype("float32"),
            "floats": lambda: rng.standard_normal(s).astype("float32"),
            "shares": lambda: rng.dirichlet([1.0] * s[1], (s[0], *s[2:])).astype("float32"),
        }[target]()
        target = np.moveaxis(target, -1, 1) if name.endswith("images") else target
    name = name.split(",")[0]
    options_torch = {k: torch.tensor(v) if isinstance(v, list) else v for k, v in options.items()}
    options = {k: weft.asarray(v) if isinstance(v, list) else v for k, v in options.items()}
    ours = getattr(nn, name)(reduction=reduction, **options)
    theirs = getattr(TN, name)(reduction=reduction, **options_torch)
    if target is not None:
        fixed = target
        beside(
            lambda *a: ours(*a, weft.asarray(fixed)),
            lambda *a: theirs(*a, torch.tensor(fixed)),
            inputs,
        )
    else:
        beside(ours, theirs, inputs)


def test_gaussian_losses(rng):
    x, y = rng.standard_normal((2, 7, 4)).astype("float32")
    for shape, full in itertools.product([(7, 4), (7, 1), (7,)], (False, True)):
        var = rng.random(shape).astype("float32") + 0.1
        var.flat[0] = 1e-9
        beside(
            nn.GaussianNLLLoss(full=full, eps=1e-3),
            TN.GaussianNLLLoss(full=full, eps=1e-3),
            [x, y, var],
            1e-4,
        )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_sequences_of_labels(rng, reduction):
    labels = rng.integers(1, 6, (4, 5))
    labels[1, 1] = labels[1, 0]
    lengths, counts = np.array([12, 9, 10, 12]), np.array([5, 3, 0, 4])
    x = rng.standard_normal((12, 4, 6)).astype("float32")

    def ours(t):
        return nn.CTCLoss(reduction=reduction)(
            t.log_softmax(2), weft.asarray(labels), weft.asarray(lengths), weft.asarray(counts)
        )

    def theirs(t):
        return TN.CTCLoss(reduction=reduction)(
            t.log_softmax(2), torch.tensor(labels), torch.tensor(lengths), torch.tensor(counts)
        )

    beside(ours, theirs, [x], 1e-4)
    flat = np.concatenate([row[:n] for row, n in zip(labels, counts)])
    a = F.ctc_loss(
        weft.Tensor(x).log_softmax(2),
        flat.tolist(),
        lengths.tolist(),
        counts.tolist(),
        0,
        reduction,
    )
    close(a, ours(weft.Tensor(x)))
    tight = weft.Tensor(x[:2, :1]).log_softmax(2)  # two equal labels need three steps
    assert F.ctc_loss(tight, [[2, 2]], [2], [2]).item() == np.inf
    assert F.ctc_loss(tight, [[2, 2]], [2], [2], zero_infinity=True).item() == 0


# ---- attention


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("masked", ["no", "bool", "float", "heads", "padding"])
def test_attention_of_torch(rng, first, masked):
    n, t, s, e, heads = 3, 4, 6, 8, 2
    shape = (lambda m, w: (n, m, w)) if first else (lambda m, w: (m, n, w))
    for kdim, vdim in ((None, None), (5, 7)):
        options = {"kdim": kdim, "vdim": vdim, "batch_first": first}
        ours, theirs = (m.MultiheadAttention(e, heads, **options) for m in (nn, TN))
        theirs.in_proj_bias.data = torch.tensor(rng.standard_normal(3 * e).astype("float32"))
        q, k, v = (
            rng.standard_normal(shape(m, w)).astype("float32")
            for m, w in ((t, e), (s, kdim or e), (s, vdim or e))
        )
        mask = {
            "no": {},
            "bool": {"attn_mask": np.triu(np.ones((t, s), bool), 3)},
            "float": {"attn_mask": rng.standard_normal((t, s)).astype("float32")},
            "heads": {"attn_mask": rng.standard_normal((n * heads, t, s)).astype("float32")},
            "padding": {"key_padding_mask": np.arange(s) >= np.array([[6], [4], [1]])},
        }[masked]
        wt.load_state_dict(ours, theirs)
        a = {k: weft.asarray(m) for k, m in mask.items()}
        b = {k: torch.tensor(m) for k, m in mask.items()}
        beside(lambda *x: ours(*x, **a), lambda *x: theirs(*x, **b), [q, k, v])
        for average in (True, False):
            got = ours(*map(weft.Tensor, (q, k, v)), average_attn_weights=average, **a)[1]
            close(got, theirs(*map(torch.tensor, (q, k, v)), average_attn_weights=average, **b)[1])
    single = [rng.standard_normal((m, e)).astype("float32") for m in (t, s, s)]
    beside(nn.MultiheadAttention(e, heads), TN.MultiheadAttention(e, heads), single)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_transformers(rng, norm_first, activation):
    options = {
        "dim_feedforward": 12,
        "dropout": 0.0,
        "activation": activation,
        "norm_first": norm_first,
        "batch_first": True,
    }
    x, y = rng.standard_normal((2, 5, 8)), rng.standard_normal((2, 4, 8))
    x, y = x.astype("float32"), y.astype("float32")
    ours, theirs = (m.TransformerEncoderLayer(8, 2, **options) for m in (nn, TN))
    beside(ours, theirs, [x], 1e-4)
    ours = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, **options), 2)
    theirs = TN.TransformerDecoder(TN.TransformerDecoderLayer(8, 2, **options), 2)
    beside(ours, theirs, [x, y], 1e-4)
    ours, theirs = (
        m.TransformerEncoder(m.TransformerEncoderLayer(8, 2, **options), 2, m.LayerNorm(8))
        for m in (nn, TN)
    )
    beside(ours, theirs, [x], 1e-4)
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 2}
    ours, theirs = (m.Transformer(8, 2, **layers, **options) for m in (nn, TN))
    wt.load_state_dict(ours, theirs)
    assert list(wt.state_dict(ours)) == list(theirs.state_dict())
    mask = TN.Transformer.generate_square_subsequent_mask(4)
    close(nn.Transformer.generate_square_subsequent_mask(4), mask)
    padding = np.arange(5) >= np.array([[5], [3]])
    a = {"tgt_mask": weft.asarray(mask.numpy()), "src_key_padding_mask": weft.asarray(padding)}
    b = {"tgt_mask": mask, "src_key_padding_mask": torch.tensor(padding)}
    beside(lambda *v: ours(*v, **a), lambda *v: theirs(*v, **b), [x, y], 1e-4)


# ---- chance


def test_left_out_channels_and_kept_moments():
    weft.random.seed(5)
    x = weft.Tensor(np.ones((40, 50, 3, 2), "float32"))
    volumes = nn.Dropout3d(0.3)(x[:, :, None]).numpy()
    assert (volumes.reshape(2000, 6) == volumes.reshape(2000, 6)[:, :1]).all() and not volumes.all()
    for layer in (nn.Dropout2d(0.3), nn.FeatureAlphaDropout(0.3)):
        y = layer(x).numpy().reshape(2000, 6)
        assert (y == y[:, :1]).all() and 0.25 < (y[:, 0] < 1).mean() < 0.35
        assert layer.eval()(x) is x
    y = nn.Dropout1d(0.3)(x[0]).numpy()
    np.testing.assert_allclose(np.unique(y.reshape(150, 2).sum(1)), [0, 2 / 0.7], rtol=1e-6)
    z = weft.random.normal((200000,))
    for p in (0.1, 0.5):
        kept = nn.AlphaDropout(p)(weft.Tensor(z)).numpy()
        assert abs(kept.mean()) < 0.02 and abs(kept.std() - 1) < 0.02
        low = np.unique(kept.round(4), return_counts=True)
        assert abs(low[1].max() / z.size - p) < 0.01
    slopes = -F.rrelu(weft.Tensor(-np.ones(9999, "float32")), training=True).numpy()
    assert 0.125 <= slopes.min() < 0.13 and 0.32 < slopes.max() < 1 / 3 and slopes.std() > 0.05
    close(nn.RReLU().eval()(weft.Tensor(-np.ones(3, "float32"))), np.full(3, -11 / 48), 1e-6)


def test_choices_with_gradients():
    weft.random.seed(6)
    logits = weft.Tensor(np.log(np.tile([0.2, 0.5, 0.3], (20000, 1)).astype("float32")))
    soft, hard = F.gumbel_softmax(logits), F.gumbel_softmax(logits, tau=0.5, hard=True)
    np.testing.assert_allclose(soft.sum(1).numpy(), 1, rtol=1e-5)
    counts = hard.numpy()
    np.testing.assert_allclose(np.sort(counts, 1)[:, :2], 0, atol=1e-6)
    np.testing.assert_allclose(counts.mean(0), [0.2, 0.5, 0.3], atol=0.02)
    (hard[:, 1]).sum().backward()
    assert np.abs(logits.grad.numpy()).max() > 0


# ---- refusals


def test_what_does_not_fit_is_refused():
    x = weft.Tensor(np.zeros((2, 6, 7, 9), "float32"))
    shape = weft.ShapeError
    wrong = weft.ArgumentError
    labels = weft.asarray([0, 1])
    logits = weft.Tensor(np.zeros((2, 3), "float32"))
    time = weft.Tensor(np.zeros((4, 2, 3), "float32"))
    for kind, code, text, call in [
        (shape, "nn.pool.shape", "max_pool1d of shape (2, 6, 7, 9)", lambda: F.max_pool1d(x, 2)),
        (shape, "nn.pool.shape", "padding (2, 2)", lambda: F.avg_pool2d(x, 3, padding=2)),
        (shape, "nn.pool.empty", "a window of 8 entries", lambda: F.max_pool2d(x, 8)),
        (
            shape,
            "nn.adaptive_pool.shape",
            "to the size (0, 2)",
            lambda: F.adaptive_max_pool2d(x, (0, 2)),
        ),
        (
            wrong,
            "nn.conv.padding_mode",
            "'mirror'",
            lambda: nn.Conv2d(1, 1, 3, padding_mode="mirror"),
        ),
        (
            shape,
            "nn.conv3d.shape",
            "weights (1, 6, 3, 3)",
            lambda: F.conv3d(x, weft.Tensor(np.zeros((1, 6, 3, 3)))),
        ),
        (shape, "nn.pixel_unshuffle.shape", "by 2", lambda: F.pixel_unshuffle(x, 2)),
        (shape, "nn.channel_shuffle.shape", "4 groups", lambda: F.channel_shuffle(x, 4)),
        (shape, "nn.unfold.shape", "(6, 7, 9)", lambda: F.unfold(x[0], 2)),
        (shape, "nn.fold.shape", "needs (n, c, 4)", lambda: F.fold(x[0], 3, 2)),
        (shape, "nn.local_response_norm.shape", "(2, 3)", lambda: F.local_response_norm(logits, 2)),
        (shape, "nn.dropout.shape", "dropout2d of shape (2, 3)", lambda: F.dropout2d(logits)),
        (wrong, "nn.norm.extent", "num_features=3", lambda: nn.BatchNorm1d(3, num_features=3)),
        (
            wrong,
            "nn.embedding_bag.mode",
            "'min'",
            lambda: nn.EmbeddingBag(3, 2, mode="min")(labels, labels),
        ),
        (shape, "nn.embedding_bag.shape", "without offsets", lambda: nn.EmbeddingBag(3, 2)(labels)),
        (
            wrong,
            "nn.loss.ignore_index",
            "a float",
            lambda: nn.CrossEntropyLoss(ignore_index=0.5)(logits, labels),
        ),
        (wrong, "nn.loss.reduction", "a float", lambda: nn.MSELoss(0.5)),
        (
            weft.IndexError,
            "nn.loss.label",
            "outside [0, 3)",
            lambda: F.multi_margin_loss(logits, labels + 2),
        ),
        (
            shape,
            "nn.multi_margin_loss.shape",
            "(4, 2, 3)",
            lambda: F.multi_margin_loss(time, labels),
        ),
        (
            shape,
            "nn.multilabel_margin_loss.shape",
            "(2,)",
            lambda: F.multilabel_margin_loss(logits, labels),
        ),
        (
            shape,
            "nn.gaussian_nll_loss.var",
            "(3,)",
            lambda: F.gaussian_nll_loss(logits, logits, logits[0]),
        ),
        (
            wrong,
            "nn.gaussian_nll_loss.var",
            "smallest -1",
            lambda: F.gaussian_nll_loss(logits, logits, logits - 1),
        ),
        (shape, "nn.ctc_loss.shape", "(2, 3)", lambda: F.ctc_loss(logits, [[1]], [1], [1])),
        (
            wrong,
            "nn.ctc_loss.lengths",
            "[5, 1] of input",
            lambda: F.ctc_loss(time, [[1], [1]], [5, 1], [1, 1]),
        ),
        (shape, "nn.attention.heads", "3 heads", lambda: nn.MultiheadAttention(8, 3)),
        (
            shape,
            "nn.attention.shape",
            "(2, 3)",
            lambda: nn.MultiheadAttention(8, 2)(logits, logits, logits),
        ),
        (
            shape,
            "nn.attention.mask",
            "(2, 3)",
            lambda: nn.MultiheadAttention(3, 1)(time, time, time, attn_mask=logits),
        ),
        (
            shape,
            "nn.attention.mask",
            "padding mask",
            lambda: nn.MultiheadAttention(3, 1)(time, time, time, logits),
        ),
        (
            wrong,
            "nn.transformer.activation",
            "'tanh'",
            lambda: nn.TransformerEncoderLayer(8, 2, activation="tanh"),
        ),
    ]:
        refused(kind, code, text, call)
