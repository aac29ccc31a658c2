# SPDX-License-Identifier: Apache-2.0
"""Default schedules in public steps: ``sch = weft.vta.default_schedule(f, env)``; ``print(sch.trace.as_python())``.

The steps are those one would write by hand: packing by ``cache_read`` and ``transform_layout``, memory scopes,
tiles by ``split`` and ``reorder``, copies moved to where their tile begins, ``decompose_reduction``, ``tensorize``.
They can be edited, replayed and built. ``weft.build(f, target="vta")`` needs none of this and takes more programs.
"""

import ast as _ast
import itertools as _itertools
import math as _math

from ._errors import error
from .schedule import Schedule


class _Block:
    """What one block of the printed program says: iterators, the buffer it writes, the buffers it reads."""

    def __init__(self, name):
        self.name, self.iters = name, {}  # name -> ("S" | "R", extent)
        self.writes, self.write_index, self.loads, self.reduces = None, [], [], False

    def is_window(self):
        """Whether it copies one array at shifted places, with zeros around: what a transfer can do."""
        parts = [n for _, i in self.loads for e in i for n in _ast.walk(e)]
        return len(self.loads) == 1 and not any(
            isinstance(n, (_ast.FloorDiv, _ast.Mod, _ast.Mult)) for n in parts
        )

    def lines(self):
        return [n for n, (kind, _) in self.iters.items() if kind == "S"]


def _refuse(reason, note=None):
    return error(
        "schedule",
        "vta.schedule.default",
        f"no default schedule in public steps: {reason}",
        notes=[note] if note else [],
        help='weft.build(f, target="vta") packs and tiles more programs without a schedule',
    )


def _call(node, *names):
    """Whether the node is T.name(...) or T.axis.name(...)."""
    return isinstance(node, _ast.Call) and _ast.unparse(node.func) in names


def _read(func):
    """The leaf blocks of a program without a schedule, in order, and the shapes and types of all buffers."""
    tree = _ast.parse(str(func)).body
    define = next(n for n in tree if isinstance(n, _ast.FunctionDef))
    buffers, blocks = {}, []
    for a in define.args.args:
        shape, dtype = a.annotation.args[:2]
        buffers[a.arg] = (_ast.literal_eval(shape), _ast.literal_eval(dtype))

    def walk(body, extents):
        for node in body:
            if isinstance(node, _ast.Assign) and _call(node.value, "T.alloc_buffer"):
                shape, dtype = node.value.args[:2]
                buffers[node.targets[0].id] = (_ast.literal_eval(shape), _ast.literal_eval(dtype))
            elif isinstance(node, _ast.For):
                names = [n.id for n in _ast.walk(node.target) if isinstance(n, _ast.Name)]
                values = [_ast.literal_eval(n) for n in node.iter.args]
                walk(node.body, {**extents, **dict(zip(names, values, strict=True))})
            elif isinstance(node, _ast.With):
                blocks.append(leaf(node, extents))

    def leaf(node, extents):
        block = _Block(_ast.literal_eval(node.items[0].context_expr.args[0]))
        for s in node.body:
            if isinstance(s, _ast.Assign) and _call(s.value, "T.axis.remap"):
                names = [n.id for n in _ast.walk(s.targets[0]) if isinstance(n, _ast.Name)]
                kinds, loops = _ast.literal_eval(s.value.args[0]), s.value.args[1].elts
                for n, kind, loop in zip(names, kinds, loops, strict=True):
                    block.iters[n] = (kind, extents[loop.id])
            elif isinstance(s, _ast.Assign) and _call(s.value, "T.axis.spatial", "T.axis.reduce"):
                kind = "S" if s.value.func.attr == "spatial" else "R"
                block.iters[s.targets[0].id] = (kind, _ast.literal_eval(s.value.args[0]))
            elif isinstance(s, _ast.With) and _call(s.items[0].context_expr, "T.init"):
                block.reduces = True
            elif isinstance(s, _ast.Assign) and isinstance(s.targets[0], _ast.Subscript):
                target = s.targets[0]
                block.writes, block.write_index = target.value.id, _indices(target)
                block.value = s.value
                for n in _ast.walk(s.value):
                    if isinstance(n, _ast.Subscript) and isinstance(n.value, _ast.Name):
                        block.loads.append((n.value.id, _indices(n)))
            elif not isinstance(s, _ast.Expr):
                raise _refuse(f"block {block.name!r} has a statement that is no single store")
        return block

    walk(define.body, {})
    return buffers, blocks


