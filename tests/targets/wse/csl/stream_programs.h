// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random programs of PEs that exchange streams, and what a run of one shows.
#include <algorithm>
#include <random>

#include "csl_run.h"
#include "weft/base/text.h"

namespace weft::wse::testing {
inline constexpr int kVariants = 3;
inline const char* const kSides[4] = {"e", "w", "s", "n_"};

// Each PE tells the neighbours of a set of directions its vector, `rounds` times; what a side
// receives comes by an operation or, wavelet by wavelet, by data tasks.
class StreamPrograms {
 public:
  explicit StreamPrograms(unsigned seed) : random_(seed) {
    w_ = draw(1, 6);
    h_ = draw(1, 5);
    constexpr int lengths[] = {1, 1, 2, 3, 7, 18};
    n_ = lengths[draw(0, 5)];
    sync_ = n_ <= 7;
    do {
      for (bool& u : used_) u = draw(0, 3) > 0;
    } while (!used_[0] && !used_[1] && !used_[2] && !used_[3]);
    for (bool& t : by_task_) t = draw(0, 2) == 0;
  }

  csl::CompileOptions options(Arch arch) {
    csl::CompileOptions o;
    o.root = "layout.csl";
    o.arch = arch;
    o.read_disk = false;
    o.files["layout.csl"] = layout();
    o.files["pe.csl"] = pe();
    o.params = {{"w", w_}, {"h", h_}};
    return o;
  }

  /// Words of a vector.
  int length() const { return n_; }

 private:
  int draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }

  // Side d sends in direction d; what comes from there was sent in the opposite direction.
  static std::string to(int d) { return cat("to_", kSides[d]); }
  static std::string from(int d) { return cat("from_", kSides[d]); }
  bool receives(int d) const { return used_[d ^ 1]; }

  std::string layout() {
    std::string params, routes;
    const char* const port[4] = {"EAST", "WEST", "SOUTH", "NORTH"};
    const char* const there[4] = {"x < w - 1", "x > 0", "y < h - 1", "y > 0"};
    for (int d = 0; d < 4; ++d) {
      const char* place = d < 2 ? "x % 2" : "y % 2";
      params += cat(", .", kSides[d], " = ", there[d], ", .", to(d), " = c[", 2 * d, " + ", place,
                    "], .", from(d), " = c[", 2 * (d ^ 1), " + 1 - ", place, "]");
      if (used_[d])
        routes += cat("if (", there[d], ") @set_color_config(x, y, c[", 2 * d, " + ", place,
                      "], .{ .routes = .{ .rx = .{RAMP}, .tx = .{", port[d], "} } });\n");
      if (receives(d))
        routes += cat("if (", there[d], ") @set_color_config(x, y, c[", 2 * (d ^ 1), " + 1 - ",
                      place, "], .{ .routes = .{ .rx = .{", port[d], "}, .tx = .{RAMP} } });\n");
    }
    std::string colors;
    for (int k = 0; k < 8; ++k) colors += cat(k ? ", " : "", "@get_color(", k, ")");
    return cat("param w: u16; param h: u16;\nconst c = [8]color{ ", colors,
               " };\nlayout {\n@set_rectangle(w, h);\nfor (@range(u16, w)) |x| { for (@range(u16, "
               "h)) |y| {\n@set_tile_code(x, y, \"pe.csl\", .{ .kind = (x * ",
               draw(0, 3), " + y * ", draw(0, 3), " + ", draw(0, 2), ") % ", kVariants,
               ", .place = x * 3 + y", params, " });\n", routes, "} }\n}\n");
  }

  std::string pause() {
    const int turns = draw(-6, 9);
    if (turns <= 0) return {};
    return cat("for (@range(u16, ", turns, ")) |i| { noise += @as(u32, i) * 3; }\n");
  }

  std::string issue() {
    std::vector<std::string> parts;
    for (int d = 0; d < 4; ++d) {
      const bool async = !sync_ || draw(0, 3) > 0;
      if (used_[d])
        parts.push_back(cat("if (", kSides[d], ") @mov32(out_", kSides[d], ", v_dsd",
                            async ? ", .{ .async = true }" : "", ");\n"));
      if (receives(d) && !by_task_[d])
        parts.push_back(cat("if (", kSides[d], ") @mov32(side_", kSides[d], ", in_", kSides[d],
                            ", .{ .async = true, .activate = end_", kSides[d], " });\n"));
    }
    // Receives of a variant that sends in place come first, so that nobody waits for ever.
    std::shuffle(parts.begin(), parts.end(), random_);
    if (sync_)
      std::stable_partition(parts.begin(), parts.end(), [](const std::string& p) {
        return p.find("async") != std::string::npos;
      });
    std::string text = pause();
    for (const std::string& p : parts) text += p + pause();
    return text;
  }

