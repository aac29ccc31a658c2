// SPDX-License-Identifier: Apache-2.0
#pragma once
// The host as a device for C text: the system's compiler makes a shared object of it, which the
// on-disk cache keeps under the hash of text, flags, compiler and processor.

#include <string>

#include "weft/runtime/host_device.h"

namespace weft::c {

/// The compiler's first line of `--version`, or "" when it cannot be run.
std::string compiler_version(const std::string& compiler);
/// A shared object from C text. Throws Error(emit, "c.compiler.refused") with its messages.
std::string compile(const std::string& text, const std::string& compiler, const std::string& flags);

class CDevice final : public runtime::HostDevice {
 public:
  CDevice(std::string name, std::string compiler, std::string flags);

 protected:
  Ready make_ready(const runtime::Binary& binary) override;

 private:
  std::string compiler_, flags_;
};

}  // namespace weft::c
