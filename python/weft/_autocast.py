# SPDX-License-Identifier: Apache-2.0
"""weft.autocast: inside, operations choose the type that they compute in, by one table.

While some thread is inside, the functions of the table (public functions, operations, operators of arrays) are exchanged
for ones that convert their arguments where this thread is inside, too. What such a function calls itself is left alone.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections.abc import Callable as _Callable
from typing import Any as _Any

from ._core import shown as _shown
from . import _core
from ._boundary import public as _public
from ._boundary import publish_class as _publish_class
from ._core import NDArray, Tensor
from ._dispatch import Recorder, mapped
from ._errors import error as _error

# The type that a function computes in; functions that are not listed compute in the types of their arguments.
#   low      the type of autocast
#   float32  float32 where an argument is float16 or bfloat16
#   around   float32 inside, and the first argument's type again as the result's
#   widest   float32 where one argument is float32
#   given    as they are; listed, because a function of the table is part of them
_TABLE = {
    "low": """
        matmul mm bmm mv dot inner tensordot vecdot einsum addmm addmv addbmm baddbmm addr multi_dot chain_matmul
        linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc prelu
        scaled_dot_product_attention attention __matmul__ __rmatmul__
    """,
    "float32": """
        acos arccos asin arcsin cosh erfinv exp exp2 expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow power float_power
        __pow__ __rpow__ logsumexp logaddexp softplus softmax log_softmax softmin gumbel_softmax layer_norm rms_norm group_norm
        local_response_norm sum nansum prod nanprod cumulative_sum cumulative_prod cumsum cumprod trace norm vector_norm matrix_norm
        normalize cosine_similarity pairwise_distance dist pdist cdist renorm
        cross_entropy nll_loss mse mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy
        binary_cross_entropy_with_logits kl_div margin_ranking_loss hinge_embedding_loss cosine_embedding_loss
        soft_margin_loss multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss triplet_margin_loss
        triplet_margin_with_distance_loss poisson_nll_loss gaussian_nll_loss ctc_loss
        cholesky cond det eig eigh eigvals eigvalsh inv inverse lstsq matrix_exp matrix_power matrix_rank pinv qr slogdet
        solve solve_triangular svd svdvals tensorinv tensorsolve
        fft ifft rfft irfft fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn hfft ihfft
    """,
    "around": "batch_norm instance_norm",
    "widest": "cross bilinear addcmul addcdiv atan2 scatter_add index_add index_put grid_sample lerp",
    "given": "mean var std var_mean std_mean backward",
}
_RULES = {name: rule for rule, names in _TABLE.items() for name in names.split()}
_MODULES = ("weft", "weft._namespace", "weft.linalg", "weft.fft", "weft.nn.functional")

_EAGER = frozenset(("float16", "bfloat16", "float32"))
_LOW = frozenset(("float16", "bfloat16"))
_VALUES = (NDArray, Tensor, Recorder)


class _Here(threading.local):
    types = None  # kind of device -> type, None: any kind; None where nothing is converted
    number = 0

    def __init__(self):
        self.entered = []  # of the autocasts that this thread is in


here = _Here()
_numbers = {}  # what a thread converts -> its number for compiled functions
_count = itertools.count(1)  # threads that meet here get different ones


def number():
    """What this thread converts, as a number, 0 for nothing: part of the key of whatever is kept by types."""
    return here.number


def _set(types, number):
    here.types, here.number = types, number
    _core._casting(number)


class under:
    """Inside, this thread converts what `types` say."""

    __slots__ = ("before", "now")

    def __init__(self, types):
        number = 0
        if types is not None:
            found = frozenset((kind, str(t)) for kind, t in types.items())
            number = _numbers.setdefault(found, next(_count))
        self.now = types, number

    def __enter__(self):
        self.before = here.types, here.number
        _set(*self.now)

    def __exit__(self, *_):
        _set(*self.before)


def alone(function):
    """The function with nothing converted inside: rules of gradients, what is traced once for its types."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if here.types is None:
            return function(*args, **kwargs)
        with under(None):
            return function(*args, **kwargs)

    return call


_TREES = (list, tuple, dict)


