// SPDX-License-Identifier: Apache-2.0
#include "weft/isa/isa.h"

#include <algorithm>
#include <charconv>

namespace weft::isa {

namespace {
constexpr std::uint64_t mask(unsigned width) { return width >= 64 ? ~0ull : (1ull << width) - 1; }

std::int64_t low_of(const Field& f) {
  return f.kind == FieldKind::signed_ ? -(1ll << (f.width - 1)) : 0;
}

std::uint64_t high_of(const Field& f) {
  return f.kind == FieldKind::signed_ ? mask(f.width - 1) : mask(f.width);
}

/// Whether a named field of `format` has no legal value where another format's bits are fixed.
bool excludes(const Format& format, const Word& known, const Word& value) {
  for (const Field& f : format.fields) {
    if (f.kind != FieldKind::named || known.bits(f.at, f.width) != mask(f.width)) continue;
    std::uint64_t there = value.bits(f.at, f.width);
    if (std::none_of(f.names.begin(), f.names.end(),
                     [&](const NamedCode& n) { return n.code == there; }))
      return true;
  }
  return false;
}

std::string legal_text(const Field& f) {
  if (f.kind != FieldKind::named) return cat(low_of(f), " to ", high_of(f));
  std::vector<std::string> names;
  for (const NamedCode& n : f.names) names.push_back(n.name);
  return join(names);
}
}  // namespace

std::uint64_t Word::bits(unsigned at, unsigned width) const {
  std::uint64_t value = at >= 64 ? hi >> (at - 64) : lo >> at;
  if (at < 64 && at + width > 64) value |= hi << (64 - at);
  return value & mask(width);
}

void Word::set_bits(unsigned at, unsigned width, std::uint64_t value) {
  value &= mask(width);
  if (at >= 64) {
    hi = (hi & ~(mask(width) << (at - 64))) | (value << (at - 64));
    return;
  }
  lo = (lo & ~(mask(width) << at)) | (value << at);
  if (at + width > 64) {
    unsigned spill = at + width - 64;
    hi = (hi & ~mask(spill)) | (value >> (64 - at));
  }
}

InstructionSet::InstructionSet(std::string name, unsigned bits, std::vector<Format> formats)
    : name_(std::move(name)), bits_(bits), formats_(std::move(formats)) {
  WEFT_CHECK(bits_ >= 1 && bits_ <= 128, name_, " has words of ", bits_, " bits");
  for (std::size_t i = 0; i < formats_.size(); ++i) {
    const Format& format = formats_[i];
    WEFT_CHECK(by_name_.emplace(format.name, i).second, name_, ": two formats are called ",
               format.name);
    Word used;
    auto claim = [&](unsigned at, unsigned width, std::string_view what) {
      WEFT_CHECK(width >= 1 && width <= 64 && at + width <= bits_, format.name, ".", what,
                 " leaves the word");
      WEFT_CHECK(used.bits(at, width) == 0, format.name, ".", what, " overlaps another field");
      used.set_bits(at, width, ~0ull);
    };
    for (const Fixed& fixed : format.fixed) claim(fixed.at, fixed.width, "fixed");
    for (const Field& field : format.fields) claim(field.at, field.width, field.name);
  }
  for (std::size_t a = 0; a < formats_.size(); ++a) {
    for (std::size_t b = a + 1; b < formats_.size(); ++b) {
      Word known_a, known_b, value_a, value_b;
      for (const Fixed& f : formats_[a].fixed)
        known_a.set_bits(f.at, f.width, ~0ull), value_a.set_bits(f.at, f.width, f.value);
      for (const Fixed& f : formats_[b].fixed)
        known_b.set_bits(f.at, f.width, ~0ull), value_b.set_bits(f.at, f.width, f.value);
      bool differ = ((value_a.lo ^ value_b.lo) & known_a.lo & known_b.lo) ||
                    ((value_a.hi ^ value_b.hi) & known_a.hi & known_b.hi) ||
                    excludes(formats_[a], known_b, value_b) ||
                    excludes(formats_[b], known_a, value_a);
      WEFT_CHECK(differ, name_, ": ", formats_[a].name, " and ", formats_[b].name,
                 " cannot be told apart");
    }
  }
}

std::size_t InstructionSet::find(std::string_view mnemonic) const {
  auto found = by_name_.find(mnemonic);
  if (found != by_name_.end()) return found->second;
  std::vector<std::string> known;
  for (const Format& f : formats_) known.push_back(f.name);
  throw Error(ErrorKind::value, cat(name_, ".asm.mnemonic"),
              cat("\"", mnemonic, "\" is no instruction of ", name_))
      .note(cat("instructions: ", join(known)))
      .help(did_you_mean(mnemonic, known));
}

Verdict InstructionSet::check(const Instruction& instruction) const {
  const Format& format = formats_.at(instruction.format);
  WEFT_CHECK(instruction.values.size() == format.fields.size(), format.name, " takes ",
             format.fields.size(), " fields");
  for (std::size_t i = 0; i < format.fields.size(); ++i) {
    const Field& field = format.fields[i];
    std::int64_t value = instruction.values[i];
    bool good;
    if (field.kind == FieldKind::named) {
      good = std::any_of(field.names.begin(), field.names.end(), [&](const NamedCode& n) {
        return static_cast<std::int64_t>(n.code) == value;
      });
    } else if (field.kind == FieldKind::signed_) {
      good = value >= low_of(field) && value <= static_cast<std::int64_t>(high_of(field));
    } else {
      good = (static_cast<std::uint64_t>(value) & ~mask(field.width)) == 0;
    }
    if (!good) {
      Refusal refusal;
      refusal.code = cat(name_, ".encode.range");
      refusal.message = cat("field \"", field.name, "\" of ", format.name, " cannot hold ", value);
      refusal.note(cat("legal: ", legal_text(field), " (", field.width, " bits)"));
      return refusal;
    }
  }
  return std::nullopt;
}

Word InstructionSet::encode(const Instruction& instruction) const {
  if (Verdict refusal = check(instruction)) throw Error(ErrorKind::value, std::move(*refusal));
  const Format& format = formats_[instruction.format];
  Word word;
  for (const Fixed& fixed : format.fixed) word.set_bits(fixed.at, fixed.width, fixed.value);
  for (std::size_t i = 0; i < format.fields.size(); ++i) {
    word.set_bits(format.fields[i].at, format.fields[i].width,
                  static_cast<std::uint64_t>(instruction.values[i]));
  }
  return word;
}

Instruction InstructionSet::decode(const Word& word) const {
  for (std::size_t i = 0; i < formats_.size(); ++i) {
    const Format& format = formats_[i];
    bool match = std::all_of(format.fixed.begin(), format.fixed.end(),
                             [&](const Fixed& f) { return word.bits(f.at, f.width) == f.value; });
    if (!match) continue;
    Instruction out{i, {}};
    for (const Field& field : format.fields) {
      std::uint64_t value = word.bits(field.at, field.width);
      if (field.kind == FieldKind::signed_ && field.width < 64 && (value >> (field.width - 1)))
        value |= ~mask(field.width);
      out.values.push_back(static_cast<std::int64_t>(value));
    }
    if (!check(out) && encode(out) == word) return out;
  }
  throw Error(ErrorKind::value, cat(name_, ".decode.unknown"),
              cat(bits_ > 64 ? cat(hex(word.hi, 16), " ") : std::string(), hex(word.lo, 16),
                  " is no instruction of ", name_));
}

std::string InstructionSet::print(const Instruction& instruction) const {
  const Format& format = formats_.at(instruction.format);
  std::string out = format.name;
  if (!format.syntax.empty()) out += ' ';
  for (std::size_t at = 0; at < format.syntax.size(); ++at) {
    if (format.syntax[at] != '{') {
      out += format.syntax[at];
      continue;
    }
    std::size_t end = format.syntax.find('}', at);
    std::string name = format.syntax.substr(at + 1, end - at - 1);
    at = end;
    for (std::size_t i = 0; i < format.fields.size(); ++i) {
      if (format.fields[i].name != name) continue;
      std::string text = std::to_string(instruction.values[i]);
      for (const NamedCode& n : format.fields[i].names) {
        if (static_cast<std::int64_t>(n.code) == instruction.values[i]) text = n.name;
      }
      out += text;
    }
  }
  return out;
}

namespace {
/// Reads one line of assembly against a format's syntax.
class LineReader {
 public:
  LineReader(const InstructionSet& set, std::string_view text, std::string_view file, int line,
             std::string_view source)
      : set_(set), text_(text), file_(file), line_(line), source_(source) {}

