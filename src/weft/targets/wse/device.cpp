// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/device.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/signature.h"
#include "weft/sim/measure.h"
#include "weft/targets/wse/check_plan.h"
#include "weft/targets/wse/csl/compile.h"
#include "weft/targets/wse/sdk_runtime.h"
#include "weft/targets/wse/view.h"

namespace weft::wse {

namespace {

struct Compiled {
  Layout layout;
  Json plan;
};

class WseExecutable final : public runtime::Executable {
 public:
  WseExecutable(Ref<runtime::Device> device, runtime::Binary binary, std::vector<Compiled> kernels)
      : Executable(std::move(device), std::move(binary)), kernels(std::move(kernels)) {}
  std::vector<Compiled> kernels;
  const std::uint64_t id = next_id();

 private:
  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }
};

/// What happened between two reports of one fabric.
runtime::StatReport since(const runtime::StatReport& before, const runtime::StatReport& now) {
  runtime::StatReport out;
  for (const runtime::Stat& row : now.rows()) {
    const bool counts = row.name != "pes.touched" && row.name != "engine.native";
    out.add(row.name, row.unit, row.meaning,
            row.value - (counts && before.has(row.name) ? before.get(row.name) : 0));
  }
  return out;
}

std::vector<std::int64_t> numbers(const Json& list) {
  std::vector<std::int64_t> out;
  for (const Json& n : list.as_array()) out.push_back(n.as_int());
  return out;
}

// The part of one stage's plan that moving data needs.
struct Iter {
  std::int64_t extent, chunk;
  bool reduce, travels;
  int spread;
};
struct Array {
  std::string name;
  std::size_t buffer;
  std::vector<std::vector<std::int64_t>> coef;
  std::vector<std::int64_t> base, extent, strides;
  bool kept = false;
  std::int64_t size = 1;
  explicit Array(const Json& j)
      : name(j.at("name").as_string()),
        buffer(static_cast<std::size_t>(j.at("buffer").as_int())),
        base(numbers(j.at("base"))),
        extent(numbers(j.at("extent"))),
        strides(numbers(j.at("strides"))),
        kept(j.at("kept").as_bool()) {
    for (const Json& c : j.at("coef").as_array()) coef.push_back(numbers(c));
    for (std::int64_t e : extent) size *= e;
  }
  /// Where the array of the PE whose iterators begin at `low` starts in dimension d.
  std::int64_t origin(std::size_t d, const std::vector<std::int64_t>& low) const {
    std::int64_t at = base[d];
    for (std::size_t k = 0; k < low.size(); ++k) at += coef[d][k] * low[k];
    return at;
  }
};

std::vector<std::int64_t> starts(const std::vector<Iter>& iters, std::int64_t x, std::int64_t y,
                                 std::int64_t width) {
  std::vector<std::int64_t> out;
  for (const Iter& i : iters)
    out.push_back(i.chunk * (i.spread == 1   ? x
                             : i.spread == 2 ? y
                             : i.spread == 3 ? y * width + x
                                             : 0));
  return out;
}

}  // namespace

/// The program that the PEs hold. What their arrays were sent stays there between launches.
struct WseDevice::Resident {
  std::uint64_t executable = 0;
  std::size_t kernel = 0;
  std::unique_ptr<SdkRuntime> runtime;
  std::map<std::string, std::vector<std::uint32_t>> sent;
};

WseDevice::~WseDevice() = default;

WseDevice::WseDevice(std::string name, std::int32_t width, std::int32_t height, Arch arch,
                     int threads)
    : threads_(threads) {
  info_.name = std::move(name);
  info_.kind = runtime::DeviceKind::simulator;
  info_.description =
      cat(width, " x ", height, " simulated PEs of a ", arch == Arch::wse2 ? "WSE-2" : "WSE-3");
  info_.clock_hz = Timing::of(arch).clock_hz;
  // Its memory lies on the host, and only its programs compute with what is there.
  info_.host_accessible = false;
  info_.dl_type = 14;  // an extension device
  info_.limits = {{"width", width},
                  {"height", height},
                  {"pe_bytes", kMemoryBytes},
                  {"arch", arch == Arch::wse2 ? 2 : 3}};
}

Ref<runtime::Storage> WseDevice::allocate(runtime::Bytes bytes, runtime::Bytes align,
                                          std::string_view space) {
  void* block = nullptr;
  if (posix_memalign(&block, std::max<runtime::Bytes>(align, 64),
                     std::max<runtime::Bytes>(bytes, 64)) != 0) {
    throw Error(ErrorKind::memory, "device.memory.exhausted",
                cat(info_.name, " cannot give ", bytes, " bytes"));
  }
  return make_ref<runtime::Storage>(Ref<runtime::Device>(this),
                                    reinterpret_cast<std::uint64_t>(block), bytes, space);
}