def _converted(rule, args, kwargs):
    if rule == "given":
        return args, kwargs
    if rule == "widest":
        seen = set()
        mapped((args, kwargs), _VALUES, lambda x: seen.add(x.dtype.name) or x)
        if "float32" not in seen or not seen & _LOW:
            return args, kwargs
    types = here.types
    low = rule == "low"
    names = _EAGER if low else _LOW

    def change(x):
        name = x.dtype.name
        if name not in names:
            return x
        dtype = types.get(x.device.name.partition(":")[0], types.get(None))
        if dtype is None:
            return x
        dtype = dtype if low else _core.float32
        return x if name == dtype.name else x.astype(dtype)

    def each(x):
        if isinstance(x, _VALUES):
            return change(x)
        return mapped(x, _VALUES, change) if isinstance(x, _TREES) else x

    return [each(x) for x in args], {k: each(v) for k, v in kwargs.items()} if kwargs else kwargs


def _first(tree):
    """The type of the first value in arguments."""
    for x in tree:
        if isinstance(x, _VALUES):
            return x.dtype
    return None


def _computed(rule, function, args, kwargs):
    """The function of arguments of the rule's type, with nothing converted inside."""
    given, named = _converted(rule, args, kwargs)
    before = here.types, here.number
    _set(None, 0)
    try:
        out = function(*given, **named)
        if rule == "around" and (dtype := _first(args)) is not None and dtype.name in _LOW:
            out = mapped(out, _VALUES, lambda x: x.astype(dtype))
        return out
    finally:
        _set(*before)


