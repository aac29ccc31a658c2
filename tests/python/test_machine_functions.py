# SPDX-License-Identifier: Apache-2.0
"""nn.functional, fft, random, linalg and PyTorch's functions of the namespace on the simulated machines: what the host
computes, or a refusal that names the machine and a reason. `pytest -s` prints the table."""

import inspect
from collections import Counter

import numpy as np
import pytest
from test_machine_operators import REFUSALS
from test_torch_functions import case as torch_case

import weft
from weft import _core, fft, linalg, random
from weft.nn import functional as F

# device: types, and how many calls at least give a result for the first of them
MACHINES = {
    "qpu": ("float32 int32 float16", 196),
    "vta": ("int8 float32", 40),
    "wse:4x4": ("float32 float16 int32", 180),
}

rng = np.random.default_rng(3)
X, Y = rng.uniform(-2, 2, (2, 6)), rng.uniform(-2, 2, (2, 6))
SIGNS, LABELS = np.array([1.0, -1.0]), np.array([4, 1])
POSITIVE, UNIT = rng.uniform(0.5, 2, (2, 6)), rng.uniform(0.1, 0.9, (2, 6))
ROW, COLUMN = rng.uniform(-1, 1, 6), rng.uniform(0.5, 1, 4)
LINE, IMAGE, VOLUME = (rng.uniform(-2, 2, s) for s in ((1, 4, 8), (1, 4, 6, 6), (1, 2, 4, 4, 4)))
QUERY = rng.uniform(-1, 1, (1, 2, 3, 4))
SQUARE = rng.uniform(-1, 1, (3, 3)) + 3 * np.eye(3)
SYMMETRIC = SQUARE + SQUARE.T
BYTES = rng.integers(-100, 100, (6, 3)).astype("int8")


def kernel(*shape):
    return rng.uniform(-1, 1, shape)


def keyed(f, *more, **named):
    """A function of random numbers, with the same key on every device."""
    return lambda *x: f(*x, *more, key=random.key(5), **named)


