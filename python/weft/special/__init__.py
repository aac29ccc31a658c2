# SPDX-License-Identifier: Apache-2.0
"""Special functions under SciPy's and JAX's names, and torch.special's.

Composed of array functions, so that every device, gradients, weft.compile, vmap and the back end of torch.compile have
them. Bessel functions of the first two kinds and gamma functions are computed
in float64 on the host and rounded once, the others in the operand's type (16-bit floats in float32), within nine units in the
last place.
"""

from __future__ import annotations

import weft as _weft

from .._functions import published as _published
from . import _bessel, _gamma, _normal, _orthogonal, _zeta

_OWN = {
    _bessel: "j0 j1 y0 y1 i0 i0e i1 i1e k0 k0e k1 k1e spherical_j0",
    _normal: "erfc erfcx ndtr log_ndtr ndtri entr xlog1py",
    _gamma: "gammainc gammaincc",
    _zeta: "zeta polygamma",
    _orthogonal: _orthogonal.NAMES,
}
#: torch.special's names.
_TORCH = dict(
    bessel_j0="j0", bessel_j1="j1", bessel_y0="y0", bessel_y1="y1", modified_bessel_i0="i0", modified_bessel_i1="i1",
    modified_bessel_k0="k0", modified_bessel_k1="k1", scaled_modified_bessel_k0="k0e",
    scaled_modified_bessel_k1="k1e", spherical_bessel_j0="spherical_j0",
)  # fmt: skip
#: Functions of the main namespace, under the names that they have here.
_MAIN = dict(
    erf="erf", erfinv="erfinv", gammaln="lgamma", multigammaln="mvlgamma", digamma="digamma", psi="digamma", expit="sigmoid", expm1="expm1",
    log1p="log1p", exp2="exp2", softmax="softmax", log_softmax="log_softmax", logsumexp="logsumexp", logit="logit", sinc="sinc", xlogy="xlogy",
    round="round",
)  # fmt: skip


def _fill():
    names = globals()
    for module, own in _OWN.items():
        for name in own.split():
            names[name] = _published(getattr(module, name))
            names[name].__module__ = __name__
    # What needs the numbers in an array runs on arrays between two compiled pieces (weft._islands).
    for name in ("zeta", "polygamma"):
        names[name].__weft_transform__ = False
    names.update({name: names[first] for name, first in _TORCH.items()})
    names.update({name: getattr(_weft, first) for name, first in _MAIN.items()})


_fill()
__all__ = sorted({*" ".join(_OWN.values()).split(), *_TORCH, *_MAIN})
