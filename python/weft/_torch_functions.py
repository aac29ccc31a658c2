# SPDX-License-Identifier: Apache-2.0
"""PyTorch's functions of tensors that are methods here, as functions: weft.bmm(a, b) is a.bmm(b).

They take arrays too and give arrays back then; the method of the tensor is the one definition of each.
"""

from __future__ import annotations

import inspect

from . import _core
from ._boundary import direct, public
from ._core import NDArray, Tensor
from ._namespace import asarray
from ._methods import OF_TENSORS, members
from ._methods.of_arrays import on_arrays

_NAMES = """
    addbmm addcdiv addcmul addmm addmv addr allclose amax amin aminmax argwhere
    baddbmm bincount bmm chunk clamp clamp_max clamp_min clone cross cumprod cumsum deg2rad diag diag_embed diagonal dist div
    dot eq erfc flatten fliplr flipud fmod frac gather ge ger gt index_add index_fill index_select inner is_complex
    is_floating_point isclose kron kthvalue le lerp logcumsumexp logit lt masked_fill masked_select mm movedim msort
    mul mv nan_to_num nanmean nansum narrow ne neg norm numel outer permute quantile rad2deg ravel repeat_interleave rot90
    scatter_add sinc split split_with_sizes sub swapaxes swapdims t take_along_dim tensor_split trace true_divide
    unbind unflatten unsqueeze vdot xlogy
"""

# Arrays have methods of their own of these, with the same arguments.
_OF_ARRAYS = frozenset("diag dot trace".split())

#: Plain calls of arrays on the host go straight to the core.
_DIRECT = {
    name: getattr(_core, f"_direct_{name}")
    for name in "bincount cross cumprod cumsum dot inner nansum outer ravel swapaxes".split()
}


def _definition(name):
    """The method as its class has it: it takes whatever the public functions that it calls take."""
    for family in OF_TENSORS:
        if name in members(family):
            return inspect.getattr_static(family, name)
    return getattr(Tensor, name)


def _given(name, method):
    """The signature of the function: the method's, its first parameter named as in PyTorch."""
    try:
        first, *others = inspect.signature(method).parameters.values()
    except ValueError:  # a method of the core
        first, others = None, [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)]
    own = inspect.Parameter("input", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(p.kind is p.POSITIONAL_ONLY for p in others):
        own = own.replace(kind=inspect.Parameter.POSITIONAL_ONLY)
    return inspect.Signature([own, *others])


def _function(name):
    method = _definition(name)
    of_array = getattr(NDArray, name) if name in _OF_ARRAYS else on_arrays(method)
    signature = _given(name, method)
    own = signature.parameters
    # The array standard's names of PyTorch's arguments.
    names = {
        a: b for a, b in (("axis", "dim"), ("keepdims", "keepdim")) if b in own and a not in own
    }

    def call(input, *args, **kwargs):
        if kwargs and names and not names.keys().isdisjoint(kwargs):
            kwargs = {names.get(k, k): v for k, v in kwargs.items()}
        if isinstance(input, (int, float, complex, list, tuple)):
            input = asarray(input)  # a tensor of whole numbers would be one of floats
        if isinstance(input, NDArray):
            return of_array(input, *args, **kwargs)
        return method(input, *args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__module__ = "weft"
    call.__doc__ = f"{method.__doc__}\n\nAs the method Tensor.{name}; of an array, an array."
    call.__signature__ = signature
    # Traced and batched values go through it into the public functions that it is made of.
    call.__weft_transform__ = True
    plain_calls = _DIRECT.get(name) or getattr(method, "__weft_direct__", None)
    return public(direct(plain_calls)(call) if plain_calls else call)


functions = {name: _function(name) for name in _NAMES.split()}
__all__ = list(functions)
globals().update(functions)