# name: (function or None for the name's own, arguments); arrays go to the device, float arrays with the type of the row
FUNCTIONAL = {
    **{name: [X] for name in """celu elu gelu glu hardsigmoid hardswish hardtanh leaky_relu log_softmax logsigmoid mish relu
        relu6 selu sigmoid silu softmax softmin softplus softsign tanh tanhshrink hardshrink softshrink normalize""".split()},
    **{name: [X, Y] for name in """cosine_similarity huber_loss l1_loss mse mse_loss pairwise_distance smooth_l1_loss
        """.split()},
    **{f"adaptive_{kind}_pool{n}d": [x, 2] for kind in ("avg", "max") for n, x in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    **{f"{kind}_pool{n}d": [x, 2] for kind in ("avg", "max") for n, x in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    **{f"dropout{n}d": (keyed(F.__dict__[f"dropout{n}d"]), [x]) for n, x in ((1, LINE), (2, IMAGE), (3, VOLUME))},
    "alpha_dropout": (keyed(F.alpha_dropout, training=True), [X]),
    "feature_alpha_dropout": (keyed(F.feature_alpha_dropout, training=True), [IMAGE]),
    "dropout": (keyed(F.dropout), [X]),
    "gumbel_softmax": (keyed(F.gumbel_softmax), [X]),
    "rrelu": (keyed(F.rrelu, training=True), [X]),
    "attention": [QUERY, QUERY, QUERY, True],
    "scaled_dot_product_attention": [QUERY, QUERY, QUERY],
    "batch_norm": [IMAGE, COLUMN, COLUMN],
    "group_norm": [IMAGE, 2],
    "instance_norm": [IMAGE],
    "layer_norm": [X, 6, ROW, ROW],
    "rms_norm": [X, 6, ROW],
    "local_response_norm": [IMAGE, 3],
    "bilinear": [X, Y, kernel(3, 6, 6)],
    "linear": [X, kernel(6, 3)],
    "binary_cross_entropy": [UNIT, UNIT],
    "binary_cross_entropy_with_logits": [X, UNIT],
    "channel_shuffle": [IMAGE, 2],
    "pixel_shuffle": [IMAGE, 2],
    "pixel_unshuffle": [IMAGE, 2],
    "conv1d": [LINE, kernel(3, 4, 3)],
    "conv2d": [IMAGE, kernel(3, 4, 3, 3), None, 1, 1],
    "conv3d": [VOLUME, kernel(3, 2, 2, 2, 2)],
    "conv_transpose1d": [LINE, kernel(4, 3, 3)],
    "conv_transpose2d": [IMAGE, kernel(4, 3, 3, 3), None, 2, 1],
    "conv_transpose3d": [VOLUME, kernel(2, 3, 2, 2, 2)],
    "cosine_embedding_loss": [X, Y, SIGNS],
    "cross_entropy": [X, LABELS],
    "nll_loss": [X, LABELS],
    "ctc_loss": [np.log(rng.dirichlet(np.ones(4), (5, 1))), np.array([[1, 2]]), np.array([5]), np.array([2])],
    "quantize_weight": [kernel(32, 3), 8, 32],
    "dequantize_weight": [BYTES, np.ones((1, 3))],
    "quantized_linear": [X, BYTES, np.ones((1, 3))],
    "grouped_linear": [kernel(4, 6), kernel(2, 6, 3), np.array([1, 3])],
    "scaled_mm": (lambda a, b: F.scaled_mm(a.astype("float8_e4m3fn"), b.astype("float8_e4m3fn")), [X, Y.T]),
    "embedding": [kernel(5, 3), LABELS],
    "embedding_bag": [np.array([[0, 2], [1, 1]]), kernel(5, 3)],
    "one_hot": [LABELS, 6],
    "unfold": [IMAGE, 2],
    "fold": [kernel(1, 8, 9), (4, 4), 2],
    "gaussian_nll_loss": [X, Y, POSITIVE],
    "hinge_embedding_loss": [X, np.sign(Y)],
    "kl_div": [-POSITIVE, UNIT],
    "lp_pool1d": [POSITIVE[None], 2, 2],
    "lp_pool2d": [np.abs(IMAGE), 2, 2],
    "lp_pool3d": [np.abs(IMAGE)[None], 2, 2],
    "margin_ranking_loss": [X, Y, np.sign(POSITIVE)],
    "multi_margin_loss": [X, LABELS],
    "multilabel_margin_loss": [X, np.array([[1, 3, -1, 0, 0, 0], [2, -1, 0, 0, 0, 0]])],
    "multilabel_soft_margin_loss": [X, np.round(UNIT)],
    "soft_margin_loss": [X, np.sign(Y)],
    "poisson_nll_loss": [X, POSITIVE],
    "triplet_margin_loss": [X, Y, POSITIVE],
    "triplet_margin_with_distance_loss": [X, Y, POSITIVE],
    "interpolate": [IMAGE, None, 2],
    "pad": [X, (1, 2)],
    "prelu": [X, np.array([0.25])],
    "threshold": [X, 0.1, 20.0],
}  # fmt: skip

LINALG = {
    **{name: [SQUARE] for name in """det diagonal eig eigvals inv matrix_norm matrix_rank matrix_transpose pinv qr slogdet svd
        svdvals trace vector_norm""".split()},
    **{name: [SQUARE, SYMMETRIC] for name in "matmul solve tensordot vecdot cross".split()},
    "cholesky": [SYMMETRIC + 4 * np.eye(3)],
    "eigh": [SYMMETRIC],
    "eigvalsh": [SYMMETRIC],
    "matrix_power": [SQUARE, 3],
    "outer": [ROW, COLUMN],
    **{name: [SQUARE] for name in "cond inverse norm".split()},
    "matrix_exp": [SQUARE / 8],
    "tensorinv": [SQUARE, 1],
    "tensorsolve": [SQUARE, ROW[:3]],
    "lstsq": [SQUARE, ROW[:3]],
    "multi_dot": [[SQUARE, SYMMETRIC, SQUARE]],
    "solve_triangular": (lambda a, b: linalg.solve_triangular(a, b, upper=True), [SQUARE, SYMMETRIC]),
}  # fmt: skip

# Distributions of NumPy's names, made of uniform and normal numbers.
DISTRIBUTIONS = set(
    """beta binomial chisquare default_rng dirichlet exponential gamma geometric gumbel laplace logistic lognormal
    multinomial multivariate_normal poisson rayleigh shuffle standard_normal""".split()
)

FFT = {
    name: [X]
    for name in "fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftn".split()
}


# Functions of no array: of the device.
MADE = {
    "random.bernoulli": lambda d: random.bernoulli(0.4, (3, 5), device=d, key=random.key(3)),
    "random.choice": lambda d: random.choice(weft.asarray([4, 7, 9], dtype="int32", device=d), (4,), key=random.key(3)),
    "random.integers": lambda d: random.integers(-5, 9, (3, 5), dtype="int32", device=d, key=random.key(3)),
    "random.normal": lambda d: random.normal((3, 5), device=d, key=random.key(3)),
    "random.permutation": lambda d: random.permutation(7, device=d, key=random.key(3)),
    "random.uniform": lambda d: random.uniform((3, 5), device=d, key=random.key(3)),
    "random.normal of one": lambda d: random.normal((), device=d, key=random.key(3)),
    "random.uniform of none": lambda d: random.uniform((0, 3), device=d, key=random.key(3)),
    "fft.fftfreq": lambda d: fft.fftfreq(6, device=d),
    "fft.rfftfreq": lambda d: fft.rfftfreq(6, device=d),
}  # fmt: skip


def table():
    rows = {}
    for family, name_of, entries in (
        ("F", F, FUNCTIONAL),
        ("linalg", linalg, LINALG),
        ("fft", fft, FFT),
    ):
        for name, entry in entries.items():
            f, args = entry if isinstance(entry, tuple) else (getattr(name_of, name), entry)
            rows[f"{family}.{name}"] = f, args
    for name in weft._torch_all:
        x, more = torch_case(name)
        x = x[0, 0] if name == "addmv" else x / 4 if name in ("arccos", "arcsin") else x
        rows[f"torch.{name}"] = getattr(weft, name), [x, *more]
    return rows


CASES = table()


def flat(value):
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in flat(v)]
    return [value]


def given(args, dtype, device, tensors=False):
    """The arguments on a device; `tensors`: what layers compute with are tensors."""

    def one(a):
        if isinstance(a, list):
            return [one(x) for x in a]
        if not isinstance(a, np.ndarray):
            return a
        if a.dtype.kind == "f":
            # Integers without 0: a machine without NaN has 0 for 0 / 0.
            a = (np.trunc(a) + (np.trunc(a) == 0) if "int" in dtype else a).astype(dtype)
            x = weft.asarray(a, device=device)
            return weft.Tensor(x, requires_grad=False) if tensors else x
        return weft.asarray(a, device=device)

    return [one(a) for a in args]


def outcome(run, device, dtype):
    """None where the host has no such operation, True for a right result, the refusal, or what is wrong."""
    try:
        want = [v.numpy() if hasattr(v, "numpy") else v for v in flat(run("cpu"))]
    except weft.Error:
        return None
    try:
        values = flat(run(device))
        got = [v.numpy() if hasattr(v, "numpy") else v for v in values]
    except weft.Error as refusal:
        good = REFUSALS.match(refusal.code) and device.split(":")[0] in str(refusal)
        return refusal if good else f"refused without a reason: {refusal.code}: {refusal}"
    values = [v.data if isinstance(v, weft.Tensor) else v for v in values]
    where = {str(v.device) for v in values if hasattr(v, "device")}
    if where - {str(weft.device(device))}:
        return f"computed on {where}"
    near = 3e-2 if "16" in dtype and dtype[0] == "f" else 3e-4
    for g, w in zip(got, want):
        if not isinstance(w, np.ndarray):
            if g != w:
                return f"{g}, not {w}"
            continue
        if (g.shape, g.dtype) != (w.shape, w.dtype):
            return f"{g.dtype}{g.shape} for {w.dtype}{w.shape}"
        if not np.allclose(g, w, rtol=near, atol=near, equal_nan=True):
            return f"got {g.ravel()[:6]}, not {w.ravel()[:6]}"
    return True if len(got) == len(want) else f"{len(got)} results for {len(want)}"


def public(module):
    return {
        name
        for name in getattr(module, "__all__", dir(module))
        if not name.startswith("_")
        and callable(getattr(module, name))
        and not inspect.isclass(getattr(module, name))
    }


# Composed of functions of these tables; test_names_torch.py and test_names_random.py compare them on the host.
COMPOSED = set(
    """adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices adaptive_max_pool3d_with_indices affine_grid celu_ conv_tbc
    elu_ fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices
    grid_sample hardtanh_ leaky_relu_ max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices max_unpool1d
    max_unpool2d max_unpool3d multi_head_attention_forward native_channel_shuffle pdist relu_ rrelu_ selu_ threshold_ upsample
    upsample_bilinear upsample_nearest

    PCG64 Philox RandomState SeedSequence bytes f fork_rng get_rng_state get_state hypergeometric initial_seed logseries manual_seed
    multivariate_hypergeometric negative_binomial noncentral_chisquare noncentral_f pareto permuted power rand randint randn random
    random_integers random_sample ranf sample set_rng_state set_state standard_cauchy standard_exponential standard_gamma standard_t
    triangular vonmises wald weibull zipf""".split()
)


def test_the_tables_have_every_function():
    assert public(F) - COMPOSED == set(FUNCTIONAL)
    assert COMPOSED <= public(F) | public(random)
    assert public(linalg) == set(LINALG)
    made = {name.split()[0].split(".")[1] for name in MADE}
    assert public(fft) - {"use"} == set(FFT) | made & public(fft)
    assert public(random) - {"key", "seed", "split"} - DISTRIBUTIONS - COMPOSED == made & public(
        random
    )


@pytest.mark.parametrize("device", MACHINES)
def test_right_or_refused(device):
    if device.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {device} target")
    types, least = MACHINES[device]
    wrong, rows = [], []
    for dtype in types.split():
        found = {}
        for name, (f, args) in CASES.items():
            layer = name.startswith("F.")
            found[name] = outcome(lambda d: f(*given(args, dtype, d, layer)), device, dtype)
        if not rows:
            found |= {name: outcome(f, device, "float32") for name, f in MADE.items()}
        if dtype == "float32":
            assert [name for name, o in found.items() if o is None] == []
        passed = sum(o is True for o in found.values())
        refused = {n: o for n, o in found.items() if isinstance(o, weft.Error)}
        wrong += [f"{name} of {dtype}: {o}" for name, o in found.items() if isinstance(o, str)]
        kinds = ", ".join(f"{n} {c}" for c, n in Counter(o.code for o in refused.values()).items())
        rows.append((dtype, passed, len(refused), kinds))
    print(f"\n{device:8} {'type':10} passed refused")
    for dtype, passed, refused, kinds in rows:
        print(f"{'':8} {dtype:10} {passed:6} {refused:7}  {kinds}")
    assert not wrong, "\n".join(wrong)
    assert rows[0][1] >= least, rows[0]


def gradients(f, args, device):
    """What the sum of the results, each times its position, gives every float operand."""
    leaves = []

    def one(a):
        if not isinstance(a, np.ndarray) or a.dtype.kind != "f":
            return given([a], "float32", device)[0]
        leaves.append(weft.Tensor(weft.asarray(a.astype("float32"), device=device)))
        return leaves[-1]

    values = [v for v in flat(f(*map(one, args))) if getattr(v, "requires_grad", False)]
    for v in values:
        w = weft.asarray(
            np.linspace(0.5, 1.5, v.size).reshape(v.shape).astype("float32"), device=device
        )
        (v * weft.Tensor(w, requires_grad=False)).sum().backward()
    return [v.data for v in values] + [x.grad for x in leaves if x.grad is not None]


@pytest.mark.parametrize("device", MACHINES)
def test_gradients_are_right_or_refused(device):
    if device.split(":")[0] not in _core.targets():
        pytest.skip(f"built without the {device} target")
    found = {
        name: outcome(lambda d: gradients(f, args, d), device, "float32")
        for name, (f, args) in CASES.items()
        if name.startswith(("F.", "torch.")) or name in ("linalg.det", "linalg.inv", "linalg.solve")
    }
    kinds = Counter(o if o is None or o is True else type(o).__name__ for o in found.values())
    print(f"\n{device:8} {dict(kinds)}")
    wrong = [f"{name}: {o}" for name, o in found.items() if isinstance(o, str)]
    assert not wrong, "\n".join(wrong)
    assert kinds[True] >= (0 if device == "vta" else 140), kinds
