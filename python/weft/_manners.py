# SPDX-License-Identifier: Apache-2.0
"""NumPy's manners of calling: lists where arrays are meant, `out=`, `where=`, `ddof=`, a type by position.

A call is looked at here only after it failed as the array standard has it, so calls that follow the standard cost nothing.
What is understood is called again in the standard's words; anything else keeps its error.
"""

from __future__ import annotations

import functools
import inspect
import threading

from . import _core
from ._boundary import refused
from ._core import NDArray, Tensor
from ._dispatch import Recorder, first_leaf

_ARRAYS = (
    "weft._namespace",
    "weft._functions",
    "weft._torch_functions",
    "weft.linalg",
    "weft.fft",
    "weft.random",
    "weft.nn.",
)
_CODES = ("python.arguments", "array.asarray.type", "dtype.unknown")
_DEEPEST = 32  # levels of nested lists
# Arguments of NumPy's that change nothing here at these values.
_IDLE = {
    "order": (None, "C", "K", "A"),
    "subok": (True, False),
    "casting": ("same_kind", "unsafe", "safe", "equiv", "no"),
    "copy": (True,),
    "like": (None,),
    "out": (None,),
    "where": (True,),
    "layout": (None,),
    "pin_memory": (False,),
    "inplace": (False, True),
    "generator": (None,),
    "requires_grad": (False,),
    "ndmin": (0,),
    "initial": (None,),
    "sparse": (False,),
    "memory_format": (None,),
    "overwrite_input": (False, True),
}


# NumPy's and PyTorch's names of arguments, and ours: a name, or a place. Tried in this order where a function has no argument of their name.
_NAMES = (
    ("input", 0),
    ("other", 1),
    ("mat2", 1),
    ("exponent", 1),
    ("values", 1),
    ("kernel_size", "kernel"),
    ("vec2", 1),
    ("a", 0),
    ("x", 0),
    ("negative_slope", "slope"),
    ("target", "labels"),
    ("diagonal", "k"),
    ("k", "diagonal"),
    ("offset", "k"),
    ("index", "indices"),
    ("indices", "index"),
    ("sections", "parts"),
    ("indices", "parts"),
    ("dim0", "axis0"),
    ("dim1", "axis1"),
    ("dims", "repetitions"),
    ("dim", "axes"),
    ("interpolation", "method"),
    ("end", "stop"),
    ("steps", "num"),
    ("axis1", "dim1"),
    ("axis2", "dim2"),
    ("N", "n"),
    ("N", "n_rows"),
    ("M", "m"),
    ("M", "n_cols"),
    ("a_min", "min"),
    ("a_max", "max"),
    ("fill_value", "value"),
)


@functools.lru_cache(maxsize=1024)
def _parameters(function):
    """Those of a function of a module or of an operation."""
    return inspect.signature(function).parameters


_state = threading.local()  # .busy while a call is tried again: what fails inside is not


def _of_arrays(function):
    home = function.__module__ or ""
    return home == "weft" or home.startswith(_ARRAYS)


def _types():
    import numpy as np

    return (type, np.dtype, _core.dtype)


def _is_list(x):
    """A sequence of numbers, or an array of another library. Each list is looked at once, whatever holds it."""
    if not isinstance(x, (list, tuple)):
        return type(x).__module__ == "numpy" and hasattr(x, "__array__")
    lists, seen = [x], {id(x)}
    while lists:
        row = lists.pop()
        entries = list(
            list.__iter__(row) if isinstance(row, list) else tuple.__iter__(row)
        )  # whatever a subclass says
        if not entries:
            return False
        for v in entries:
            if isinstance(v, (bool, int, float, complex, NDArray, Tensor)) or hasattr(
                v, "__array__"
            ):
                continue
            if not isinstance(v, (list, tuple)):
                return False
            if id(v) not in seen:
                seen.add(id(v))
                lists.append(v)
    return True


def _levels(x):
    """How deep a list of lists is where it goes on, up to more than any array's."""
    out = 0
    while out <= _DEEPEST and isinstance(x, (list, tuple)) and x:
        x, out = x[0], out + 1
    return out


