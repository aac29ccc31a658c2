# SPDX-License-Identifier: Apache-2.0
"""Discrete Fourier transforms: the fft extension of the array API standard."""

from __future__ import annotations

import math as _math

from ._core import shown as _shown
from . import _core
from . import _namespace as _ns
from ._boundary import publish as _publish
from ._errors import error as _error
from ._fallback import computed as _computed
from ._torch_names import understand as _understand
from .autograd import Function as _Function
from ._namespace.common import _array, _axis, _is_tensor

__all__ = [
    "fft",
    "ifft",
    "fftn",
    "ifftn",
    "rfft",
    "irfft",
    "rfftn",
    "fft2",
    "ifft2",
    "rfft2",
    "irfft2",
    "irfftn",
    "hfft",
    "ihfft",
    "fftfreq",
    "rfftfreq",
    "fftshift",
    "ifftshift",
]

_conj = _core.operations["conj"]
_real = _core.operations["real"]
_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


class _Library:
    """Where transforms are computed: a module with NumPy's fft interface. NumPy's own is pocketfft."""

    names = ("fft", "ifft", "rfft", "irfft")
    module = None
    direct = None  # its C functions, called without the library's Python around them


def use(library=None):
    """Takes one-dimensional transforms from a module with NumPy's fft interface, given itself or by name.

    "scipy.fft" (pocketfft in vectors, in float32 too: the default where it is installed), "numpy.fft" (the default
    elsewhere), "mkl_fft", "pyfftw.interfaces.numpy_fft" have it. Gives back the module that was in use. Raises
    ArgumentError when a function is missing.
    """
    import importlib
    import importlib.util

    before = _Library.module
    if library is None:
        library = "scipy.fft" if importlib.util.find_spec("scipy") else "numpy.fft"
    module = importlib.import_module(library) if isinstance(library, str) else library
    missing = [name for name in _Library.names if not callable(getattr(module, name, None))]
    if missing:
        raise _error(
            _core.ArgumentError,
            "array.fft.library",
            f"{getattr(module, '__name__', module)} has no {', '.join(missing)}",
            note=f"a library of transforms offers {', '.join(_Library.names)} as numpy.fft does",
        )
    _Library.module = module
    _Library.direct = _direct(module)
    return before


def _direct(module):
    """SciPy's compiled transforms (pocketfft): its dispatch takes longer than a short transform. They are not part of
    its public interface, so they are used where a trial gives what is expected, and else not."""
    if module.__name__ != "scipy.fft":
        return None
    try:
        import numpy
        from scipy.fft._pocketfft import pypocketfft as found

        line = numpy.array([1, 2], "complex64")
        sums = (
            found.c2c(line, (0,), False, 2, None, 1),
            found.r2c(line.real, (0,), True, 0, None, 1),
        )
        back = found.c2r(line, (0,), 2, False, 1, None, 1)
        wanted = ([1.5, -0.5], [3, -1], [3 / 2**0.5, -1 / 2**0.5])
        right = all(numpy.allclose(a, b) for a, b in zip((*sums, back), wanted))
    except Exception:  # noqa: BLE001
        # Whatever another version of SciPy raises: the public functions are there.
        return None
    return found if right else None


_INVERSE = {"fft": "ifft", "ifft": "fft", "rfft": "irfft", "irfft": "rfft"}


class _Transform(_Function):
    """A transform along an axis as an operation with a gradient: the transposed transform, of conjugate roots."""

    @staticmethod
    def forward(ctx, x, name, n, axis, norm):
        ctx.of = name, n, x.shape[axis], x.dtype, axis, norm
        return _computed(name, _one_axis, x.data, name, n, axis, norm)

    @staticmethod
    def backward(ctx, g):
        name, n, given, dtype, axis, norm = ctx.of
        norm = _OPPOSITE[norm]
        points = g.shape[axis] if name == "irfft" else given if n is None else n
        if name == "rfft":
            out = irfft(_paired(g, 0.5, points, axis), n=points, axis=axis, norm=norm)
        elif name == "irfft":
            out = _paired(rfft(g, axis=axis, norm=norm), 2.0, points, axis)
        else:
            out = globals()[_INVERSE[name]](g, axis=axis, norm=norm)
        out = _resized(out, given, axis)
        if dtype.kind != "c" and out.dtype.kind == "c":
            out = _real(out)
        return out, None, None, None, None