void WseDevice::free_storage(std::uint64_t address, runtime::Bytes, std::string_view) {
  std::free(reinterpret_cast<void*>(address));
}

void WseDevice::upload(runtime::Storage& dst, runtime::Bytes offset, const void* src,
                       runtime::Bytes bytes) {
  runtime::check_range(dst, offset, bytes);
  if (bytes) std::memcpy(static_cast<char*>(dst.host()) + offset, src, bytes);
}

void WseDevice::download(void* dst, const runtime::Storage& src, runtime::Bytes offset,
                         runtime::Bytes bytes) {
  runtime::check_range(src, offset, bytes);
  if (bytes) std::memcpy(dst, static_cast<const char*>(src.host()) + offset, bytes);
}

Ref<runtime::Executable> WseDevice::load(runtime::Binary binary) {
  if (binary.format != "csl") {
    throw Error(ErrorKind::emit, "device.binary.format",
                cat("device ", info_.name, " loads CSL, not \"", binary.format, "\""));
  }
  std::vector<Compiled> kernels;
  Json all = Json::parse(binary.bytes, "<csl>");
  if (all.size() != binary.kernels.size())
    damaged_plan(
        cat("the module states ", binary.kernels.size(), " kernels and holds ", all.size()));
  for (const Json& k : all.as_array()) {
    const Json& plan = k.at("plan");
    const std::vector<bool> pointers = runtime::pointer_arguments(binary.kernels[kernels.size()]);
    if (std::find(pointers.begin(), pointers.end(), false) != pointers.end())
      damaged_plan(cat("kernel \"", binary.kernels[kernels.size()].name, "\" takes a number"));
    check_plan(plan, pointers.size());
    if (plan.at("width").as_int() != info_.limits.at("width") ||
        plan.at("height").as_int() != info_.limits.at("height")) {
      throw Error(ErrorKind::emit, "wse.binary.size",
                  cat("the module was built for ", plan.at("width").as_int(), " x ",
                      plan.at("height").as_int(), " PEs, device ", info_.name, " has others"));
    }
    csl::CompileOptions o;
    o.root = "layout.csl";
    o.arch = info_.limits.at("arch") == 2 ? Arch::wse2 : Arch::wse3;
    o.memcpy = true;
    o.read_disk = false;
    o.files = {{"layout.csl", k.at("layout").as_string()}, {"pe.csl", k.at("pe").as_string()}};
    o.fabric_width = static_cast<int>(plan.at("width").as_int()) + 7;
    o.fabric_height = static_cast<int>(plan.at("height").as_int()) + 2;
    o.offset_x = 4;
    o.offset_y = 1;
    Layout layout = csl::compile(o);
    layout.sources =
        std::make_shared<std::map<std::string, std::string>>(o.files.begin(), o.files.end());
    kernels.push_back({std::move(layout), plan});
  }
  return make_ref<WseExecutable>(Ref<runtime::Device>(this), std::move(binary), std::move(kernels));
}

