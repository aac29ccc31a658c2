// SPDX-License-Identifier: Apache-2.0
#pragma once
// Machines are tables (decision 1). A Target is a name with options; TargetInfo is what shared code
// may know of it: axes, memories, queues, instructions, limits. If shared code wants to ask "is
// this a GPU?", the missing thing is a row here.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/json.h"
#include "weft/ir/node.h"

namespace weft {

/// "cuda:arch=sm_90a,max_threads_per_block=1024", "qpu:qpus=12", "wse:4x4", "cuda:0" (a bare value
/// is kept under the key "").
struct Target {
  std::string name;
  std::map<std::string, std::string, std::less<>> options;
  static Target parse(std::string_view text);  // throws Error(value, "target.parse")
  std::string text() const;                    // canonical
  std::int64_t integer(std::string_view key, std::int64_t otherwise) const;
  std::string option(std::string_view key, std::string_view otherwise) const;
};

enum class AxisKind : std::uint8_t { parallel, lockstep, spatial, virtual_ };

/// Something a loop can be bound to.
struct AxisInfo {
  std::string name;  // "blockIdx.x", "threadIdx.x", "vthread", "qpu", "lane", "pe.x"
  AxisKind kind = AxisKind::parallel;
  std::int64_t limit = 0;  // largest extent; 0: none
  std::string group;       // axes of one group share a product limit ("threadIdx")
  std::int64_t group_limit = 0;
  int level = 0;         // 0 outermost; an axis may not contain one of a lower level
  bool barrier = false;  // its points can synchronise
  bool reduces = false;  // an R iterator may be bound: cross-thread reduction
  std::vector<std::string> collectives;  // "reduce", "broadcast", "shift" ...
};

struct MemoryInfo {
  std::string scope;       // "global", "shared", "local", "vta.inp", "vpm"
  std::int64_t bytes = 0;  // capacity per instance; 0: unknown
  int min_transfer_bytes = 1;
  std::vector<std::string> private_to;  // axes whose points each have their own instance
  std::string access = "load_store";  // "load_store" | "dma" (only through copies) | "instruction"
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

struct TargetInfo {
  std::vector<AxisInfo> axes;
  std::vector<MemoryInfo> memories;
  std::vector<QueueInfo> queues;
  std::vector<InstructionInfo> instructions;
  std::vector<DType> dtypes;  // that kernels may compute with
  std::map<std::string, std::int64_t>
      limits;                   // "vector_bytes", "registers", "lanes", "launch_code_bytes"
  bool symbolic_shapes = true;  // false: specialise at the call
  const AxisInfo* axis(std::string_view name) const;
  const MemoryInfo* memory(std::string_view scope) const;
  const InstructionInfo* instruction(std::string_view name) const;
};

/// Every row as text: equal machines have equal texts. Instructions go by their names.
std::string describe(const TargetInfo& info);

/// Axes and memories that mean the same on every C-like target, so that schedules can be written
/// before a target is chosen: blockIdx/threadIdx/vthread, global/shared/local.
const TargetInfo& generic_target_info();

}  // namespace weft
