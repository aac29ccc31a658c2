# SPDX-License-Identifier: Apache-2.0
"""Mistakes that only the whole program shows (queues, DSRs and tasks that nothing prepares), settings of the wrong kind,
operands of another type or length, and calls of host scripts with the wrong kind of argument."""

import numpy as np
import pytest
from test_csl_mistakes import DATA, HOST_LAYOUT, HOST_PE, WAY, V
from test_wse_programs import LAYOUT, START, wse

COLOR = (
    "const c = @get_color(3); const iq = @get_input_queue(3); const oq = @get_output_queue(3);\n"
)
ROUTE = "comptime { @set_local_color_config(c, .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ RAMP } } }); }\n"
IN = "const fin = @get_dsd(fabin_dsd, .{ .extent = 4, .fabric_color = c, .input_queue = iq });\n"
OUT = (
    "const fout = @get_dsd(fabout_dsd, .{ .extent = 4, .fabric_color = c, .output_queue = oq });\n"
)
QUEUES = (
    "comptime { @initialize_queue(iq, .{ .color = c }); @initialize_queue(oq, .{ .color = c }); }\n"
)
FABRIC = COLOR + ROUTE + QUEUES
HALVES = (
    "var h = @zeros([8]f16); const e = @get_dsd(mem1d_dsd, .{ .base_address = &h, .extent = 4 });\n"
)


def fabout(settings):
    return f"const fo = @get_dsd(fabout_dsd, .{{ .extent = 1, .fabric_color = c, .output_queue = oq, {settings} }});\n"


def config(settings):
    """A color's configuration whose routes are right."""
    return (
        "comptime { @set_local_color_config(@get_color(1), .{ .routes = .{ .rx = .{ EAST }, .tx = .{ RAMP } }, %s }); }\n"
        % settings
    )


BOTH, WSE2, WSE3 = ("wse2", "wse3"), ("wse2",), ("wse3",)

