# SPDX-License-Identifier: Apache-2.0
"""Building, checking and timing one candidate on a device."""

import weft
from weft import _core
from weft._errors import error

# Relative difference from the untuned program that rounding in another order may make.
_LIMITS = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 1e-4, "float64": 1e-10}


_SAMPLES = 3
_SAMPLE = 0.01  # seconds
_TURNS = 9  # samples of each of two schedules that are compared
_ONCE = 0.2  # seconds of a call that is timed once only
_LONG = 0.3  # seconds that the untuned program may take on the host
_MOST_DRIFT = 1.25  # more is no clock, but another program beside this one


def _calls(seconds):
    return max(1, min(1000, int(_SAMPLE / max(seconds, 1e-9))))


def _host_schedule(program):
    """A fast schedule for the expected results of a program that would take long as it is; None: as it is."""
    plain = weft.Schedule(program)
    if _core.expected_seconds(plain._core, "cpu", {}) < _LONG:
        return None
    made = _core.open_schedule(program._core, "cpu", lambda _, options: options[0])
    return None if made is None else weft.Schedule(made)


class Measurer:
    """Fixed random inputs of one function, their results by the untuned program, and the device."""

    def __init__(self, program, name, target, device, seed, arguments=None):
        import numpy as np

        self._target, self._name = target, name
        self.device = weft.device(device or target)
        plan = weft.build(program, target="cpu", tuned=False).plan(name)
        rng = np.random.default_rng(seed)
        self._inputs, self._written, self._reference = [], [], None
        # A card's clock falls as it works; on a host other programs disturb more than its clock does.
        self._follows_clock = _core.target_has_rules(target)
        if arguments is not None and len(arguments) != len(plan["params"]):
            raise error(
                "value",
                "tune.arguments",
                f'"{name}" has {len(plan["params"])} parameters, {len(arguments)} arguments were given',
                help="pass one array or number for each parameter of the function",
            )
        for at, p in enumerate(plan["params"]):
            given = None if arguments is None else arguments[at]
            if not p["tensor"] and given is not None:
                self._inputs.append((given, None))
                self._written.append(False)
                continue
            symbolic = not p["tensor"] or any(b >= 0 for b in p["binds"])
            if given is None and (symbolic or any(len(code) != 1 for code in p["shape"])):
                raise error(
                    "value",
                    "tune.symbolic",
                    f'parameter "{p["name"]}" of "{name}" has no constant extents',
                    help="tune the function for one set of extents, or give arguments=[...] of a call",
                )
            kind = p["dtype"]
            if given is not None and not p["written"]:
                data = given
            else:  # what was there before must not pass for a result
                shape = [code[0] for code in p["shape"]] if given is None else given.shape
                data = rng.integers(0, 5, shape) if "int" in kind else rng.random(shape)
                data = data > 0.5 if kind == "bool" else data
            self._inputs.append((data, kind))
            self._written.append(p["written"])
        self._program, self._exact = program, False
        self._expect(_host_schedule(program))

    def _expect(self, schedule):
        """Takes the host's results for the expected ones: of a schedule, or (None) of the program as it is."""
        self._exact = schedule is None
        module = weft.build(self._program if self._exact else schedule, target="cpu", tuned=False)
        self._expected = self._results(module, weft.device("cpu"))[1]

    def _arrays(self, device):
        import numpy as np

        out = []
        for data, kind in self._inputs:
            if kind is None:
                out.append(data)
            elif kind == "bfloat16":
                out.append(weft.asarray(data.astype(np.float32)).astype(kind).to(device))
            else:
                out.append(weft.asarray(data.astype(kind), device=device))
        return out

    def _results(self, module, device):
        return self._results_of(module[self._name], device)

    def _results_of(self, function, device=None):
        arrays = self._arrays(device or self.device)
        function(*arrays)
        return arrays, [
            (a.astype("float32") if kind == "bfloat16" else a).numpy()
            for a, written, (_, kind) in zip(arrays, self._written, self._inputs)
            if written
        ]

    def wrong(self, results):
        """The largest relative difference beyond what rounding explains; 0: none."""
        import numpy as np

        kinds = [kind for (_, kind), written in zip(self._inputs, self._written) if written]
        for got, want, kind in zip(results, self._expected, kinds):
            if kind in _LIMITS:
                a, b = got.astype(np.float64), want.astype(np.float64)
                worst = float(np.max(np.abs(a - b) / np.maximum(np.abs(b), 1), initial=0))
                if not worst <= _LIMITS[kind]:
                    return worst if worst == worst else float("inf")
            elif not np.array_equal(got, want):
                return float(np.max(np.abs(got.astype(np.float64) - want), initial=0)) or 1.0
        return 0.0

    def measure(self, schedule, best):
        """(seconds, cycles) of a call: builds, then as `timed`."""
        return self.timed(weft.build(schedule, target=self._target), schedule, best)

    def timed(self, module, schedule, best):
        """(seconds, cycles) of a call of a built module. `best`: a candidate far slower is timed once only.

        Raises weft.Error: what running raises, tune.wrong when the result is not the program's.
        """
        arrays, results = self._results(module, self.device)
        difference = self.wrong(results)
        if difference and not self._exact:  # which of the two is wrong says the program itself
            self._expect(None)
            difference = self.wrong(results)
        if difference:
            raise error(
                "internal",
                "tune.wrong",
                f'a schedule of "{self._name}" computes another result, off by {difference:.3g}',
                notes=["the steps:\n" + schedule.trace.as_python()],
            )
        function = module[self._name]
        once = function.time(*arrays, number=1, repeat=1)
        if once.cycles or once.min > _ONCE or (best is not None and once.min > 4 * best):
            return once.min, once.cycles
        number = _calls(once.min)
        if self._reference is None or not self._follows_clock:
            result = function.time(*arrays, number=number, repeat=_SAMPLES)
            self._reference = function, arrays, result.min
            return result.min, result.cycles
        return self._beside_reference(function, arrays, number), 0

    def beside(self, schedules):
        """For each schedule (least, median) seconds of a call, sampled in turns: what slows the one down slows the others,
        and each finds the caches as the others left them."""
        import statistics

        functions = [weft.build(s, target=self._target)[self._name] for s in schedules]
        arrays = [self._results_of(f)[0] for f in functions]
        calls = [_calls(5 * f.time(*a, number=1, repeat=1).min) for f, a in zip(functions, arrays)]
        times = [[] for _ in functions]
        for _ in range(_TURNS):
            for function, its, number, out in zip(functions, arrays, calls, times):
                out.append(function.time(*its, number=number, repeat=1).min)
        return [(min(t), statistics.median(t)) for t in times]

    def _beside_reference(self, function, arrays, number):
        """Seconds at the clock that the reference kernel was first measured at: both are sampled in turns, and what slows
        the one down slows the other."""
        reference, its_arrays, first = self._reference
        times, references = [], []
        for _ in range(_SAMPLES):
            references.append(reference.time(*its_arrays, number=_calls(first), repeat=1).min)
            times.append(function.time(*arrays, number=number, repeat=1).min)
        drift = first / max(min(references), 1e-12)
        return min(times) * min(max(drift, 1 / _MOST_DRIFT), _MOST_DRIFT)
