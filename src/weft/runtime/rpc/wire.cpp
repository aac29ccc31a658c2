// SPDX-License-Identifier: Apache-2.0
#include "weft/runtime/rpc/wire.h"

#include <grpc/support/log.h>

#include "weft/base/json.h"

namespace weft::rpc {

Failure to_failure(const Error& error) {
  Failure out;
  out.set_kind(static_cast<std::uint32_t>(error.kind()));
  out.set_code(error.code());
  out.set_message(error.message());
  for (const Place& place : error.refusal().places)
    out.add_notes(cat("at ", place.label, place.label.empty() ? "" : ": ", place.text));
  for (const std::string& note : error.refusal().notes) out.add_notes(note);
  out.set_help(error.refusal().help);
  return out;
}

Error to_error(const Failure& failure) {
  ErrorKind kind = failure.kind() <= static_cast<std::uint32_t>(ErrorKind::internal)
                       ? static_cast<ErrorKind>(failure.kind())
                       : ErrorKind::rpc;
  Refusal refusal;
  refusal.code = failure.code().empty() ? "rpc.failure" : failure.code();
  refusal.message = failure.message();
  refusal.notes.assign(failure.notes().begin(), failure.notes().end());
  refusal.notes.emplace_back("this happened on the server");
  refusal.help = failure.help();
  return Error(kind, std::move(refusal));
}

void silence_transport() {
  gpr_set_log_function([](gpr_log_func_args*) {});
}

Verdict check_file_name(std::string_view name) {
  auto refuse = [&](std::string why) {
    Refusal r;
    r.code = "rpc.file.name";
    r.message = cat(json_quote(name.substr(0, 64)), " ", why);
    r.note("legal: 1 to 128 letters, digits, '.', '_' and '-', not beginning with '.'");
    return r;
  };
  if (name.empty() || name.size() > 128) return refuse(cat("has ", name.size(), " characters"));
  if (name.front() == '.') return refuse("begins with a dot");
  for (char c : name) {
    bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '.' || c == '_' || c == '-';
    if (!good) return refuse("is no plain file name");
  }
  return std::nullopt;
}

namespace {
/// Bytes of the UTF-8 character at the front that is no control character; 0: there is none.
std::size_t printable_length(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || s.size() < n) return 0;
  unsigned code = first & (0xffu >> (n + 1));
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  static constexpr unsigned kLeast[] = {0, 0, 0xa0, 0x800, 0x10000};
  return code < kLeast[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : n;
}
}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t n = printable_length(text);
    if (n) out += text.substr(0, n);
    else out += cat("\\x", hex(static_cast<unsigned char>(text[0]), 2).substr(2));
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return out;
}

bool same_key(std::string_view a, std::string_view b) {
  // The length of the server's key is not secret; its content is.
  unsigned char differ = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < b.size(); ++i)
    differ |= static_cast<unsigned char>((i < a.size() ? a[i] : 0) ^ b[i]);
  return differ == 0;
}

}  // namespace weft::rpc
