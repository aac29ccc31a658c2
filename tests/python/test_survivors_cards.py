# SPDX-License-Identifier: Apache-2.0
"""What random faults (tools/mutate) once survived in the programs of cards, on opencl:0."""

import numpy as np
import pytest
import weft
from refusal import refused

rng = np.random.default_rng(2026)


@pytest.fixture
def card():
    return weft.device("opencl:0")


@pytest.mark.parametrize("singular", [0, 1, 2])
@pytest.mark.parametrize("name", ["solve", "inv", "cholesky"])
def test_each_matrix_of_a_batch_is_looked_at(card, name, singular):
    a = np.stack([np.eye(3, dtype="float32") * (i + 2) for i in range(3)])
    a[singular, 1] = 0
    x = weft.asarray(a).to(card)
    more = [weft.ones((3, 3, 1)).to(card)] if name == "solve" else []
    reason = "indefinite" if name == "cholesky" else "singular"
    said = refused(
        weft.ArgumentError, f"array.{name}.{reason}", getattr(weft.linalg, name), x, *more
    )
    assert f"matrix {singular} of" in str(said)


def test_rows_are_taken_and_added_along_every_axis(card):
    x = rng.integers(-9, 9, (3, 5, 4, 2)).astype("float32")
    at = np.array([4, 0, 4, 2, 4, 0])
    for axis in range(2):
        there = weft.asarray(x).to(card)
        index = at % x.shape[axis]
        place = (slice(None),) * axis + (index,)
        assert (
            there[(slice(None),) * axis + (weft.asarray(index).to(card),)].numpy() == x[place]
        ).all()
        t = weft.Tensor(there, requires_grad=True)
        weft.sum(weft.take(t, weft.asarray(index).to(card), axis=axis) * 2).backward()
        want = np.zeros_like(x)
        np.add.at(want, place, 2)
        assert (t.grad.numpy() == want).all()


@pytest.mark.parametrize("n", [62, 90])
def test_tables_of_transforms_are_kept(card, n):
    x = weft.asarray(np.arange(2 * n, dtype="complex64").reshape(2, n)).to(card)
    made = []
    for _ in range(3):
        card.clear_stats()
        weft.fft.fft(x).numpy()
        made.append(card.stats()["allocations"])
    assert made[0] > made[1] == made[2]
