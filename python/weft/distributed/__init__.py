# SPDX-License-Identifier: Apache-2.0
"""Several processes on one job: collectives, parallel training, sharded arrays.

    from weft import distributed as dist
    dist.init()                       # torchrun, mpirun or srun has started the processes
    y = dist.all_reduce(x, op="sum")  # arrays of any device

Arrays on CUDA cards travel through NCCL, those in host memory through MPI (mpi4py) or, under torchrun, Gloo; arrays of other devices go through host
memory. Without a launcher the job is one process, and collectives give their argument back.
"""

from .._boundary import publish as _publish
from .._boundary import publish_classes as _publish_classes
from .checkpoint import load_sharded, save_sharded
from .collectives import (
    Work,
    all_gather,
    all_reduce,
    all_to_all,
    barrier,
    broadcast,
    recv,
    reduce_scatter,
    send,
)
from .data_parallel import DataParallel
from .group import (
    Group,
    device,
    init,
    is_initialized,
    local_rank,
    new_group,
    rank,
    shutdown,
    size,
)
from .layers import (
    ColumnParallelLinear,
    ParallelAttention,
    ParallelEmbedding,
    RowParallelLinear,
    SyncBatchNorm,
)
from .mesh import Mesh, Partial, Replicate, Shard, ShardedArray, shard
from .propagate import MeshProgram, einsum, elementwise, matmul
from .sharded import ShardedParallel

__all__ = [
    "ColumnParallelLinear",
    "DataParallel",
    "Group",
    "Mesh",
    "MeshProgram",
    "ParallelAttention",
    "ParallelEmbedding",
    "Partial",
    "Replicate",
    "RowParallelLinear",
    "Shard",
    "ShardedArray",
    "ShardedParallel",
    "SyncBatchNorm",
    "Work",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "device",
    "einsum",
    "elementwise",
    "init",
    "is_initialized",
    "load_sharded",
    "local_rank",
    "matmul",
    "new_group",
    "rank",
    "recv",
    "reduce_scatter",
    "save_sharded",
    "send",
    "shard",
    "shutdown",
    "size",
]


_publish(__name__, gathered=True)
_publish_classes(__name__)
