// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/isa.h"

#include <algorithm>

namespace weft::vta {

namespace {

using isa::Field;
using isa::FieldKind;
using isa::Fixed;
using isa::Format;

constexpr unsigned kLoopBits = 14;

Field number(std::string name, unsigned at, unsigned width, std::string meaning) {
  return {std::move(name), at, width, FieldKind::unsigned_, {}, std::move(meaning)};
}
Field flag(std::string name, unsigned at, std::string word, std::string meaning) {
  return {std::move(name),   at, 1, FieldKind::named, {{"-", 0}, {std::move(word), 1}},
          std::move(meaning)};
}
Field named(std::string name, unsigned at, unsigned width, std::vector<isa::NamedCode> names,
            std::string meaning) {
  return {std::move(name), at, width, FieldKind::named, std::move(names), std::move(meaning)};
}

constexpr const char* kDepSyntax = " pop={pop_prev},{pop_next} push={push_prev},{push_next}";
constexpr const char* kDmaSyntax =
    "{mem} sram={sram} dram={dram} y={y_size} x={x_size} stride={x_stride} "
    "pad={y_pad_0},{y_pad_1},{x_pad_0},{x_pad_1}";

std::vector<Field> dependences() {
  return {flag("pop_prev", 3, "prev", "wait for a token of the previous stage"),
          flag("pop_next", 4, "next", "wait for a token of the next stage"),
          flag("push_prev", 5, "prev", "afterwards give a token to the previous stage"),
          flag("push_next", 6, "next", "afterwards give a token to the next stage")};
}

std::vector<Field> dma_fields(std::vector<isa::NamedCode> memories) {
  std::vector<Field> fields = dependences();
  fields.push_back(named("mem", 7, 3, std::move(memories), "memory type"));
  fields.push_back(number("sram", 10, 16, "first element in the on-chip memory"));
  fields.push_back(
      number("dram", 26, 32, "first element in DRAM; times the element's bytes it is the address"));
  fields.push_back(number("y_size", 64, 16, "rows"));
  fields.push_back(number("x_size", 80, 16, "elements of a row"));
  fields.push_back(number("x_stride", 96, 16, "elements from one row to the next in DRAM"));
  fields.push_back(number("y_pad_0", 112, 4, "rows of zeros before"));
  fields.push_back(number("y_pad_1", 116, 4, "rows of zeros after"));
  fields.push_back(number("x_pad_0", 120, 4, "zeros before each row"));
  fields.push_back(number("x_pad_1", 124, 4, "zeros after each row"));
  return fields;
}

std::vector<Field> loop_fields(unsigned u) {
  std::vector<Field> fields = dependences();
  fields.push_back(named("reset", 7, 1, {{"run", 0}, {"reset", 1}},
                         "reset: set the destinations to zero instead"));
  fields.push_back(number("uop_begin", 8, u, "first micro-operation"));
  fields.push_back(number("uop_end", 8 + u, u + 1, "one past the last micro-operation"));
  fields.push_back(number("iter_out", 9 + 2 * u, kLoopBits, "extent of the outer loop"));
  fields.push_back(number("iter_in", 9 + 2 * u + kLoopBits, kLoopBits, "extent of the inner loop"));
  return fields;
}

std::vector<Format> formats(unsigned u, unsigned i, unsigned w, unsigned a) {
  std::vector<Format> out;
  auto op = [](Opcode code) {
    return std::vector<Fixed>{{0, 3, static_cast<std::uint64_t>(code)}};
  };
  out.push_back({"load", op(Opcode::load),
                 dma_fields({{"uop", 0}, {"wgt", 1}, {"inp", 2}, {"acc", 3}, {"acc8", 5}}),
                 cat(kDmaSyntax, kDepSyntax),
                 "copies a padded rectangle from DRAM; acc8 widens signed bytes; x of 0 moves "
                 "nothing, y of 0 "
                 "only the rows of zeros"});
  out.push_back({"store", op(Opcode::store), dma_fields({{"out", 4}}), cat(kDmaSyntax, kDepSyntax),
                 "copies accumulator elements to DRAM, cut to the low bits"});
  std::vector<Field> gemm = loop_fields(u);
  unsigned at = 64;
  struct Step {
    const char* name;
    unsigned width;
    const char* meaning;
  };
  for (const Step& step :
       {Step{"dst_out", a, "destination step of the outer loop"},
        Step{"dst_in", a, "destination step of the inner loop"},
        Step{"src_out", i, "input step, outer"}, Step{"src_in", i, "input step, inner"},
        Step{"wgt_out", w, "weight step, outer"}, Step{"wgt_in", w, "weight step, inner"}}) {
    gemm.push_back(number(step.name, at, step.width, step.meaning));
    at += step.width;
  }
  out.push_back({"gemm", op(Opcode::gemm), gemm,
                 cat("{reset} uop={uop_begin},{uop_end} loop={iter_out},{iter_in} "
                     "dst={dst_out},{dst_in} src={src_out},{src_in} wgt={wgt_out},{wgt_in}",
                     kDepSyntax),
                 "acc[dst][b][o] += sum over k of inp[src][b][k] * wgt[wgt][o][k]"});
  out.push_back({"finish", op(Opcode::finish), dependences(),
                 "pop={pop_prev},{pop_next} push={push_prev},{push_next}", "ends the program"});
  std::vector<Field> alu = loop_fields(u);
  at = 64;
  for (const char* name : {"dst_out", "dst_in", "src_out", "src_in"}) {
    alu.push_back(number(name, at, a, "index step of a loop"));
    at += a;
  }
  alu.push_back(named("op", at, 3, {{"min", 0}, {"max", 1}, {"add", 2}, {"shr", 3}, {"mul", 4}},
                      "operation"));
  alu.push_back(named("use_imm", at + 3, 1, {{"acc", 0}, {"imm", 1}},
                      "second operand: acc[src] or the constant"));
  alu.push_back({"imm", at + 4, 16, FieldKind::signed_, {}, "constant"});
  out.push_back({"alu", op(Opcode::alu), alu,
                 cat("{op} {use_imm} {imm} {reset} uop={uop_begin},{uop_end} "
                     "loop={iter_out},{iter_in} dst={dst_out},{dst_in} src={src_out},{src_in}",
                     kDepSyntax),
                 "acc[dst] = op(acc[dst], acc[src] or constant), lane by lane; shr by a negative "
                 "amount shifts left"});
  return out;
}

std::vector<Format> uop_formats(unsigned i, unsigned w, unsigned a) {
  unsigned s = std::max(a, i);
  return {{"uop",
           {},
           {number("dst", 0, a, "accumulator element"),
            number("src", a, s, "input or accumulator element"),
            number("wgt", a + s, w, "weight element")},
           "dst={dst} src={src} wgt={wgt}",
           "the three indices of one step"}};
}

}  // namespace

std::string_view to_string(Opcode op) {
  static constexpr std::string_view names[] = {"load", "store", "gemm", "finish", "alu"};
  return names[static_cast<std::size_t>(op)];
}
std::string_view to_string(AluOp op) {
  static constexpr std::string_view names[] = {"min", "max", "add", "shr", "mul"};
  return names[static_cast<std::size_t>(op)];
}
std::string_view to_string(Stage stage) {
  static constexpr std::string_view names[] = {"load", "compute", "store"};
  return names[static_cast<std::size_t>(stage)];
}

Isa::Isa(const Config& config)
    : config_(config),
      u_(static_cast<unsigned>(config.log_depth(MemType::uop))),
      i_(static_cast<unsigned>(config.log_depth(MemType::inp))),
      w_(static_cast<unsigned>(config.log_depth(MemType::wgt))),
      a_(static_cast<unsigned>(config.log_depth(MemType::acc))),
      src_at_(a_),
      wgt_at_(a_ + std::max(a_, i_)),
      mask_dst_((1u << a_) - 1),
      mask_src_((1u << std::max(a_, i_)) - 1),
      mask_wgt_((1u << w_) - 1),
      instructions_("vta", 128, formats(u_, i_, w_, a_)),
      uops_("vta.uop", 32, uop_formats(i_, w_, a_)) {}

isa::Instruction Isa::row(const Insn& n) const {
  isa::Instruction out;
  out.values = {n.pop_prev, n.pop_next, n.push_prev, n.push_next};
  auto add = [&](auto... values) {
    (out.values.push_back(static_cast<std::int64_t>(values)), ...);
  };
  switch (n.op) {
    case Opcode::load:
    case Opcode::store:
      out.format = n.op == Opcode::load ? 0 : 1;
      add(n.mem, n.sram, n.dram, n.y_size, n.x_size, n.x_stride, n.y_pad_0, n.y_pad_1, n.x_pad_0,
          n.x_pad_1);
      break;
    case Opcode::gemm:
      out.format = 2;
      add(n.reset, n.uop_begin, n.uop_end, n.iter_out, n.iter_in, n.dst_out, n.dst_in, n.src_out,
          n.src_in, n.wgt_out, n.wgt_in);
      break;
    case Opcode::finish: out.format = 3; break;
    case Opcode::alu:
      out.format = 4;
      add(n.reset, n.uop_begin, n.uop_end, n.iter_out, n.iter_in, n.dst_out, n.dst_in, n.src_out,
          n.src_in, n.alu, n.use_imm, n.imm);
      break;
  }
  return out;
}

bool Isa::fits(const Insn& n) const {
  switch (n.op) {
    case Opcode::load:
      if (n.mem == MemType::out) return false;
      [[fallthrough]];
    case Opcode::store:
      if (n.op == Opcode::store && n.mem != MemType::out) return false;
      return ((n.sram | n.y_size | n.x_size | n.x_stride) >> 16) == 0 &&
             ((n.y_pad_0 | n.y_pad_1 | n.x_pad_0 | n.x_pad_1) >> 4) == 0;
    case Opcode::gemm:
      return (n.uop_begin >> u_) == 0 && (n.uop_end >> (u_ + 1)) == 0 &&
             ((n.iter_out | n.iter_in) >> kLoopBits) == 0 && ((n.dst_out | n.dst_in) >> a_) == 0 &&
             ((n.src_out | n.src_in) >> i_) == 0 && ((n.wgt_out | n.wgt_in) >> w_) == 0;
    case Opcode::alu:
      return (n.uop_begin >> u_) == 0 && (n.uop_end >> (u_ + 1)) == 0 &&
             ((n.iter_out | n.iter_in) >> kLoopBits) == 0 &&
             ((n.dst_out | n.dst_in | n.src_out | n.src_in) >> a_) == 0 && n.imm >= -32768 &&
             n.imm <= 32767;
    case Opcode::finish: return true;
  }
  return false;
}

isa::Word Isa::encode(const Insn& n) const {
  if (!fits(n)) return instructions_.encode(row(n));  // throws with field, value and range
  auto v = [](auto value) { return static_cast<std::uint64_t>(value); };
  isa::Word out;
  out.lo =
      v(n.op) | v(n.pop_prev) << 3 | v(n.pop_next) << 4 | v(n.push_prev) << 5 | v(n.push_next) << 6;
  switch (n.op) {
    case Opcode::load:
    case Opcode::store:
      out.lo |= v(n.mem) << 7 | v(n.sram) << 10 | v(n.dram) << 26;
      out.hi = v(n.y_size) | v(n.x_size) << 16 | v(n.x_stride) << 32 | v(n.y_pad_0) << 48 |
               v(n.y_pad_1) << 52 | v(n.x_pad_0) << 56 | v(n.x_pad_1) << 60;
      return out;
    case Opcode::finish: return out;
    case Opcode::gemm:
      out.hi = v(n.dst_out) | v(n.dst_in) << a_ | v(n.src_out) << (2 * a_) |
               v(n.src_in) << (2 * a_ + i_) | v(n.wgt_out) << (2 * (a_ + i_)) |
               v(n.wgt_in) << (2 * (a_ + i_) + w_);
      break;
    case Opcode::alu:
      out.hi = v(n.dst_out) | v(n.dst_in) << a_ | v(n.src_out) << (2 * a_) |
               v(n.src_in) << (3 * a_) | v(n.alu) << (4 * a_) | v(n.use_imm) << (4 * a_ + 3) |
               (v(n.imm) & 0xffff) << (4 * a_ + 4);
      break;
  }
  out.lo |= v(n.reset) << 7 | v(n.uop_begin) << 8 | v(n.uop_end) << (8 + u_) |
            v(n.iter_out) << (9 + 2 * u_) | v(n.iter_in) << (9 + 2 * u_ + kLoopBits);
  return out;
}

Insn Isa::decode(const isa::Word& word) const {
  auto lo = [&](unsigned at, unsigned width) {
    return static_cast<std::uint32_t>((word.lo >> at) & ((1ull << width) - 1));
  };
  auto hi = [&](unsigned at, unsigned width) {
    return static_cast<std::uint32_t>((word.hi >> at) & ((1ull << width) - 1));
  };
  Insn n;
  unsigned op = lo(0, 3);
  if (op > 4) instructions_.decode(word);  // throws
  n.op = static_cast<Opcode>(op);
  n.pop_prev = lo(3, 1), n.pop_next = lo(4, 1), n.push_prev = lo(5, 1), n.push_next = lo(6, 1);
  switch (n.op) {
    case Opcode::load:
    case Opcode::store: {
      unsigned mem = lo(7, 3);
      if (mem > 5) instructions_.decode(word);
      n.mem = static_cast<MemType>(mem);
      n.sram = lo(10, 16), n.dram = lo(26, 32);
      n.y_size = hi(0, 16), n.x_size = hi(16, 16), n.x_stride = hi(32, 16);
      n.y_pad_0 = hi(48, 4), n.y_pad_1 = hi(52, 4), n.x_pad_0 = hi(56, 4), n.x_pad_1 = hi(60, 4);
      break;
    }
    case Opcode::finish: break;
    case Opcode::gemm:
    case Opcode::alu:
      n.reset = lo(7, 1), n.uop_begin = lo(8, u_), n.uop_end = lo(8 + u_, u_ + 1);
      n.iter_out = lo(9 + 2 * u_, kLoopBits), n.iter_in = lo(9 + 2 * u_ + kLoopBits, kLoopBits);
      n.dst_out = hi(0, a_), n.dst_in = hi(a_, a_);
      if (n.op == Opcode::gemm) {
        n.src_out = hi(2 * a_, i_), n.src_in = hi(2 * a_ + i_, i_),
        n.wgt_out = hi(2 * (a_ + i_), w_), n.wgt_in = hi(2 * (a_ + i_) + w_, w_);
      } else {
        n.src_out = hi(2 * a_, a_), n.src_in = hi(3 * a_, a_);
        unsigned alu = hi(4 * a_, 3);
        if (alu > 4) instructions_.decode(word);
        n.alu = static_cast<AluOp>(alu), n.use_imm = hi(4 * a_ + 3, 1);
        n.imm = static_cast<std::int16_t>(hi(4 * a_ + 4, 16));
      }
      break;
  }
  if (!fits(n) || encode(n) != word) instructions_.decode(word);  // reserved bits: throws
  return n;
}

std::uint32_t Isa::encode(const Uop& uop) const {
  if ((uop.dst & ~mask_dst_) || (uop.src & ~mask_src_) || (uop.wgt & ~mask_wgt_))
    uops_.encode({0, {uop.dst, uop.src, uop.wgt}});
  return uop.dst | uop.src << src_at_ | uop.wgt << wgt_at_;
}

std::string Isa::print(const Insn& insn) const { return instructions_.print(row(insn)); }
std::string Isa::print(const Uop& uop) const {
  return uops_.print({0, {uop.dst, uop.src, uop.wgt}});
}

namespace {
/// A listing's line as one of the table: number and stage become blanks, tokens that it leaves out
/// are written.
void complete_line(std::string& line) {
  if (!line.starts_with('%')) return;
  const std::size_t stage = line.find('\t'),
                    end = line.find('\t', std::min(stage, line.size() - 1) + 1);
  if (stage == line.npos || end == line.npos) return;
  std::fill_n(line.begin(), end, ' ');
  if (line.find(" pop=") != line.npos) return;
  const std::size_t comment = std::min(line.find('\t', end + 1), line.size());
  line.insert(comment, " pop=-,- push=-,-");
}
}  // namespace

std::vector<isa::Word> Isa::assemble(std::string_view listed, std::string_view file) const {
  std::string text;
  for (std::size_t begin = 0; begin < listed.size();) {
    const std::size_t end = std::min(listed.find('\n', begin), listed.size());
    std::string line(listed.substr(begin, end - begin));
    complete_line(line);
    text += line;
    text += '\n';
    begin = end + 1;
  }
  std::vector<isa::Word> out;
  for (const isa::Instruction& i : instructions_.assemble(text, file))
    out.push_back(instructions_.encode(i));
  return out;
}

}  // namespace weft::vta