# Architectures, globals, body of the task, line of the mistake, slug, words of the text.
ERRORS = [
    (
        WSE3,
        COLOR + "task t(x: f32) void {} comptime { @bind_data_task(t, @get_data_task_id(iq)); }",
        "",
        2,
        "wse.csl.queue.uninitialised",
        ['data task "t" waits for input queue 3, and nothing initialises it'],
    ),
    (
        BOTH,
        FABRIC + "comptime { @initialize_queue(@get_input_queue(4), .{ .color = c }); }",
        "",
        4,
        "wse.csl.queue.shared",
        ["input queue 4 is given color 3, which input queue 3 takes already"],
    ),
    (
        BOTH,
        "comptime { @activate(@get_local_task_id(12)); }",
        "",
        1,
        "wse.csl.task.unbound",
        ["no task is bound to local task id 12"],
    ),
    (
        BOTH,
        "const r = @get_dsr(dsr_dest, 1);" + V,
        "@fmovs(r, 1.0); @fmovs(r, 2.0);",
        3,
        "wse.csl.dsr.unloaded",
        ["dsr_dest 1 is used, and nothing loads it", "@load_to_dsr(register, descriptor)"],
    ),
    (
        WSE2,
        COLOR + "task t(x: u8) void {} comptime { @bind_data_task(t, @get_data_task_id(c)); }",
        "",
        2,
        "wse.csl.task.arguments",
        ['an argument of data task "t" is u8; a wavelet holds one value of 32 bits or two of 16'],
    ),
    (
        BOTH,
        FABRIC + fabout(".control = 1.0"),
        "@mov32(fo, 3);",
        4,
        "wse.csl.type.mismatch",
        ["a descriptor's property is true or false, found 1"],
    ),
    (
        BOTH,
        FABRIC + fabout(".simd_mode = .{ .simd_16 = true }"),
        "@mov32(fo, 3);",
        4,
        "wse.csl.settings.unknown",
        ['simd_mode has no setting "simd_16"', "legal are simd_32, simd_32_or_64, simd_64"],
    ),
    (
        BOTH,
        FABRIC + fabout(".simd_mode = true"),
        "@mov32(fo, 3);",
        4,
        "wse.csl.type.mismatch",
        ["simd_mode is a struct such as .{ .simd_32 = true }, found bool"],
    ),
    (
        BOTH,
        FABRIC + fabout(".zero = .{ .third = true }"),
        "@mov32(fo, 3);",
        4,
        "wse.csl.settings.unknown",
        ['zero has no setting "third"', "legal are first_source, second_source"],
    ),
    (
        BOTH,
        FABRIC + IN + V,
        "@fmovs(d, fin, .{ .async = true, .on_control = true });",
        7,
        "wse.csl.type.mismatch",
        ["on_control is a struct such as .{ .terminate = true }, found bool"],
    ),
    (
        BOTH,
        FABRIC + IN + V,
        "@fmovs(d, fin, .{ .async = true, .on_control = .{ .terminate = 7 } });",
        7,
        "wse.csl.type.mismatch",
        ["terminate is true or false, found 7"],
    ),
    (
        BOTH,
        config(".switches = .{ .pos2 = .{ .rx = WEST } }"),
        "",
        1,
        "wse.csl.route.switch",
        ["switch position pos2 is given and pos1 is not"],
    ),
    (
        BOTH,
        config(".switches = .{ .pos1 = .{ .rx = WEST }, .current_switch_pos = 3 }"),
        "",
        1,
        "wse.csl.route.switch",
        ["current_switch_pos is 3, and the positions given are 0..1"],
    ),
    (
        WSE3,
        config(".switches = .{ .pos1 = .{ .rx = .{ EAST, WEST } } }"),
        "",
        1,
        "wse.csl.route.receive",
        ["exactly one direction, in each switch position"],
    ),
    (
        BOTH,
        config(".switches = .{ .pos1 = .{ .rx = WEST }, .ring_mode = 2 }"),
        "",
        1,
        "wse.csl.type.mismatch",
        ["ring_mode is true or false, found 2"],
    ),
    (
        BOTH,
        config(".switches = .{ .pop_mode = .{ .always_pop = true, .pop_on_advance = true } }"),
        "",
        1,
        "wse.csl.route.config",
        ["pop_mode is both always_pop and pop_on_advance; it is one of no_pop"],
    ),
    (
        BOTH,
        config(".filter = .{ .kind = .{ .range = true, .counter = true } }"),
        "",
        1,
        "wse.csl.route.config",
        ["the kind of a filter is both range and counter"],
    ),
    (
        BOTH,
        config(".filter = .{ .min_idx = 1, .max_idx = 3 }"),
        "",
        1,
        "wse.csl.route.config",
        ["a filter needs a kind", "legal are range, counter and sparse_counter"],
    ),
    (
        BOTH,
        config(".filter = .{ .kind = .{ .range = true }, .min_idx = 5, .max_idx = 3 }"),
        "",
        1,
        "wse.csl.route.config",
        ["the filter lets nothing through: min_idx 5 is above max_idx 3"],
    ),
    (
        BOTH,
        config('.teardown = "yes"'),
        "",
        1,
        "wse.csl.type.mismatch",
        ["teardown is true or false, found yes"],
    ),
    (
        BOTH,
        V + "var s: f16 = 0;",
        "@fadds(&s, 0.0, d);",
        3,
        "wse.csl.dsd.operand",
        ["@fadds writes f32, and the destination is a *f16", "give a variable of type f32"],
    ),
    (
        BOTH,
        V + "var s: u32 = 0;",
        "@fadds(&s, 0.0, d);",
        3,
        "wse.csl.dsd.operand",
        ["@fadds writes f32, and the destination is a *u32", "@ptrcast(*f32, p)"],
    ),
    (
        BOTH,
        V,
        "@fadds(d, 1.0, 2.0);",
        3,
        "wse.csl.dsd.operand",
        ["at most one source of @fadds is a scalar, and both are"],
    ),
    (
        BOTH,
        V + "var s: u16 = 0; fn f(x: f32) f32 { return x; }",
        "@map(f, d, &s);",
        3,
        "wse.csl.dsd.operand",
        ["@map writes f32, and the destination is a *u16"],
    ),
    (
        BOTH,
        "var x: u16 = 4;",
        "x = x / 0;",
        2,
        "wse.csl.comptime.division",
        ["division by zero"],
    ),
    (
        BOTH,
        "var x: u16 = 4; const n = 3;",
        "x = x % (n - 3);",
        2,
        "wse.csl.comptime.division",
        ["division by zero"],
    ),
]


def compiled(folder, globals_, body, arch, layout=LAYOUT, **options):
    (folder / "layout.csl").write_text(layout)
    (folder / "pe.csl").write_text(globals_ + START % body)
    return wse.compile_csl(str(folder / "layout.csl"), str(folder / "out"), arch=arch, **options)


