# SPDX-License-Identifier: Apache-2.0
"""Programs recorded as CUDA graphs: weft's kernels and torch's together, replayed by one call.

A graph holds addresses. Inputs that come from the same memory call after call (parameters, results of other graphs) are
read there; others are copied to memory of the graph first. Results lie in memory of the graph, which the next replay
writes over: before each replay the program looks whether somebody still holds a result. Small ones are copied out from
then on; for large ones a second graph is recorded; beyond that the call runs without a graph.
"""

from __future__ import annotations

import threading
import time

import torch

from .. import _core
from .._held_state import Faults

_WARM = 2  # calls before the first recording: weft's kernels and torch's are chosen and loaded
_MOST = 3  # graphs of one program
_SMALL = 16 << 20  # bytes of results that are copied out
_HOST_SHARE = 0.8  # of a call's time, from which on the host bounds it
_COPIED = 128 << 20  # bytes of inputs that are copied for a replay that nobody asked for, at most
_MEMORY_SHARE = 8  # a graph keeps its memory: results of at most 1 / 8 of what is free


def supported(home):
    """Whether programs on the device can be recorded."""
    return home.type == "cuda"


def _capturing(home):
    return home.type == "cuda" and torch.cuda.is_current_stream_capturing()


_made = set()  # addresses that graphs write their results to


def record_on_card(run, args, home):
    """(what replays it, its results): run(list of args) as a CUDA graph with memory of its own."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream(home)
    pool = _core.MemoryPool(f"cuda:{home.index or 0}")
    with torch.cuda.graph(
        graph,
        pool=torch.cuda.graph_pool_handle(),
        stream=stream,
        capture_error_mode="relaxed",
    ):
        lane = _core.Lane(pool, torch.cuda.current_stream(home).cuda_stream, captured=True)
        with lane:
            results = run(list(args))
    lane.recording.faulty()
    return _Replay(graph, lane.recording), results


class _Replay:
    """A torch graph, and weft's memory and kernels in it."""

    def __init__(self, graph, recording):
        self.graph, self.recording, self.faults = graph, recording, Faults()

    def __call__(self):
        self.graph.replay()
        self.faults.look(self.recording)


class _Result:
    """A result of a graph: an input, a view of an input, a value that is no tensor, or memory of the graph."""

    def __init__(self, value, args):
        self.value = self.storage = self.input = self.view = None
        self.copied, self.unused = False, 0
        if not isinstance(value, torch.Tensor):
            self.value = value
            return
        self.input = next((i for i, a in enumerate(args) if a is value), None)
        if self.input is not None:
            return
        for i, a in enumerate(args):
            if isinstance(a, torch.Tensor) and a.numel() and value.numel() and _shares(a, value):
                byte = value.data_ptr() - a.data_ptr()
                self.view = i, value.dtype, tuple(value.shape), value.stride(), byte
                return
        self.value = value.detach()
        if value.numel():
            self.storage = value.untyped_storage()
            _made.add(value.data_ptr())

    def forget(self):
        if self.storage is not None:
            _made.discard(self.value.data_ptr())

    def _count(self):
        return torch._C._storage_Use_Count(self.storage._cdata)

    def settle(self):
        """Notes how many references there are while nobody else has one."""
        if self.storage is not None:
            self.unused = self._count()

    def held(self):
        return self.storage is not None and self._count() > self.unused

    def fresh(self, args):
        """For the caller."""
        if self.input is not None:
            return args[self.input]
        if self.view is not None:
            i, dtype, shape, stride, byte = self.view
            base = args[i].detach().view(dtype)
            first = base.storage_offset() + byte // base.element_size()
            return base.as_strided(shape, stride, first)
        if not isinstance(self.value, torch.Tensor):
            return self.value
        return self.value.clone() if self.copied else self.value.detach()


def _span(t):
    reach = sum((n - 1) * s for n, s in zip(t.shape, t.stride())) + 1
    return t.data_ptr(), t.data_ptr() + reach * t.element_size()


def _shares(a, b):
    p, q = _span(a), _span(b)
    return p[0] < q[1] and q[0] < p[1]


class _Graph:
    def __init__(self, record, run, args, copied, home):
        given = [_like(a).copy_(a) if i in copied else _lent(a) for i, a in enumerate(args)]
        self.replay, results = record(run, given, home)
        self.results = [_Result(v, given) for v in results]
        # What is read in place is the caller's: its address is known, and it must not look used here.
        self.args = {i: given[i] for i in copied}
        self.places, self.passed = _places(args), 0
        del results, given
        for r in self.results:
            r.settle()

    def held(self):
        return [r for r in self.results if r.held()]

    def forget(self):
        for r in self.results:
            r.forget()

    def __call__(self, args):
        for i, own in self.args.items():
            own.copy_(args[i])
        self.passed = 0
        self.replay()
        return [r.fresh(args) for r in self.results]


def _places(args):
    return [a.data_ptr() if isinstance(a, torch.Tensor) else 0 for a in args]


def _lent(a):
    """A result of another graph as a tensor that does not keep it in use: a recording holds what it reads."""
    if not isinstance(a, torch.Tensor) or a.data_ptr() not in _made or a.device.type != "cuda":
        return a
    first, end = _span(a)
    storage = torch._C._construct_storage_from_data_pointer(first, a.device, end - first)
    lent = torch.empty(0, dtype=a.dtype, device=a.device)
    return lent.set_(storage, 0, a.shape, a.stride())