def _array(x):
    """The array that a list means; of arrays and tensors their stack, which keeps gradients."""
    import weft

    if (
        _levels(x) > _DEEPEST
        or not isinstance(x, (list, tuple))
        or first_leaf(x, (NDArray, Tensor)) is None
    ):
        return weft.asarray(x)  # which refuses what is deeper than arrays
    known = {}  # a list that stands in many places is one array

    def stacked(row):
        if not isinstance(row, (list, tuple)):
            return weft._functions.common.value(row)
        if id(row) not in known:
            plain = first_leaf(row, (NDArray, Tensor)) is None
            known[id(row)] = weft.asarray(row) if plain else weft.stack([stacked(v) for v in row])
        return known[id(row)]

    return stacked(x)


def _floats(x):
    import weft

    if isinstance(x, (NDArray, Tensor)) and x.dtype.kind in "iub":
        return x.astype(weft.asarray(0.0).dtype)
    return x


def _readings(args, floats):
    """What gives other values of the positional arguments, the most careful first."""
    lists = [i for i, a in enumerate(args) if _is_list(a)]
    out = []
    if lists and lists[0] == 0:
        out.append(lambda: (_array(args[0]), *args[1:]))
    if lists and lists != [0]:
        out.append(lambda: tuple(_array(a) if i in lists else a for i, a in enumerate(args)))
    if floats:
        out.append(lambda: tuple(_floats(_array(a) if _is_list(a) else a) for a in args))
    return out


def _scalars(x, known=None):
    """Numbers of NumPy's types as Python's, in shapes and positions too."""
    import numpy as np

    if isinstance(x, np.generic):
        return x.item()
    if type(x) in (list, tuple):
        known = {} if known is None else known
        if id(x) not in known:
            known[id(x)] = type(x)(_scalars(v, known) for v in x)
        return known[id(x)]
    return x


def _named_type(name, args, kwargs, parameters):
    """zeros((2, 3), float): a type that was given by position."""
    if "dtype" not in parameters or "dtype" in kwargs or len(args) < 2:
        return args, kwargs
    last = args[-1]
    named = isinstance(last, str) and name in ("zeros", "ones", "empty", "full", "arange", "eye")
    if isinstance(last, _types()) or named:
        return args[:-1], {**kwargs, "dtype": last}
    return args, kwargs


def _understood(name, args, kwargs, parameters, function_of_layers):
    """(args, kwargs, what happens to the result) in the standard's words; None where an argument has no meaning here."""
    import weft

    after, kwargs = [], dict(kwargs)
    named = dict(kwargs)
    for theirs, ours in (
        ("steps", "num"),
        ("dim", "axis"),
        ("dims", "axis"),
        ("dims", "axes"),
        ("keepdim", "keepdims"),
    ):
        if theirs in kwargs and theirs not in parameters and ours in parameters:
            kwargs[ours] = kwargs.pop(theirs)
    own = list(parameters)
    for i, p in enumerate(own):  # names of arguments that have a place only
        if (
            p in kwargs
            and len(args) == i
            and parameters[p].kind is inspect.Parameter.POSITIONAL_ONLY
        ):
            args = (*args, kwargs.pop(p))
    for theirs, ours in _NAMES:
        if theirs in kwargs and theirs not in parameters:
            ours = ours if isinstance(ours, str) else own[ours] if len(own) > ours else None
            if ours in parameters and ours not in kwargs:
                if parameters[ours].kind is inspect.Parameter.POSITIONAL_ONLY:
                    args = (*args, kwargs[theirs]) if len(args) == own.index(ours) else args
                else:
                    kwargs[ours] = kwargs[theirs]
                del kwargs[theirs]
    args, kwargs = _named_type(name, args, kwargs, parameters)
    if "ddof" in kwargs and "correction" in parameters:
        kwargs["correction"] = kwargs.pop("ddof")
    if name in ("linspace", "logspace") and len(args) == 2 and "num" in parameters:
        kwargs.setdefault("num", 50)
    if name == "squeeze" and len(args) == 1 and "axis" not in kwargs:
        x = weft._functions.common.value(args[0])
        kwargs["axis"] = tuple(i for i, n in enumerate(x.shape) if n == 1)
    if (
        function_of_layers
        and len(args) > 1
        and type(args[-1]) is bool
        and (len(args) > len(own) or own[len(args) - 1] == "key")
    ):
        args = args[:-1]  # PyTorch's inplace
    for k in [k for k in kwargs if k not in parameters]:
        v = kwargs[k]
        if k in _IDLE and any(v is w or type(v) is type(w) is str and v == w for w in _IDLE[k]):
            del kwargs[k]
        elif k == "out":
            after.append(_into(kwargs.pop(k)))
        elif k == "dtype":
            after.append(lambda out, t=kwargs.pop(k): out.astype(t))
        elif k == "ndmin":
            after.append(lambda out, n=kwargs.pop(k): out.reshape((1,) * (n - out.ndim) + tuple(out.shape)))  # fmt: skip
        elif k == "requires_grad" and v:
            after.append(lambda out: Tensor(out))
            del kwargs[k]
        else:
            return None
    return args, kwargs, after


