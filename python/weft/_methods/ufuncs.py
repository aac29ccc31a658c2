# SPDX-License-Identifier: Apache-2.0
"""NumPy's ufuncs of weft's arrays and tensors: weft's function of that name, else NumPy's on the host."""

from __future__ import annotations

import weft

from .. import _core
from .._core import NDArray, Tensor
from .._dispatch import Recorder


def _host(x):
    import numpy as np

    return np.asarray(x) if isinstance(x, (NDArray, Tensor)) else x


def _ours(x):
    import numpy as np

    if isinstance(x, tuple):
        return tuple(map(_ours, x))
    numbers = isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biufc"
    return weft.asarray(x) if numbers else x


class NumpyFunctions:
    """What np.sin(x), n + x and np.add(x, 1, out=n) mean where x is weft's."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        """weft's function of the same name, which keeps devices and gradients; what weft lacks, and `out=`, `where=`, reduce and
        the like, by NumPy on the host. Results are weft's; `out` may be either's."""
        import numpy as np

        if any(isinstance(x, Recorder) for x in inputs):
            return NotImplemented
        ours = getattr(weft, ufunc.__name__, None) if getattr(np, ufunc.__name__, None) is ufunc else None  # fmt: skip
        objects = any(isinstance(x, np.ndarray) and x.dtype.kind not in "biufc" for x in inputs)
        if method == "__call__" and out is None and not kwargs and ours is not None and not objects:
            try:
                return ours(*inputs)
            except _core.DTypeError:
                pass  # such as np.sqrt of whole numbers
        inputs = [_host(x) for x in inputs]
        if out is None:
            return _ours(getattr(ufunc, method)(*inputs, **kwargs))
        getattr(ufunc, method)(*inputs, out=tuple(map(_host, out)), **kwargs)
        return out[0] if len(out) == 1 else out
