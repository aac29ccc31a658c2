// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/sdk_runtime.h"

#include <algorithm>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/targets/wse/program_io.h"

namespace weft::wse {

namespace {
constexpr Cycle kSettle = 20000;       // cycles a copy to the host lets running work settle
constexpr Cycle kPoll = 10000;         // cycles that one is_task_done may run
constexpr std::int32_t kChannels = 8;  // that add bandwidth
constexpr int kQuietPolls = 1000;      // questions in a row that a stuck program may be asked
}  // namespace

struct SdkRuntime::Task {
  enum Kind : std::uint8_t { copy_in, copy_out, stream_in, stream_out, launch, port_in, port_out };
  Kind kind = copy_in;
  TaskHandle handle = 0;
  std::int64_t id = 0;
  Region region;
  MemcpyDataType type = MemcpyDataType::MEMCPY_32BIT;
  MemcpyOrder order = MemcpyOrder::ROW_MAJOR;
  Broadcast broadcast = Broadcast::none;
  const std::uint32_t* in = nullptr;
  std::uint32_t* out = nullptr;
  std::int64_t count = 0;
  std::vector<std::uint64_t> args;
  const PortStream* port = nullptr;
  bool started = false, done = false;
  Cycle settle = -1;
  Cycle since = -1;    // started; for the trace
  Cycle end = kNever;  // copies: their last word has arrived
  std::atomic<std::int64_t> left{0};

  /// Position in the host array of element k of the PE at (x, y) of the region.
  std::size_t at(std::int64_t x, std::int64_t y, std::int64_t k) const {
    std::int64_t w = broadcast == Broadcast::row ? 1 : region.w,
                 h = broadcast == Broadcast::column ? 1 : region.h;
    if (broadcast == Broadcast::row) x = 0;
    if (broadcast == Broadcast::column) y = 0;
    return static_cast<std::size_t>(order == MemcpyOrder::ROW_MAJOR ? (y * w + x) * region.l + k
                                                                    : y + h * (x + w * k));
  }
  std::string name() const {
    switch (kind) {
      case copy_in: return cat("memcpy_h2d to symbol ", id);
      case copy_out: return cat("memcpy_d2h from symbol ", id);
      case stream_in: return cat("streaming memcpy_h2d on colour ", id);
      case stream_out: return cat("streaming memcpy_d2h on colour ", id);
      case launch: return cat("launch of function ", id);
      case port_in: return cat("send to ", port->name);
      case port_out: return cat("receive from ", port->name);
    }
    return {};
  }
};

SdkRuntime::SdkRuntime(const std::string& directory, RuntimeOptions options)
    : SdkRuntime((options.cmaddr.empty() ? read_artifact(directory) : Layout{}), options) {}

SdkRuntime::SdkRuntime(Layout layout, RuntimeOptions options)
    : layout_(std::move(layout)), options_(std::move(options)) {
  if (!options_.cmaddr.empty()) {
    throw Error(ErrorKind::device, "wse.runtime.hardware",
                cat("there is no hardware behind cmaddr \"", options_.cmaddr,
                    "\"; only the fabric simulator exists here"))
        .help("leave --cmaddr out to simulate");
  }
  const std::int64_t cycles =
      options_.cycle_limit ? options_.cycle_limit : FabricOptions().cycle_limit;
  fabric_ = std::make_unique<Fabric>(layout_, FabricOptions{.timed = options_.timed,
                                                            .threads = options_.threads,
                                                            .cycle_limit = cycles,
                                                            .engine = options_.engine,
                                                            .task_order = options_.task_order,
                                                            .seed = options_.seed,
                                                            .check_bounds = options_.check_bounds,
                                                            .trace_links = options_.trace_links});
  if (options_.router_depth) fabric_->timing().router_depth = options_.router_depth;
  if (options_.timeline) fabric_->keep_timeline();
}

SdkRuntime::~SdkRuntime() = default;

void SdkRuntime::load() {
  if (loaded_) return;
  loaded_ = true;
  for (const Preset& p : layout_.presets) {
    const Symbol& s = symbol(p.x + layout_.offset_x, p.y + layout_.offset_y, p.symbol);
    if (p.bytes.size() != s.bytes) {
      throw Error(ErrorKind::shape, "wse.symbol.size",
                  cat("\"", p.symbol, "\" has ", s.bytes, " bytes at PE (", p.x, ", ", p.y,
                      "), the given block ", p.bytes.size()));
    }
    fabric_->write_memory(p.x, p.y, s.address, p.bytes.data(), s.bytes);
  }
}

void SdkRuntime::run() {
  if (!loaded_) load();
  if (!running_) fabric_->start();
  running_ = true;
}

std::int64_t SdkRuntime::get_id(std::string_view name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < layout_.exports.size(); ++i) {
    if (layout_.exports[i].name == name) return static_cast<std::int64_t>(i);
    names.push_back(layout_.exports[i].name);
  }
  Error e(ErrorKind::value, "wse.symbol.unknown",
          cat("the program exports no symbol \"", name, "\""));
  e.note(cat("it exports ", join(names)));
  if (std::string near = did_you_mean(name, names); !near.empty()) e.help(near);
  throw e;
}

