# SPDX-License-Identifier: Apache-2.0
"""Short-time Fourier transforms and PyTorch's windows."""

from __future__ import annotations

import math

import weft

from .._core import shown
from .common import plain, refused, value


def _cosines(name, n, periodic, terms, dtype, device):
    if n < 0:
        raise refused(f"array.{name}.length", f"a window of {n}", "lengths from 0 on")
    kind = dtype or weft.asarray(0.0).dtype
    if n <= 1:
        return weft.ones((n,), dtype=kind, device=device)
    turn = weft.arange(n, device=device).astype("float64") * (
        2 * math.pi / (n if periodic else n - 1)
    )
    out = terms[0]
    for k, c in enumerate(terms[1:], 1):
        out = out + weft.cos(turn * float(k)) * ((-1) ** k * c)
    return out.astype(kind)


def hann_window(window_length, periodic=True, *, dtype=None, device=None):
    """(1 - cos(2 pi k / n)) / 2 for k below window_length; n is the length, or one less without periodic."""
    return _cosines("hann_window", window_length, periodic, (0.5, 0.5), dtype, device)


def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, *, dtype=None, device=None):
    """alpha - beta cos(2 pi k / n)."""
    return _cosines("hamming_window", window_length, periodic, (alpha, beta), dtype, device)


def blackman_window(window_length, periodic=True, *, dtype=None, device=None):
    """0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n)."""
    return _cosines("blackman_window", window_length, periodic, (0.42, 0.5, 0.08), dtype, device)


def bartlett_window(window_length, periodic=True, *, dtype=None, device=None):
    """1 - |2 k / n - 1|."""
    kind = dtype or weft.asarray(0.0).dtype
    if window_length <= 1:
        return weft.ones((window_length,), dtype=kind, device=device)
    k = weft.arange(window_length, device=device).astype("float64")
    n = window_length if periodic else window_length - 1
    return (1.0 - weft.abs(k * (2.0 / n) - 1.0)).astype(kind)


def kaiser_window(window_length, periodic=True, beta=12.0, *, dtype=None, device=None):
    """I0(beta sqrt(1 - (2 k / n - 1)^2)) / I0(beta)."""
    kind = dtype or weft.asarray(0.0).dtype
    if window_length <= 1:
        return weft.ones((window_length,), dtype=kind, device=device)
    out = weft.kaiser(window_length + bool(periodic), beta)[:window_length].astype(kind)
    return out if device is None else out.to(device)


def _framing(name, n_fft, hop_length, win_length, window, x):
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if not (n_fft > 0 and 0 < length <= n_fft and hop > 0):
        raise refused(f"array.{name}.frame", f"frames of {n_fft} with a window of {length} and a hop of {hop}", "0 < window <= n_fft, hops from 1 on")  # fmt: skip
    kind = {"complex64": "float32", "complex128": "float64"}.get(x.dtype.name, x.dtype.name)
    w = weft.ones((length,), dtype=kind, device=x.device) if window is None else value(window)
    if tuple(w.shape) != (length,):
        raise refused(f"array.{name}.window", f"a window of shape {tuple(w.shape)}", f"({length},)")
    if length < n_fft:
        before = (n_fft - length) // 2
        ends = [weft.zeros((m,), dtype=w.dtype, device=w.device) for m in (before, n_fft - length - before)]  # fmt: skip
        w = weft.concat([ends[0], w, ends[1]], axis=0)
    return hop, w


def _reflected(x, n):
    """n entries before and after the last axis, mirrored at its ends."""
    size = x.shape[-1]
    if n >= size:
        raise refused("array.stft.pad", f"a border of {n} mirrored from {size} samples", "more samples than half a frame")  # fmt: skip
    at = weft.abs(weft.arange(-n, size + n, device=x.device))
    at = weft.where(at >= size, 2 * (size - 1) - at, at)
    return weft.take(x, at, axis=-1)