  Instruction read() {
    blanks();
    std::size_t begin = pos_;
    while (pos_ < text_.size() && text_[pos_] != ' ' && text_[pos_] != '\t') ++pos_;
    Instruction out;
    try {
      out.format = set_.find(text_.substr(begin, pos_ - begin));
    } catch (Error& error) {
      fail(begin, "mnemonic", error.message(), error.refusal().help);
    }
    const Format& format = set_.formats()[out.format];
    out.values.assign(format.fields.size(), 0);
    for (std::size_t at = 0; at < format.syntax.size(); ++at) {
      char c = format.syntax[at];
      if (c == ' ') continue;
      blanks();
      if (c != '{') {
        if (pos_ == text_.size() || text_[pos_] != c)
          fail(pos_, "syntax",
               cat("expected '", c, "' of \"", format.name, " ", format.syntax, "\""));
        ++pos_;
        continue;
      }
      std::size_t end = format.syntax.find('}', at);
      operand(format, format.syntax.substr(at + 1, end - at - 1), out);
      at = end;
    }
    blanks();
    if (pos_ != text_.size()) fail(pos_, "syntax", cat("unexpected text after ", format.name));
    if (Verdict refusal = set_.check(out))
      fail(begin, "range", refusal->message, refusal->notes.front());
    return out;
  }

