# SPDX-License-Identifier: Apache-2.0
"""__array_namespace_info__ of the array API standard."""

from . import _core

_KIND = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KIND["integral"] = _KIND["signed integer"] + _KIND["unsigned integer"]
_KIND["numeric"] = _KIND["integral"] + _KIND["real floating"] + _KIND["complex floating"]


class __array_namespace_info__:  # noqa: N801 (the standard's name)
    """What this namespace can do."""

    __module__ = "weft"

    def capabilities(self):
        """Which optional parts of the standard are there."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        """Where new arrays live."""
        return _core.open_device(None)

    def devices(self):
        """The devices here that arrays of every type can live on."""
        from ._devices import devices

        return [d for d in devices() if d.available and d.kind == "hardware"]

    def default_dtypes(self, *, device=None):
        """What Python's numbers become."""
        return {
            "real floating": _core.float32,
            "complex floating": _core.complex64,
            "integral": _core.int64,
            "indexing": _core.int64,
        }

    def dtypes(self, *, device=None, kind=None):
        """The standard's element types by name."""
        names = _KIND["bool"] + _KIND["numeric"] if kind is None else ()
        if isinstance(kind, str):
            kind = (kind,)
        for k in kind or ():
            names += _KIND[k]
        return {name: getattr(_core, name) for name in names}
