# SPDX-License-Identifier: Apache-2.0
"""NCCL, opened at run time: collectives of arrays on CUDA cards.

The library is looked for under WEFT_NCCL, then as the wheel nvidia-nccl-cu13 or -cu12 of PyPI, then on the loader's path. Signatures are those
of NVIDIA's public header nccl.h 2.18; everything runs on a stream of its own, ordered by events against the stream of weft's kernels.
"""

from __future__ import annotations

import ctypes
import glob
import os
import sysconfig

import weft

from .._errors import error

_TYPES = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7, "float64": 8,
    "bfloat16": 9,
}  # fmt: skip
_OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3}
_LEGACY = ctypes.c_void_p(1)  # the stream of weft's kernels, CU_STREAM_LEGACY


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def _candidates():
    if os.environ.get("WEFT_NCCL"):
        return [os.environ["WEFT_NCCL"]]
    site = sysconfig.get_paths()["purelib"]
    return [*sorted(glob.glob(f"{site}/nvidia/nccl/lib/libnccl.so.2")), "libnccl.so.2"]


def load():
    """The library. Raises DeviceError `distributed.nccl.absent` with the places that were searched."""
    tried = []
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError as problem:
            tried.append(f"{path}: {problem}")
    raise error(
        weft.DeviceError,
        "distributed.nccl.absent",
        "collectives of arrays on cards need NCCL, and libnccl.so.2 cannot be opened",
        [f"searched: {t}" for t in tried],
        help="pip install nvidia-nccl-cu13, or set WEFT_NCCL to the library's path",
    )


class _Driver:
    """The few calls of libcuda that order two streams."""

    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")

    def __call__(self, name, *args):
        status = getattr(self.lib, name)(*args)
        if status:
            raise error(
                weft.DeviceError, "distributed.cuda", f"{name} gives status {status}", ["legal: 0"]
            )

    def stream(self):
        out = ctypes.c_void_p()
        self("cuStreamCreate", ctypes.byref(out), 1)  # CU_STREAM_NON_BLOCKING
        return out

    def after(self, later, earlier):
        """What is issued on `later` from now on waits for all that `earlier` has."""
        event = ctypes.c_void_p()
        self("cuEventCreate", ctypes.byref(event), 2)  # CU_EVENT_DISABLE_TIMING
        self("cuEventRecord", event, earlier)
        self("cuStreamWaitEvent", later, event, 0)
        self("cuEventDestroy_v2", event)


class Nccl:
    """One communicator. `exchange(bytes or None) -> bytes` hands rank 0's identifier to all."""

    name = "nccl"

    def __init__(self, rank, size, device, exchange):
        self.rank, self.size = rank, size
        self.lib = load()
        self.lib.ncclGetErrorString.restype = ctypes.c_char_p
        weft.device(device).synchronize()  # the card's context is this thread's from here on
        # The context is made current by weft's own calls; an allocation is one.
        self._anchor = weft.zeros((1,), dtype=weft.float32, device=device)
        self.driver = _Driver()
        identifier = UniqueId()
        if rank == 0:
            self._check("ncclGetUniqueId", self.lib.ncclGetUniqueId(ctypes.byref(identifier)))
        raw = exchange(ctypes.string_at(ctypes.byref(identifier), 128) if rank == 0 else None)
        ctypes.memmove(ctypes.byref(identifier), raw, 128)
        self.comm = ctypes.c_void_p()
        self.lib.ncclCommInitRank.argtypes = [
            ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int,
        ]  # fmt: skip
        self._check(
            "ncclCommInitRank",
            self.lib.ncclCommInitRank(ctypes.byref(self.comm), size, identifier, rank),
        )
        self.stream = self.driver.stream()

    def _check(self, name, status):
        if status:
            raise error(
                weft.DeviceError,
                "distributed.nccl",
                f"{name} failed on rank {self.rank}: {self.lib.ncclGetErrorString(status).decode()}",
                help="NCCL_DEBUG=INFO shows what NCCL found; all ranks need the same version and a card of their own",
            )

    def reduces(self, dtype):
        """The type in which arrays of `dtype` are combined."""
        return {"bool": "uint8", "int16": "int32", "uint16": "int32"}.get(dtype, dtype)

    def _run(self, calls):
        """Issues (function name, arguments...) as one group after weft's kernels; returns what waits for it."""
        self.driver.after(self.stream, _LEGACY)
        self.lib.ncclGroupStart()
        for name, *args in calls:
            self._check(name, getattr(self.lib, name)(*args, self.comm, self.stream))
        self._check("ncclGroupEnd", self.lib.ncclGroupEnd())
        return lambda: self.driver.after(_LEGACY, self.stream)

    def all_reduce(self, send, recv, op):
        return self._run([("ncclAllReduce", _at(send), _at(recv), _n(send), _type(send), _OPS[op])])

    def reduce_scatter(self, send, recv, op):
        return self._run(
            [("ncclReduceScatter", _at(send), _at(recv), _n(recv), _type(send), _OPS[op])]
        )

    def all_gather(self, send, recv):
        return self._run([("ncclAllGather", _at(send), _at(recv), _bytes(send), 1)])

    def broadcast(self, array, root):
        return self._run([("ncclBroadcast", _at(array), _at(array), _bytes(array), 1, root)])

    def all_to_all(self, send, recv):
        piece = send.nbytes // self.size
        calls = []
        for peer in range(self.size):
            count, out, into = _size(piece), _at(send, peer * piece), _at(recv, peer * piece)
            calls += [("ncclSend", out, count, 1, peer), ("ncclRecv", into, count, 1, peer)]
        return self._run(calls)

    def send(self, array, peer):
        return self._run([("ncclSend", _at(array), _bytes(array), 1, peer)])

    def recv(self, array, peer):
        return self._run([("ncclRecv", _at(array), _bytes(array), 1, peer)])

    def abort(self):
        if self.comm:
            comm, self.comm = self.comm, ctypes.c_void_p()
            self.lib.ncclCommAbort(comm)

    def close(self):
        if self.comm:
            comm, self.comm = self.comm, ctypes.c_void_p()
            self.lib.ncclCommDestroy(comm)


def _at(array, bytes_in=0):
    start = array.handle.ptr() + array.offset * (array.nbytes // max(array.size, 1)) + bytes_in
    return ctypes.c_void_p(start)


def _size(n):
    return ctypes.c_size_t(n)


def _n(array):
    return _size(array.size)


def _bytes(array):
    return _size(array.nbytes)


def _type(array):
    return _TYPES[str(array.dtype)]
