# SPDX-License-Identifier: Apache-2.0
"""weft beside PyTorch, without libtorch at build time: DLPack for the data, torch.library for the operators.

`weft.torch.add/mul/mv/matmul(a, b, device=...)` take and give torch tensors. They are registered as
`torch.ops.weft.*` with kernels for real tensors, meta (fake) kernels and autograd; `device` names the weft
device that computes, the result is where the arguments are.
"""

from __future__ import annotations

import torch as _torch

import weft

from ._errors import error as _error

__all__ = [
    "add",
    "mul",
    "mv",
    "matmul",
    "from_torch",
    "to_torch",
    "load_state_dict",
    "state_dict",
    "backend",
]

_library = _torch.library.Library("weft", "DEF")  # must live as long as the operators
_NAMES = ("add", "mul", "mv", "matmul")


def from_torch(t):
    """A weft array over a tensor's memory; a copy where the layout or device forbids sharing."""
    t = t.detach()
    if t.is_conj():
        t = t.resolve_conj()
    if t.is_neg():
        t = t.resolve_neg()
    if t.dtype == _torch.bool:  # torch 1.13 exports no bool
        return weft.from_dlpack(t.view(_torch.uint8)).astype("bool")
    return weft.from_dlpack(t)


def to_torch(x, like=None):
    """A torch tensor over an array's memory."""
    if x.dtype == "bool":
        out = _torch.from_dlpack(x.astype("uint8")).to(_torch.bool)
    else:
        out = _torch.from_dlpack(x)
    return out if like is None else out.to(like.device)


def _cell_suffix(module, k):
    """What PyTorch adds to the names of the parameters of a recurrent layer's cell."""
    layer, direction = divmod(k, module.directions)
    return f"_l{layer}" + "_reverse" * direction


def _from_state(state, prefix, module, out):
    """Moves the entries of `state` that belong to `module` into `out`, under our names and in our layout."""
    entry = lambda name: weft.array(from_torch(state.pop(f"{prefix}{name}")))  # noqa: E731
    if isinstance(module, (weft.nn.RNN, weft.nn.RNNCell)):
        cells = (
            {
                f"{prefix}cells.{k}.": (cell, _cell_suffix(module, k))
                for k, cell in enumerate(module.cells)
            }
            if isinstance(module, weft.nn.RNN)
            else {prefix: (module, "")}
        )
        for ours, (cell, suffix) in cells.items():
            for name in cell.named_parameters():
                x = entry(name + suffix)
                out[ours + name] = x.T if name.startswith("weight") else x
        return
    state.pop(f"{prefix}num_batches_tracked", None)
    if isinstance(module, weft.nn.Linear) and f"{prefix}weight" in state:
        out[f"{prefix}weight"] = entry("weight").T
    for name, part in module.named_children().items():
        _from_state(state, f"{prefix}{name}.", part, out)


def load_state_dict(module, state):
    """Takes the parameters and buffers of a torch module (or of its state_dict) into a weft.nn module.

    Attributes of both must have the same names. Weights of Linear and of recurrent layers, which PyTorch keeps as
    (out, in), are transposed. Raises as weft.nn.Module.load_state_dict; KeyError for a missing recurrent weight.
    """
    state = dict(state if isinstance(state, dict) else state.state_dict())
    out = {}
    _from_state(state, "", module, out)
    module.load_state_dict({**out, **{k: weft.array(from_torch(v)) for k, v in state.items()}})


def state_dict(module):
    """Copies of the parameters and buffers of a weft.nn module as torch tensors, under PyTorch's names and in its
    layout: what a torch module of the same structure takes by load_state_dict."""
    arrays, names = module.state_dict(), {}
    for prefix, part in module.named_modules().items():
        dot = f"{prefix}." if prefix else ""
        if isinstance(part, (weft.nn.Linear, weft.nn.RNNCell)):
            for name in part.named_parameters():
                if name.startswith("weight"):
                    arrays[dot + name] = arrays[dot + name].T
        if isinstance(part, weft.nn.RNN):
            for k, cell in enumerate(part.cells):
                suffix = _cell_suffix(part, k)
                names |= {
                    f"{dot}cells.{k}.{n}": f"{dot}{n}{suffix}" for n in cell.named_parameters()
                }
    return {names.get(n, n): to_torch(x.compact().to("cpu")).clone() for n, x in arrays.items()}


def _refuse(code, text):
    raise _error(weft.ShapeError, f"torch.{code}", text)


def _check(name, a, b):
    if a.device != b.device:
        _refuse(f"{name}.device", f"{name} of tensors on {a.device} and {b.device}")
    if name == "mv" and (a.dim() != 2 or b.dim() != 1 or a.shape[1] != b.shape[0]):
        _refuse(
            "mv.shape",
            f"mv needs a matrix and a vector of its width, got {tuple(a.shape)} and {tuple(b.shape)}",
        )
    if name == "matmul" and (
        a.dim() < 1 or b.dim() < 1 or a.shape[-1] != b.shape[-2 if b.dim() > 1 else 0]
    ):
        _refuse(
            "matmul.shape",
            f"matmul needs equal inner extents, got {tuple(a.shape)} and {tuple(b.shape)}",
        )
    if name in ("mv", "matmul") and a.dtype != b.dtype:
        raise _error(
            weft.DTypeError,
            f"torch.{name}.dtype",
            f"{name} of {a.dtype} and {b.dtype}; torch asks for equal types",
        )


