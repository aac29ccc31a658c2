// SPDX-License-Identifier: Apache-2.0
// Libraries that come as packages of a language, where the system's loader does not look: pip puts
// NVIDIA's into site-packages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// Folders of packages, absolute, the first to be searched first. A front end sets them before
/// anything is opened.
void set_package_folders(std::vector<std::string> folders);

/// The files below those folders whose names match a pattern of the shell, such as
/// "maker/*/lib/libname.so.1?"; the newest names first.
std::vector<std::string> packaged_libraries(std::string_view pattern);

}  // namespace weft
