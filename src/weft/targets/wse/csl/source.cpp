// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/csl/source.h"

#include <algorithm>

#include "weft/base/repairs.h"
#include "weft/base/text.h"

namespace weft::wse::csl {

Symbol Names::intern(std::string_view text) {
  auto found = map_.find(text);
  if (found != map_.end()) return found->second;
  texts_.emplace_back(text);
  Symbol symbol = static_cast<Symbol>(texts_.size() - 1);
  map_.emplace(texts_.back(), symbol);
  return symbol;
}

void Source::index_lines() {
  line_starts.assign(1, 0);
  for (std::uint32_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') line_starts.push_back(i + 1);
  }
}

int Source::line_of(std::uint32_t offset) const {
  auto it = std::upper_bound(line_starts.begin(), line_starts.end(), offset);
  return static_cast<int>(it - line_starts.begin());
}

int Source::column_of(std::uint32_t offset) const {
  return static_cast<int>(offset - line_starts[static_cast<std::size_t>(line_of(offset)) - 1]) + 1;
}

std::string_view Source::line_text(int line) const {
  if (line < 1 || static_cast<std::size_t>(line) > line_starts.size()) return {};
  std::size_t begin = line_starts[static_cast<std::size_t>(line) - 1];
  std::size_t end = text.find('\n', begin);
  if (end == std::string::npos) end = text.size();
  if (end > begin && text[end - 1] == '\r') --end;
  return std::string_view(text).substr(begin, end - begin);
}

Diagnostic& Diagnostics::add(Diagnostic::Level level, Pos pos, std::string_view code,
                             std::string message) {
  for (Diagnostic& old : list_) {
    if (old.pos.file == pos.file && old.pos.offset == pos.offset && old.message == message) {
      return dropped_ = Diagnostic{};
    }
  }
  if (level == Diagnostic::Level::error && ++errors_ > limit) throw TooManyErrors{};
  Diagnostic d;
  d.level = level;
  d.code = std::string(code);
  d.message = std::move(message);
  d.pos = pos;
  list_.push_back(std::move(d));
  return list_.back();
}

std::string Diagnostics::where(Pos pos) const {
  if (pos.file >= sources_.size()) return "<command line>";
  const Source& s = sources_[pos.file];
  return cat(s.path, ":", s.line_of(pos.offset), ":", s.column_of(pos.offset));
}

std::string Diagnostics::render(const Diagnostic& d) const {
  std::string out;
  auto excerpt = [&](Pos pos) {
    if (pos.file >= sources_.size()) return;
    const Source& s = sources_[pos.file];
    int line = s.line_of(pos.offset);
    std::string_view text = s.line_text(line);
    if (text.size() > 400) return;
    int column = s.column_of(pos.offset);
    out += cat("  ", text, "\n  ");
    for (int i = 1; i < column; ++i) {
      out += i <= static_cast<int>(text.size()) && text[static_cast<std::size_t>(i) - 1] == '\t'
                 ? '\t'
                 : ' ';
    }
    out += '^';
    int room = static_cast<int>(text.size()) - column;
    for (int i = 1; i < pos.width && i <= room; ++i) out += '~';
    out += '\n';
  };
  out += cat(where(d.pos), ": ", d.level == Diagnostic::Level::error ? "error" : "warning", ": ",
             d.message, " [", d.code, "]\n");
  excerpt(d.pos);
  for (const auto& [text, pos] : d.notes) {
    if (pos.offset == 0xffffffffu) {
      out += cat("  note: ", text, "\n");
    } else {
      out += cat(where(pos), ": note: ", text, "\n");
      excerpt(pos);
    }
  }
  return out;
}

namespace {
std::string help_line(const Diagnostic& d) {
  const std::string_view help = repair_of(d.code);
  return help.empty() ? std::string() : cat("  help: ", help, "\n");
}
}  // namespace

std::string Diagnostics::render_all() const {
  std::string out;
  for (const Diagnostic& d : list_) out += render(d) + help_line(d);
  return out;
}

void Diagnostics::throw_if_errors() const {
  if (errors_ == 0) return;
  const Diagnostic* first = nullptr;
  for (const Diagnostic& d : list_) {
    if (d.level == Diagnostic::Level::error) {
      first = &d;
      break;
    }
  }
  Error error(
      ErrorKind::parse, first->code,
      cat(first->message, errors_ > 1 ? cat(" (and ", errors_ - 1, " more)") : std::string()));
  for (const Diagnostic& d : list_) {
    bool known = d.pos.file < sources_.size();
    const Source* s = known ? &sources_[d.pos.file] : nullptr;
    // The first one's help is the error's.
    error.at(known ? s->path : "<command line>", &d == first ? render(d) : render(d) + help_line(d),
             known ? s->line_of(d.pos.offset) : 0, known ? s->column_of(d.pos.offset) : 0);
  }
  throw error;
}

}  // namespace weft::wse::csl
