# SPDX-License-Identifier: Apache-2.0
"""What SdkLayout refuses: each rule of regions, colours, ports, streams and routes, by slug and text."""

import json

import numpy as np
import pytest

import weft  # noqa: E402
from present import wafer  # noqa: E402

wse = wafer()

from weft.wse_layout import (  # noqa: E402
    Color,
    Edge,
    IntRectangle,
    IntVector,
    Route,
    RoutingPosition,
    SdkLayout,
    get_edge_routing,
)


class Sketch:
    """A layout of regions of an empty program, and short names of what tests do with them."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "pe.csl").write_text("fn f() void {}\n")
        self.layout = SdkLayout(wse.SdkTarget.WSE3)

    def region(self, name="r", width=1, height=1, at=(0, 0)):
        out = self.layout.create_code_region(str(self.folder / "pe.csl"), name, width, height)
        out.place(*at)
        return out

    def input(self, region, color="in", size=4, edge=Edge.LEFT, count=1):
        color = color if isinstance(color, Color) else Color(color)
        positions = [RoutingPosition().set_output([Route.RAMP]) for _ in range(count)]
        return region.create_input_port(color, edge, positions, size)

    def output(self, region, color="out", size=4, edge=Edge.RIGHT, count=1):
        color = color if isinstance(color, Color) else Color(color)
        positions = [RoutingPosition().set_input([Route.RAMP]) for _ in range(count)]
        return region.create_output_port(color, edge, positions, size)

    def use(self, region, *colors):
        for color in colors:
            region.set_param_all(color.name, color)


def no_regions(s):
    pass


def color_number(s):
    s.use(s.region(), Color("red", 24))


def too_many_colors(s):
    s.use(s.region(), *(Color(f"c{k}") for k in range(25)))


def colors_of_connected_ports(s):
    a, b = s.region("a"), s.region("b", at=(3, 0))
    s.layout.connect(s.output(a, Color("x", 3)), s.input(b, Color("y", 4)))


def empty_region(s):
    s.region("flat", 0, 3)


def two_names(s):
    s.region("same")
    s.region("same", at=(4, 4))


def negative_place(s):
    s.region("out", at=(-1, 2))


def overlap(s):
    s.region("a", 2, 2)
    s.region("b", 2, 2, at=(1, 1))


def paint_outside(s):
    s.region("a", 2, 2).paint_range(
        IntRectangle(IntVector(0, 0), IntVector(3, 1)), Color("c"), [RoutingPosition()]
    )


def no_pe_between_corners(s):
    s.region("a", 4, 2).set_param_range(IntRectangle(IntVector(2, 0), IntVector(1, 1)), "k", 3)


def rectangle_of_one_corner(s):
    s.region("a", 4, 2).set_param_range(IntRectangle(IntVector(2, 0)), "k", 3)


def paint_nothing(s):
    s.region("a").paint_all(Color("c"), [])


def port_positions(s):
    s.input(s.region("a"), count=5)


def port_of_both_ways(s):
    both = RoutingPosition().set_input([Route.EAST]).set_output([Route.RAMP])
    s.region("a").create_input_port(Color("c"), Edge.LEFT, [both], 4)


def connect_two_outputs(s):
    a, b = s.region("a"), s.region("b", at=(3, 0))
    s.layout.connect(s.output(a), s.output(b))


def connect_sizes(s):
    a, b = s.region("a"), s.region("b", at=(3, 0))
    s.layout.connect(s.output(a, size=4), s.input(b, size=5))


def connect_twice(s):
    a, b = s.region("a"), s.region("b", at=(3, 0))
    out = s.output(a)
    s.layout.connect(out, s.input(b))
    s.layout.connect(out, s.input(b, "more"))


def connect_counts_of_pes(s):
    a, b = s.region("a", 1, 2), s.region("b", 1, 3, at=(3, 0))
    s.layout.connect(s.output(a), s.input(b))


def stream_of_the_other_way(s):
    s.layout.create_input_stream(s.output(s.region("a")))


def stream_of_a_used_port(s):
    port = s.input(s.region("a"))
    s.layout.create_input_stream(port)
    s.layout.create_input_stream(port)


def stream_of_two_pes(s):
    s.layout.create_input_stream(s.input(s.region("a", 1, 2)))


def ports_of_one_name(s):
    region = s.region("a")
    s.input(region)
    s.input(region, edge=Edge.TOP)


def stream_from_nowhere(s):
    s.region("a")
    s.layout.create_input_stream_from_loc(IntVector(1, 0), Color("c"))


def stream_at_an_unpainted_place(s):
    s.region("a")
    s.layout.create_output_stream_from_loc(IntVector(0, 0), Color("c"), "host_")


def stream_without_a_side(s):
    color = Color("c")
    s.region("a").paint_all(
        color, [RoutingPosition().set_input([Route.RAMP]).set_output([Route.RAMP])]
    )
    s.layout.create_input_stream_from_loc(IntVector(0, 0), color)


def stream_io_place(s):
    s.layout.create_input_stream(s.input(s.region("a")), (0, 0))


def stream_io_buffer(s):
    s.layout.create_output_stream(s.output(s.region("a")), None, 0)


def symbol_type(s):
    s.region("a").set_symbol_all("v", np.zeros((1, 4)), 4, 1)


def symbol_size(s):
    s.region("a").set_symbol_all("v", np.zeros(5, "f4"), 4, 1)


def symbol_division(s):
    s.region("a", 3, 1).set_symbol_all("v", np.zeros((1, 4), "f4"), 4, 1)


def fraction(s):
    s.region("a").set_param_all("n", 2.5)


def fraction_of_a_place(s):
    IntVector(1.5, 0)


def platform(s):
    SdkLayout("fabric.json")


def no_way(s):
    # A wall of PEs that use the colour already, from the upper edge to below the free row.
    color = Color("c", 5)
    a, b = s.region("a", 1, 3), s.region("b", 1, 3, at=(2, 0))
    wall = s.region("wall", 1, 4, at=(1, 0))
    wall.paint_all(color, [RoutingPosition().set_input([Route.RAMP])])
    s.region("low", 1, 1, at=(0, 4)).paint_all(color, [RoutingPosition()])
    s.region("lower", 1, 1, at=(1, 4)).paint_all(color, [RoutingPosition()])
    s.region("corner", 1, 1, at=(0, 3)).paint_all(color, [RoutingPosition()])
    s.layout.connect(s.output(a, color), s.input(b, color))


@pytest.mark.parametrize(
    ("make", "slug", "words"),
    [
        (no_regions, "empty", "the layout has 0 code regions"),
        (color_number, "color", 'colour "red" has the value 24; there are 24'),
        (too_many_colors, "color", 'needs more than 24 colours; "c24" gets none'),
        (colors_of_connected_ports, "color", "the colours x = 3 and y = 4"),
        (empty_region, "region", 'region "flat" has 0 x 3 PEs'),
        (two_names, "region", 'there are two regions named "same"'),
        (negative_place, "place", 'region "out" is placed at (-1, 2)'),
        (overlap, "overlap", 'regions "a" and "b" overlap at (1, 1)'),
        (paint_outside, "paint", '(0, 0) to (3, 1) leaves region "a" of 2 x 2'),
        (no_pe_between_corners, "rectangle", "no PE lies between the corners (2, 0) and (1, 1)"),
        (rectangle_of_one_corner, "rectangle", "wants two corners, or an origin and dims"),
        (paint_nothing, "paint", "has 0 positions; legal are 1 to 4"),
        (port_positions, "port", "port a_in has 5 positions; legal are 1 to 4"),
        (port_of_both_ways, "port", "an input port must leave its inputs to the compiler"),
        (connect_two_outputs, "connect", "wants an output and an input port, not a_out and b_out"),
        (connect_sizes, "connect", "port a_out has size 4, port b_in has 5"),
        (connect_twice, "connect", "port a_out is already connected"),
        (connect_counts_of_pes, "connect", "port a_out has 2 PEs, port b_in has 3"),
        (stream_of_the_other_way, "stream", "an input stream cannot use port a_out"),
        (stream_of_a_used_port, "stream", "port a_in is already connected"),
        (stream_of_two_pes, "stream", "a stream needs a port of one PE; a_in has 2"),
        (ports_of_one_name, "port", "there are two ports named a_in; a prefix tells them apart"),
        (stream_from_nowhere, "stream", 'c at (1, 0) on colour "c": no region has that place'),
        (
            stream_at_an_unpainted_place,
            "stream",
            'stream host_c at (0, 0) on colour "c": its region does not paint the colour there',
        ),
        (stream_without_a_side, "stream", "the painted routes receive from no side"),
        (stream_io_place, "stream", "io_loc is (0, 0); legal are an IntVector and None"),
        (stream_io_buffer, "stream", "io_buffer_size is 0; it is at least 1"),
        (symbol_type, "symbol", "elements are float64; legal are int32, uint32, float32, int16"),
        (symbol_size, "symbol", "the array has 5 elements, width 4 times height 1 are 4"),
        (symbol_division, "symbol", "1 x 4 elements do not divide over 1 x 3 PEs"),
        (fraction, "integer", 'region "a": parameter "n" is 2.5; legal are integers'),
        (fraction_of_a_place, "integer", "IntVector: x is 1.5"),
        (platform, "platform", "files that describe a fabric are not read"),
        (
            no_way,
            "route",
            "there is no way for colour 5 from port a_c at (0, 0) to port b_c at (2, 0)",
        ),
    ],
)
def test_refusals(make, slug, words, tmp_path):
    sketch = Sketch(tmp_path)
    with pytest.raises(weft.Error) as caught:
        make(sketch)
        sketch.layout.compile(str(tmp_path / "out"))
    assert caught.value.code == f"wse.sdklayout.{slug}"
    assert words in str(caught.value)


# Each slug in full, for whoever searches for one.
SLUGS = {
    "wse.sdklayout.color",
    "wse.sdklayout.connect",
    "wse.sdklayout.empty",
    "wse.sdklayout.integer",
    "wse.sdklayout.overlap",
    "wse.sdklayout.paint",
    "wse.sdklayout.place",
    "wse.sdklayout.platform",
    "wse.sdklayout.rectangle",
    "wse.sdklayout.port",
    "wse.sdklayout.region",
    "wse.sdklayout.route",
    "wse.sdklayout.stream",
    "wse.sdklayout.symbol",
}


def test_every_rule_is_here():
    import test_wse_layout_refusals as here

    mark = next(m for m in here.test_refusals.pytestmark if m.name == "parametrize")
    assert {f"wse.sdklayout.{row[1]}" for row in mark.args[1]} == SLUGS


PAIR = """
param c: color; param d: color;
const h = @import_module("halve.csl");
const iq = @get_input_queue(2); const oq = @get_output_queue(3);
export var x = @zeros([2]@fp16());
task go() void {
  x[0] = h.half(3.0);
  @mov32(@get_dsd(fabout_dsd, .{ .extent = 2, .fabric_color = d, .output_queue = oq }), @get_dsd(fabin_dsd, .{ .extent = 2, .fabric_color = c, .input_queue = iq }), .{ .async = true });
}
comptime {
  @bind_local_task(go, @get_local_task_id(8)); @activate(@get_local_task_id(8));
  @initialize_queue(iq, .{ .color = c }); @initialize_queue(oq, .{ .color = d });
}
"""


def test_streams_at_places_libraries_and_formats(tmp_path):
    """Host streams that use painted routes, an import from a library folder, bf16, files of what arrives."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/halve.csl").write_text(
        "fn half(v: @fp16()) @fp16() { return v * @as(@fp16(), 0.5); }\n"
    )
    (tmp_path / "pe.csl").write_text(PAIR)
    layout = SdkLayout(
        wse.get_platform(None, wse.SimfabConfig(), wse.SdkTarget.WSE3), msg_level="INFO"
    )
    region = layout.create_code_region(str(tmp_path / "pe.csl"), "r", 1, 1)
    region.place(np.int64(3), 2)
    c, d = Color("c"), Color("d")
    for color, position in (
        (c, RoutingPosition().add_input(Route.NORTH).add_output(Route.RAMP)),
        (d, RoutingPosition().add_input(Route.RAMP).add_output(Route.EAST)),
    ):
        region.set_param_all(color)
        region.paint_all(color, [position])
    assert [position.get_input(), position.get_output()] == [[Route.RAMP], [Route.EAST]]
    source = layout.create_input_stream_from_loc(IntVector(3, 2), c, "from_")
    sink = layout.create_output_stream_from_loc(IntVector(3, 2), d)
    assert (source, sink) == ("from_c", "d")
    made = layout.compile(
        str(tmp_path / "out"), [str(tmp_path / "lib")], "", True, wse.FP16TYPE.BF16
    )
    assert json.loads((tmp_path / "out/port_map.json").read_text()) == {"0": "from_c", "1": "d"}
    runner = wse.SdkRuntime(made, memcpy_required=False)
    runner.load()
    runner.run()
    with pytest.raises(weft.Error) as caught:
        runner.receive_tofile(sink, tmp_path / "words")
    assert caught.value.code == "wse.stream.tofile"
    assert "how many wavelets to wait for is not given" in str(caught.value)
    runner.receive_tofile(sink, tmp_path / "words", 2, nonblock=True)
    runner.send(source, np.array([7, 9], np.uint32), 2, nonblock=False)
    runner.stop()
    assert list(np.fromfile(tmp_path / "words", np.uint32)) == [7, 9]
    assert list(runner.read_symbol(3, 2, "x", "uint16")) == [0x3FC0, 0]  # 1.5
    with pytest.raises(weft.Error) as caught:
        runner.dump_elf_core("core")
    assert caught.value.code == "wse.runtime.elf" and "not ELF files here" in str(caught.value)


