# SPDX-License-Identifier: Apache-2.0
"""SdkLayout: programs put together from code regions, ports and streams. The work (colours, routes, compilation)
is done by the core; these classes only collect what was said."""

from __future__ import annotations

import dataclasses
import enum
import json
import operator
import os
from collections.abc import Sequence as _Sequence
from typing import Any as _Any

from weft import _numpy as np

from ._boundary import publish as _publish
from ._boundary import publish_classes as _publish_classes
from ._core import shown as _shown
from ._wse_library import value_error


def _integer(value, what: str) -> int:
    """`value` as an int: numbers of NumPy too, and no fraction is dropped."""
    try:
        return operator.index(value)
    except TypeError:
        raise value_error(
            "wse.sdklayout.integer", f"{what} is {_shown(value)}; legal are integers"
        ) from None


class Edge(enum.IntEnum):
    TOP = 0
    BOTTOM = 1
    LEFT = 2
    RIGHT = 3


class Route(enum.IntEnum):
    EAST = 0
    WEST = 1
    NORTH = 2
    SOUTH = 3
    RAMP = 4


@dataclasses.dataclass(frozen=True)
class IntVector:
    x: int
    y: int

    def __post_init__(self):
        for name in ("x", "y"):
            object.__setattr__(self, name, _integer(getattr(self, name), f"IntVector: {name}"))


@dataclasses.dataclass(frozen=True, init=False)
class IntRectangle:
    """From the upper left corner, inclusive, to the lower right one, exclusive; or with `origin` and `dims` by name, its size."""

    ul: IntVector
    lr: IntVector

    def __init__(
        self,
        ul: IntVector | None = None,
        lr: IntVector | None = None,
        *,
        origin: IntVector | None = None,
        dims: IntVector | None = None,
    ) -> None:
        ul = origin if ul is None else ul
        if ul is not None and dims is not None and lr is None:
            lr = IntVector(ul.x + dims.x, ul.y + dims.y)
        if ul is None or lr is None:
            raise value_error(
                "wse.sdklayout.rectangle",
                "IntRectangle wants two corners, or an origin and dims",
                help="write IntRectangle(IntVector(x0, y0), IntVector(x1, y1)), the second corner exclusive",
            )
        if lr.x <= ul.x or lr.y <= ul.y:
            raise value_error(
                "wse.sdklayout.rectangle",
                f"no PE lies between the corners ({ul.x}, {ul.y}) and ({lr.x}, {lr.y}), the second of which is exclusive",
                help="give the corner behind the last PE, or the size by name: IntRectangle(origin=..., dims=...)",
            )
        object.__setattr__(self, "ul", ul)
        object.__setattr__(self, "lr", lr)


class RoutingPosition:
    """One switch position: inputs and outputs of a colour."""

    def __init__(self) -> None:
        self._input: list[int] = []
        self._output: list[int] = []

    def set_input(self, routes: _Any) -> _Any:
        self._input = [int(r) for r in routes]
        return self

    def set_output(self, routes: _Any) -> _Any:
        self._output = [int(r) for r in routes]
        return self

    def add_input(self, route: Route) -> _Any:
        self._input.append(int(route))
        return self

    def add_output(self, route: Route) -> _Any:
        self._output.append(int(route))
        return self

    def get_input(self) -> list[Route]:
        return [Route(r) for r in self._input]

    def get_output(self) -> list[Route]:
        return [Route(r) for r in self._output]

    def _data(self):
        return {"rx": self._input, "tx": self._output}


