// SPDX-License-Identifier: Apache-2.0
#pragma once
// One lowering of a function: private to lower*.cpp.

#include <algorithm>
#include <string>
#include <vector>

#include "weft/stages/blocks.h"
#include "weft/stages/visits.h"
#include "weft/targets/wse/lower.h"

namespace weft::wse {

/// Throws Error(lower, "wse.lower.<slug>").
[[noreturn]] void refuse(std::string_view slug, std::string message, std::string help = {});

class Lowering {
 public:
  Lowering(const ir::PrimFunc& f, std::int32_t w, std::int32_t h) : f_(f) {
    out_.name = f->name;
    out_.width = w;
    out_.height = h;
  }

  StageProgram run();

 private:
  using Origin = Redistribution::Origin;
  /// For arrays; code takes the rest, some 500 bytes a stage.
  std::int64_t free_bytes() const {
    const auto stages = static_cast<std::int64_t>(out_.stages.size());
    return 44 * 1024 - 500 * std::max<std::int64_t>(stages - 4, 0);
  }
  static constexpr std::int64_t kGatherBytes = 20 * 1024;  // more is not gathered on PEs
  static constexpr std::int64_t kScratchBytes = 2 * 1024;  // for temporaries, where there is room

  // lower.cpp: buffers and blocks.
  /// Bytes of every PE's arrays.
  std::int64_t bytes_used() const;
  void add_buffer(const ir::Buffer& b, bool param);
  std::size_t buffer_index(const ir::Buffer& b) const;
  /// Guards of the value and the init. Returns whether elements are left out.
  static bool conditions(Stage& s, const ir::Exprs& all);
  /// Elements of its own output that a block reads must be the one it writes, or none it writes:
  /// PEs do not wait for each other's elements.
  static void check_own_reads(const Stage& s, const ir::StoreNode& t);
  void stage(const stages::Leaf& leaf, const stages::Visits& visits);

  // lower_access.cpp: boxes of buffers, views.
  /// Whether each index is a sum of iterators times constants.
  static bool linear(const Stage& s, const ir::Exprs& indices);
  /// A view of `b` through indices that are not linear: an element per point of the iterators in
  /// them, or of all spatial ones. Changes the indices to those iterators.
  ir::Buffer view(const Stage& s, const ir::Buffer& b, ir::Exprs* indices, bool spatial);
  /// The expression with views in place of accesses that are not linear.
  ir::Expr with_views(const Stage& s, const ir::Expr& e);
  /// The local array of an access, merged with an earlier one of the same slopes.
  void access(Stage& s, const ir::Buffer& b, const ir::Exprs& indices, const std::string& name,
              LocalArray* fixed);

  /// Parts that come from the host lie in memory as the stage's vectors run: unit strides, where
  /// words of one bank would otherwise be read one after the other.
  static void order_inputs(Stage& s);

  // lower_panels.cpp: products of matrices.
  /// Places the stage as a product whose operands travel; false: it is none.
  bool place_panels(Stage& s);
  /// Bytes of the blocks on their way.
  std::int64_t panel_bytes(const Stage& s) const;

  // lower_place.cpp: which PE has what, and how values travel between stages.
  /// Parts that loops over PEs ask for.
  void place(Stage& s, const std::vector<BoundPart>& parts);
  void place(Stage& s, bool after_chain);
  void follow_writer(Stage& s);
  bool reduce_in_place(Stage& s);
  void widen(const Stage& from, const Stage& s, LocalArray& a) const;
  bool halo(const Stage& from, const LocalArray& a, Redistribution* m) const;
  std::vector<Origin> origins(const Stage& s, const LocalArray& a) const;
  /// Whether the stage writes every element of its output's buffer, each box without holes.
  bool covers(const Stage& s) const;
  /// PEs that hold the right values of what a stage has written: all, or those of column 0 or the
  /// first one only, where a chain ended.
  static Partition where(const Stage& s, Partition inputs);
  static bool uses(const Stage& s, Partition axis);
  /// The way of `a` from the output of `from`, whose values `held` says where to find; none: the
  /// memory beside the wafer. `borders`: halos are allowed.
  Redistribution plan_redistribution(const Stage& from, Partition held, const Stage& s,
                                     const LocalArray& a, std::int64_t limit, bool borders) const;
  /// Intermediates stay on the PEs where a reader's box is the writer's on every PE that matters,
  /// or go there over the fabric; gathering takes at most `limit` bytes.
  void keep_in_place(std::int64_t limit);
  void find_takes();

  const ir::PrimFunc& f_;
  StageProgram out_;
};

}  // namespace weft::wse