void SdkRuntime::check_region(const Region& r, std::int64_t count, std::string_view what,
                              Broadcast broadcast) const {
  if (!running_)
    throw Error(ErrorKind::value, "wse.runtime.order", cat(what, " before run()"))
        .help("call load() and run() first");
  if (stopped_) throw Error(ErrorKind::value, "wse.runtime.order", cat(what, " after stop()"));
  if (r.w < 1 || r.h < 1 || r.l < 1 || r.px < 0 || r.py < 0 || r.px + r.w > layout_.width ||
      r.py + r.h > layout_.height) {
    throw Error(ErrorKind::value, "wse.memcpy.region",
                cat(what, ": the region of ", r.w, " x ", r.h, " PEs at (", r.px, ", ", r.py,
                    ") with ", r.l, " elements each does not fit the ", layout_.width, " x ",
                    layout_.height, " rectangle"));
  }
  std::int64_t want =
      r.l * (broadcast == Broadcast::row ? 1 : r.w) * (broadcast == Broadcast::column ? 1 : r.h);
  if (count != want) {
    throw Error(ErrorKind::shape, "wse.memcpy.size",
                cat(what, ": the host array has ", count, " elements, the region needs ", want))
        .note(cat("w = ", r.w, ", h = ", r.h, ", elements per PE = ", r.l));
  }
}

const Export& SdkRuntime::var_export(std::int64_t id, bool write) const {
  if (id < 0 || id >= static_cast<std::int64_t>(layout_.exports.size())) {
    throw Error(ErrorKind::value, "wse.symbol.id",
                cat("symbol id ", id, " does not exist; there are ", layout_.exports.size()));
  }
  const Export& e = layout_.exports[static_cast<std::size_t>(id)];
  if (e.kind != Export::var) {
    throw Error(ErrorKind::value, "wse.symbol.kind",
                cat("\"", e.name, "\" is a function of type ", e.type, " and cannot be copied"))
        .help("call it with launch()");
  }
  if (write && !e.mutable_) {
    throw Error(ErrorKind::value, "wse.symbol.immutable",
                cat("\"", e.name, "\" is exported as immutable and cannot be written"))
        .help("pass true as third argument of its @export_name");
  }
  return e;
}

/// A copy of halves into elements of 32 bits leaves every other half as it was.
void SdkRuntime::warn_of_width(const Export& e, MemcpyDataType type) {
  if (type != MemcpyDataType::MEMCPY_16BIT || e.elem_bytes != 4) return;
  std::string text = cat("\"", e.name, "\" of type ", e.type,
                         " is copied as MEMCPY_16BIT; its elements take MEMCPY_32BIT");
  if (std::find(warnings_.begin(), warnings_.end(), text) == warnings_.end())
    warnings_.push_back(std::move(text));
}

