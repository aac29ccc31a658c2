# SPDX-License-Identifier: Apache-2.0
"""The SDK's runtime names over `weft.wse`."""

from weft.wse import (
    Color,
    Edge,
    MemcpyDataType,
    MemcpyOrder,
    Route,
    RoutingPosition,
    SdkLayout,
    SdkRuntime,
    SdkTarget,
    SimfabConfig,
    Task,
    get_edge_routing,
    get_platform,
    get_simulator,
    get_system,
)

__all__ = [
    "Color",
    "Edge",
    "MemcpyDataType",
    "MemcpyOrder",
    "Route",
    "RoutingPosition",
    "SdkLayout",
    "SdkRuntime",
    "SdkTarget",
    "SimfabConfig",
    "Task",
    "get_edge_routing",
    "get_platform",
    "get_simulator",
    "get_system",
]
