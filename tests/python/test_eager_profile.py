# SPDX-License-Identifier: Apache-2.0
"""Spans of single operations, x[i] among them, and that arrays are afterwards, and meanwhile, what they were."""

import pytest

import weft


def _names(profile):
    return [name for _, _, name, _, _ in profile.spans]


def test_items_have_spans():
    x = weft.arange(6)
    with weft.profile(eager=True) as profile:
        x[2]
        x[1:3]
        x[x > 3]
        x[0] = 7
    assert _names(profile) == ["getitem", "getitem", "gt", "getitem", "setitem"]
    with weft.profile(eager=True) as profile:
        pass
    x[1]
    assert _names(profile) == []


class _Child(weft.NDArray):
    pass


class _Other(weft.NDArray):
    def __getitem__(self, key):
        return "other"


def test_c_code_reads_numbers_from_arrays_during_a_profile_and_after():
    torch = pytest.importorskip("torch")
    x, child, other = weft.asarray([1.5, 2.5]), _Child([1.5, 2.5]), _Other([1.5, 2.5])
    for _ in range(2):
        with weft.profile(eager=True):
            assert torch.tensor(x).tolist() == [1.5, 2.5]
            assert torch.tensor(child).tolist() == [1.5, 2.5]
            assert other[0] == "other"
        assert torch.tensor(x).tolist() == [1.5, 2.5]
        assert torch.tensor(child).tolist() == [1.5, 2.5]
        assert other[0] == "other" and float(child[1]) == 2.5
        assert isinstance(x[0], weft.NDArray)


def test_torch_takes_truth_values():
    torch = pytest.importorskip("torch")
    x = weft.asarray([[True, False], [False, True]])
    got = torch.tensor(x)
    assert got.dtype == torch.bool and got.tolist() == [[True, False], [False, True]]
    assert torch.as_tensor(x[0]).tolist() == [True, False]
    assert "ab"[weft.asarray(True)] == "b"
    with pytest.raises(TypeError, match="is no integer"):
        "ab"[weft.asarray([True])]
    with pytest.raises(TypeError, match="is no integer"):
        "ab"[weft.asarray(1.0)]
