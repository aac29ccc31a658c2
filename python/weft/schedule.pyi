# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, NoReturn, overload

from ._core import BlockRef as BlockRef, Expr, LoopRef as LoopRef, Trace as Trace
from .ir import IRModule, PrimFunc

class Schedule:
    @property
    def checked(self) -> tuple[int, int] | Any:
        """None, or with check="run": (functions compared so far, programs taken as the new start)."""
    @property
    def mod(self) -> IRModule:
        """The program now, an IRModule."""
    @property
    def func(self) -> PrimFunc:
        """The function that is scheduled, as it is now."""
    @property
    def start(self) -> IRModule:
        """The program before the first step, an IRModule: the trace, replayed on it, gives ``mod`` again."""
    @property
    def trace(self) -> Trace:
        """The steps so far: ``.as_python()``, ``.as_json()``."""
    def __init__(self, program: PrimFunc | IRModule, seed: int = 0, check: Literal['run'] | None = None, step_limit: int = 20000000) -> None: ...
    def script(self) -> str:
        """The program now as T-script."""
    def show(self, *_ignored: Any, **_also: Any) -> None:
        """Prints the program as T-script."""
    def copy(self) -> Schedule:
        """A schedule with the same program and steps that goes its own way."""
    def work_on(self, func_name: str) -> None:
        """The function that get_block looks in by default."""
    def get(self, ref: BlockRef | LoopRef) -> dict[str, Any]:
        """What a block or loop is now, as plain values.

        Block: name, iters (name, kind "S" or "R", extent), reads and writes (buffer, shape, dtype, scope), has_init.
        Loop: name, extent, axis it is bound to. Symbolic extents are None. Raises weft.ScheduleError when it is gone.
        """
    @staticmethod
    def replay(program: PrimFunc | IRModule, trace: Trace | str | Any) -> Schedule:
        """Repeats a recorded trace (JSON text, or what it holds) on another program."""
    def get_block(self, name: str, func_name: str = '') -> BlockRef:
        """The block with this name.

        name (str): name of the block
        func_name (str): function to look in; empty: "main" or the only one

        Returns block. Raises weft.ScheduleError when the step is illegal.
        """
    def get_loops(self, block: BlockRef) -> list[LoopRef]:
        """The loops around a block within its scope, outermost first.

        block (block): the block

        Returns list of loop. Raises weft.ScheduleError when the step is illegal.
        """
    def get_child_blocks(self, block_or_loop: BlockRef | LoopRef) -> list[BlockRef]:
        """The blocks directly inside a block or loop, in program order.

        block_or_loop (block or loop): where to look

        Returns list of block. Raises weft.ScheduleError when the step is illegal.
        """
    def get_producers(self, block: BlockRef) -> list[BlockRef]:
        """The blocks of the same scope that write what the block reads.

        block (block): the consumer

        Returns list of block. Raises weft.ScheduleError when the step is illegal.
        """
    def get_consumers(self, block: BlockRef) -> list[BlockRef]:
        """The blocks of the same scope that read what the block writes.

        block (block): the producer

        Returns list of block. Raises weft.ScheduleError when the step is illegal.
        """
    def get_output_blocks(self, scope_block: BlockRef) -> list[BlockRef]:
        """The blocks of a scope that write a buffer from outside of it.

        scope_block (block): the enclosing block

        Returns list of block. Raises weft.ScheduleError when the step is illegal.
        """
    def split(self, loop: LoopRef, factors: Sequence[int | Expr | LoopRef | None], preserve_unit_iters: bool = True, disable_predication: bool = False, tail: str = 'guard') -> list[LoopRef]:
        """Divides a loop into nested ones. At most one factor may be None and is inferred; when the factors do not divide the extent, `tail` says what happens to the last, cut tile. "guard": blocks below get a predicate. "peel": the nest runs whole tiles only and a second loop, whose blocks are copies named NAME_tail, runs the rest. "round_up": the iterators and the intermediate buffers that the blocks write grow to whole tiles; elements read beyond a buffer's end count 0. "shift_inwards": the last tile starts earlier and repeats elements of the one before. Example: `outer, inner = sch.split(i, [None, 16], tail="peel")`.

        loop (loop): the loop to divide
        factors (list of int or None): trip counts, outermost first; one may be None
        preserve_unit_iters (bool): keep new loops of extent 1 in the bindings
        disable_predication (bool): refuse factors that would need a predicate
        tail (str): where factors do not divide: "guard", "peel", "round_up" or "shift_inwards"

        Returns list of loop. Raises weft.ScheduleError when the step is illegal.
        """
    def fuse(self, *loops: LoopRef, preserve_unit_iters: bool = True) -> LoopRef:
        """Joins perfectly nested loops into one.

        loops (list of loop): the loops, outermost first, each directly inside the one before
        preserve_unit_iters (bool): keep loops of extent 1 in the bindings

        Returns loop. Raises weft.ScheduleError when the step is illegal.
        """
    def loop_partition(self, loop: LoopRef, factors: Sequence[int | Expr | LoopRef | None]) -> list[LoopRef]:
        """Cuts the range of a loop into consecutive loops of the given lengths; a length of None, or a last loop of its own, takes what is left. Blocks of later parts are copies named NAME_p1, NAME_p2 and so on; a part that cannot hold the first step of a reduction only accumulates. Example: `first, rest = sch.loop_partition(i, [8, None])`.

        loop (loop): the loop to cut; its extent is constant
        factors (list of int or None): lengths of the parts in order; one may be None

        Returns list of loop. Raises weft.ScheduleError when the step is illegal.
        """
    def merge(self, *loops: LoopRef) -> LoopRef:
        """Joins loops of equal extent that directly follow each other into one, whose body runs theirs in order. Legal where every iteration takes from the others only what the same iteration made. Example: `i = sch.merge(i_of_a, i_of_b)`, then the same for the loops inside.

        loops (list of loop): the loops in program order

        Returns loop. Raises weft.ScheduleError when the step is illegal.
        """
    def reorder(self, *loops: LoopRef) -> None:
        """Puts the named loops of one chain into the given order; the positions they occupy stay the same.

        loops (list of loop): the loops in their new order

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def add_unit_loop(self, block_or_loop: BlockRef | LoopRef) -> LoopRef:
        """Puts a loop of extent 1 directly around a block or loop.

        block_or_loop (block or loop): what the new loop surrounds

        Returns loop. Raises weft.ScheduleError when the step is illegal.
        """
    def reorder_block_iter_var(self, block: BlockRef, new_order: Sequence[int]) -> None:
        """Puts a block's iterators, with their bindings, into another order; loops stay. An intrinsic that is to match the block may need it. Example: `sch.reorder_block_iter_var(c, [1, 0, 2])`.

        block (block): the block
        new_order (list of int): for each new position the old position of its iterator

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def transform_block_layout(self, block: BlockRef, index_map: Callable[..., Any]) -> list[LoopRef]:
        """Gives a block new iterators, which are a one-to-one map of the old ones, and a new nest of loops over them; buffers stay. Example: `sch.transform_block_layout(c, lambda n, h, w, k: (n * 49 + h * 7 + w, k))`.

        block (block): a block whose iterators are the loops of a nest of its own
        index_map (index map): old iterators to new ones

        Returns list of loop. Raises weft.ScheduleError when the step is illegal.
        """
    def parallel(self, loop: LoopRef) -> None:
        """Runs the iterations of a loop on several processors.

        loop (loop): the loop

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def vectorize(self, loop: LoopRef) -> None:
        """Runs the iterations of a loop as the lanes of vector instructions.

        loop (loop): the loop

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def unroll(self, loop: LoopRef) -> None:
        """Writes the iterations of a loop out one after the other.

        loop (loop): the loop

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def bind(self, loop: LoopRef, thread_axis: str) -> None:
        """Gives the iterations of a loop to the points of a machine's axis.

        loop (loop): the loop
        thread_axis (str): name of the axis, such as "blockIdx.x"

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def cache_read(self, block: BlockRef, read_buffer_index: int, storage_scope: str, consumer_blocks: Sequence[BlockRef] = ...) -> BlockRef:
        """Copies what a block reads into a memory scope first; the block (or the listed consumers) then reads the copy. Returns the copying block.

        block (block): a consumer of the buffer
        read_buffer_index (int): which of the block's reads
        storage_scope (str): memory scope of the copy
        consumer_blocks (list of block): blocks that shall read the copy; empty: all

        Returns block. Raises weft.ScheduleError when the step is illegal.
        """
    def cache_write(self, block: BlockRef, write_buffer_index: int, storage_scope: str, consumer_blocks: Sequence[BlockRef] = ...) -> BlockRef:
        """Lets a block write into a memory scope first and copies the result out afterwards. Returns the copying block.

        block (block): the producer of the buffer
        write_buffer_index (int): which of the block's writes
        storage_scope (str): memory scope of the copy
        consumer_blocks (list of block): blocks that shall read the copy instead of the buffer

        Returns block. Raises weft.ScheduleError when the step is illegal.
        """
    def cache_inplace(self, block: BlockRef, read_buffer_index: int, storage_scope: str) -> list[BlockRef]:
        """For a buffer that a block both reads and writes: copies it into a memory scope before the block's nest, lets the block work there, and copies what was written back. Returns the two copying blocks. Example: `load, back = sch.cache_inplace(b, 0, "local")`.

        block (block): the block that updates the buffer
        read_buffer_index (int): which of the block's reads; it is among its writes, too
        storage_scope (str): memory scope of the copy

        Returns list of block. Raises weft.ScheduleError when the step is illegal.
        """
    def cache_index(self, block: BlockRef, storage_scope: str, cse_thresh: int = 0) -> list[BlockRef]:
        """Computes index expressions that a block uses several times once, in blocks before it, into small integer buffers that the block then indexes by. Returns these blocks. Example: `sch.cache_index(upsample, "global", 1)`.

        block (block): the block whose indices are computed ahead
        storage_scope (str): memory scope of the buffers
        cse_thresh (int): least number of uses of an expression; 0: every index that is more than an iterator

        Returns list of block. Raises weft.ScheduleError when the step is illegal.
        """
    def read_at(self, loop: LoopRef, block: BlockRef, read_buffer_index: int, storage_scope: str) -> BlockRef:
        """Copies the part of a buffer that one iteration of a loop reads, inside the loop: cache_read for one block, compute_at, and the annotation "auto_copy" on the copy. Returns the copying block. Example: `sch.read_at(k_outer, c, 0, "shared")`.

        loop (loop): the loop in which the copy stands
        block (block): the reader
        read_buffer_index (int): which of the block's reads
        storage_scope (str): memory scope of the copy

        Returns block. Raises weft.ScheduleError when the step is illegal.
        """
    def write_at(self, loop: LoopRef, block: BlockRef, write_buffer_index: int, storage_scope: str) -> BlockRef:
        """Lets a block write into a memory scope and copies out, inside a loop, what one iteration of the loop finishes: cache_write, reverse_compute_at, and the annotation "auto_copy" on the copy. Returns the copying block. Example: `sch.write_at(tile, c, 0, "local")`.

        loop (loop): the loop in which the copy stands
        block (block): the writer
        write_buffer_index (int): which of the block's writes
        storage_scope (str): memory scope of the cache

        Returns block. Raises weft.ScheduleError when the step is illegal.
        """
    def reindex(self, block: BlockRef, buffer: tuple[Literal['read', 'write'], int] | int | str) -> BlockRef:
        """Copies what a block reads (writes) into a buffer with one axis for each iterator that the access uses, so that the block indexes by its iterators alone; the copy makes im2col and its kin explicit. Returns the copying block. Example: `im2col = sch.reindex(conv, ("read", 0))`.

        block (block): a block that accesses the buffer at one index
        buffer (("read" | "write", int) or buffer name): which of the block's reads or writes, or the buffer's name

        Returns block. Raises weft.ScheduleError when the step is illegal.
        """
    def reindex_cache_read(self, block: BlockRef, read_buffer_index: int, storage_scope: str, index_map: Callable[..., Any]) -> BlockRef:
        """As cache_read for one block, but the copy is laid out by a map of the block's iterators. Returns the copying block. Example: `sch.reindex_cache_read(c, 0, "shared", lambda i, j, k: (k, i))`.

        block (block): the reader
        read_buffer_index (int): which of the block's reads
        storage_scope (str): memory scope of the copy
        index_map (index map): the block's iterators to the index in the copy; one to one on those that the access uses

        Returns block. Raises weft.ScheduleError when the step is illegal.
        """
    def reindex_cache_write(self, block: BlockRef, write_buffer_index: int, storage_scope: str, index_map: Callable[..., Any]) -> BlockRef:
        """As cache_write, but the cache is laid out by a map of the block's iterators. Returns the copying block. Example: `sch.reindex_cache_write(c, 0, "local", lambda i, j, k: (j, i))`.

        block (block): the writer
        write_buffer_index (int): which of the block's writes
        storage_scope (str): memory scope of the cache
        index_map (index map): the block's iterators to the index in the cache; one to one on those that the access uses

        Returns block. Raises weft.ScheduleError when the step is illegal.
        """
    def compute_at(self, block: BlockRef, loop: LoopRef, preserve_unit_loops: bool = False, index: int = -1) -> None:
        """Moves a producer under a loop that all its consumers stand in, and computes there what they need in one iteration.

        block (block): the producer
        loop (loop): the loop it moves into
        preserve_unit_loops (bool): keep loops of extent 1
        index (int): slot among the loop's statements; -1: last legal one, -2: first

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def reverse_compute_at(self, block: BlockRef, loop: LoopRef, preserve_unit_loops: bool = False, index: int = -1) -> None:
        """Moves a consumer under a loop that its producers stand in (others may stand before the loop), and computes there what one iteration makes possible.

        block (block): the consumer
        loop (loop): the loop it moves into
        preserve_unit_loops (bool): keep loops of extent 1
        index (int): slot among the loop's statements; -1: last legal one, -2: first

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def compute_inline(self, block: BlockRef) -> None:
        """Writes a block's expression where its result is read, and removes the block and its buffer.

        block (block): an element-wise producer

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def reverse_compute_inline(self, block: BlockRef) -> None:
        """Lets a block's only producer compute and store the block's result, and removes the block and the buffer between them.

        block (block): an element-wise consumer

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def decompose_reduction(self, block: BlockRef, loop: LoopRef) -> BlockRef:
        """Moves a reduction's initialisation into a block of its own ("X_init"), directly before a loop; the rest becomes "X_update". Returns the init block.

        block (block): the reduction
        loop (loop): the loop before which the initialisation runs

        Returns block. Raises weft.ScheduleError when the step is illegal.
        """
    def rfactor(self, loop: LoopRef, factor_axis: int) -> BlockRef:
        """Makes a reduction loop spatial: a new block "X_rf" reduces the rest into a buffer with one more axis, and the block itself then reduces that axis. Returns the new block.

        loop (loop): a loop of the reduction
        factor_axis (int): where the new axis goes; negative counts from the end

        Returns block. Raises weft.ScheduleError when the step is illegal.
        """
    def pad_reduction(self, loop: LoopRef, factor: int) -> None:
        """Rounds the trip count of a reduction loop up to a multiple of a factor. The steps that are added join the value that changes nothing and read no element, so that a split by the factor needs no predicate and rfactor applies to its parts.

        loop (loop): the loop of a reduction, bound to one iterator
        factor (int): what the new trip count is a multiple of

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def fuse_reduction_epilogue(self, reduction_block: BlockRef, epilogue_block: BlockRef) -> None:
        """Folds an elementwise block that joins a reduction's result with another value by the reduction's own operator (D = C + bias after a sum, D = max(C, 0) after a maximum) into the reduction: it starts from that value and accumulates in the block's output. Example: `sch.fuse_reduction_epilogue(matmul, bias_add)`.

        reduction_block (block): a reduction with an init
        epilogue_block (block): the only reader of its result

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def decompose_padding(self, block: BlockRef, loop: LoopRef) -> BlockRef:
        """Parts a block of the form B[...] = if_then_else(inside, A[...], constant) at a loop: a nest that fills B with the constant, then one that copies only what is inside. Returns the filling block. Example: `fill = sch.decompose_padding(pad, sch.get_loops(pad)[0])`.

        block (block): the padding block; its iterators are its loops
        loop (loop): the loop before which the filling nest stands

        Returns block. Raises weft.ScheduleError when the step is illegal.
        """
    def pad_einsum(self, block: BlockRef, padding: Sequence[int], multiples: bool = False) -> list[BlockRef]:
        """Lengthens the iterators of a reduction: operands are copied into buffers padded with zeros, the result is made in a longer buffer of which the part that counts is copied out. Iterators of results of any reduction, those that are summed of sums of products. Returns the copying blocks, operands first. Example: `sch.pad_einsum(matmul, [0, 7, 7])`; for tiles of any extents, `sch.pad_einsum(matmul, [64, 64, 16], multiples=True)`.

        block (block): a reduction of one value; C[...] = C[...] + products of loads at iterators
        padding (list of int): for each iterator the number of values to add
        multiples (bool): the numbers are what the iterators' extents, which may be symbols, become multiples of

        Returns list of block. Raises weft.ScheduleError when the step is illegal.
        """
    def shift_factor(self, block: BlockRef, read_buffer_index: int) -> list[BlockRef]:
        """Makes a factor x of a sum of products x * y of integers unsigned: the block sums (x + h) * y over a copy of x, where h is half the range of x's type, and h times the sum of y is taken from the result. Sums wrap, so this is exact. Returns the blocks that copy x, sum y and subtract. Example: `copy, sums, rest = sch.shift_factor(matmul, 0)`.

        block (block): a sum from 0: C[...] = C[...] + cast(x[...]) * cast(y[...]), x signed integers
        read_buffer_index (int): which of the block's reads is x

        Returns list of block. Raises weft.ScheduleError when the step is illegal.
        """
    def rolling_buffer(self, block: BlockRef, write_buffer_index: int) -> None:
        """Makes the buffer of a producer that a loop computes window by window a circular one as long as the window: each iteration computes only what the one before has not, and indices wrap. Apply it last: the buffer no longer holds what later steps expect. Example: `sch.rolling_buffer(conv1, 0)` after `sch.compute_at(conv1, row)`.

        block (block): the producer, inside the loop of its consumers
        write_buffer_index (int): which of the block's writes

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def annotate(self, block_or_loop: BlockRef | LoopRef, ann_key: str, ann_val: Any) -> None:
        """Attaches a value to a block or loop under a key; lowering reads some keys.

        block_or_loop (block or loop): what to annotate
        ann_key (str): the key
        ann_val (value): a number, string, list or dictionary

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def unannotate(self, block_or_loop: BlockRef | LoopRef, ann_key: str) -> None:
        """Removes an annotation.

        block_or_loop (block or loop): what carries the annotation
        ann_key (str): the key

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def storage_align(self, block: BlockRef, buffer_index: int, axis: int, factor: int, offset: int) -> None:
        """Pads an intermediate buffer so that the stride of an axis is offset modulo factor.

        block (block): the block that writes the buffer
        buffer_index (int): which of the block's writes
        axis (int): the axis whose stride is padded; negative counts from the end
        factor (int): the modulus, in elements
        offset (int): the remainder, in elements

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def set_scope(self, block: BlockRef, buffer_index: tuple[Literal['read', 'write'], int] | int | str, storage_scope: str) -> None:
        """Puts an intermediate buffer into another memory scope.

        block (block): the block that writes the buffer
        buffer_index (("read" | "write", int) or buffer name): which of the block's writes, or the buffer's name
        storage_scope (str): the memory scope

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def unsafe_set_dtype(self, block: BlockRef, buffer_index: int, dtype: str) -> None:
        """Stores an intermediate buffer in another element type; values are cast where they are stored and loaded. Unsafe: a narrower type loses digits. Example: `sch.unsafe_set_dtype(b, 0, "float16")`.

        block (block): the block that writes the buffer
        buffer_index (int): which of the block's writes
        dtype (str): the new element type

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def annotate_buffer_access(self, block: BlockRef, buffer_index: int, buf_type: str, gen_new_ranges: Callable[..., Any]) -> None:
        """States the region of a buffer that a block reads or writes, in place of the one that was found: one index for each axis, or begin and end of each. It must hold every access; what a block writes cannot be stated larger than it is. Example: `sch.annotate_buffer_access(b, 0, "read", lambda i, j: (i - 1, i + 2, j, j + 1))`.

        block (block): the block
        buffer_index (int): which of its reads or writes
        buf_type (str): "read" or "write"
        gen_new_ranges (index map): the block's iterators to an index per axis, or to begin and end per axis

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def unsafe_hide_buffer_access(self, block: BlockRef, buf_type: str, buf_index_array: Sequence[int]) -> None:
        """Takes regions out of what a block declares, so that later steps do not see the dependence; the caller vouches that none matters. Only accesses that the block's body makes through addresses may be hidden. Example: `sch.unsafe_hide_buffer_access(b, "read", [1])`.

        block (block): the block
        buf_type (str): "read" or "write"
        buf_index_array (list of int): which of its reads or writes to hide

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def transform_layout(self, block: BlockRef, buffer: tuple[Literal['read', 'write'], int] | int | str, index_map: Callable[..., Any], pad_value: Any = None, assume_injective_transform: bool = False) -> None:
        """Rewrites a buffer's shape and every access by an index map, such as lambda i, j: (i // 16, j, i % 16). The map must be one to one over the buffer's shape, or over that shape with its extents rounded up when pad_value says what the elements added hold: a block after the buffer's last writer stores it (of a parameter that nothing writes it is assumed). An index may be a digit ^ others (a swizzle): the digit's extent is a power of two that the others stay below. A parameter's shape changes in the function's signature, too.

        block (block): a block that uses the buffer
        buffer (("read" | "write", int) or buffer name): ("read" | "write", index), or the buffer's name
        index_map (index map): from the old indices to the new ones
        pad_value (value): what new elements outside of the old shape hold, a number; None: refuse maps that make any
        assume_injective_transform (bool): kept for compatibility; maps are proven

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def blockize(self, target: LoopRef | Sequence[BlockRef], preserve_unit_iters: bool = True) -> BlockRef:
        """Puts a loop nest around one block into a block of its own, whose iterators count tiles; or blocks that stand one after the other, with their own loops, into one block whose iterators are the loops around all of them. Returns the new block.

        target (loop or list of block): the outermost loop of the nest, or the blocks in program order
        preserve_unit_iters (bool): keep iterators of extent 1

        Returns block. Raises weft.ScheduleError when the step is illegal.
        """
    def tensorize(self, block_or_loop: BlockRef | LoopRef, tensor_intrin: str, preserve_unit_iters: bool = True) -> None:
        """Replaces a nest that computes an instruction's meaning by the instruction.

        block_or_loop (block or loop): the nest, or a block that holds it
        tensor_intrin (str): name of a registered instruction
        preserve_unit_iters (bool): keep iterators of extent 1

        Returns None. Raises weft.ScheduleError when the step is illegal.
        """
    def specialize_warps(self, loop: LoopRef, blocks: int = 0, group_rows: int = 1, registers: Sequence[int] = ..., cluster: int = 1, promote: int = 0, cluster_columns: int = 1) -> list[BlockRef]:
        """Makes a warp-specialized program of a pipelined matrix product. The loop runs over the sum in steps of 64; under it, blocks copy tiles of two 16-bit operands to shared memory and one block multiplies them into float32 in local memory; one block after the loop writes the tile, with any function of its elements. The loops around it are bound to blockIdx. One warp group then starts bulk copies into a ring of as many slots as "software_pipeline_stage" has stages; the others, one for each 64 rows, multiply. Full and empty barriers keep them in step. Returns the blocks of the two.

        loop (loop): the pipelined loop
        blocks (int): blocks of the launch, which take one tile after another; 0: a block for each tile
        group_rows (int): rows of tiles that follow one another, so that the cache keeps what they share
        registers (list of int): registers of a thread that copies and of one that multiplies, where two warp groups multiply
        cluster (int): blocks of a cluster one below another, 1, 2, 4 or 8: they compute their tiles at the same time, and each copies its part of the second operand's tile to all of them
        promote (int): steps whose products are added up by the tile instructions, which cut off what a float32 does not hold, before their sum is added to the tile's, rounded to nearest; 0: all steps
        cluster_columns (int): blocks of a cluster beside one another, 1, 2, 4 or 8, at most 8 of both together: each copies its part of the first operand's tile to all of them

        Returns list of block. Raises weft.ScheduleError when the step is illegal.
        """
    def sample_categorical(self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None) -> int:
        """One of the candidates, with the given probabilities.

        candidates (list of int): the values to choose from
        probs (list of float): the probability of each
        decision (int or None): index of the choice; None: draw one

        Returns int. Raises weft.ScheduleError when the step is illegal.
        """
    def sample_perfect_tile(self, loop: LoopRef, n: int, max_innermost_factor: int = 16, decision: Sequence[int] = ...) -> list[int]:
        """n factors whose product is a loop's extent; the last is at most max_innermost_factor.

        loop (loop): the loop
        n (int): how many factors
        max_innermost_factor (int): largest last factor
        decision (list of int): the factors; empty: draw them

        Returns list of int. Raises weft.ScheduleError when the step is illegal.
        """
    def sample_partitioned_tile(self, loop: LoopRef, n: int, partition_pos: int = 1, innerpart_factor: int = 1, decision: Sequence[int] = ...) -> list[int]:
        """n factors whose product is a loop's extent, those from partition_pos on together a multiple of innerpart_factor (of an instruction's tile, say). Where the extent is none: that part is the whole extent. Example: `f = sch.sample_partitioned_tile(i, 4, 2, 16)`.

        loop (loop): the loop
        n (int): how many factors
        partition_pos (int): the first factor of the inner part
        innerpart_factor (int): what divides the product of the inner part
        decision (list of int): the factors; empty: draw them

        Returns list of int. Raises weft.ScheduleError when the step is illegal.
        """
    def sample_compute_location(self, block: BlockRef, decision: int | None = None) -> LoopRef:
        """One of the loops at which compute_at of the block would succeed, outermost first. Example: `sch.compute_at(b, sch.sample_compute_location(b))`.

        block (block): the producer to be moved
        decision (int or None): index of the choice; None: draw one

        Returns loop. Raises weft.ScheduleError when the step is illegal.
        """