std::uint32_t SdkRuntime::data_address(const Export& e, std::int64_t id, std::int32_t x,
                                       std::int32_t y, std::int64_t bytes) {
  const Tile& tile =
      layout_.tiles[static_cast<std::size_t>(y) * static_cast<std::size_t>(layout_.width) +
                    static_cast<std::size_t>(x)];
  if (tile.program != kNoProgram) {
    const Program& p = layout_.programs[tile.program];
    for (const ExportBinding& b : p.exports) {
      if (b.id != id) continue;
      std::uint16_t address = 0;
      fabric_->peek(x, y, b.address, &address, 2);
      std::int64_t limit = kMemoryBytes;
      std::string within = "memory";
      for (const Symbol& s : p.symbols) {
        if (s.address <= address && address < s.address + s.bytes && b.address != s.address) {
          limit = s.address + static_cast<std::int64_t>(s.bytes);
          within = s.name;
        }
      }
      // The machine has no objects: what a copy adds in its last word reaches the next one.
      if (address + bytes > limit && address + bytes <= limit + 4 &&
          address + bytes <= kMemoryBytes) {
        std::string text = cat("\"", e.name, "\" has ", limit - address, " bytes in \"", within,
                               "\", a copy moves ", bytes);
        if (std::find(warnings_.begin(), warnings_.end(), text) == warnings_.end())
          warnings_.push_back(std::move(text));
      } else if (address + bytes > limit) {
        throw Error(ErrorKind::value, "wse.memcpy.extent",
                    cat("\"", e.name, "\" has ", limit - address, " bytes at PE (", x, ", ", y,
                        "), the copy moves ", bytes))
            .note(cat("the pointer leads into \"", within, "\""));
      }
      return address;
    }
  }
  throw Error(ErrorKind::value, "wse.symbol.absent",
              cat("the program of PE (", x, ", ", y, ") does not export \"", e.name, "\""))
      .help("restrict the region to the PEs that do");
}

TaskHandle SdkRuntime::memcpy_h2d(std::int64_t dest, const std::uint32_t* data, std::int64_t count,
                                  Region region, bool streaming, MemcpyDataType type,
                                  MemcpyOrder order, bool nonblock, Broadcast broadcast) {
  check_region(region, count, "memcpy_h2d", broadcast);
  auto t = std::make_unique<Task>();
  t->kind = streaming ? Task::stream_in : Task::copy_in;
  if (streaming) {
    bool known = false;
    for (const HostStream& s : layout_.streams) known |= s.to_device && s.color == dest;
    if (!known)
      throw Error(ErrorKind::value, "wse.stream.color",
                  cat("colour ", dest, " is no host-to-device stream of this program"))
          .help("name it as .MEMCPYH2D_1 ... in the import of <memcpy/get_params>");
  } else {
    warn_of_width(var_export(dest, true), type);
  }
  t->id = dest;
  t->in = data;
  t->count = count;
  t->region = region;
  t->type = type;
  t->order = order;
  t->broadcast = broadcast;
  return add(std::move(t), nonblock);
}

TaskHandle SdkRuntime::memcpy_d2h(std::uint32_t* data, std::int64_t count, std::int64_t src,
                                  Region region, bool streaming, MemcpyDataType type,
                                  MemcpyOrder order, bool nonblock) {
  check_region(region, count, "memcpy_d2h", Broadcast::none);
  auto t = std::make_unique<Task>();
  t->kind = streaming ? Task::stream_out : Task::copy_out;
  if (streaming) {
    bool known = false;
    for (const HostStream& s : layout_.streams) known |= !s.to_device && s.color == src;
    if (!known)
      throw Error(ErrorKind::value, "wse.stream.color",
                  cat("colour ", src, " is no device-to-host stream of this program"))
          .help("name it as .MEMCPYD2H_1 ... in the import of <memcpy/get_params>");
  } else {
    warn_of_width(var_export(src, false), type);
  }
  t->id = src;
  t->out = data;
  t->count = count;
  t->region = region;
  t->type = type;
  t->order = order;
  return add(std::move(t), nonblock);
}