 private:
  [[noreturn]] void fail(std::size_t at, std::string_view what, std::string message,
                         std::string help = {}) {
    int column = static_cast<int>(at) + 1;
    Error error(ErrorKind::parse, cat(set_.name(), ".asm.", what),
                cat(file_, ":", line_, ":", column, ": ", message));
    error.at("", caret_line(source_, line_, column), line_, column);
    if (!help.empty()) error.note(help);
    throw error;
  }
  void blanks() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\t')) ++pos_;
  }

  void operand(const Format& format, const std::string& name, Instruction& out) {
    std::size_t index = 0;
    while (format.fields[index].name != name) ++index;
    const Field& field = format.fields[index];
    std::size_t begin = pos_;
    while (pos_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[pos_])) || text_[pos_] == '_' ||
            text_[pos_] == '.' || (pos_ == begin && text_[pos_] == '-')))
      ++pos_;
    std::string_view token = text_.substr(begin, pos_ - begin);
    for (const NamedCode& n : field.names) {
      if (n.name == token) {
        out.values[index] = static_cast<std::int64_t>(n.code);
        return;
      }
    }
    bool hexadecimal = token.starts_with("0x");
    std::string_view digits = hexadecimal ? token.substr(2) : token;
    std::int64_t value = 0;
    auto result =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
    if (digits.empty() || result.ec != std::errc() || result.ptr != digits.data() + digits.size()) {
      fail(begin, "operand", cat("\"", token, "\" is no value for field \"", name, "\""),
           cat("legal: ", legal_text(field)));
    }
    out.values[index] = value;
  }

  const InstructionSet& set_;
  std::string_view text_, file_;
  int line_;
  std::string_view source_;
  std::size_t pos_ = 0;
};
}  // namespace

std::vector<Instruction> InstructionSet::assemble(std::string_view text,
                                                  std::string_view file) const {
  std::vector<Instruction> out;
  int number = 0;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    line = line.substr(0, line.find_first_of(";#"));
    if (trim(line).empty()) continue;
    while (line.back() == ' ' || line.back() == '\t' || line.back() == '\r') line.remove_suffix(1);
    out.push_back(LineReader(*this, line, file, number, text).read());
  }
  return out;
}

std::string InstructionSet::disassemble(const std::vector<Word>& words) const {
  std::string out;
  for (const Word& word : words) out += print(decode(word)) + '\n';
  return out;
}

std::string InstructionSet::manual() const {
  std::string out = cat("# ", name_, " instructions\n\nWords have ", bits_, " bits.\n");
  for (const Format& format : formats_) {
    out += cat("\n## ", format.name, "\n\n", format.meaning, "\n\n`", format.name,
               format.syntax.empty() ? "" : " ", format.syntax, "`\n\n");
    out += "| bits | field | values | meaning |\n|---|---|---|---|\n";
    for (const Fixed& f : format.fixed)
      out += cat("| ", f.at + f.width - 1, ":", f.at, " | | ", hex(f.value), " | |\n");
    for (const Field& f : format.fields)
      out += cat("| ", f.at + f.width - 1, ":", f.at, " | ", f.name, " | ", legal_text(f), " | ",
                 f.meaning, " |\n");
  }
  return out;
}

}  // namespace weft::isa
