# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
from collections.abc import Callable, Iterable, Sequence
from contextlib import ContextDecorator
from typing import Any, Literal, NamedTuple, TypeVar, overload

from weft import NDArray, Tensor

class PackedSequence(NamedTuple):
    data: Tensor
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any
    def lengths(self) -> list[int]:
        """The lengths of the sequences, longest first."""

def pack_padded_sequence(input: Tensor | NDArray, lengths: NDArray | Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """The entries of padded sequences without the padding, longest first. Raises ArgumentError for other lengths than the value has room
    for, and with enforce_sorted for sequences that are not in that order.
    """
def pack_sequence(sequences: Sequence[Tensor | NDArray], enforce_sorted: bool = True) -> PackedSequence:
    """pack_padded_sequence of a list of sequences."""
def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None) -> tuple[Tensor, Any]:
    """(the padded sequences in their first order, their lengths as int64)."""
def pad_sequence(sequences: Sequence[Tensor | NDArray], batch_first: bool = False, padding_value: float = 0.0) -> Tensor:
    """Sequences (length, ...) as one value (longest, count, ...), or (count, longest, ...): the shorter ones end in padding_value."""
def unpad_sequence(padded: Tensor | NDArray, lengths: NDArray | Tensor | Sequence[int], batch_first: bool = False) -> list[Tensor]:
    """The sequences of what pad_sequence gave."""
