// SPDX-License-Identifier: Apache-2.0
#pragma once
// Source texts, interned names and the diagnostics of one compilation. A diagnostic is recorded,
// not thrown, so that one run reports several; `Abandon` unwinds to the nearest point where
// analysis can go on.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/base/error.h"

namespace weft::wse::csl {

using Symbol = std::uint32_t;  // 0 is the empty name

/// Interned names.
class Names {
 public:
  Names() { intern(""); }
  Symbol intern(std::string_view text);
  const std::string& text(Symbol symbol) const { return texts_[symbol]; }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, Symbol> map_;
};

/// One file. `id` is its index in the compilation.
struct Source {
  int id = 0;
  std::string path;  // as shown to the user
  std::string text;
  std::vector<std::uint32_t> line_starts;

  void index_lines();
  int line_of(std::uint32_t offset) const;
  int column_of(std::uint32_t offset) const;
  std::string_view line_text(int line) const;
};

/// A position: file and byte offset.
struct Pos {
  std::uint32_t offset = 0;
  std::uint16_t file = 0;
  std::uint16_t width = 1;
};

struct Diagnostic {
  enum class Level : std::uint8_t { error, warning };
  Level level = Level::error;
  std::string code;  // "wse.csl.type.mismatch"
  std::string message;
  Pos pos;
  bool has_pos = true;
  std::vector<std::pair<std::string, Pos>> notes;  // offset 0xffffffff: no place
};

/// Thrown after a diagnostic has been recorded; never leaves the compiler.
struct Abandon {};
/// Thrown when so many errors were recorded that going on helps nobody.
struct TooManyErrors {};

class Diagnostics {
 public:
  explicit Diagnostics(const std::deque<Source>& sources) : sources_(sources) {}
  /// Records; identical diagnostics at one place are kept once. Throws TooManyErrors at the limit.
  Diagnostic& add(Diagnostic::Level level, Pos pos, std::string_view code, std::string message);
  int error_count() const { return errors_; }
  const std::deque<Diagnostic>& list() const { return list_; }
  /// `file:line:column: error: message`, the line, a caret, notes.
  std::string render(const Diagnostic& diagnostic) const;
  std::string render_all() const;
  /// Throws one weft::Error that carries every error, when there is any.
  void throw_if_errors() const;
  int limit = 20;

 private:
  std::string where(Pos pos) const;
  const std::deque<Source>& sources_;
  std::deque<Diagnostic> list_;
  Diagnostic dropped_;
  int errors_ = 0;
};

}  // namespace weft::wse::csl
