# SPDX-License-Identifier: Apache-2.0
"""Building and running: build, load, compiled modules."""

import time

from ._core import shown as _shown
from . import _core
from . import profiler as _profiler
from ._boundary import publish as _publish
from ._errors import error as _error
from .ir import IRModule, PrimFunc


def _tuned_program(*request):
    from .tuning.best import array_program

    return array_program(*request)


def _tuned_program_refused(*request):
    from .tuning.best import array_program_refused

    array_program_refused(*request)


def _tuned_decision(*request):
    from .tuning.best import array_decision

    return array_decision(*request)


_core.set_tuned_programs(_tuned_program, _tuned_program_refused, _tuned_decision)


class TimeResult:
    """Seconds per call: mean, median, min, max, stddev, results; on simulators simulated, with cycles and wall."""

    __slots__ = ("mean", "median", "min", "max", "stddev", "results", "cycles", "wall")

    def __init__(self, values):
        for name in self.__slots__:
            setattr(self, name, values[name])

    @property
    def std(self):
        """As stddev."""
        return self.stddev

    def __repr__(self):
        cycles = f", cycles={self.cycles:.0f}" if self.cycles else ""
        return f"TimeResult(median={self.median:.6g} s, min={self.min:.6g} s, n={len(self.results)}{cycles})"


class Function:
    """A compiled function. Outputs are arguments; arguments are checked (dtype, shape, device, alignment).

    On a card a call returns when its kernels are in order behind earlier work, as array operations do; reading a result waits, and so does device.synchronize().
    """

    def __init__(self, module, name):
        self._module, self._name, self._ready = module, name, {}

    def __repr__(self):
        return f"<weft function {self._name}>"

    def _on(self, args):
        for a in args:
            if isinstance(a, _core.NDArray):
                key = a.device.name
                break
        else:
            key = None
        ready = self._ready.get(key)
        if ready is None:
            ready = self._ready[key] = self._module.function(self._name, *args)
        return ready

    def __call__(self, *args):
        ready = self._on(args)
        if not _profiler.active():
            ready(*args)
            return
        ready.device.synchronize()
        start = time.perf_counter()
        ready(*args)
        ready.device.synchronize()
        _profiler.note(ready.device.name, "calls", self._name, start, time.perf_counter() - start)

    def time(self, *args, number=10, repeat=3, min_seconds=0.0):
        ready, start = self._on(args), time.perf_counter()
        result = TimeResult(
            ready.time(*args, number=number, repeat=repeat, min_seconds=min_seconds)
        )
        _profiler.note(ready.device.name, "timed", self._name, start, time.perf_counter() - start)
        return result


def _unpickled(data):
    return Module(_core.read_module(data))


class Module:
    """Kernels for one target and the host plans of their functions. ``m["main"](a, b, c)`` runs."""

    def __init__(self, core, notes=()):
        self._core = core
        self._functions = {}
        self._notes = list(notes)

    def __getitem__(self, name):
        if name not in self._functions:
            self._core.plan(name)  # raises when unknown, listing the functions
            self._functions[name] = Function(self._core, name)
        return self._functions[name]

    def __call__(self, *args):
        """Calls the only function, or the one named "main"."""
        names = self.functions
        self[names[0] if len(names) == 1 else "main"](*args)

    # A module never changes: a copy is the module itself, a pickle is its file.
    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return _unpickled, (self._core.serialize(),)

    @property
    def target(self):
        """The target's text."""
        return self._core.target

    @property
    def functions(self):
        """The names of the functions."""
        return self._core.functions

    def source(self):
        """C, CUDA, OpenCL, Metal or CSL text, LLVM text for cpu, assembly for qpu and vta."""
        return self._core.source()

    def plan(self, name="main"):
        """The host plan of a function: parameters with extents and strides, steps. Plain dicts and lists."""
        return self._core.plan(name)

    @property
    def notes(self):
        """What the compiler decided on its own, a list of sentences: a default schedule that was
        applied, a tuned schedule, storage that is shared, loops that are not vectorized and why."""
        return self._notes + self._core.notes

    def bytes(self):
        """The compiled binary."""
        return self._core.bytes()

    def save(self, path):
        """Writes the module to a file, atomically. weft.load reads it back."""
        self._core.save(str(path))

    def time_evaluator(self, name="main", dev=None, number=10, repeat=3, min_repeat_ms=0):
        """A function that times calls: ``m.time_evaluator("main", number=100)(a, b, c).median`` in seconds."""
        function = self[name]

        def evaluate(*args):
            return function.time(
                *args, number=number, repeat=repeat, min_seconds=min_repeat_ms / 1000
            )

        return evaluate

    def __repr__(self):
        return f"weft.Module(target={self.target!r}, functions={self.functions})"


