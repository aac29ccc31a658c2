# SPDX-License-Identifier: Apache-2.0
"""Random array programs with fixed seeds: eager against NumPy, compiled against eager, gradients against differences (a long run:
tools/generate_programs --kind), and the small programs that earlier runs found."""

import numpy as np
import pytest
import weft
from generate import arrays

COUNTS = {"eager": 600, "compiled": 60, "gradient": 600}


@pytest.mark.parametrize("kind", COUNTS)
def test_random_array_programs(kind):
    for seed in range(COUNTS[kind]):
        assert arrays.story(seed, kind) is None, arrays.story(seed, kind)


def test_the_programs_are_worth_running():
    used, longest = set(), 0
    for seed in range(COUNTS["eager"]):
        steps = arrays.program(seed)
        used |= {step[0] for step in steps}
        longest = max(longest, len(steps))
    assert used >= set(arrays.OPERATIONS) and longest > 10


def test_the_comparison_sees_a_fault(monkeypatch):
    """A wrong result of one operation is found and cut down to that operation."""
    roll = arrays.OPERATIONS["roll"]
    wrong = {
        **arrays.OPERATIONS,
        "roll": lambda xp, x, shift, axis: roll(xp, x, shift + (xp is weft), axis=axis),
    }
    monkeypatch.setattr(arrays, "OPERATIONS", wrong)
    stories = filter(None, (arrays.story(seed, "eager") for seed in range(300)))
    story = next(stories)
    assert "roll" in story and len(story.splitlines()) <= 4


FOUND = [  # seeds of programs whose result or gradient was wrong
    (
        "gradient",
        [57579, 59517, 89492, 91294, 98632, 103970],
    ),  # prod over an empty axis forgot keepdims
]


@pytest.mark.parametrize(("kind", "seeds"), FOUND)
def test_programs_that_were_wrong(kind, seeds):
    for seed in seeds:
        assert arrays.story(seed, kind) is None, arrays.story(seed, kind)


def product(x, y):
    return x @ y


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((3,), (4, 3, 2)), ((4, 2, 3), (3,)), ((0,), (0,))])  # fmt: skip
def test_compiled_products_of_vectors(shapes):
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in shapes)
    got = weft.compile(product)(weft.asarray(x), weft.asarray(y)).numpy()
    assert got.shape == (x @ y).shape
    np.testing.assert_allclose(got, x @ y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p".split())  # fmt: skip
def test_equal_elements_give_equal_results_wherever_they_stand(name, dtype):
    """The last elements of a loop, which fill no vector, are computed as the others are: found as an argmin of compiled code."""
    f = getattr(weft, name)
    compiled = weft.compile(lambda x: f(x) + 0.0)
    for size in (3, 45, 1001):
        for value in np.random.default_rng(size).uniform(0.1, 0.9, 4) + (name == "acosh"):
            x = weft.full((size,), float(value), dtype=dtype)
            for got in (compiled(x).numpy(), f(x).numpy()):
                assert (got == got[0]).all(), (size, value)
