// SPDX-License-Identifier: Apache-2.0
// What weft._rpc needs of this module: remote devices adopted as devices, arguments of calls, and a
// function that opens the served device for each connection.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "array_type.h"
#include "program.h"
#include "rpc_bridge.h"
#include "weft/base/file.h"
#include "weft/base/interrupt.h"
#include "weft/base/json.h"
#include "weft/base/text.h"
#include "weft/target/backend.h"

namespace weft::py {

namespace {

/// A file that only this user can read, gone at the end of the scope.
class PrivateFile {
 public:
  explicit PrivateFile(std::string_view content) {
    // The system's own folder for temporary files (TMPDIR where it is set).
    std::error_code wrong;
    folder_ = (std::filesystem::temp_directory_path(wrong) / "weft-config-XXXXXX").string();
    if (wrong || !::mkdtemp(folder_.data()))
      throw Error(ErrorKind::io, "rpc.reconfigure.file",
                  cat("cannot make a folder like ", folder_, " for the configuration"))
          .help("name a writable directory in TMPDIR");
    path_ = folder_ + "/config.json";
    write_file_atomic(path_, content);
  }
  ~PrivateFile() {
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
  }
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string folder_, path_;
};

bool is_number_text(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.+-e") == std::string_view::npos;
}

/// A device of its own for a connection. `config` comes from the client: JSON text becomes the
/// target's configuration file, anything else its options. It may not name files of this host.
Ref<Device> open_for_connection(const std::string& served, std::string_view config) {
  Target target = Target::parse(served);
  Backend& backend = find_backend(target.name);
  std::string_view text = trim(config);
  if (text.empty()) return backend.open(target);
  if (text.front() == '{') {
    if (!backend.client_may_set("", text))
      throw Error(ErrorKind::value, "rpc.reconfigure.option",
                  cat("target ", target.name, " takes no configuration from a client"))
          .note("what a client may choose is in docs/guide/serving.md");
    PrivateFile file(text);
    target.options[""] = file.path();
    return backend.open(target);
  }
  Target asked = Target::parse(cat(target.name, ":", text));
  for (const auto& [key, value] : asked.options) {
    bool path = value.find('/') != std::string::npos ||
                (value.find('.') != std::string::npos && !is_number_text(value));
    if (path)
      throw Error(
          ErrorKind::value, "rpc.reconfigure.path",
          cat("the configuration names a file of the server: ", json_quote(value.substr(0, 80))))
          .note("legal: options of the target such as \"qpus=4\", or the text of a JSON file")
          .help("weft.rpc sends the content of a local file: reconfigure(\"config.json\")");
    if (!backend.client_may_set(key, value)) {
      const std::string what =
          key.empty() ? cat("value ", json_quote(value.substr(0, 80)))
                      : cat("option ", json_quote(std::string_view(key).substr(0, 80)));
      throw Error(ErrorKind::value, "rpc.reconfigure.option",
                  cat("the ", what, " of target ", target.name, " is not a client's to choose"))
          .note("compilers, files, memory and which chip is used are the server's")
          .help("have the server started with it: weft serve --device");
    }
    target.options[key] = value;
  }
  return backend.open(target);
}

}  // namespace

void bind_bridge(nb::module_& m) {
  // Work of a connection runs in this module; what ends it (InterruptScope) is set in weft._rpc.
  m.attr("interrupt_slot") = to_capsule(&interrupt_slot, kInterruptCapsule);
  m.def("adopt_device", [](nb::capsule device) {
    return device_object(from_capsule<Ref<Device>>(device, kDeviceCapsule));
  });
  m.def("call_arguments", [](nb::args args) { return to_capsule(call_args(args), kArgsCapsule); });
  m.def(
      "device_opener",
      [](const std::string& name) {
        std::function<Ref<Device>(std::string_view)> open = [name](std::string_view config) {
          return open_for_connection(name, config);
        };
        open({});  // refused now rather than at the first connection
        return to_capsule(std::move(open), kOpenerCapsule);
      },
      nb::arg("name"));
}

}  // namespace weft::py