class Color:
    """A colour by name; its number is chosen when the layout is compiled, unless given."""

    _count = 0

    def __init__(self, name: str, value: int | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a colour is a text, this is {type(name).__name__}")
        Color._count += 1
        self.name, self.value, self.key = name, value, f"{name}#{Color._count}"
        self.region: str | None = None

    def get_global_name(self) -> str:
        """The name, after the region's and an underscore where it belongs to one."""
        return f"{self.region}_{self.name}" if self.region else self.name

    def get_local_param_name(self) -> str:
        return self.name

    def get_value(self) -> int | None:
        """The physical value, if one was given."""
        return self.value


@dataclasses.dataclass(frozen=True)
class EdgeRoute:
    edge: int
    positions: tuple


def get_edge_routing(edge: Edge, routes: _Any) -> EdgeRoute:
    """Routing positions that the PEs along one edge have instead of the region's."""
    return EdgeRoute(int(edge), tuple(routes))


class Port:
    def __init__(self, region: CodeRegion, index: int) -> None:
        self.region, self.index = region, index


_SYMBOL_TYPES = ("int32", "uint32", "float32", "int16", "uint16", "float16")


class CodeRegion:
    def __init__(
        self, layout: SdkLayout, source: str | os.PathLike[str], name: str, width: int, height: int
    ) -> None:
        self._layout = layout
        self._colors: dict[str, Color] = {}
        self._data = {
            "file": os.path.abspath(source),
            "name": name,
            "width": _integer(width, f'create_code_region "{name}": width'),
            "height": _integer(height, f'create_code_region "{name}": height'),
            "x": 0,
            "y": 0,
            "params": [],
            "paints": [],
            "ports": [],
            "symbols": [],
        }

    def color(self, name: str, value: int | None = None) -> Color:
        """A colour that belongs to this region, with a physical value if one is given."""
        if name not in self._colors:
            self._colors[name] = Color(name, value)
            self._colors[name].region = self._data["name"]
        return self._colors[name]

    def _use(self, color: Color) -> str:
        self._layout._colors[color.key] = {"name": color.name, "value": color.value}
        return color.key

    def _param(self, rect, name, value, color):
        if isinstance(name, Color):
            name, color = None, name
        if color is not None:  # a parameter of the color's own name
            name, value = (name or color.name), color
        entry = {"rect": rect, "name": name}
        if isinstance(value, Color):
            entry["color"] = self._use(value)
        else:
            entry["value"] = _integer(value, f'region "{self._data["name"]}": parameter "{name}"')
        self._data["params"].append(entry)

    def _all(self):
        return [0, 0, self._data["width"], self._data["height"]]

    @staticmethod
    def _rect(r: IntRectangle):
        return [r.ul.x, r.ul.y, r.lr.x, r.lr.y]

    def set_param_all(
        self, name: _Any = None, value: _Any = None, *, color: Color | None = None
    ) -> None:
        """Parameter `name` of every PE: a number or a color; or `color` alone, whose name it then is."""
        self._param(self._all(), name, value, color)

    def set_param(
        self,
        coord: IntVector,
        name: _Any = None,
        value: _Any = None,
        *,
        color: Color | None = None,
    ) -> None:
        """As set_param_all, of one PE."""
        self._param([coord.x, coord.y, coord.x + 1, coord.y + 1], name, value, color)

    def set_param_range(
        self,
        rect: IntRectangle,
        name: _Any = None,
        value: _Any = None,
        *,
        color: Color | None = None,
    ) -> None:
        """As set_param_all, of the PEs of a rectangle."""
        self._param(self._rect(rect), name, value, color)

    def set_symbol_all(self, symbol: str, data: _Any, width: int, height: int) -> None:
        """Distributes a matrix of `height` rows and `width` columns over the PEs in blocks; `symbol` is an array there."""
        a = np.ascontiguousarray(data)
        w, h = self._data["width"], self._data["height"]
        problem = ""
        if a.dtype not in _SYMBOL_TYPES:
            problem = f"elements are {a.dtype}; legal are {', '.join(_SYMBOL_TYPES)}"
        elif a.size != width * height:
            problem = f"the array has {a.size} elements, width {width} times height {height} are {width * height}"
        elif height % h or width % w:
            problem = f"{height} x {width} elements do not divide over {h} x {w} PEs"
        if problem:
            raise value_error("wse.sdklayout.symbol", f'set_symbol_all "{symbol}": {problem}')
        a = a.reshape(height, width)
        bh, bw = height // h, width // w
        for y in range(h):
            for x in range(w):
                block = np.ascontiguousarray(a[y * bh : (y + 1) * bh, x * bw : (x + 1) * bw])
                self._data["symbols"].append(
                    {"x": x, "y": y, "name": symbol, "bytes": block.tobytes().hex()}
                )

    def _paint(self, rect, color, positions, edges=()):
        self._data["paints"].append(
            {
                "rect": rect,
                "color": self._use(color),
                "positions": [p._data() for p in positions],
                "edges": [
                    {"edge": e.edge, "positions": [p._data() for p in e.positions]} for e in edges
                ],
            }
        )

    def paint(self, coord: IntVector, color: Color, routes: _Any) -> None:
        self._paint([coord.x, coord.y, coord.x + 1, coord.y + 1], color, routes)

    def paint_all(self, color: Color, routes: _Any, edge_routes: _Sequence[EdgeRoute] = ()) -> None:
        self._paint(self._all(), color, routes, edge_routes)

    def paint_range(self, rect: IntRectangle, color: Color, routes: _Any) -> None:
        self._paint(self._rect(rect), color, routes)

    def _port(self, color, edge, positions, size, prefix, is_input):
        name = f"{self._data['name']}_{prefix}{color.name}"
        self._data["ports"].append(
            {
                "color": self._use(color),
                "edge": int(edge),
                "size": _integer(size, f"port {name}: its size"),
                "input": is_input,
                "positions": [p._data() for p in positions],
                "name": name,
            }
        )
        return Port(self, len(self._data["ports"]) - 1)

    def create_input_port(
        self, color: Color | str, edge: Edge, routes: _Any, data_size: int, prefix: str = ""
    ) -> Port:
        return self._port(color, edge, routes, data_size, prefix, True)

    def create_output_port(
        self, color: Color | str, edge: Edge, routes: _Any, data_size: int, prefix: str = ""
    ) -> Port:
        return self._port(color, edge, routes, data_size, prefix, False)

    def place(self, x: int, y: int) -> None:
        self._data["x"], self._data["y"] = int(x), int(y)


class Artifacts:
    """What compile() produced; SdkRuntime takes it."""

    def __init__(self, artifacts_path: str | os.PathLike[str]) -> None:
        self.directory = artifacts_path

    def __fspath__(self):
        return self.directory


class SdkLayout:
    def __init__(
        self,
        platform: _Any = None,
        msg_level: str = "WARNING",
        *,
        target: _Any = None,
        fabric_file: str | os.PathLike[str] | None = None,
    ) -> None:
        """`platform`: what get_platform returns, or an SdkTarget, which `target` names. `msg_level` has no effect, and
        a `fabric_file` is refused."""
        from weft.wse import Platform, SdkTarget

        platform = next((p for p in (platform, target, fabric_file) if p is not None), None)
        if isinstance(platform, SdkTarget):
            platform = Platform(None, platform)
        if not isinstance(platform, Platform):
            raise value_error(
                "wse.sdklayout.platform",
                f"SdkLayout takes what get_platform returns or an SdkTarget, found {_shown(platform)}; files that describe a "
                "fabric are not read",
                help="SdkLayout(get_platform(None, SimfabConfig(), SdkTarget.WSE3))",
            )
        self._platform = platform
        self._colors: dict[str, dict] = {}
        self._regions: list[CodeRegion] = []
        self._connections: list[dict] = []
        self._streams: list[dict] = []

    def create_code_region(
        self, source: str | os.PathLike[str], name: str, width: int, height: int
    ) -> CodeRegion:
        region = CodeRegion(self, source, name, width, height)
        self._regions.append(region)
        return region

    def _ref(self, port: Port):
        return [self._regions.index(port.region), port.index]

    def connect(self, tx: Port, rx: Port) -> None:
        self._connections.append({"from": self._ref(tx), "to": self._ref(rx)})

    def _stream(self, port: Port, is_input: bool, io_loc, io_buffer_size) -> str:
        name = port.region._data["ports"][port.index]["name"]
        if io_loc is not None and not isinstance(io_loc, IntVector):
            raise value_error(
                "wse.sdklayout.stream",
                f"stream of port {name}: io_loc is {_shown(io_loc)}; legal are an IntVector and None",
            )
        if _integer(io_buffer_size, f"stream of port {name}: io_buffer_size") < 1:
            raise value_error(
                "wse.sdklayout.stream",
                f"stream of port {name}: io_buffer_size is {io_buffer_size}; it is at least 1",
            )
        self._streams.append({"port": self._ref(port), "input": is_input, "name": name})
        return name

    def create_input_stream(
        self, port: Port, io_loc: IntVector | None = None, io_buffer_size: int = 1024
    ) -> str:
        """Words of the host for an input port; the name that `SdkRuntime.send` takes. They enter at the port's PE:
        `io_loc` and `io_buffer_size`, which place and size a PE between host and port, have no effect."""
        return self._stream(port, True, io_loc, io_buffer_size)

    def create_output_stream(
        self, port: Port, io_loc: IntVector | None = None, io_buffer_size: int = 1024
    ) -> str:
        """Words of an output port for the host; the name that `SdkRuntime.receive` takes. They leave at the port's PE:
        `io_loc` and `io_buffer_size` have no effect."""
        return self._stream(port, False, io_loc, io_buffer_size)

    def _stream_at(self, loc: IntVector, color: Color, prefix: str, is_input: bool) -> str:
        name = f"{prefix}{color.get_global_name()}"
        self._colors[color.key] = {"name": color.name, "value": color.value}
        self._streams.append(
            {"x": loc.x, "y": loc.y, "color": color.key, "input": is_input, "name": name}
        )
        return name

    def create_input_stream_from_loc(self, loc: IntVector, color: Color, prefix: str = "") -> str:
        """Words of the host for the PE at `loc` of the layout, on a color whose routes a region has painted there."""
        return self._stream_at(loc, color, prefix, True)

    def create_output_stream_from_loc(self, loc: IntVector, color: Color, prefix: str = "") -> str:
        """Words for the host from the PE at `loc` of the layout, on a color whose routes a region has painted there."""
        return self._stream_at(loc, color, prefix, False)

    @staticmethod
    def _stack(children, origin, axis, size) -> int:
        if isinstance(children, CodeRegion):
            raise value_error(
                "wse.sdklayout.stack",
                f'{"hv"[axis]}stack takes a list of code regions, found region "{children._data["name"]}"',
                help=f"{'hv'[axis]}stack([first, second])",
            )
        if not children:
            return 0
        at = [children[0]._data["x"], children[0]._data["y"]]
        if origin is not None:
            at = [int(origin.x), int(origin.y)]
        first = at[axis]
        for r in children:
            r.place(*at)
            at[axis] += r._data[size]
        return at[axis] - first

    def hstack(self, children: _Sequence[CodeRegion], origin: IntVector | None = None) -> int:
        """Places the regions from left to right, beginning at the first one's place or at `origin`; returns the width
        of all."""
        return self._stack(children, origin, 0, "width")

    def vstack(self, children: _Sequence[CodeRegion], origin: IntVector | None = None) -> int:
        """Places the regions from top to bottom, as hstack does; returns the height of all."""
        return self._stack(children, origin, 1, "height")

    def compile(
        self,
        out_prefix: str | None = None,
        libs: _Sequence[str] = (),
        cslc_prefix: str = "",
        save_port_map: bool = False,
        f16_type: int = 0,
    ) -> Artifacts:
        """Compiles every region and lays the routes between ports. `libs`: folders that imports are looked up in;
        `f16_type`: the 16-bit floating-point format. `cslc_prefix` has no effect; with `save_port_map` the file
        port_map.json beside the program lists the ports' names."""
        from weft._wse_library import tool
        from weft.wse import FP16TYPE, SdkTarget

        import tempfile

        out = out_prefix or tempfile.mkdtemp(prefix="weft-wse-")
        tool(
            "compile_layout",
            {
                "out": out,
                "arch": "wse3" if self._platform.target == SdkTarget.WSE3 else "wse2",
                "colors": self._colors,
                "regions": [r._data for r in self._regions],
                "connections": self._connections,
                "streams": self._streams,
                "libs": [os.path.abspath(folder) for folder in libs],
                "fp16_format": FP16TYPE(f16_type).name.lower(),
            },
        )
        if save_port_map:
            with open(os.path.join(out, "port_map.json"), "w", encoding="utf-8") as f:
                json.dump({str(i): s["name"] for i, s in enumerate(self._streams)}, f, indent=1)
        return Artifacts(out)


_publish(__name__)
_publish_classes(__name__)
