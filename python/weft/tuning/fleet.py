# SPDX-License-Identifier: Apache-2.0
"""Devices that come and go during a search: hosts of `weft serve`, and workers of a Ray cluster."""

import dataclasses
import time

import weft
from weft._errors import error

from .apart import Apart
from .machines import replayed

_BETWEEN = 1.0  # seconds between two attempts to reach a host


@dataclasses.dataclass(frozen=True)
class Host:
    """A host that runs `weft serve`: weft.tune(main, "cpu", device=[Host("10.0.0.2", 9090), Host("10.0.0.3", 9090)]).

    When it goes away, its candidate is measured elsewhere and the host is called again for `patience` seconds; a host that answers takes part again.
    `options`: further arguments of weft.rpc.connect, such as {"key": ...}.
    """

    host: str
    port: int
    device: str = ""
    patience: float = 60.0
    options: dict = dataclasses.field(default_factory=dict)

    def open(self):
        """The device. Raises RPCError when the host does not answer."""
        import weft.rpc

        return weft.rpc.connect(self.host, self.port, **self.options).device(self.device)

    def measurer(self, program, name, target, seed, limit, arguments=None):
        return Apart(program, name, target, self.open(), seed, limit, arguments)


@dataclasses.dataclass(frozen=True)
class RayWorker:
    """A worker of a Ray cluster that measures on its own device: weft.tune(main, "cpu", device=[RayWorker()] * 4).

    ray.init() is the caller's. `options`: those of the actor, such as {"num_cpus": 1, "resources": {...}}. A worker that dies is started again within
    `patience` seconds. Raises DeviceError `tune.ray` where ray cannot be imported.
    """

    device: str = None
    patience: float = 60.0
    options: dict = dataclasses.field(default_factory=dict)

    def open(self):
        try:
            import ray  # noqa: F401
        except ImportError:
            raise error(
                weft.DeviceError, "tune.ray", "ray cannot be imported", help="pip install ray"
            ) from None
        return None

    def measurer(self, program, name, target, seed, limit, arguments=None):
        self.open()
        return _RayMeasurer(self, (program, name, target, self.device, seed, limit, arguments))


class _Actor:
    """In the worker's process."""

    def __init__(self, program, name, target, *work):
        self.program, self.target = program, target
        self.measurer = Apart(program, name, target, *work)

    def name(self):
        return self.measurer.device.name

    def measure(self, trace, best, allowed):
        schedule = replayed(self.program, self.target, trace)
        try:
            return self.measurer.measure(schedule, best, allowed), None
        except weft.Error as reason:
            return None, (str(reason), reason.code)


class _RayMeasurer:
    """As Apart, in a Ray worker."""

    def __init__(self, worker, work):
        import ray

        self._ray = ray
        self._actor = ray.remote(_Actor).options(**{"num_cpus": 1, **worker.options}).remote(*work)
        self.device = _Named(f"ray:{self._call(self._actor.name.remote())}")

    def _call(self, answer):
        try:
            return self._ray.get(answer)
        except self._ray.exceptions.RayError as problem:
            raise error(
                weft.DeviceError,
                "tune.worker",
                f"a Ray worker has ended: {str(problem)[:300]}",
                help="the host's Ray log says why; the measurements go on with the others",
            ) from None

    def measure(self, schedule, best, allowed=None):
        trace = str(schedule.trace.as_json())
        found, reason = self._call(self._actor.measure.remote(trace, best, allowed))
        if reason is not None:
            raised = weft.Error(reason[0])
            raised.code = reason[1]
            raise raised
        return found

    def stop(self):
        self.close()

    def close(self):
        self._ray.kill(self._actor)


@dataclasses.dataclass(frozen=True)
class _Named:
    name: str


def revived(make, patience, stop):
    """A new measurer, or None when the host has not answered for `patience` seconds or the search has ended."""
    end = time.monotonic() + patience
    while not stop.is_set() and time.monotonic() < end:
        try:
            return make()
        except weft.Error:
            stop.wait(_BETWEEN)
    return None