TaskHandle SdkRuntime::launch(std::int64_t id, const std::vector<std::uint64_t>& args,
                              const std::vector<Ty>& types, bool nonblock) {
  if (!running_ || stopped_)
    throw Error(ErrorKind::value, "wse.runtime.order",
                cat("launch of function ", id, stopped_ ? " after stop()" : " before run()"));
  if (id < 0 || id >= static_cast<std::int64_t>(layout_.exports.size())) {
    throw Error(ErrorKind::value, "wse.symbol.id",
                cat("symbol id ", id, " does not exist; there are ", layout_.exports.size()));
  }
  const Export& e = layout_.exports[static_cast<std::size_t>(id)];
  if (e.kind != Export::func)
    throw Error(ErrorKind::value, "wse.symbol.kind",
                cat("\"", e.name, "\" of type ", e.type, " is not a function"));
  bool fits = args.size() == e.inputs.size();
  std::vector<std::string> got, want;
  for (Ty t : types) got.emplace_back(to_string(t));
  for (Ty t : e.inputs) want.emplace_back(to_string(t));
  for (std::size_t i = 0; fits && i < types.size(); ++i)
    fits = size_of(types[i]) == size_of(e.inputs[i]) &&
           (types[i] == Ty::f32 || types[i] == Ty::f16) ==
               (e.inputs[i] == Ty::f32 || e.inputs[i] == Ty::f16);
  if (!fits) {
    throw Error(ErrorKind::value, "wse.launch.arguments",
                cat("\"", e.name, "\" takes (", join(want), ") and was given (", join(got), ")"));
  }
  auto t = std::make_unique<Task>();
  t->kind = Task::launch;
  t->id = id;
  t->args = args;
  return add(std::move(t), nonblock);
}

const PortStream& SdkRuntime::port(std::string_view name, bool to_device) const {
  std::vector<std::string> names;
  for (const PortStream& p : layout_.ports) {
    if (p.name == name && p.to_device == to_device) return p;
    if (p.to_device == to_device) names.push_back(p.name);
  }
  throw Error(ErrorKind::value, "wse.stream.port",
              cat("there is no ", to_device ? "input" : "output", " stream \"", name, "\""))
      .note(cat("there are ", join(names)));
}

TaskHandle SdkRuntime::send(std::string_view name, const std::uint32_t* data, std::int64_t count,
                            bool nonblock) {
  if (!running_ || stopped_)
    throw Error(ErrorKind::value, "wse.runtime.order",
                cat("send to ", name, stopped_ ? " after stop()" : " before run()"));
  auto t = std::make_unique<Task>();
  t->kind = Task::port_in;
  t->port = &port(name, true);
  t->in = data;
  t->count = count;
  return add(std::move(t), nonblock);
}

TaskHandle SdkRuntime::receive(std::string_view name, std::uint32_t* data, std::int64_t count,
                               bool nonblock) {
  if (!running_ || stopped_)
    throw Error(ErrorKind::value, "wse.runtime.order",
                cat("receive from ", name, stopped_ ? " after stop()" : " before run()"));
  auto t = std::make_unique<Task>();
  t->kind = Task::port_out;
  t->port = &port(name, false);
  t->out = data;
  t->count = count;
  return add(std::move(t), nonblock);
}

TaskHandle SdkRuntime::add(std::unique_ptr<Task> task, bool nonblock) {
  task->handle = ++last_;
  quiet_polls_ = 0;
  const Task* raw = task.get();
  TaskHandle handle = task->handle;
  queue_.push_back(std::move(task));
  pump();
  if (!nonblock) drive(raw);
  return handle;
}

bool SdkRuntime::finished(const Task& t) const {
  if (!t.started) return false;
  switch (t.kind) {
    case Task::copy_in:
    case Task::copy_out: return fabric_->now() >= t.end;
    case Task::launch: return fabric_->commands_open() == 0;
    case Task::stream_out: return t.left.load() == 0 && fabric_->now() >= t.end;
    default: return t.left.load() == 0;
  }
}

