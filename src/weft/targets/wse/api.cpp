// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/api.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "weft/base/error.h"
#include "weft/base/interrupt.h"
#include "weft/base/text.h"
#include "weft/targets/wse/picture.h"

namespace weft::wse {

namespace {

std::int64_t integer(const Json& args, std::string_view key, std::int64_t otherwise) {
  const Json* v = args.find(key);
  return v && !v->is_null() ? v->as_int() : otherwise;
}
bool flag(const Json& args, std::string_view key, bool otherwise = false) {
  const Json* v = args.find(key);
  return v && !v->is_null() ? v->as_bool() : otherwise;
}
std::string text(const Json& args, std::string_view key, std::string otherwise = {}) {
  const Json* v = args.find(key);
  return v && !v->is_null() ? v->as_string() : otherwise;
}
std::int32_t small(const Json& args, std::string_view key) {
  return static_cast<std::int32_t>(integer(args, key, 0));
}

Ty type_of(const std::string& name) {
  for (int i = 0; i < kTypes; ++i) {
    if (to_string(static_cast<Ty>(i)) == name) return static_cast<Ty>(i);
  }
  throw Error(ErrorKind::dtype, "wse.api.type",
              cat("\"", name, "\" is no type of a launch argument"));
}

Region region_of(const Json& a) {
  Region r;
  r.px = small(a, "px");
  r.py = small(a, "py");
  r.w = small(a, "w");
  r.h = small(a, "h");
  r.l = integer(a, "l", 0);
  return r;
}

std::string hex_bytes(const std::string& bytes) {
  std::string out;
  static constexpr char kDigits[] = "0123456789abcdef";
  for (unsigned char c : bytes) {
    out.push_back(kDigits[c >> 4]);
    out.push_back(kDigits[c & 15]);
  }
  return out;
}

}  // namespace

Json call_runtime(SdkRuntime& rt, const std::string& method, const Json& a, void* data,
                  std::int64_t count) {
  auto* words = static_cast<std::uint32_t*>(data);
  if (method == "load") return rt.load(), Json();
  if (method == "run") return rt.run(), Json();
  if (method == "stop") return rt.stop(), Json();
  if (method == "get_id") return rt.get_id(text(a, "name"));
  if (method == "memcpy_h2d" || method == "memcpy_d2h") {
    MemcpyDataType type = integer(a, "data_type", 1) == 0 ? MemcpyDataType::MEMCPY_16BIT
                                                          : MemcpyDataType::MEMCPY_32BIT;
    MemcpyOrder order =
        integer(a, "order", 0) == 0 ? MemcpyOrder::ROW_MAJOR : MemcpyOrder::COL_MAJOR;
    bool streaming = flag(a, "streaming"), nonblock = flag(a, "nonblock");
    if (method == "memcpy_d2h")
      return rt.memcpy_d2h(words, count, integer(a, "id", -1), region_of(a), streaming, type, order,
                           nonblock);
    return rt.memcpy_h2d(integer(a, "id", -1), words, count, region_of(a), streaming, type, order,
                         nonblock, static_cast<Broadcast>(integer(a, "broadcast", 0)));
  }
  if (method == "launch") {
    std::vector<std::uint64_t> args;
    std::vector<Ty> types;
    for (const Json& v : a.at("args").as_array())
      args.push_back(static_cast<std::uint64_t>(v.as_int()));
    for (const Json& v : a.at("types").as_array()) types.push_back(type_of(v.as_string()));
    return rt.launch(integer(a, "id", -1), args, types, flag(a, "nonblock"));
  }
  if (method == "send") return rt.send(text(a, "port"), words, count, flag(a, "nonblock"));
  if (method == "receive") return rt.receive(text(a, "port"), words, count, flag(a, "nonblock"));
  if (method == "is_task_done") return rt.is_task_done(integer(a, "task", 0));
  if (method == "task_wait") return rt.task_wait(integer(a, "task", 0)), Json();
  if (method == "read_symbol") {
    const Symbol& s = rt.symbol(small(a, "x"), small(a, "y"), text(a, "name"));
    Json out = Json::object();
    out["bytes"] = hex_bytes(rt.read_symbol(small(a, "x"), small(a, "y"), text(a, "name")));
    out["type"] = to_string(s.elem);
    return out;
  }
  if (method == "symbols") {
    Json out = Json::array();
    const Layout& l = rt.layout();
    std::int64_t x = small(a, "x") - l.offset_x, y = small(a, "y") - l.offset_y;
    if (x < 0 || y < 0 || x >= l.width || y >= l.height) return out;
    std::uint32_t p = l.tiles[static_cast<std::size_t>(y * l.width + x)].program;
    if (p == kNoProgram) return out;
    for (const Symbol& s : l.programs[p].symbols) out.push_back(s.name);
    return out;
  }
  if (method == "string") {
    const Layout& l = rt.layout();
    std::int64_t x = small(a, "x") - l.offset_x, y = small(a, "y") - l.offset_y;
    std::uint32_t p = x < 0 || y < 0 || x >= l.width || y >= l.height
                          ? kNoProgram
                          : l.tiles[static_cast<std::size_t>(y * l.width + x)].program;
    std::int64_t i = integer(a, "index", -1);
    if (p == kNoProgram || i < 0 || i >= static_cast<std::int64_t>(l.programs[p].strings.size())) {
      throw Error(ErrorKind::index, "wse.api.string",
                  cat("the program of PE (", x, ", ", y, ") has no string ", i));
    }
    return l.programs[p].strings[static_cast<std::size_t>(i)];
  }
  if (method == "signature") {
    const auto& exports = rt.layout().exports;
    std::int64_t id = integer(a, "id", -1);
    if (id < 0 || id >= static_cast<std::int64_t>(exports.size())) {
      throw Error(ErrorKind::value, "wse.symbol.id",
                  cat("symbol id ", id, " does not exist; there are ", exports.size()));
    }
    const Export& e = exports[static_cast<std::size_t>(id)];
    Json inputs = Json::array();
    for (Ty t : e.inputs) inputs.push_back(to_string(t));
    return inputs;
  }
  if (method == "log") return rt.sim_log();
  if (method == "warnings") {
    Json list = Json::array();
    for (const std::string& w : rt.warnings()) list.push_back(w);
    return list;
  }
  if (method == "stats") return rt.fabric().stats().to_json();
  if (method == "links") {  // [height][width][4]: wavelets sent east, west, north, south
    const Layout& l = rt.fabric().layout();
    std::int64_t want = std::int64_t{4} * l.width * l.height;
    if (count != want || !words)
      throw Error(ErrorKind::shape, "wse.api.links",
                  cat("the array has ", count, " words; ", want, " are needed"));
    rt.fabric().settle();
    for (std::int32_t y = 0; y < l.height; ++y) {
      for (std::int32_t x = 0; x < l.width; ++x) {
        for (std::int64_t n : rt.fabric().link_traffic(x, y))
          *words++ = static_cast<std::uint32_t>(std::min<std::int64_t>(n, 0xffffffff));
      }
    }
    return {};
  }
  if (method == "stats_table") return rt.fabric().stats().table();
  if (method == "cycles") return rt.fabric().now();
  if (method == "clock") return rt.fabric().timing().clock_hz;
  if (method == "waiting") {
    Json out = Json::array();
    for (std::string& s : rt.fabric().waiting()) out.push_back(std::move(s));
    return out;
  }
  if (method == "save_trace") {
    if (!rt.trace())
      throw Error(ErrorKind::value, "wse.api.trace",
                  cat("no trace was asked for, so none can be saved to ", text(a, "path")))
          .help("open the runtime with suppress_simfab_trace=False");
    rt.trace()->save(text(a, "path"));
    return {};
  }
  if (method == "timeline") return rt.fabric().timeline();
  if (method == "heat_map") {
    write_heat_map(rt.fabric(), text(a, "what", "busy"), text(a, "path"));
    return {};
  }
  if (method == "layout") {
    const Layout& l = rt.layout();
    Json out = Json::object();
    out["width"] = l.width;
    out["height"] = l.height;
    out["offset_x"] = l.offset_x;
    out["offset_y"] = l.offset_y;
    out["arch"] = l.arch == Arch::wse2 ? "wse2" : "wse3";
    Json ports = Json::array();
    for (const PortStream& p : l.ports) {
      Json port = Json::object();
      port["name"] = p.name;
      port["color"] = static_cast<int>(p.color);
      port["x"] = l.offset_x + p.x;
      port["y"] = l.offset_y + p.y;
      ports.push_back(port);
    }
    out["ports"] = ports;
    return out;
  }
  throw Error(ErrorKind::value, "wse.api.method",
              cat("there is no runtime method \"", method, "\""));
}

}  // namespace weft::wse