def test_colours_without_a_number_get_those_that_are_free(tmp_path):
    names = [f"c{k}" for k in range(6)]
    (tmp_path / "pe.csl").write_text(
        "".join(f"param {name}: color;\n" for name in names)
        + "export var ids = @zeros([6]u16);\n"
        + "task main() void {\n"
        + "".join(f"  ids[{k}] = @get_int({name});\n" for k, name in enumerate(names))
        + "}\ncomptime { @bind_local_task(main, @get_local_task_id(9)); @activate(@get_local_task_id(9)); }\n"
    )
    platform = wse.get_platform(None, wse.SimfabConfig(), wse.SdkTarget.WSE3)
    layout = SdkLayout(platform)
    region = layout.create_code_region(str(tmp_path / "pe.csl"), "r", 1, 1)
    region.place(1, 1)
    for name, value in zip(names, (None, 1, 0, None, 3, None)):
        region.set_param_all(name, Color(name) if value is None else Color(name, value))
    runner = wse.SdkRuntime(layout.compile(str(tmp_path / "out")), platform, memcpy_required=False)
    runner.load()
    runner.run()
    runner.stop()
    found = runner.read_symbol(1, 1, "ids", np.uint16).tolist()
    assert [found[1], found[2], found[4]] == [1, 0, 3]
    assert len(set(found)) == 6 and sorted(found) == [0, 1, 2, 3, 4, 5]


