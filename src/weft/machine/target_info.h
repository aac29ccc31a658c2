// SPDX-License-Identifier: Apache-2.0
#pragma once
// Machines are tables (decision 1): axes, memories, queues, instructions, limits. Steps of
// schedules, passes, rules and array operations all read this one table, by reference. If shared
// code wants to ask "is this a GPU?", the missing thing is a row here.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/ir/node.h"

namespace weft {

enum class AxisKind : std::uint8_t { parallel, lockstep, spatial, virtual_ };

/// Something a loop can be bound to.
struct AxisInfo {
  std::string name;  // "blockIdx.x", "threadIdx.x", "vthread", "qpu", "lane", "pe.x"
  AxisKind kind = AxisKind::parallel;
  std::int64_t limit = 0;  // largest extent; 0: none
  std::string group;       // axes of one group share a product limit and a barrier ("threadIdx")
  std::int64_t group_limit = 0;
  int level = 0;         // 0 outermost; an axis may not contain one of a lower level
  bool barrier = false;  // its points can synchronise
  bool reduces = false;  // an R iterator may be bound: cross-thread reduction
  std::vector<std::string> collectives;  // "reduce", "broadcast", "shift" ...

  /// Expanded into the program, never launched: several loops of different extents may carry it.
  bool is_virtual() const { return kind == AxisKind::virtual_; }
  /// Its points join a value in one step: instruction("reduce.<op>", value), every point gets the
  /// result. False: a tree through shared memory.
  bool joins() const;
};

struct MemoryInfo {
  std::string scope;       // "global", "shared", "local", "vta.inp", "vpm"
  std::int64_t bytes = 0;  // capacity per instance; 0: unknown
  int min_transfer_bytes = 1;
  std::vector<std::string> private_to;  // axes whose points each have their own instance
  std::string access = "load_store";  // "load_store" | "dma" (only through copies) | "instruction"

  bool is_private_to(std::string_view axis) const;
};

struct QueueInfo {
  std::string name;  // "cp.async", "load", "tmu"
  bool in_order = true;
  std::string sync;     // "counted" | "token" | "group"
  int outstanding = 0;  // at most; 0: unlimited
};

/// An instruction for tensorize: its meaning and its implementation as PrimFuncs over the same
/// parameters.
struct InstructionInfo {
  std::string name;  // "vta.gemm", "dot4.i8"
  ir::PrimFunc meaning, implementation;
  std::map<std::string, std::int64_t> bounds;  // operand limits
};

/// Names of limits that shared code reads. A target may have others of its own.
namespace limits {
inline constexpr const char* kVectorBytes = "vector_bytes";  // widest move of one point
inline constexpr const char* kVectorAlign = "vector_align";  // that such a move must have
inline constexpr const char* kLanes = "lanes";  // points whose neighbouring accesses are one move
inline constexpr const char* kProcessors = "processors";  // groups run on so many at once
inline constexpr const char* kRegisters = "registers";
inline constexpr const char* kNan = "nan";  // 0: the machine has no such number
inline constexpr const char* kWholeFunctions = "whole_functions";  // kernels are whole functions
inline constexpr const char* kTensorMaps = "tensor_maps";          // 0: copies in bulk have none
inline constexpr const char* kClockKhz = "clock_khz";              // the highest
inline constexpr const char* kMemoryRate = "memory_bytes_per_microsecond";  // nominal
/// Multiply-adds of 16-bit floats in tiles, in a clock of one processor.
inline constexpr const char* kProductSums = "product_sums_per_clock";
inline constexpr const char* kDoubleProductSums = "double_product_sums_per_clock";
/// What one processor takes from the cache of all in a clock, and what each gets when all read.
inline constexpr const char* kCacheRate = "cache_bytes_per_clock";
inline constexpr const char* kSharedCacheRate = "shared_cache_bytes_per_clock";
/// Of products of tiles, in nanoseconds: to begin and end a tile, to store 32 columns of its result
/// by threads, a kernel more, to begin and end clusters; and what leaves through shared memory.
inline constexpr const char* kTileNs = "tile_nanoseconds";
inline constexpr const char* kHalfPieceNs = "half_piece_nanoseconds";
inline constexpr const char* kKernelNs = "joining_kernel_nanoseconds";
inline constexpr const char* kClusterNs = "cluster_nanoseconds";
inline constexpr const char* kStagedRate = "staged_bytes_per_microsecond";
inline constexpr const char* kCache1Bytes = "cache1_bytes";
inline constexpr const char* kCache2Bytes = "cache2_bytes";
inline constexpr const char* kThreads = "threads";  // of a host
}  // namespace limits

struct TargetInfo {
  std::string name;  // of the target, for messages
  std::vector<AxisInfo> axes;
  std::vector<MemoryInfo> memories;
  std::vector<QueueInfo> queues;
  std::vector<InstructionInfo> instructions;
  std::vector<DType> dtypes;                                // that kernels may compute with
  std::map<std::string, std::int64_t, std::less<>> limits;  // other numbers, by name
  bool symbolic_shapes = true;                              // false: specialise at the call

  const AxisInfo* axis(std::string_view name) const;
  const MemoryInfo* memory(std::string_view scope) const;
  const InstructionInfo* instruction(std::string_view name) const;
  const QueueInfo* queue(std::string_view name) const;
  /// On which asynchronous copies run, a group of them at a time; null: there is none.
  const QueueInfo* copy_queue() const;
  std::int64_t limit(std::string_view name, std::int64_t otherwise) const;
  /// Whether each point of `axis` has its own instance of memory `scope`.
  bool is_private(std::string_view scope, std::string_view axis) const;

  /// Points of one group and bytes of the memory that they share; 0: not stated.
  std::int64_t group_threads() const;
  std::int64_t group_bytes() const;
  void set_group(std::int64_t threads, std::int64_t bytes);

  /// Adds the rows of `other` that are not here yet.
  void merge(const TargetInfo& other);
};

/// Names of rows, for messages.
std::vector<std::string> names_of(const std::vector<AxisInfo>& rows);
std::vector<std::string> names_of(const std::vector<MemoryInfo>& rows);
std::vector<std::string> names_of(const std::vector<InstructionInfo>& rows);

/// Every row as text: equal machines have equal texts. Instructions go by their names.
std::string describe(const TargetInfo& info);

/// Axes and memories that mean the same on every C-like target, so that schedules can be written
/// before a target is chosen: blockIdx/threadIdx/vthread, global/shared/local.
const TargetInfo& generic_target_info();
/// The same with limits that hold on every current machine of this kind: the start of a back end's
/// table.
const TargetInfo& grid_target_info();
/// What steps are checked against where no machine is named: that, and the scopes that schedules
/// written for other compilers name ("shared.dyn", "warp").
std::shared_ptr<const TargetInfo> schedule_target_info();

}  // namespace weft