@pytest.mark.parametrize(
    "arch,globals_,body,line,slug,words", [(a, *rest) for archs, *rest in ERRORS for a in archs]
)
def test_errors(arch, globals_, body, line, slug, words, tmp_path):
    with pytest.raises(wse.WseError) as caught:
        compiled(tmp_path, globals_, body, arch)
    text = str(caught.value)
    assert caught.value.code == slug, text
    assert f"pe.csl:{line}:" in text, text
    for w in words:
        assert w in text, text


@pytest.mark.parametrize(
    "globals_,body,slug,words",
    [
        (COLOR + ROUTE + "const fin = @get_dsd(fabin_dsd, .{ .extent = 4, .fabric_color = c });" + V, "@fmovs(d, fin);", "wse.queue.none", "no input queue takes colour 3"),
        (COLOR + ROUTE + IN + V, "@fmovs(d, fin);", "wse.queue.color", "input queue 3 is not initialised with colour 3"),
        (COLOR + ROUTE + OUT + V, "@fmovs(fout, d);", "wse.queue.color", "output queue 3 is not initialised"),
    ],
)  # fmt: skip
def test_queues_of_wse3_that_an_operation_meets_uninitialised(
    globals_, body, slug, words, tmp_path
):
    """Programs name queues in code that only other PEs run, so these are faults of the run, at the operation's place."""
    compiled(tmp_path, globals_, body, "wse3")
    runner = wse.SdkRuntime(str(tmp_path / "out"), memcpy_required=False)
    runner.load()
    with pytest.raises(wse.WseError) as caught:
        runner.run()
        runner.stop()
    assert caught.value.code == slug and words in str(caught.value), caught.value
    assert f"pe.csl:{globals_.count(chr(10)) + 2} (first_task)" in str(caught.value), caught.value


@pytest.mark.parametrize(
    "arch,globals_,prepared,slug",
    [
        (
            "wse3",
            COLOR
            + "task t(x: f32) void {} comptime { @bind_data_task(t, @get_data_task_id(iq)); }",
            "@initialize_queue(iq, .{ .color = c });",
            "wse.csl.queue.uninitialised",
        ),
        (
            "wse2",
            "const r = @get_dsr(dsr_dest, 1); fn never() void { @fmovs(r, 1.0); } comptime { @export_symbol(never); }\n",
            "@load_to_dsr(r, @get_dsd(mem1d_dsd, .{ .base_address = &x, .extent = 1 }));",
            "wse.csl.dsr.unloaded",
        ),
    ],
    ids=["queue", "register"],
)
def test_what_the_program_of_another_part_prepares(arch, globals_, prepared, slug, tmp_path):
    """One text has code for PEs of two parts. What no part prepares is an error."""
    layout = """layout { @set_rectangle(2, 1);
      @set_tile_code(0, 0, "pe.csl", .{ .right = false }); @set_tile_code(1, 0, "pe.csl", .{ .right = true });
      @export_name("never", fn()void); }"""
    pe = "param right: bool; var x = @zeros([1]f32);\n" + globals_
    files = {"layout.csl": layout, "pe.csl": pe + "comptime { if (right) " + prepared + " }"}
    for path, text in files.items():
        (tmp_path / path).write_text(text)
    wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"), arch=arch)
    (tmp_path / "pe.csl").write_text(pe)
    with pytest.raises(wse.WseError) as caught:
        wse.compile_csl(str(tmp_path / "layout.csl"), str(tmp_path / "out"), arch=arch)
    assert caught.value.code == slug


def test_a_color_is_configured_by_the_layout_or_by_its_program(tmp_path):
    layout = LAYOUT.replace(
        "}",
        " @set_color_config(0, 0, @get_color(3), .{ .routes = .{ .rx = .{ RAMP }, .tx = .{ EAST } } }); }",
    )
    with pytest.raises(wse.WseError) as caught:
        compiled(tmp_path, COLOR + ROUTE, "", "wse2", layout)
    assert caught.value.code == "wse.csl.route.twice", caught.value
    assert "pe.csl:2:" in str(caught.value), caught.value
    assert "by @set_color_config in the layout" in str(caught.value), caught.value


def test_memcpy_needs_its_columns(tmp_path):
    with pytest.raises(wse.WseError) as caught:
        compiled(tmp_path, "", "", "wse2", memcpy=True, fabric_dims=(9, 3))
    assert caught.value.code == "wse.csl.layout.fabric", caught.value
    assert "begins at 4,1 or further on, and --fabric-offsets is 0,0" in str(caught.value)


SHORT = (
    "var w = @zeros([8]f32); const l = @get_dsd(mem1d_dsd, .{ .base_address = &w, .extent = 8 });\n"
)

