# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in pieces: every rank writes its own, and any number of ranks reads them.

A folder with `index.json` and safetensors files. New files have names of their own; the index is replaced in one step when all are written, and the old
files go after that, so that a job ended at any moment leaves the last whole checkpoint.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
from typing import Any

import weft

from .._core import shown
from .. import _core
from .._errors import error
from .group import Group, resolve

_FORMAT = "weft.sharded"


@dataclasses.dataclass
class Piece:
    """A box of an array: `array` lies at `starts` of a whole of `shape`."""

    array: object
    shape: tuple
    starts: tuple


def _as_piece(value, group):
    """Arrays that every rank has whole are written in pieces along axis 0, which shares the work."""
    if isinstance(value, Piece):
        return value
    x = value.data if isinstance(value, weft.Tensor) else weft.asarray(value)
    if x.ndim == 0:
        return Piece(x if group.rank == 0 else x.reshape((1,))[:0], (), ())
    n = -(-x.shape[0] // group.size)
    at = min(x.shape[0], group.rank * n)
    return Piece(x[at : at + n], tuple(x.shape), (at,) + (0,) * (x.ndim - 1))


def _all(group, value):
    return [value] if group.host is None else group.host.gather_values(value)


def _check_metadata(group, metadata):
    """Metadata that JSON cannot hold is refused on every rank, not on rank 0 alone, which the others would wait for."""
    found = None
    if group.rank == 0:
        try:
            json.dumps(metadata)
        except (TypeError, ValueError, RecursionError) as problem:
            found = str(problem)
    found = _all(group, found)[0]
    if found is not None:
        raise error(
            weft.ArgumentError,
            "distributed.checkpoint.metadata",
            f"metadata that JSON cannot hold: {found}",
            ["legal: dicts with texts as keys, lists, texts, numbers, truth values, None"],
            help="put arrays into the state, and numbers by float(x) or int(x) into the metadata",
        )


def save_sharded(
    path: str | os.PathLike[str], state: Any, metadata: Any = None, group: Group | None = None
) -> None:
    """Writes a dict of arrays (whole on every rank) and Pieces into the folder `path`; every rank calls it.

    `metadata`: what JSON can hold, of rank 0. Raises IOError `distributed.checkpoint.save` on every rank when one of them cannot write, or writes where rank 0 does not see it, ArgumentError
    `distributed.checkpoint.metadata` on every rank for other metadata; the last checkpoint in the folder is then as it was.
    """
    group = resolve(group)
    _check_metadata(group, metadata)
    pieces = {name: _as_piece(value, group) for name, value in state.items()}
    token = _all(group, os.urandom(6).hex())[0]
    file = f"part-{token}-{group.rank:05d}.safetensors"
    entries, failed = {}, None
    try:
        os.makedirs(path, exist_ok=True)
        arrays = {}
        for name, piece in pieces.items():
            if piece.array.size == 0:
                entries[name] = dict(dtype=str(piece.array.dtype), shape=list(piece.shape))
                continue
            held = piece.array.to("cpu")
            # safetensors has no complex128: pairs of float64 along one more axis.
            arrays[name] = (
                weft.view_as_real(held) if held.dtype == weft.complex128 else held
            ).copy()
            entries[name] = dict(
                dtype=str(piece.array.dtype),
                shape=list(piece.shape),
                piece=dict(file=file, starts=list(piece.starts), shape=list(piece.array.shape)),
            )
        weft.save_safetensors(os.path.join(path, file), arrays)
    except (OSError, weft.Error) as problem:
        failed = f"rank {group.rank}: {problem}"
    told = _all(group, (failed, entries))
    if group.rank == 0 and failed is None:
        failed = _not_here(path, told)
    if not any(problem for problem, _ in told) and group.rank == 0 and failed is None:
        index = dict(format=_FORMAT, version=1, ranks=group.size, metadata=metadata, arrays={})
        for _, found in told:
            for name, entry in found.items():
                row = index["arrays"].setdefault(
                    name, dict(dtype=entry["dtype"], shape=entry["shape"], pieces=[])
                )
                if "piece" in entry:
                    row["pieces"].append(entry["piece"])
        try:
            _replace(os.path.join(path, "index.json"), json.dumps(index))
        except OSError as problem:
            failed = f"rank 0: {problem}"
    problems = [p for p in _all(group, failed) if p]
    if problems:
        with contextlib.suppress(OSError):
            os.remove(os.path.join(path, file))
    try:
        for name in os.listdir(path) if group.rank == 0 else ():
            stale = name.startswith("part-") and not name.startswith(f"part-{token}-")
            begun = name.startswith("index.json.")  # by a job that was killed
            if begun or (stale != bool(problems) and name.startswith("part-")):
                os.remove(os.path.join(path, name))
    except OSError:
        pass  # what is left over is removed with the next checkpoint
    if problems:
        raise error(
            weft.IOError,
            "distributed.checkpoint.save",
            f"a checkpoint in {path} could not be written: {problems[0]}",
            ["the checkpoint that was there is as before"],
            help="make room, or save elsewhere: in one folder that all ranks see",
        )


def _not_here(path, told):
    """The text for ranks whose files are not in rank 0's folder, or None. `told`: (failure, entries) of all ranks."""
    for rank, (problem, entries) in enumerate(told):
        files = {entry["piece"]["file"] for entry in entries.values() if "piece" in entry}
        if problem is None and not all(os.path.exists(os.path.join(path, f)) for f in files):
            return f"rank 0 does not find there what rank {rank} has written"
    return None


def _replace(path, text):
    own = f"{path}.{os.urandom(4).hex()}"
    with open(own, "x") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(own, path)


def _refuse(path, what):
    return error(
        weft.IOError,
        "distributed.checkpoint.load",
        f"{path} is no whole checkpoint: {what}",
        help="save_sharded writes one",
    )


def _checked(row):
    """The entry of an array as it was written. Raises ValueError, KeyError or TypeError when it is none."""

    def numbers(values):
        if not all(isinstance(n, int) and n >= 0 for n in values):
            raise ValueError(f"{values!r} are no extents")
        return tuple(values)

    shape, pieces = numbers(row["shape"]), []
    _core.dtype(row["dtype"])
    for piece in row["pieces"]:
        starts, extents = numbers(piece["starts"]), numbers(piece["shape"])
        inside = len(starts) == len(extents) == len(shape)
        if not inside or any(a + n > m for a, n, m in zip(starts, extents, shape)):
            raise ValueError(f"a piece {extents} at {starts} of {shape}")
        if not isinstance(piece["file"], str):
            raise ValueError(f"a file {piece['file']!r}")
        pieces.append(dict(file=piece["file"], starts=starts, shape=extents))
    return dict(dtype=row["dtype"], shape=shape, pieces=pieces)


def load_index(path: str | os.PathLike[str]) -> Any:
    """(arrays by name, metadata) of a checkpoint. Raises IOError `distributed.checkpoint.load`."""
    try:
        with open(os.path.join(path, "index.json")) as file:
            index = json.load(file)
        if index["format"] != _FORMAT or index["version"] != 1:
            raise _refuse(path, f"format {index['format']} {index['version']}")
        return {n: _checked(row) for n, row in index["arrays"].items()}, index["metadata"]
    except OSError as problem:
        raise _refuse(path, str(problem)) from None
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        weft.DTypeError,
    ) as problem:
        raise _refuse(path, f"index.json: {shown(problem)}") from None


