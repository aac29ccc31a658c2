// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/kernel.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "weft/base/fork_safe_mutex.h"
#include "weft/ir/interpret.h"
#include "weft/target/backend.h"
#include "weft/target/host_plan.h"

namespace weft::device {

using ir::Expr;
using ir::Stmt;

namespace {

/// Two devices of one name and the same limits are alike: an address may be another's later.
struct KnownGrid {
  std::string name;
  std::map<std::string, std::int64_t> limits;
  Grid grid;
};

Grid ask_grid(const runtime::DeviceInfo& device) {
  Target target = Target::parse(device.name);
  const auto& all = backends();
  auto backend = std::find_if(all.begin(), all.end(),
                              [&](const Backend* b) { return b->name() == target.name; });
  if (backend == all.end()) return {};  // served by another process
  TargetInfo info = (*backend)->info(target);
  const AxisInfo* threads = info.axis("threadIdx.x");
  const MemoryInfo* memory = info.memory("shared");
  auto limit = [&](const char* name, std::int64_t otherwise) {
    auto found = device.limits.find(name);
    return found == device.limits.end() ? otherwise : found->second;
  };
  const std::int64_t most = limit("threads_per_block", 0);
  if (most < 1 || !info.axis("blockIdx.x") || !threads || !threads->barrier || !memory ||
      !info.symbolic_shapes)
    return {};
  Grid grid;
  grid.present = true;
  grid.threads = std::min<std::int64_t>(1024, most);
  // 32 KiB and a middling card where the device does not say.
  auto stated = info.limits.find("max_shared_memory_per_block");
  grid.shared_bytes = std::min<std::int64_t>(limit("shared_bytes", 32768),
                                             stated == info.limits.end() ? 32768 : stated->second);
  grid.processors = limit("multiprocessors", 64);
  grid.clocks_per_microsecond = static_cast<double>(limit("clock_khz", 1500000)) / 1e3;
  // What kernels reach of the memory's rate and of the instruction's.
  constexpr double kReached = 0.8, kReachedByTiles = 0.6;
  grid.bytes_per_microsecond =
      kReached * static_cast<double>(limit("memory_bytes_per_microsecond", 600000));
  if (auto sums = info.limits.find("product_sums_per_clock"); sums != info.limits.end())
    grid.tile_sums_per_microsecond = kReachedByTiles * static_cast<double>(sums->second) *
                                     static_cast<double>(grid.processors) *
                                     grid.clocks_per_microsecond;
  for (const QueueInfo& queue : info.queues) {
    if (queue.sync == "group" && grid.queue.empty()) grid.queue = queue.name;
  }
  auto queue = [&](std::string_view name) {
    return std::any_of(info.queues.begin(), info.queues.end(),
                       [&](const QueueInfo& q) { return q.name == name; });
  };
  grid.double_products = info.limits.count("double_product_sums_per_clock") > 0;
  grid.whole_products = queue("bulk") && queue("wgmma") && limit("tensor_maps", 0) > 0;
  return grid;
}

}  // namespace

const Grid& grid_of(const Ref<Device>& device) {
  static ForkSafeMutex mutex;
  static auto& known = *new std::deque<KnownGrid>;
  const runtime::DeviceInfo& info = device->info();
  std::lock_guard lock(mutex);
  for (const KnownGrid& k : known) {
    if (k.name == info.name && k.limits == info.limits) return k.grid;
  }
  known.push_back({info.name, info.limits, ask_grid(info)});
  return known.back().grid;
}

ir::Buffer Builder::buffer(const std::string& name, Elem elem, int align) {
  auto b = ir::edit(ir::make_buffer(name, dtype_of(elem), {ir::make_var("n_" + name)}));
  b->align = align ? align : elem_bytes(elem);
  ir::Buffer out = b;
  buffers_.push_back(ir::buffer_param(out));
  return out;
}
Expr Builder::integer(const std::string& name) {
  ir::Var v = ir::make_var(name, index_type);
  scalars_.push_back({v, nullptr});
  return v;
}
Expr Builder::size(const std::string& name) {
  ir::Var v = ir::make_var(name, dtypes::int64);
  scalars_.push_back({v, nullptr});
  return v;
}
Expr Builder::number(const std::string& name, Elem elem) {
  ir::Var v = ir::make_var(name, dtype_of(elem));
  scalars_.push_back({v, nullptr});
  return v;
}
std::vector<Expr> Builder::integers(const std::string& name, int count) {
  std::vector<Expr> out;
  for (int i = 0; i < count; ++i) out.push_back(integer(cat(name, i)));
  return out;
}

Stmt Builder::bound(const char* axis, const Expr& extent, const Body& body) const {
  ir::Var v = var(std::string(axis, 1) + axis[std::string_view(axis).size() - 1]);
  return ir::make_for(v, at(0), extent, body(v), ir::ForKind::bound, axis);
}
Stmt Builder::loop(const char* name, const Expr& extent, const Body& body, ir::ForKind kind) const {
  ir::Var v = var(name);
  return ir::make_for(v, at(0), extent, body(v), kind);
}
ir::PrimFunc Builder::finish(const Stmt& body, bool exclusive, bool distinct,
                             std::int64_t blocks) const {
  std::vector<ir::Param> params = buffers_;
  params.insert(params.end(), scalars_.begin(), scalars_.end());
  // "weft.points_together": points exchange through shared memory, ordered by barriers
  // (pass/check_private.h).
  ir::Annotations notes = ir::with_annotation({}, "weft.points_together", true);
  if (exclusive) notes = ir::with_annotation(std::move(notes), "tir.noalias", true);
  if (blocks > 0) notes = ir::with_annotation(std::move(notes), kBlocksPerProcessor, blocks);
  if (distinct) notes = ir::with_annotation(std::move(notes), ir::kDistinctElements, true);
  return ir::make_func("main", std::move(params), ir::root_block(body), std::move(notes));
}

namespace {
struct Slot {
  Key key;
  const Device* device;
  bool operator==(const Slot&) const = default;
};
struct Hash {
  std::size_t operator()(const Slot& s) const {
    std::uint64_t h = reinterpret_cast<std::uintptr_t>(s.device);
    for (std::uint64_t word : s.key) h = (h ^ word) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
    return h;
  }
};
}  // namespace

void Call::run(const Key& key, const std::function<ir::PrimFunc()>& make) {
  static ForkSafeMutex mutex;
  static auto& built = *new std::unordered_map<Slot, Ref<runtime::Function>, Hash>;
  const Slot slot{key, device_.get()};
  Ref<runtime::Function> function;
  {
    std::lock_guard lock(mutex);
    if (auto it = built.find(slot); it != built.end()) function = it->second;
  }
  if (!function) {
    BuildOptions options;
    options.keep = true;
    options.observer.verify = false;  // interprets whole groups: seconds for wide kernels
    Ref<runtime::Module> module = build(ir::make_module(make()), device_->info().name, options);
    function = make_ref<runtime::Function>(module, "main", device_);
    std::lock_guard lock(mutex);
    built[slot] = function;
  }
  launch(*function);
}

ir::Buffer local(const std::string& name, DType type, std::int64_t extent) {
  return ir::make_buffer(name, type, {ir::make_int(extent)}, "local");
}
ir::Buffer shared(const std::string& name, DType type, std::vector<std::int64_t> shape) {
  ir::Exprs extents;
  for (std::int64_t n : shape) extents.push_back(ir::make_int(n));
  return ir::make_buffer(name, type, extents, "shared");
}

std::vector<Expr> positions(const Expr& linear, const std::vector<Expr>& extents,
                            const std::vector<std::vector<Expr>>& strides) {
  std::vector<Expr> out(strides.size());
  Expr rest = linear;
  for (std::size_t i = extents.size(); i-- > 0;) {
    Expr x = rest;
    if (i > 0) {
      x = ir::make_binary(ir::ExprKind::mod, rest, extents[i]);
      rest = ir::div(rest, extents[i]);
    }
    for (std::size_t k = 0; k < strides.size(); ++k) {
      Expr term = x * strides[k][i];
      out[k] = out[k] ? out[k] + term : term;
    }
  }
  for (Expr& e : out) {
    if (!e) e = ir::make_int(0, linear->dtype);
  }
  return out;
}

bool fits_narrow(std::int64_t most) { return most < (std::int64_t{1} << 31) - (1 << 16); }

}  // namespace weft::device