def _into(place):
    place = place[0] if isinstance(place, tuple) and len(place) == 1 else place

    def write(out):
        import weft

        weft.copyto(place, out)
        return place

    return write


def _plain_order(name, args, kwargs):
    """Order "F": the same with the axes turned round."""
    import weft

    if kwargs.get("order") != "F":
        return None
    rest = {k: v for k, v in kwargs.items() if k != "order"}
    turned = lambda x: x.permute(tuple(reversed(range(x.ndim))))  # noqa: E731
    x = weft._functions.common.value(args[0]) if name in ("reshape", "ravel") else None
    if name == "ravel":
        return (turned(x).reshape(-1),)
    if name == "reshape":
        shape = args[1] if len(args) == 2 and not isinstance(args[1], int) else args[1:]
        return (turned(turned(x).reshape(tuple(reversed(tuple(shape))))),)
    if name in ("zeros", "ones", "empty", "full", "array", "asarray", "copy"):
        return (weft.asfortranarray(getattr(weft, name)(*args, **rest)),)
    return None


def retried(function, raised, args, kwargs):
    """The result, in a tuple, of a failed call of an array function as NumPy means it; None where that has no meaning either."""
    if getattr(_state, "busy", False):
        return None
    _state.busy = True
    try:
        return _retried(function, raised, args, kwargs)
    finally:
        _state.busy = False