ONE_WORD = """
param c: color; param role: u16; param id: u32;
const iq = @get_input_queue(2); const oq = @get_output_queue(3);
export var got = @zeros([1]u32); var word = @zeros([1]u32);
const out = @get_dsd(fabout_dsd, .{ .extent = 1, .fabric_color = c, .output_queue = oq });
const in = @get_dsd(fabin_dsd, .{ .extent = 1, .fabric_color = c, .input_queue = iq });
const sent = @get_dsd(mem1d_dsd, .{ .base_address = &word, .extent = 1 });
const kept = @get_dsd(mem1d_dsd, .{ .base_address = &got, .extent = 1 });
task main() void {
  if (role == 1) { word[0] = id; @mov32(out, sent, .{ .async = true }); }
  if (role == 2) { @mov32(kept, in, .{ .async = true }); }
}
comptime {
  @bind_local_task(main, @get_local_task_id(9)); @activate(@get_local_task_id(9));
  @initialize_queue(iq, .{ .color = c }); @initialize_queue(oq, .{ .color = c });
}
"""
# Where words come from, where they go, the ways in and out.
WAYS = {
    "east": (Edge.LEFT, Edge.RIGHT, Route.WEST, Route.EAST),
    "west": (Edge.RIGHT, Edge.LEFT, Route.EAST, Route.WEST),
    "south": (Edge.TOP, Edge.BOTTOM, Route.NORTH, Route.SOUTH),
    "north": (Edge.BOTTOM, Edge.TOP, Route.SOUTH, Route.NORTH),
}


