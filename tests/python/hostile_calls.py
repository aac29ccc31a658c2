# SPDX-License-Identifier: Apache-2.0
"""hostile_calls.py JSON: calls public functions, constructors and methods with arguments that fight back (hostile_values.py), and
prints a line of JSON for each call from which something else came than a result, an error of weft or what the argument raised.
Calls that crash or never end take the process with them; the file `at` names the last call."""

import enum
import faulthandler
import functools
import importlib.util
import inspect
import json
import os
import pathlib
import random
import resource
import signal
import sys
import tempfile
import warnings

import hostile_values
import numpy as np
import weft
from hostile_values import PLAIN, VALUES, Fight

MODULES = (
    "weft weft.random weft.linalg weft.fft weft.te weft.torch weft.init weft.io weft.ir weft.build weft.data weft.distributed weft.gguf "
    "weft.profiler weft.qpu weft.script weft.transforms weft.tuning weft.vta weft.vta.op weft.vta.net weft.vta.picture weft.wse "
    "weft.rpc weft.wse_layout cerebras.sdk.sdk_utils cerebras.sdk.client cerebras.sdk.debug.debug_util cerebras.geometry.geometry "
    "weft.amp weft.autograd weft.cuda weft.distributions weft.nn weft.nn.functional weft.nn.init weft.nn.utils weft.nn.utils.rnn "
    "weft.nn.utils.parametrize weft.onnx weft.polynomial weft.special weft.optim weft.optim.lr_scheduler weft.schedule weft.func"
).split()
# What changes the state of the process, starts others, or waits for what it has started.
LEFT_OUT = (
    "use use_deterministic set_threads seed shutdown set_grad_enabled set_num_threads set_rng_state set_state manual_seed init local "
    "use_deterministic_algorithms set_printoptions seterr set_default_device set_default_dtype tune_operations shell show stop error value_error"
).split()
if importlib.util.find_spec("weft._rpc") is None:  # a build without gRPC
    MODULES.remove("weft.rpc")
_kept = []
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "compat" / "cerebras"))


def schedule():
    _kept[:] = [weft.Schedule(hostile_values.program())]
    return _kept[0]


KEY = "a key of enough bytes"
WAFER = """
param rx_color: color; param tx_color: color;
const rxq = @get_input_queue(2); const txq = @get_output_queue(3);
const in = @get_dsd(fabin_dsd, .{ .extent = 4, .input_queue = rxq });
const out = @get_dsd(fabout_dsd, .{ .extent = 4, .output_queue = txq });
const go = @get_local_task_id(10);
task main() void { @mov32(out, in, .{ .async = true }); }
comptime {
  @bind_local_task(main, go); @activate(go);
  @initialize_queue(rxq, .{ .color = rx_color }); @initialize_queue(txq, .{ .color = tx_color });
}
"""


@functools.cache
def server():
    """A server of this process, and a module file."""
    path = pathlib.Path(tempfile.mkdtemp()) / "m.weft-mod"
    weft.build(hostile_values.program(), "ref").save(path)
    return weft.rpc.Server("ref", port=0, key=KEY), path


def remote():
    served, path = server()
    out = weft.rpc.connect("127.0.0.1", served.port, key=KEY, deadline=5, run_deadline=5)
    out.upload(path)
    return out


def region(folder=None):
    """(a layout of one processing element, its code, its ports)."""
    from weft.wse_layout import Color, Edge, Route, RoutingPosition, SdkLayout

    folder = pathlib.Path(folder or tempfile.mkdtemp())
    (folder / "pe.csl").write_text(WAFER)
    layout = SdkLayout(weft.wse.SdkTarget.WSE3)
    code = layout.create_code_region(str(folder / "pe.csl"), "code", 1, 1)
    code.place(2, 1)
    rx, tx = Color("rx"), Color("tx")
    code.set_param_all("rx_color", rx)
    code.set_param_all("tx_color", tx)
    into = RoutingPosition().set_output([Route.RAMP])
    out = RoutingPosition().set_input([Route.RAMP])
    ports = (
        code.create_input_port(rx, Edge.LEFT, [into], 4),
        code.create_output_port(tx, Edge.RIGHT, [out], 4),
    )
    return layout, code, ports, folder


