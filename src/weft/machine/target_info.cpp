// SPDX-License-Identifier: Apache-2.0
#include "weft/machine/target_info.h"

#include <algorithm>

#include "weft/base/text.h"

namespace weft {

namespace {

bool contains(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

template <typename Row>
const Row* find_row(const std::vector<Row>& rows, std::string Row::*name, std::string_view asked) {
  for (const Row& row : rows) {
    if (row.*name == asked) return &row;
  }
  return nullptr;
}

template <typename Row>
void add_missing(std::vector<Row>& rows, const std::vector<Row>& others, std::string Row::*name) {
  for (const Row& row : others) {
    if (!find_row(rows, name, row.*name)) rows.push_back(row);
  }
}

template <typename Row>
std::vector<std::string> members(const std::vector<Row>& rows, std::string Row::*name) {
  std::vector<std::string> out;
  for (const Row& row : rows) out.push_back(row.*name);
  return out;
}

}  // namespace

bool AxisInfo::joins() const {
  return kind == AxisKind::lockstep && contains(collectives, "reduce");
}

bool MemoryInfo::is_private_to(std::string_view axis) const { return contains(private_to, axis); }

const AxisInfo* TargetInfo::axis(std::string_view asked) const {
  return find_row(axes, &AxisInfo::name, asked);
}
const MemoryInfo* TargetInfo::memory(std::string_view scope) const {
  return find_row(memories, &MemoryInfo::scope, scope);
}
const InstructionInfo* TargetInfo::instruction(std::string_view asked) const {
  return find_row(instructions, &InstructionInfo::name, asked);
}
const QueueInfo* TargetInfo::queue(std::string_view asked) const {
  return find_row(queues, &QueueInfo::name, asked);
}

const QueueInfo* TargetInfo::copy_queue() const {
  return find_row(queues, &QueueInfo::sync, "group");
}

std::int64_t TargetInfo::limit(std::string_view asked, std::int64_t otherwise) const {
  auto found = limits.find(asked);
  return found == limits.end() ? otherwise : found->second;
}

bool TargetInfo::is_private(std::string_view scope, std::string_view axis_name) const {
  const MemoryInfo* row = memory(scope);
  return row && row->is_private_to(axis_name);
}

std::int64_t TargetInfo::group_threads() const {
  const AxisInfo* x = axis("threadIdx.x");
  return x ? x->group_limit : 0;
}

std::int64_t TargetInfo::group_bytes() const {
  const MemoryInfo* shared = memory("shared");
  return shared ? shared->bytes : 0;
}

void TargetInfo::set_group(std::int64_t threads, std::int64_t bytes) {
  for (AxisInfo& row : axes) {
    if (row.group == "threadIdx") row.group_limit = threads;
  }
  for (MemoryInfo& row : memories) {
    if (row.scope == "shared") row.bytes = bytes;
  }
}

void TargetInfo::merge(const TargetInfo& other) {
  add_missing(axes, other.axes, &AxisInfo::name);
  add_missing(memories, other.memories, &MemoryInfo::scope);
  add_missing(queues, other.queues, &QueueInfo::name);
  add_missing(instructions, other.instructions, &InstructionInfo::name);
  limits.insert(other.limits.begin(), other.limits.end());
}

std::vector<std::string> names_of(const std::vector<AxisInfo>& rows) {
  return members(rows, &AxisInfo::name);
}
std::vector<std::string> names_of(const std::vector<MemoryInfo>& rows) {
  return members(rows, &MemoryInfo::scope);
}
std::vector<std::string> names_of(const std::vector<InstructionInfo>& rows) {
  return members(rows, &InstructionInfo::name);
}

std::string describe(const TargetInfo& info) {
  std::string out = cat(info.symbolic_shapes ? "symbolic" : "constant", "\n");
  for (const AxisInfo& a : info.axes) {
    out += cat("axis ", a.name, " ", static_cast<int>(a.kind), " ", a.limit, " ", a.group, " ",
               a.group_limit, " ", a.level, a.barrier ? " barrier" : "",
               a.reduces ? " reduces" : "", " ", join(a.collectives), "\n");
  }
  for (const MemoryInfo& m : info.memories) {
    out += cat("memory ", m.scope, " ", m.bytes, " ", m.min_transfer_bytes, " ", join(m.private_to),
               " ", m.access, "\n");
  }
  for (const QueueInfo& q : info.queues)
    out += cat("queue ", q.name, " ", q.in_order ? 1 : 0, " ", q.sync, " ", q.outstanding, "\n");
  for (const InstructionInfo& i : info.instructions) {
    out += cat("instruction ", i.name);
    for (const auto& [name, bound] : i.bounds) out += cat(" ", name, " ", bound);
    out += "\n";
  }
  for (DType t : info.dtypes) out += cat(to_string(t), " ");
  for (const auto& [name, limit] : info.limits) out += cat("\n", name, " ", limit);
  return cat(out, "\n");
}

namespace {

TargetInfo make_generic() {
  TargetInfo out;
  out.name = "grid";
  std::vector<std::string> blocks, threads;
  for (const char* name : {"blockIdx.x", "blockIdx.y", "blockIdx.z"}) {
    AxisInfo axis;
    axis.name = name;
    axis.group = "blockIdx";
    out.axes.push_back(axis);
    blocks.emplace_back(name);
  }
  for (const char* name : {"vthread", "vthread.x", "vthread.y", "vthread.z"}) {
    AxisInfo axis;
    axis.name = name;
    axis.kind = AxisKind::virtual_;
    axis.level = 1;
    out.axes.push_back(axis);
    threads.emplace_back(name);
  }
  for (const char* name : {"threadIdx.x", "threadIdx.y", "threadIdx.z"}) {
    AxisInfo axis;
    axis.name = name;
    axis.group = "threadIdx";
    axis.level = 2;
    axis.barrier = true;
    axis.reduces = true;
    axis.collectives = {"reduce"};
    out.axes.push_back(axis);
    threads.emplace_back(name);
  }
  MemoryInfo global, shared, local;
  global.scope = "global";
  shared.scope = "shared";
  shared.private_to = blocks;
  local.scope = "local";
  local.private_to = blocks;
  local.private_to.insert(local.private_to.end(), threads.begin(), threads.end());
  out.memories = {global, shared, local};
  out.dtypes = {dtypes::boolean,  dtypes::int8,          dtypes::int16,       dtypes::int32,
                dtypes::int64,    dtypes::uint8,         dtypes::uint16,      dtypes::uint32,
                dtypes::uint64,   dtypes::float8_e4m3fn, dtypes::float8_e5m2, dtypes::float16,
                dtypes::bfloat16, dtypes::float32,       dtypes::float64};
  return out;
}

TargetInfo make_grid() {
  // 1024 threads a group (64 in z), 2^31-1 groups in x and 65535 in y and z, 48 KiB (CUDA C
  // programming guide, technical specifications); processors: a middling card.
  TargetInfo out = make_generic();
  for (AxisInfo& axis : out.axes) {
    if (axis.group == "blockIdx") axis.limit = axis.name == "blockIdx.x" ? 2147483647 : 65535;
    if (axis.group == "threadIdx") axis.limit = axis.name == "threadIdx.z" ? 64 : 1024;
  }
  out.set_group(1024, 49152);
  out.limits[limits::kProcessors] = 64;
  out.limits[limits::kLanes] = 32;
  return out;
}

TargetInfo make_schedule() {
  TargetInfo out = make_grid();
  MemoryInfo dynamic = *out.memory("shared"), warp = dynamic;
  dynamic.scope = "shared.dyn";
  warp.scope = "warp";
  warp.private_to.insert(warp.private_to.end(), {"threadIdx.y", "threadIdx.z"});
  out.memories.insert(out.memories.end() - 1, {dynamic, warp});
  return out;
}

}  // namespace

const TargetInfo& generic_target_info() {
  static const TargetInfo info = make_generic();
  return info;
}
const TargetInfo& grid_target_info() {
  static const TargetInfo info = make_grid();
  return info;
}
std::shared_ptr<const TargetInfo> schedule_target_info() {
  static const auto info = std::make_shared<const TargetInfo>(make_schedule());
  return info;
}

}  // namespace weft
