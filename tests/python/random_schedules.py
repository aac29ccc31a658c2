# SPDX-License-Identifier: Apache-2.0
"""Random steps on the programs of random_programs: splits, orders, kinds of loops, bindings, annotations, places of
blocks, caches and memories of a machine. A step that is refused leaves the schedule as it was."""

import random

import weft

AXES = {"qpu": ["qpu", "lane"], "vta": ["vthread"], "wse": ["pe.x", "pe.y"]}
SCOPES = {
    "qpu": ["local", "global"],
    "vta": ["vta.inp", "vta.acc", "vta.wgt", "global"],
    "wse": ["global", "local"],
}
KEYS = ["nobody.knows", "pragma_unroll_explicit", "software_pipeline_stage", "dma_copy"]
FACTORS = [[None, 2], [None, 3], [None, 4], [None, 16], [2, None], [12, None], [None, 2, 3]]
STEPS = """split split reorder fuse bind bind parallel vectorize unroll annotate annotate_block compute_at
reverse_compute_at compute_inline reverse_compute_inline cache_read cache_write rfactor decompose_reduction add_unit_loop
set_scope""".split()


def _step(sch, names, pick, machine):
    block = sch.get_block(pick(names))
    loops = sch.get_loops(block)
    step, at = pick(STEPS), pick(range(len(loops)))
    if step == "split":
        sch.split(loops[at], pick(FACTORS))
    elif step == "reorder":
        order = sorted(loops, key=lambda _: pick(range(100)))
        sch.reorder(*order)
    elif step == "fuse" and at:
        sch.fuse(loops[at - 1], loops[at])
    elif step == "bind":
        sch.bind(loops[at], pick(AXES[machine]))
    elif step in ("parallel", "vectorize", "unroll"):
        getattr(sch, step)(loops[at])
    elif step.startswith("annotate"):
        sch.annotate(block if step.endswith("block") else loops[at], pick(KEYS), 1)
    elif step.endswith("compute_at"):
        getattr(sch, step)(block, pick(sch.get_loops(sch.get_block(pick(names)))))
    elif step.startswith("cache"):
        getattr(sch, step)(block, 0, pick(SCOPES[machine]))
    elif step == "rfactor":
        sch.rfactor(loops[at], 0)
    elif step == "decompose_reduction":
        sch.decompose_reduction(block, loops[at])
    elif step == "set_scope":
        sch.set_scope(block, 0, pick(SCOPES[machine][:2]))
    elif step in ("compute_inline", "reverse_compute_inline", "add_unit_loop"):
        getattr(sch, step)(block)


def random_schedule(program, names, seed, machine):
    """The program after one to seven random steps on its blocks `names`."""
    choose = random.Random(seed)
    sch = weft.Schedule(program)
    for _ in range(choose.randint(1, 7)):
        try:
            _step(sch, names, choose.choice, machine)
        except weft.Error:
            continue
    return sch.func
