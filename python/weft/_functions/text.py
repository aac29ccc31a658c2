# SPDX-License-Identifier: Apache-2.0
"""Arrays as text: files of numbers, printing and its options; the switches of NumPy's floating-point warnings, which weft has not."""

from __future__ import annotations

import contextlib

import weft

from .._core import shown
from .common import plain, refused

_OPTIONS = {
    "precision": 8,
    "threshold": 1000,
    "edgeitems": 3,
    "linewidth": 75,
    "suppress": False,
    "nanstr": "nan",
    "infstr": "inf",
    "sign": "-",
    "floatmode": "maxprec",
    "formatter": None,
}


def loadtxt(fname, dtype=None, comments="#", delimiter=None, converters=None, skiprows=0, usecols=None, unpack=False, ndmin=0, max_rows=None):  # fmt: skip
    """Numbers of a text file (a path, a file or lines), a row for each line, on the host; float64 unless a type is given."""
    import numpy as np

    kind = weft.float64 if dtype is None else weft.asarray(0).astype(dtype).dtype
    found = np.loadtxt(
        fname, dtype=_host_type(kind), comments=comments, delimiter=delimiter, converters=converters,
        skiprows=skiprows, usecols=usecols, ndmin=ndmin, max_rows=max_rows,
    )  # fmt: skip
    return _columns(found, kind, unpack)


def _columns(found, kind, unpack):
    out = weft.asarray(found).astype(kind)
    return weft.unstack(out.T, axis=0) if unpack and out.ndim > 1 else out


def _host_type(kind):
    return "float32" if kind.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2") else kind.name


def genfromtxt(fname, dtype=None, comments="#", delimiter=None, skip_header=0, skip_footer=0, usecols=None, filling_values=None, unpack=False, max_rows=None, **options):  # fmt: skip
    """As loadtxt, with NaN (or filling_values) for numbers that are missing. Names of columns and mixed types are not offered."""
    import numpy as np

    if options:
        raise refused(
            "array.genfromtxt.option",
            f"genfromtxt with {', '.join(options)}",
            "columns of one type",
        )
    kind = weft.float64 if dtype is None else weft.asarray(0).astype(dtype).dtype
    found = np.genfromtxt(
        fname, dtype=_host_type(kind), comments=comments, delimiter=delimiter, skip_header=skip_header,
        skip_footer=skip_footer, usecols=usecols, filling_values=filling_values, max_rows=max_rows,
    )  # fmt: skip
    return _columns(found, kind, unpack)


def savetxt(
    fname, X, fmt="%.18e", delimiter=" ", newline="\n", header="", footer="", comments="# "
):
    """Writes a vector or a matrix as text, a line for each row."""
    import numpy as np

    x = plain(X)
    if x.ndim not in (1, 2):
        raise refused(
            "array.savetxt.shape", f"savetxt of shape {tuple(x.shape)}", "vectors and matrices"
        )
    np.savetxt(fname, _host(x), fmt, delimiter, newline, header, footer, comments)


def _host(x):
    x = x.to("cpu")
    return (x.astype("float32") if x.dtype.kind == "f" and x.dtype.itemsize < 2 or x.dtype.name == "bfloat16" else x).numpy()  # fmt: skip


def savez_compressed(path, **arrays):
    """Writes arrays by name into one compressed .npz file; load_arrays reads it."""
    import numpy as np

    np.savez_compressed(path, **{k: _host(plain(v)) for k, v in arrays.items()})


def _text(x, options, **given):
    import numpy as np

    chosen = {**_OPTIONS, **options}
    chosen = {k: v for k, v in chosen.items() if k != "formatter" or v is not None}
    with np.printoptions(**chosen):
        return np.array2string(_host(plain(x)), **given)


_current: dict = {}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, suppress=None, nanstr=None, infstr=None, formatter=None, sign=None, floatmode=None, profile=None, sci_mode=None):  # fmt: skip
    """How array2string, array_repr and array_str write numbers, with NumPy's meanings; None leaves an option as it is.

    profile ("default", "short", "full") and sci_mode are PyTorch's. repr and str of arrays and tensors keep their own form.
    """
    given = dict(precision=precision, threshold=threshold, edgeitems=edgeitems, linewidth=linewidth, suppress=suppress, nanstr=nanstr, infstr=infstr, formatter=formatter, sign=sign, floatmode=floatmode)  # fmt: skip
    profiles = {None: {}, "default": dict(_OPTIONS), "short": {"precision": 2, "threshold": 1000, "edgeitems": 2}, "full": {"threshold": 2**62}}  # fmt: skip
    if profile not in profiles:
        raise refused("array.print.profile", f"profile {shown(profile)}", "default, short or full")
    if sci_mode is not None:
        given["suppress"] = not sci_mode
    _current.update(profiles[profile])
    _current.update({k: v for k, v in given.items() if v is not None})


