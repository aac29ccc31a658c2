# SPDX-License-Identifier: Apache-2.0
"""Layers that learn their input's features from the first input. They become the plain layer then."""

from __future__ import annotations

import weft

from .._errors import error as _error
from . import convolutions, groups, layers, norms
from .module import Module

# The lazy layer: (the plain one, its first argument is the features of an axis, counted from the front or the back).
_TABLE = {
    "LazyLinear": (layers.Linear, -1),
    **{f"Lazy{kind}{n}d": (getattr(convolutions, f"{kind}{n}d"), -n - 1) for kind in ("Conv", "ConvTranspose") for n in (1, 2, 3)},
    **{f"LazyBatchNorm{n}d": (getattr(norms, f"BatchNorm{n}d"), 1) for n in (1, 2, 3)},
    **{f"LazyInstanceNorm{n}d": (getattr(groups, f"InstanceNorm{n}d"), 1) for n in (1, 2, 3)},
}  # fmt: skip
__all__ = list(_TABLE)


class Lazy(Module):
    """A layer without parameters until it is called."""

    def __init__(self, *args, **kwargs):
        super().__init__()
        self._given = args, kwargs

    def __call__(self, x, *more):
        plain, axis = _TABLE[type(self).__name__]
        if not -x.ndim <= axis < x.ndim:
            raise _error(
                weft.ShapeError,
                "nn.lazy.shape",
                f"{type(self).__name__} of shape {tuple(x.shape)}",
                ["rule: the axes that the plain layer takes"],
            )
        args, kwargs = self.__dict__.pop("_given")
        training, hooks = (
            self.training,
            {k: v for k, v in self.__dict__.items() if k.endswith("hooks")},
        )
        kwargs = {"device": x.device, **kwargs} if "device" not in kwargs and plain is not groups.InstanceNorm2d else kwargs  # fmt: skip
        try:
            made = plain(x.shape[axis], *args, **kwargs)
        except TypeError:
            kwargs.pop("device", None)
            made = plain(x.shape[axis], *args, **kwargs)
        self.__class__ = plain
        self.__dict__.clear()
        self.__dict__.update({**made.__dict__, **hooks})
        self.train(training)
        return self(x, *more)


for _name, (_plain, _axis) in _TABLE.items():
    globals()[_name] = type(
        _name,
        (Lazy,),
        {
            "__doc__": f"{_plain.__name__} whose input features are those of the first input; parameters exist from then on.",
            "__module__": __name__,
        },
    )
