# SPDX-License-Identifier: Apache-2.0
"""The wafer-scale target: compile CSL programs, run them on the fabric simulator, with the Cerebras SDK's names.

`SdkRuntime`, `SdkLayout` and their helpers are the classes that `cerebras.sdk.runtime.sdkruntimepybind` offers;
`compile_csl` is what the `cslc` command calls.
"""

from __future__ import annotations

import ctypes
import enum
import json
import operator
import os
import pathlib
import threading
import warnings
from typing import Any as _Any
from collections.abc import Mapping, Sequence

from weft import _numpy as np

from weft._boundary import publish as _publish
from weft._boundary import publish_classes as _publish_classes
from weft._core import shown as _shown
from weft._wse_arguments import launch_arguments
from weft._wse_platform import (
    FP16TYPE,
    Platform,
    SdkTarget,
    SimfabConfig,
    get_platform,
    get_simulator,
    get_system,
)
from weft._wse_library import (
    SIMULATES,
    WseDeviceError,
    WseError,
    WseValueError,
    directly,
    library,
    raise_error,
    tool,
    value_error,
)

__all__ = [
    "Color",
    "Edge",
    "FP16TYPE",
    "IntRectangle",
    "IntVector",
    "MemcpyDataType",
    "MemcpyOrder",
    "Route",
    "RoutingPosition",
    "SdkLayout",
    "SdkRuntime",
    "SdkTarget",
    "SimfabConfig",
    "Task",
    "WseError",
    "compile_csl",
    "get_edge_routing",
    "get_platform",
    "get_simulator",
    "get_system",
]


def _integer(value, what: str, code: str) -> int:
    """`value` as an int; numbers of NumPy too, no fraction and no text."""
    try:
        return operator.index(value)
    except TypeError:
        raise value_error(code, f"{what} is {_shown(value)}, not an integer") from None


def _pair(what: str, value) -> list[int]:
    if isinstance(value, str) or len(value) != 2:
        raise value_error(
            "wse.cslc.dims", f"{what} is {_shown(value)}; two integers are needed: (9, 3)"
        )
    return [_integer(v, what, "wse.cslc.dims") for v in value]


def _flag(value, what: str) -> bool:
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise value_error("wse.memcpy.flag", f"{what} is {_shown(value)}; legal are True and False")


def _choice(value, kind, what: str) -> int:
    """A member of the enumeration `kind`, or its number; a member of another one is a mistake."""
    if isinstance(value, enum.Enum) and not isinstance(value, kind):
        pass
    elif not isinstance(value, (str, bool, type)):
        try:
            return int(kind(value))
        except ValueError:
            pass
    legal = ", ".join(f"{kind.__name__}.{m.name}" for m in kind)
    given = (
        f"{type(value).__name__}.{value.name}" if isinstance(value, enum.Enum) else _shown(value)
    )
    raise value_error(f"wse.memcpy.{what.split()[-1]}", f"{what} is {given}; legal are {legal}")


def compile_csl(
    root: str,
    out: str,
    *,
    arch: str = "wse2",
    fabric_dims: Sequence[int] = (0, 0),
    fabric_offsets: Sequence[int] = (0, 0),
    params: Mapping[str, _Any] | None = None,
    colors: Mapping[str, _Any] | None = None,
    memcpy: bool = False,
    channels: int = 1,
    import_paths: Sequence[str] = (),
    fp16_format: str = "f16",
    warnings_as_errors: bool = False,
    routes: bool = False,
    sdk_version: str = "detect",
    sections: Mapping[str, int] | None = None,
) -> dict[str, _Any]:
    """Compiles a layout file and writes the artifact directory `out`; returns {"warnings", "printed",
    "sdk_version"}, with `routes` also {"routes"}, a table of every PE's colors. `sdk_version` "1.4" or "2.10"
    refuses what only the other has; "detect" takes both, and the result says which it was. `sections`: byte addresses
    by name of `linksection`."""
    for what, value, legal in (
        ("arch", arch, ("wse2", "wse3")),
        ("fp16_format", fp16_format, ("f16", "bf16", "cb16")),
    ):
        if value not in legal:
            raise value_error(
                f"wse.cslc.{what.partition('_')[0]}",
                f"compile_csl: {what} is {_shown(value)}; legal are {' and '.join(legal)}",
            )
    return tool(
        "compile",
        {
            "root": os.fspath(root),
            "out": os.fspath(out),
            "arch": arch,
            "fabric_dims": _pair("compile_csl: fabric_dims", fabric_dims),
            "fabric_offsets": _pair("compile_csl: fabric_offsets", fabric_offsets),
            "params": dict(params or {}),
            "colors": dict(colors or {}),
            "memcpy": memcpy,
            "channels": channels,
            "import_paths": [os.fspath(p) for p in import_paths],
            "fp16_format": fp16_format,
            "warnings_as_errors": warnings_as_errors,
            "routes": routes,
            "sdk_version": sdk_version,
            "sections": dict(sections or {}),
        },
    )