  std::string pe() {
    const std::string n = cat(n_);
    std::string s =
        "param kind: u16; param place: u16;\nconst time = @import_module(\"<time>\");\n";
    for (int d = 0; d < 4; ++d)
      s += cat("param ", kSides[d], ": bool; param ", to(d), ": color; param ", from(d),
               ": color;\n");
    s += cat("const step_id = @get_local_task_id(10);\nexport var v = @zeros([", n,
             "]u32);\nexport var stamps = @zeros([30]u16);\nexport var noise: u32 = 0;\nvar round: "
             "u16 = 0; var need: u16 = 0; var armed: bool = false;\nconst v_dsd = "
             "@get_dsd(mem1d_dsd, .{ .base_address = &v, .extent = ",
             n, " });\n");
    std::string check, sums, binds, queues;
    for (int d = 0; d < 4; ++d) {
      const std::string side = kSides[d];
      const std::string oq = cat("oq_", side), iq = cat("iq_", side);
      if (used_[d]) {
        s += cat("const ", oq, " = @get_output_queue(", 2 + d, ");\nconst out_", side,
                 " = @get_dsd(fabout_dsd, .{ .extent = ", n, ", .fabric_color = ", to(d),
                 ", .output_queue = ", oq, " });\n");
        queues += cat("if (", side, ") @initialize_queue(", oq, ", .{ .color = ", to(d), " });\n");
      }
      if (!receives(d)) continue;
      s += cat("export var got_", side, ": u16 = 0;\nexport var buffer_", side, " = @zeros([", n,
               " * 2]u32);\nconst ", iq, " = @get_input_queue(", 4 + d, ");\n");
      queues += cat("if (", side, ") @initialize_queue(", iq, ", .{ .color = ", from(d), " });\n");
      check += cat("if (", side, " and got_", side, " < need) return;\n");
      sums += cat("if (", side, ") { for (@range(u16, ", n, ")) |i| { v[i] = v[i] * 5 + buffer_",
                  side, "[i]; } }\n");
      if (by_task_[d]) {
        s += cat("const task_", side, " = if (@is_arch(\"wse3\")) @get_data_task_id(", iq,
                 ") else @get_data_task_id(", from(d), ");\ntask on_", side,
                 "(x: u32) void { buffer_", side, "[got_", side, " % (", n, " * 2)] = x; got_",
                 side, " += 1; check(); }\n");
        binds += cat("if (", side, ") @bind_data_task(on_", side, ", task_", side, ");\n");
      } else {
        s += cat("const end_", side, " = @get_local_task_id(", 11 + d, ");\nconst side_", side,
                 " = @get_dsd(mem1d_dsd, .{ .base_address = &buffer_", side, ", .extent = ", n,
                 " });\nconst in_", side, " = @get_dsd(fabin_dsd, .{ .extent = ", n,
                 ", .fabric_color = ", from(d), ", .input_queue = ", iq, " });\ntask on_", side,
                 "() void { got_", side, " += ", n, "; check(); }\n");
        binds += cat("if (", side, ") @bind_local_task(on_", side, ", end_", side, ");\n");
      }
    }
    s += cat("fn check() void { if (!armed) return;\n", check,
             "armed = false; @activate(step_id); }\ntask step() void {\nif (round > 0) {\n", sums,
             "}\ntime.get_timestamp(@ptrcast(*[3]u16, &stamps[round * 3]));\nif (round == 9) "
             "return;\nround += 1; need += ",
             n, "; v[0] += @as(u32, place + round);\n");
    for (int k = 0; k < kVariants; ++k) s += cat("if (kind == ", k, ") {\n", issue(), "}\n");
    s +=
        cat("armed = true; check();\n}\ncomptime {\n@bind_local_task(step, step_id); "
            "@activate(step_id);\n",
            binds, "if (@is_arch(\"wse3\")) {\n", queues, "}\n}\n");
    return s;
  }

  std::mt19937 random_;
  int w_ = 1, h_ = 1, n_ = 1;
  bool sync_ = false;
  bool used_[4] = {}, by_task_[4] = {};
};

struct StreamOutcome {
  Cycle cycles = 0;
  std::int64_t visits = 0;
  std::string memory;
  std::vector<std::int64_t> counters;
};

inline StreamOutcome run_streams(const Layout& layout, FabricOptions options) {
  Fabric fabric(layout, options);
  fabric.start();
  fabric.run();
  StreamOutcome out;
  out.cycles = fabric.now();
  out.visits = fabric.pe_steps();
  for (int y = 0; y < layout.height; ++y) {
    for (int x = 0; x < layout.width; ++x) {
      const std::uint32_t program =
          layout.tiles[static_cast<std::size_t>(y * layout.width + x)].program;
      std::string bytes(layout.programs[program].data_bytes, '\0');
      fabric.read_memory(x, y, 0, bytes.data(), static_cast<std::uint32_t>(bytes.size()));
      out.memory += bytes;
    }
  }
  auto report = fabric.stats();
  for (const char* name :
       {"instructions", "elements", "tasks", "busy.pe", "stall.pe.wait", "idle.pe"})
    out.counters.push_back(report.get(name));
  return out;
}

}  // namespace weft::wse::testing