def on_edge(edge, width, height):
    return {
        Edge.LEFT: [(0, y) for y in range(height)],
        Edge.RIGHT: [(width - 1, y) for y in range(height)],
        Edge.TOP: [(x, 0) for x in range(width)],
        Edge.BOTTOM: [(x, height - 1) for x in range(width)],
    }[edge]


def words(layout, platform, folder):
    runner = wse.SdkRuntime(layout.compile(str(folder / "out")), platform, memcpy_required=False)
    runner.load()
    runner.run()
    runner.stop()
    return lambda x, y: int(runner.read_symbol(x, y, "got", np.uint32)[0])


def region_of_words(layout, folder, name, color, width, height, roles, at):
    region = layout.create_code_region(str(folder / "pe.csl"), name, width, height)
    region.set_param_all("c", color)
    for x in range(width):
        for y in range(height):
            region.set_param(IntVector(x, y), "role", roles.get((x, y), 0))
            region.set_param(IntVector(x, y), "id", 100 + 10 * x + y)
    region.place(*at)
    return region


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("width, height", [(3, 4), (4, 2)])
def test_edges_of_a_painted_region_route_as_they_are_told(way, width, height, tmp_path):
    (tmp_path / "pe.csl").write_text(ONE_WORD)
    start, end, come, go = WAYS[way]
    first, last = on_edge(start, width, height), on_edge(end, width, height)
    platform = wse.get_platform(None, wse.SimfabConfig(), wse.SdkTarget.WSE3)
    layout, color = SdkLayout(platform), Color("c", 5)
    roles = {**dict.fromkeys(first, 1), **dict.fromkeys(last, 2)}
    region = region_of_words(layout, tmp_path, "r", color, width, height, roles, (2, 3))
    through, begin, stop = (RoutingPosition() for _ in range(3))
    through.set_input([come]).set_output([go])
    begin.set_input([Route.RAMP]).set_output([go])
    stop.set_input([come]).set_output([Route.RAMP])
    region.paint_all(color, [through], [get_edge_routing(start, [begin]), get_edge_routing(end, [stop])])  # fmt: skip
    got = words(layout, platform, tmp_path)
    for (x0, y0), (x, y) in zip(first, last):
        assert got(2 + x, 3 + y) == 100 + 10 * x0 + y0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("width, height", [(3, 2), (1, 4), (2, 1)])
