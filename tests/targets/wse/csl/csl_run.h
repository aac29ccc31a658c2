// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compiles PE programs given as text and runs them on the fabric.

#include <cstring>
#include <string>
#include <vector>

#include "weft/base/error.h"
#include "weft/targets/wse/csl/compile.h"
#include "weft/targets/wse/fabric.h"

namespace weft::wse::testing {

inline csl::CompileOptions single(const std::string& program, Arch arch = Arch::wse2) {
  csl::CompileOptions o;
  o.root = "layout.csl";
  o.arch = arch;
  o.read_disk = false;
  o.files["layout.csl"] = "layout { @set_rectangle(1, 1); @set_tile_code(0, 0, \"pe.csl\"); }";
  o.files["pe.csl"] = program;
  return o;
}

/// `body` runs once as a task of a PE; globals come before it.
inline std::string as_task(const std::string& globals, const std::string& body) {
  return globals + "\nconst main_id = @get_local_task_id(8);\ntask main_task() void {\n" + body +
         "\n}\ncomptime { @bind_local_task(main_task, main_id); @activate(main_id); }\n";
}

/// One PE after its program has come to rest.
class Ran {
 public:
  explicit Ran(const csl::CompileOptions& options, int x = 0, int y = 0,
               const FabricOptions& fabric = {})
      : layout_(csl::compile(options)), fabric_(layout_, fabric), x_(x), y_(y) {
    fabric_.start();
    stop_ = fabric_.run();
  }
  template <typename T>
  std::vector<T> read(const std::string& name) {
    const Tile& tile = layout_.tiles[static_cast<std::size_t>(y_ * layout_.width + x_)];
    for (const Symbol& s : layout_.programs[tile.program].symbols) {
      if (s.name != name) continue;
      std::vector<T> out(s.bytes / sizeof(T));
      fabric_.read_memory(x_, y_, s.address, out.data(), s.bytes);
      return out;
    }
    throw Error(ErrorKind::value, "test.symbol", "no symbol " + name);
  }
  Stop stop() const { return stop_; }
  Layout& layout() { return layout_; }
  Fabric& fabric() { return fabric_; }

 private:
  Layout layout_;
  Fabric fabric_;
  int x_, y_;
  Stop stop_ = Stop::quiet;
};

}  // namespace weft::wse::testing
