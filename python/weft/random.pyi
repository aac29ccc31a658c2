# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft import NDArray, Tensor, _ArrayLike, _bool, _Device, _DType, _Number

class Key:
    seed: int
    offset: int
    def __init__(self, seed: int, offset: int = 0) -> None: ...
    def split(self, n: int = 2) -> list[Key]:
        """n keys whose streams are unrelated to each other's and to this one's."""

def key(seed: int) -> Key:
    """A key for explicit use."""
def split(key: Key, n: int = 2) -> list[Key]:
    """n independent keys."""
def seed(value: _Number) -> None:
    """Restarts the default generator."""
def uniform(shape: int | Sequence[int] = ..., low: float = 0.0, high: float = 1.0, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Uniform in [low, high)."""
def normal(shape: int | Sequence[int] = ..., mean: float = 0.0, std: float = 1.0, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Normal (Gaussian)."""
def integers(low: int, high: int, shape: int | Sequence[int] = ..., *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Integers in [low, high)."""
def bernoulli(p: float, shape: int | Sequence[int] = ..., *, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """True with probability p."""
def permutation(n: int, *, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """The numbers 0..n-1 in random order."""
def choice(x: int | NDArray, shape: int | Sequence[int] = ..., *, key: Key | None = None) -> NDArray:
    """Entries of x (an array or a number of choices), with replacement."""
def beta(a: Any, b: Any, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """x / (x + y) of gamma numbers of a and b."""
def binomial(n: int, p: float, shape: int | Sequence[int] | None = None, *, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """How many of n tries (one number) succeed with probability p; int64."""
def chisquare(df: Any, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Sums of squares of df normal numbers; df above 0."""
def default_rng(seed: int = 0) -> Any:
    """A generator in NumPy's manner: default_rng(seed).normal(loc, scale, size)."""
def dirichlet(alpha: Any, shape: int | Sequence[int] = ..., *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Parts of 1, one for each entry of alpha (all above 0), as the last axis."""
def exponential(scale: Any = 1.0, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Waiting times of this mean."""
def gamma(shape_parameter: Any, scale: Any = 1.0, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Gamma numbers by Marsaglia and Tsang's method: the shape parameter above 0, times scale."""
def geometric(p: float, shape: int | Sequence[int] | None = None, *, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """How many tries a success of probability p takes, from 1 on; int64."""
def gumbel(loc: Any = 0.0, scale: Any = 1.0, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Largest values: loc - scale * log(waiting time)."""
def laplace(loc: Any = 0.0, scale: Any = 1.0, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Differences of two waiting times of mean `scale`, about loc."""
def logistic(loc: Any = 0.0, scale: Any = 1.0, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """loc + scale * log(u / (1 - u))."""
def lognormal(mean: float = 0.0, sigma: Any = 1.0, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """exp of normal numbers."""
def multinomial(n: int, pvals: Any, shape: int | Sequence[int] = ..., *, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """How often each of the outcomes with these probabilities occurs in n tries, as the last axis; int64."""
def multivariate_normal(mean: float, cov: Any, shape: int | Sequence[int] = ..., *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Normal vectors of a mean (n,) and covariances (n, n), as the last axis."""
def poisson(lam: Any = 1.0, shape: int | Sequence[int] | None = None, *, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """How many events of mean lam occur; int64. Below 10 by inversion, above by transformed rejection (Hörmann's PTRS)."""
def rayleigh(scale: Any = 1.0, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Lengths of two normal numbers of this deviation."""
def shuffle(x: _ArrayLike, *, key: Key | None = None) -> None:
    """The entries along the first axis in another order; x itself, an array, changes."""
def standard_normal(shape: int | Sequence[int] = ..., *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Normal numbers of mean 0 and deviation 1."""
