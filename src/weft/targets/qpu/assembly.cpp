// SPDX-License-Identifier: Apache-2.0
// Assembly text of QPU words: "fadd r0, r1, r2; fmul.zs r3, ra4, rb5; sf; ldtmu0". Parts are
// separated by
// ';': ADD operation, MUL operation, then what else the word holds. Comments start with "//".

#include <algorithm>
#include <charconv>
#include <optional>

#include "weft/targets/qpu/isa.h"
#include "weft/targets/qpu/isa_names.h"

namespace weft::qpu::hw {

std::string read_name(bool file_b, unsigned address) {
  if (address < 32) return cat(file_b ? "rb" : "ra", address);
  const char* name = address - 32 < std::size(names::kReadA)
                         ? (file_b ? names::kReadB : names::kReadA)[address - 32]
                         : nullptr;
  if (!name) return cat(file_b ? "b" : "a", address);
  bool same = file_b && std::string_view(names::kReadA[address - 32]) == name;
  return same ? cat(name, "_b") : std::string(name);
}

std::string write_name(bool file_b, unsigned address) {
  if (address < 32) return cat(file_b ? "rb" : "ra", address);
  return (file_b ? names::kWriteB : names::kWriteA)[address - 32];
}

namespace {
std::string op_name(bool mul, unsigned code) {
  if (mul) {
    for (const names::Op& op : names::kMulOps)
      if (op.code == code) return op.name;
  } else {
    for (const names::Op& op : names::kAddOps)
      if (op.code == code) return op.name;
  }
  return cat("op", code);
}

std::string immediate_text(unsigned code) {
  if (code >= 48) return "#rot";
  if (code < 32) return cat("#", static_cast<std::int32_t>(small_immediate(code)));
  return cat(
      "#", shortest(code < 40 ? static_cast<double>(1u << (code - 32)) : 1.0 / (1u << (48 - code))),
      code < 40 ? ".0" : "");
}

std::string source_text(const Instr& i, unsigned mux) {
  if (mux < 6) return cat("r", mux);
  if (mux == 6) return read_name(false, i.raddr_a);
  return i.kind == kAluImm ? immediate_text(i.raddr_b) : read_name(true, i.raddr_b);
}

std::string alu_part(const Instr& i, bool mul) {
  unsigned op = mul ? i.op_mul : i.op_add, cond = mul ? i.cond_mul : i.cond_add,
           waddr = mul ? i.waddr_mul : i.waddr_add;
  unsigned a = mul ? i.mul_a : i.add_a, b = mul ? i.mul_b : i.add_b;
  if (op == 0 && cond == 0 && waddr == kNull && a == 0 && b == 0) return "nop";
  bool move = a == b && op == (mul ? unsigned{kV8min} : unsigned{kOr});
  std::string out = move ? "mov" : op_name(mul, op);
  if (cond != (op ? kAlways : kNever)) out += cat(".", names::kConditions[cond]);
  out += cat(" ", write_name(mul ? mul_file_b(i) : add_file_b(i), waddr), ", ", source_text(i, a));
  if (a != b) out += cat(", ", source_text(i, b));
  return out;
}

enum class Need : std::uint8_t { any, a, b };
Need need_of(unsigned waddr, bool file_b) {
  if (waddr >= 32 && std::string_view(names::kWriteA[waddr - 32]) == names::kWriteB[waddr - 32])
    return Need::any;
  return file_b ? Need::b : Need::a;
}
bool inferred_ws(Need add, Need mul) { return add == Need::b || mul == Need::a; }

void extras(const Instr& i, std::string& out) {
  if (i.kind != kBranch && i.sf) out += "; sf";
  bool ws = inferred_ws(need_of(i.waddr_add, add_file_b(i)), need_of(i.waddr_mul, mul_file_b(i)));
  if (i.ws && !ws) out += "; ws";
  if (i.pm) out += "; pm";
  if (i.pack) out += cat("; pack=", i.pack);
  if (i.unpack) out += cat("; unpack=", i.unpack);
}

void second_destination(const Instr& i, std::string& out) {
  if (i.cond_mul == kNever && i.waddr_mul == kNull) return;
  out += "; to";
  if (i.cond_mul != kAlways) out += cat(".", names::kConditions[i.cond_mul]);
  out += cat(" ", write_name(mul_file_b(i), i.waddr_mul));
}
}  // namespace

std::string print(const Instr& i) {
  std::string out;
  switch (i.kind) {
    case kAlu:
    case kAluImm: {
      out = alu_part(i, false);
      std::string mul = alu_part(i, true);
      auto uses = [&](unsigned mux) {
        return i.add_a == mux || i.add_b == mux || i.mul_a == mux || i.mul_b == mux;
      };
      std::string rest;
      extras(i, rest);
      if (i.raddr_a != kNull && !uses(kMuxA)) rest += cat("; raddr_a=", i.raddr_a);
      if (i.kind == kAlu) {
        if (i.raddr_b != kNull && !uses(kMuxB)) rest += cat("; raddr_b=", i.raddr_b);
        if (i.sig != kSigNone) rest += cat("; ", names::kSignals[i.sig]);
      } else if (i.raddr_b >= 48) {
        rest += i.raddr_b == 48 ? std::string("; rot=r5") : cat("; rot=", i.raddr_b - 48);
      } else if (!uses(kMuxB)) {
        rest += cat("; imm=", i.raddr_b);
      }
      if (mul != "nop" || !rest.empty()) out += cat("; ", mul);
      return out + rest;
    }
    case kLdi:
    case kLdiSigned:
    case kLdiUnsigned:
      out = i.kind == kLdi ? "ldi" : i.kind == kLdiSigned ? "ldis" : "ldiu";
      if (i.cond_add != kAlways) out += cat(".", names::kConditions[i.cond_add]);
      out += cat(" ", write_name(add_file_b(i), i.waddr_add), ", ", hex(i.imm, 8));
      second_destination(i, out);
      break;
    case kSem:
      out = i.acquire ? "sacq" : "srel";
      if (i.cond_add != kNever) out += cat(".", names::kConditions[i.cond_add]);
      out += cat(" ", i.sem);
      if (i.cond_add != kNever || i.waddr_add != kNull)
        out += cat(", ", write_name(add_file_b(i), i.waddr_add));
      second_destination(i, out);
      break;
    case kBranch:
      out = cat("bra.", names::kBranchConditions[i.cond_br], " ");
      if (i.rel) out += "rel, ";
      if (i.reg) out += cat("ra", i.raddr_a, ", ");
      out += std::to_string(static_cast<std::int32_t>(i.imm));
      if (i.waddr_add != kNull) out += cat("; link ", write_name(add_file_b(i), i.waddr_add));
      if (i.waddr_mul != kNull) out += cat("; to ", write_name(mul_file_b(i), i.waddr_mul));
      if (!i.reg && i.raddr_a) out += cat("; raddr_a=", i.raddr_a);
      break;
  }
  extras(i, out);
  return out;
}

namespace {
struct Destination {
  std::uint8_t address;
  Need need;
};

std::optional<unsigned> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  unsigned value = 0;
  auto r = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || r.ec != std::errc() || r.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// Parses one instruction; positions are offsets into the line for the caret.
class Parser {
 public:
  Parser(std::string_view line, std::string_view file, int number, std::string_view source)
      : line_(line), file_(file), number_(number), source_(source) {}