runtime::Event WseDevice::launch(runtime::Executable& executable, std::size_t kernel,
                                 std::span<const runtime::KernelArg> args,
                                 std::span<const std::int64_t>) {
  auto& loaded = static_cast<WseExecutable&>(executable);
  const Compiled& c = loaded.kernels.at(kernel);
  std::int64_t width = c.plan.at("width").as_int(), height = c.plan.at("height").as_int();
  const Json::Array& buffers = c.plan.at("buffers").as_array();
  struct Data {
    char* at = nullptr;
    std::int64_t bytes = 4;
    std::vector<std::int64_t> shape;
    std::string own;
    std::ptrdiff_t view_of = -1;
    std::vector<ViewIndex> index;
  };
  std::vector<Data> data(buffers.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    Data& d = data[i];
    d.shape = numbers(buffers[i].at("shape"));
    d.bytes = parse_dtype(buffers[i].at("dtype").as_string()).bytes();
    if (buffers[i].at("param").as_bool()) {
      const runtime::KernelArg& a = args[next++];
      runtime::check_range(*a.storage, a.offset,
                           static_cast<runtime::Bytes>(bytes_of(d.shape, d.bytes)));
      d.at = static_cast<char*>(a.storage->host()) + a.offset;
    } else {
      d.own.resize(static_cast<std::size_t>(bytes_of(d.shape, d.bytes)));
      d.at = d.own.data();
    }
    if (const Json* of = buffers[i].find("view_of")) {
      d.view_of = static_cast<std::ptrdiff_t>(of->as_int());
      for (const Json& index : buffers[i].at("index").as_array()) d.index.emplace_back(index);
    }
  }
  // Brings a view up to date, or what is seen through it.
  auto refresh = [&](std::size_t buffer, bool back) {
    Data& view = data[buffer];
    if (view.view_of < 0) return;
    Data& whole = data[static_cast<std::size_t>(view.view_of)];
    for_each_viewed(view.shape, whole.shape, view.index, [&](std::int64_t k, std::int64_t element) {
      char *seen = view.at + k * view.bytes, *there = whole.at + element * view.bytes;
      std::memcpy(back ? there : seen, back ? seen : there, static_cast<std::size_t>(view.bytes));
    });
  };
  // Taken out until the launch has succeeded: a fault leaves nothing behind, and another thread
  // that launches at the same time has a program of its own.
  static thread_local const std::shared_ptr<void> thread = std::make_shared<char>();
  std::unique_ptr<Resident> held;
  {
    std::lock_guard lock(mutex_);
    std::erase_if(resident_, [](const auto& entry) { return entry.first.expired(); });
    if (const auto mine = resident_.find(thread); mine != resident_.end()) {
      held = std::move(mine->second);
      resident_.erase(mine);
    }
  }
  if (held && (held->executable != loaded.id || held->kernel != kernel)) held.reset();
  if (!held) {
    held = std::make_unique<Resident>();
    held->executable = loaded.id;
    held->kernel = kernel;
    RuntimeOptions options;
    options.threads = threads_;
    held->runtime = std::make_unique<SdkRuntime>(c.layout, options);
    held->runtime->load();
    held->runtime->run();
  }
  SdkRuntime& rt = *held->runtime;
  {
    std::lock_guard lock(mutex_);
    rt.fabric().trace_to(trace_);
  }
  const runtime::StatReport before = rt.fabric().stats();
  std::int64_t number = 0;
  std::vector<std::pair<std::string, Cycle>> launched;
  for (const Json& s : c.plan.at("stages").as_array()) {
    std::vector<Iter> iters;
    for (const Json& i : s.at("iters").as_array()) {
      iters.push_back({i.at("extent").as_int(), i.at("chunk").as_int(), i.at("reduce").as_bool(),
                       i.at("travels").as_bool(), static_cast<int>(i.at("spread").as_int())});
    }
    std::vector<Array> inputs;
    for (const Json& a : s.at("inputs").as_array()) inputs.emplace_back(a);
    Array output(s.at("output"));
    bool keeps = s.at("keeps").as_bool();
    if (keeps) inputs.push_back(output);
    auto region = [&](const Array& a) {
      return Region{0, 0, static_cast<std::int32_t>(width), static_cast<std::int32_t>(height),
                    a.size};
    };
    auto type = [&](const Array& a) {
      return data[a.buffer].bytes == 2 ? MemcpyDataType::MEMCPY_16BIT
                                       : MemcpyDataType::MEMCPY_32BIT;
    };
    // Boxes go out; what lies outside a buffer is zero and is never used.
    for (const Array& a : inputs) {
      if (a.kept) continue;
      refresh(a.buffer, false);
      const Data& from = data[a.buffer];
      std::vector<std::uint32_t> words(static_cast<std::size_t>(width * height * a.size));
      std::vector<std::int64_t> at(a.extent.size());
      for (std::int64_t y = 0; y < height; ++y) {
        for (std::int64_t x = 0; x < width; ++x) {
          std::vector<std::int64_t> low = starts(iters, x, y, width), origin;
          for (std::size_t d = 0; d < a.extent.size(); ++d) origin.push_back(a.origin(d, low));
          std::fill(at.begin(), at.end(), 0);
          for (std::int64_t k = 0; k < a.size; ++k) {
            std::int64_t linear = 0, w = (y * width + x) * a.size;
            bool inside = true;
            for (std::size_t d = 0; d < at.size(); ++d) {
              std::int64_t p = origin[d] + at[d];
              inside = inside && p >= 0 && p < from.shape[d];
              linear = linear * from.shape[d] + p;
              w += at[d] * a.strides[d];
            }
            if (inside)
              std::memcpy(&words[static_cast<std::size_t>(w)], from.at + linear * from.bytes,
                          static_cast<std::size_t>(from.bytes));
            for (std::size_t d = at.size(); d-- > 0;) {
              if (++at[d] < a.extent[d]) break;
              at[d] = 0;
            }
          }
        }
      }
      std::vector<std::uint32_t>& sent = held->sent[a.name];
      const bool written = a.name == output.name;  // by the PEs as well
      if (!written && sent == words) continue;
      rt.memcpy_h2d(rt.get_id(a.name), words.data(), static_cast<std::int64_t>(words.size()),
                    region(a), false, type(a), MemcpyOrder::ROW_MAJOR, false);
      sent = std::move(words);
    }
    const Cycle begun = rt.fabric().now();
    rt.launch(rt.get_id(cat("stage", number++)), {}, {}, false);
    launched.emplace_back(s.at("name").as_string(), rt.fabric().now() - begun);
    if (!s.at("collect").as_bool()) continue;
    const Data& to = data[output.buffer];
    std::vector<std::uint32_t> words(static_cast<std::size_t>(width * height * output.size));
    rt.memcpy_d2h(words.data(), static_cast<std::int64_t>(words.size()), rt.get_id(output.name),
                  region(output), false, type(output), MemcpyOrder::ROW_MAJOR, false);
    // Every point of the output's iterators comes back from the PE that owns it, reductions from
    // the chain's end.
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        std::vector<std::int64_t> low = starts(iters, x, y, width), point(iters.size());
        bool owner = true, any = true;
        std::vector<std::int64_t> count;
        bool x_used = false, y_used = false;
        for (std::size_t k = 0; k < iters.size(); ++k) {
          const Iter& i = iters[k];
          if (i.travels) {
            count.push_back(1);
            continue;
          }
          if (i.reduce && i.spread == 1) owner = owner && x == 0;
          if (i.reduce && i.spread == 3) owner = owner && x == 0 && y == 0;
          x_used |= i.spread == 1 || i.spread == 3;
          y_used |= i.spread == 2 || i.spread == 3;
          count.push_back(i.reduce ? 1 : std::min(i.chunk, i.extent - low[k]));
          any = any && count.back() > 0;
        }
        if ((!x_used && x > 0) || (!y_used && y > 0))
          owner = false;  // all PEs of an unused axis have the same
        if (!owner || !any) continue;
        while (true) {
          std::int64_t local = 0, linear = 0;
          for (std::size_t d = 0; d < output.extent.size(); ++d) {
            std::int64_t l = 0;
            for (std::size_t k = 0; k < iters.size(); ++k) {
              if (iters[k].reduce) continue;
              l += output.coef[d][k] * point[k];
              if (output.coef[d][k] < 0) l -= output.coef[d][k] * (iters[k].chunk - 1);
            }
            const std::int64_t p = output.origin(d, low) + l;
            if (l < 0 || l >= output.extent[d] || p < 0 || p >= to.shape[d])
              damaged_plan(cat("array \"", output.name, "\" writes element ", p, " of ",
                               to.shape[d], " in dimension ", d));
            local = local * output.extent[d] + l;
            linear = linear * to.shape[d] + p;
          }
          std::memcpy(to.at + linear * to.bytes,
                      &words[static_cast<std::size_t>((y * width + x) * output.size + local)],
                      static_cast<std::size_t>(to.bytes));
          std::size_t k = iters.size();
          while (k-- > 0) {
            if (++point[k] < count[k]) break;
            point[k] = 0;
          }
          if (k == ~std::size_t{0}) break;
        }
      }
    }
    refresh(output.buffer, true);
  }
  runtime::StatReport stats = since(before, rt.fabric().stats());
  sim::count_cycles(*this, stats.get("fabric.cycles"));
  Cycle all = 0;
  for (const auto& [name, cycles] : launched) all += cycles;
  stats.add("cycles.stages", "cycles", "simulated cycles of the stages, without copies", all);
  for (std::size_t k = 0; k < launched.size(); ++k)
    stats.add(cat("cycles.stage", k, ".", launched[k].first), "cycles",
              cat("simulated cycles of stage ", k), launched[k].second);
  rt.fabric().trace_to(nullptr);
  std::lock_guard lock(mutex_);
  stats_ = std::move(stats);
  resident_.insert_or_assign(thread, std::move(held));
  return {};
}

runtime::StatReport WseDevice::stats() const {
  std::lock_guard lock(mutex_);
  return stats_.rows().empty() ? report_of({}) : stats_;
}

void WseDevice::clear_stats() {
  std::lock_guard lock(mutex_);
  stats_ = {};
}

void WseDevice::trace_to(runtime::TraceSink* sink) {
  std::lock_guard lock(mutex_);
  trace_ = sink;
}

runtime::Span WseDevice::measure(const std::function<void()>& work) {
  return sim::measure_cycles(*this, info_.clock_hz, work);
}

}  // namespace weft::wse
