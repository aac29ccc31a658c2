# SPDX-License-Identifier: Apache-2.0
"""nn.functional, forward and with gradients, and functions under weft.compile. The rival is PyTorch."""

from case import Case, draw, varied

((BATCH, HEIGHT), (NUMBER, COLUMNS)) = varied((32, 56), (4096, 512))
IMAGE, ROWS = (BATCH, 32, HEIGHT, HEIGHT), (NUMBER, 2 * COLUMNS)


def functional(name, *args, **options):
    def ours(m, *tensors):
        return getattr(m.nn.functional, name)(*tensors, *args, **options)

    return ours


def tensors(m, operands, gradients):
    """Operands as tensors; whole numbers stay as they are."""
    if m.__name__ == "torch":
        return [
            a.clone().requires_grad_() if gradients and a.is_floating_point() else a
            for a in operands
        ]
    return [
        m.Tensor(a, requires_grad=gradients) if "float" in str(a.dtype) else a for a in operands
    ]


def forward(f):
    def prepare(m, *operands):
        leaves = tensors(m, operands, False)
        return lambda: f(m, *leaves)

    def call(*_):
        raise AssertionError("prepared")

    call.prepare = prepare
    return call


def backward(f):
    """Forward and gradients of the sum of squares for every operand, prepared once."""

    def prepare(m, *operands):
        leaves = tensors(m, operands, True)

        def run():
            for leaf in leaves:
                if getattr(leaf, "requires_grad", False):
                    leaf.grad = None
            out = f(m, *leaves)
            (out * out).sum().backward()
            return [leaf.grad for leaf in leaves if getattr(leaf, "requires_grad", False)]

        return run

    def call(*_):
        raise AssertionError("prepared")

    call.prepare = prepare
    return call


def compiled(f):
    def prepare(m, *operands):
        g = f if m.__name__ == "torch" else m.compile(lambda *a: f(m, *a))
        return (lambda: g(m, *operands)) if m.__name__ == "torch" else (lambda: g(*operands))

    def call(*_):
        raise AssertionError("prepared")

    call.prepare = prepare
    return call


def linear(m, x, weight, bias):
    """weft keeps weights as (in, out)."""
    return m.nn.functional.linear(x, weight.T if m.__name__ == "torch" else weight, bias)


TABLE = {  # name: (function, shapes)
    **{n: (functional(n), (ROWS,)) for n in (
        "relu", "gelu", "silu", "elu", "leaky_relu", "softplus", "hardswish", "mish", "sigmoid", "tanh", "logsigmoid", "glu")},
    "softmax": (lambda m, x: m.nn.functional.softmax(x, -1), (ROWS,)),
    "log_softmax": (lambda m, x: m.nn.functional.log_softmax(x, -1), (ROWS,)),
    "softmax axis 0": (lambda m, x: m.nn.functional.softmax(x, 0), (ROWS,)),
    "softmax 64": (lambda m, x: m.nn.functional.softmax(x, -1), ((100_000, 64),)),
    "layer_norm": (lambda m, x, w, b: m.nn.functional.layer_norm(x, ROWS[1:], w, b), (ROWS, ROWS[1:], ROWS[1:])),
    "group_norm": (lambda m, x, w, b: m.nn.functional.group_norm(x, 8, w, b), (IMAGE, (32,), (32,))),
    "max_pool2d 2": (functional("max_pool2d", 2), (IMAGE,)),
    "max_pool2d 3 step 2": (functional("max_pool2d", 3, 2, 1), (IMAGE,)),
    "avg_pool2d 2": (functional("avg_pool2d", 2), (IMAGE,)),
    "adaptive_avg_pool2d 1": (functional("adaptive_avg_pool2d", 1), (IMAGE,)),
    "interpolate 2": (functional("interpolate", scale_factor=2, mode="nearest"), (IMAGE,)),
    "linear": (linear, ((512, 768), (768, 1024), (1024,))),
    "conv2d 3x3": (functional("conv2d", padding=1), (IMAGE, (48, 32, 3, 3))),
    "conv2d 1x1": (functional("conv2d"), (IMAGE, (64, 32, 1, 1))),
    "conv2d 7x7 step 2": (functional("conv2d", stride=2, padding=3), ((8, 3, 224, 224), (64, 3, 7, 7))),
    "conv2d depthwise": (functional("conv2d", padding=1, groups=32), (IMAGE, (32, 1, 3, 3))),
    "conv2d dilated": (functional("conv2d", padding=2, dilation=2), (IMAGE, (32, 32, 3, 3))),
    "conv1d": (functional("conv1d", padding=2), ((16, 64, 1000), (64, 64, 5))),
    "conv_transpose2d": (functional("conv_transpose2d", stride=2, padding=1), ((16, 32, 28, 28), (32, 16, 4, 4))),
    "attention": (functional("scaled_dot_product_attention"), (((4, 8, 256, 64),) * 3)),
    "mse_loss": (functional("mse_loss"), (ROWS, ROWS)),
    "l1_loss": (functional("l1_loss"), (ROWS, ROWS)),
    "smooth_l1_loss": (functional("smooth_l1_loss"), (ROWS, ROWS)),
    "kl_div": (functional("kl_div", reduction="sum"), (ROWS, ROWS)),
}  # fmt: skip


