// SPDX-License-Identifier: Apache-2.0
#pragma once
// Facts about blocks that legality rests on: affine bindings, complete and reduction blocks, region
// cover, stage pipelines. Computed from the tree on demand; the judge of index facts is weft/arith.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "weft/arith/analyzer.h"
#include "weft/arith/iter_map.h"
#include "weft/schedule/facts.h"
#include "weft/schedule/state.h"

namespace weft::schedule {

/// Tells the analyzer the ranges of every loop and iterator on the path (target included).
void bind_path(arith::Analyzer& analyzer, const Path& path);
/// The same without the target: inside a loop its extent is at least 1, which a new extent that
/// stands where the loop does must not rely on.
void bind_around(arith::Analyzer& analyzer, const Path& path);
void bind_loops(arith::Analyzer& analyzer, const std::vector<const ir::ForNode*>& loops);
void bind_iters(arith::Analyzer& analyzer, const ir::BlockNode* block);

/// Loops as iterators starting at 0 (a loop with another minimum is refused by the empty answer).
std::vector<ir::IterVar> as_iters(const std::vector<const ir::ForNode*>& loops);

/// Empty when the bindings of the leaf are affine in its loops, each a digit of its own; else why
/// not.
std::string why_not_affine(const Leaf& leaf, const arith::Analyzer& analyzer,
                           Facts* facts = nullptr);
/// Whether the instances that run are exactly the iterators' domains (so the predicate hides
/// nothing).
bool covers_domain(const Leaf& leaf, const arith::Analyzer& analyzer);

/// Empty when the block is complete (reduction) among `scope`, the blocks of its scope or subtree.
std::string why_not_complete(const std::vector<Leaf>& scope, const ir::BlockNode* block);
std::string why_not_reduction(const std::vector<Leaf>& scope, const Leaf& leaf,
                              const arith::Analyzer& analyzer, Facts* facts = nullptr);
/// Loops, with their first values, that stand there whenever the predicate holds: those of one
/// iteration, and those of which a condition allows no other (a tile larger than what it tiles).
ir::VarMap standing(const std::vector<const ir::ForNode*>& loops, const ir::Expr& predicate);

/// Empty when all the block does is to add atomically (T.atomic_add) to buffers that nothing else
/// in `scope` touches: its instances may run in any order and at the same time.
std::string why_not_additions(const std::vector<Leaf>& scope, const ir::BlockNode* block);
/// A decomposed reduction: no init, reads back exactly what it writes, R iterators not in the
/// output.
bool is_update(const ir::BlockNode* block);

/// Empty when no iteration of the leaf's loops from `top` on repeats an instance of the block: a
/// reduction whose init moves or whose loops change places must not be run through twice.
std::string why_repeated(const Leaf& leaf, const ir::ForNode* top, const arith::Analyzer& analyzer);

/// Iterators of a kind.
std::unordered_set<const ir::VarNode*> iters_of(const ir::BlockNode* block, ir::IterKind kind);

bool reads(const ir::BlockNode* block, const ir::BufferNode* buffer);
bool writes(const ir::BlockNode* block, const ir::BufferNode* buffer);

/// A block's region with its iterators replaced by the bindings.
std::vector<ir::Range> bound_region(const ir::BufferRegion& region,
                                    const ir::BlockRealizeNode* realize);
/// The box that the region covers while `loops` run; predicate-aware; clipped to the buffer.
std::vector<ir::Range> relax(const std::vector<ir::Range>& region,
                             const std::vector<const ir::ForNode*>& loops,
                             const ir::Expr& predicate, const arith::Analyzer& analyzer);
/// Exactly the region that is covered, or absent when that is not a provable box.
std::optional<std::vector<ir::Range>> relax_exact(const std::vector<ir::Range>& region,
                                                  const std::vector<const ir::ForNode*>& loops,
                                                  const ir::Expr& predicate,
                                                  const arith::Analyzer& analyzer);
std::vector<ir::Range> clip(std::vector<ir::Range> region, const ir::Buffer& buffer,
                            const arith::Analyzer& analyzer);

/// Empty when what `consumer` reads was produced before; else which buffer is not covered, and by
/// whom. `only`: of what it reads one buffer.
std::string why_not_covered(const std::vector<Leaf>& scope, std::size_t consumer,
                            Facts* facts = nullptr, const ir::BufferNode* only = nullptr);
/// Empty when every consumer of the scope is covered and nothing is overwritten after being read.
std::string why_not_pipeline(const std::vector<Leaf>& scope, Facts* facts = nullptr);
/// The blocks that a step depends on which moves one of them under a loop (null: it stays in its
/// nest): those of both nests, users of what the first of these nests writes, and those between
/// that use the same. Nests before it are through, whatever they made; others are not touched.
std::vector<Leaf> concerned(const std::vector<Leaf>& scope, std::size_t self,
                            const ir::ForNode* under = nullptr);

/// Index of the leaf with this block; npos if absent.
std::size_t index_of(const std::vector<Leaf>& scope, const ir::BlockNode* block);
/// Indices of the blocks that write what leaf i reads (earlier) / read what it writes (later).
std::vector<std::size_t> producers_of(const std::vector<Leaf>& scope, std::size_t i);
std::vector<std::size_t> consumers_of(const std::vector<Leaf>& scope, std::size_t i);

/// Loops of `leaf` strictly below `loop` (all of them when null).
std::vector<const ir::ForNode*> loops_below(const Leaf& leaf, const ir::ForNode* loop);

}  // namespace weft::schedule
