# SPDX-License-Identifier: Apache-2.0
"""What weft can compute of torch's ATen operators, by name ("aten.add.Tensor").

`FUSED`: rules over Lazy values; neighbouring ones become one FusedPlan. `ARRAYS`: functions of arrays, a step each.
`VIEWS`: functions of arrays that copy nothing where the layout allows. Every rule takes a `Context` and the operator's
arguments, with Lazy values or arrays in place of tensors, and raises `Unsupported` for arguments it has no form for.
"""

from __future__ import annotations

from .common import ARRAYS, COMPLEX, FUSED, VIEWS, Context, Unsupported, refusal

__all__ = ["ARRAYS", "COMPLEX", "FUSED", "VIEWS", "Context", "Unsupported", "load", "refusal"]

_loaded = False


def load():
    """Fills the tables; called by the first compilation."""
    global _loaded
    if not _loaded:
        from . import (  # noqa: F401
            activations,
            attention,
            complex_numbers,
            convolutions,
            distances,
            elementwise,
            factorisations,
            histograms,
            indexing,
            norms,
            pooling,
            products,
            random_numbers,
            reductions,
            sampling,
            reflectors,
            scatters,
            segments,
            sorting,
            special,
            views,
        )

        _loaded = True
