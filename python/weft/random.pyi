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
    def take(self, count: int) -> tuple[int, int]:
        """(seed, first counter) of `count` words of 32 bits, four to a counter."""

class Stream(Key): ...

def key(seed: int) -> Key:
    """A key for explicit use."""
def split(key: Key, n: int = 2) -> list[Key]:
    """n independent keys."""
def seed(value: _Number | None = None) -> None:
    """Restarts the default generator; without a number from chance."""
def uniform(shape: int | Sequence[int] = ..., low: float = 0.0, high: float = 1.0, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None, size: Any = None) -> NDArray:
    """Uniform in [low, high). With size= the numbers come first, as in NumPy: uniform(low, high, size=(2, 3))."""
def normal(shape: int | Sequence[int] = ..., mean: float = 0.0, std: float = 1.0, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None, size: Any = None, loc: Any = None, scale: Any = None) -> NDArray:
    """Normal (Gaussian). With size= the numbers come first, as in NumPy: normal(loc, scale, size=(2, 3))."""
def integers(low: int, high: int | None = None, shape: int | Sequence[int] = ..., *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None, size: Any = None) -> NDArray:
    """Integers in [low, high), in [0, low) without high; size= is NumPy's name of the shape."""
def bernoulli(p: float, shape: int | Sequence[int] = ..., *, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """True with probability p."""
def permutation(n: int, *, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """The numbers 0..n-1 in random order; of an array or a list its entries."""
def choice(x: int | NDArray, shape: int | Sequence[int] = ..., replace: Any = True, p: float | None = None, *, key: Key | None = None, size: Any = None) -> NDArray:
    """Entries of x (an array or a number of choices); with these probabilities, each at most once without `replace`."""
def beta(a: Any, b: Any, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """x / (x + y) of gamma numbers of a and b."""
def binomial(n: int, p: float, shape: int | Sequence[int] | None = None, *, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """How many of n tries (one number) succeed with probability p; int64."""
def chisquare(df: Any, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Sums of squares of df normal numbers; df above 0."""
def default_rng(seed: int | None = None) -> Any:
    """A generator in NumPy's manner: default_rng(seed).normal(loc, scale, size); without a seed from chance."""
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
Generator: Any
def PCG64(seed: int | None = None) -> NDArray:
    """A seed for weft.random.Generator; numbers come from Philox, whatever the name."""
def Philox(seed: int | None = None) -> NDArray:
    """A seed for weft.random.Generator; numbers come from Philox, whatever the name."""
def RandomState(seed: int | None = None) -> NDArray:
    """A generator with NumPy's older names: RandomState(0).rand(3), .randn, .randint, and those of default_rng."""
def SeedSequence(seed: int | None = None) -> NDArray:
    """A seed for weft.random.Generator; numbers come from Philox, whatever the name."""
def bytes(length: Any) -> NDArray:
    """Random bytes."""
def f(dfnum: Any, dfden: Any, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Fisher's F: quotients of two chi-squares over their degrees of freedom, both above 0."""
def fork_rng(devices: Any = None, enabled: Any = True) -> NDArray:
    """with weft.fork_rng(): ... the default generator is where it was before afterwards."""
def get_rng_state() -> NDArray:
    """The place in the stream of the default generator: 16 bytes, as an array of uint8."""
def get_state(legacy: Any = True) -> NDArray:
    """The place of the default generator: ("Philox", 16 bytes)."""
def hypergeometric(ngood: Any, nbad: Any, nsample: Any, shape: int | Sequence[int] | None = None, *, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """How many of nsample things taken from ngood good and nbad bad ones are good; int64."""
def initial_seed() -> NDArray:
    """The seed of the default generator."""
def logseries(p: float, shape: int | Sequence[int] | None = None, *, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Whole numbers k of probability -p^k / (k log(1 - p)); int64 (Kemp)."""
def manual_seed(seed: int) -> NDArray:
    """Restarts the default generator, as weft.random.seed; gives weft.default_generator."""
def multivariate_hypergeometric(colors: Any, nsample: Any, shape: int | Sequence[int] = ..., *, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """How many things of each color are among nsample ones taken, as the last axis; int64."""
def negative_binomial(n: int, p: float, shape: int | Sequence[int] | None = None, *, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """How many failures there are before n successes of probability p; int64. n above 0."""
def noncentral_chisquare(df: Any, nonc: Any, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Chi-squares of df and twice a Poisson number of mean nonc / 2 degrees of freedom; df above 0, nonc from 0 on."""
def noncentral_f(dfnum: Any, dfden: Any, nonc: Any, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Quotients of a noncentral chi-square and a chi-square over their degrees of freedom."""
def pareto(a: Any, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Pareto II (Lomax) numbers: exp(waiting time / a) - 1; a above 0."""
def permuted(x: _ArrayLike, axis: int | Sequence[int] | None = None, *, key: Key | None = None) -> NDArray:
    """A copy of x with the entries of each line along an axis in an order of its own; of all elements when axis is None."""
def power(a: Any, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Numbers in [0, 1] of density a x^(a - 1); a above 0."""
def rand(*shape: int | Sequence[int]) -> NDArray:
    """Uniform numbers in [0, 1): rand(2, 3)."""
def randint(low: float, high: float | None = None, size: Any = ..., dtype: _DType | None = 'int64') -> NDArray:
    """Integers in [low, high), in [0, low) without high."""
def randn(*shape: int | Sequence[int]) -> NDArray:
    """Normal numbers of mean 0 and deviation 1: randn(2, 3)."""
def random(size: Any = None) -> NDArray:
    """Uniform numbers in [0, 1)."""
def random_integers(low: float, high: float | None = None, size: Any = ...) -> NDArray:
    """Integers from low to high, both included; from 1 without high."""
def random_sample(size: Any = None) -> NDArray:
    """Uniform numbers in [0, 1)."""
def ranf(size: Any = None) -> NDArray:
    """Uniform numbers in [0, 1)."""
def sample(size: Any = None) -> NDArray:
    """Uniform numbers in [0, 1)."""
def set_rng_state(state: Any) -> NDArray:
    """Goes to a place that get_rng_state gave."""
def set_state(state: Any) -> NDArray:
    """Goes to a place that get_state gave."""
def standard_cauchy(shape: int | Sequence[int] = ..., *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Quotients of two normal numbers."""
def standard_exponential(shape: int | Sequence[int] = ..., *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Waiting times of mean 1."""
def standard_gamma(shape_parameter: Any, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Gamma numbers of scale 1; the shape parameter above 0."""
def standard_t(df: Any, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Student's t of df degrees of freedom, above 0."""
def triangular(left: Any, mode: str, right: Any, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Numbers in [left, right] whose density rises to `mode` and falls again."""
def vonmises(mu: Any, kappa: Any, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Angles in [-pi, pi] about mu, concentrated by kappa from 0 on (Best and Fisher)."""
def wald(mean: float, scale: Any, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Inverse Gaussian numbers (Michael, Schucany and Haas); both above 0."""
def weibull(a: Any, shape: int | Sequence[int] | None = None, *, dtype: _DType | None = None, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """(waiting time)^(1 / a); a above 0."""
def zipf(a: Any, shape: int | Sequence[int] | None = None, *, device: _Device | None = None, key: Key | None = None) -> NDArray:
    """Whole numbers k of probability in proportion to k^-a; int64, a above 1 (Devroye's rejection)."""
default_generator: Any
