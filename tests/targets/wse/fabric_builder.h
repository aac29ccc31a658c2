// SPDX-License-Identifier: Apache-2.0
#pragma once
// Builds PE programs by hand, so that the fabric is tested without the compiler.

#include <string>
#include <utility>
#include <vector>

#include "weft/targets/wse/program.h"

namespace weft::wse::testing {

struct Builder {
  Program p;
  Function f;

  explicit Builder(std::string name = "test.csl") {
    p.name = name;
    p.files = {std::move(name)};
    p.data_bytes = 4096;
  }
  Builder& op(Op o, Ty ty, int a, int b = 0, int c = 0) {
    f.code.push_back({o, static_cast<std::uint8_t>(ty), static_cast<std::uint16_t>(a),
                      static_cast<std::uint16_t>(b), static_cast<std::uint16_t>(c)});
    return *this;
  }
  Builder& imm(Op o, int a, std::int32_t v, int ty = 0) {
    f.code.push_back(
        Insn::with_imm(o, static_cast<std::uint8_t>(ty), static_cast<std::uint16_t>(a), v));
    return *this;
  }
  Builder& task_op(Op o, TaskSpace space, int id) { return imm(o, 0, id, static_cast<int>(space)); }
  int here() const { return static_cast<int>(f.code.size()); }
  /// Ends the function under construction; returns its index.
  int end(std::string name, int regs = 16, int dsds = 8, int frame = 0) {
    f.code.push_back({Op::ret, 0, 0, 0, 0});
    f.name = std::move(name);
    f.regs = static_cast<std::uint16_t>(regs);
    f.dsds = static_cast<std::uint16_t>(dsds);
    f.frame_bytes = static_cast<std::uint16_t>(frame);
    f.lines = {{0, 0, static_cast<std::uint32_t>(10 * (p.functions.size() + 1))}};
    p.functions.push_back(std::move(f));
    f = {};
    return static_cast<int>(p.functions.size()) - 1;
  }
  static Dsd mem(int base, int n, int stride = 1) {
    Dsd d;
    d.kind = DsdKind::mem1d;
    d.base = static_cast<std::uint16_t>(base);
    d.extent[3] = static_cast<std::uint16_t>(n);
    d.stride[3] = static_cast<std::int16_t>(stride);
    return d;
  }
  static Dsd fab(bool out, int color, int queue, int n, std::uint8_t flags = 0) {
    Dsd d;
    d.kind = out ? DsdKind::fabout : DsdKind::fabin;
    d.color = static_cast<std::uint8_t>(color);
    d.queue = static_cast<std::uint8_t>(queue);
    d.extent[3] = static_cast<std::uint16_t>(n);
    d.flags = flags;
    return d;
  }
  /// Loads the constant descriptor into d[reg].
  Builder& dsd(int reg, const Dsd& d) {
    p.dsds.push_back(d);
    return imm(Op::dconst, reg, static_cast<std::int32_t>(p.dsds.size()) - 1);
  }
  static Operand d(int reg) {
    return {Operand::dsd, DsrFile::dest, static_cast<std::uint16_t>(reg)};
  }
  static Operand r(int reg) {
    return {Operand::value, DsrFile::dest, static_cast<std::uint16_t>(reg)};
  }
  static Operand ptr(int reg) {
    return {Operand::pointer, DsrFile::dest, static_cast<std::uint16_t>(reg)};
  }
  static Operand fifo(int n) {
    return {Operand::fifo, DsrFile::dest, static_cast<std::uint16_t>(n)};
  }
  Builder& bulk(Bulk code, Operand dst, Operand a, Operand b = {}, Operand s = {},
                OpSettings settings = {}) {
    BulkOp o;
    o.code = code;
    o.dst = dst;
    o.src0 = a;
    o.src1 = b;
    o.scalar = s;
    o.settings = settings;
    p.bulks.push_back(o);
    f.code.push_back(
        Insn::with_imm(Op::bulk, 0, kNone16, static_cast<std::int32_t>(p.bulks.size()) - 1));
    return *this;
  }
  static OpSettings async(Completion done = {}) {
    OpSettings s;
    s.async = true;
    s.done = done;
    return s;
  }
  static Completion activate(int id) {
    return {Completion::activate, TaskSpace::local, static_cast<std::uint16_t>(id)};
  }
  Builder& local_task(int id, int function, bool active = false) {
    p.tasks.push_back({TaskSpace::local,
                       static_cast<std::uint16_t>(id),
                       static_cast<std::uint16_t>(function),
                       {}});
    if (active)
      p.states.push_back({TaskSpace::local, static_cast<std::uint16_t>(id), true, false, false});
    return *this;
  }
  Builder& data_task(int color, int function, std::vector<Ty> args) {
    p.tasks.push_back({TaskSpace::color, static_cast<std::uint16_t>(color),
                       static_cast<std::uint16_t>(function), std::move(args)});
    return *this;
  }
};

inline ColorRoute route(int color, std::uint8_t rx, std::uint8_t tx) {
  ColorRoute r;
  r.color = static_cast<std::uint8_t>(color);
  r.route.rx = rx;
  r.route.tx = tx;
  return r;
}

inline constexpr std::uint8_t E = 1, W = 2, N = 4, S = 8, R = 16;  // port bits

struct LayoutBuilder {
  Layout l;
  LayoutBuilder(int w, int h) {
    l.width = w;
    l.height = h;
    l.fabric_width = w + 7;
    l.fabric_height = h + 2;
    l.offset_x = 4;
    l.offset_y = 1;
    l.tiles.resize(static_cast<std::size_t>(w) * static_cast<std::size_t>(h), Tile{kNoProgram, 0});
    l.route_sets.push_back({});
  }
  std::uint32_t add(Program p) {
    l.programs.push_back(std::move(p));
    return static_cast<std::uint32_t>(l.programs.size()) - 1;
  }
  std::uint32_t routes(RouteSet set) {
    l.route_sets.push_back(std::move(set));
    return static_cast<std::uint32_t>(l.route_sets.size()) - 1;
  }
  void tile(int x, int y, std::uint32_t program, std::uint32_t route_set = 0) {
    l.tiles[static_cast<std::size_t>(y * l.width + x)] = {program, route_set};
  }
};

/// A chain along a row: every PE adds its vector of n floats (at address 0) to what comes from the
/// east and sends the sum west; the sum ends in PE 0 at address 2048 + n * 4.
inline Layout chain(int pes, int n, int vector_at = 0, int result_at = 2048) {
  LayoutBuilder b(pes, 1);
  auto routes_for = [&](int color_in, int color_out, bool first, bool last) {
    RouteSet s;
    if (!last) s.push_back(route(color_in, E, R));
    if (!first) s.push_back(route(color_out, R, W));
    return b.routes(s);
  };
  Dsd v = Builder::mem(vector_at, n);
  auto make = [&](int kind, int in, int out) {  // 0: west end, 1: middle, 2: east end
    Builder p;
    p.p.data_bytes = static_cast<std::uint32_t>(std::max(vector_at, result_at) + 4 * n + 64);
    p.dsd(0, v);
    if (kind != 2) p.dsd(1, Builder::fab(false, in, 2, n));
    if (kind != 0) p.dsd(2, Builder::fab(true, out, 3, n));
    if (kind == 2) p.bulk(Bulk::fmovs, Builder::d(2), Builder::d(0), {}, {}, Builder::async());
    if (kind == 1)
      p.bulk(Bulk::fadds, Builder::d(2), Builder::d(1), Builder::d(0), {}, Builder::async());
    if (kind == 0) {
      p.dsd(3, Builder::mem(result_at, n));
      p.bulk(Bulk::fadds, Builder::d(3), Builder::d(1), Builder::d(0), {}, Builder::async());
    }
    int f = p.end("main");
    p.local_task(8, f, true);
    return b.add(p.p);
  };
  std::uint32_t west[2] = {make(0, 1, 0), make(0, 1, 0)};
  std::uint32_t mid[2] = {make(1, 1, 0), make(1, 0, 1)};
  std::uint32_t east[2] = {make(2, 1, 0), make(2, 0, 1)};
  for (int x = 0; x < pes; ++x) {
    int odd = x & 1;  // even PEs receive on colour 1 and send on 0, odd ones the other way
    int in = odd ? 0 : 1, out = odd ? 1 : 0;
    std::uint32_t p = x == 0 ? west[0] : x == pes - 1 ? east[odd] : mid[odd];
    b.tile(x, 0, p, routes_for(in, out, x == 0, x == pes - 1));
  }
  return b.l;
}

}  // namespace weft::wse::testing
