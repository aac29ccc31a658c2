# SPDX-License-Identifier: Apache-2.0
"""Feed-forward layers, activations and what modules are strung on."""

from __future__ import annotations

import math

import weft

from .. import init
from . import functional as F
from .module import Module, Parameter


class Identity(Module):
    """x; arguments are taken and mean nothing."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, x):
        return x


class Linear(Module):
    """x W + b."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(
            init.kaiming_uniform(in_features, out_features, dtype=dtype, device=device)
        )
        bound = 1.0 / math.sqrt(in_features)
        self.bias = (
            Parameter(init.rand(out_features, low=-bound, high=bound, dtype=dtype, device=device))
            if bias
            else None
        )

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class ReLU(Module):
    """x where positive, else 0. `inplace` is taken as PyTorch's word and changes nothing: results are new."""

    def __init__(self, inplace=False):
        super().__init__()

    def forward(self, x):
        return F.relu(x)


class GELU(Module):
    """x times the normal distribution function of x; approximate="tanh" takes the tanh formula."""

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, x):
        return F.gelu(x, self.approximate)


class SiLU(Module):
    """x sigmoid(x)."""

    def __init__(self, inplace=False):
        super().__init__()

    def forward(self, x):
        return F.silu(x)


class LeakyReLU(Module):
    """x where positive, else slope times x."""

    def __init__(self, slope=0.01, inplace=False, negative_slope=None):
        super().__init__()
        self.slope = slope if negative_slope is None else negative_slope

    def forward(self, x):
        return F.leaky_relu(x, self.slope)


class ELU(Module):
    """x where positive, else alpha (exp(x) - 1)."""

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha

    def forward(self, x):
        return F.elu(x, self.alpha)


class Softplus(Module):
    """log(1 + exp(beta x)) / beta. PyTorch's threshold changes nothing: the exact value is x itself there."""

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, x):
        return F.softplus(x, self.beta)


class Sigmoid(Module):
    def forward(self, x):
        return weft.sigmoid(x)


class Tanh(Module):
    def forward(self, x):
        return weft.tanh(x)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along an axis; `dim` is PyTorch's name of it."""

    def __init__(self, axis=-1, dim=None):
        super().__init__()
        self.axis = axis if dim is None else dim

    def forward(self, x):
        return x.softmax(self.axis)


class LogSoftmax(Softmax):
    """x - log(sum(exp(x))) along an axis."""

    def forward(self, x):
        return x.log_softmax(self.axis)


class Flatten(Module):
    """(n, ...) to (n, features), or the axes from start_dim to end_dim as one."""

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x):
        return x.flatten(self.start_dim, self.end_dim)


class Sequential(Module):
    """Modules called one after another; inside names they are "0", "1", ..."""

    _nameless = "layers"

    def __init__(self, *modules):
        super().__init__()
        named = len(modules) == 1 and isinstance(modules[0], dict)
        # A dict's names are those of the modules inside, and attributes.
        self.layers = dict(modules[0]) if named else modules

    def _row(self):
        return tuple(self.layers.values()) if isinstance(self.layers, dict) else self.layers

    def forward(self, x):
        for m in self._row():
            x = m(x)
        return x

    def __len__(self):
        return len(self.layers)

    def __iter__(self):
        return iter(self._row())

    def __getattr__(self, name):
        named = self.__dict__.get("layers")
        if isinstance(named, dict) and name in named:
            return named[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __getitem__(self, index):
        got = self._row()[index]
        if not isinstance(index, slice):
            return got
        if isinstance(self.layers, dict):
            return Sequential(dict(list(self.layers.items())[index]))
        return Sequential(*got)

    def __setitem__(self, index, module):
        row = list(self._row())
        row[index] = module
        named = isinstance(self.layers, dict)
        self.layers = dict(zip(self.layers, row)) if named else tuple(row)

    def append(self, module):
        """One more at the end; returns the module."""
        more = {str(len(self)): module} if isinstance(self.layers, dict) else None
        self.layers = {**self.layers, **more} if more else (*self.layers, module)
        return self

    def extend(self, modules):
        """Some more at the end; returns the module."""
        more, row = list(modules), self.layers
        names = (str(len(self) + k) for k in range(len(more)))
        self.layers = {**row, **dict(zip(names, more))} if isinstance(row, dict) else (*row, *more)
        return self


class ModuleList(Module):
    """Modules in a list whose parameters are found; it is not called itself."""

    _nameless = "items"

    def __init__(self, modules=()):
        super().__init__()
        self.items = list(modules)

    def append(self, module):
        """One more at the end; returns the list."""
        self.items.append(module)
        return self

    def extend(self, modules):
        """Some more at the end; returns the list."""
        self.items.extend(modules)
        return self

    __iadd__ = extend

    def insert(self, index, module):
        """One more before an index."""
        self.items.insert(index, module)

    def __setitem__(self, index, module):
        self.items[index] = module

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    def __getitem__(self, index):
        got = self.items[index]
        return ModuleList(got) if isinstance(index, slice) else got


class Residual(Module):
    """f(x) + x."""

    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x) + x