// Begins a task if it may begin; false when it must wait.
bool SdkRuntime::start(Task& t) {
  bool command = t.kind == Task::copy_in || t.kind == Task::copy_out || t.kind == Task::launch;
  if (command && fabric_->commands_open() > 0) return false;
  for (const auto& a : active_) {  // one copy after the other, and no command beside one
    if (command && (a->kind == Task::copy_in || a->kind == Task::copy_out)) return false;
  }
  const Region& r = t.region;
  const Timing& timing = fabric_->timing();
  switch (t.kind) {
    case Task::copy_in:
      check_extents(t);
      t.end = fabric_->now() + transfer_cycles(t);
      t.started = true;
      return true;
    case Task::copy_out: {
      // What has been issued before goes first; then the fabric may settle.
      for (const auto& a : active_) {
        if (a->kind == Task::stream_in && !finished(*a)) return false;
      }
      if (t.settle < 0) t.settle = fabric_->now() + kSettle;
      Stop s = Stop::host;
      while (s == Stop::host) s = fabric_->run(t.settle);
      if (fabric_->commands_open() > 0) return false;
      check_extents(t);
      t.end = fabric_->now() + transfer_cycles(t);
      t.started = true;
      return true;
    }
    case Task::launch: {
      Cycle from = fabric_->now() + timing.command_latency;
      for (std::int32_t y = 0; y < layout_.height; ++y) {
        for (std::int32_t x = 0; x < layout_.width; ++x) {
          std::uint32_t p =
              layout_
                  .tiles[static_cast<std::size_t>(y) * static_cast<std::size_t>(layout_.width) +
                         static_cast<std::size_t>(x)]
                  .program;
          if (p == kNoProgram) continue;
          for (const ExportBinding& b : layout_.programs[p].exports) {
            if (b.id == t.id) fabric_->command(x, y, b.function, t.args, from);
          }
        }
      }
      t.started = true;
      return true;
    }
    case Task::stream_in: {
      t.left = static_cast<std::int64_t>(r.w) * r.h;
      const Cycle from = fabric_->now() + timing.stream_latency;
      for (std::int32_t y = 0; y < r.h; ++y) {
        for (std::int32_t x = 0; x < r.w; ++x) {
          HostSource s;
          s.color = static_cast<std::uint8_t>(t.id);
          const Turn turn = turn_of(t, x, y, t.order == MemcpyOrder::ROW_MAJOR);
          s.from = from + turn.from;
          s.gap = turn.gap;
          s.left = &t.left;
          s.data.resize(static_cast<std::size_t>(r.l));
          for (std::int64_t k = 0; k < r.l; ++k)
            s.data[static_cast<std::size_t>(k)] = t.in[t.at(x, y, k)];
          fabric_->send(r.px + x, r.py + y, std::move(s));
        }
      }
      t.started = true;
      return true;
    }
    case Task::stream_out:
      for (const auto& a : active_) {  // one after the other on a colour
        if (a->kind == Task::stream_out && a->id == t.id && !a->done) return false;
      }
      t.left = static_cast<std::int64_t>(r.w) * r.h;
      for (std::int32_t y = 0; y < r.h; ++y) {
        for (std::int32_t x = 0; x < r.w; ++x) {
          // Nobody knows when a PE sends: each has its share of the channel.
          const Turn turn = turn_of(t, x, y, false);
          fabric_->expect(r.px + x, r.py + y, static_cast<std::uint8_t>(t.id), kHostPort,
                          static_cast<std::size_t>(r.l), &t.left,
                          fabric_->now() + timing.stream_latency + turn.from, turn.gap);
        }
      }
      t.end = fabric_->now() + transfer_cycles(t);
      t.started = true;
      return true;
    case Task::port_in: {
      t.left = 1;
      HostSource s;
      s.color = t.port->color;
      s.port = t.port->port;
      s.from = fabric_->now() + timing.stream_latency;
      s.left = &t.left;
      s.data.assign(t.in, t.in + t.count);
      fabric_->send(t.port->x, t.port->y, std::move(s));
      t.started = true;
      return true;
    }
    case Task::port_out:
      for (const auto& a : active_) {
        if (a->kind == Task::port_out && a->port == t.port && !a->done) return false;
      }
      t.left = 1;
      fabric_->expect(t.port->x, t.port->y, t.port->color, t.port->port,
                      static_cast<std::size_t>(t.count), &t.left);
      t.started = true;
      return true;
  }
  return false;
}