  Instr read() {
    std::vector<std::string_view> parts;
    std::size_t begin = 0;
    while (true) {
      std::size_t end = std::min(line_.find(';', begin), line_.size());
      parts.push_back(trim(line_.substr(begin, end - begin)));
      if (end == line_.size()) break;
      begin = end + 1;
    }
    std::string_view first = parts[0];
    std::string_view word = first.substr(0, first.find_first_of(" ."));
    std::size_t next = 1;
    if (word == "ldi" || word == "ldis" || word == "ldiu") {
      load(first, word);
    } else if (word == "sacq" || word == "srel") {
      semaphore(first, word);
    } else if (word == "bra") {
      branch(first);
    } else {
      alu(first, false);
      if (parts.size() > 1) alu(parts[1], true);
      next = 2;
    }
    for (; next < parts.size(); ++next) extra(parts[next]);
    if ((add_need_ == Need::b && mul_need_ == Need::b) ||
        (add_need_ == Need::a && mul_need_ == Need::a)) {
      fail(first, "file", "ADD and MUL cannot both write the same register file",
           "one destination in file A, the other in file B");
    }
    if (inferred_ws(add_need_, mul_need_)) i_.ws = 1;
    if (immediate_ >= 0) {
      if (i_.sig != kSigNone)
        fail(first, "signal", "a signal and a small immediate exclude each other");
      if (b_read_) fail(first, "port", "a read of file B and a small immediate exclude each other");
      i_.kind = kAluImm;
      i_.sig = kSigImm;
      i_.raddr_b = static_cast<std::uint8_t>(immediate_);
    }
    if (Verdict refusal = instruction_set().check(to_table(i_)))
      fail(first, "range", refusal->message, refusal->notes.front());
    return i_;
  }