namespace {

char* copy_text(const std::string& s) {
  auto* out = static_cast<char*>(std::malloc(s.size() + 1));
  if (out) std::memcpy(out, s.c_str(), s.size() + 1);
  return out;
}

/// What this thread's calls look at now and then; see weft_wse_watch.
thread_local const volatile std::int32_t* watched = nullptr;

// Runs `work` and turns whatever it throws into the error text.
template <typename F>
auto guarded(char** error, const char* what, F&& work) -> decltype(work()) {
  weft::Json e = weft::Json::object();
  try {
    if (!watched) return work();
    const weft::InterruptScope scope([what, stop = watched] {
      if (*stop == 0) return;
      throw weft::Error(weft::ErrorKind::device, "wse.interrupted",
                        weft::cat("\"", what, "\" was stopped by its caller"));
    });
    return work();
  } catch (const weft::Error& x) {
    e["kind"] = weft::to_string(x.kind());
    e["code"] = x.code();
    e["message"] = x.message();
    e["text"] = x.what();
  } catch (const std::bad_alloc&) {
    e["kind"] = "memory";
    e["code"] = "wse.memory.host";
    e["message"] = "the host is out of memory";
    e["text"] = "error[wse.memory.host]: the host is out of memory";
  } catch (const std::exception& x) {
    e["kind"] = "internal";
    e["code"] = "internal";
    e["message"] = x.what();
    e["text"] = x.what();
  }
  if (error) *error = copy_text(e.dump());
  return nullptr;
}

}  // namespace

