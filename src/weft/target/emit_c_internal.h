// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the two halves of the C-like emitter share: names, helper functions, expression printing.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/target/emit_c.h"

namespace weft::emit {

/// "f32", "i8", "u64", "b1".
std::string short_name(DType t);

/// Helper functions used by the text, in the order of first use.
class Helpers {
 public:
  explicit Helpers(const CSpelling& spelling) : spelling_(spelling) {}
  /// "weft_floordiv_i64" etc.; `type` is the C type of operands. Returns the name.
  std::string integer(const std::string& what, DType type);
  std::string minmax(bool is_min, DType type);
  std::string floating(const std::string& what, DType type);
  /// "weft_f32_as_i32": the same bits as another type of that width.
  std::string reinterpret(DType from, DType to);
  void need_half();
  void need_bfloat();
  void define(const std::string& name, const std::string& definition) {
    if (first(name)) text_ += definition;
  }
  std::string text() const { return text_; }

 private:
  bool first(const std::string& name) { return known_.insert(name).second; }
  const CSpelling& spelling_;
  std::set<std::string> known_;
  std::string text_;
};

/// Which lane of a vector expression is printed: a constant, or the name of a loop variable.
struct Lane {
  bool constant = true;
  int index = 0;
  std::string name;
};

class Expressions {
 public:
  Expressions(const CSpelling& spelling, Helpers& helpers)
      : spelling_(spelling), helpers_(helpers) {}

  /// C text of a scalar expression, or of one lane of a vector.
  std::string text(const ir::Expr& e, const Lane* lane = nullptr);
  /// As text, without the outer parentheses.
  std::string bare(const ir::Expr& e, const Lane* lane = nullptr);
  /// As bare, of a value that is stored or decides a branch: signed arithmetic on data wraps.
  /// Indices keep plain arithmetic, of which compilers may assume that it stays in its type.
  std::string bare_value(const ir::Expr& e, const Lane* lane = nullptr);
  /// The variable's value comes from memory.
  void hold_data(const ir::VarNode* v) { data_vars_.insert(v); }
  bool touches_data(const ir::Expr& e);

  std::string type(DType t) const;                              // of a value
  std::string storage_type(DType t) const;                      // of an element in memory
  std::string load_value(DType t, const std::string& element);  // element text -> value text
  std::string store_value(DType t, const std::string& value);   // value text -> element text
  /// Unique identifier for a variable or buffer.
  std::string name(const void* node, const std::string& hint);
  std::string fresh(const std::string& hint);
  void define(const void* node, std::string text) { names_[node] = std::move(text); }
  std::string address_space(const std::string& scope) const;
  void define_helper(const std::string& name, const std::string& definition) {
    helpers_.define(name, definition);
  }

  /// Loads of whole vectors that the current statement holds in temporaries: node -> name.
  std::unordered_map<const ir::ExprNode*, std::string> vectors;
  std::unordered_set<const ir::ExprNode*> backwards;  // those whose last lane is the first element
  std::unordered_set<std::string> packs;              // those of them that are arrays
  std::string member(const std::string& vector, int lane, int lanes) const;

  // ---- emit_c_vector.cpp: whole vectors (VectorStyle::gnu)
  /// Whether values of the type are one vector of the language.
  bool is_whole(DType t) const;
  /// Whether the vector can be written as one expression; else it is written lane by lane.
  bool speaks_whole(const ir::Expr& e) const;
  std::string whole(const ir::Expr& e);
  /// "weft_f32x8", defined on first use; `loose`: anywhere in memory.
  std::string whole_type(DType t, bool loose = false);
  /// The vector at an index of consecutive elements, as an lvalue.
  std::string whole_dot(const ir::CallNode* c, const std::string& sums);
  std::string whole_element(const ir::BufferNode* b, const ir::RampNode* r);
  /// Statement that stores a vector past the caches: `aligned`, or where its address allows.
  std::string whole_stream(const ir::BufferNode* b, const ir::RampNode* r, const std::string& value,
                           bool aligned);
  /// Vector variables whose values are written whole, and buffers that are arrays of vectors of so
  /// many lanes.
  std::unordered_set<const ir::VarNode*> whole_vars;
  std::unordered_map<const ir::BufferNode*, int> registers;
  ir::VarMap integers;  // what integer variables stand for

 private:
  /// Bits of the elements that a truth value in vectors compares; 0: it cannot be written whole.
  int mask_bits(const ir::Expr& e) const;
  std::string mask(const ir::Expr& e);
  std::string choose(DType t, const std::string& mask, const std::string& a, const std::string& b);
  std::string binary(const ir::BinaryNode* e, const Lane* lane);
  std::string call(const ir::CallNode* e, const Lane* lane);
  std::string cast(DType to, DType from, const std::string& value);
  std::string literal(const ir::IntImmNode* e) const;
  std::string literal(double value, DType t) const;
  std::string rounded(DType t, const std::string& value);
  std::string reduce_lanes(const std::string& op, const ir::Expr& vector, int begin, int count);

  const CSpelling& spelling_;
  Helpers& helpers_;
  bool of_value_ = false;  // the text at hand is that of a value
  std::set<const ir::VarNode*> data_vars_;
  std::unordered_map<const void*, std::string> names_;
  std::set<std::string> taken_;
};

/// Whether vectors of the buffer are loaded or stored in s.
bool has_vector_access(const ir::Stmt& s, const ir::BufferNode* b);
/// Loads of consecutive elements that e certainly makes: not those under a lazy condition.
std::vector<const ir::LoadNode*> certain_vector_loads(const ir::Expr& e);

}  // namespace weft::emit