def _indices(node):
    where = node.slice.elts if isinstance(node.slice, _ast.Tuple) else [node.slice]
    return list(where)


def _names(expr):
    return {n.id for n in _ast.walk(expr) if isinstance(n, _ast.Name)}


def _divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


class _Product:
    """The roles of a sum of products: lanes, outer axes, operands."""

    def __init__(self, block, buffers, env):
        self.block = block
        loads = [(b, i) for b, i in block.loads if b != block.writes]
        if len(loads) != 2 or any(buffers[b][1] != "int8" for b, _ in loads):
            raise _refuse(f"block {block.name!r} does not multiply two int8 arrays")
        (self.x, x), (self.w, w) = loads
        pure = [{e.id: d for d, e in enumerate(i) if isinstance(e, _ast.Name)} for i in (x, w)]
        used = [set().union(*map(_names, i)) for i in (x, w)]
        extent = {n: e for n, (_, e) in block.iters.items()}
        spatial = block.lines()
        sums = [n for n in block.iters if n not in spatial]
        lanes = (env.BATCH, env.BLOCK_OUT, env.BLOCK_IN)
        out = [e.id for e in block.write_index if isinstance(e, _ast.Name)]
        self.packed = (
            len(out) >= 4
            and (extent[out[-2]], extent[out[-1]]) == lanes[:2]
            and _ast.unparse(x[-2]) == out[-2]
            and _ast.unparse(w[-2]) == out[-1]
            and _ast.unparse(x[-1]) == _ast.unparse(w[-1]) in sums
            and extent[_ast.unparse(x[-1])] == env.BLOCK_IN
        )
        if self.packed:
            self.lane = (out[-2], out[-1], x[-1].id)
        else:
            rows = [n for n in spatial if n in pure[0] and n not in used[1]]
            cols = [n for n in spatial if n in pure[1] and n not in used[0]]
            deep = [n for n in sums if n in pure[0] and n in pure[1]]
            if not rows or not cols or not deep:
                raise _refuse(
                    f"block {block.name!r} has no row, column and sum that stand alone in its indices"
                )
            fit = [n for n in rows if extent[n] % env.BATCH == 0]
            self.lane = (fit[0] if fit else rows[0], max(cols, key=extent.get), deep[0])
            for name, lane in zip(self.lane, lanes, strict=True):
                if extent[name] % lane:
                    raise _refuse(
                        f"iterator {name!r} runs {extent[name]} times, no whole lanes of {lane}",
                        "public steps pad buffers, not iterators",
                    )
        self.size = dict(zip(self.lane, lanes, strict=True))
        self.outer = {n: extent[n] // self.size.get(n, 1) for n in block.iters}
        if self.packed:
            for n in self.lane:
                self.outer.pop(n)
        self.spatial = [n for n in spatial if n in self.outer]
        self.sums = [n for n in sums if n in self.outer]
        self.used = used
        self.known = {}
        self.codes = tuple(
            [
                (
                    [n for n in self.outer if n in _names(e)],
                    _names(e),
                    compile(_ast.Expression(e), "<index>", "eval"),
                )
                for e in index
            ]
            for index in (x, w, block.write_index)
        )
        self.index = (x, w, block.write_index)

    def footprint(self, which, tile):
        """Elements of a tile of the input (0), the weights (1) or the sum (2)."""
        names = self.spatial if which == 2 else [n for n in self.outer if n in self.used[which]]
        key = (which, *(tile[n] for n in names))
        if key not in self.known:
            self.known[key] = self._count(which, tile)
        return self.known[key]

    def spans(self, which, tile):
        """Of each axis of the input (0), the weights (1) or the sum (2): what a tile reaches, in numbers."""
        out = []
        for names, every, code in self.codes[which]:
            # The largest distance between two values of the index, by evaluating its corners.
            step = {n: 1 if self.packed else self.size.get(n, 1) for n in names}
            values = []
            for corner in _itertools.product((0, 1), repeat=len(names)):
                scope = dict.fromkeys(every, 0)
                for n, c in zip(names, corner, strict=True):
                    scope[n] = c * (tile[n] * step[n] - 1)
                values.append(eval(code, {"__builtins__": {}}, scope))
            out.append(max(values) - min(values) + 1)
        return out

    def _count(self, which, tile):
        total = 1
        for (names, _, _), span in zip(self.codes[which], self.spans(which, tile), strict=True):
            lane = 1 if self.packed else max((self.size.get(n, 1) for n in names), default=1)
            total *= -(-span // lane)
        return total

    def order(self, tile):
        """Tile loops outermost first: those of one step, what the weights use, the rest, the sums."""

        def rank(n):
            return (self.outer[n] > tile[n], n not in self.used[1])

        return sorted(self.spatial, key=rank) + self.sums

    def level(self, which, tile):
        """The tile loop at which an operand's tile begins: the innermost that moves it."""
        order = self.order(tile)
        at = order[0]
        for n in order:
            if self.outer[n] == tile[n] and at == order[0]:
                at = n if n in self.spatial else at
            elif self.outer[n] > tile[n] and n in self.used[which]:
                at = n
        return at

    def choose(self, env, chain, fixed, threads):
        """Tiles that fit twice, with the fewest estimated cycles of max(compute, transfers)."""
        limit = [
            env.INP_BUFF_SIZE // env.INP_ELEM_BYTES // 2,
            env.WGT_BUFF_SIZE // env.WGT_ELEM_BYTES // 2,
            env.ACC_BUFF_SIZE // env.ACC_ELEM_BYTES // 2 // (chain + 1),
        ]
        unknown = set(fixed) - set(self.outer)
        if unknown:
            raise _refuse(
                f"tiles name {sorted(unknown)}, no iterators of {self.block.name!r}",
                "iterators: " + ", ".join(f"{n} of {e}" for n, e in self.outer.items()),
            )
        choices = []
        for n, e in self.outer.items():
            if n in fixed:
                if e % fixed[n]:
                    raise _refuse(f"a tile of {fixed[n]} does not divide {n!r} of {e}")
                choices.append([fixed[n]])
            elif n in self.sums and n != self.sums[0]:
                choices.append([e])  # windows stay whole
            else:
                picked = _divisors(e)
                choices.append(picked if len(picked) <= 6 else picked[:3] + picked[-4:])
        macs = _math.prod(self.outer.values())
        bytes_of = (env.INP_ELEM_BYTES, env.WGT_ELEM_BYTES)
        best = None
        for sizes in _itertools.product(*choices):
            tile = dict(zip(self.outer, sizes, strict=True))
            if any(self.footprint(k, tile) > limit[k] for k in range(3)):
                continue
            times = {n: self.outer[n] // tile[n] for n in self.outer}
            if threads > 1 and all(times[n] % threads for n in self.spatial):
                continue
            traffic = 0
            for k in (0, 1):
                loads, at = 1, self.level(k, tile)
                for n in self.order(tile):
                    loads *= times[n]
                    if n == at:
                        break
                traffic += loads * (self.footprint(k, tile) * bytes_of[k] / 8 + 33)
            steps = _math.prod(times.values())
            cost = max(macs, traffic) + min(macs, traffic) / 16 + 12 * steps
            if best is None or cost < best[0]:
                best = (cost, tile)
        if best is None:
            wish = f" with a multiple of {threads} steps for the threads" if threads > 1 else ""
            raise _refuse(f"no tile{wish} fits into the memories twice", f"elements: {limit}")
        return best[1]


def _mark(sch, env, block):
    """The copy's outermost own loop is marked as a transfer."""
    loops = sch.get_loops(block)
    sch.annotate(loops[-1], env.dma_copy, 1)


def default_schedule(func, env=None, tiles=None, threads=1):
    """A weft.Schedule of `func` for the machine `env` (weft.vta.env()), made by public steps only.

    Takes one sum of products over int8 arrays (packed, or plain with extents of whole lanes), with copies before
    it (padding) and int32 elementwise blocks after it, the last a cast to int8; or such elementwise blocks alone.
    `tiles`: iterator -> whole elements of a tile, for those that should not be chosen here. `threads` > 1: so many
    virtual threads over the outermost tile loop of the sum that has enough steps.
    Raises weft.ScheduleError (vta.schedule.default) for what these steps cannot express.
    """
    from . import vta as _vta

    env = env or _vta.env()
    try:
        buffers, blocks = _read(func)
    except (ValueError, AttributeError, KeyError, StopIteration) as reason:
        raise _refuse(
            f"it is no plain function of blocks with constant extents ({type(reason).__name__})",
            "what has steps already, symbolic extents or scalars is not read",
        ) from reason
    sums = [b for b in blocks if b.reduces]
    if len(sums) > 1:
        raise _refuse(f"it has {len(sums)} blocks with sums", "one is expected")
    at = blocks.index(sums[0]) if sums else -1
    chain = blocks[at + 1 :] if sums else blocks
    if not chain or buffers[chain[-1].writes][1] != "int8" or len(chain) < (1 if sums else 2):
        raise _refuse("the last block must cast int32 sums to int8: STORE writes bytes")
    for b in chain[:-1] + sums:
        if buffers[b.writes][1] != "int32":
            raise _refuse(f"{b.writes!r} is {buffers[b.writes][1]}, the accumulator holds int32")
    made = {b.writes for b in chain + sums}
    for b in chain:
        for name, _ in b.loads:
            if name not in made and buffers[name][1] not in ("int32", "int8"):
                raise _refuse(
                    f"{name!r} is {buffers[name][1]}; the accumulator takes int32 and int8"
                )
    sch = Schedule(func)
    if sums:
        _schedule_product(
            sch, env, _Product(sums[0], buffers, env), blocks, at, buffers, tiles, threads
        )
    else:
        _schedule_chain(sch, env, blocks, made)
    return sch


def _fold_chain(sch, chain):
    """Elementwise blocks between the first and the last become one expression."""
    for b in chain[:-2]:
        sch.compute_inline(sch.get_block(b.name))
    return chain[-2:]


def _operands(sch, env, block, own):
    """Second operands of a chain come into the accumulator."""
    out = []
    reads = sch.get(block)["reads"]
    for i, r in enumerate(reads):
        if r["buffer"] not in own and r["scope"] == "global":
            out.append(sch.cache_read(block, i, env.acc_scope))
    return out


def _schedule_chain(sch, env, blocks, made):
    last = blocks[-1]
    first = _fold_chain(sch, blocks)[0]
    body = sch.get_block(first.name)
    sch.set_scope(body, 0, env.acc_scope)
    copies = _operands(sch, env, body, made)
    store = sch.get_block(last.name)
    extents = [e for _, e in last.iters.values()]
    lanes = env.BATCH * env.BLOCK_OUT
    inner = 1
    for e in extents[1:]:
        inner *= e
    if inner % lanes:
        raise _refuse(f"rows of {inner} numbers are no whole elements of {lanes}")
    room = env.ACC_BUFF_SIZE // env.ACC_ELEM_BYTES // 2 // (1 + len(copies))
    rows = [d for d in _divisors(extents[0]) if d * inner // lanes <= room]
    if not rows:
        raise _refuse(f"a row of {inner // lanes} elements does not fit into {room}")
    outer, _ = sch.split(sch.get_loops(store)[0], [None, rows[-1]])
    sch.compute_at(body, outer)
    for c in copies:
        sch.compute_at(c, outer)
    for c in [*copies, store]:
        _mark(sch, env, c)


def _schedule_product(sch, env, p, blocks, at, buffers, tiles, threads):
    total = sch.get_block(p.block.name)
    before, chain = blocks[:at], blocks[at + 1 :]
    own = {b.writes for b in chain} | {p.block.writes}
    names = [p.block.name] + [b.name for b in _fold_chain(sch, chain)]
    last = sch.get_block(names[-1])
    tile = p.choose(env, len(names) - 2, dict(tiles or {}), threads)

    # Packing: global copies of what does not lie in whole elements, made by the host.
    made = {b.writes: b for b in before if b.is_window()}  # others stay copies of the host
    padding = [made[n] for n in (p.x, p.w) if n in made]
    packs = []
    if not p.packed:
        for which, name in enumerate((p.x, p.w)):
            source, index = (sch.get_block(made[name].name), 0) if name in made else (total, which)
            packs.append((sch.cache_read(source, index, "global"), which))
        sch.cache_write(last, 0, "global")
    # Scopes.
    for n in names[:-1]:
        sch.set_scope(sch.get_block(n), 0, env.acc_scope)
    inp, wgt = sch.cache_read(total, 0, env.inp_scope), sch.cache_read(total, 1, env.wgt_scope)
    for b in padding:  # becomes padding of the transfer
        sch.compute_inline(sch.get_block(b.name))

    # Tiles.
    loops = dict(zip(p.block.iters, sch.get_loops(total), strict=True))
    lanes = {}
    for n in p.lane:
        if p.packed:
            lanes[n] = loops[n]
        else:
            loops[n], lanes[n] = sch.split(loops[n], [None, p.size[n]])
    outer, inner = {}, {}
    for n in p.order(tile):
        outer[n], inner[n] = sch.split(loops[n], [None, tile[n]])
    order, bound = [], None
    for n in p.order(tile):
        steps = p.outer[n] // tile[n]
        if threads > 1 and bound is None and n in p.spatial and steps % threads == 0:
            rest, bound = sch.split(outer[n], [None, threads])
            outer[n] = bound
            order.append(rest)
        order.append(outer[n])
    sch.reorder(
        *order,
        *(inner[n] for n in p.sums),
        *(inner[n] for n in p.spatial),
        *(lanes[n] for n in p.lane),
    )
    for which, block in ((0, inp), (1, wgt)):
        sch.compute_at(block, outer[p.level(which, tile)])
    innermost = outer[[n for n in p.order(tile) if n in p.spatial][-1]]
    for n in names[1:]:
        sch.reverse_compute_at(sch.get_block(n), innermost)
    operands = []  # second operands of the chain: the copy into the accumulator, and its packing
    for n in names[1:]:
        block = sch.get_block(n)
        for i, r in enumerate(sch.get(block)["reads"]):
            if r["buffer"] in own or r["scope"] != "global":
                continue
            pack = None
            if not p.packed and len(r["shape"]) == len(p.block.write_index):
                pack = sch.cache_read(block, i, "global")
            elif not p.packed and env.BATCH > 1:
                raise _refuse(
                    f"{r['buffer']!r} has no row axis, and an element has {env.BATCH} rows",
                    "no step repeats a buffer along a new axis",
                )
            operands.append((sch.cache_read(block, i, env.acc_scope), pack))
            sch.compute_at(operands[-1][0], innermost)
    copies = [c for c, _ in operands]
    if bound is not None:
        sch.bind(bound, "vthread")

    # Layouts, once the tiles are where they belong.
    if not p.packed:
        _block_layouts(sch, env, p, tile, packs, inp, wgt, names, operands)
    for block in [inp, wgt, *copies, last]:
        _mark(sch, env, block)
    first_sum = next((outer[n] for n in p.sums), None)
    if first_sum is None:
        raise _refuse("the sum is one step")
    sch.decompose_reduction(total, first_sum)
    sch.tensorize(lanes[p.lane[0]], env.gemm)


def _block_layouts(sch, env, p, tile, packs, inp, wgt, names, operands):
    """Buffers of the sum become blocks of whole elements: [...outer...][lane][lane]."""

    def blocked(index, first, second):
        names = [f"i{d}" for d in range(len(index))]
        lane = dict((first, second))  # rows and columns of an image stay innermost: LOAD pads those
        out = [f"i{d} // {n}" for d, n in (first, second)]
        out += [n for d, n in enumerate(names) if d not in lane]
        out += [f"i{d} % {n}" for d, n in (first, second)]
        return f"lambda {', '.join(names)}: ({', '.join(out)})"

    def dim(index, name):
        return next(d for d, e in enumerate(index) if _ast.unparse(e) == name)

    row, col, deep = p.lane
    x, w, y = p.index
    shape_x = ((dim(x, row), env.BATCH), (dim(x, deep), env.BLOCK_IN))
    shape_w = ((dim(w, col), env.BLOCK_OUT), (dim(w, deep), env.BLOCK_IN))
    shape_y = ((dim(y, row), env.BATCH), (dim(y, col), env.BLOCK_OUT))
    host = [(b, w if which else x, shape_w if which else shape_x) for b, which in packs]
    host += [(b, y, shape_y) for _, b in operands if b is not None]
    chip = [(inp, 0, shape_x), (wgt, 1, shape_w)]
    chip += [(c, 2, shape_y) for c, b in operands if b is not None]
    chip += [(sch.get_block(n), 2, shape_y) for n in names[1:]]
    total = (sch.get_block(names[0]), y, shape_y)
    for block, index, shape in [*host, total, *((b, p.index[k], s) for b, k, s in chip)]:
        sch.transform_layout(block, ("write", 0), blocked(index, *shape))
    for block, which, shape in chip:  # lanes become loops of their own
        long = [d for d, n in enumerate(p.spans(which, tile)) if n > 1]  # others have no loop
        own = sch.get_loops(block)[-len(long) :]
        for d, n in shape:
            if n > 1:
                sch.split(own[long.index(d)], [None, n])


__all__ = ["default_schedule"]
