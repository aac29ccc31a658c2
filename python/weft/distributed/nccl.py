# SPDX-License-Identifier: Apache-2.0
"""NCCL, opened at run time: collectives of arrays on CUDA cards.

The library is looked for under WEFT_NCCL, then as the wheel nvidia-nccl-cu13 or -cu12 of PyPI, then on the loader's path. Signatures are those
of NVIDIA's public header nccl.h 2.18. A collective runs on the stream of weft's kernels; one with async_op=True on a stream of its own, which events order
against that one.
"""

from __future__ import annotations

import ctypes
import glob
import os
import sysconfig

import weft

from .._errors import error

# NCCL's type, and how many of them one element is: sums of complex numbers are those of their parts.
_TYPES = {
    "int8": (0, 1), "uint8": (1, 1), "int32": (2, 1), "uint32": (3, 1), "int64": (4, 1), "uint64": (5, 1), "float16": (6, 1),
    "float32": (7, 1), "float64": (8, 1), "bfloat16": (9, 1), "complex64": (7, 2), "complex128": (8, 2),
}  # fmt: skip
_OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "mean": 4}
_LEGACY = 1  # the stream of weft's kernels, CU_STREAM_LEGACY
_WORD, _INT, _SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
_SIGNATURES = {
    "ncclAllReduce": [_WORD, _WORD, _SIZE, _INT, _INT, _WORD, _WORD],
    "ncclReduceScatter": [_WORD, _WORD, _SIZE, _INT, _INT, _WORD, _WORD],
    "ncclAllGather": [_WORD, _WORD, _SIZE, _INT, _WORD, _WORD],
    "ncclBroadcast": [_WORD, _WORD, _SIZE, _INT, _INT, _WORD, _WORD],
    "ncclSend": [_WORD, _SIZE, _INT, _INT, _WORD, _WORD],
    "ncclRecv": [_WORD, _SIZE, _INT, _INT, _WORD, _WORD],
    "cuStreamCreate": [_WORD, ctypes.c_uint],
    "cuEventCreate": [_WORD, ctypes.c_uint],
    "cuEventRecord": [_WORD, _WORD],
    "cuEventQuery": [_WORD],
    "cuStreamWaitEvent": [_WORD, _WORD, ctypes.c_uint],
    "cuStreamQuery": [_WORD],
    "cuCtxGetCurrent": [_WORD],
    "cuCtxSetCurrent": [_WORD],
}
_NOT_READY = 600  # CUDA_ERROR_NOT_READY


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
        _declare(self.lib)
        self._events = []  # made once, used again
        self._context = ctypes.c_void_p()
        self("cuCtxGetCurrent", ctypes.byref(self._context))

    def __call__(self, name, *args):
        status = getattr(self.lib, name)(*args)
        if status:
            raise error(
                weft.DeviceError, "distributed.cuda", f"{name} gives status {status}", ["legal: 0"]
            )

    def stream(self):
        out = ctypes.c_void_p()
        self("cuStreamCreate", ctypes.byref(out), 1)  # CU_STREAM_NON_BLOCKING
        return out.value

    def record(self, stream):
        """An event that happens when all that `stream` has is done; `give_back` takes it."""
        if self._events:
            event = self._events.pop()
        else:
            made = ctypes.c_void_p()
            self("cuEventCreate", ctypes.byref(made), 2)  # CU_EVENT_DISABLE_TIMING
            event = made.value
        self("cuEventRecord", event, stream)
        return event

    def happened(self, event):
        return self.lib.cuEventQuery(event) != _NOT_READY

    def busy(self, stream):
        """Whether the stream has work; from any thread."""
        self("cuCtxSetCurrent", self._context)
        return self.lib.cuStreamQuery(stream) == _NOT_READY

    def give_back(self, event):
        self._events.append(event)

    def after(self, later, earlier):
        """What is issued on `later` from now on waits for all that `earlier` has."""
        event = self.record(earlier)
        self("cuStreamWaitEvent", later, event, 0)
        self.give_back(event)


def _declare(lib):
    """Argument types of the functions that the library has: ctypes then converts plain numbers itself."""
    for name, types in _SIGNATURES.items():
        function = getattr(lib, name, None)
        if function is not None:
            function.argtypes = types


class _Issued:
    """A collective on the stream of its own, with the arrays that it reads and writes."""

    __slots__ = ("event", "arrays")

    def __init__(self, event, arrays):
        self.event, self.arrays = event, arrays


