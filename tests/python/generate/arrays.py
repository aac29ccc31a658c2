# SPDX-License-Identifier: Apache-2.0
"""Random array programs: element-wise operations, views, assignments through views, reductions, products. Each runs on NumPy
and on weft, eagerly, inside weft.compile, and as a function whose gradient is compared with differences.

A program is a list of steps (operation, operands, options); value k is the result of step k, the first steps make the inputs."""

import random

import numpy as np
import weft

DTYPES = ["float64", "float32", "int64", "int32", "bool"]
LARGEST = 1e4  # values beyond are not continued with


def _fresh(seed, shape, dtype):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype[0] == "i":
        return rng.integers(-9, 10, shape).astype(dtype)
    return rng.uniform(-2, 2, shape).astype(dtype)


def _index(xp, x, key):
    if isinstance(x, np.ndarray):  # numbers alone give a view here, too; NumPy would copy
        key = (*key, ...) if isinstance(key, tuple) and ... not in key else key
    return x[key]


def _assign(xp, x, key, value):
    x[key] = value
    return x


def _row(name, theirs=None):
    """An operation of the same arguments on both sides; `theirs` is NumPy's name."""

    def run(xp, *operands, **options):
        return getattr(xp, (theirs or name) if xp is np else name)(*operands, **options)

    return run


def _cast(xp, x, dtype):
    return x.astype(dtype)


def _where(xp, c, x, y):
    return xp.where(c != 0, x, y)


def _joined(name, theirs):
    return lambda xp, *xs, axis: getattr(xp, theirs if xp is np else name)(list(xs), axis=axis)


def _permute(xp, x, axes):
    return np.transpose(x, axes) if xp is np else weft.permute_dims(x, axes)


UNARY = ["abs", "negative", "sin", "cos", "tanh", "square", "sign", "floor", "exp"]
BINARY = ["add", "subtract", "multiply", "maximum", "minimum"]
COMPARE = ["less", "greater_equal", "equal", "not_equal"]
REDUCE = ["sum", "max", "min", "mean", "prod"]
OPERATIONS = {
    **{name: _row(name) for name in UNARY + BINARY + COMPARE + REDUCE},
    "any": _row("any"), "all": _row("all"), "argmax": _row("argmax"), "argmin": _row("argmin"),
    "cumulative_sum": _row("cumulative_sum", "cumsum"), "sort": _row("sort"), "flip": _row("flip"), "roll": _row("roll"),
    "matmul": _row("matmul"), "reshape": _row("reshape"), "broadcast_to": _row("broadcast_to"),
    "expand_dims": _row("expand_dims"), "permute": _permute, "index": _index, "assign": _assign, "cast": _cast, "where": _where,
    "concat": _joined("concat", "concatenate"), "stack": _joined("stack", "stack"),
}  # fmt: skip
SMOOTH = {
    "add", "subtract", "multiply", "sin", "cos", "tanh", "square", "exp", "sum", "mean", "prod", "cumulative_sum", "matmul",
    "reshape", "broadcast_to", "expand_dims", "permute", "index", "concat", "stack", "where", "maximum", "abs", "max", "flip",
}  # fmt: skip


def _key(rng, shape):
    if not shape:
        return (...,)  # with () NumPy makes a number of it
    key = []
    for extent in shape:
        kind = rng.random()
        if extent == 0 or kind < 0.35:
            key.append(slice(None))
        elif kind < 0.5:
            key.append(rng.randrange(-extent, extent))
        else:
            step = rng.choice([1, 1, 2, -1, -2])
            low, high = sorted(rng.choices(range(extent + 1), k=2))
            key.append(
                slice(low, high, step)
                if step > 0
                else slice(high - 1 if high else None, low - 1 if low else None, step)
            )
    return tuple(key)


def _fits(shape, target):
    return len(shape) <= len(target) and all(a in (1, b) for a, b in zip(shape[::-1], target[::-1]))


def _axis(rng, x, none=False):
    return None if none and rng.random() < 0.3 else rng.randrange(-x.ndim, x.ndim)


