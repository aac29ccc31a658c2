// SPDX-License-Identifier: Apache-2.0
#pragma once
// A program and its history of steps. Every step is checked, then applied; a refused step throws
// Error(schedule, ...) and leaves program and trace as they were. The methods below are the
// primitives by name; `apply` takes any of them as a value, `call` by name with dynamic arguments
// (bindings, replay).

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/ir/node.h"
#include "weft/schedule/primitives/all.h"
#include "weft/schedule/run_check.h"
#include "weft/schedule/state.h"
#include "weft/schedule/trace.h"

namespace weft::schedule {

class Schedule {
 public:
  /// Throws Error(verify, "verify.*") when the program is ill-formed. `machine` null: generic rows.
  explicit Schedule(const ir::PrimFunc& f, std::shared_ptr<const TargetInfo> machine = nullptr,
                    std::int64_t seed = 0);
  explicit Schedule(ir::IRModule m, std::shared_ptr<const TargetInfo> machine = nullptr,
                    std::int64_t seed = 0);

  const ir::IRModule& mod() const { return state_.mod; }
  /// The function of a one-function module, or the one worked on.
  ir::PrimFunc func() const;
  const Trace& trace() const { return trace_; }
  /// The program before the first step: replaying the trace on it gives `mod` again.
  const ir::IRModule& start() const { return start_; }
  const State& state() const { return state_; }
  /// The program as T-script.
  std::string show() const;
  /// The function that get_block looks in by default.
  void work_on(const std::string& func_name);
  /// Verifies the program after every step; a violation is an internal error. For tests.
  void set_verifying(bool on) { verifying_ = on; }
  /// From here on every step is also run: the interpreter must find the results of the program as
  /// it is now unchanged, or the step is refused with "schedule.check.differs". For small programs.
  void check_by_running(std::uint64_t seed = 0, std::int64_t step_limit = 20'000'000) {
    run_check_.emplace(state_.mod, seed, step_limit);
  }
  const std::optional<RunCheck>& run_check() const { return run_check_; }
  /// Refusals without printed programs, for tuners.
  void set_detail(bool on) { state_.detail = on; }

  template <typename S>
  typename S::Result apply(const S& step);
  template <typename S>
  Verdict check(const S& step) const;

  /// A step by name. Positional and keyword arguments as Python takes them; block names stand for
  /// blocks.
  Value call(std::string_view name, const Value::List& positional,
             const std::vector<std::pair<std::string, Value>>& keywords = {});
  /// Repeats a recorded trace on another program.
  static Schedule replay(const ir::PrimFunc& f, const Json& trace,
                         std::shared_ptr<const TargetInfo> machine = nullptr);
  static Schedule replay(const ir::IRModule& m, const Json& trace,
                         std::shared_ptr<const TargetInfo> machine = nullptr);