 private:
  [[noreturn]] void fail(std::string_view at, std::string_view what, std::string message,
                         std::string help = {}) {
    int column = static_cast<int>(at.data() - line_.data()) + 1;
    Error error(ErrorKind::parse, cat("qpu.asm.", what),
                cat(file_, ":", number_, ":", column, ": ", message));
    error.at("", caret_line(source_, number_, column), number_, column);
    if (!help.empty()) error.note(help);
    throw error;
  }

  /// Splits "name.cond rest" and returns name; cond is -1 when absent.
  std::string_view head(std::string_view part, int& cond, std::string_view& rest) {
    std::size_t space = std::min(part.find(' '), part.size());
    std::string_view name = part.substr(0, space);
    rest = trim(part.substr(space));
    cond = -1;
    if (std::size_t dot = name.find('.'); dot != name.npos) {
      std::string_view text = name.substr(dot + 1);
      for (int c = 0; c < 8; ++c)
        if (text == names::kConditions[c]) cond = c;
      if (cond < 0)
        fail(text, "condition", cat("\"", text, "\" is no condition"),
             "legal: never, always, zs, zc, ns, nc, cs, cc");
      name = name.substr(0, dot);
    }
    return name;
  }

  std::vector<std::string_view> operands(std::string_view rest) {
    std::vector<std::string_view> out;
    if (rest.empty()) return out;
    while (true) {
      std::size_t comma = std::min(rest.find(','), rest.size());
      out.push_back(trim(rest.substr(0, comma)));
      if (comma == rest.size()) return out;
      rest = rest.substr(comma + 1);
    }
  }

  Destination destination(std::string_view text) {
    for (unsigned b = 0; b < 2; ++b) {
      for (unsigned a = 0; a < 64; ++a) {
        if (write_name(b, a) == text) return {static_cast<std::uint8_t>(a), need_of(a, b)};
      }
    }
    fail(text, "destination", cat("\"", text, "\" cannot be written"),
         "legal: ra0..ra31, rb0..rb31, r0..r3, null and the peripherals of the manual");
  }

  unsigned source(std::string_view text) {
    if (auto n = number_after(text, "r"); n && *n < 6) return *n;
    if (text.starts_with("#")) {
      for (unsigned code = 0; code < 49; ++code) {
        if (immediate_text(code) != text) continue;
        if (code == 48) {
          rotate_operand_ = true;
          return kMuxB;
        }
        if (immediate_ >= 0 && immediate_ != static_cast<int>(code))
          fail(text, "port", "an instruction holds only one small immediate");
        immediate_ = static_cast<int>(code);
        return kMuxB;
      }
      fail(text, "immediate", cat("\"", text, "\" is no small immediate"),
           "legal: #-16 to #15, #1.0 to #128.0 and #0.5 to #0.00390625 by powers of two");
    }
    for (unsigned b = 0; b < 2; ++b) {
      for (unsigned a = 0; a < 64; ++a) {
        if (read_name(b, a) != text) continue;
        std::uint8_t& port = b ? i_.raddr_b : i_.raddr_a;
        bool& used = b ? b_read_ : a_read_;
        if (used && port != a)
          fail(text, "port",
               cat("only one register of file ", b ? "B" : "A", " can be read, and ",
                   read_name(b, port), " is"));
        port = static_cast<std::uint8_t>(a);
        used = true;
        return b ? kMuxB : kMuxA;
      }
    }
    fail(text, "operand", cat("\"", text, "\" cannot be read"),
         "legal: r0..r5, ra0..ra31, rb0..rb31, small immediates and the peripherals of the manual");
  }