def _paired(x, factor, points, axis):
    """Half a spectrum, the frequencies that stand for two times a factor."""
    count = points // 2 + 1
    factors = [1.0 if k == 0 or 2 * k == points else factor for k in range(count)]
    kind = _core.float64 if x.dtype.name in ("complex128", "float64") else _core.float32
    line = _core._asarray(factors, kind, x.device, None)
    return x * line.reshape((count,) + (1,) * (x.ndim - 1 - axis))


def _resized(x, n, axis):
    """The first n entries of an axis, zeros behind what there is."""
    if x.shape[axis] > n:
        return x[(slice(None),) * axis + (slice(0, n),)]
    if x.shape[axis] < n:
        widths = [(0, 0)] * x.ndim
        widths[axis] = (0, n - x.shape[axis])
        return _ns.pad(x, widths)
    return x


def _checked(name, x, norm):
    if norm not in ("backward", "ortho", "forward"):
        raise _error(
            _core.ArgumentError,
            "array.fft.norm",
            f"norm is {_shown(norm)}, legal: 'backward', 'ortho', 'forward'",
            help="leave norm out, which is 'backward'",
        )
    return x if _is_tensor(x) else _array(x)


def _transform(name, x, n, axis, norm):
    x = _checked(name, x, norm)
    axis = _axis(axis, x.ndim, name)
    if n is not None and n < 1:
        raise _error(
            _core.ArgumentError,
            f"array.{name}.length",
            f"{name} to {n} points; at least 1 is needed",
            help="transform at least one point",
        )
    if _is_tensor(x):
        if x.requires_grad:
            return _Transform.apply(x, name, n, axis, norm)
        x = _array(x)
    return _computed(name, _one_axis, x, name, n, axis, norm)


_NARROW = frozenset(("complex64", "float32", "float16", "bfloat16"))
_RESULTS = {  # by (complex, narrow)
    (True, True): _core.complex64,
    (True, False): _core.complex128,
    (False, True): _core.float32,
    (False, False): _core.float64,
}


def _one_axis(x, name, n, axis, norm):
    if not x.device.host_accessible:
        return _on_device(name, x, n, axis, norm)
    if _Library.module is None:
        use()
    import numpy

    dtype = x.dtype.name
    values = numpy.asarray(x if dtype != "bfloat16" else x.astype("float32"))
    out = _called_directly(name, values, n, (axis,), norm)
    if out is not None:
        return _core._asarray(out, None, x.device, None)
    out = getattr(_Library.module, name)(values, n=n, axis=axis, norm=norm)
    wanted = _RESULTS[out.dtype.kind == "c", dtype in _NARROW]
    return _core._asarray(numpy.ascontiguousarray(out), wanted, x.device, None)


_NORMS = {"backward": 0, "ortho": 1, "forward": 2}


def _called_directly(name, values, n, axes, norm):
    """A transform over distinct axes of NumPy's array, the last of them of n points; None where that takes more than one call."""
    direct, kind = _Library.direct, values.dtype.char
    if direct is None or kind not in "fdFD" or not values.size:
        return None
    points = values.shape[axes[-1]]
    forward = name[0] != "i"
    scale = _NORMS[norm] if forward else 2 - _NORMS[norm]
    if name[:5] == "irfft":
        if kind in "fd" or n is None or points != n // 2 + 1:
            return None
        return direct.c2r(values, axes, n, False, scale, None, 1)
    if n is not None and n != points:
        return None
    if name[0] == "r":
        return direct.r2c(values, axes, True, scale, None, 1) if kind in "fd" else None
    return direct.c2c(values, axes, forward, scale, None, 1)


