# SPDX-License-Identifier: Apache-2.0
"""How many kernels a call launches on a device with a grid, beside the operations that PyTorch's eager mode dispatches.

    PYTHONPATH=python python bench/launches.py [--device opencl:0] [--only TEXT ...] [--least N] [--all] [--public]

A recorded call gives our number. PyTorch's is the number of operations that reach a device in its dispatcher, views and empty
arrays aside: most of them launch one kernel on a card, some several, so rows with more launches than that are candidates, no
verdicts. The table is the sweep's (bench/sweep/cases.py) with small arrays of one type, and functions that it has not. Calls
that wait for their result cannot be recorded and are listed at the end.

--public: every public function of weft, weft.special, weft.nn.functional and steps of optimizers, of one to three arrays of an odd
shape, float32, bfloat16, int32 and bool, forward and with a backward pass, sorted by launches. Functions that want other arguments are
listed at the end, those of the table above aside.
"""

import argparse
import inspect
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "sweep"))
import cases
import libraries
import torch
import weft
from torch.utils._python_dispatch import TorchDispatchMode
from weft import _core

_FREE = (
    "view _unsafe_view t transpose permute expand slice select unsqueeze squeeze detach alias as_strided empty empty_like "
    "empty_strided new_empty reshape _reshape_alias unbind split diagonal lift_fresh new_empty_strided split_with_sizes "
    "_local_scalar_dense movedim real imag view_as_real view_as_complex unfold narrow is_same_size"
)
FREE = frozenset(_FREE.split())