def _step(rng, values, kinds, smooth):
    """A step that NumPy accepts, or None."""
    k = rng.randrange(len(values))
    x = values[k]
    pick = rng.choice(kinds)
    if pick in UNARY or pick in BINARY + ["matmul"]:
        if x.dtype == bool or (
            pick in ("sin", "cos", "tanh", "exp", "floor") and x.dtype.kind != "f"
        ):
            return None
        if pick in UNARY:
            return pick, (k,), {}
        same = [j for j, v in enumerate(values) if v.dtype == x.dtype]
        return pick, (k, rng.choice(same)), {}
    if pick in ("less", "greater_equal") and x.dtype == bool:
        return None  # not ordered in the array API
    if pick in COMPARE:
        return pick, (k, rng.choice([j for j, v in enumerate(values) if v.dtype == x.dtype])), {}
    if pick == "where":
        same = [j for j, v in enumerate(values) if v.dtype == x.dtype]
        return pick, (rng.randrange(len(values)), k, rng.choice(same)), {}
    if pick in ("index", "assign"):
        key = _key(rng, x.shape)
        if pick == "assign" and rng.random() < 0.5:
            shape = x[key].shape
            fits = [j for j, v in enumerate(values) if v.dtype == x.dtype and _fits(v.shape, shape)]
            return (pick, (k, rng.choice(fits)), {"key": key}) if fits else None
        return "index", (k,), {"key": key}
    if pick == "cast":
        return None if smooth else (pick, (k,), {"dtype": rng.choice(DTYPES)})
    if pick == "reshape":
        shapes = [(-1,), (x.size,), x.shape[::-1], (1, *x.shape), (*x.shape, 1)]
        return pick, (k,), {"shape": rng.choice(shapes if x.size else shapes[1:])}
    if pick == "broadcast_to":
        return pick, (k,), {"shape": (rng.randint(1, 3), *x.shape)}
    if pick == "expand_dims":
        return pick, (k,), {"axis": rng.randint(-x.ndim - 1, x.ndim)}
    if x.ndim == 0:
        return None
    if pick == "permute":
        return pick, (k,), {"axes": tuple(rng.sample(range(x.ndim), x.ndim))}
    if pick in ("concat", "stack"):
        same = [j for j, v in enumerate(values) if v.dtype == x.dtype and v.ndim == x.ndim]
        return pick, tuple(rng.choices(same, k=rng.randint(1, 3))), {"axis": _axis(rng, x)}
    options = {"axis": _axis(rng, x, pick in (*REDUCE, "any", "all", "argmax", "argmin"))}
    if pick in (*REDUCE, "any", "all", "argmax", "argmin"):
        options["keepdims"] = rng.random() < 0.4
    if pick in ("sum", "prod", "mean", "cumulative_sum", "max", "min", "sort") and x.dtype == bool:
        return None
    if pick == "mean" and x.dtype.kind != "f":
        return None
    if pick == "roll":
        options["shift"] = rng.randint(-7, 7)
    return pick, (k,), options


def _arguments(step, name):
    """Options as positional arguments where both sides have other names."""
    options = dict(step[2])
    lead = []
    for key in {
        "index": ["key"],
        "assign": ["key"],
        "cast": ["dtype"],
        "reshape": ["shape"],
        "broadcast_to": ["shape"],
        "permute": ["axes"],
        "roll": ["shift"],
    }.get(name, []):
        lead.append(options.pop(key))
    return lead, options


def apply(xp, step, values):
    name, operands, _ = step
    if name == "input":
        made = _fresh(*operands)
        return made if xp is np else weft.asarray(made)
    lead, options = _arguments(step, name)
    given = [values[j] for j in operands]
    if name == "assign":
        return _assign(xp, given[0], lead[0], given[1])
    return OPERATIONS[name](xp, *given, *lead, **options)


def shares_broadcast(steps, k):
    """Whether value k may be a view in which elements share memory: assignments to it have no meaning."""
    name, operands, _ = steps[k]
    return name == "broadcast_to" or (
        name in ("index", "permute", "reshape", "expand_dims", "flip", "assign")
        and shares_broadcast(steps, operands[0])
    )


def program(seed, smooth=False, assigns=True):
    rng = random.Random(seed)
    steps = []
    for k in range(rng.randint(1, 3)):
        shape = tuple(
            rng.choice([0, 1, 2, 3, 5] if not smooth else [1, 2, 3])
            for _ in range(rng.randint(0, 3))
        )
        steps.append(
            ("input", (seed * 7 + k, shape, "float64" if smooth else rng.choice(DTYPES)), {})
        )
    kinds = sorted(SMOOTH if smooth else OPERATIONS)
    values = []
    for step in steps:
        values.append(apply(np, step, values))
    for _ in range(rng.randint(3, 14)):
        step = _step(rng, values, kinds, smooth)
        if (
            step is None
            or step[0] == "assign"
            and (not assigns or shares_broadcast(steps, step[1][0]))
        ):
            continue
        copies = [v.copy() for v in values] if step[0] == "assign" else None
        try:
            with np.errstate(all="ignore"):
                out = np.asarray(apply(np, step, values))
        except (ValueError, IndexError, TypeError):
            if copies:
                for v, c in zip(values, copies):
                    if v.flags.writeable:
                        v[...] = c
            continue
        if (
            out.dtype.name not in DTYPES
            or out.size > 400
            or (
                out.dtype.kind in "fi"
                and out.size
                and not (np.abs(out.astype(float)) < LARGEST).all()
            )
        ):
            if copies:
                return steps
            continue
        steps.append(step)
        values.append(out)
    return steps