// A channel carries a word a cycle: all of one PE after another, or one of each PE in turn.
SdkRuntime::Turn SdkRuntime::turn_of(const Task& t, std::int32_t x, std::int32_t y,
                                     bool by_pes) const {
  if (!options_.timed) return {};
  const Region& r = t.region;
  const std::int32_t band = channel_rows();
  const std::int32_t first = std::max((r.py + y) / band * band - r.py, 0);
  const std::int32_t rows = std::min((r.py + y) / band * band + band - r.py, r.h) - first;
  const Cycle word = fabric_->timing().channel_word;
  if (by_pes) return {(static_cast<std::int64_t>(y - first) * r.w + x) * r.l * word, word};
  return {(static_cast<std::int64_t>(x) * rows + (y - first)) * word,
          static_cast<std::int64_t>(r.w) * rows * word};
}

std::int32_t SdkRuntime::channel_rows() const {
  // "The bandwidth of memory transfers saturates at around 8 IO channels" (release notes).
  const std::int32_t channels = std::clamp(layout_.channels, 1, kChannels);
  return std::max((layout_.height + channels - 1) / channels, 1);
}

std::int64_t SdkRuntime::channel_words(const Task& t) const {
  const Region& r = t.region;
  const std::int32_t band = channel_rows();
  std::int32_t rows = 0;  // of the region, of the channel that has most of them
  for (std::int32_t top = r.py / band * band; top < r.py + r.h; top += band)
    rows = std::max(rows, std::min(top + band, r.py + r.h) - std::max(top, r.py));
  switch (t.broadcast) {
    case Broadcast::row: return rows * r.l;
    case Broadcast::column: return r.w * r.l;
    case Broadcast::none: break;
  }
  return static_cast<std::int64_t>(rows) * r.w * r.l;
}

// A word a cycle and channel, after the command and the way to the farthest PE of a channel's rows.
Cycle SdkRuntime::transfer_cycles(const Task& t) const {
  if (!options_.timed) return 0;
  const Timing& timing = fabric_->timing();
  const Cycle way = (t.region.px + t.region.w + channel_rows()) * timing.hop;
  const bool stream = t.kind == Task::stream_in || t.kind == Task::stream_out;
  return (stream ? timing.stream_latency : timing.command_latency) + way +
         channel_words(t) * timing.channel_word;
}

void SdkRuntime::check_extents(const Task& t) {
  const Region& r = t.region;
  const Export& e = layout_.exports[static_cast<std::size_t>(t.id)];
  const int bytes = t.type == MemcpyDataType::MEMCPY_16BIT ? 2 : 4;
  for (std::int32_t y = r.py; y < r.py + r.h; ++y)
    for (std::int32_t x = r.px; x < r.px + r.w; ++x) data_address(e, t.id, x, y, r.l * bytes);
}

void SdkRuntime::copy(Task& t) {
  const Region& r = t.region;
  const Export& e = layout_.exports[static_cast<std::size_t>(t.id)];
  int bytes = t.type == MemcpyDataType::MEMCPY_16BIT ? 2 : 4;
  std::vector<std::uint8_t> line(static_cast<std::size_t>(r.l) * static_cast<std::size_t>(bytes));
  for (std::int32_t y = 0; y < r.h; ++y) {
    for (std::int32_t x = 0; x < r.w; ++x) {
      std::int32_t px = r.px + x, py = r.py + y;
      std::uint32_t address = data_address(e, t.id, px, py, r.l * bytes);
      if (t.kind == Task::copy_in) {
        for (std::int64_t k = 0; k < r.l; ++k)
          std::memcpy(&line[static_cast<std::size_t>(k * bytes)], &t.in[t.at(x, y, k)],
                      static_cast<std::size_t>(bytes));
        fabric_->write_memory(px, py, address, line.data(),
                              static_cast<std::uint32_t>(line.size()));
      } else {
        fabric_->peek(px, py, address, line.data(), static_cast<std::uint32_t>(line.size()));
        for (std::int64_t k = 0; k < r.l; ++k) {
          std::uint32_t v = 0;
          std::memcpy(&v, &line[static_cast<std::size_t>(k * bytes)],
                      static_cast<std::size_t>(bytes));
          t.out[t.at(x, y, k)] = v;
        }
      }
    }
  }
}