class Nccl:
    """One communicator. `exchange(bytes or None) -> bytes` hands rank 0's identifier to all."""

    name = "nccl"

    def __init__(self, rank, size, device, exchange):
        self.rank, self.size = rank, size
        self.lib = load()
        _declare(self.lib)
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
        self._issued = []  # on that stream, and not yet waited for
        self._deferred = []  # send and recv with async_op=True: issued together, so that none waits for another
        self._number = self.comm.value

    def _check(self, name, status):
        if status:
            raise error(
                weft.DeviceError,
                "distributed.nccl",
                f"{name} failed on rank {self.rank}: {self.lib.ncclGetErrorString(status).decode()}",
                help="NCCL_DEBUG=INFO shows what NCCL found; all ranks need the same version and a card of their own",
            )

    def several(self, nbytes):
        """Arrays are combined where they lie."""
        return True

    def reduces(self, dtype):
        """The type in which arrays of `dtype` are combined."""
        return _COMBINED_AS.get(dtype, dtype)

    def _run(self, calls, arrays, overlap):
        """Issues (function name, arguments...) as one group after weft's kernels; returns what waits for it.

        With `overlap` it goes to the stream of its own, and weft's kernels go on beside it until the wait.
        """
        if self._number is None:
            raise _aborted(self.rank)
        if self._deferred:
            self._issue_deferred()
        if not overlap:
            # The communicator's calls keep one order on the card.
            self._settle()
            stream = _LEGACY
        else:
            stream = self.stream
            self.driver.after(stream, _LEGACY)
            while self._issued and self.driver.happened(self._issued[0].event):
                self.driver.give_back(self._issued.pop(0).event)
        if len(calls) > 1:
            self.lib.ncclGroupStart()
        for name, *args in calls:
            status = getattr(self.lib, name)(*args, self._number, stream)
            if status:
                self._check(name, status)
        if len(calls) > 1:
            self._check("ncclGroupEnd", self.lib.ncclGroupEnd())
        if not overlap:
            return _nothing
        issued = _Issued(self.driver.record(stream), arrays)
        self._issued.append(issued)
        return lambda: self._wait(issued)

    def _wait(self, issued):
        """Weft's kernels from here on come after the collective."""
        if issued in self._issued:
            self.driver("cuStreamWaitEvent", _LEGACY, issued.event, 0)
            self._issued.remove(issued)
            self.driver.give_back(issued.event)

    def _settle(self):
        """Weft's kernels from here on come after all collectives."""
        if self._issued:
            self.driver("cuStreamWaitEvent", _LEGACY, self._issued[-1].event, 0)
            for issued in self._issued:
                self.driver.give_back(issued.event)
            self._issued.clear()

    def all_reduce(self, send, recv, op, overlap=False):
        return self._run([_reduction(send, recv, op)], (send, recv), overlap)

    def all_reduce_several(self, send, recv, op):
        """Each of `send` into the array of `recv` in its place, beside weft's kernels."""
        calls = [_reduction(s, r, op) for s, r in zip(send, recv)]
        return self._run(calls, (*send, *recv), True)

    def reduce_scatter(self, send, recv, op, overlap=False):
        kind, parts = _TYPES[str(send.dtype)]
        call = ("ncclReduceScatter", _at(send), _at(recv), recv.size * parts, kind, _OPS[op])
        return self._run([call], (send, recv), overlap)

    def all_gather(self, send, recv, overlap=False):
        call = ("ncclAllGather", _at(send), _at(recv), send.nbytes, 1)
        return self._run([call], (send, recv), overlap)

    def broadcast(self, send, recv, root, overlap=False):
        call = ("ncclBroadcast", _at(send), _at(recv), recv.nbytes, 1, root)
        return self._run([call], (send, recv), overlap)

    def all_to_all(self, send, recv, overlap=False):
        piece, out, into = send.nbytes // self.size, _at(send), _at(recv)
        calls = []
        for peer in range(self.size):
            calls.append(("ncclSend", out + peer * piece, piece, 1, peer))
            calls.append(("ncclRecv", into + peer * piece, piece, 1, peer))
        return self._run(calls, (send, recv), overlap)

    def send(self, array, peer, overlap=False):
        return self._between("ncclSend", array, peer, overlap)

    def recv(self, array, peer, overlap=False):
        return self._between("ncclRecv", array, peer, overlap)

    def _between(self, name, array, peer, overlap):
        self._deferred.append(((name, _at(array), array.nbytes, 1, peer), array))
        if not overlap:
            return self._issue_deferred(False)

        def wait():
            self._issue_deferred()
            self._settle()

        return wait

    def _issue_deferred(self, overlap=True):
        deferred, self._deferred = self._deferred, []
        if deferred:
            calls, arrays = zip(*deferred)
            self._run(list(calls), arrays, overlap)
        return _nothing

    def busy(self):
        """Whether the card works at a collective, or at what is before or behind one; from any thread."""
        return self._number is not None and (self.driver.busy(_LEGACY) or self.driver.busy(self.stream))  # fmt: skip

    def abort(self):
        comm, self._number = self._number, None
        if comm is not None:
            self.lib.ncclCommAbort(ctypes.c_void_p(comm))

    def close(self):
        comm, self._number = self._number, None
        if comm is not None:
            self._anchor.device.synchronize()
            self.lib.ncclCommDestroy(ctypes.c_void_p(comm))


_COMBINED_AS = {
    "bool": "uint8", "int16": "int32", "uint16": "int32", "float8_e4m3fn": "float32", "float8_e5m2": "float32",
}  # fmt: skip


def _nothing():
    """Waits for a collective that is ordered with weft's kernels."""


def _aborted(rank):
    return error(
        weft.DeviceError,
        "distributed.nccl.closed",
        f"a collective on rank {rank} after its communicator was ended",
        help="another rank has failed, or weft.distributed.shutdown() was called",
    )


def _reduction(send, recv, op):
    kind, parts = _TYPES[str(send.dtype)]
    return ("ncclAllReduce", _at(send), _at(recv), send.size * parts, kind, _OPS[op])


def _at(array):
    start = array.handle.ptr()
    return start + array.offset * (array.nbytes // array.size) if array.offset else start
