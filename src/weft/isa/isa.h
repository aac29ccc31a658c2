// SPDX-License-Identifier: Apache-2.0
#pragma once
// An instruction set as a table. From one list of formats come the encoder (which refuses a value
// that does not fit), the decoder, the assembler, the disassembler and the manual page. Tables may
// be built at run time, so field widths can follow a machine's configuration. Words have up to 128
// bits.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"

namespace weft::isa {

struct Word {
  std::uint64_t lo = 0, hi = 0;
  bool operator==(const Word&) const = default;
  /// Bits [at, at + width), width 1..64.
  std::uint64_t bits(unsigned at, unsigned width) const;
  void set_bits(unsigned at, unsigned width, std::uint64_t value);
};

enum class FieldKind : std::uint8_t { unsigned_, signed_, named };

struct NamedCode {
  std::string name;
  std::uint64_t code;
};

struct Field {
  std::string name;
  unsigned at = 0, width = 0;
  FieldKind kind = FieldKind::unsigned_;
  std::vector<NamedCode> names;  // FieldKind::named: the legal values
  std::string meaning;
};

/// Bits that identify a format.
struct Fixed {
  unsigned at = 0, width = 0;
  std::uint64_t value = 0;
};

struct Format {
  std::string name;  // mnemonic
  std::vector<Fixed> fixed;
  std::vector<Field> fields;
  std::string syntax;   // operands after the mnemonic: "{rd}, {ra}, #{imm}"; empty: none
  std::string meaning;  // one line for the manual
};

/// A decoded instruction: which format, and the fields' values in table order (signed ones
/// sign-extended).
struct Instruction {
  std::size_t format = 0;
  std::vector<std::int64_t> values;
  bool operator==(const Instruction&) const = default;
};

class InstructionSet {
 public:
  /// Throws Error(internal) on tables that overlap, repeat names, or cannot be told apart.
  InstructionSet(std::string name, unsigned bits, std::vector<Format> formats);

  const std::string& name() const { return name_; }
  unsigned bits() const { return bits_; }
  const std::vector<Format>& formats() const { return formats_; }
  /// Throws Error(value, "<isa>.asm.mnemonic") listing near names.
  std::size_t find(std::string_view mnemonic) const;

  /// Refusal "<isa>.encode.range" names field, value and legal range; null: fits.
  Verdict check(const Instruction& instruction) const;
  /// Throws the refusal of check() as Error(value).
  Word encode(const Instruction& instruction) const;
  /// Throws Error(value, "<isa>.decode.unknown") for words of no format or with reserved bits set.
  Instruction decode(const Word& word) const;

  std::string print(const Instruction& instruction) const;
  /// One instruction per line; '#' or ';' starts a comment. Throws Error(parse, "<isa>.asm.*") with
  /// a caret.
  std::vector<Instruction> assemble(std::string_view text, std::string_view file = "<asm>") const;
  std::string disassemble(const std::vector<Word>& words) const;
  /// Markdown.
  std::string manual() const;

 private:
  std::string name_;
  unsigned bits_;
  std::vector<Format> formats_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

}  // namespace weft::isa