def _like(a):
    """Memory for a tensor of the same strides."""
    return torch.empty_strided(tuple(a.shape), a.stride(), dtype=a.dtype, device=a.device)


class Graphed:
    """A program whose calls are replays of graphs, once it is warm.

    run: a function of a list that is recorded; plain: the same for calls that are not. `reason` says why there is no graph.
    """

    def __init__(self, program, run, plain, home, changed=()):
        self.program, self.run, self.plain, self.home = program, run, plain, home
        self.changed = frozenset(changed)  # inputs that the program writes to: never copies
        self.calls, self.last, self.copied, self.fixed = 0, None, set(), set()
        self.copies = set()  # numbers of results that are copied out
        self.graphs = {}  # addresses of what is read in place -> graphs
        self.reason = ""
        self.most_copied = float("inf")
        self.lock = threading.Lock()

    def __call__(self, args):
        if self.reason or _capturing(self.home):
            return self.plain(args)
        with self.lock, torch.no_grad():
            results = self._replay(args)
        if results is None:
            return self.plain(args)
        args.clear()
        return results

    def _replay(self, args):
        """Results of a graph, or None where this call runs without one."""
        self.calls += 1
        places = _places(args)
        last, self.last = self.last, places
        if self.calls <= _WARM:
            return None
        if not self.fixed and not self.copied and not self._look(args, places, last):
            return None
        key = tuple(p for i, p in enumerate(places) if i not in self.copied)
        ready = self.graphs.get(key, ())
        for graph in ready:
            held = graph.held()
            if not held:
                return graph(args)
            if sum(r.value.nbytes for r in held) <= _SMALL:
                # From the next replay on they are copies; what is held now must stay as it is.
                for r in held:
                    r.copied = True
                self._pass_over(graph, ready)
                return None
        if not ready and self.graphs and self._moved(places):
            return None
        if sum(map(len, self.graphs.values())) >= _MOST:
            return None
        return self._record(args, key)

    def _look(self, args, places, last):
        """Which inputs are read in place; False where there can be no graph."""
        for a in args:
            if isinstance(a, torch.Tensor) and a.device != self.home:
                self.reason = f"an argument on {a.device}"
                return False
        for i, (p, q) in enumerate(zip(places, last)):
            if isinstance(args[i], torch.Tensor):
                still = p == q or p in _made or i in self.changed
                (self.fixed if still else self.copied).add(i)
        moved = sum(args[i].nbytes for i in self.copied)
        if moved > self.most_copied:
            self.reason = f"{moved} bytes of inputs would be copied in each call"
            return False
        return True

    def _moved(self, places):
        """Whether the call has inputs that graphs make elsewhere; others that moved are copied from now on."""
        known = [g.places for graphs in self.graphs.values() for g in graphs]
        for i in sorted(self.fixed):
            at = [places[i] for places in known]
            if places[i] in at or places[i] in _made:
                continue
            if any(p in _made for p in at):
                return True
            if i not in self.changed:
                self.fixed.discard(i)
                self.copied.add(i)
            self._drop()
        return not self.graphs

    def _pass_over(self, graph, ready):
        """A graph whose results are held call after call makes room for another one."""
        self.copies |= {i for i, r in enumerate(graph.results) if r.copied}
        graph.passed += 1
        if graph.passed > _WARM:
            graph.forget()
            ready.remove(graph)

    def _drop(self):
        if self.home.type == "cuda":
            torch.cuda.synchronize(self.home)
        for graphs in self.graphs.values():
            for g in graphs:
                g.forget()
        self.graphs = {}

    def _record(self, args, key):
        try:
            graph = _Graph(record_on_card, self.run, args, self.copied, self.home)
        except (
            Exception
        ) as refusal:  # torch's operators raise what they like while a stream is captured
            self.reason = f"not recorded: {type(refusal).__name__}: {refusal}"
            return None
        for i in self.copies:
            graph.results[i].copied = True
        self.graphs.setdefault(key, []).append(graph)
        return graph(args)


class WhereSlow:
    """A program that is replayed as a graph if the host needs longer to issue a call than the card to compute it."""

    def __init__(self, program, home, changed):
        self.program, self.home, self.changed = program, home, changed
        self.calls, self.call = 0, program
        self.lock = threading.Lock()

    def __call__(self, args):
        if self.call is self.program and self.calls <= _WARM:
            with self.lock:
                self.calls += 1
                if self.calls == _WARM + 1 and not _capturing(self.home):
                    return self._weigh(args)
        return self.call(args)

    def _weigh(self, args):
        from .whole import for_recording

        given = list(args)
        results, bound = self._timed(args)
        kept = sum(t.nbytes for t in results if isinstance(t, torch.Tensor))
        if not bound or kept * _MEMORY_SHARE > _free(self.home):
            return results
        run = for_recording(self.program, given)
        if run is not None:
            call = Graphed(self.program, run, self.program, self.home, self.changed)
            call.calls, call.last, call.most_copied = _WARM, _places(given), _COPIED
            self.call = call
        return results

    def _timed(self, args):
        """(results, whether the card waited for the host) of a call."""
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize(self.home)
        start.record()
        began = time.perf_counter()
        results = self.program(args)
        host = time.perf_counter() - began
        stop.record()
        torch.cuda.synchronize(self.home)
        return results, host > _HOST_SHARE * start.elapsed_time(stop) * 1e-3


def _free(home):
    return torch.cuda.mem_get_info(home)[0]
