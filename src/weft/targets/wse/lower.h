// SPDX-License-Identifier: Apache-2.0
#pragma once
// From blocks of the IR to stages on a rectangle of PEs. A stage is one block: its iterators are
// divided over the columns, the rows or both, every PE owns a box of the iteration space and has
// local arrays for the boxes of the buffers that its accesses reach; a reduction whose iterator is
// divided ends in a chain of PEs along the axis. What cannot be brought into that form is refused
// with the reason.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/json.h"
#include "weft/ir/node.h"
#include "weft/stages/update.h"
#include "weft/targets/wse/placement.h"

namespace weft::wse {

struct StageIter {
  ir::Var var;
  std::string name;
  std::int64_t min = 0, extent = 1, chunk = 1;
  bool reduce = false;
  bool travels = false;  // an operand's own division of a reduction: nothing is repeated over it
  Partition partition = Partition::none;
};

/// How an input that an earlier stage has left on other PEs, or in other boxes, comes to its
/// readers.
struct Redistribution {
  enum class Kind : std::uint8_t {
    none,
    row,     // broadcast: the first column holds the box of every PE of its row
    all,     // broadcast: the first PE holds everybody's box
    halo,    // most of the box is here already; its borders come from the neighbours
    gather,  // boxes are gathered, handed to everybody, and everybody takes its part
  };
  /// Element i of the writer's dimension lies in part i / chunk, which `spread` places.
  struct Part {
    std::int64_t chunk = 1;
    Partition partition = Partition::none;
  };
  /// First element of the reader's box on PE (x, y): base + cx * x + cy * y.
  struct Origin {
    std::int64_t base = 0, cx = 0, cy = 0;
    bool operator==(const Origin&) const = default;
  };
  Kind kind = Kind::none;
  std::string from;               // the writer's array
  std::vector<std::int64_t> box;  // its extents
  std::vector<Part> parts;
  std::vector<Origin> origin;
  std::vector<std::int64_t> before, after;  // halo: elements beyond the writer's box, per dimension
  std::int64_t columns = 1, rows = 1;       // PEs that hold different parts
  bool here = false;                        // every PE holds all: nothing travels
  bool within_row = false;                  // no PE needs parts of other rows
  std::int64_t gathered() const {
    std::int64_t n = columns * rows;
    for (std::int64_t e : box) n *= e;
    return n;
  }
};

/// The box of a buffer that one PE holds: dimension d starts at base[d] + sum(coef[d][k] * start of
/// iterator k) and has extent[d] elements.
struct LocalArray {
  std::string name;
  std::size_t buffer = 0;                       // in Program's buffers
  std::vector<std::vector<std::int64_t>> coef;  // [dimension][iterator]
  std::vector<std::int64_t> base, extent;
  std::vector<std::size_t> order;  // dimensions in memory, outermost first; empty: as they are
  std::vector<bool> data;          // dimensions that data decide: the box has all of them
  bool kept = false;    // it is an earlier stage's output, still in place: `name` is that one's
  Redistribution move;  // or comes from one over the fabric
  bool on_wafer() const { return kept || move.kind != Redistribution::Kind::none; }
  bool along_data(std::size_t d) const { return d < data.size() && data[d]; }
  std::int64_t size() const {
    std::int64_t n = 1;
    for (std::int64_t e : extent) n *= e;
    return n;
  }
  /// Elements between neighbours of each dimension.
  std::vector<std::int64_t> strides() const;
};

/// A product of matrices whose operands are divided over both axes of the rectangle: parts of A
/// travel along the rows and parts of B along the columns, in the order of the reduction.
struct Panels {
  std::size_t a = 0, b = 0;  // inputs: A is divided over the columns along k, B over the rows
  std::size_t i = 0, j = 0, k = 0;
  std::int64_t block = 1;               // of k, worked on at once
  std::int64_t a_part = 1, b_part = 1;  // of k, on each PE; multiples of `block`
  std::int64_t steps = 1;               // blocks
};

using stages::Combine;

struct Stage {
  std::string name, label;  // label: begins the names of its descriptors
  std::vector<StageIter> iters;
  std::vector<LocalArray> inputs;
  LocalArray output;
  Combine combine = Combine::none;
  bool keeps = false;    // begins with what the buffer holds: an update, or conditions
  ir::Expr init, value;  // value: what is stored, or what is combined into the element
  /// Which points the value and the init are stored at; null: all.
  ir::Expr guard, init_guard;
  Partition reduced = Partition::none;
  bool after_chain = false;  // placed on the rows, as a reduction before it ended in column 0
  std::optional<Panels> panels;
  bool collect = true;  // the output goes back to the buffer; else only later stages read it
  bool whole = false;   // the output is all of its buffer
  Partition held =
      Partition::none;  // where it is valid: everywhere, in the first column, on the first PE
};

struct StageBuffer {
  std::string name;
  ir::Buffer buffer;
  DType dtype;
  std::vector<std::int64_t> shape;
  bool param = true;
  /// A view: one element per point of some of a block's iterators, which are `shape`; `index` says
  /// which element of buffer `view_of` each is (view.h).
  std::ptrdiff_t view_of = -1;
  Json index;
};

/// A result that is divided as an input is: the next call can take the one for the other where it
/// lies.
struct Take {
  std::string from, to;  // arrays of a PE
  std::int64_t size = 1;
  DType dtype;
};

struct StageProgram {
  std::string name;
  std::int32_t width = 1, height = 1;
  std::vector<StageBuffer> buffers;  // parameters first, in order
  std::vector<Stage> stages;
  std::vector<Take> takes;
  std::int64_t scratch_bytes = 0;  // of every PE, for temporaries of vector operations
  bool has_panels() const {
    return std::any_of(stages.begin(), stages.end(), [](const Stage& s) { return !!s.panels; });
  }
  /// Elements of the array in which parts of buffers of this type are gathered; 0: there is none.
  std::int64_t gathered(DType dtype) const;
};

/// Throws Error(lower, "wse.lower.…" or "stages.…") with what is not accepted and why.
StageProgram lower_stages(const ir::PrimFunc& f, std::int32_t width, std::int32_t height);

/// Position of a load in the local array of its buffer; null when the access is not one of the
/// stage's.
const LocalArray* find_local(const StageProgram& program, const Stage& stage,
                             const ir::LoadNode& load, std::vector<std::int64_t>* constant);

/// CSL text of the layout file and of the PE program.
std::string layout_text(const StageProgram& program);
std::string pe_text(const StageProgram& program);
/// What the device needs to move data: buffers, stages, arrays, as JSON.
Json describe(const StageProgram& program);

}  // namespace weft::wse