class Counted(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().partition("::")[2].partition(".")[0]
        if name not in FREE:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


def ours(f, device):
    """(launches, "") of a call, or (None, why it could not be recorded)."""
    f()
    try:
        return _core._record(_core.MemoryPool(device), f)[0].launches, ""
    except weft.Error as reason:
        return None, str(reason).partition("\n")[0][:100]


def theirs(f):
    f()
    with Counted() as counted:
        f()
    return counted.names


def more_cases():
    """Functions of layers and losses that the sweep has no row for, or one with gradients alone."""
    F = lambda name, *a, **o: lambda m, *x: getattr(m.nn.functional, name)(*x, *a, **o)
    rows, image = (16, 32), (2, 4, 8, 8)
    out = {
        "rms_norm": (lambda m, x, w: m.nn.functional.rms_norm(x, (32,), w, 1e-5), (rows, (32,))),
        "layer_norm plain": (lambda m, x: m.nn.functional.layer_norm(x, (32,)), (rows,)),
        "layer_norm": (
            lambda m, x, w, b: m.nn.functional.layer_norm(x, (32,), w, b),
            (rows, (32,), (32,)),
        ),
        "group_norm plain": (F("group_norm", 2), (image,)),
        "instance_norm": (F("instance_norm"), (image,)),
        "local_response_norm": (F("local_response_norm", 3), (image,)),
        "batch_norm evaluation": (
            lambda m, x, a, b, w, c: m.nn.functional.batch_norm(x, a, b, w, c),
            (image, (4,), (4,), (4,), (4,)),
        ),
        "normalize": (F("normalize"), (rows,)),
        "cosine_similarity": (F("cosine_similarity"), (rows, rows)),
        "pairwise_distance": (F("pairwise_distance"), (rows, rows)),
        **{
            name: (F(name), (rows, rows))
            for name in (
                "mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy binary_cross_entropy_with_logits "
                "soft_margin_loss poisson_nll_loss"
            ).split()
        },
        "gaussian_nll_loss": (F("gaussian_nll_loss"), (rows, rows, rows)),
        "triplet_margin_loss": (F("triplet_margin_loss"), (rows, rows, rows)),
        "softmin": (F("softmin"), (rows,)),
        "logsigmoid": (F("logsigmoid"), (rows,)),
        "threshold": (F("threshold", 0.5, 0.1), (rows,)),
        "hardtanh": (F("hardtanh"), (rows,)),
        "relu6": (F("relu6"), (rows,)),
        "prelu": (F("prelu"), (image, (4,))),
        "pixel_shuffle": (F("pixel_shuffle", 2), (image,)),
        "lerp": (lambda m, x, y: m.lerp(x, y, 0.3), (rows, rows)),
        "addcmul": (lambda m, x, y, z: m.addcmul(x, y, z, value=0.5), (rows, rows, rows)),
        "norm": (lambda m, x: m.linalg.vector_norm(x), (rows,)),
        "norm rows": (
            lambda m, x: m.linalg.vector_norm(x, **({"dim": 1} if m is torch else {"axis": 1})),
            (rows,),
        ),
        "var rows": (lambda m, x: x.var(1), (rows,)),
        "std": (lambda m, x: x.std(), (rows,)),
        "logsumexp": (lambda m, x: m.logsumexp(x, 1), (rows,)),
        "cumsum": (lambda m, x: x.cumsum(1), (rows,)),
        "outer": (lambda m, x, y: m.outer(x, y), ((32,), (16,))),
        "trace": (lambda m, x: m.trace(x), ((16, 16),)),
        "nan_to_num": (lambda m, x: m.nan_to_num(x), (rows,)),
        "x += y": (lambda m, x, y: x.__iadd__(y), (rows, rows)),
        "x[1:3] = 0": (_fill, (rows,)),
        "masked_fill": (lambda m, x, y: x.masked_fill(y > 0.5, 0.0), (rows, rows)),
        "linear": (lambda m, x, w, b: m.nn.functional.linear(x, w, b), (rows, (32, 32), (32,))),
        "bilinear upsampling": (F("interpolate", scale_factor=2, mode="bilinear"), (image,)),
        "avg_pool2d": (F("avg_pool2d", 2), (image,)),
        "conv2d": (
            lambda m, x, w, b: m.nn.functional.conv2d(x, w, b, padding=1),
            (image, (4, 4, 3, 3), (4,)),
        ),
    }
    for name, (f, shapes) in out.items():
        yield f"nn {name}", f, shapes


def _fill(m, x):
    x[1:3] = 0
    return x


def run(name, make, device, args, left):
    """Prints a row where ours launches more than theirs dispatches."""
    if args.only and not any(text in name for text in args.only):
        return None
    sides = make()
    if sides is None:
        return None
    mine, other = sides
    try:
        count, why = ours(mine, device)
    except weft.Error as reason:
        left.append(f"{name}: {str(reason).partition(chr(10))[0][:100]}")
        return None
    if count is None:
        left.append(f"{name}: {why}")
        return None
    names = theirs(other)
    if args.all or count - len(names) >= args.least:
        print(
            f"{name:44s} ours {count:3d}  torch {len(names):3d}  {' '.join(names)[:90]}", flush=True
        )
    return count, len(names)


def sweep_rows(device):
    weft_side, torch_side, seen = libraries.Weft(device), libraries.Torch("cpu", 1), set()
    for case in cases.all_cases():
        small = [la for la in case.layouts if la in ("mid2d", "mid3d", "1e3")] or [
            la
            for la in case.layouts
            if la not in ("1e7", "1e5", "odd", "square", "tall", "wide", "batched", "stepped")
        ]
        if not small or (case.kind, case.name) in seen or not case.torch:
            continue
        seen.add((case.kind, case.name))
        layout, dtype = small[0], case.dtypes[0]

        def make(case=case, layout=layout, dtype=dtype):
            arrays = case.operands(np.random.default_rng(1), layout, dtype)
            if max((a.size for a in arrays), default=0) > 1 << 22:
                return None
            return tuple(
                case.function(side, layout, dtype, arrays) for side in (weft_side, torch_side)
            )

        yield f"{case.kind} {case.name} {layout} {dtype}", make
    rng = np.random.default_rng(2)
    for name, f, shapes in more_cases():
        for gradients in (False, True):

            def make(f=f, shapes=shapes, gradients=gradients):
                host = [rng.random(s, np.float32) * 0.9 + 0.05 for s in shapes]
                own = [
                    weft.Tensor(weft.asarray(a, device=device), requires_grad=gradients)
                    for a in host
                ]
                other = [torch.from_numpy(a.copy()).requires_grad_(gradients) for a in host]
                if not gradients:
                    return (lambda: f(weft, *own)), (lambda: f(torch, *other))

                def step(m, leaves):
                    for leaf in leaves:
                        leaf.grad = None
                    f(m, *leaves).sum().backward()

                return (lambda: step(weft, own)), (lambda: step(torch, other))

            if gradients and name in ("nn x += y", "nn x[1:3] = 0"):
                continue
            yield name + (" with gradients" if gradients else ""), make


MODULES = {"": "", "special": "special", "nn.functional": "nn.functional"}
SHAPE = (5, 7, 33)


def public_functions():
    """(name, module's name, function's name, how many arrays it takes)"""
    seen = set()
    for path in MODULES:
        module = weft
        for part in filter(None, path.split(".")):
            module = getattr(module, part)
        for name in sorted(getattr(module, "__all__", dir(module))):
            function = getattr(module, name, None)
            if name.startswith("_") or inspect.isclass(function) or not callable(function):
                continue
            try:
                signature = inspect.signature(function)
            except (TypeError, ValueError):
                count = (1, 2, 3)
            else:
                wanted = [
                    p
                    for p in signature.parameters.values()
                    if p.default is p.empty
                    and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
                ]
                count = (len(wanted),) if 1 <= len(wanted) <= 3 else ()
            if (path, name) not in seen and count:
                seen.add((path, name))
                yield (f"{path}.{name}" if path else name), path, name, count


def _values(rng, dtype, shape):
    if dtype == "bool":
        return rng.random(shape) > 0.5
    if dtype == "int32":
        return rng.integers(1, 9, shape).astype("int32")
    return (rng.random(shape) * 0.8 + 0.1).astype("float32")


def _torch_function(path, name):
    module = torch
    for part in filter(None, path.split(".")):
        module = getattr(module, part)
    return getattr(module, name, None)


def public_row(path, name, count, dtype, gradients, device):
    """(our launches or why there are none, the operations of PyTorch or None)"""
    module = weft
    for part in filter(None, path.split(".")):
        module = getattr(module, part)
    function, rng = getattr(module, name), np.random.default_rng(3)
    host = [_values(rng, dtype, SHAPE) for _ in range(count)]
    own = [weft.asarray(a, device=device).astype(dtype) for a in host]
    if gradients:
        own = [weft.Tensor(a, requires_grad=True) for a in own]

    def call(f, leaves):
        out = f(*leaves)
        if not gradients:
            return out
        for leaf in leaves:
            leaf.grad = None
        outs = [o for o in (out if isinstance(out, (tuple, list)) else [out]) if o.requires_grad]
        if outs:
            outs[0].sum().backward()

    mine = ours(lambda: call(function, own), weft.device(device))
    theirs_count, like = None, _torch_function(path, name)
    if like is not None:
        other = [torch.from_numpy(a).to(getattr(torch, dtype)) for a in host]
        other = [a.requires_grad_() for a in other] if gradients else other
        try:
            theirs_count = len(theirs(lambda: call(like, other)))
        except Exception:  # noqa: BLE001
            pass
    return mine, theirs_count


def optimizer_rows(device):
    shapes = [(7,), (5, 3), (33, 9), (1,)] * 4
    for name in (
        "SGD",
        "Adam",
        "AdamW",
        "RMSprop",
        "Adagrad",
        "NAdam",
        "RAdam",
        "Adamax",
        "Adadelta",
    ):
        if not hasattr(weft.optim, name):
            continue
        leaves = [weft.Tensor(weft.ones(s, device=device), requires_grad=True) for s in shapes]
        for leaf in leaves:
            leaf.grad = weft.Tensor(weft.ones(leaf.shape, device=device), requires_grad=False)
        step = getattr(weft.optim, name)(leaves, lr=0.01).step
        step()
        count, why = ours(step, weft.device(device))
        yield f"optim.{name}, {len(shapes)} parameters", count, why


def public(args):
    rows, left = [], []
    for name, path, function, counts in public_functions():
        if args.only and not any(text in name for text in args.only):
            continue
        reason = ""
        for dtype, gradients in (
            ("float32", False), ("float32", True), ("bfloat16", False), ("bfloat16", True), ("int32", False), ("bool", False)
        ):  # fmt: skip
            for count in counts:
                try:
                    (launches, why), other = public_row(
                        path, function, count, dtype, gradients, args.device
                    )
                except Exception as fault:  # noqa: BLE001
                    why, launches = f"{type(fault).__name__}: {fault}".partition("\n")[0][:90], None
                if launches is not None:
                    print(f"  {name} {dtype} {launches}", file=sys.stderr, flush=True)
                    rows.append(
                        (launches, other, f"{name} {dtype}{' backward' if gradients else ''}")
                    )
                    break
                reason = reason or why
        if not any(r[2].startswith(name + " ") for r in rows):
            left.append(f"{name}: {reason}")
    for launches, other, name in sorted(rows, key=lambda r: -r[0]):
        if launches > args.least or (other is not None and launches > other):
            print(
                f"{name:52s} ours {launches:3d}  torch {'-' if other is None else other:>3}",
                flush=True,
            )
    for name, count, why in optimizer_rows(args.device):
        print(f"{name:52s} ours {count if count is not None else why}")
    known = [(a, b) for a, b, _ in rows if b is not None]
    print(f"{len(rows)} rows, {sum(r[0] for r in rows)} launches; {len(known)} that PyTorch has, {sum(a for a, _ in known)} launches, "
          f"{sum(b for _, b in known)} operations, {sum(a > b for a, b in known)} with more launches than operations")  # fmt: skip
    print(f"not called or not recorded: {len(left)}")
    for line in left:
        print("  " + line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument(
        "--least",
        type=int,
        default=1,
        help="launches more than PyTorch's operations, to be printed",
    )
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--public", action="store_true")
    args = parser.parse_args()
    if args.public:
        return public(args)
    device, left, counts = weft.device(args.device), [], []
    for name, make in sweep_rows(args.device):
        try:
            found = run(name, make, device, args, left)
        except Exception as reason:  # noqa: BLE001
            # A row that one side cannot do is none.
            left.append(
                f"{name}: {type(reason).__name__}: {str(reason).partition(chr(10))[0][:100]}"
            )
            continue
        if found:
            counts.append(found)
    more = sum(a > b for a, b in counts)
    print(f"{len(counts)} rows, {more} with more launches than operations, {sum(a for a, _ in counts)} launches in all, "
          f"{sum(b for _, b in counts)} operations")  # fmt: skip
    print(f"not recorded: {len(left)}")
    for line in left:
        print("  " + line)


if __name__ == "__main__":
    main()