void SdkRuntime::place(std::string_view name, const std::vector<std::uint32_t>& words,
                       MemcpyDataType type) {
  Task t;
  t.id = get_id(name);
  t.in = words.data();
  t.type = type;
  t.region = {0, 0, layout_.width, layout_.height,
              static_cast<std::int64_t>(words.size()) / layout_.width / layout_.height};
  check_extents(t);
  copy(t);
}

void SdkRuntime::pass(Cycle cycles) {
  const Cycle until = fabric_->now() + cycles;
  while (fabric_->now() < until)
    if (fabric_->run(until) == Stop::quiet) fabric_->skip_to(until);
}

bool SdkRuntime::pump() {
  bool changed = false;
  while (!queue_.empty()) {
    try {
      if (!start(*queue_.front())) break;
    } catch (...) {  // whoever comes next must not meet it again
      queue_.pop_front();
      throw;
    }
    active_.push_back(std::move(queue_.front()));
    queue_.pop_front();
    active_.back()->since = fabric_->now();
    changed = true;
  }
  for (std::size_t i = 0; i < active_.size();) {
    Task& t = *active_[i];
    if (!finished(t)) {
      ++i;
      continue;
    }
    // Whoever comes next must not meet a failure again.
    const std::unique_ptr<Task> held = std::move(active_[i]);
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
    changed = true;
    if (t.kind == Task::copy_in || t.kind == Task::copy_out) {
      copy(t);
    } else if (t.kind == Task::stream_out && !t.done) {
      std::vector<std::uint32_t> line(static_cast<std::size_t>(t.region.l));
      for (std::int32_t y = 0; y < t.region.h; ++y) {
        for (std::int32_t x = 0; x < t.region.w; ++x) {
          fabric_->receive(t.region.px + x, t.region.py + y, static_cast<std::uint8_t>(t.id),
                           kHostPort, line.data(), line.size());
          for (std::int64_t k = 0; k < t.region.l; ++k)
            t.out[t.at(x, y, k)] = line[static_cast<std::size_t>(k)];
        }
      }
    } else if (t.kind == Task::port_out && !t.done) {
      fabric_->receive(t.port->x, t.port->y, t.port->color, t.port->port, t.out,
                       static_cast<std::size_t>(t.count));
    }
    t.done = true;
    if (runtime::TraceSink* trace = fabric_->trace()) {
      const double us = 1e6 / fabric_->timing().clock_hz;
      const bool out =
          t.kind == Task::copy_out || t.kind == Task::stream_out || t.kind == Task::port_out;
      trace->span(trace->track("host", t.kind == Task::launch ? "launches"
                                       : out                  ? "copies from the wafer"
                                                              : "copies to the wafer"),
                  t.name(), static_cast<double>(t.since) * us,
                  static_cast<double>(fabric_->now() - t.since) * us);
    }
  }
  for (LogLine& line : fabric_->take_log()) log_ += cat("@", line.cycle, " ", line.text, "\n");
  return changed;
}

Stop SdkRuntime::advance(Cycle until) {
  bool copies = false;
  for (const auto& t : active_) {
    if (t->end <= fabric_->now() || t->end == kNever) continue;
    copies = true;
    until = std::min(until, t->end);
  }
  const Stop s = fabric_->run(until);
  if (s != Stop::quiet || !copies) return s;
  fabric_->skip_to(until);  // nothing else moves
  return Stop::limit;
}

// Runs until `until` is done, or everything when it is null.
void SdkRuntime::drive(const Task* until) {
  auto pending = [&]() -> const Task* {
    for (const auto& t : active_) {
      if (!until || t.get() == until) return t.get();
    }
    for (const auto& t : queue_) {
      if (!until || t.get() == until) return t.get();
    }
    return nullptr;
  };
  while (true) {
    bool changed = pump();
    const Task* t = pending();
    if (!t) return;
    if (changed) continue;
    Stop s = advance(kNever);
    if (pump()) continue;
    if (s == Stop::quiet) {
      t = pending();
      if (!t) return;
      // A launch has been delivered; whether the program unblocks later is for the next command to
      // see.
      if (until && t->kind == Task::launch && t->started) return;
      const Error error =
          fabric_
              ->deadlock("wse.command.stalled",
                         cat("nothing moves any more and the ", t->name(), " is not done"))
              .help(
                  "a PE must call unblock_cmd_stream before the next copy or launch; streams need "
                  "a consumer or a producer on every PE");
      fabric_->report(error);
      throw error;
    }
  }
}

