// SPDX-License-Identifier: Apache-2.0
// How a staged program becomes CSL text; private to emit_csl*.cpp and emit_layout.cpp.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "weft/targets/wse/lower.h"

namespace weft::wse {

/// CSL's name of an element type. Throws `wse.lower.dtype` for one that PEs do not compute with.
std::string csl_type(DType t);

/// A constant of a float type, infinities and NaN by their bits.
std::string csl_number(double v, DType t);

/// The routes that a program needs.
struct Ways {
  bool x = false, y = false;         // chains along rows and along the first column
  bool east = false, south = false;  // borders for the neighbours
  bool row = false, all = false;     // broadcast along each row, and from the first PE to all
  explicit Ways(const StageProgram& p);
};

/// One operand of a product whose operands travel.
struct PanelSide {
  const LocalArray* array = nullptr;
  std::size_t own = 0, divided = 0;  // iterators: rows of A or columns of B, and the part of k
  std::int64_t part = 1, rows = 1;   // of k on a PE; elements beside each k
  std::int64_t stride = 1, stride_k = 1;
  std::int64_t block = 1, steps = 1;
  std::int64_t last() const { return (block * steps + part - 1) / part - 1; }  // PE that sends last
  std::int64_t rest() const { return block * steps - last() * part; }          // of k on that PE
  std::int64_t piece() const { return block * rows; }
};

/// `value` without the conditions that give 0 just where a read leaves the buffer: there the box
/// that comes from the neighbours holds zeros (emit_csl_border.cpp).
ir::Expr without_border_conditions(const StageProgram& p, const Stage& s, const ir::Expr& value);
/// Whether the stage reads what lies beyond the own part along both axes of the rectangle.
bool reads_corners(const StageProgram& p, const Stage& s, const LocalArray& a);

/// The text of the PE program that every PE of the rectangle runs.
class CslEmitter {
 public:
  explicit CslEmitter(const StageProgram& p) : p_(p) {}

  std::string run();

 private:
  std::string declare(const LocalArray& a);

  friend class VectorStage;

  /// Index into a local array; iterators in `without` count as 0.
  std::string index(const Stage& s, const LocalArray& a, const std::vector<std::int64_t>& offset,
                    const std::vector<std::size_t>& without = {});

  std::int64_t factor_of(const Stage& s, const LocalArray& a, std::size_t k);

  /// Where in its array the output of the point lies: the array begins at the PE's first point.
  std::vector<std::int64_t> output_offset(const Stage& s);
  std::string helper(const std::string& name, const std::string& text);
  std::string expr(const Stage& s, const ir::Expr& e);
  /// The part of an index that data decide, as something to add; empty where there is none.
  std::string data_offset(const Stage& s, const LocalArray& a, const ir::LoadNode& l);
  std::string pick(const std::string& name, const std::string& op, const std::string& t);
  std::string combined(Combine c, const std::string& a, const std::string& b, const std::string& t);

  /// Loops over the PE's part of the iterators for which `wanted` holds; returns the closing text.
  std::string loops(const Stage& s, const std::function<bool(std::size_t)>& wanted,
                    std::string& out, std::string& indent);

  /// The init of a reduction; on one PE of a chain only.
  void init(const Stage& s, std::string& body);
  std::string parts(const Stage& s, const std::string& body) const;
  /// A stage that sums up products of panels that travel (emit_csl_panels.cpp).
  std::string panels(const Stage& s, std::size_t number_of);
  std::string chain(const Stage& s, const char* axis, const std::string& guard, int in_queue,
                    int out_queue);
  std::string descriptor(const std::string& name, const std::string& array, std::int64_t n);
  /// The descriptor of temporary `number` of `count` elements; empty where there is no room.
  std::string temporary(int number, std::int64_t count, DType t);
  // Parts of the text of a stage with panels.
  std::string panel_block(const Stage& s, std::size_t number_of);
  std::string panel_sends(const Stage& s, bool along_x);
  std::string panel_receives(const Stage& s, bool along_x);
  std::string panel_head() const;
  PanelSide panel_side(const Stage& s, bool along_x);

  static std::string fabric(bool in, const std::string& extent, const char* color, int queue);

  /// Brings a box from the PEs that hold it.
  std::string movement(const Stage& s, const LocalArray& a);

  /// The box from the own part and the neighbours' borders; `corners`: with what lies beyond it
  /// along both axes.
  std::string halo(const LocalArray& a, bool corners);

  /// All parts come to the first PE of the row or of all, row by row, and go from there to
  /// everybody.
  std::string gather(const LocalArray& a, const std::string& mov, std::int64_t box);
  std::string stage(std::size_t number_of);
  /// A function that copies a result to an input divided alike.
  std::string take(std::size_t number_of);

  const StageProgram& p_;
  std::map<std::string, std::string> helpers_;
  std::string dsds_;
  std::set<std::string> declared_;               // lines of descriptors that the text has
  std::map<std::string, std::int64_t> scratch_;  // elements of each type
  bool uses_math_ = false;
};

}  // namespace weft::wse