def cases():
    out = []
    for name, (f, shapes) in TABLE.items():

        def inputs(rng, dtype, shapes=shapes):
            return [draw(rng, s, dtype, 0.1, 1) for s in shapes]

        common = {"layouts": ("layer",), "inputs": inputs}
        out.append(
            Case(
                "forward",
                name,
                forward(f),
                None,
                forward(f),
                dtypes=("float32", "bfloat16"),
                **common,
            )
        )
        out.append(
            Case(
                "backward",
                name + " gradients",
                backward(f),
                None,
                backward(f),
                dtypes=("float32",),
                **common,
            )
        )
    out += [
        Case("forward", "cross_entropy", forward(functional("cross_entropy")), None, forward(functional("cross_entropy")), layouts=("layer",),
             dtypes=("float32",), inputs=lambda rng, t: [draw(rng, (512, 10_000), t), rng.integers(0, 10_000, 512)]),
        Case("forward", "embedding", forward(lambda m, i, w: m.nn.functional.embedding(i, w)), None,
             forward(lambda m, i, w: m.nn.functional.embedding(i, w)), layouts=("layer",), dtypes=("float32", "bfloat16"),
             inputs=lambda rng, t: [rng.integers(0, 50_257, (8, 512)), draw(rng, (50_257, 256), t)]),
        Case("backward", "embedding gradients", backward(lambda m, i, w: m.nn.functional.embedding(i, w)), None,
             backward(lambda m, i, w: m.nn.functional.embedding(i, w)), layouts=("layer",), dtypes=("float32",),
             inputs=lambda rng, t: [rng.integers(0, 50_257, (8, 512)), draw(rng, (50_257, 256), t)]),
    ]  # fmt: skip
    chains = {
        "x * 2 + 1": lambda m, x: x * 2 + 1,
        "tanh gelu": lambda m, x: 0.5 * x * (1 + m.tanh(0.79788456 * (x + 0.044715 * x * x * x))),
        "eight sines": eight_sines,
        "erf of log1p": lambda m, x: m.erf(m.log1p(x)) / (1 + m.exp(-x)),
        "sum of squares": lambda m, x: (x * x).sum(),
    }
    for name, f in chains.items():
        out.append(
            Case(
                "compiled",
                name,
                compiled(f),
                None,
                compiled(f),
                layouts=("4", "1e3", "1e5", "1e7"),
                dtypes=("float32",),
            )
        )
    return out


def eight_sines(m, x):
    k = x
    for _ in range(8):
        k = m.sin(x + 0.01 * k) + 0.1 * k
    return k