def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None, return_complex=None):  # fmt: skip
    """Fourier transforms of overlapping frames: (samples,) or (n, samples) gives (n_fft // 2 + 1, frames), or (n, ...), complex.

    center pads half a frame at both ends: pad_mode "reflect" or "constant". onesided=False (and complex samples) keep all n_fft
    frequencies; normalized divides by sqrt(n_fft). return_complex=False gives pairs of reals as the last axis. Has gradients.
    """
    x = value(input)
    if x.ndim not in (1, 2) or x.dtype.kind not in "fc":
        raise refused("array.stft.shape", f"stft of {x.dtype} {tuple(x.shape)}", "floats of one or two axes")  # fmt: skip
    if pad_mode not in ("reflect", "constant"):
        raise refused("array.stft.pad_mode", f"pad_mode {shown(pad_mode)}", "reflect or constant")
    hop, w = _framing("stft", n_fft, hop_length, win_length, window, x)
    single = x.ndim == 1
    x = x.reshape((1, -1)) if single else x
    if center:
        half = n_fft // 2
        if pad_mode == "reflect":
            x = _reflected(x, half)
        else:
            ends = weft.zeros((x.shape[0], half), dtype=x.dtype, device=x.device)
            x = weft.concat([ends, x, ends], axis=-1)
    if x.shape[-1] < n_fft:
        raise refused("array.stft.length", f"{x.shape[-1]} samples for frames of {n_fft}", "as many samples as a frame")  # fmt: skip
    count = (x.shape[-1] - n_fft) // hop + 1
    at = weft.arange(count, device=x.device).reshape((-1, 1)) * hop + weft.arange(n_fft, device=x.device)  # fmt: skip
    frames = weft.take(x, at.reshape(-1), axis=-1).reshape((x.shape[0], count, n_fft)) * w
    one = x.dtype.kind == "f" if onesided is None else onesided
    norm = "ortho" if normalized else "backward"
    out = weft.fft.rfft(frames, norm=norm) if one else weft.fft.fft(_as_complex(frames), norm=norm)
    out = weft.moveaxis(out, 1, 2)
    out = out[0] if single else out
    return weft.stack([weft.real(out), weft.imag(out)], axis=-1) if return_complex is False else out


def _as_complex(x):
    if x.dtype.kind == "c":
        return x
    return x.astype("complex128" if x.dtype == weft.float64 else "complex64")


def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None, return_complex=False):  # fmt: skip
    """The samples whose stft is given, frames added up under the window: (frequencies, frames) or (n, ...) complex gives (samples,)
    or (n, samples). Raises ArgumentError where windows leave a gap. Has gradients."""
    x = value(input)
    if x.dtype.kind == "f":
        x = weft.view_as_complex(x)
    single = x.ndim == 2
    x = weft.expand_dims(x, axis=0) if single else x
    one = x.shape[1] != n_fft if onesided is None else onesided
    if x.ndim != 3 or x.shape[1] != (n_fft // 2 + 1 if one else n_fft):
        raise refused("array.istft.shape", f"istft of shape {tuple(x.shape)} with n_fft {n_fft}", "(n, frequencies, frames)")  # fmt: skip
    hop, w = _framing("istft", n_fft, hop_length, win_length, window, x)
    norm = "ortho" if normalized else "backward"
    frames = weft.moveaxis(x, 1, 2)
    frames = weft.fft.irfft(frames, n=n_fft, norm=norm) if one else weft.fft.ifft(frames, norm=norm)
    if not one and not return_complex:
        frames = weft.real(frames)
    frames = frames * w
    count = frames.shape[1]
    size = n_fft + hop * (count - 1)
    at = (weft.arange(count, device=x.device).reshape((-1, 1)) * hop + weft.arange(n_fft, device=x.device)).reshape(-1)  # fmt: skip
    base = weft.zeros((size, frames.shape[0]), dtype=frames.dtype, device=x.device)
    rows = weft.moveaxis(frames.reshape((frames.shape[0], -1)), 0, 1)
    total = weft.moveaxis(weft.scatter(base, at, rows, accumulate=True), 0, 1)
    weights = plain(w) * plain(w)
    weights = weft.broadcast_to(weights, (count, n_fft)).reshape(-1)
    envelope = weft.scatter(weft.zeros((size,), dtype=weights.dtype, device=x.device), at, weights, accumulate=True)  # fmt: skip
    first = n_fft // 2 if center else 0
    last = size - first if length is None else first + length
    inner = envelope[first : min(last, size)]
    if not bool(weft.all(weft.abs(inner) > 1e-11)):
        raise refused("array.istft.window", "windows that leave samples without weight", "overlapping windows that are not 0 together")  # fmt: skip
    out = total[:, first : min(last, size)] / inner
    if last > size:
        out = weft.concat([out, weft.zeros((out.shape[0], last - size), dtype=out.dtype, device=x.device)], axis=-1)  # fmt: skip
    return out[0] if single else out