def _tuned(program, target):
    """The program with schedules that weft.tune found, and notes. Costs one look at the file system without a database."""
    if not isinstance(program, (PrimFunc, IRModule)):
        return program, []  # a Schedule says itself what is wanted
    from .tuning.best import tuned

    return tuned(program, target)


def _text_of(target):
    if isinstance(target, _core.Device):
        return target.name
    if isinstance(target, str):
        return _known(target)
    raise _error(
        "dtype",
        "build.target",
        f"a target is text, got a {type(target).__name__}",
        help='for example weft.build(f, target="cpu")',
    )


def _known(target):
    """The target; refused with its name here where it is one that others use."""
    from ._names import TARGETS

    name = target.partition(":")[0]
    if name in TARGETS and name not in _core.targets():
        raise _error(
            "value",
            "target.unknown",
            f'there is no target "{name}"',
            notes=["targets: " + ", ".join(_core.targets())],
            help=f'did you mean "{TARGETS[name]}"?',
        )
    return target


def build(program, target="cpu", after=None, tuned=True, validate=None):
    """Compiles a PrimFunc, IRModule or Schedule for a target (its text, or a device).

    `tuned`: a PrimFunc or IRModule gets the schedules that weft.tune found for its functions and this target, when
    the user's database (weft.tuning.default_path()) holds any; Module.notes names them. False: never.
    `after(pass_name, function, seconds)` sees every pass. `validate`: True interprets each function before lowering and after every
    pass on the same random arrays and refuses a pass that changes a result (pass.changed); functions of more than
    1,000,000 statements, or of `validate` statements, are left out. None: as the environment variable WEFT_VALIDATE says, a
    number of statements. Raises weft.Error: target.unknown, a refusal of the
    target, or a lowering error with its context.
    """
    target = _text_of(target)
    if isinstance(validate, bool):
        validate = 1_000_000 * validate
    if validate is not None and not (isinstance(validate, int) and validate >= 0):
        raise _error(
            "value",
            "build.validate",
            f"validate is {_shown(validate)}",
            help="legal: None, True, False, or a number of statements",
        )
    program, notes = _tuned(program, target) if tuned else (program, [])
    see = after and (lambda name, function, seconds: after(name, PrimFunc(function), seconds))
    if not _profiler.active():
        return Module(_core.build(program, target, see, validate), notes)

    def watch(name, function, seconds):
        _profiler.note("compiler", "passes", name, time.perf_counter() - seconds, seconds)
        if see is not None:
            see(name, function, seconds)

    start = time.perf_counter()
    module = Module(_core.build(program, target, watch, validate), notes)
    _profiler.note("compiler", "build", f"build {target}", start, time.perf_counter() - start)
    return module


def accepts(program, target="cpu"):
    """None when `weft.build(program, target)` would take the program, else the weft.Error that says why not. Nothing is
    compiled.

    `program`: a PrimFunc, IRModule or Schedule; `target`: its text, or a device. Raises weft.ArgumentError for an
    unknown target or option (target.unknown, ...), weft.DTypeError for what is no target (build.target)."""
    target = _text_of(target)
    try:
        _core.check_accepts(program, target)
    except _core.Error as error:
        if isinstance(error, (ValueError, TypeError)):
            raise
        return error
    return None


def target_limits(target):
    """What a schedule may want to know of a target: {"vector_bytes": 64, "registers": 32, ...}."""
    return _core.target_limits(target)


def load(path, map_location=None, *, mmap_mode=None, weights_only=True):
    """What weft.save or Module.save wrote: an array, a dict, a module. Other files of arrays as load_arrays reads them.
    An open file is read where it stands.

    map_location: the device of the arrays. mmap_mode and weights_only are NumPy's and PyTorch's: files are read whole, and
    nothing in them is run. Raises weft.IOError when the file is damaged, foreign or of another version."""
    from ._saved_tree import restored
    from .io import holds_arrays, load_arrays

    if hasattr(path, "read") or holds_arrays(path):
        found = restored(load_arrays(path))
        if map_location is None:
            return found
        from .transforms.trees import tree_map

        return tree_map(lambda x: x.to(map_location) if hasattr(x, "to") else x, found)
    return Module(_core.load_module(str(path)))


_publish(__name__)
