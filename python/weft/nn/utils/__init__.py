# SPDX-License-Identifier: Apache-2.0
"""What training loops do with parameters between backward and step."""

from __future__ import annotations

import importlib
import math

import weft

from ..._core import shown as _shown
from ..._boundary import publish as _publish
from ..._errors import error as _error
from . import _singular, rnn

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]


def _with_grad(parameters):
    parameters = [parameters] if isinstance(parameters, weft.Tensor) else parameters
    return [p for p in parameters if p.grad is not None]


def _parted_over(parameter):
    """The groups of ranks among which weft.distributed has shared out a parameter: each of them holds another part."""
    return getattr(parameter, "_parted", ())


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The joint norm of tensors, such as gradients, as an array without axes."""
    tensors = [tensors] if isinstance(tensors, (weft.Tensor, weft.NDArray)) else list(tensors)
    rows = [weft.abs(getattr(x, "data", x)).reshape(-1) for x in tensors]
    if not rows:
        return weft.asarray(0.0)
    parts = [weft.linalg.vector_norm(row, ord=norm_type) for row in rows]
    total = weft.linalg.vector_norm(weft.stack(parts), ord=norm_type)
    if error_if_nonfinite and not bool(weft.isfinite(total)):
        raise _error(
            weft.ArgumentError,
            "nn.utils.norm",
            f"the norm of the gradients is {float(total)}",
            help="error_if_nonfinite=False, or look for the step that makes it so",
        )
    return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales the gradients by max_norm over a norm found before, where that is larger."""
    factor = float(max_norm) / (float(total_norm) + 1e-6)
    for p in _with_grad(parameters):
        if factor < 1.0:
            p.grad = p.grad.data * factor


def clip_grad_norm_(parameters, max_norm, norm_type=2.0):
    """Scales the gradients so that their joint norm is at most max_norm; returns the norm before, a float.

    Of parameters that ranks of a job share out, all parts count: every rank then calls this, and gets the same norm.
    """
    parameters = [parameters] if isinstance(parameters, weft.Tensor) else list(parameters)
    largest = norm_type == math.inf
    totals = {_parted_over(p): 0.0 for p in parameters}  # on every rank, with a gradient or without
    parameters = _with_grad(parameters)
    for p in parameters:
        g = weft.abs(p.grad.data)
        own = float(weft.max(g) if largest else weft.sum(g**norm_type)) if g.size else 0.0
        had = totals[_parted_over(p)]
        totals[_parted_over(p)] = max(had, own) if largest else had + own
    for groups, own in totals.items():
        for group in groups:
            own = group.combined(own, "max" if largest else "sum")
        totals[groups] = own
    total = max(totals.values(), default=0.0) if largest else sum(totals.values()) ** (1.0 / norm_type)  # fmt: skip
    if total > max_norm:
        for p in parameters:
            p.grad = p.grad.data * (max_norm / (total + 1e-6))
    return total


def clip_grad_value_(parameters, clip_value):
    """Brings every element of the gradients between -clip_value and clip_value."""
    for p in _with_grad(parameters):
        p.grad = weft.clip(p.grad.data, -clip_value, clip_value)


def parameters_to_vector(parameters):
    """All elements of the parameters in a row, as an array."""
    return weft.concat([p.data.reshape(-1) for p in parameters])


def vector_to_parameters(vector, parameters):
    """Writes the elements of a vector into the parameters, in order. Raises ShapeError for another length."""
    parameters = list(parameters)
    vector = weft.asarray(getattr(vector, "data", vector))
    count = sum(p.size for p in parameters)
    if vector.shape != (count,):
        raise _error(
            weft.ShapeError,
            "nn.utils.vector",
            f"{count} elements are needed, the vector has shape {vector.shape}",
            help="pass what parameters_to_vector returned for these parameters",
        )
    at = 0
    for p in parameters:
        p.data = vector[at : at + p.size].reshape(p.shape).astype(p.dtype).to(p.device)
        at += p.size


def _axis_of(module, name, weight, dim):
    """The axis of a weight that PyTorch numbers dim: weights of Linear have the features first here."""
    from ..layers import Linear

    turned = isinstance(module, Linear) and dim in (0, 1) and name == "weight"
    return (1 - dim if turned else dim) % weight.ndim


def _axes_but(module, name, weight, dim):
    """The axes over which weight norm sums: all but that of dim; all where dim is None, as None."""
    if dim is None:
        return None
    axis = _axis_of(module, name, weight, dim)
    return tuple(k for k in range(weight.ndim) if k != axis)


def _length(v, axes):
    """|v| over axes, which stay with extent 1; over all as an array without axes where `axes` is None."""
    return weft.sqrt(weft.sum(v * v, axis=axes, keepdims=axes is not None))