def test_ports_on_each_edge_are_connected_pe_by_pe(way, width, height, tmp_path):
    (tmp_path / "pe.csl").write_text(ONE_WORD)
    start, end, _, _ = WAYS[way]
    out, into = on_edge(end, width, height), on_edge(start, width, height)
    x, y = {"east": (1, 0), "west": (-1, 0), "south": (0, 1), "north": (0, -1)}[way]
    platform = wse.get_platform(None, wse.SimfabConfig(), wse.SdkTarget.WSE3)
    layout, ports = SdkLayout(platform), []
    places = [(7, 6), (7 + x * (width + 2), 6 + y * (height + 1))]
    for name, at, role, edge in (("a", places[0], 1, end), ("b", places[1], 2, start)):
        color = Color(f"c{name}")
        roles = dict.fromkeys(on_edge(edge, width, height), role)
        region = region_of_words(layout, tmp_path, name, color, width, height, roles, at)
        position = RoutingPosition()
        if role == 1:
            position.set_input([Route.RAMP])
            ports.append(region.create_output_port(color, edge, [position], 1))
        else:
            position.set_output([Route.RAMP])
            ports.append(region.create_input_port(color, edge, [position], 1))
    layout.connect(*ports)
    got = words(layout, platform, tmp_path)
    for (x0, y0), (x1, y1) in zip(out, into):
        assert got(places[1][0] + x1, places[1][1] + y1) == 100 + 10 * x0 + y0


def test_rectangles_by_corners_and_by_size():
    by_corners = IntRectangle(IntVector(2, 1), IntVector(5, 3))
    assert by_corners == IntRectangle(origin=IntVector(2, 1), dims=IntVector(3, 2))
    assert by_corners == IntRectangle(IntVector(2, 1), dims=IntVector(3, 2))