@functools.cache
def artifacts():
    layout, _, (rx, tx), folder = region()
    layout.create_input_stream(rx)
    layout.create_output_stream(tx)
    return layout.compile(out_prefix=str(folder / "out"))


def runtime():
    out = weft.wse.SdkRuntime(artifacts(), memcpy_required=False, cycle_limit=100000)
    out.load()
    out.run()
    return out


@functools.cache
def joined():
    weft.distributed.init()
    return weft.distributed.new_group([0])


OBJECTS = {
    "Remote": remote,
    "RemoteModule": lambda: remote().load_module("m.weft-mod"),
    "RemoteFunction": lambda: OBJECTS["RemoteModule"]()["main"],
    "Server": lambda: server()[0],
    "SdkLayout": lambda: region()[0],
    "CodeRegion": lambda: region()[1],
    "Port": lambda: region()[2][0],
    "RoutingPosition": lambda: weft.wse.RoutingPosition(),
    "SdkRuntime": runtime,
    "Group": joined,
    "NDArray": hostile_values.ones,
    "Tensor": hostile_values.variable,
    "SGD": lambda: weft.optim.SGD([hostile_values.variable()], lr=0.1),
    "StepLR": lambda: weft.optim.lr_scheduler.StepLR(OBJECTS["SGD"](), 3),
    "Linear": lambda: weft.nn.Linear(3, 4),
    "LSTM": lambda: weft.nn.LSTM(3, 4),
    "BatchNorm1d": lambda: weft.nn.BatchNorm1d(3),
    "Sequential": lambda: weft.nn.Sequential(weft.nn.ReLU()),
    "ParameterList": lambda: weft.nn.ParameterList([weft.nn.Parameter(hostile_values.ones())]),
    "Schedule": schedule,
    "BlockRef": lambda: schedule().get_block("b"),
    "PrimFunc": hostile_values.program,
    "IRModule": lambda: weft.IRModule({"main": hostile_values.program()}),
    "TeTensor": lambda: weft.te.placeholder((4,), "float32", "A"),
    "Module": lambda: weft.build(hostile_values.program(), "ref"),
    "Normal": lambda: weft.distributions.Normal(0.0, 1.0),
    "Generator": lambda: weft.random.Generator(3),
    "vmap": lambda: weft.vmap(lambda x: x + 1),
    "compile": lambda: weft.compile(lambda x: x + 1),
    "DataLoader": lambda: weft.data.DataLoader(weft.data.TensorDataset(hostile_values.ones())),
    "Polynomial": lambda: weft.polynomial.Polynomial([1.0, 2.0]),
}

if "weft.rpc" not in MODULES:
    for _name in ("Remote", "RemoteModule", "RemoteFunction", "Server"):
        del OBJECTS[_name]


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        outer, inner = name.rsplit(".", 1)
        return getattr(importlib.import_module(outer), inner)


def names():
    """Names of everything that is called: "module|function", "object.method"."""
    seen, out = set(), []
    for place in MODULES:
        for name in sorted(getattr(module(place), "__all__", None) or vars(module(place))):
            f = getattr(module(place), name, None)
            if name.startswith("_") or name in LEFT_OUT or not callable(f) or id(f) in seen:
                continue
            if isinstance(f, type) and (
                f.__module__ == "weft._core" or issubclass(f, (BaseException, enum.Enum, tuple))
            ):
                continue
            if (getattr(f, "__module__", "") or "").startswith(("weft", "_weft_wse", "cerebras")):
                seen.add(id(f))
                out.append(f"{place}|{name}")
    for name, make in OBJECTS.items():
        one = make()
        out += [
            f"{name}.{m}"
            for m in dir(one)
            if m[0] != "_" and m not in LEFT_OUT and callable(getattr(type(one), m, None))
        ]
        out += [f"{name}."] if callable(one) else []
    return out


def found(name):
    """What gives the callable anew for each call."""
    if "|" in name:
        place, function = name.split("|")
        return lambda: getattr(module(place), function)
    owner, method = name.split(".")
    return lambda: getattr(OBJECTS[owner](), method) if method else OBJECTS[owner]()


