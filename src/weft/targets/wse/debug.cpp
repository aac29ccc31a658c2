// SPDX-License-Identifier: Apache-2.0
// Units, places and names of a fabric for the debugger; what it prints is in debug_show.cpp.
#include "weft/targets/wse/debug.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include "weft/base/file.h"
#include "weft/targets/wse/csl/library.h"

namespace weft::wse {

FabricDebug::FabricDebug(sim::Debugger& debugger, const Fabric& fabric)
    : debugger_(debugger), fabric_(fabric), reported_(static_cast<std::size_t>(unit_count())) {}

void FabricDebug::failed(const Error& error) {
  const Scope scope(*this);
  debugger_.failed(error);
}

void FabricDebug::begin_launch() {
  if (!std::exchange(ended_, false)) return;  // the first: the program's own beginning
  begun_ = false;
  launch_at_ = fabric_.now();
}

void FabricDebug::ended() {
  const Scope scope(*this);
  ended_ = true;
  std::size_t pes = 0;
  std::string before;
  for (const std::string& line : fabric_.waiting(100'000)) {
    std::string pe = line.substr(0, line.find(':'));
    pes += pe != before;
    before = std::move(pe);
  }
  debugger_.ended(fabric_.now() - launch_at_,
                  pes ? cat("something still waits on ", pes, pes == 1 ? " PE" : " PEs",
                            ": break end, then waiting all")
                      : std::string());
}

std::string FabricDebug::describe() const {
  const Layout& l = fabric_.layout();
  return cat(l.width, " x ", l.height, " PEs of a ", l.arch == Arch::wse2 ? "WSE-2" : "WSE-3", ", ",
             l.programs.size(), l.programs.size() == 1 ? " program" : " programs");
}

std::string FabricDebug::note() const {
  return "a PE's main thread runs ahead of the fabric until it does something that others can see";
}

std::int64_t FabricDebug::unit_count() const {
  return std::int64_t{fabric_.layout().width} * fabric_.layout().height;
}

std::string FabricDebug::unit_name(std::int64_t unit) const {
  const std::int32_t width = fabric_.layout().width;
  return cat("pe ", unit % width, ",", unit / width);
}

// "3,4", "pe 3,4", "(3, 4)": coordinates in the program rectangle, as faults name them.
std::int64_t FabricDebug::find_unit(std::string_view text) const {
  std::vector<std::int64_t> numbers;
  text = trim(text);
  if (text.starts_with("pe")) text.remove_prefix(2);
  const char *at = text.data(), *end = text.data() + text.size();
  while (at != end) {
    if (*at == ' ' || *at == ',' || *at == '(' || *at == ')') {
      ++at;
      continue;
    }
    std::int64_t n = 0;
    const auto [next, status] = std::from_chars(at, end, n);
    if (status != std::errc()) return -1;
    numbers.push_back(n);
    at = next;
  }
  const Layout& l = fabric_.layout();
  if (numbers.size() != 2 || numbers[0] < 0 || numbers[0] >= l.width || numbers[1] < 0 ||
      numbers[1] >= l.height)
    return -1;
  return numbers[1] * l.width + numbers[0];
}

std::string FabricDebug::legal_units() const {
  const Layout& l = fabric_.layout();
  return l.width * l.height == 1 ? "pe 0,0" : cat("pe 0,0 to pe ", l.width - 1, ",", l.height - 1);
}

const Pe* FabricDebug::pe_of(std::int64_t unit) const {
  const std::int32_t width = fabric_.layout().width;
  return fabric_.find(static_cast<std::int32_t>(unit % width),
                      static_cast<std::int32_t>(unit / width));
}

const Program* FabricDebug::program_of(std::int64_t unit) const {
  const Layout& l = fabric_.layout();
  const std::uint32_t p = l.tiles[static_cast<std::size_t>(unit)].program;
  return p == kNoProgram ? nullptr : &l.programs[p];
}

std::vector<std::int64_t> FabricDebug::busy_units() const {
  std::vector<std::int64_t> out;
  for (std::int64_t u = 0; u < unit_count(); ++u) {
    const Pe* pe = pe_of(u);
    if (pe && (pe->main != MainState::idle || pe->live_ops ||
               (pe->local_pending & ~pe->local_blocked) || pe->command_function != kNone16))
      out.push_back(u);
  }
  return out;
}

sim::UnitState FabricDebug::unit_state(std::int64_t unit) const {
  sim::UnitState out;
  const Pe* pe = pe_of(unit);
  out.cycle = unit == at_unit_ ? at_cycle_ : fabric_.now();
  if (!pe) {
    out.state = program_of(unit) ? "idle" : "has no program";
    return out;
  }
  if (unit != at_unit_) out.cycle = std::max(fabric_.clock(*pe), pe->main_ready);
  const bool frames = pe->core && !pe->core->frames.empty();
  switch (pe->main) {
    case MainState::idle: out.state = pe->live_ops ? "idle, microthreads work" : "idle"; return out;
    case MainState::running: out.state = "running"; break;
    case MainState::in_bulk:
      out.state = "in a fabric operation";
      for (std::uint32_t mask = pe->live_ops; mask; mask &= mask - 1) {
        const Running* run = pe->core->ops.find(static_cast<std::size_t>(std::countr_zero(mask)));
        if (run && run->live && run->main) out.place = place_of(*pe, run->function, run->pc);
      }
      if (out.place) return out;
      break;
    case MainState::in_map: out.state = "in @map"; break;
  }
  if (frames) {
    const Frame& f = pe->core->frames.back();
    if (f.pc < pe->program->functions[f.function].code.size())
      out.place = place_of(*pe, f.function, f.pc);
  }
  return out;
}

std::size_t FabricDebug::depth(std::int64_t unit) const {
  const Pe* pe = pe_of(unit);
  return pe && pe->core && pe->main != MainState::idle ? pe->core->frames.size() : 0;
}

namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

std::string_view meaning_of(Op op) {
  static constexpr std::string_view kMeanings[] = {
#define WEFT_WSE_OP(name, cost, meaning) meaning,
#include "weft/targets/wse/code.def"
#undef WEFT_WSE_OP
  };
  return kMeanings[static_cast<std::size_t>(op)];
}

}  // namespace

// The meaning that the table of instructions gives, with this instruction's fields.
std::string FabricDebug::instruction(sim::CodePlace place) const {
  const Code c = split(place);
  const Program& program = fabric_.layout().programs[c.program];
  const Function& function = program.functions[c.function];
  if (c.pc >= function.code.size()) return "end of the function";
  const Insn& i = function.code[c.pc];
  if (i.op == Op::bulk)
    return cat("@", to_string(program.bulks[static_cast<std::size_t>(i.imm())].code));
  if (i.op == Op::call && i.c < program.functions.size())
    return cat("call ", program.functions[i.c].name);
  std::string text(meaning_of(i.op).substr(0, meaning_of(i.op).find(';')));
  for (const auto& [field, value] :
       {std::pair("a]", i.a), std::pair("b]", i.b), std::pair("c]", i.c)}) {
    replace_all(text, cat("r[", field), cat("r", value));
    replace_all(text, cat("d[", field), cat("d", value));
  }
  replace_all(text, "signed c", cat(static_cast<std::int16_t>(i.c)));
  const bool jump = i.op == Op::jmp || i.op == Op::jz || i.op == Op::jnz;
  if (jump)
    replace_all(
        text, "imm",
        cat("*", number(join_place(c.program, c.function, static_cast<std::uint32_t>(i.imm())))));
  replace_all(text, " of this function", "");
  replace_all(text, "imm", cat(i.imm()));
  const bool task = i.op == Op::activate || i.op == Op::block || i.op == Op::unblock ||
                    i.op == Op::activater || i.op == Op::blockr || i.op == Op::unblockr;
  static constexpr std::string_view kSpaces[] = {"local", "color", "queue", "control",
                                                 "microthread"};
  if (task) {
    replace_all(text, "TaskSpace ty", kSpaces[std::min<std::size_t>(i.ty, 4)]);
    return cat(to_string(i.op), "  ", text);
  }
  // Instructions up to stg, in the table's order, have a type; others leave the field 0.
  if (i.ty >= kTypes || i.op > Op::stg) return cat(to_string(i.op), "  ", text);
  const Ty ty = static_cast<Ty>(i.ty);
  replace_all(text, "sizeof(ty)", cat(size_of(ty)));
  replace_all(text, " of type ty", "");
  return cat(to_string(i.op), ".", to_string(ty), "  ", text);
}

// Instructions are numbered through the functions of a program.
std::int64_t FabricDebug::number(sim::CodePlace place) const {
  const Code c = split(place);
  std::int64_t n = c.pc;
  const Program& program = fabric_.layout().programs[c.program];
  for (std::uint16_t f = 0; f < c.function; ++f)
    n += static_cast<std::int64_t>(program.functions[f].code.size());
  return n;
}

std::optional<sim::CodePlace> FabricDebug::numbered(std::int64_t number, std::int64_t unit) const {
  const Program* program = program_of(unit);
  if (!program || number < 0) return std::nullopt;
  const auto p = static_cast<std::size_t>(program - fabric_.layout().programs.data());
  for (std::size_t f = 0; f < program->functions.size(); ++f) {
    const auto size = static_cast<std::int64_t>(program->functions[f].code.size());
    if (number < size) return join_place(p, f, static_cast<std::uint32_t>(number));
    number -= size;
  }
  return std::nullopt;
}

sim::SourceLine FabricDebug::line_of(const Program& program, std::uint16_t function,
                                     std::uint32_t pc) const {
  const Function& fn = program.functions[function];
  sim::SourceLine out{program.name, 0, fn.name};
  for (const LineEntry& e : fn.lines) {
    if (e.pc > pc) break;
    out.line = static_cast<int>(e.line);
    if (e.file < program.files.size()) out.file = program.files[e.file];
  }
  return out;
}

sim::SourceLine FabricDebug::source(sim::CodePlace place) const {
  const Code c = split(place);
  return line_of(fabric_.layout().programs[c.program], c.function, c.pc);
}

void FabricDebug::each_line(
    const std::function<void(sim::CodePlace, const sim::SourceLine&)>& f) const {
  const auto& programs = fabric_.layout().programs;
  for (std::size_t p = 0; p < programs.size(); ++p) {
    for (std::size_t k = 0; k < programs[p].functions.size(); ++k) {
      const Function& fn = programs[p].functions[k];
      for (const LineEntry& e : fn.lines) {
        if (e.line == 0 || e.file >= programs[p].files.size()) continue;
        f(join_place(p, k, e.pc), {programs[p].files[e.file], static_cast<int>(e.line), fn.name});
      }
    }
  }
}

void FabricDebug::each_function(
    const std::function<void(sim::CodePlace, const std::string&)>& f) const {
  const auto& programs = fabric_.layout().programs;
  for (std::size_t p = 0; p < programs.size(); ++p)
    for (std::size_t k = 0; k < programs[p].functions.size(); ++k)
      f(join_place(p, k, 0), programs[p].functions[k].name);
}

std::string FabricDebug::source_text(const std::string& file) const {
  if (const auto& texts = fabric_.layout().sources) {
    if (const auto found = texts->find(file); found != texts->end()) return found->second;
  }
  if (file.size() > 2 && file.front() == '<') {
    const std::string_view* text =
        csl::library_text(std::string_view(file).substr(1, file.size() - 2));
    return text ? std::string(*text) : std::string();
  }
  try {
    return read_file(file);
  } catch (const Error&) {
    return {};
  }
}

namespace {

DType dtype_of(Ty ty) {
  switch (ty) {
    case Ty::i8: return dtypes::int8;
    case Ty::i16: return dtypes::int16;
    case Ty::i32: return dtypes::int32;
    case Ty::i64: return dtypes::int64;
    case Ty::u8: return dtypes::uint8;
    case Ty::u16: return dtypes::uint16;
    case Ty::u64: return dtypes::uint64;
    case Ty::f16: return dtypes::float16;
    case Ty::bf16: return dtypes::bfloat16;
    case Ty::cb16: return dtypes::uint16;
    case Ty::f32: return dtypes::float32;
    case Ty::b1: return dtypes::boolean;
    default: return dtypes::uint32;
  }
}

}  // namespace

sim::Datum FabricDebug::memory(std::uint64_t address, std::int64_t unit) const {
  sim::Datum d;
  d.name = cat("*", hex(address));
  d.unit = unit;
  if (program_of(unit) && address + 4 <= kMemoryBytes)
    d.count = static_cast<std::int64_t>(kMemoryBytes - address) / 4;
  const std::int32_t width = fabric_.layout().width;
  d.read = [this, address, x = static_cast<std::int32_t>(unit % width),
            y = static_cast<std::int32_t>(unit / width)](std::int64_t first, std::int64_t count,
                                                         void* out) {
    fabric_.peek(x, y, static_cast<std::uint32_t>(address) + static_cast<std::uint32_t>(first) * 4,
                 out, static_cast<std::uint32_t>(count) * 4);
  };
  return d;
}

std::optional<sim::Datum> FabricDebug::find(std::string_view name, std::int64_t unit) const {
  const Program* program = program_of(unit);
  if (!program) return std::nullopt;
  for (const Symbol& s : program->symbols) {
    if (s.name != name) continue;
    sim::Datum d;
    d.name = s.name;
    d.unit = unit;
    d.type = dtype_of(s.elem);
    const int each = d.type.bytes();
    d.count = s.bytes / each;
    const std::int32_t width = fabric_.layout().width;
    d.read = [this, each, address = s.address, x = static_cast<std::int32_t>(unit % width),
              y = static_cast<std::int32_t>(unit / width)](std::int64_t first, std::int64_t count,
                                                           void* out) {
      fabric_.peek(x, y, static_cast<std::uint32_t>(address + first * each), out,
                   static_cast<std::uint32_t>(count * each));
    };
    return d;
  }
  const Pe* pe = pe_of(unit);
  std::size_t n = 0;
  const char* end = name.data() + name.size();
  if (pe && name.size() > 1 && name[0] == 'r' && depth(unit) > 0 &&
      std::from_chars(name.data() + 1, end, n).ptr == end) {
    const Frame& f = pe->core->frames.back();
    if (n >= pe->program->functions[f.function].regs) return std::nullopt;
    sim::Datum d;
    d.name = std::string(name);
    d.unit = unit;
    d.type = dtypes::int64;
    d.count = 1;
    d.read = [pe, at = f.reg + n](std::int64_t, std::int64_t, void* out) {
      const std::uint64_t value = at < pe->core->regs.size() ? pe->core->regs[at] : 0;
      std::memcpy(out, &value, 8);
    };
    return d;
  }
  return std::nullopt;
}

std::vector<std::string> FabricDebug::names(std::int64_t unit) const {
  std::vector<std::string> out;
  if (const Program* program = program_of(unit))
    for (const Symbol& s : program->symbols) out.push_back(s.name);
  if (depth(unit) > 0) {
    const Pe* pe = pe_of(unit);
    out.push_back(
        cat("r0 to r", pe->program->functions[pe->core->frames.back().function].regs - 1));
  }
  return out;
}

}  // namespace weft::wse