def _shape(name, a, b):
    if name in ("add", "mul"):
        return _torch.broadcast_shapes(a.shape, b.shape)
    if name == "mv":
        return (a.shape[0],)
    batch = _torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return (
        *batch,
        *(a.shape[-2:-1] if a.dim() > 1 else ()),
        *(b.shape[-1:] if b.dim() > 1 else ()),
    )


def _compute(name, a, b, device):
    _check(name, a, b)
    dtype = _torch.result_type(a, b)
    if a.dtype == _torch.bool and b.dtype == _torch.bool and name in ("add", "mul"):
        f = weft.logical_or if name == "add" else weft.logical_and
        return to_torch(f(from_torch(a), from_torch(b)), a)
    if name in ("add", "mul"):  # torch's promotion: a 0-d tensor is weak
        a, b = a.to(dtype), b.to(dtype)
    x, y = from_torch(a), from_torch(b)
    target = weft.device(device) if device else None
    if target is not None and target != x.device:
        x, y = x.to(target), y.to(target)
    f = {"add": weft.add, "mul": weft.multiply, "mv": weft.matmul, "matmul": weft.matmul}[name]
    out = f(x, y)
    if target is not None and not out.device.host_accessible:
        out = out.to("cpu")
    return to_torch(out, a)


def _meta(name, a, b, device):
    _check(name, a, b)
    return _torch.empty(_shape(name, a, b), dtype=_torch.result_type(a, b), device=a.device)


def _reduce_to(g, shape):
    """Sums a gradient over what broadcasting repeated."""
    extra = g.dim() - len(shape)
    g = g.sum(dim=tuple(range(extra))) if extra else g
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and g.shape[i] != 1)
    return g.sum(dim=axes, keepdim=True) if axes else g


def _make_function(name):
    class Function(_torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, device):
            ctx.save_for_backward(a, b)
            ctx.device = device
            guard = _torch._C._AutoDispatchBelowAutograd()
            try:
                return getattr(_torch.ops.weft, name)(a, b, device)
            finally:
                del guard

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            device = ctx.device
            da = db = None
            if name == "add":
                da, db = g, g
            elif name == "mul":
                da, db = mul(g, b.conj(), device), mul(g, a.conj(), device)
            elif name == "mv":
                da = mul(g.unsqueeze(1), b.conj().unsqueeze(0), device)
                db = mv(a.conj().t(), g, device)
            else:
                am = a.unsqueeze(0) if a.dim() == 1 else a
                bm = b.unsqueeze(1) if b.dim() == 1 else b
                gm = g.unsqueeze(-1) if b.dim() == 1 else g
                gm = gm.unsqueeze(-2) if a.dim() == 1 else gm
                da = _reduce_to(matmul(gm, bm.conj().transpose(-2, -1), device), am.shape).reshape(
                    a.shape
                )
                db = _reduce_to(matmul(am.conj().transpose(-2, -1), gm, device), bm.shape).reshape(
                    b.shape
                )
            if name in ("add", "mul"):
                da, db = _reduce_to(da, a.shape), _reduce_to(db, b.shape)
            da = da.to(a.dtype) if ctx.needs_input_grad[0] else None
            db = db.to(b.dtype) if ctx.needs_input_grad[1] else None
            return da, db, None

    return Function


def _register(name):
    _library.define(f"{name}(Tensor a, Tensor b, str? device=None) -> Tensor")
    function = _make_function(name)
    _library.impl(name, lambda a, b, device=None: _compute(name, a, b, device), "CPU")
    _library.impl(name, lambda a, b, device=None: _compute(name, a, b, device), "CUDA")
    _library.impl(name, lambda a, b, device=None: _meta(name, a, b, device), "Meta")
    _library.impl(name, lambda a, b, device=None: function.apply(a, b, device), "Autograd")

    def call(a, b, device=None):
        return getattr(_torch.ops.weft, name)(a, b, None if device is None else str(device))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"torch.{name} computed by weft on `device`; differentiable."
    return call


add, mul, mv, matmul = (_register(name) for name in _NAMES)


def _lowered(name, otherwise):
    """`name` on weft where both arguments are tensors, else what the program had."""
    op = globals()[name]

    def call(*args, **kwargs):
        tensors = len(args) == 2 and not kwargs and all(isinstance(a, _torch.Tensor) for a in args)
        return op(*args) if tensors else otherwise(*args, **kwargs)

    call.__name__ = f"weft_{name}"
    return call


def _linear(x, weight, bias=None):
    y = matmul(x, weight.t())
    return y if bias is None else add(y, bias)


def backend(graph_module, example_inputs):
    """A torch.compile backend: additions, products and linear layers run on weft, the rest as torch has it.

    The graph keeps torch's autograd: weft's operators bring their own gradients.
    """
    import operator

    functions = {
        operator.add: "add",
        operator.mul: "mul",
        operator.matmul: "matmul",
        _torch.add: "add",
        _torch.mul: "mul",
        _torch.mv: "mv",
        _torch.matmul: "matmul",
    }
    for node in graph_module.graph.nodes:
        if node.op == "call_function" and node.target is _torch.nn.functional.linear:
            node.target = _linear
        elif node.op == "call_function" and node.target in functions:
            node.target = _lowered(functions[node.target], node.target)
        elif node.op == "call_method" and node.target in _NAMES:
            name = node.target
            node.op = "call_function"
            node.target = _lowered(name, getattr(_torch.Tensor, name))
    graph_module.recompile()
    return graph_module.forward


try:
    _torch._dynamo.register_backend(name="weft")(backend)
except AttributeError:  # before torch 2.0 there is nothing to register with
    pass