def run(xp, steps, inputs=None):
    values = []
    for k, step in enumerate(steps):
        values.append(
            inputs[k] if inputs is not None and k < len(inputs) else apply(xp, step, values)
        )
        if xp is np:
            values[-1] = np.asarray(values[-1])
    return values


def unlike(got, want, narrow=False):
    """What is wrong with `got`; `narrow`: float32 was computed with."""
    got = np.asarray(got.numpy() if hasattr(got, "numpy") else got)
    if got.shape != want.shape:
        return f"shape {got.shape}, {want.shape} is right"
    tolerance = 1e-3 if narrow else 1e-9
    if not np.allclose(
        got.astype(np.float64), want.astype(np.float64), tolerance, tolerance, equal_nan=True
    ):
        return f"{got.tolist()}, {want.tolist()} is right"
    return None


def inputs_of(steps):
    return [s for s in steps if s[0] == "input"]


def eager_difference(steps):
    """None, or what differs from NumPy."""
    with np.errstate(all="ignore"):
        want = run(np, steps)
    try:
        got = run(weft, steps)
    except weft.Error as error:
        return f"refused: {str(error)[:300]}"
    narrow = any(w.dtype == np.float32 for w in want)
    for k, (g, w) in enumerate(zip(got, want)):
        if said := unlike(g, w, narrow):
            return f"value {k}: {said}"
    return None


def compiled_difference(steps):
    """None, or what weft.compile does otherwise than the eager run."""
    count = len(inputs_of(steps))
    made = [apply(weft, s, []) for s in steps[:count]]

    def body(*inputs):
        return run(weft, steps, list(inputs))[-1]

    want = body(*made).numpy()
    try:
        got = weft.compile(body)(*made)
    except weft.Error as error:
        return None if error.code.startswith("compile.") else f"refused: {str(error)[:300]}"
    return unlike(got, want, any(v.dtype == np.float32 for v in run(np, steps)))


def gradient_difference(steps):
    """None, or a derivative of the sum of the last value that differs from central differences in float64."""
    count = len(inputs_of(steps))
    made = [apply(np, s, []) for s in steps[:count]]

    def total(*inputs):
        return float(run(np, steps, list(inputs))[-1].sum())

    tensors = [weft.Tensor(weft.asarray(x), requires_grad=True) for x in made]
    try:
        out = run(weft, steps, list(tensors))[-1]
        if not isinstance(out, weft.Tensor) or not out.requires_grad:
            return None
        out.sum().backward()
    except weft.Error as error:
        return f"refused: {str(error)[:300]}"
    rng = np.random.default_rng(1)
    for k, x in enumerate(made):
        direction = rng.standard_normal(x.shape)
        grad = tensors[k].grad
        found = 0.0 if grad is None else float((grad.numpy() * direction).sum())
        slopes = []
        for h in (1e-5, 1e-6):  # at a kink the two differ
            with np.errstate(all="ignore"):
                up = total(*[v + h * direction if j == k else v for j, v in enumerate(made)])
                down = total(*[v - h * direction if j == k else v for j, v in enumerate(made)])
            slopes.append((up - down) / (2 * h))
        close = 1e-3 * max(1.0, abs(slopes[0]))
        if abs(slopes[0] - slopes[1]) < close / 10 and abs(found - slopes[0]) > close:
            return f"derivative by input {k} is {found}, by differences {slopes[0]}"
    return None


KINDS = {
    "eager": (eager_difference, {}),
    "compiled": (compiled_difference, {"assigns": False}),
    "gradient": (gradient_difference, {"smooth": True, "assigns": False}),
}


def without(steps, k):
    """The steps without step k and what hangs on it, renumbered."""
    gone = {k}
    for j, (name, operands, _) in enumerate(steps):
        if name != "input" and any(o in gone for o in operands):
            gone.add(j)
    new = {j: n for n, j in enumerate(j for j in range(len(steps)) if j not in gone)}
    kept = [steps[j] for j in new]
    return [s if s[0] == "input" else (s[0], tuple(new[o] for o in s[1]), s[2]) for s in kept]


def shrink(steps, difference):
    progress = True
    while progress:
        progress = False
        for k in reversed(range(len(steps))):
            less = without(steps, k)
            if less and inputs_of(less) and difference(less):
                steps, progress = less, True
                break
    return steps


def story(seed, kind):
    """None, or the shortest program found and what is wrong with it."""
    difference, options = KINDS[kind]
    steps = program(seed, **options)
    if difference(steps) is None:
        return None
    steps = shrink(steps, difference)
    lines = "\n".join(f"  {k}: {s}" for k, s in enumerate(steps))
    return f"seed {seed}, {kind}: {difference(steps)}\n{lines}"