  void alu(std::string_view part, bool mul) {
    int cond;
    std::string_view rest;
    std::string_view name = head(part, cond, rest);
    if (name == "nop" && rest.empty()) return;
    int op = -1;
    std::vector<std::string> known;
    auto look = [&](const auto& table) {
      for (const names::Op& o : table) {
        known.push_back(o.name);
        if (name == o.name) op = o.code;
      }
    };
    if (mul) look(names::kMulOps);
    else look(names::kAddOps);
    std::vector<std::string_view> list = operands(rest);
    if (name == "mov" && list.size() == 2)
      op = mul ? static_cast<int>(kV8min) : static_cast<int>(kOr);
    if (op < 0)
      fail(name, "mnemonic", cat("\"", name, "\" is no ", mul ? "MUL" : "ADD", " operation"),
           did_you_mean(name, known));
    if (list.size() < 2 || list.size() > 3)
      fail(part, "syntax", cat(name, " takes a destination and one or two operands"));
    Destination d = destination(list[0]);
    unsigned a = source(list[1]), b = list.size() == 3 ? source(list[2]) : a;
    (mul ? mul_need_ : add_need_) = d.need;
    (mul ? i_.op_mul : i_.op_add) = static_cast<std::uint8_t>(op);
    (mul ? i_.cond_mul : i_.cond_add) = static_cast<std::uint8_t>(cond >= 0 ? cond
                                                                  : op      ? kAlways
                                                                            : kNever);
    (mul ? i_.waddr_mul : i_.waddr_add) = d.address;
    (mul ? i_.mul_a : i_.add_a) = static_cast<std::uint8_t>(a);
    (mul ? i_.mul_b : i_.add_b) = static_cast<std::uint8_t>(b);
  }

  std::int64_t integer(std::string_view text) {
    bool hexadecimal = text.starts_with("0x");
    std::string_view digits = hexadecimal ? text.substr(2) : text;
    std::int64_t value = 0;
    auto r =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
    if (digits.empty() || r.ec != std::errc() || r.ptr != digits.data() + digits.size()) {
      fail(text, "operand", cat("\"", text, "\" is no number"));
    }
    return value;
  }

  void first_destination(std::string_view text, int cond) {
    Destination d = destination(text);
    i_.waddr_add = d.address;
    add_need_ = d.need;
    i_.cond_add = static_cast<std::uint8_t>(cond);
  }

  void load(std::string_view part, std::string_view word) {
    i_.kind = word == "ldi" ? kLdi : word == "ldis" ? kLdiSigned : kLdiUnsigned;
    i_.sig = kSigLdi;
    int cond;
    std::string_view rest;
    head(part, cond, rest);
    std::vector<std::string_view> list = operands(rest);
    if (list.size() != 2) fail(part, "syntax", cat(word, " takes a destination and an immediate"));
    first_destination(list[0], cond >= 0 ? cond : kAlways);
    std::int64_t value = integer(list[1]);
    if (value < -(1ll << 31) || value > 0xffffffffll)
      fail(list[1], "range", cat("the immediate ", value, " does not fit 32 bits"));
    i_.imm = static_cast<std::uint32_t>(value);
  }

  void semaphore(std::string_view part, std::string_view word) {
    i_.kind = kSem;
    i_.sig = kSigLdi;
    i_.acquire = word == "sacq";
    int cond;
    std::string_view rest;
    head(part, cond, rest);
    std::vector<std::string_view> list = operands(rest);
    if (list.empty() || list.size() > 2)
      fail(part, "syntax", cat(word, " takes a semaphore, 0 to 15"));
    std::int64_t n = integer(list[0]);
    if (n < 0 || n > 15) fail(list[0], "range", cat("there is no semaphore ", n), "legal: 0 to 15");
    i_.sem = static_cast<std::uint8_t>(n);
    if (list.size() == 2) first_destination(list[1], cond >= 0 ? cond : kNever);
  }

