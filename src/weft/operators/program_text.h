// SPDX-License-Identifier: Apache-2.0
#pragma once
// Programs of operators as T-script text. The head (parameters, buffers) is written from a list;
// {name} in a body stands for a value that is given with it.

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/dtype.h"
#include "weft/ir/node.h"

namespace weft::operators {

using Values = std::vector<std::pair<std::string_view, std::string>>;

/// The text with each {name} replaced. A name without a value is an internal error.
std::string fill(std::string_view text, const Values& values);

/// A function "main" of flat buffers, each reaching to the end of its storage, then scalars.
/// Its loops over threads hold statements that barriers separate.
class ProgramText {
 public:
  explicit ProgramText(std::string_view name) : name_(name) {}
  ProgramText& buffer(std::string_view name, std::string_view type);
  ProgramText& scalar(std::string_view name, std::string_view type);
  /// Elements that data chooses are different ones for different points.
  ProgramText& distinct() { return distinct_ = true, *this; }
  /// So many blocks shall have room on a processor at once.
  ProgramText& resident(int blocks) { return resident_ = blocks, *this; }
  /// The body is nests of blocks, which a schedule rule binds to the grid.
  ProgramText& unscheduled() { return bound_ = false, *this; }
  /// `body` is indented by four blanks and filled with the values.
  ir::PrimFunc parse(std::string_view body, const Values& values) const;

 private:
  std::string name_;
  std::string parameters_, buffers_;
  bool distinct_ = false, bound_ = true;
  int resident_ = 0;
};

/// "int32" where all positions fit, else "int64".
inline std::string index_type(bool narrow) { return narrow ? "int32" : "int64"; }

/// Statements that make inclusive prefixes over the threads of a block: values stand in
/// `first`[thread]; the result stands in the buffer that is named. `first` and `second` are shared,
/// of `threads` elements. `join` has {a} and {b}.
struct BlockScan {
  std::string text, result;
};
BlockScan block_scan(std::string_view first, std::string_view second, int threads,
                     std::string_view join, int indent, std::string_view thread = "t");

}  // namespace weft::operators
