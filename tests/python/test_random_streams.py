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
@pytest.mark.parametrize(
    "ends",
    [(0, 10), (-3, 4), (5, 6), (-7, 2**32 - 8), (0, 2**32), (-(2**40), 2**61), (0, 2**63 - 1)],
)
def test_integers_are_made_of_pairs_of_words(ends, device):
    """The upper half of their product with a range of at most 32 bits, the rest of a wider one."""
    low, high = ends
    count = high - low
    got = weft.random.integers(low, high, (9,), key=weft.random.Key(77), device=device)
    w = words(77, 0, 18)
    pairs = [w[2 * i] | w[2 * i + 1] << 32 for i in range(9)]
    assert got.tolist() == [low + (v * count >> 64 if count < 2**32 else v % count) for v in pairs]


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


def test_draws_of_threads_share_no_counter(monkeypatch):
    monkeypatch.setattr(weft.random, "_state", {"key": 3, "offset": 0})
    draws = [[] for _ in range(4)]

    def work(out):
        for k in range(300):
            out.append(
                weft.random.uniform((4,)) if k % 2 else weft.random.normal((4,), dtype="float32")
            )

    threads = [threading.Thread(target=work, args=(d,)) for d in draws]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert weft.random._state == {"key": 3, "offset": 4 * 300}
    rows = [tuple(x.tolist()) for d in draws for x in d]
    assert len(set(rows)) == len(rows)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 63, 64, 65, 127, 1000])
@pytest.mark.parametrize("seed, first", [(0, 0), (2**64 - 1, 2**32 - 7), (0x123456789ABCDEF0, 5)])
def test_numbers_of_words(n, seed, first):
    """Whole groups of counters and what is left of one, over the carry of a counter's upper half."""
    key = weft.random.Key(seed, first)
    drawn = words(seed, first, 2 * n)
    uniform = [(w >> 8) * 2.0**-24 for w in drawn[:n]]
    assert weft.random.uniform((n,), key=key).tolist() == uniform
    pairs = [(drawn[2 * i], drawn[2 * i + 1]) for i in range(n)]
    wide = [(high * 2**21 + (low >> 11)) * 2.0**-53 for low, high in pairs]
    assert weft.random.uniform((n,), dtype="float64", key=key).tolist() == wide
    for low, high in [(0, 7), (-100, 2**32 - 101), (5, 6), (-(2**40), 2**40)]:
        count = high - low
        numbers = [a | b << 32 for a, b in pairs]
        want = [low + ((v * count >> 64) if count < 2**32 else v % count) for v in numbers]
        assert weft.random.integers(low, high, (n,), key=key).tolist() == want
    radius = [np.sqrt(-2 * np.log(1 - np.float64((a >> 8) * 2.0**-24))) for a, _ in pairs]
    turns = [(b >> 8) * 2.0**-24 * 2 * np.pi for _, b in pairs]
    normal = [f(t) * r for r, t in zip(radius, turns) for f in (np.cos, np.sin)][:n]
    got = weft.random.normal((n,), key=key).tolist()
    np.testing.assert_allclose(got, normal, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("dtype", [None, "float32", "float64", "float16"])
@pytest.mark.parametrize("low, high", [(-1.0, 3.0), (0, 5), (2.5, 2.5), (0.0, 1.0), (0.0, 2)])
def test_scaled_numbers_are_those_of_arrays(low, high, dtype):
    """Without a key the core scales block by block; the key's way is a chain of array operations."""
    for shape in ((), (1,), 7, (4100, 1), (3, 13_337)):
        for make in (weft.random.uniform, weft.random.normal):
            weft.random.seed(11)
            got = make(shape, low, high, dtype=dtype)
            want = make(shape, low, high, dtype=dtype, key=weft.random.key(11))
            assert got.dtype == want.dtype and got.shape == want.shape
            assert got.tolist() == want.tolist()


@pytest.mark.parametrize(
    "low, high", [(0, 1), (-5, 9), (-(2**31), 2**31), (2**53, 2**53 + 2), (0, 2**40)]
)
def test_integers_without_a_key_are_those_with_one(low, high):
    for shape in ((), 3, (5, 7), (2, 9001)):
        weft.random.seed(12)
        got = weft.random.integers(low, high, shape)
        want = weft.random.integers(low, high, shape, key=weft.random.key(12))
        assert got.dtype == weft.int64 and got.shape == want.shape
        assert got.tolist() == want.tolist()


@pytest.mark.parametrize("make", ["uniform", "normal", "bernoulli", "integers"])
@pytest.mark.parametrize("shape", [(-1,), (3, -2), -1])
def test_negative_extents(make, shape):
    first = {"integers": (0, 5), "bernoulli": (0.5,)}.get(make, ())
    with pytest.raises(weft.ArgumentError) as caught:
        getattr(weft.random, make)(*first, shape)
    assert caught.value.code == "array.shape.negative"


@pytest.mark.parametrize("before", [0, 1, 623, 624])
@pytest.mark.parametrize("count", [1, 313, 2049])
def test_mersenne_twister_is_numpys(before, count):
    """At the state of another library's generator: torch's layout, filled from NumPy's generator."""
    theirs = np.random.MT19937(5)
    theirs.random_raw(before)

    def words():
        key = theirs.state["state"]
        left = 625 - key["pos"]
        head = np.array([0, 1 << 32 | left, key["pos"]], np.uint64)
        return np.concatenate([head, key["key"].astype(np.uint64)]).view(np.uint8)

    state = weft.asarray(words())
    raw = theirs.random_raw(2 * count).astype(np.uint64)
    wide = (raw[::2] << np.uint64(32) | raw[1::2]) & np.uint64(2**53 - 1)
    got = weft._core._torch_bernoulli(state, (count,), 0.3)
    np.testing.assert_array_equal(np.asarray(got), wide.astype(np.float64) * 2.0**-53 < 0.3)
    np.testing.assert_array_equal(np.asarray(state)[8:], words()[8:])
    single = theirs.random_raw(count) & 0xFFFFFF
    got = weft._core._torch_uniform(state, (count,), False)
    np.testing.assert_array_equal(np.asarray(got), single.astype(np.float32) * np.float32(2**-24))
    raw = theirs.random_raw(2 * count).astype(np.uint64)
    wide = (raw[::2] << np.uint64(32) | raw[1::2]) & np.uint64(2**53 - 1)
    got = weft._core._torch_uniform(state, (count,), True)
    np.testing.assert_array_equal(np.asarray(got), wide.astype(np.float64) * 2.0**-53)
    np.testing.assert_array_equal(np.asarray(state)[8:], words()[8:])
