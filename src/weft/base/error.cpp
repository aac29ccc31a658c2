// SPDX-License-Identifier: Apache-2.0
#include "weft/base/error.h"

#include "weft/base/bounded.h"
#include "weft/base/repairs.h"

namespace weft {

std::string_view to_string(ErrorKind kind) {
  static constexpr std::string_view names[] = {"value",    "shape", "dtype",  "index", "memory",
                                               "schedule", "parse", "verify", "lower", "emit",
                                               "device",   "fault", "rpc",    "io",    "internal"};
  return names[static_cast<std::size_t>(kind)];
}

namespace {
void indent_into(std::string& out, std::string_view text, std::string_view margin) {
  std::size_t begin = 0;
  while (begin <= text.size()) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) end = text.size();
    out += margin;
    out += text.substr(begin, end - begin);
    out += '\n';
    begin = end + 1;
  }
}
}  // namespace

Refusal& Refusal::at(std::string label, std::string text, int line, int column) {
  places.push_back({std::move(label), std::move(text), line, column});
  return *this;
}
Refusal& Refusal::note(std::string text) {
  notes.push_back(std::move(text));
  return *this;
}
Refusal& Refusal::repair(std::string text) {
  help = std::move(text);
  return *this;
}

std::string bounded(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  const auto inside = [&](std::size_t at) {  // of a character
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  std::size_t end = most - most / 4, begin = text.size() - most / 4;
  for (int i = 0; i < 3 && inside(end); ++i) --end;
  for (int i = 0; i < 3 && inside(begin); ++i) ++begin;
  return cat(text.substr(0, end), " ... (", begin - end, " bytes more) ... ", text.substr(begin));
}

std::string render(const Refusal& refusal) {
  std::string out = cat("error[", refusal.code, "]: ", bounded(refusal.message), "\n");
  for (const Place& place : refusal.places) {
    const std::string label = bounded(place.label), text = bounded(place.text, 4 * kLongestPart);
    if (text.find('\n') == std::string::npos) {
      out += cat("   ", label, label.empty() ? "" : "   ", text, "\n");
    } else {
      out += cat("   ", label, "\n");
      indent_into(out, text, "      ");
    }
  }
  for (const std::string& note : refusal.notes) out += cat(" = ", bounded(note), "\n");
  if (!refusal.help.empty()) out += cat(" = help: ", bounded(refusal.help), "\n");
  out.pop_back();
  return out;
}

Error::Error(ErrorKind kind, Refusal refusal)
    : state_(std::make_shared<State>(State{kind, std::move(refusal), {}, {}})) {
  Refusal& r = state_->refusal;
  if (r.help.empty()) r.help = repair_of(r.code);
}

Error::Error(ErrorKind kind, std::string_view code, std::string message)
    : Error(kind, Refusal{std::string(code), std::move(message), {}, {}, {}}) {}

Error& Error::note(std::string text) {
  state_->refusal.note(std::move(text));
  state_->rendered.clear();
  return *this;
}

Error& Error::help(std::string text) {
  if (!text.empty()) state_->refusal.help = std::move(text);  // the row's stays
  state_->rendered.clear();
  return *this;
}

Error& Error::at(std::string label, std::string text, int line, int column) {
  state_->refusal.at(std::move(label), std::move(text), line, column);
  state_->rendered.clear();
  return *this;
}

Error& Error::context(std::string text) {
  state_->context.push_back(std::move(text));
  state_->rendered.clear();
  return *this;
}

const char* Error::what() const noexcept {
  if (state_->rendered.empty()) {
    state_->rendered = render(state_->refusal);
    for (const std::string& text : state_->context) state_->rendered += cat("\n   ", bounded(text));
  }
  return state_->rendered.c_str();
}

void internal_error(const char* file, int line, const char* condition, std::string message) {
  std::string_view path(file);
  std::size_t cut = path.rfind("weft/");
  if (cut != std::string_view::npos) path.remove_prefix(cut);
  throw Error(ErrorKind::internal, "internal.check",
              cat("this is a mistake in weft: ", condition, message.empty() ? "" : ": ", message))
      .at("source", cat(path, ":", line));
}

}  // namespace weft