void SdkRuntime::stop() {
  if (stopped_) return;
  drive(nullptr);
  Stop s = Stop::host;
  Cycle until = fabric_->now() + 1000 * kSettle;  // what polls for ever ends here
  while (s == Stop::host) s = fabric_->run(until);
  pump();
  stopped_ = true;
  if (s == Stop::quiet && fabric_->jammed()) {
    const Error error =
        fabric_
            ->deadlock("wse.microthread.deadlock",
                       "nothing moves any more, and a task waits for a microthread that another "
                       "operation holds")
            .help(
                "give operations that go on side by side queues of different numbers; on WSE-3 "
                ".ut_id names a microthread");
    fabric_->report(error);
    throw error;
  }
  fabric_->report_end();
}

bool SdkRuntime::is_task_done(TaskHandle task) {
  check_issued(task);
  auto open = [&] {
    for (const auto& t : active_)
      if (t->handle == task) return true;
    for (const auto& t : queue_)
      if (t->handle == task) return true;
    return false;
  };
  pump();
  if (!open()) return true;
  Stop s = advance(fabric_->now() + kPoll);
  bool changed = pump();
  if (!open()) return true;
  // Nothing moves: the host may still issue what is missing, but one that only asks will ask for
  // ever.
  if (s == Stop::quiet && !changed && ++quiet_polls_ > kQuietPolls) task_wait(task);
  return !open();
}

void SdkRuntime::task_wait(TaskHandle task) {
  for (const auto& t : active_)
    if (t->handle == task) return drive(t.get());
  for (const auto& t : queue_)
    if (t->handle == task) return drive(t.get());
  check_issued(task);
}

void SdkRuntime::check_issued(TaskHandle task) const {
  if (task < 1 || task > last_)
    throw Error(ErrorKind::value, "wse.runtime.task", cat("task ", task, " was never issued"));
}

const Symbol& SdkRuntime::symbol(std::int32_t x, std::int32_t y, std::string_view name) const {
  std::int32_t px = x - layout_.offset_x, py = y - layout_.offset_y;
  if (px < 0 || py < 0 || px >= layout_.width || py >= layout_.height) {
    throw Error(ErrorKind::index, "wse.pe.outside",
                cat("(", x, ", ", y, ") is not in the program rectangle of ", layout_.width, " x ",
                    layout_.height, " at (", layout_.offset_x, ", ", layout_.offset_y, ")"));
  }
  const Tile& tile =
      layout_.tiles[static_cast<std::size_t>(py) * static_cast<std::size_t>(layout_.width) +
                    static_cast<std::size_t>(px)];
  std::vector<std::string> names;
  if (tile.program != kNoProgram) {
    for (const Symbol& s : layout_.programs[tile.program].symbols) {
      if (s.name == name) return s;
      names.push_back(s.name);
    }
  }
  Error e(ErrorKind::value, "wse.symbol.unknown",
          cat("the program of PE (", x, ", ", y, ") has no symbol \"", name, "\""));
  e.note(cat("it has ", join(names)));
  if (std::string near = did_you_mean(name, names); !near.empty()) e.help(near);
  throw e;
}

std::string SdkRuntime::read_symbol(std::int32_t x, std::int32_t y, std::string_view name) const {
  const Symbol& s = symbol(x, y, name);
  std::string out(s.bytes, '\0');
  fabric_->peek(x - layout_.offset_x, y - layout_.offset_y, s.address, out.data(), s.bytes);
  return out;
}

std::string SdkRuntime::sim_log() {
  pump();
  return log_;
}

}  // namespace weft::wse