# Globals, body, line, slug, text. What is wrong in all likelihood but legal is a warning.
WARNINGS = [
    (HALVES, "@fadds(e, e, e);", 3, "dsd.element", "@fadds takes f32 here, and the descriptor was made over elements of type f16"),
    (V, "@faddh(d, d, d);", 3, "dsd.element", "@faddh takes f16 here, and the descriptor was made over elements of type f32"),
    (V, "@add16(d, d, 1);", 3, "dsd.element", "@add16 takes u16 here"),
    (V + "fn f(x: f16) f16 { return x; }", "@map(f, d, d);", 3, "dsd.element", "@map takes f16 here"),
    (V, "@increment_dsd_offset(d, 1, f32);", 3, "dsd.unused", "@increment_dsd_offset returns a new descriptor and changes none"),
    (V, "@set_dsd_length(d, 1);", 3, "dsd.unused", "write d = @set_dsd_length(d, ...);"),
    (V + SHORT, "@fadds(l, l, d);", 4, "dsd.length", "goes over 8 elements, as many as its first source has; this source has 4"),
    (V + SHORT, "@fadds(d, l, l);", 4, "dsd.length", "this destination has 4"),
    (
        'comptime { @set_local_color_config(@get_color(1), .{ .routes = .{ .tx = .{ RAMP } } }); }\n',
        "",
        1,
        "route.empty",
        "the color receives from no direction",
    ),
]  # fmt: skip


@pytest.mark.parametrize("globals_,body,line,slug,words", WARNINGS)
def test_warnings(globals_, body, line, slug, words, tmp_path):
    got = compiled(tmp_path, globals_, body, "wse2")["warnings"]
    assert f"[wse.csl.{slug}]" in got and f"pe.csl:{line}:" in got and words in got, got


@pytest.mark.parametrize(
    "globals_,body",
    [
        (V, "@fmovs(d, 1.0); @fadds(d, d, d);"),
        (HALVES, "@fmovs(e, e); @xor16(e, e, 1);"),
        (V + SHORT, "@fmovs(l, d);"),
        ("var u = @zeros([4]u32); const e = @get_dsd(mem1d_dsd, .{ .base_address = &u, .extent = 4 });\n", "@fadds(e, e, e);"),
    ],
)  # fmt: skip
def test_no_warnings(globals_, body, tmp_path):
    assert compiled(tmp_path, globals_, body, "wse2")["warnings"] == ""


def test_a_queue_of_another_color_is_a_warning_where_queues_change_colors(tmp_path):
    text = COLOR + ROUTE + "comptime { @initialize_queue(iq, .{ .color = @get_color(4) }); }\n"
    got = compiled(tmp_path, text + IN + V, "@fmovs(d, fin, .{ .async = true });", "wse2")[
        "warnings"
    ]
    assert "[wse.csl.queue.other_color]" in got, got


def test_parameters_of_a_function_type_may_have_names(tmp_path):
    layout = LAYOUT.replace("}", ' @export_name("f", fn(n: i16, x: f32)void); }')
    text = "fn f(n: i16, x: f32) void {} comptime { @export_symbol(f); } const p: *const fn (n: i16, x: f32) void = &f;\n"
    compiled(tmp_path, text, "p(1, 2.0);", "wse2", layout)


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    folder = tmp_path_factory.mktemp("host")
    (folder / "layout.csl").write_text(HOST_LAYOUT)
    (folder / "pe.csl").write_text(HOST_PE)
    out = str(folder / "out")
    wse.compile_csl(
        str(folder / "layout.csl"), out, memcpy=True, fabric_dims=(9, 3), fabric_offsets=(4, 1)
    )
    runner = wse.SdkRuntime(out)
    runner.load()
    runner.run()
    yield runner
    runner.stop()


def copy(region=(0, 0, 2, 1, 4), symbol=0, **how):
    return lambda r: r.memcpy_h2d(symbol, DATA, *region, **{**WAY, **how})


