// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text of one LLVM function under construction: instructions, blocks, values of variables and
// buffers.

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/ir/node.h"
#include "weft/targets/cpu/dot_instructions.h"

namespace weft::cpu {

/// "i64", "<8 x float>". Values of bool are i1, of bfloat16 are (rounded) float.
std::string value_type(DType t);
/// As stored: bool is i8, bfloat16 is i16.
std::string memory_type(DType t);

struct ModuleText {
  std::string functions;               // finished functions
  std::set<std::string> declarations;  // "declare float @llvm.sqrt.f32(float)"
  std::set<std::string> helpers;       // names of math helpers already defined
  std::string helper_text;
  bool explicit_vectors = false;
  bool nontemporal = false;  // !0 is used
  bool contract = true;      // a product and a sum may become one rounding; of the kernel at hand
  DotInstructions dots;
  int outlined = 0;
  int vector_bytes = 0;  // of calls of the C library's vector mathematics; 0: none
  /// Functions (name, bits) that the kernel at hand computes on vectors -> the most lanes. What is
  /// left over of a loop takes the same function on one lane of a vector: equal elements give equal
  /// results wherever they stand.
  std::map<std::pair<std::string, int>, int> vector_lanes;
};

class FunctionEmitter {
 public:
  FunctionEmitter(ModuleText& module, std::string name) : module_(module), name_(std::move(name)) {}

  struct BufferValue {
    std::string pointer;
  };
  std::unordered_map<const ir::VarNode*, std::string> vars;
  std::unordered_map<const ir::BufferNode*, BufferValue> buffers;
  std::vector<std::string>* assertions = nullptr;

  /// Emits the statement; returns the text of the blocks, entry first, ending in `ret i32 0`.
  std::string body(const ir::Stmt& s);

 private:
  // llvm_stmt.cpp
  void stmt(const ir::Stmt& s);
  void loop(const ir::ForNode* s);
  void parallel(const ir::ForNode* s);
  void store(const ir::StoreNode* s);
  void stream(DType t, const std::string& value, const std::string& pointer);
  void allocate(const ir::AllocateNode* s);
  void loop_over(const ir::Var& var, const std::string& low, const std::string& end, bool runs,
                 const ir::Stmt& s);
  void return_code(const std::string& code, std::size_t n);

  // llvm_expr.cpp
  std::string expr(const ir::Expr& e);
  std::string constant(const ir::Expr& e);
  std::string binary(const ir::BinaryNode* e);
  std::string rounded_to_odd(DType from, const std::string& value);
  std::string divided(const ir::BinaryNode* e, const std::string& a, const std::string& b);
  std::string cast(DType from, DType to, std::string value);
  std::string compared(const char* how, DType t, const std::string& a, const std::string& b);
  std::string chosen(DType condition, const std::string& c, DType t, const std::string& a,
                     const std::string& b);
  std::string call(const ir::CallNode* e);
  std::string load(const ir::LoadNode* e);
  std::string strided(const ir::LoadNode* e, const ir::Expr& base, int step);
  std::string splat(DType t, const std::string& scalar);
  std::string round_bfloat(DType t, const std::string& value);
  std::string to_memory(DType t, const std::string& value);
  std::string from_memory(DType t, const std::string& value);
  std::string address(const ir::BufferNode* b, const std::string& index);
  std::string lane(DType t, const std::string& vector, int i);
  std::string lanewise(DType t, const std::string& function, const std::vector<std::string>& args,
                       const std::vector<DType>& types);
  // llvm_dot.cpp
  std::string neighbours(const ir::Expr& load);
  std::string dot(const ir::CallNode* e);
  std::string interleave(const ir::CallNode* e);
  // llvm_expr.cpp
  std::string math(const std::string& op, DType t, const std::vector<std::string>& args);
  std::string library_vectors(const std::string& op, DType t, const std::vector<std::string>& args);

  std::string let(const std::string& instruction) {
    std::string v = "%v" + std::to_string(next_++);
    text_ += "  " + v + " = " + instruction + "\n";
    return v;
  }
  void line(const std::string& instruction) { text_ += "  " + instruction + "\n"; }
  std::string label() { return "b" + std::to_string(next_++); }
  void begin_block(const std::string& l) {
    text_ += l + ":\n";
    block_ = l;
  }

  ModuleText& module_;
  std::string name_, text_, entry_allocas_, block_ = "entry";
  int next_ = 0;
  bool streams_ = false;            // holds stores that bypass the caches
  std::vector<std::string> frees_;  // workspace pointers live here, released on every return
};

/// Text of a helper `name` for vectors or scalars of float32, defined once in the module; returns
/// its name.
std::string math_helper(ModuleText& module, const std::string& op, DType t);
bool has_math_helper(const std::string& op, DType t);

/// The definition of a function of transpose_rows. Throws Error(emit, "cpu.emit.call") for others.
std::string transpose_helper(const std::string& function);

}  // namespace weft::cpu
