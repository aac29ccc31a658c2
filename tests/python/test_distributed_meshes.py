# SPDX-License-Identifier: Apache-2.0
"""What ranks share out: arrays over meshes of one and two axes, and the pieces in which large arrays are combined."""

import pathlib

import numpy as np
import pytest
from launchers import needs_mpi, program  # noqa: F401

import weft

PROGRAMS = pathlib.Path(__file__).parent / "distributed"


@needs_mpi
def test_operations_and_programs_over_meshes(jobs):
    status, text = jobs("mpirun", 2, PROGRAMS / "meshes.py", "cpu")
    assert status == 0 and text.count("ok") == 2, text


@needs_mpi
def test_placements_on_a_mesh_of_two_axes(program, jobs):  # noqa: F811
    """All pairs of placements on 2 x 2 ranks: with two ranks one of the axes is none. Partial sums are random numbers that add up to the whole."""
    path = program("""
        import itertools
        import numpy as np
        dist.init()
        mesh = dist.Mesh((2, 2), ("data", "model"))
        S, R, P = dist.Shard, dist.Replicate(), dist.Partial()
        rng = np.random.default_rng(5)
        a, b = rng.standard_normal((8, 4)), rng.standard_normal((4, 12))
        def placed(whole, places):
            out = dist.shard(weft.asarray(whole), mesh, [p if isinstance(p, S) else R for p in places])
            summed = [c for p, c in zip(places, mesh.coordinates) if p == P]
            of = 2 ** len(summed)
            rest = np.random.default_rng(1).standard_normal((of, *whole.shape))  # of all ranks that share a part
            rest[-1] -= rest.sum(0)
            noise = rest[int("".join(map(str, summed)) or "0", 2)]
            noise = dist.shard(weft.asarray(noise), mesh, [p if isinstance(p, S) else R for p in places]).local
            return dist.ShardedArray(out.local / of + noise, mesh, places, whole.shape)
        every = list(itertools.product((S(0), S(1), R, P), repeat=2))
        for number, (p, q) in enumerate(itertools.product(every, every)):
            again = placed(a, p).redistribute(q)
            assert again.placements == tuple(q), (p, q)
            np.testing.assert_allclose(again.full().numpy(), a, rtol=1e-9, atol=1e-9, err_msg=f"{p} to {q}")
            if number % 5 == 0:
                product = placed(a, p) @ placed(b, q)
                np.testing.assert_allclose(product.full().numpy(), a @ b, rtol=1e-9, atol=1e-9, err_msg=f"{p} @ {q}")
        odd = rng.standard_normal((6, 4))  # two ranks share six rows, four do not
        for p in ((R, S(0)), (S(0), R), (S(0), P), (P, S(0))):
            product = placed(odd, p) @ placed(b, (R, R))
            np.testing.assert_allclose(product.full().numpy(), odd @ b, rtol=1e-9, atol=1e-9, err_msg=f"{p}")
        print("ok", dist.rank())
    """)
    status, text = jobs("mpirun", 4, path)
    assert status == 0 and text.count("ok") == 4, text


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_large_arrays_are_combined_in_pieces(jobs, ranks):
    status, text = jobs("mpirun", ranks, PROGRAMS / "large.py")
    assert status == 0 and text.count("ok") == ranks, text


def test_parts_cover_every_element_once():
    from weft.distributed.pieces import parts_of

    rng = np.random.default_rng(0)
    for _ in range(200):
        sizes = [int(n) for n in rng.integers(0, 700_000, rng.integers(1, 6))]
        ranks, item = int(rng.integers(1, 9)), int(rng.choice([1, 2, 4, 8, 16]))
        parts = parts_of(sizes, ranks, item)
        assert len(parts) == ranks
        at, array = 0, 0
        for a, begin, end in (chunk for part in parts for chunk in part):
            while (a, begin) != (array, at):  # only where an array has ended
                assert at == sizes[array]
                at, array = 0, array + 1
            assert begin < end and (end - begin) * item <= 1 << 20
            at = end
        assert at == sizes[array] and not any(sizes[array + 1 :])


class _Post:
    """The messages of all ranks in one process. They are read when they are taken, as late as MPI may."""

    def __init__(self, rank, size, under_way):
        self.rank, self.size, self._under_way = rank, size, under_way

    def post(self, array, peer, tag):
        self._under_way.setdefault((self.rank, peer, tag), []).append(array)
        return []

    def expect(self, array, peer, tag):
        return [(peer, self.rank, tag), array]

    def arrived(self, requests):
        for request in requests:
            if request and not self._under_way.get(request[0]):
                return False
            if request:
                key, array = request
                array[...] = self._under_way[key].pop(0)
                request.clear()
        return True


@pytest.mark.parametrize("ranks", [2, 3, 4, 7])
@pytest.mark.parametrize("op", ["sum", "mean", "prod", "max"])
def test_pieces_of_any_number_of_ranks(ranks, op):
    from weft.distributed.pieces import Combination

    rng = np.random.default_rng(ranks)
    sizes = (300_007, 1, 0, 40_000 * ranks)
    given = [[rng.integers(1, 4, n).astype("float32") for n in sizes] for _ in range(ranks)]
    combine = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max}[op]
    want = [combine(np.stack(arrays), axis=0) for arrays in zip(*given)]

    def together(sent, out, **more):
        under_way = {}
        works = [
            Combination(_Post(r, ranks, under_way), sent[r], out[r], op, 0, **more) for r in range(ranks)
        ]  # fmt: skip
        for work in works:
            work.begin()
        for _ in range(1000):
            if all([work.advance() for work in works]):
                return
        raise AssertionError("some rank waits for ever")

    sent = [[weft.asarray(a) for a in arrays] for arrays in given]
    out = [[weft.empty(a.shape, dtype="float32") for a in arrays] for arrays in given]
    together(sent, out)
    for arrays in out:
        for got, expected in zip(arrays, want):
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-6)
    own = [[weft.empty((40_000,), dtype="float32")] for _ in range(ranks)]
    together([arrays[-1:] for arrays in sent], own, gathered=False)
    for r, (got,) in enumerate(own):
        part = want[-1][40_000 * r : 40_000 * (r + 1)]
        np.testing.assert_allclose(got.numpy(), part, rtol=1e-6)