class MemcpyDataType(enum.IntEnum):
    MEMCPY_16BIT = 0
    MEMCPY_32BIT = 1


class MemcpyOrder(enum.IntEnum):
    ROW_MAJOR = 0
    COL_MAJOR = 1


class Task:
    """Handle of a non-blocking operation; keeps its array alive."""

    def __init__(self, handle: int, array: _Any = None) -> None:
        self.handle, self._array = handle, array

    def __index__(self):
        return self.handle


def _words(array, what: str, writable: bool):
    """The array as 32-bit words without a copy."""
    if not isinstance(array, np.ndarray):
        raise value_error(
            "wse.memcpy.array",
            f"{what} needs a NumPy array, not {type(array).__name__}",
            help="pass a numpy.ndarray of 32-bit elements",
        )
    problem = None
    if array.flags.c_contiguous:
        array = array.reshape(-1)  # the elements in the order of memory, without a copy
    if array.dtype.itemsize != 4:
        problem = (
            "wse.memcpy.dtype",
            f"{what}: elements of {array.dtype} have {array.dtype.itemsize} bytes; "
            "they must be 32-bit words (16-bit values go into the low halves of uint32)",
        )
    elif not array.flags.c_contiguous:
        problem = (
            "wse.memcpy.strides",
            f"{what}: the array is not contiguous, strides {array.strides}",
        )
    elif writable and not array.flags.writeable:
        problem = (
            "wse.memcpy.readonly",
            f"{what}: the array of {array.size} elements is read-only",
        )
    if problem:
        raise value_error(*problem)
    return array


_finished: dict[str, "SdkRuntime"] = {}  # by artifact directory: what debug_util reads


