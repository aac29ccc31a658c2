// SPDX-License-Identifier: Apache-2.0
#pragma once
// One kernel as C-like text: what emit_c.cpp (the frame: parameters, the host's entry, shared
// arrays), emit_c_stmt.cpp (statements) and emit_c_store.cpp (stores and whole vectors) share.

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "weft/arith/analyzer.h"
#include "weft/ir/attributes.h"
#include "weft/target/emit_c_internal.h"

namespace weft::emit {

using namespace ir;  // NOLINT(google-build-using-namespace): private to the emitter

/// Whether the function carries the attribute, and it is true.
/// Whether e reads the buffer.
bool reads_buffer(const Expr& e, const BufferNode* b);

/// One kernel as text.
class KernelText {
 public:
  KernelText(const CSpelling& spelling, Helpers& helpers, const PrimFunc& f)
      : spelling_(spelling), expr_(spelling, helpers), f_(f) {}

  std::string functions;  // outlined bodies of parallel loops
  std::vector<std::string> assertions;
  runtime::KernelSignature signature;

  std::string run();
  bool copies() const { return copies_; }
  bool tensors() const { return !tensors_.empty(); }
  bool streams() const { return streams_ || any_streams_; }
  std::int64_t shared_bytes() const { return shared_bytes_ + signature.scratch_bytes; }

 private:
  // ---- emit_c.cpp: the frame
  std::string param(const Param& p, bool alone);
  std::string tensor_param(const Param& p);
  std::string extra_tail() const;
  std::string launch_bounds(const LaunchNode* launch) const;
  /// What orders streamed stores before the end of a host function.
  std::string stream_end() const;
  /// The typed function, and the entry of the host ABI that unpacks its arguments.
  std::string host_text(std::vector<std::string> params);
  std::string shared_declarations();
  std::string align_word(int bytes) const;

  // ---- emit_c_stmt.cpp: statements
  void line(const std::string& text);
  void body(const Stmt& s);
  void stmt(const Stmt& s);
  /// Copies that the machine makes by itself are started; what it cannot copy so is done here.
  void async_text(const AsyncNode* t);
  void wait_text(const WaitNode* t);
  /// Whether the store is a copy of whole elements from global to shared memory, or of zeros in
  /// their place, that was started.
  bool started_copy(const StoreNode* t);
  void for_stmt(const ForNode* t);
  /// Lanes of a vectorized loop touch distinct memory only if pointers are known not to overlap.
  bool independent(const ForNode*) const {
    return has_flag(f_->attrs, "noalias") || has_flag(f_->attrs, "tir.noalias");
  }
  void parallel_text(const ForNode* t);
  void let_stmt_text(const LetStmtNode* t);
  void assert_text(const AssertNode* t);
  void evaluate_text(const Expr& e);
  void allocate_text(const AllocateNode* t);

  // ---- emit_c_store.cpp: stores and vectors
  /// Target and value as a statement; under a nontemporal store with the machine's function for it.
  std::string assign(const std::string& target, const std::string& value) const;
  void atomic_text(const StoreNode* t, const CallNode* update);
  void store_stmt(const StoreNode* t);
  std::string bare_store(DType element, const ir::Expr& value, const Lane* lane = nullptr);
  bool needs_constant_lanes(const Expr& e) const;
  void store_lanes_loop(const StoreNode* t, const std::string& array, int lanes);
  /// Whether consecutive elements can move as one vector: a vector type exists and the address is
  /// aligned.
  bool movable(const Buffer& b, const RampNode* r) const;
  /// Whether consecutive elements can be copied as one vector, though no lane of it has a name.
  bool copyable(const Buffer& b, const RampNode* r) const;
  /// Elements of one and two bytes in global memory that move together through a private array,
  /// where single lanes of the moved type have no names.
  bool packed(const Buffer& b, const RampNode* r) const;
  std::string pack(DType element, int lanes);  // declares the array
  std::string unpacked(const std::string& id, DType element, int lanes) const;
  static std::string vector_name(DType element, int lanes);
  std::string vector_type(DType element, int lanes) const;
  std::string construct(DType element, int lanes) const;
  std::string address(const Buffer& b, const RampNode* r, bool constant);
  std::string move_in(const LoadNode* l, const RampNode* r);
  std::string move_out(const Buffer& b, const RampNode* r, int lanes, const std::string& value);
  /// A store of consecutive elements as one vector (VectorStyle::gnu); false: lane by lane.
  bool store_whole(const StoreNode* t);
  /// Lanes of the vectors that a local buffer is an array of, when every access is a whole one: the
  /// compiler behind keeps such arrays in registers. 0: it is ordinary memory.
  int register_lanes(const AllocateNode* t) const;
  /// Whole vectors are loaded once, before the statement. Not those under a lazy condition.
  void hoist_vectors(const Expr& value, const StoreNode* direct);

  struct Pointer {
    std::string type, name;
  };
  struct Scalar {
    std::string type, name;
    DType dtype;
  };
  struct Shared {
    std::string type, name;
    std::int64_t count, bytes;
    int align, width;
  };

  const CSpelling& spelling_;
  Expressions expr_;
  PrimFunc f_;
  arith::Analyzer analyzer_;
  std::string text_, offsets_;
  int indent_ = 0;
  bool in_parallel_ = false, uses_ctx_ = false;
  bool instructions_ = false;  // tiles go to instructions of the machine
  bool roles_ = false;         // roles state their registers
  Json::Array tensors_;        // boxes of the leading parameters
  std::unordered_map<const VarNode*, std::string> queue_of_;  // by token
  bool copying_ = false, copies_ = false;                     // under Async; anywhere in the kernel
  bool streaming_ = false;                      // the store at hand bypasses the caches
  bool streams_ = false, any_streams_ = false;  // in this function; in an outlined one
  std::vector<Pointer> pointers_;
  std::vector<Scalar> scalars_;
  std::vector<Shared> shared_;
  std::int64_t shared_bytes_ = 0;
  std::unordered_set<const BufferNode*> written_;
  std::unordered_map<const BufferNode*, std::string> declared_;  // C pointer type
};

}  // namespace weft::emit