def _retried(function, raised, args, kwargs):
    if isinstance(raised, (OSError, MemoryError)) or not _of_arrays(function):
        return None
    code = getattr(raised, "code", None) or ""
    if isinstance(raised, _core.Error) and not (
        code in _CODES
        or code.startswith("array.")
        and code.split(".")[-1] in ("array", "shape", "dtype")  # fmt: skip
    ):
        return None
    if first_leaf((args, kwargs), Recorder) is not None:
        return None  # the transform has its own way for what fails
    name = function.__name__
    if function.__module__ == "weft.linalg" and code in ("", "python.arguments"):
        from ._linalg_calls import understood as of_matrices

        try:
            found = of_matrices(
                name, args, kwargs, lambda x: _floats(_array(x) if _is_list(x) else x)
            )
        except (TypeError, AttributeError, ValueError, IndexError) as error:
            if isinstance(error, _core.Error):  # of the call as it was meant
                raise
            found = None
        if found is not None:
            return found
    if (function.__module__ or "").split(".")[0] == "weft":
        from ._torch_calls import understood as as_torch

        found = as_torch(name, args, kwargs)
        if found is not None:
            return found
    try:
        parameters = _parameters(function)
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            return None
        if name == "where" and len(args) == 1 and not kwargs:
            import weft

            return (weft.nonzero(weft._functions.common.value(args[0])),)
        turned = _plain_order(name, args, kwargs)
        if turned is not None:
            return turned
        given, named = _scalars(args), _scalars(dict(kwargs))
        layers = function.__module__.startswith("weft.nn")
        if layers and "return_indices" in named:
            named.pop("return_indices")
            from .nn import functional

            function = getattr(functional, f"{name}_with_indices")
            return (function(*given, **named),)
        understood = _understood(name, given, named, parameters, layers)
    except (TypeError, ValueError, AttributeError, IndexError, _core.Error):
        return None
    if understood is None:
        return None
    given, named, after = understood
    changed = after or not _same(given, args) or named.keys() != kwargs.keys() or not _same(named.values(), kwargs.values())  # fmt: skip
    # Where NumPy takes whole numbers for floats; what other functions refuse stays refused.
    home = function.__module__ or ""
    floats = (home == "weft" or home.startswith(("weft.linalg", "weft.fft"))) and (
        code.startswith("array.") and code.endswith(".dtype")
    )
    refused = None
    for reading in [*([lambda: given] if changed else []), *_readings(given, floats)]:
        try:
            out = function(*reading(), **named)
            for step in after:
                out = step(out)
        except (TypeError, AttributeError, ValueError, IndexError, KeyError, _core.Error) as error:
            refused = error
            continue
        return (out,)
    # Of numbers that were made floats the last word counts: what the device lacks, a singular matrix.
    if floats and getattr(refused, "code", code) not in (code, "python.arguments"):
        raise refused
    return None


def _same(a, b):
    a, b = list(a), list(b)
    return len(a) == len(b) and all(x is y for x, y in zip(a, b))


def operation(row, args, kwargs):
    """The result, in a tuple, of an operation of the table called in NumPy's manner: with lists, out=, where=, dtype=."""
    try:
        return _operation(row, args, kwargs)
    except Exception as raised:
        refusal = refused(row, None, row.__name__, raised, args, kwargs)
        if refusal is None:
            raise
    raise refusal


def _operation(row, args, kwargs):
    import weft

    names = (
        "out",
        "where",
        "dtype",
        "casting",
        "order",
        "subok",
        "decimals",
        "alpha",
        "rounding_mode",
        "inplace",
        "input",
        "other",
        "x",
        "exponent",
        "values",
    )
    if any(k not in names for k in kwargs) or any(isinstance(a, Recorder) for a in args):
        return None
    name, given = row.__name__, list(args)
    arity = len(_parameters(row))
    said = bool(kwargs)
    kwargs = {k: v for k, v in kwargs.items() if k != "inplace"}
    for theirs in ("input", "x", "other", "exponent", "values"):
        if theirs in kwargs:
            given.append(kwargs.pop(theirs))
    if "rounding_mode" in kwargs:
        whole = weft.div(*(_array(a) if _is_list(a) else a for a in given), **kwargs) if name == "divide" and not set(kwargs) - {"rounding_mode"} else None  # fmt: skip
        return None if whole is None else (whole,)
    if name == "round" and (len(given) == 2 or "decimals" in kwargs):
        decimals = kwargs.pop("decimals", None)
        given, row = given[:1] + [decimals if decimals is not None else given[1]], weft.around
        arity = 2
    if len(given) == arity + 1 and isinstance(given[-1], NDArray) and "out" not in kwargs:
        kwargs["out"], said = given.pop(), True
    if len(given) != arity or not (said or row is weft.around or any(_is_list(a) for a in given)):
        return None
    given = [_array(a) if _is_list(a) else a for a in given]
    if kwargs.get("dtype") is not None:
        given = [a.astype(kwargs["dtype"]) if hasattr(a, "astype") else a for a in given]
    if "alpha" in kwargs:
        given[1] = given[1] * kwargs["alpha"]
    out, place, where = row(*given), kwargs.get("out"), kwargs.get("where", True)
    if place is None:
        return (out,)
    place = place[0] if isinstance(place, tuple) else place
    weft.copyto(place, out, where=where)
    return (place,)
