# SPDX-License-Identifier: Apache-2.0
"""hostile_calls.py JSON: calls public functions, constructors and methods with arguments that fight back (hostile_values.py), and
prints a line of JSON for each call from which something else came than a result, an error of weft or what the argument raised.
Calls that crash or never end take the process with them; the file `at` names the last call."""

import enum
import faulthandler
import importlib
import inspect
import json
import os
import random
import resource
import signal
import sys
import warnings

import hostile_values
import weft
from hostile_values import PLAIN, VALUES, Fight

MODULES = (
    "weft weft.random weft.linalg weft.fft weft.te weft.torch weft.init weft.io weft.ir weft.build weft.data weft.distributed weft.gguf "
    "weft.profiler weft.qpu weft.script weft.transforms weft.tuning weft.vta weft.vta.op weft.vta.net weft.vta.picture weft.wse "
    "weft.amp weft.autograd weft.cuda weft.distributions weft.nn weft.nn.functional weft.nn.init weft.nn.utils weft.nn.utils.rnn "
    "weft.nn.utils.parametrize weft.onnx weft.polynomial weft.special weft.optim weft.optim.lr_scheduler weft.schedule weft.func"
).split()
# What changes the state of the process, starts others, or waits for what it has started.
LEFT_OUT = (
    "use use_deterministic set_threads seed shutdown set_grad_enabled set_num_threads set_rng_state set_state manual_seed init local "
    "use_deterministic_algorithms set_printoptions seterr set_default_device set_default_dtype tune tune_operations connect shell show"
).split()
_kept = []


def schedule():
    _kept[:] = [weft.Schedule(hostile_values.program())]
    return _kept[0]


OBJECTS = {
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
            if (getattr(f, "__module__", "") or "").startswith(("weft", "_weft_wse")):
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
    words = parameters(found(name)())
    for _ in range(beside):
        numbers, kwargs = [rng.randrange(len(PLAIN)) for _ in range(rng.randint(1, 3))], {}
        args = [PLAIN[k] for k in numbers]
        value = rng.choice(list(VALUES))
        if words and rng.random() < 0.5:
            kwargs[rng.choice(words)] = VALUES[value]
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