def listed(rule):
    """A decorator: an inner function that computes in the type of a rule of the table."""

    def decorate(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            if here.types is None:
                return function(*args, **kwargs)
            return _computed(rule, function, args, kwargs)

        return call

    return decorate


class _Exchanged:
    """The functions of the table, which are exchanged while a thread is inside autocast."""

    def __init__(self):
        self._lock = threading.RLock()
        self._inside = 0
        self._places = None  # (puts in place, gives back) of each, made once

    def enter(self):
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                if self._places is None:
                    self._places = [*map(_place_of_function, _functions()), *map(_place_of_method, _methods())]  # fmt: skip
                for put, _ in self._places:
                    put()

    def leave(self):
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for _, back in self._places:
                    back()


def _place_of_function(pair):
    function, rule = pair
    if type(function) is not _core.PublicFunction:
        plain = _core._replace_operation(function, None)
        hook = listed(rule)(plain)
        return (
            functools.partial(_core._replace_operation, function, hook),
            functools.partial(_core._replace_operation, function, None),
        )
    own = function.__weft_exchange__(None, None)
    function.__weft_exchange__(*own)
    return (
        functools.partial(function.__weft_exchange__, listed(rule)(_plain_call(own)), None),
        functools.partial(function.__weft_exchange__, *own),
    )


def _plain_call(own):
    """The function of a PublicFunction with its way into the core first."""
    function, direct = own
    if direct is None:
        return function

    @functools.wraps(function)
    def call(*args, **kwargs):
        out = direct(*args, **kwargs)
        return function(*args, **kwargs) if out is NotImplemented else out

    return call


def _place_of_method(place):
    cls, name, rule = place
    own = vars(cls)[name]
    bound = own.__get__
    plain = lambda x, *args, **kwargs: bound(x, type(x))(*args, **kwargs)  # noqa: E731
    plain.__name__ = plain.__qualname__ = name
    method = listed(rule)(plain)
    return functools.partial(setattr, cls, name, method), functools.partial(setattr, cls, name, own)


def _functions():
    """(public function or operation, rule) of the table's names, each once."""
    import importlib

    found = {}
    operation = type(_core.operations["exp"])
    for path in _MODULES:
        module = importlib.import_module(path)
        for name, rule in _RULES.items():
            function = vars(module).get(name)
            if type(function) is _core.PublicFunction or isinstance(function, operation):
                found[id(function)] = function, rule
    return list(found.values())


classes = [NDArray, Tensor]  # whose methods are exchanged; traced and batched values add theirs


def _methods():
    """(class, name, rule) of the table's names that are methods."""
    return [
        (cls, name, rule) for cls in classes for name, rule in _RULES.items() if name in vars(cls)
    ]


_exchanged = _Exchanged()


class restored:
    """What this thread converts now, for what computes again later: `with it():`, on any thread."""

    __slots__ = ("_types",)

    def __init__(self):
        self._types = here.types

    def __call__(self):
        return contextlib.nullcontext() if self._types is here.types is None else self._again()

    @contextlib.contextmanager
    def _again(self):
        if self._types is not None:
            _exchanged.enter()
        try:
            with under(self._types):
                yield
        finally:
            if self._types is not None:
                _exchanged.leave()


def _kind_of(device):
    """The kind of device that autocast is asked for."""
    name = getattr(device, "name", device)
    kind = name.partition(":")[0] if isinstance(name, str) else name
    if kind is not None and kind not in _core.targets():
        raise _error(
            _core.ArgumentError,
            "autocast.device",
            f"autocast for {_shown(device)}",
            [f"legal: {', '.join(_core.targets())}; None for all"],
            help='autocast("cpu"), autocast("cuda")',
        )
    return kind


def _low_type(dtype, kind):
    name = "float16" if kind == "cuda" else "bfloat16"
    if dtype is not None:
        name = _shown(dtype) if isinstance(dtype, (list, tuple, dict, set)) else str(dtype)
    if name not in _LOW:
        raise _error(
            _core.ArgumentError,
            "autocast.dtype",
            f"autocast to {name}",
            ["legal: bfloat16, float16"],
            help="enabled=False for operations in the types of their arguments",
        )
    return _core.dtype(name)


class autocast:
    """Inside, products, convolutions, attention and recurrent cells compute in bfloat16 (or float16); norms, softmax, losses,
    exp, log, pow and sums in float32; everything else in the types of its arguments.

    A context manager and a decorator, for one thread, which may be nested; enabled=False turns it off inside. device_type: "cpu", "cuda", ...,
    a device, or None for all; dtype None is float16 on "cuda" and bfloat16 elsewhere, as in PyTorch. Parameters and their gradients keep their own types. Conversions of
    parameters are not kept, so cache_enabled changes nothing. backward() belongs outside; inside it converts nothing.
    Raises ArgumentError (autocast.device, autocast.dtype).

    >>> with weft.autocast("cpu", dtype=weft.bfloat16):
    ...     loss = weft.nn.functional.cross_entropy(model(x), labels)
    """

    def __init__(
        self, device_type: _Any = None, dtype: _Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:  # fmt: skip
        self.device, self.enabled = _kind_of(device_type), bool(enabled)
        self.fast_dtype = _low_type(dtype, self.device) if self.enabled else None

    def __enter__(self) -> autocast:
        types = dict(here.types or {})
        if self.device is None:  # for all: what was said of single kinds is over
            types = {None: self.fast_dtype}
        else:
            types[self.device] = self.fast_dtype
        types = types if any(t is not None for t in types.values()) else None
        if self.enabled:
            _exchanged.enter()
        inside = under(types)
        inside.__enter__()
        here.entered.append(inside)
        return self

    def __exit__(self, *_: object) -> None:
        here.entered.pop().__exit__()
        if self.enabled:
            _exchanged.leave()

    def __call__(self, function: _Callable[..., _Any]) -> _Callable[..., _Any]:
        """The function inside autocast."""

        @functools.wraps(function)
        def call(*args, **kwargs):
            with type(self)(self.device, self.fast_dtype, self.enabled):
                return function(*args, **kwargs)

        return call


def is_autocast_enabled(device_type=None):
    """Does autocast convert on this kind of device here (None: on any)?"""
    types, kind = here.types or {}, _kind_of(device_type)
    if kind is None:
        return bool(types)
    return types.get(kind, types.get(None)) is not None


def get_autocast_dtype(device_type):
    """The type of autocast on this kind of device: the one at work here, else the one that it has by itself."""
    types, kind = here.types or {}, _kind_of(device_type)
    return types.get(kind, types.get(None)) or _low_type(None, kind)


def is_autocast_available(device_type):
    """Is there autocast for this kind of device?"""
    return getattr(device_type, "name", device_type).partition(":")[0] in _core.targets()


is_autocast_enabled = _public(is_autocast_enabled)
get_autocast_dtype = _public(get_autocast_dtype)
is_autocast_available = _public(is_autocast_available)
_publish_class(autocast)
