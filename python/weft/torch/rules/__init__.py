# SPDX-License-Identifier: Apache-2.0
"""What weft can compute of torch's ATen operators, by name ("aten.add.Tensor").

`FUSED`: rules over Lazy values; neighbouring ones become one FusedPlan. `ARRAYS`: functions of arrays, a step each.
`ALONE`: array functions for arguments that an operator's fused rule refuses.
`VIEWS`: functions of arrays that copy nothing where the layout allows. Every rule takes a `Context` and the operator's
arguments, with Lazy values or arrays in place of tensors, and raises `Unsupported` for arguments it has no form for.
"""

from __future__ import annotations

from .common import ALONE, ARRAYS, COMPLEX, FUSED, VIEWS, Context, Unsupported, refusal

__all__ = [
    "ALONE",
    "ARRAYS",
    "COMPLEX",
    "FUSED",
    "VIEWS",
    "Context",
    "Unsupported",
    "load",
    "refusal",
]

_loaded = False


def load():
    """Fills the tables; called by the first compilation."""
    global _loaded
    if not _loaded:
        from . import (  # noqa: F401
            activations,
            alignments,
            attention,
            bags,
            complex_numbers,
            convolutions,
            distances,
            elementwise,
            factorisations,
            histograms,
            indexing,
            integers,
            norms,
            pooling,
            products,
            random_numbers,
            reductions,
            sampling,
            reflectors,
            resizing,
            scatters,
            segments,
            sorting,
            special,
            views,
        )

        _loaded = True
