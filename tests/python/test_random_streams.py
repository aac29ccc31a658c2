# SPDX-License-Identifier: Apache-2.0
"""The generator's stream against Philox 4x32-10 written here, what each draw takes from it, and who may advance it."""

import threading

import numpy as np
import pytest
import weft

WORD = 2**32 - 1
DEVICES = [d for d in ("cpu", "opencl:0") if weft.device(d).available]


def philox(seed, counter):
    """Four words of the published function for a 128-bit counter."""
    x = [counter >> 32 * i & WORD for i in range(4)]
    key = [seed & WORD, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(b >> 32) ^ x[1] ^ key[0], b & WORD, (a >> 32) ^ x[3] ^ key[1], a & WORD]
        key = [(key[0] + 0x9E3779B9) & WORD, (key[1] + 0xBB67AE85) & WORD]
    return x


def words(seed, offset, count):
    out = []
    while len(out) < count:
        out += philox(seed, offset)
        offset += 1
    return out[:count]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("seed", "offset"),
    [(0, 0), (1, 0), (2**64 - 1, 5), (0x123456789ABCDEF, 2**32 - 2), (99, 2**63 + 1)],
)
def test_words(seed, offset, device):
    found = weft._core._random_bits(seed, offset, 23, weft.device(device))
    assert found.tolist() == words(seed, offset, 23)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ends", [(0, 10), (-3, 4), (5, 6), (-(2**40), 2**61), (0, 2**63 - 1)])
def test_integers_are_pairs_of_words_modulo_the_range(ends, device):
    low, high = ends
    got = weft.random.integers(low, high, (9,), key=weft.random.Key(77), device=device)
    w = words(77, 0, 18)
    assert got.tolist() == [(w[2 * i] | w[2 * i + 1] << 32) % (high - low) + low for i in range(9)]


def test_a_permutation_orders_pairs_of_words():
    w = words(78, 0, 40)
    pairs = np.array([w[2 * i] | w[2 * i + 1] << 32 for i in range(20)], "uint64")
    got = weft.random.permutation(20, key=weft.random.Key(78))
    assert got.tolist() == np.argsort(pairs, kind="stable").tolist()


def test_keys_split_into_words_far_away():
    w = words(79, 3 ^ 1 << 63, 6)
    found = [(k.seed, k.offset) for k in weft.random.Key(79, 3).split(3)]
    assert found == [(w[2 * i] | w[2 * i + 1] << 32, 0) for i in range(3)]


DRAWS = {  # the words that a draw of n numbers takes
    "uniform": (lambda n: weft.random.uniform((n,)), lambda n: n),
    "uniform float64": (lambda n: weft.random.uniform((n,), dtype="float64"), lambda n: 2 * n),
    "normal": (lambda n: weft.random.normal((n,)), lambda n: n + n % 2),
    "normal float64": (lambda n: weft.random.normal((n,), dtype="float64"), lambda n: 2 * (n + n % 2)),
    "integers": (lambda n: weft.random.integers(0, 9, (n,)), lambda n: 2 * n),
    "permutation": (lambda n: weft.random.permutation(n), lambda n: 2 * n),
    "bernoulli": (lambda n: weft.random.bernoulli(0.5, (n,)), lambda n: n),
    "choice": (lambda n: weft.random.choice(7, (n,)), lambda n: 2 * n),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 13])
def test_draws_follow_each_other_without_overlap(name, n):
    """The next draw begins at the counter behind the last one that was read."""
    draw, taken = DRAWS[name]
    weft.random.seed(5)
    draw(n)
    after = weft.random.uniform((6,)).tolist()
    counters = -(-taken(n) // 4)
    assert after == weft.random.uniform((6,), key=weft.random.Key(5, counters)).tolist()


def test_only_the_holder_of_the_lock_advances_the_generator(monkeypatch):
    lock = threading.Lock()

    class State(dict):
        def __setitem__(self, name, value):
            assert lock.locked(), f"{name} changes without the lock"
            super().__setitem__(name, value)

    monkeypatch.setattr(weft.random, "_lock", lock)
    monkeypatch.setattr(weft.random, "_state", State(key=1, offset=0))
    weft.random.uniform((5,))
    weft.random.seed(9)
    weft.random.normal(())
    assert weft.random._state == {"key": 9, "offset": 1} and not lock.locked()


@pytest.mark.parametrize("make", ["uniform", "normal", "bernoulli", "integers"])
@pytest.mark.parametrize("shape", [(-1,), (3, -2), -1])
def test_negative_extents(make, shape):
    first = {"integers": (0, 5), "bernoulli": (0.5,)}.get(make, ())
    with pytest.raises(weft.ArgumentError) as caught:
        getattr(weft.random, make)(*first, shape)
    assert caught.value.code == "array.shape.negative"