extern "C" {

void* weft_wse_open(const char* directory, const char* options, char** error) {
  return guarded(error, "open", [&]() -> void* {
    weft::Json o = weft::Json::parse(options, "<options>");
    weft::wse::RuntimeOptions r;
    if (const weft::Json* v = o.find("cmaddr"); v && !v->is_null()) r.cmaddr = v->as_string();
    if (const weft::Json* v = o.find("timed")) r.timed = v->as_bool();
    if (const weft::Json* v = o.find("threads")) r.threads = static_cast<int>(v->as_int());
    if (const weft::Json* v = o.find("trace_links")) r.trace_links = v->as_bool();
    if (const weft::Json* v = o.find("timeline")) r.timeline = v->as_bool();
    if (const weft::Json* v = o.find("check_bounds")) r.check_bounds = v->as_bool();
    if (const weft::Json* v = o.find("engine")) {
      r.engine = v->as_string() == "native"     ? weft::wse::Engine::native
                 : v->as_string() == "bytecode" ? weft::wse::Engine::bytecode
                                                : weft::wse::Engine::automatic;
    }
    if (const weft::Json* v = o.find("task_order")) {
      static constexpr std::string_view kOrders[] = {"local-first", "round-robin", "highest-first",
                                                     "lowest-first", "random"};
      const auto* found = std::find(std::begin(kOrders), std::end(kOrders), v->as_string());
      if (found == std::end(kOrders))
        throw weft::Error(weft::ErrorKind::value, "wse.runtime.task_order",
                          weft::cat("task_order is \"", v->as_string(),
                                    "\"; legal are local-first, round-robin, highest-first, "
                                    "lowest-first and random"));
      r.task_order = static_cast<weft::wse::TaskOrder>(found - std::begin(kOrders));
      if (const weft::Json* seed = o.find("seed"))
        r.seed = static_cast<std::uint64_t>(seed->as_int());
    }
    if (const weft::Json* v = o.find("router_depth")) {
      const std::int64_t depth = v->as_int();
      if (depth < 0 || depth > weft::wse::kMostRouterDepth)
        throw weft::Error(weft::ErrorKind::value, "wse.runtime.router_depth",
                          weft::cat("router_depth is ", depth, "; legal are 1 to ",
                                    weft::wse::kMostRouterDepth, ", and 0 for the model's"));
      r.router_depth = static_cast<int>(depth);
    }
    if (const weft::Json* v = o.find("cycle_limit")) {
      r.cycle_limit = v->as_int();
      if (r.cycle_limit < 0)
        throw weft::Error(
            weft::ErrorKind::value, "wse.runtime.cycle_limit",
            weft::cat("cycle_limit is ", r.cycle_limit, "; legal are 1 and more, and 0 for none"));
    }
    auto runtime = std::make_unique<weft::wse::SdkRuntime>(directory, r);
    if (const weft::Json* v = o.find("trace"); v && v->as_bool()) runtime->start_trace();
    return runtime.release();
  });
}

void weft_wse_close(void* runtime) { delete static_cast<weft::wse::SdkRuntime*>(runtime); }

char* weft_wse_call(void* runtime, const char* method, const char* args, void* data,
                    std::int64_t count, char** error) {
  return guarded(error, method, [&]() -> char* {
    weft::Json result =
        weft::wse::call_runtime(*static_cast<weft::wse::SdkRuntime*>(runtime), method,
                                weft::Json::parse(args, "<args>"), data, count);
    return copy_text(result.dump());
  });
}

char* weft_wse_tool(const char* method, const char* args, char** error) {
  return guarded(error, method, [&]() -> char* {
    return copy_text(weft::wse::call_tool(method, weft::Json::parse(args, "<args>")).dump());
  });
}

void weft_wse_free(char* text) { std::free(text); }

void weft_wse_watch(const std::int32_t* stop) { watched = stop; }
}