class Late(BaseException):
    pass


def late(*_):
    raise Late


def one_call(label, get, args, kwargs, options):
    os.pwrite(options["at"], label.encode("utf-8", "backslashreplace").ljust(400)[:400], 0)
    faulthandler.dump_traceback_later(
        30 * options["seconds"], exit=True
    )  # waits, or runs in C without a look at signals
    signal.setitimer(signal.ITIMER_PROF, options["seconds"])
    try:
        get()(*args, **kwargs)
        return True
    except weft.Error as error:
        if not error.code or not str(error).startswith("error["):
            yield_(label, f"an error without a code: {error}")
    except Fight:
        pass
    except Late:
        yield_(label, f"took more than {options['seconds']} s of processor time")
    except Exception as error:
        frames, trace = [], error.__traceback__
        while trace:
            frames.append(
                f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
            )
            trace = trace.tb_next
        # What functions of these files raised, or were called with, is their own.
        if not any(f.startswith("hostile_") for f in frames[1:]) and "<lambda>" not in str(error):
            yield_(
                label, f"{type(error).__name__}: {str(error)[:100]} ({' < '.join(frames[:-5:-1])})"
            )
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
    return False


def yield_(label, what):
    line = json.dumps([label, what]) + "\n"
    os.write(3, line.encode("utf-8", "backslashreplace"))


def words(n=4):
    return np.ones(n, np.uint32)


def te_product():
    a = weft.te.placeholder((4,), "float32", "A")
    return weft.te.create_prim_func([a, weft.te.compute((4,), lambda i: a[i] + 1.0, "B")])


def remote_array():
    held = remote().device()
    return weft.ones((4,), device=held)


# Arguments that these calls take; a hostile value stands in the place of one of them.
RIGHT = {
    "SdkRuntime.memcpy_h2d": lambda: ([0, words(), 0, 0, 1, 1, 4], {"streaming": False, "nonblock": False}),
    "SdkRuntime.memcpy_d2h": lambda: ([words(), 0, 0, 0, 1, 1, 4], {"streaming": False, "nonblock": False}),
    "SdkRuntime.memcpy_h2d_rowbcast": lambda: ([0, words(), 0, 0, 1, 1, 4], {"streaming": False}),
    "SdkRuntime.memcpy_h2d_colbcast": lambda: ([0, words(), 0, 0, 1, 1, 4], {"streaming": False}),
    "SdkRuntime.memcpy_h2d_stride": lambda: ([0, words(), 0, 0, 1, 1, 4, 1, 1], {"streaming": False}),
    "SdkRuntime.send": lambda: ([0, words()], {"n_wavelets": 4, "nonblock": True}),
    "SdkRuntime.receive": lambda: ([1, words()], {"n_wavelets": 4, "nonblock": True}),
    "SdkRuntime.receive_tofile": lambda: ([1, "words.bin", 4], {"nonblock": True}),
    "SdkRuntime.launch": lambda: (["f", 1, 2], {"nonblock": True}),
    "SdkRuntime.call": lambda: (["f", [1, 2]], {"nonblock": True}),
    "SdkRuntime.read_symbol": lambda: ([2, 1, "a", "uint16"], {}),
    "SdkRuntime.program_string": lambda: ([2, 1, 0], {}),
    "SdkRuntime.symbols": lambda: ([2, 1], {}),
    "SdkRuntime.heat_map": lambda: (["a.svg", "busy"], {}),
    "weft.wse|SdkRuntime": lambda: ([artifacts()], {"memcpy_required": False, "engine": "bytecode", "seed": 3, "router_depth": 4, "cycle_limit": 100, "simfab_numthreads": 1, "cmaddr": "", "task_order": "random"}),
    "weft.wse|compile_csl": lambda: (["pe.csl", (9, 3), (4, 1)], {"out": "out", "params": {"a": 1}}),
    "CodeRegion.set_param": lambda: ([0, 0, "rx_color", 3], {}),
    "CodeRegion.set_param_all": lambda: (["rx_color", 3], {}),
    "CodeRegion.place": lambda: ([2, 1], {}),
    "CodeRegion.create_input_port": lambda: ([weft.wse.Color("rx"), weft.wse.Edge.LEFT, [weft.wse.RoutingPosition()], 4], {}),
    "CodeRegion.paint": lambda: ([0, 0, weft.wse.Color("c"), [weft.wse.RoutingPosition()]], {}),
    "CodeRegion.paint_all": lambda: ([weft.wse.Color("c"), [weft.wse.RoutingPosition()]], {}),
    "SdkLayout.create_code_region": lambda: (["pe.csl", "code", 1, 1], {}),
    "SdkLayout.create_input_stream": lambda: ([region()[2][0]], {}),
    "SdkLayout.compile": lambda: ([], {"out_prefix": "out"}),
    "cerebras.sdk.sdk_utils|memcpy_view": lambda: ([words(), np.dtype("u4")], {}),
    "cerebras.sdk.sdk_utils|input_array_to_u32": lambda: ([words(), 1, 4], {}),
    "Remote.upload": lambda: (["a", b"abc", "b"], {}),
    "RemoteModule.time_evaluator": lambda: (["main"], {"number": 2, "repeat": 2, "min_repeat_ms": 1}),
    "RemoteFunction.": lambda: ([remote_array(), remote_array()], {}),
    "RemoteFunction.time": lambda: ([remote_array(), remote_array()], {"number": 1, "repeat": 2, "min_seconds": 0.0}),
    "weft.rpc|Server": lambda: (["ref"], {"host": "127.0.0.1", "port": 0, "key": KEY, "session_bytes": 1000, "sessions": 3, "modules": (), "tls_cert": None, "tls_key": None}),
    "weft.rpc|connect": lambda: (["127.0.0.1", server()[0].port], {"key": KEY, "tls_ca": None, "tls_name": "", "deadline": 1.0, "run_deadline": 1.0}),
    "weft|tune": lambda: ([te_product(), "ref"], {"trials": 1, "seconds": 1.0, "limit": 1.0, "seed": 1, "database": ":memory:"}),
    "weft.distributed|all_reduce": lambda: ([hostile_values.ones()], {}),
    "weft.distributed|broadcast": lambda: ([hostile_values.ones(), 0], {}),
}  # fmt: skip