def get_printoptions():
    """The options of set_printoptions as a dict."""
    return {**_OPTIONS, **_current}


@contextlib.contextmanager
def _print_options(given):
    before = dict(_current)
    set_printoptions(**given)
    try:
        yield get_printoptions()
    finally:
        _current.clear()
        _current.update(before)


def printoptions(**options):
    """with weft.printoptions(precision=3): ... sets options of printing inside."""
    return _print_options(options)


def array2string(
    a, max_line_width=None, precision=None, suppress_small=None, separator=" ", prefix=""
):
    """The elements as text under the options of set_printoptions; arguments that are given go before them."""
    return _text(a, _current, max_line_width=max_line_width, precision=precision, suppress_small=suppress_small, separator=separator, prefix=prefix)  # fmt: skip


def array_repr(arr, max_line_width=None, precision=None, suppress_small=None):
    """ "array([...], dtype=...)" under the options of set_printoptions."""
    x = plain(arr)
    body = _text(x, _current, max_line_width=max_line_width, precision=precision, suppress_small=suppress_small, separator=", ", prefix="array(")  # fmt: skip
    return f"array({body}, dtype={x.dtype})"


def array_str(a, max_line_width=None, precision=None, suppress_small=None):
    """The elements as text, as str does it, under the options of set_printoptions."""
    return array2string(a, max_line_width, precision, suppress_small)


def base_repr(number, base=2, padding=0):
    """A whole number as text in a base from 2 to 36, `padding` zeros before it."""
    if not 2 <= base <= 36:
        raise refused("array.base_repr.base", f"base {base}", "bases from 2 to 36")
    digits, n, out = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", abs(int(number)), ""
    while n:
        n, rest = divmod(n, base)
        out = digits[rest] + out
    out = "0" * padding + out if out else "0" * max(padding, 1)
    return "-" + out if int(number) < 0 else out


def binary_repr(num, width=None):
    """A whole number in bits; negative ones as the two's complement of `width` bits."""
    num = int(num)
    if num >= 0 or width is None:
        return f"{num:0{width or 1}b}"
    if num < -(1 << (width - 1)):
        raise refused(
            "array.binary_repr.width", f"{num} in {width} bits", "as many bits as it needs"
        )
    return f"{num + (1 << width):0{width}b}"


def _number(x):
    import numpy as np

    x = x.item() if hasattr(x, "item") else x
    return np.float64(float(x))  # a list in lists is no number, and not read


def format_float_positional(x, precision=None, unique=True, fractional=True, trim="k", sign=False):
    """A number as text without an exponent."""
    import numpy as np

    return np.format_float_positional(_number(x), precision, unique, fractional, trim, sign)


def format_float_scientific(x, precision=None, unique=True, trim="k", sign=False):
    """A number as text with an exponent."""
    import numpy as np

    return np.format_float_scientific(_number(x), precision, unique, trim, sign)


_MODES = ("ignore", "warn", "raise", "call", "print", "log", None)
_WARNINGS = {"divide": "ignore", "over": "ignore", "under": "ignore", "invalid": "ignore"}


def _modes(all, given):
    for what, mode in {"all": all, **given}.items():
        if what not in ("all", *_WARNINGS) or mode not in _MODES:
            raise refused(
                "array.errstate", f"{what}={shown(mode)}", f"{', '.join(_WARNINGS)}: ignore or warn"
            )
        if mode in ("raise", "call"):
            raise refused(
                "array.errstate.raise",
                f"{what}={shown(mode)}: devices give infinities and NaN and raise nothing",
                "ignore or warn; look for NaN with weft.isnan(x).any()",
            )


def seterr(all=None, **modes):
    """NumPy's switch of floating-point warnings. weft never warns: what is infinite or NaN is so. Raises for "raise"."""
    _modes(all, modes)
    return dict(_WARNINGS)


def geterr():
    """What seterr gives: nothing warns."""
    return dict(_WARNINGS)


class errstate(contextlib.ContextDecorator):
    """with weft.errstate(divide="ignore"): ... weft never warns; "raise" is an ArgumentError."""

    def __init__(self, all=None, **modes):
        _modes(all, modes)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def typename(x):
    """The kind of a value as text: "weft.Tensor", "weft.NDArray", a Python type; of a type's letter its words."""
    if isinstance(x, str):
        import numpy as np

        return np.typename(x)
    kind = type(x)
    return f"weft.{kind.__name__}" if kind.__module__.startswith("weft") else kind.__name__