  BlockRef get_block(std::string name, std::string func_name = "") {
    return apply(GetBlock{std::move(name), std::move(func_name)});
  }
  std::vector<LoopRef> get_loops(BlockRef block) { return apply(GetLoops{block}); }
  std::vector<BlockRef> get_child_blocks(BlockOrLoop at) {
    return apply(GetChildBlocks{std::move(at)});
  }
  std::vector<BlockRef> get_producers(BlockRef block) { return apply(GetProducers{block}); }
  std::vector<BlockRef> get_consumers(BlockRef block) { return apply(GetConsumers{block}); }
  std::vector<BlockRef> get_output_blocks(BlockRef scope) { return apply(GetOutputBlocks{scope}); }
  std::vector<LoopRef> split(const LoopRef& loop, Factors factors, bool preserve_unit_iters = true,
                             bool disable_predication = false, std::string tail = "guard") {
    return apply(
        Split{loop, std::move(factors), preserve_unit_iters, disable_predication, std::move(tail)});
  }
  std::vector<LoopRef> loop_partition(const LoopRef& loop, Factors factors) {
    return apply(LoopPartition{loop, std::move(factors)});
  }
  LoopRef merge(std::vector<LoopRef> loops) { return apply(Merge{std::move(loops)}); }
  void reorder_block_iter_var(BlockRef block, std::vector<std::int64_t> new_order) {
    apply(ReorderBlockIterVar{block, std::move(new_order)});
  }
  std::vector<LoopRef> transform_block_layout(BlockRef block, IndexMap index_map) {
    return apply(TransformBlockLayout{block, std::move(index_map)});
  }
  LoopRef fuse(std::vector<LoopRef> loops, bool preserve_unit_iters = true) {
    return apply(Fuse{std::move(loops), preserve_unit_iters});
  }
  void reorder(std::vector<LoopRef> loops) { apply(Reorder{std::move(loops)}); }
  LoopRef add_unit_loop(BlockOrLoop at) { return apply(AddUnitLoop{std::move(at)}); }
  void parallel(const LoopRef& loop) { apply(Parallel{loop}); }
  void vectorize(const LoopRef& loop) { apply(Vectorize{loop}); }
  void unroll(const LoopRef& loop) { apply(Unroll{loop}); }
  void bind(const LoopRef& loop, std::string thread_axis) {
    apply(Bind{loop, std::move(thread_axis)});
  }
  BlockRef cache_read(BlockRef block, std::int64_t read_buffer_index, std::string storage_scope,
                      std::vector<BlockRef> consumer_blocks = {}) {
    return apply(
        CacheRead{block, read_buffer_index, std::move(storage_scope), std::move(consumer_blocks)});
  }
  BlockRef cache_write(BlockRef block, std::int64_t write_buffer_index, std::string storage_scope,
                       std::vector<BlockRef> consumer_blocks = {}) {
    return apply(CacheWrite{block, write_buffer_index, std::move(storage_scope),
                            std::move(consumer_blocks)});
  }
  std::vector<BlockRef> cache_inplace(BlockRef block, std::int64_t read_buffer_index,
                                      std::string storage_scope) {
    return apply(CacheInplace{block, read_buffer_index, std::move(storage_scope)});
  }
  std::vector<BlockRef> cache_index(BlockRef block, std::string storage_scope,
                                    std::int64_t cse_thresh = 0) {
    return apply(CacheIndex{block, std::move(storage_scope), cse_thresh});
  }
  BlockRef read_at(const LoopRef& loop, BlockRef block, std::int64_t read_buffer_index,
                   std::string storage_scope) {
    return apply(ReadAt{loop, block, read_buffer_index, std::move(storage_scope)});
  }
  BlockRef write_at(const LoopRef& loop, BlockRef block, std::int64_t write_buffer_index,
                    std::string storage_scope) {
    return apply(WriteAt{loop, block, write_buffer_index, std::move(storage_scope)});
  }
  BlockRef reindex(BlockRef block, BufferChoice buffer) {
    return apply(Reindex{block, std::move(buffer)});
  }
  BlockRef reindex_cache_read(BlockRef block, std::int64_t read_buffer_index,
                              std::string storage_scope, IndexMap index_map) {
    return apply(
        ReindexCacheRead{block, read_buffer_index, std::move(storage_scope), std::move(index_map)});
  }
  BlockRef reindex_cache_write(BlockRef block, std::int64_t write_buffer_index,
                               std::string storage_scope, IndexMap index_map) {
    return apply(ReindexCacheWrite{block, write_buffer_index, std::move(storage_scope),
                                   std::move(index_map)});
  }
  void compute_at(BlockRef block, const LoopRef& loop, bool preserve_unit_loops = false,
                  std::int64_t index = -1) {
    apply(ComputeAt{block, loop, preserve_unit_loops, index});
  }
  void reverse_compute_at(BlockRef block, const LoopRef& loop, bool preserve_unit_loops = false,
                          std::int64_t index = -1) {
    apply(ReverseComputeAt{block, loop, preserve_unit_loops, index});
  }
  BlockRef decompose_reduction(BlockRef block, const LoopRef& loop) {
    return apply(DecomposeReduction{block, loop});
  }
  BlockRef rfactor(const LoopRef& loop, std::int64_t factor_axis) {
    return apply(RFactor{loop, factor_axis});
  }
  void pad_reduction(const LoopRef& loop, IntRef factor) { apply(PadReduction{loop, factor}); }
  void fuse_reduction_epilogue(BlockRef reduction_block, BlockRef epilogue_block) {
    apply(FuseReductionEpilogue{reduction_block, epilogue_block});
  }
  BlockRef decompose_padding(BlockRef block, const LoopRef& loop) {
    return apply(DecomposePadding{block, loop});
  }
  std::vector<BlockRef> pad_einsum(BlockRef block, std::vector<std::int64_t> padding,
                                   bool multiples = false) {
    return apply(PadEinsum{block, std::move(padding), multiples});
  }
  std::vector<BlockRef> shift_factor(BlockRef block, std::int64_t read_buffer_index) {
    return apply(ShiftFactor{block, read_buffer_index});
  }
  void rolling_buffer(BlockRef block, std::int64_t write_buffer_index) {
    apply(RollingBuffer{block, write_buffer_index});
  }
  void compute_inline(BlockRef block) { apply(ComputeInline{block}); }
  void reverse_compute_inline(BlockRef block) { apply(ReverseComputeInline{block}); }
  void annotate(BlockOrLoop at, std::string ann_key, Json ann_val) {
    apply(Annotate{std::move(at), std::move(ann_key), std::move(ann_val)});
  }
  void unannotate(BlockOrLoop at, std::string ann_key) {
    apply(Unannotate{std::move(at), std::move(ann_key)});
  }
  void storage_align(BlockRef block, std::int64_t buffer_index, std::int64_t axis,
                     std::int64_t factor, std::int64_t offset) {
    apply(StorageAlign{block, buffer_index, axis, factor, offset});
  }
  void set_scope(BlockRef block, std::int64_t buffer_index, std::string storage_scope) {
    apply(SetScope{block, {"write", buffer_index, ""}, std::move(storage_scope)});
  }
  void unsafe_set_dtype(BlockRef block, std::int64_t buffer_index, std::string dtype) {
    apply(UnsafeSetDtype{block, buffer_index, std::move(dtype)});
  }
  void annotate_buffer_access(BlockRef block, std::int64_t buffer_index, std::string buf_type,
                              IndexMap gen_new_ranges) {
    apply(
        AnnotateBufferAccess{block, buffer_index, std::move(buf_type), std::move(gen_new_ranges)});
  }
  void unsafe_hide_buffer_access(BlockRef block, std::string buf_type,
                                 std::vector<std::int64_t> buf_index_array) {
    apply(UnsafeHideBufferAccess{block, std::move(buf_type), std::move(buf_index_array)});
  }
  void transform_layout(BlockRef block, BufferChoice buffer, IndexMap index_map,
                        Json pad_value = nullptr, bool assume_injective_transform = false) {
    apply(TransformLayout{block, std::move(buffer), std::move(index_map), std::move(pad_value),
                          assume_injective_transform});
  }
  BlockRef blockize(const LoopRef& target, bool preserve_unit_iters = true) {
    return apply(Blockize{target, preserve_unit_iters});
  }
  BlockRef blockize(std::vector<BlockRef> target, bool preserve_unit_iters = true) {
    return apply(Blockize{std::move(target), preserve_unit_iters});
  }
  void tensorize(BlockOrLoop at, std::string tensor_intrin, bool preserve_unit_iters = true) {
    apply(Tensorize{std::move(at), std::move(tensor_intrin), preserve_unit_iters});
  }
  std::vector<BlockRef> specialize_warps(const LoopRef& loop, IntRef blocks = 0,
                                         IntRef group_rows = 1,
                                         std::vector<std::int64_t> registers = {40, 232},
                                         IntRef cluster = 1, IntRef promote = 0,
                                         IntRef cluster_columns = 1) {
    return apply(SpecializeWarps{loop, blocks, group_rows, std::move(registers), cluster, promote,
                                 cluster_columns});
  }
  IntRef sample_categorical(std::vector<std::int64_t> candidates, std::vector<double> probs,
                            Factor decision = std::nullopt) {
    return apply(SampleCategorical{std::move(candidates), std::move(probs), decision});
  }
  std::vector<IntRef> sample_perfect_tile(const LoopRef& loop, std::int64_t n,
                                          std::int64_t max_innermost_factor = 16,
                                          std::vector<std::int64_t> decision = {}) {
    return apply(SamplePerfectTile{loop, n, max_innermost_factor, std::move(decision)});
  }
  std::vector<IntRef> sample_partitioned_tile(const LoopRef& loop, std::int64_t n,
                                              std::int64_t partition_pos,
                                              std::int64_t innerpart_factor,
                                              std::vector<std::int64_t> decision = {}) {
    return apply(
        SamplePartitionedTile{loop, n, partition_pos, innerpart_factor, std::move(decision)});
  }
  LoopRef sample_compute_location(BlockRef block, Factor decision = std::nullopt) {
    return apply(SampleComputeLocation{block, decision});
  }

 private:
  friend class Part;  // part.h
  Schedule() = default;
  [[noreturn]] void refuse_step(const PrimitiveInfo& primitive, const Value::List& arguments,
                                Refusal refusal) const;
  void commit(const PrimitiveInfo& primitive, Value::List arguments, Value result,
              ir::IRModule mod);

  State state_;
  ir::IRModule start_;
  Trace trace_;
  std::uint64_t random_ = 0;
  bool verifying_ = false;
  std::optional<RunCheck> run_check_;
};

#define WEFT_PRIMITIVE(S)                                 \
  extern template S::Result Schedule::apply<S>(const S&); \
  extern template Verdict Schedule::check<S>(const S&) const;
#include "weft/schedule/primitives.def"
#undef WEFT_PRIMITIVE

}  // namespace weft::schedule

namespace weft {
using schedule::BlockRef;
using schedule::LoopRef;
using schedule::Schedule;
}  // namespace weft
