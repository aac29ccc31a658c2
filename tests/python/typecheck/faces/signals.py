# SPDX-License-Identifier: Apache-2.0
"""A filtered signal: Fourier transforms, special functions, random keys, arrays beside NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import weft
from weft import fft, random, special


def smoothed(signal: weft.NDArray, keep: int) -> weft.NDArray:
    spectrum = fft.rfft(signal)
    places = weft.arange(spectrum.shape[0])
    return fft.irfft(weft.where(places < keep, spectrum, 0.0), n=signal.shape[0])


def spectrum_loss(x: weft.Tensor) -> weft.Tensor:
    return weft.abs(fft.rfft(x)).sum()


def main() -> None:
    first, second = random.split(random.key(7))
    t = weft.linspace(0.0, 1.0, 64)
    signal = weft.sin(2.0 * weft.pi * t) + random.normal((64,), 0.0, 0.1, key=first)
    low = smoothed(signal, 4)
    host: npt.NDArray[np.float32] = low.numpy()
    x = weft.Tensor(signal, requires_grad=True)
    loss = spectrum_loss(x)
    loss.backward()
    counts, edges = weft.histogram(signal, bins=8)
    print(host.dtype, weft.var(low) < weft.var(signal), loss.item() > 0, counts.shape, edges.shape)
    print(
        special.gammaln(weft.asarray([3.0])).tolist(),
        special.erf(0.5),
        random.uniform((2,), key=second).shape,
    )
    print(
        weft.einsum("i,i->", low, low).shape,
        weft.finfo("float32").eps,
        weft.unique_counts(t).counts.shape,
    )


if __name__ == "__main__":
    main()
