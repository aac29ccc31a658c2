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

bool same_key(std::string_view a, std::string_view b) {
  // The length of the server's key is not secret; its content is.
  unsigned char differ = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < b.size(); ++i)
    differ |= static_cast<unsigned char>((i < a.size() ? a[i] : 0) ^ b[i]);
  return differ == 0;
}

}  // namespace weft::rpc