  void branch(std::string_view part) {
    i_.kind = kBranch;
    i_.sig = kSigBranch;
    i_.raddr_a = 0;
    std::size_t space = std::min(part.find(' '), part.size());
    std::string_view name = part.substr(0, space),
                     text = name.size() > 4 ? name.substr(4) : std::string_view("always");
    int cond = -1;
    for (int c = 0; c < 16; ++c)
      if (text == names::kBranchConditions[c]) cond = c;
    if (cond < 0 || text.empty())
      fail(text, "condition", cat("\"", text, "\" is no branch condition"));
    i_.cond_br = static_cast<std::uint8_t>(cond);
    bool offset = false;
    for (std::string_view item : operands(trim(part.substr(space)))) {
      if (item == "rel") {
        i_.rel = 1;
      } else if (auto n = number_after(item, "ra"); n && *n < 32) {
        i_.reg = 1;
        i_.raddr_a = static_cast<std::uint8_t>(*n);
      } else {
        std::int64_t value = integer(item);
        if (value < -(1ll << 31) || value > 0x7fffffffll)
          fail(item, "range", cat("the offset ", value, " does not fit 32 bits"));
        i_.imm = static_cast<std::uint32_t>(value);
        offset = true;
      }
    }
    if (!offset) fail(part, "syntax", "a branch takes an offset in bytes");
  }

  void extra(std::string_view part) {
    if (part == "sf") {
      i_.sf = 1;
      return;
    }
    if (part == "ws") {
      i_.ws = 1;
      return;
    }
    if (part == "pm") {
      i_.pm = 1;
      return;
    }
    auto field = [&](std::string_view name, std::uint8_t& out, unsigned limit) {
      auto value = number_after(part, name);
      if (!value) return false;
      if (*value > limit)
        fail(part, "range", cat("\"", part, "\" is out of range"), cat("legal: 0 to ", limit));
      out = static_cast<std::uint8_t>(*value);
      return true;
    };
    std::uint8_t code = 0;
    if (field("pack=", i_.pack, 15) || field("unpack=", i_.unpack, 7)) return;
    if (field("raddr_a=", i_.raddr_a, i_.kind == kBranch ? 31 : 63)) return;
    if (field("raddr_b=", code, 63)) {
      i_.raddr_b = code;
      b_read_ = true;
      return;
    }
    if (part == "rot=r5" || field("rot=", code, 15) || field("imm=", code, 47)) {
      immediate_ = code + (part.starts_with("rot") ? 48 : 0);
      return;
    }
    int cond;
    std::string_view rest;
    if (part.starts_with("to ") || part.starts_with("to.") || part.starts_with("link ")) {
      bool link = part.starts_with("link");
      head(part, cond, rest);
      Destination d = destination(rest);
      (link ? i_.waddr_add : i_.waddr_mul) = d.address;
      (link ? add_need_ : mul_need_) = d.need;
      if (i_.kind != kBranch) i_.cond_mul = static_cast<std::uint8_t>(cond >= 0 ? cond : kAlways);
      return;
    }
    for (unsigned s = 0; s < std::size(names::kSignals); ++s) {
      if (part != names::kSignals[s]) continue;
      if (i_.kind != kAlu)
        fail(part, "signal", cat("only ALU instructions carry the signal ", part));
      i_.sig = static_cast<std::uint8_t>(s);
      return;
    }
    fail(part, "extra", cat("\"", part, "\" means nothing here"),
         "legal: sf, ws, pm, pack=, unpack=, raddr_a=, raddr_b=, imm=, rot=, to, link and the "
         "signals");
  }

  std::string_view line_, file_;
  int number_;
  std::string_view source_;
  Instr i_;
  Need add_need_ = Need::any, mul_need_ = Need::any;
  int immediate_ = -1;
  bool a_read_ = false, b_read_ = false, rotate_operand_ = false;
};
}  // namespace

std::vector<Instr> assemble(std::string_view text, std::string_view file) {
  std::vector<Instr> out;
  int number = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (std::size_t comment = line.find("//"); comment != line.npos) line = line.substr(0, comment);
    if (std::size_t label = line.find(':'); label != line.npos)
      line = line.substr(label + 1);  // addresses of listings
    if (!trim(line).empty()) out.push_back(Parser(line, file, number, text).read());
  }
  return out;
}

std::string disassemble(const std::vector<Code>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string text;
    try {
      text = print(decode(words[i]));
    } catch (const Error&) {
      text = cat("// no instruction: ", hex(words[i], 16));
    }
    out += cat(hex(i * 8, 4), ": ", text, "\n");
  }
  return out;
}

}  // namespace weft::qpu::hw
