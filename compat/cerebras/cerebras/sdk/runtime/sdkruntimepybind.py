# SPDX-License-Identifier: Apache-2.0
"""The SDK's runtime names over `weft.wse`."""

from weft.wse import Platform as SdkExecutionPlatform
from weft.wse import (
    FP16TYPE,
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

from weft.wse_layout import Artifacts as SdkCompileArtifacts
from weft.wse_layout import CodeRegion
from weft.wse_layout import EdgeRoute as EdgeRouteInfo
from weft.wse_layout import Port as PortHandle

__all__ = [
    "FP16TYPE",
    "CodeRegion",
    "Color",
    "Edge",
    "EdgeRouteInfo",
    "PortHandle",
    "SdkCompileArtifacts",
    "SdkExecutionPlatform",
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