def other_shape(name, shape, saved):
    return error(
        weft.ShapeError,
        "distributed.checkpoint.shape",
        f"{name} has shape {tuple(shape)}, the checkpoint has {tuple(saved)}",
        help="build the model with the extents that it had when it was saved",
    )


def load_sharded(path: str | os.PathLike[str], like: Any = None) -> Any:
    """(arrays by name on the host, metadata) of a checkpoint that any number of ranks has written.

    `like`: a dict of Pieces (or arrays) as for save_sharded; of a Piece the box that it names is read, else the whole. Only the files that hold
    something of it are opened. Raises IOError `distributed.checkpoint.load` for a folder that is no checkpoint, ShapeError for other shapes.
    """
    arrays, metadata = load_index(path)
    files = {}
    out = {}
    for name, row in arrays.items():
        wanted = like.get(name) if like else None
        if like is not None and wanted is None:
            continue
        shape = row["shape"]
        if isinstance(wanted, Piece):
            if tuple(wanted.shape) != shape:
                raise other_shape(name, wanted.shape, shape)
            starts, extents = wanted.starts, tuple(wanted.array.shape)
        else:
            starts, extents = (0,) * len(shape), shape
        out[name] = _read(path, name, row, starts, extents, files)
    missing = [n for n in (like or {}) if n not in arrays]
    if missing:
        raise _refuse(path, f"it lacks {missing}")
    return out, metadata


def _read(path, name, row, starts, extents, files):
    parts, covered = [], 0  # what an index promises is there before memory is taken for it
    for piece in row["pieces"]:
        at = piece["starts"]
        low = [max(a, s) for a, s in zip(at, starts)]
        high = [min(a + n, s + m) for a, n, s, m in zip(at, piece["shape"], starts, extents)]
        if any(a >= b for a, b in zip(low, high)):
            continue
        file = piece["file"]
        if file != os.path.basename(file):
            raise _refuse(path, f"index.json names the file {shown(file)}")
        if file not in files:
            files[file] = weft.load_safetensors(os.path.join(path, file))
        source = files[file].get(name)
        if source is not None and row["dtype"] == "complex128":
            pairs = source.dtype == weft.float64 and source.shape[-1:] == (2,)
            source = weft.view_as_complex(source) if pairs else source
        if source is None or (source.shape, str(source.dtype)) != (piece["shape"], row["dtype"]):
            found = f"holds {source.shape} of {source.dtype}" if source is not None else "lacks it"
            raise _refuse(path, f"{file} shall hold {piece['shape']} of {shown(name)}, and {found}")
        here = tuple(slice(a - s, b - s) for a, b, s in zip(low, high, at))
        there = tuple(slice(a - s, b - s) for a, b, s in zip(low, high, starts))
        parts.append((there, source[here] if extents else source.reshape(())))
        covered += math.prod(b - a for a, b in zip(low, high))
    if covered != math.prod(extents):
        raise _refuse(path, f"{covered} of {math.prod(extents)} elements of {name} are there")
    if not extents:
        return parts[0][1]
    result = weft.zeros(extents, dtype=row["dtype"])
    for there, part in parts:
        result[there] = part
    return result