class SdkRuntime:
    """Loads a compiled program on the fabric simulator and talks to it."""

    def __init__(
        self,
        bindir: str | os.PathLike[str] | _Any = None,
        platform: Platform | None = None,
        *,
        artifacts: _Any = None,
        cmaddr: str | None = None,
        suppress_simfab_trace: bool = True,
        simfab_numthreads: int | None = None,
        msg_level: str = "WARNING",
        memcpy_required: bool = True,
        timed: bool = True,
        engine: str = "automatic",
        task_order: str | None = None,
        seed: int | None = None,
        router_depth: int | None = None,
        cycle_limit: int | None = None,
        trace_links: bool = False,
        check_bounds: bool | None = None,
        timeline: bool = False,
        **unknown: _Any,
    ) -> None:
        """`bindir`: an artifact directory, or (as `artifacts`, too) what SdkLayout.compile returns. `simfab_numthreads` (1 to 64) sets the host threads, else the platform's configuration does; no more are
        used than the machine has. `engine`: "automatic", "bytecode" or "native". `task_order` says which of several ready tasks of one
        priority goes first: "round-robin" (the default: ids in turn, so that a task that activates itself lets others run),
        "local-first" (local tasks before data tasks, the lowest id first), "highest-first", "lowest-first" or "random", drawn from `seed`; the environment variables
        WEFT_WSE_TASK_ORDER and WEFT_WSE_SEED set them where the arguments do not. `router_depth` (WEFT_WSE_ROUTER_DEPTH; 1 to 12, the
        model's is 4) is how many wavelets a router holds of each color and side, which no document says.
        A program that runs on beyond cycle `cycle_limit` (WEFT_WSE_CYCLE_LIMIT; there is no limit otherwise) is stopped with the fault `wse.limit.cycles`. A trace (`suppress_simfab_trace=False`, or a platform
        that wants one) is written to simfab_traces/trace.json at stop; `trace_links` adds a track per link. `timeline` keeps the load of PEs and links over time for `save_timeline`. With
        `check_bounds` (or WEFT_WSE_CHECK_BOUNDS=1) a memory operand that leaves the variable it begins in is a fault
        (`wse.dsd.outside`) instead of a change to its neighbor."""
        if unknown:
            warnings.warn(
                f"SdkRuntime: {', '.join(sorted(unknown))}: there is no such option, and it has no effect",
                RuntimeWarning,
                stacklevel=2,
            )
        if engine not in ("automatic", "bytecode", "native"):
            raise value_error(
                "wse.runtime.engine",
                f"engine is {_shown(engine)}; legal are automatic, bytecode and native",
            )
        bindir = artifacts if bindir is None else bindir
        directory = getattr(bindir, "directory", bindir)
        if not isinstance(directory, (str, os.PathLike)):
            raise value_error(
                "wse.runtime.bindir",
                f"SdkRuntime: the program is {_shown(directory)}; legal are the path of an artifact directory and what "
                "SdkLayout.compile returns",
                help='SdkRuntime("out")',
            )
        address = cmaddr or (platform.cmaddr if platform else None) or ""
        if simfab_numthreads is not None and not (
            isinstance(simfab_numthreads, (int, np.integer)) and 1 <= simfab_numthreads <= 64
        ):
            raise value_error(
                "wse.runtime.threads",
                f"simfab_numthreads is {_shown(simfab_numthreads)}; legal are 1 to 64",
                help="leave it out: the platform's configuration sets it",
            )
        config = platform.config if platform else SimfabConfig()
        threads = simfab_numthreads or config.num_threads
        trace = not suppress_simfab_trace or not config.suppress_trace or trace_links
        options = {
            "cmaddr": address,
            "timed": timed,
            "threads": max(1, min(threads, os.cpu_count() or 1)),
            "engine": engine,
            "timeline": timeline,
            "task_order": task_order or os.environ.get("WEFT_WSE_TASK_ORDER") or "round-robin",
            "seed": int(os.environ.get("WEFT_WSE_SEED", 0)) if seed is None else seed,
            "router_depth": int(os.environ.get("WEFT_WSE_ROUTER_DEPTH", 0))
            if router_depth is None
            else router_depth,
            "cycle_limit": int(os.environ.get("WEFT_WSE_CYCLE_LIMIT", 0))
            if cycle_limit is None
            else cycle_limit,
            "trace": trace,
            "trace_links": trace_links,
            "check_bounds": os.environ.get("WEFT_WSE_CHECK_BOUNDS", "0") != "0"
            if check_bounds is None
            else bool(check_bounds),
        }
        self._directory = os.fspath(directory)
        self._platform = platform
        self._traced = options["trace"]
        self._handle = None
        error = ctypes.c_void_p()
        self._handle = library.get().weft_wse_open(
            self._directory.encode(), json.dumps(options).encode(), ctypes.byref(error)
        )
        if error.value:
            raise_error(library.take(error))
        self._keep: dict[int, object] = {}
        self._files: dict[int, tuple] = {}  # of receive_tofile without waiting, by task
        self._layout = self._call("layout")
        self._port_ids = {i: port["name"] for i, port in enumerate(self._layout["ports"])}

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and library is not None:  # None: Python is ending
            library.get().weft_wse_close(self._handle)
            self._handle = None

    def _call(self, method: str, args: dict[str, _Any] | None = None, array=None):
        error = ctypes.c_void_p()
        data = array.ctypes.data if array is not None else None
        call = library.get().weft_wse_call
        result = (library.patiently if method in SIMULATES else directly)(
            call,
            self._handle,
            method.encode(),
            json.dumps(args or {}).encode(),
            data,
            array.size if array is not None else 0,
            ctypes.byref(error),
        )
        return library.finish(result, error)

    def _issue(self, method: str, args: dict[str, _Any], array, nonblock: bool) -> Task:
        handle = self._call(method, args, array)
        if nonblock and array is not None:
            self._keep[handle] = array
        return Task(handle, array)

    def load(self) -> None:
        self._call("load")

    def run(self) -> None:
        self._call("run")

    def stop(self) -> None:
        """Finishes everything issued; writes sim.log where the program printed something."""
        self._call("stop")
        self._keep.clear()
        self._write_files()
        for text in self._call("warnings"):
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        _finished[os.path.realpath(self._directory)] = self
        if cycles_file := os.environ.get("WEFT_WSE_CYCLES_FILE"):  # of --perturb
            with open(cycles_file, "a", encoding="utf-8") as f:
                f.write(f"{self.cycles()}\n")
        if self._traced:
            os.makedirs("simfab_traces", exist_ok=True)
            self.save_trace(os.path.join("simfab_traces", "trace.json"))
        if log := self._call("log"):
            with open("sim.log", "w", encoding="utf-8") as f:
                f.write(log)
        config = self._platform.config if self._platform else None
        if config and config.dump_core:
            self.dump_core(config.core_path or "out.core")

    def get_id(self, symbol: str) -> int:
        if not isinstance(symbol, str):
            raise value_error(
                "wse.symbol.name", f"get_id takes a symbol's name, not {_shown(symbol)}"
            )
        return self._call("get_id", {"name": symbol})

    def memcpy_h2d(
        self,
        dest: _Any,
        src: _Any,
        px: int,
        py: int,
        w: int,
        h: int,
        elem_per_pe: int,
        *,
        streaming: bool = False,
        data_type: MemcpyDataType = MemcpyDataType.MEMCPY_32BIT,
        order: MemcpyOrder = MemcpyOrder.ROW_MAJOR,
        nonblock: bool = False,
        _broadcast: int = 0,
    ) -> Task:
        """Copies `src`, 32-bit words of shape [h][w][elem_per_pe] flattened in `order`, to symbol or color `dest` of the
        rectangle at (px, py)."""
        return self._copy(
            "memcpy_h2d",
            dest,
            _words(src, "memcpy_h2d", False),
            (px, py, w, h, elem_per_pe),
            streaming,
            data_type,
            order,
            nonblock,
            _broadcast,
        )

    def memcpy_h2d_rowbcast(
        self,
        dest: _Any,
        src: _Any,
        px: int,
        py: int,
        w: int,
        h: int,
        elem_per_pe: int,
        **how: _Any,
    ) -> Task:
        """One column of data, `src` of shape [h][elem_per_pe], goes to every PE of its row. Options as memcpy_h2d."""
        return self.memcpy_h2d(dest, src, px, py, w, h, elem_per_pe, _broadcast=1, **how)

    def memcpy_h2d_colbcast(
        self,
        dest: _Any,
        src: _Any,
        px: int,
        py: int,
        w: int,
        h: int,
        elem_per_pe: int,
        **how: _Any,
    ) -> Task:
        """One row of data, `src` of shape [w][elem_per_pe], goes to every PE of its column. Options as memcpy_h2d."""
        return self.memcpy_h2d(dest, src, px, py, w, h, elem_per_pe, _broadcast=2, **how)

    def memcpy_h2d_stride(
        self,
        dest: _Any,
        src: _Any,
        px: int,
        py: int,
        w: int,
        h: int,
        elem_per_pe: int,
        row_stride: int,
        col_stride: int,
        **how: _Any,
    ) -> Task | None:
        """Only the PEs at every `row_stride`-th column and `col_stride`-th row of the rectangle get data: `src` of
        shape [columns][rows][elem_per_pe], flattened in `order`. Other options as memcpy_h2d."""
        if min(row_stride, col_stride, w, h) < 1:
            raise value_error(
                "wse.memcpy.stride",
                f"memcpy_h2d_stride: strides {row_stride} and {col_stride} over {w} x {h} PEs; all must be positive",
                help="give strides from 1 on",
            )
        columns, rows = 1 + (w - 1) // row_stride, 1 + (h - 1) // col_stride
        words = _words(src, "memcpy_h2d_stride", False)
        if words.size != columns * rows * elem_per_pe:
            raise value_error(
                "wse.memcpy.size",
                f"memcpy_h2d_stride: the array has {words.size} elements, {columns} x {rows} PEs take {elem_per_pe} each",
            )
        order = how.pop("order", MemcpyOrder.ROW_MAJOR)
        parts = words.reshape(
            (columns, rows, elem_per_pe), order="C" if order == MemcpyOrder.ROW_MAJOR else "F"
        )
        task = None
        for i in range(columns):
            for j in range(rows):
                part = np.ascontiguousarray(parts[i, j])
                at = (px + i * row_stride, py + j * col_stride)
                task = self.memcpy_h2d(dest, part, *at, 1, 1, elem_per_pe, **how)
        return task

    def memcpy_d2h(
        self,
        dest: _Any,
        src: _Any,
        px: int,
        py: int,
        w: int,
        h: int,
        elem_per_pe: int,
        *,
        streaming: bool = False,
        data_type: MemcpyDataType = MemcpyDataType.MEMCPY_32BIT,
        order: MemcpyOrder = MemcpyOrder.ROW_MAJOR,
        nonblock: bool = False,
    ) -> Task:
        """Copies symbol or color `src` of the rectangle at (px, py) into `dest`, 32-bit words of shape
        [h][w][elem_per_pe] flattened in `order`."""
        return self._copy(
            "memcpy_d2h",
            src,
            _words(dest, "memcpy_d2h", True),
            (px, py, w, h, elem_per_pe),
            streaming,
            data_type,
            order,
            nonblock,
        )

    def _copy(
        self, method, symbol, array, region, streaming, data_type, order, nonblock, broadcast=0
    ):
        if isinstance(symbol, str):
            raise value_error(
                "wse.symbol.name",
                f"{method}: the symbol is the name {_shown(symbol)}; its number is needed",
                help=f'runner.get_id("{symbol}")',
            )
        symbol = _integer(symbol, f"{method}: the symbol or color", "wse.symbol.name")
        region = [
            _integer(v, f"{method}: {name}", "wse.memcpy.region")
            for name, v in zip(("px", "py", "w", "h", "l"), region)
        ]
        w, h, l = region[2:]
        needed = l * (w if broadcast != 1 else 1) * (h if broadcast != 2 else 1)
        if array.size > needed > 0:
            warnings.warn(
                f"{method}: the host array has {array.size} elements, the first {needed} are copied",
                RuntimeWarning,
                stacklevel=3,
            )
            array = array[:needed]
        data_type = _choice(data_type, MemcpyDataType, f"{method}: data_type")
        if data_type == MemcpyDataType.MEMCPY_16BIT and array.dtype.kind == "f" and not streaming:
            warnings.warn(
                f"{method}: MEMCPY_16BIT moves the low halves of words, and the array is {array.dtype}; "
                "16-bit values lie in uint32",
                RuntimeWarning,
                stacklevel=3,
            )
        args = {
            "id": symbol,
            **dict(zip(("px", "py", "w", "h", "l"), region)),
            "streaming": _flag(streaming, f"{method}: streaming"),
            "data_type": data_type,
            "order": _choice(order, MemcpyOrder, f"{method}: order"),
            "nonblock": _flag(nonblock, f"{method}: nonblock"),
            "broadcast": broadcast,
        }
        return self._issue(method, args, array, nonblock)

    def launch(self, symbol: str | int, *args: _Any, nonblock: bool = False) -> Task:
        """Runs an exported function on every PE; arguments are NumPy scalars of the declared types."""
        if isinstance(symbol, str):
            number = self.get_id(symbol)
        else:
            number = _integer(symbol, "launch: the function", "wse.symbol.name")
        wanted = self._call("signature", {"id": number})
        bits, types = launch_arguments(symbol, args, wanted)
        return self._issue(
            "launch",
            {
                "id": number,
                "args": bits,
                "types": types,
                "nonblock": _flag(nonblock, "launch: nonblock"),
            },
            None,
            nonblock,
        )

    def call(self, name: str | int, args: Sequence[_Any] = (), nonblock: bool = False) -> Task:
        """The older form of launch: a list of arguments."""
        return self.launch(name, *args, nonblock=nonblock)

    def is_task_done(self, task_handle: _Any) -> bool:
        number = _integer(task_handle, "the task", "wse.runtime.task")
        return self._call("is_task_done", {"task": number})

    def task_wait(self, task_handle: _Any) -> None:
        number = _integer(task_handle, "the task", "wse.runtime.task")
        self._call("task_wait", {"task": number})
        self._write_files(number)

    # Streams of SdkLayout programs.
    def get_port_id(self, port_name: str) -> int:
        for i, n in self._port_ids.items():
            if n == str(port_name):
                return i
        raise value_error(
            "wse.stream.port",
            f'there is no port "{port_name}"; the program has {", ".join(self._port_ids.values()) or "none"}',
        )

    def report_port_infos(self) -> None:
        """Prints name, color and fabric coordinates of every port."""
        for i, port in enumerate(self._layout["ports"]):
            print(f"port {i}: {port['name']}, color {port['color']}, PE ({port['x']}, {port['y']})")

    def _port(self, port) -> str:
        if not isinstance(port, int):
            return str(port)
        if port not in self._port_ids:
            raise value_error(
                "wse.stream.port",
                f"there is no port {port}; the program has {', '.join(map(str, self._port_ids)) or 'none'}",
            )
        return self._port_ids[port]

    def _wavelets(self, call: str, array, n_wavelets: int | None):
        """The words of the array that `call` moves: all, or the first `n_wavelets`."""
        if n_wavelets is None:
            return array
        n = _integer(n_wavelets, f"{call}: the number of wavelets", "wse.stream.size")
        if not 0 <= n <= array.size:
            raise value_error(
                "wse.stream.size",
                f"{call}: {n} wavelets, and the array has {array.size} words; "
                f"legal are 0 to {array.size}",
            )
        return array[:n]

    def send(
        self, port: _Any, src: _Any, n_wavelets: int | None = None, *, nonblock: bool = False
    ) -> Task:
        """Sends the first `n_wavelets` 32-bit words of `src`, else all, into the program through `port`."""
        array = self._wavelets("send", _words(np.ascontiguousarray(src), "send", False), n_wavelets)
        return self._issue(
            "send", {"port": self._port(port), "nonblock": bool(nonblock)}, array, nonblock
        )

    def receive(
        self, port: _Any, dest: _Any, n_wavelets: int | None = None, *, nonblock: bool = False
    ) -> Task:
        """Takes `n_wavelets` 32-bit words, else as many as `dest` has, from the program through `port`."""
        array = self._wavelets("receive", _words(dest, "receive", True), n_wavelets)
        return self._issue(
            "receive", {"port": self._port(port), "nonblock": bool(nonblock)}, array, nonblock
        )

    def receive_tofile(
        self,
        port: _Any,
        outfile: str | os.PathLike[str],
        n_wavelets: int | None = None,
        *,
        nonblock: bool = False,
    ) -> Task:
        """Receives `n_wavelets` words and writes them to a file, as they are; with `nonblock` when they are waited for."""
        if n_wavelets is None:
            raise value_error(
                "wse.stream.tofile",
                f"receive_tofile from {self._port(port)}: how many wavelets to wait for is not given",
                help="receive_tofile(port, path, n_wavelets)",
            )
        array = np.zeros(n_wavelets, np.uint32)
        task = self.receive(port, array, n_wavelets, nonblock=nonblock)
        if nonblock:
            self._files[task.__index__()] = (array, os.fspath(outfile))
        else:
            array.tofile(outfile)
        return task

    def _write_files(self, done=None):
        """Files of receptions that have ended: of task `done`, or of all."""
        for task in list(self._files) if done is None else [t for t in (done,) if t in self._files]:
            array, path = self._files.pop(task)
            array.tofile(path)

    # Looking inside.
    def read_symbol(
        self, x: int, y: int, symbol_name: str, dtype: _Any = "uint8"
    ) -> np.ndarray[_Any, _Any]:
        """Memory of a symbol at fabric coordinates (offsets included), as a NumPy array."""
        found = self._call("read_symbol", {"x": int(x), "y": int(y), "name": symbol_name})
        return (
            np.frombuffer(bytes.fromhex(found["bytes"]), dtype=np.uint8)
            .view(np.dtype(dtype))
            .copy()
        )

    def symbols(self, x: int, y: int) -> list[str]:
        return self._call("symbols", {"x": int(x), "y": int(y)})

    def program_string(self, x: int, y: int, index: int) -> str:
        return self._call("string", {"x": int(x), "y": int(y), "index": int(index)})

    def coord_logical_to_physical(self, logical_coords: _Any) -> _Any:
        x, y = logical_coords
        return (x + self._layout["offset_x"], y + self._layout["offset_y"])

    def dump_core(self, corefile: str) -> None:
        """Writes statistics and the state of waiting PEs as JSON."""
        with open(corefile, "w", encoding="utf-8") as f:
            json.dump(
                {"stats": self.stats(), "waiting": self.waiting(), "cycles": self.cycles()},
                f,
                indent=1,
            )

    def dump_elf_core(self, corefile: str) -> None:
        """Always refused: programs of weft are no ELF files."""
        raise value_error(
            "wse.runtime.elf",
            f'dump_elf_core("{corefile}"): programs are not ELF files here',
            help="dump_core(path) writes the state of waiting PEs; read_symbol(x, y, name) reads a variable",
        )

    def stats(self) -> dict[str, _Any]:
        return self._call("stats")

    def stats_table(self) -> str:
        return self._call("stats_table")

    def cycles(self) -> int:
        return self._call("cycles")

    def clock_hz(self) -> float:
        return self._call("clock")

    def waiting(self) -> list[str]:
        return self._call("waiting")

    def sim_log(self) -> str:
        return self._call("log")

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace so far; it opens in Perfetto."""
        self._call("save_trace", {"path": os.fspath(path)})

    def link_traffic(self) -> _Any:
        """Wavelets sent over each link so far: uint32 [height][width][4], to the east, west, north and south."""
        out = np.zeros((self._layout["height"], self._layout["width"], 4), np.uint32)
        self._call("links", array=out.reshape(-1))
        return out

    def save_timeline(self, path: str | os.PathLike[str]) -> None:
        """Writes what PEs and links did over time as a page that needs nothing else: load of the wafer, and a map of
        its PEs for a part of the time; both zoom. Needs a runtime opened with `timeline=True`, else WseError
        (`wse.api.timeline`)."""
        page = pathlib.Path(__file__).with_name("wse_timeline.html").read_text()
        data = json.dumps(self._call("timeline"))
        pathlib.Path(path).write_text(page.replace("/*DATA*/null", data))

    def heat_map(self, path: str | os.PathLike[str], what: str = "busy") -> None:
        """Draws the fabric, one cell per PE, as .svg or .png."""
        self._call("heat_map", {"path": os.fspath(path), "what": what})


from weft.wse_layout import (  # noqa: E402  (needs the names above)
    Color,
    Edge,
    IntRectangle,
    IntVector,
    Route,
    RoutingPosition,
    SdkLayout,
    get_edge_routing,
)

_publish(__name__, gathered=True)
_publish_classes(__name__)
