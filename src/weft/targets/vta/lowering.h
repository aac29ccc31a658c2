// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of one kernel's lowering, shared by the files that do its parts: lower.cpp walks
// statements and places buffers, lower_copy.cpp makes transfers of rectangles, lower_compute.cpp
// makes GEMM and ALU instructions.

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "weft/targets/vta/chip_memory.h"
#include "weft/targets/vta/lower.h"
#include "weft/targets/vta/nest.h"

namespace weft::vta {

/// Thrown inside, when a nest is no unit; outer loops may be run instead.
struct NoUnit {
  Refusal refusal;
};

class Lowering {
 public:
  Lowering(const ir::PrimFunc& f, const Config& config);

  void run_into(Program& program);

 private:
  using Placed = ChipMemory::Placed;
  using Loop = UopKernel::Loop;

  Error refuse(const char* slug, std::string message, const ir::StmtNode* where) const;
  [[noreturn]] void no_unit(const char* slug, std::string message, const ir::StmtNode* where,
                            std::string note = {}) const;

  // ---- statements

  void walk(const ir::Stmt& s);

  // ---- memory

  void allocation(const ir::AllocateNode* a);

  std::int64_t lanes_of(MemType mem) const;

  const Placed* placed(const ir::BufferNode* b) const { return chip_.find(b); }

  // ---- units

  Affine index(const ir::Exprs& indices, const Nest& nest, const ir::StmtNode* where) const;

  void unit(Nest nest);

  /// Takes the steps for which the guard does not hold out of the nest's loops.
  void narrow(Nest& nest, const ir::Expr& guard) const;

  /// A loop nest over lanes and elements of one on-chip buffer: removes the loops that make up an
  /// element. `a` is the on-chip index in scalars; `others` must step alike inside an element.
  struct Dim {
    std::int64_t extent, on_chip, other;
    int loop = -1;                       // of the nest, when it is one whole
    std::int64_t before = 0, after = 0;  // of the extent: filled with zeros
  };

  std::vector<Dim> elements(const Nest& nest, const Affine& a, const Affine& other,
                            std::int64_t lanes, const ir::StmtNode* where) const;

  /// What a condition leaves of the copy, as padding of its dimensions; false: nothing.
  bool pad(const Nest& nest, const ir::Expr& condition, std::vector<Dim>& dims) const;
  /// A copy that lies wholly in the padding: one row of zeros for each run on chip.
  void zeros(const std::vector<Dim>& dims, const Placed& chip, std::int64_t at, MemType mem,
             int param);

  void dma(const Nest& nest, const ir::LoadNode* from, const Placed& chip, bool load,
           const std::vector<ir::Expr>& conditions);

  void transfers(const std::vector<Dim>& dims, std::size_t i, std::int64_t chip, std::int64_t dram,
                 const Rect& rect, MemType mem, int param, bool load);

  /// acc += inp . wgt. False: the statement is no sum of products.
  bool product(const Nest& nest, const Placed& dst);

  /// Instructions of a unit are recorded once all of it is known to be one: a nest that is refused
  /// half way is tried again inside its outer loop, and must have left nothing.
  void emit(std::function<void()> instruction) { unit_.push_back(std::move(instruction)); }
  void emit_reset(std::vector<Loop> dims, std::uint32_t dst);
  void emit_alu(AluOp op, UopKernel kernel, std::int64_t number);

  static std::uint32_t element(std::int64_t at) { return static_cast<std::uint32_t>(at); }

  /// Loops over whole accumulator elements; `keep` decides which loops count.
  std::vector<Loop> acc_dims(const Nest& nest, const Affine& d, const Affine* src, bool keep_sums,
                             const ir::StmtNode* where) const;

  /// The initial value of a sum: at the first step of its reduction loops.
  void reset_for(const Nest& nest, const Placed& dst);

  /// Whether the guard (a conjunction of "this reduction index is at its first value") holds for
  /// the nest's first step; false: for none of them.
  bool first_step(const ir::Expr& guard, const Nest& nest, const Affine& d,
                  const ir::StmtNode* where) const;

  // ---- ALU

  void chain(const Nest& nest, const ir::Expr& value, const ir::StoreNode* s, const Placed& dst);

  /// Leaves the value of `e` in the destination.
  void evaluate(const Nest& nest, const ir::Expr& e, const ir::StoreNode* s, const Placed& dst,
                const Affine& d, const std::vector<Loop>& in_place, const Uop& here, int& steps);

  void operand(AluOp op, const Nest& nest, const ir::LoadNode* load, const ir::StoreNode* s,
               const Placed&, const Affine& d, const Uop& here, int&);

  [[noreturn]] void unsupported(const ir::Expr& v, const ir::StoreNode* s) const;

  const ir::PrimFunc& f_;
  const Config& c_;
  Builder b_;
  Environment env_;
  std::map<const ir::BufferNode*, int> params_;
  ChipMemory chip_;
  std::vector<std::function<void()>> unit_;
  std::optional<Refusal> reason_;  // why the outermost nest was no unit
};

}  // namespace weft::vta