def parameters(f):
    try:
        given = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return []
    return [
        p.name
        for p in given
        if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name != "self"
    ]


def calls(name, rng, alone, beside):
    """(label, args, kwargs) of makers: each drawn value alone, then beside plain arguments, by place and by name."""
    for value in rng.sample(list(VALUES), alone):
        yield value, [VALUES[value]], {}
    names_ = parameters(found(name)())
    for _ in range(beside if name in RIGHT else 0):
        args, kwargs = RIGHT[name]()
        at, value = rng.choice([*range(len(args)), *kwargs]), rng.choice(list(VALUES))
        (args if isinstance(at, int) else kwargs)[at] = VALUES[value]()
        yield (
            f"right but for {at}: {value}",
            [lambda a=a: a for a in args],
            {k: lambda v=v: v for k, v in kwargs.items()},
        )
    for _ in range(beside):
        numbers, kwargs = [rng.randrange(len(PLAIN)) for _ in range(rng.randint(1, 3))], {}
        args = [PLAIN[k] for k in numbers]
        value = rng.choice(list(VALUES))
        if names_ and rng.random() < 0.5:
            kwargs[rng.choice(names_)] = VALUES[value]
        else:
            at = rng.randrange(len(args))
            args[at], numbers[at] = VALUES[value], "it"
        yield f"{numbers} {[*kwargs]} {value}", args, kwargs


def main():
    options = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30,) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28,) * 2)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, late)
    options["at"] = os.open(options["at"], os.O_RDWR | os.O_CREAT)
    for name in options["names"]:
        rng, count = random.Random(f"{name} {options['seed']}"), 0
        for label, args, kwargs in calls(name, rng, options["alone"], options["beside"]):
            count += 1
            if name == options["names"][0] and count <= options["skip"]:
                continue
            made = [a() for a in args], {k: v() for k, v in kwargs.items()}
            one_call(f"{count} {name}: {label}", found(name), *made, options)
    os._exit(0)  # what a call left running is not waited for


if __name__ == "__main__":
    main()