def _on_device(name, x, n, axis, norm):
    """By the device's library or by programs: the axis is transformed where the array lies."""
    points = x.shape[axis] if n is None else n
    if n is None and name == "irfft":
        points = 2 * (points - 1)
    if points < 1:
        raise _error(
            _core.ArgumentError,
            f"array.{name}.length",
            f"{name} of {points} points along axis {axis}; at least 1 is needed",
            help="transform at least one point",
        )
    backward = name in ("ifft", "irfft")
    scale = _scale(points, backward, norm)
    if name == "rfft":
        return _core._rfft(x, points, axis, scale)
    if name == "irfft":
        return _core._irfft(x, points, axis, scale)
    return _core._fft(x, points, axis, backward, scale)


def _scale(points, backward, norm):
    """The factor of a transform's results."""
    divided = {"backward": backward, "forward": not backward, "ortho": True}[norm]
    return (1.0 / points) ** (0.5 if norm == "ortho" else 1.0) if divided else 1.0


def _together(name, x, s, axes, norm):
    """One call over the last axes of an array on a device, or any of one on the host, none of them cut or filled up;
    else None."""
    if _is_tensor(x) and x.requires_grad or len(axes) < 2:
        return None
    x = _array(x)
    at = [a + x.ndim if a < 0 else a for a in axes]
    host = x.device.host_accessible
    if len(set(at)) < len(at) or max(at) >= x.ndim or min(at) < 0:
        return None
    if not host and sorted(at) != list(range(x.ndim - len(at), x.ndim)):
        return None
    real, backward = "rfft" in name, name[0] == "i"
    if real and not host and at[-1] != x.ndim - 1:
        return None
    points = [x.shape[a] for a in at]
    if name == "irfftn":
        points[-1] = s[-1]
        if x.shape[at[-1]] != s[-1] // 2 + 1:
            return None
    if points != list(s) or min(points) < 1:
        return None
    x = _array(_checked(name[:-1], x, norm))
    if host:
        if _Library.module is None:
            use()
        import numpy

        if _Library.direct is None or x.dtype.name == "bfloat16":
            return None
        out = _called_directly(name, numpy.asarray(x), points[-1], tuple(at), norm)
        return None if out is None else _core._asarray(out, None, x.device, None)
    scale = _scale(_math.prod(points), backward, norm)
    n = points[at.index(x.ndim - 1)]
    return _core._fft_last_axes(x, len(at), backward, real, n, scale)


def _complex_only(x, name):
    if x.dtype.kind != "c":
        raise _error(
            _core.DTypeError, f"array.{name}.dtype", f"{name} needs complex numbers, got {x.dtype}"
        )


def _real_only(x, name):
    if x.dtype.kind != "f":
        raise _error(
            _core.DTypeError, f"array.{name}.dtype", f"{name} needs real numbers, got {x.dtype}"
        )


def fft(x, /, n=None, axis=-1, norm="backward"):
    """Transform along an axis."""
    return _transform("fft", x, n, axis, norm)


def ifft(x, /, n=None, axis=-1, norm="backward"):
    """Inverse transform along an axis."""
    return _transform("ifft", x, n, axis, norm)


def _axes_of(x, s, axes):
    if axes is None:
        axes = tuple(range(x.ndim)) if s is None else tuple(range(x.ndim - len(s), x.ndim))
    s = tuple(x.shape[a] for a in axes) if s is None else tuple(s)
    return s, axes


def fftn(x, /, s=None, axes=None, norm="backward"):
    """Transform along several axes."""
    s, axes = _axes_of(x, s, axes)
    whole = _together("fftn", x, s, axes, norm)
    if whole is not None:
        return whole
    for n, a in zip(s, axes):
        x = fft(x, n=n, axis=a, norm=norm)
    return x


def ifftn(x, /, s=None, axes=None, norm="backward"):
    """Inverse transform along several axes."""
    s, axes = _axes_of(x, s, axes)
    whole = _together("ifftn", x, s, axes, norm)
    if whole is not None:
        return whole
    for n, a in zip(s, axes):
        x = ifft(x, n=n, axis=a, norm=norm)
    return x


