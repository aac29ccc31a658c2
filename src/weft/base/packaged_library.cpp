// SPDX-License-Identifier: Apache-2.0
#include "weft/base/packaged_library.h"

#include <glob.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "weft/base/text.h"

namespace weft {

namespace {

struct Folders {
  std::mutex mutex;
  std::vector<std::string> names;
};

Folders& folders() {
  static auto& one = *new Folders;  // asked for until the process ends
  return one;
}

}  // namespace

void set_package_folders(std::vector<std::string> names) {
  const std::lock_guard lock(folders().mutex);
  folders().names = std::move(names);
}

std::vector<std::string> packaged_libraries(std::string_view pattern) {
  std::vector<std::string> names, out;
  {
    const std::lock_guard lock(folders().mutex);
    names = folders().names;
  }
  for (const std::string& name : names) {
    glob_t found{};
    if (glob(cat(name, "/", pattern).c_str(), 0, nullptr, &found) == 0) {
      std::vector<std::string> here(found.gl_pathv, found.gl_pathv + found.gl_pathc);
      out.insert(out.end(), here.rbegin(), here.rend());
    }
    globfree(&found);
  }
  return out;
}

}  // namespace weft
