# SPDX-License-Identifier: Apache-2.0
"""A curve through noisy points, its zeros and its integral."""

from __future__ import annotations

import weft
from weft import polynomial as P
from weft.polynomial import Polynomial


def fitted(degree: int) -> Polynomial:
    x = weft.linspace(-1.0, 2.0, 50)
    noise = weft.random.normal((50,), 0.0, 0.01)
    return Polynomial.fit(x, x**2 - 1.0 + noise, degree)


def main() -> None:
    weft.manual_seed(0)
    curve = fitted(2)
    steep: Polynomial = curve.deriv() * 2.0 + 1.0
    plain = curve.convert()
    zeros: weft.NDArray = plain.roots()
    x, y = curve.linspace(10)
    value: weft.NDArray = curve(weft.asarray([0.0, 1.0]))
    quotient, rest = P.polydiv([2.0, 3.0, 1.0], [1.0, 1.0])
    whole: int = steep.degree()
    print(zeros.shape, x.shape, y.shape, value.shape, whole, quotient.tolist(), rest.tolist())
    print(
        P.polyval(2.0, P.polymul([1.0, 1.0], [1.0, -1.0])), list(plain.coef), curve.integ().degree()
    )
    print((curve - curve).trim(1e-9).degree(), abs(float(curve(1.0))) < 0.1)


if __name__ == "__main__":
    main()