def weight_norm(module, name="weight", dim=0):
    """The module with a weight of g v / |v|: parameters name_g and name_v in its place, norms over all axes but dim (None: over all)."""
    from ..module import Parameter

    weight = _weight(module, name)
    axes = _axes_but(module, name, weight, dim)
    setattr(module, f"{name}_g", Parameter(_length(weight.data, axes)))
    setattr(module, f"{name}_v", Parameter(weight.data))

    def renew(m, args):
        g, v = getattr(m, f"{name}_g"), getattr(m, f"{name}_v")
        setattr(m, name, v * (g / _length(v, axes)))

    module.__dict__.setdefault("_reparametrized", {})[name] = module.register_forward_pre_hook(
        renew
    )
    renew(module, ())
    return module


def _weight(module, name):
    from ..module import Parameter

    weight = getattr(module, name, None)
    if not isinstance(weight, Parameter):
        raise _error(
            weft.ArgumentError,
            "nn.utils.parameter",
            f"{type(module).__name__} has no parameter {_shown(name)} to reparametrize",
            help="name a parameter that is not reparametrized yet",
        )
    return weight


def _plain_again(module, name, parts):
    from ..module import Parameter

    handle = module.__dict__.get("_reparametrized", {}).pop(name, None)
    if handle is None:
        raise _error(
            weft.ArgumentError,
            "nn.utils.norm",
            f"{type(module).__name__}.{name} is not reparametrized",
            help="weight_norm or spectral_norm first",
        )
    handle.remove()
    weight = getattr(module, name)
    for part in parts:
        delattr(module, f"{name}_{part}")
    setattr(module, name, Parameter(weight.data))
    return module


def remove_weight_norm(module, name="weight"):
    """The module with a plain parameter of the weight's present values."""
    return _plain_again(module, name, ("g", "v"))


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """The module with a weight over its largest singular value, found by power iterations while training; parameter name_orig."""
    from ..module import Parameter

    data = _weight(module, name).data
    axis = _axis_of(module, name, data, 0 if dim is None else dim)

    def matrix(w):
        order = (axis, *(k for k in range(w.ndim) if k != axis))
        return w.permute(*order).reshape(w.shape[axis], -1)

    setattr(module, f"{name}_orig", Parameter(data))
    (_, left), (_, right) = _singular.start(matrix(data), eps)
    setattr(module, f"{name}_u", left)
    setattr(module, f"{name}_vector", right)

    def renew(m, args):
        original = getattr(m, f"{name}_orig")
        u, v = getattr(m, f"{name}_u"), getattr(m, f"{name}_vector")
        if m.training:
            u, v = _singular.renewed(matrix(original.data), u, v, n_power_iterations, eps)
            setattr(m, f"{name}_u", u)
            setattr(m, f"{name}_vector", v)
        setattr(m, name, original / _singular.value(matrix(original), u, v))

    module.__dict__.setdefault("_reparametrized", {})[name] = module.register_forward_pre_hook(
        renew
    )
    renew(module, ())
    return module


def remove_spectral_norm(module, name="weight"):
    """The module with a plain parameter of the weight's present values."""
    return _plain_again(module, name, ("orig", "u", "vector"))


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """(weight, bias) of one convolution that does what a convolution (o, c, ...) and a batch norm with these statistics do."""
    scale = weft.rsqrt(bn_rv + bn_eps)
    scale = scale if bn_w is None else scale * bn_w
    shift = (-bn_rm if conv_b is None else conv_b - bn_rm) * scale
    shift = shift if bn_b is None else shift + bn_b
    return conv_w * scale.reshape(-1, *(1,) * (conv_w.ndim - 1)), shift


def fuse_conv_bn_eval(conv, bn):
    """A copy of a convolution that does what it and the batch norm after it do in evaluation."""
    import copy

    from ..module import Parameter

    fused = copy.deepcopy(conv)
    plain = [None if t is None else t.data for t in (conv.weight, conv.bias, bn.weight, bn.bias)]
    weight, bias = fuse_conv_bn_weights(plain[0], plain[1], bn.running_mean, bn.running_var, bn.eps, plain[2], plain[3])  # fmt: skip
    fused.weight, fused.bias = Parameter(weight), Parameter(bias)
    return fused


def clip_grad_norm(parameters, max_norm, norm_type=2.0):
    """As clip_grad_norm_."""
    return clip_grad_norm_(parameters, max_norm, norm_type)


def convert_conv2d_weight_memory_format(module, memory_format):
    """The module itself: layouts are chosen by the kernels."""
    return module


def skip_init(module_class, *args, **kwargs):
    """A module of this class; its parameters have their usual first values."""
    return module_class(*args, **kwargs)


_publish(__name__)


def __getattr__(name):
    if name in ("parametrize", "parametrizations"):  # loaded on first use
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
