# SPDX-License-Identifier: Apache-2.0
"""Modules and parameters by name, and parameters in a row."""

from __future__ import annotations

from .module import Module, Parameter


class _Named(Module):
    _nameless = "items_"

    def __init__(self, items=None):
        super().__init__()
        self.items_ = {}
        self.update(items or {})

    def update(self, items):
        """Takes the entries of a dict, or pairs."""
        for name, value in dict(items).items():
            self[name] = value

    def __setitem__(self, name, value):
        self.items_[name] = value

    def __getitem__(self, name):
        return self.items_[name]

    def __delitem__(self, name):
        del self.items_[name]

    def __contains__(self, name):
        return name in self.items_

    def __len__(self):
        return len(self.items_)

    def __iter__(self):
        return iter(self.items_)

    def keys(self):
        """The names."""
        return self.items_.keys()

    def values(self):
        """What the names stand for."""
        return self.items_.values()

    def items(self):
        """Pairs of both."""
        return self.items_.items()


class ModuleDict(_Named):
    """Modules by name; parameters are "name.weight"."""

    def __init__(self, modules=None):
        super().__init__(modules)


class ParameterDict(_Named):
    """Parameters by name; tensors and arrays become parameters."""

    def __init__(self, parameters=None):
        super().__init__(parameters)

    def __setitem__(self, name, value):
        self.items_[name] = value if isinstance(value, Parameter) else Parameter(value)


class ParameterList(Module):
    """Parameters in a row, named "0", "1", ...; tensors and arrays become parameters."""

    _nameless = "items"

    def __init__(self, values=()):
        super().__init__()
        self.items = []
        self.extend(values)

    def append(self, value):
        """One more; returns the list."""
        self.items.append(value if isinstance(value, Parameter) else Parameter(value))
        return self

    def extend(self, values):
        """Some more; returns the list."""
        for value in values:
            self.append(value)
        return self

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    def __getitem__(self, index):
        got = self.items[index]
        return ParameterList(got) if isinstance(index, slice) else got
