# SPDX-License-Identifier: Apache-2.0
"""Where a program of the wafer runs, with the Cerebras SDK's names; also in weft.wse."""

from __future__ import annotations

import enum
from typing import Any


class SdkTarget(enum.IntEnum):
    WSE2 = 2
    WSE3 = 3


class SimfabConfig:
    """How to simulate: threads, whether to keep traces and memory."""

    def __init__(
        self,
        num_threads: int = 1,
        suppress_trace: bool = True,
        dump_core: bool = False,
        core_path: str | None = None,
        **_: Any,
    ) -> None:
        self.num_threads, self.suppress_trace = num_threads, suppress_trace
        self.dump_core, self.core_path = dump_core, core_path


class FP16TYPE(enum.IntEnum):
    """The 16-bit floating-point format of a compilation."""

    F16 = 0
    BF16 = 1
    CB16 = 2


class Platform:
    """Where a program runs; only simulators exist."""

    def __init__(
        self, config: SimfabConfig | None, target: SdkTarget, cmaddr: str | None = None
    ) -> None:
        self.config, self.target, self.cmaddr = config or SimfabConfig(), SdkTarget(target), cmaddr

    def is_system(self) -> bool:
        return bool(self.cmaddr)

    def is_simulation(self) -> bool:
        return not self.cmaddr


def get_platform(
    cmaddr: str | None = None,
    config: SimfabConfig | None = None,
    target: SdkTarget = SdkTarget.WSE3,
) -> Platform:
    """A simulated platform; a non-empty `cmaddr` raises DeviceError when a runtime opens."""
    return Platform(config, target, cmaddr)


def get_simulator(
    config: SimfabConfig | None = None, target: SdkTarget = SdkTarget.WSE3
) -> Platform:
    return Platform(config, target)


def get_system(cmaddr: str | None) -> Platform:
    return Platform(None, SdkTarget.WSE3, cmaddr or "(unnamed system)")
