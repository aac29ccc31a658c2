# SPDX-License-Identifier: Apache-2.0
"""``weft compile``, ``weft run``: text files of programs through the compiler."""

import contextlib
import os
import sys

import weft
from weft import _core, _terminal
from weft._errors import error
from weft._whole_file import write_whole
from weft.cli import content


def _program(path):
    from weft import script

    name = os.fsencode(path).decode("utf-8", "backslashreplace")  # as errors print it
    return script.from_source(content(path).decode("utf-8"), name)


def _emit(text, output):
    if output:
        write_whole(output, [text.encode()])
    else:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")


@contextlib.contextmanager
def _traced(path, device=None):
    """Records the block's passes, calls and the device's units into `path`."""
    if not path:
        yield
        return
    with weft.profile(device=device) as profile:
        yield
    profile.save(path)


def compile_file(args):
    program, seen = _program(args.file), []

    def after(name, function, seconds):
        seen.append(name)
        if args.print_after in ("all", name):
            print(f"# after {name} ({seconds * 1e3:.2f} ms)\n{function.script()}", file=sys.stderr)

    if args.emit == "ir" and not args.print_after:
        _emit(program.script(), args.output)
        return
    with _traced(args.trace):
        module = weft.build(program, target=args.target, after=after if args.print_after else None)
    if args.print_after and args.print_after != "all" and args.print_after not in seen:
        raise error(
            "value",
            "cli.compile.pass",
            f'no pass of target "{args.target}" is called "{args.print_after}"',
            notes=["passes: " + ", ".join(dict.fromkeys(seen))],
        )
    if args.print_after and not seen:
        print(
            f'# target "{args.target}" lowers blocks as they are, without passes', file=sys.stderr
        )
    if args.emit == "binary":
        output = args.output or "out.weft-mod"
        module.save(output)
        if sys.stderr.isatty():
            print(f"wrote {output}", file=sys.stderr)
    elif args.emit == "ir":
        _emit(program.script(), args.output)
    elif args.emit == "asm":
        name = args.target.partition(":")[0]
        if name not in _core.assembler_targets():
            raise error(
                "value",
                "cli.compile.asm",
                f'target "{name}" has no assembly of its own',
                notes=["targets with one: " + ", ".join(_core.assembler_targets())],
                help="--emit source shows what is compiled",
            )
        _emit(module.source(), args.output)
    else:
        _emit(module.source(), args.output)


def random_values(plan, given, seed):
    """Random data for each parameter of a plan, in order: ("tensor", array) or ("scalar", number)."""
    import numpy

    rng, given, slots, out = numpy.random.default_rng(seed), dict(given), {}, []

    def take(parameter, what):
        if parameter["name"] in given:
            return given.pop(parameter["name"])
        raise error(
            "value",
            "cli.run.unset",
            f'{what} of parameter "{parameter["name"]}" is not known before the call',
            help=f"--set {parameter['name']}=" + ("1000" if what == "the value" else "100x200"),
        )

    def number(text, kind):
        try:
            return kind(text)
        except ValueError:
            raise error(
                "value", "cli.run.set", f'"{text}" is not a number', help="write --set NAME=NUMBER"
            ) from None

    for p in plan["params"]:
        if not p["tensor"]:
            value = number(
                take(p, "the value"), float if p["dtype"].startswith(("float", "bfloat")) else int
            )
            slots[p["slot"]] = value
    for p in plan["params"]:
        if not p["tensor"]:
            out.append(("scalar", slots[p["slot"]]))
            continue
        extents = None
        if p["name"] in given:
            extents = [number(e, int) for e in given.pop(p["name"]).split("x")]
            if len(extents) != len(p["shape"]):
                raise error(
                    "shape",
                    "cli.run.extents",
                    f'"{p["name"]}" has {len(p["shape"])} axes, {len(extents)} extents were given',
                    help="give one extent for each axis: --set NAME=4x8",
                )
        shape = []
        for axis, code in enumerate(p["shape"]):
            slot = p["binds"][axis]
            if slot >= 0 and slot not in slots:
                if extents is None:
                    extents = [number(e, int) for e in take(p, "the extents").split("x")]
                slots[slot] = extents[axis]
            shape.append(slots[slot] if slot >= 0 else _extent(code, slots))
        data = rng.integers(0, 5, shape) if "int" in p["dtype"] else rng.random(shape)
        if p["dtype"] == "bool":
            data = data > 0.5
        out.append(("tensor", data, p["dtype"], p["written"]))
    if given:
        known = ", ".join(p["name"] for p in plan["params"])
        raise error(
            "value",
            "cli.run.name",
            f'there is no parameter "{next(iter(given))}"',
            notes=[f"parameters: {known}"],
        )
    return out


_OPERATORS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "floormod": lambda a, b: a % b,
    "min": min,
    "max": max,
}


def _extent(code, slots):
    """A postfix expression of the plan: integers, "s3" for slots, operators."""
    stack = []
    for item in code:
        if isinstance(item, int):
            stack.append(item)
        elif item[0] == "s" and item[1:].isdigit():
            stack.append(slots[int(item[1:])])
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(_OPERATORS[item](left, right))
    return stack[0]


def arguments_of(values, device):
    import numpy

    out = []
    for value in values:
        if value[0] == "scalar":
            out.append(value[1])
            continue
        data, dtype = value[1], value[2]
        if dtype in ("bfloat16",):
            host = weft.asarray(data.astype(numpy.float32)).astype(dtype)
            out.append(host.to(device))
        else:
            out.append(weft.asarray(data.astype(dtype), device=device))
    return out


def worst_difference(values, mine, other):
    """The largest difference between the written arrays of two runs, relative to magnitudes above 1."""
    import numpy

    worst = 0.0
    for value, left, right in zip(values, mine, other):
        if value[0] == "tensor" and value[3]:
            a, b = left.numpy().astype(numpy.float64), right.numpy().astype(numpy.float64)
            if a.size:
                worst = max(worst, float(numpy.max(abs(a - b) / numpy.maximum(abs(b), 1))))
    return worst


def run_file(args):
    device = weft.device(args.device or args.target)
    with _traced(args.trace, device if device.available else None):
        if content(args.file)[:7] == b"WEFTMOD":
            module = weft.load(args.file)
        else:
            module = weft.build(_program(args.file), target=args.target)
        name = args.function or module.functions[0]
        plan = module.plan(name)
        values = random_values(plan, args.set, args.seed)
        arguments = arguments_of(values, device)
        if args.check:
            before = arguments_of(values, weft.device("ref"))
            weft.build(_program(args.file), target="ref")[name](*before)
            module[name](*arguments)
            worst = worst_difference(values, arguments, before)
            if not worst <= 1e-3:
                raise error(
                    "value",
                    "cli.run.check",
                    f"{name} on {device.name} differs from the reference by {worst:.3g}",
                    help="report the program: the two must agree",
                )
        device.clear_stats()
        result = module.time_evaluator(name, number=args.number, repeat=args.repeat)(*arguments)
    checked = f", error {worst:.2g} against ref" if args.check else ""
    print(_terminal.filled(f"{name} on {device.name}: {result}{checked}", "  "))
    if args.stats:
        for key, value in device.stats().items():
            print(f"  {key:<32} {value}")