HOST_MISTAKES = [
    (copy(order=7), "wse.memcpy.order", "order is 7; legal are MemcpyOrder.ROW_MAJOR, MemcpyOrder.COL_MAJOR"),
    (copy(order=wse.MemcpyDataType.MEMCPY_32BIT), "wse.memcpy.order", "order is MemcpyDataType.MEMCPY_32BIT; legal"),
    (copy(order="ROW_MAJOR"), "wse.memcpy.order", "order is 'ROW_MAJOR'; legal"),
    (copy(data_type=wse.MemcpyOrder.COL_MAJOR), "wse.memcpy.data_type", "data_type is MemcpyOrder.COL_MAJOR; legal are MemcpyDataType.MEMCPY_16BIT"),
    (copy(data_type=np.float32), "wse.memcpy.data_type", "legal are MemcpyDataType.MEMCPY_16BIT"),
    (copy(streaming="no"), "wse.memcpy.flag", "streaming is 'no'; legal are True and False"),
    (copy(nonblock="no"), "wse.memcpy.flag", "nonblock is 'no'; legal are True and False"),
    (copy(region=(0.5, 0, 2, 1, 4)), "wse.memcpy.region", "memcpy_h2d: px is 0.5, not an integer"),
    (copy(region=("0", 0, 2, 1, 4)), "wse.memcpy.region", "memcpy_h2d: px is '0', not an integer"),
    (copy(symbol="a"), "wse.symbol.name", "the symbol is the name 'a'; its number is needed"),
    (copy(symbol=1.5), "wse.symbol.name", "the symbol or color is 1.5, not an integer"),
    (lambda r: r.get_id(3), "wse.symbol.name", "get_id takes a symbol's name, not 3"),
    (lambda r: r.launch(1.5, nonblock=False), "wse.symbol.name", "launch: the function is 1.5"),
    (lambda r: r.launch("add", None, 1, nonblock=False), "wse.launch.type", "argument 0 is None, which is no f32"),
    (lambda r: r.launch("add", [1.0, 1], nonblock=False), "wse.launch.type", "argument 0 is [1.0, 1], which is no f32"),
    (lambda r: r.launch("add", True, 1, nonblock=False), "wse.launch.type", "argument 0 is True, which is no f32"),
    (lambda r: r.launch("add", 1.0, 1, 2.5, nonblock=False), "wse.launch.arguments", '"add" takes 2 arguments (f32, u16) and was given 3'),
    (lambda r: r.launch("add", 1.0, 1, nonblock="no"), "wse.memcpy.flag", "launch: nonblock is 'no'"),
    (lambda r: r.is_task_done(99999), "wse.runtime.task", "task 99999 was never issued"),
    (lambda r: r.task_wait(None), "wse.runtime.task", "the task is None, not an integer"),
    (lambda r: r.receive(3, np.zeros(4, np.float32), 4), "wse.stream.port", "there is no port 3; the program has none"),
    (lambda r: wse.SdkRuntime(r._directory, engine="jit"), "wse.runtime.engine", "engine is 'jit'; legal are automatic, bytecode and native"),
    (lambda r: wse.SdkRuntime(r._directory, simfab_numthreads="four"), "wse.runtime.threads", "simfab_numthreads is 'four'; legal are 1 to 64"),
    (lambda r: wse.compile_csl("layout.csl", "out", arch="wse4"), "wse.cslc.arch", "arch is 'wse4'; legal are wse2 and wse3"),
    (lambda r: wse.compile_csl("layout.csl", "out", fp16_format="half"), "wse.cslc.fp16", "fp16_format is 'half'; legal are f16 and bf16 and cb16"),
    (lambda r: wse.compile_csl("layout.csl", "out", fabric_dims="9,3"), "wse.cslc.dims", "fabric_dims is '9,3'; two integers are needed: (9, 3)"),
    (lambda r: wse.compile_csl("layout.csl", "out", fabric_offsets=(4, 1.5)), "wse.cslc.dims", "fabric_offsets is 1.5, not an integer"),
]  # fmt: skip


@pytest.mark.parametrize("call,slug,words", HOST_MISTAKES)
def test_host_scripts(call, slug, words, host):
    with pytest.raises(wse.WseError) as caught:
        call(host)
    assert caught.value.code == slug, caught.value
    assert words in str(caught.value), caught.value


def test_numbers_that_stand_for_enumerations_are_legal(host):
    host.memcpy_h2d(0, DATA, *np.int64([0, 0, 2, 1, 4]), streaming=0, order=0, data_type=1)
    host.launch("add", np.ones(1, np.float32), np.uint16(1), nonblock=np.bool_(False))


def test_unknown_options_and_floats_in_halves_are_reported(host):
    with pytest.warns(RuntimeWarning, match="supress_simfab_trace: there is no such option"):
        wse.SdkRuntime(host._directory, supress_simfab_trace=True)
    with pytest.warns(RuntimeWarning, match="low halves of words, and the array is float32"):
        host.memcpy_h2d(0, DATA, 0, 0, 2, 1, 4, data_type=wse.MemcpyDataType.MEMCPY_16BIT)