def rfft(x, /, n=None, axis=-1, norm="backward"):
    """Transform of real numbers: the first half of the spectrum."""
    _real_only(x, "rfft")
    return _transform("rfft", x, n, axis, norm)


def irfft(x, /, n=None, axis=-1, norm="backward"):
    """Inverse of rfft."""
    if n is None:
        n = 2 * (x.shape[_axis(axis, x.ndim, "irfft")] - 1)
    return _transform("irfft", x, n, axis, norm)


def rfftn(x, /, s=None, axes=None, norm="backward"):
    """Transform of real numbers along several axes; the last one is halved."""
    s, axes = _axes_of(x, s, axes)
    _real_only(x, "rfft")
    whole = _together("rfftn", x, s, axes, norm)
    if whole is not None:
        return whole
    out = rfft(x, n=s[-1], axis=axes[-1], norm=norm)
    for n, a in zip(s[:-1], axes[:-1]):
        out = fft(out, n=n, axis=a, norm=norm)
    return out


def irfftn(x, /, s=None, axes=None, norm="backward"):
    """Inverse of rfftn."""
    given = s is not None
    s, axes = _axes_of(x, s, axes)
    full = s if given else (*s[:-1], 2 * (s[-1] - 1))
    whole = _together("irfftn", x, full, axes, norm)
    if whole is not None:
        return whole
    for n, a in zip(s[:-1], axes[:-1]):
        x = ifft(x, n=n, axis=a, norm=norm)
    return irfft(x, n=s[-1] if given else None, axis=axes[-1], norm=norm)


def _of_planes(several):
    def function(x, /, s=None, axes=(-2, -1), norm="backward"):
        return several(x, s=s, axes=axes, norm=norm)

    function.__name__ = function.__qualname__ = f"{several.__name__[:-1]}2"
    function.__doc__ = f"{several.__name__} over two axes."
    return function


fft2, ifft2, rfft2, irfft2 = map(_of_planes, (fftn, ifftn, rfftn, irfftn))


def hfft(x, /, n=None, axis=-1, norm="backward"):
    """Transform of a Hermitian signal: real numbers."""
    return irfft(
        _conj(x) if x.dtype.kind == "c" else x, n=n, axis=axis, norm=_OPPOSITE.get(norm, norm)
    )


def ihfft(x, /, n=None, axis=-1, norm="backward"):
    """Inverse of hfft."""
    _real_only(x, "ihfft")
    return _conj(rfft(x, n=n, axis=axis, norm=_OPPOSITE.get(norm, norm)))


def fftfreq(n, d=1.0, *, dtype=None, device=None):
    """Frequencies of the n points of a transform."""
    k = _ns.concat(
        [_ns.arange((n + 1) // 2, device=device), _ns.arange(-(n // 2), 0, device=device)]
    )
    dtype = _core.float32 if dtype is None else dtype
    return (k.astype(_core.float64) / (n * d)).astype(dtype)


def rfftfreq(n, d=1.0, *, dtype=None, device=None):
    """Frequencies of the points of rfft."""
    dtype = _core.float32 if dtype is None else dtype
    return (_ns.arange(n // 2 + 1, device=device).astype(_core.float64) / (n * d)).astype(dtype)


def _shift(x, axes, sign):
    axes = (
        tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    )
    return _ns.roll(
        x,
        tuple(sign * (x.shape[a] // 2) if sign > 0 else -(x.shape[a] // 2) for a in axes),
        axis=axes,
    )


def fftshift(x, /, *, axes=None):
    """The zero frequency moved to the middle."""
    return _shift(x, axes, 1)


def ifftshift(x, /, *, axes=None):
    """Inverse of fftshift."""
    return _shift(x, axes, -1)


def __dir__():
    from ._functions.later import names

    return sorted({*globals(), *names("weft.fft")})


def __getattr__(name):
    from ._functions.later import found
    from ._names import missing

    if name[:1] != "_" and (value := found("weft.fft", name)) is not None:
        return value
    raise missing("weft.fft", name, {})


_understand(globals(), __all__, "weft.fft")

_publish(__name__)
