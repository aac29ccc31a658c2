// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compares a run on bytecode with one on native code: memory, cycles, instructions.

#include <gtest/gtest.h>

#include "csl_run.h"

namespace weft::wse::testing {

inline void expect_same_on_native(Ran& reference, const std::string& what) {
  FabricOptions options;
  options.engine = Engine::native;
  Fabric native(reference.layout(), options);
  native.start();
  EXPECT_EQ(native.run(), reference.stop()) << what;
  const Layout& l = reference.layout();
  EXPECT_GT(native.stats().get("engine.native"), 0) << what;
  EXPECT_EQ(native.now(), reference.fabric().now()) << what;
  EXPECT_EQ(native.stats().get("instructions"), reference.fabric().stats().get("instructions"))
      << what;
  for (int y = 0; y < l.height; ++y) {
    for (int x = 0; x < l.width; ++x) {
      std::uint32_t program = l.tiles[static_cast<std::size_t>(y * l.width + x)].program;
      if (program == kNoProgram) continue;
      std::uint32_t n = l.programs[program].data_bytes;
      std::string a(n, '\0'), b(n, '\0');
      reference.fabric().read_memory(x, y, 0, a.data(), n);
      native.read_memory(x, y, 0, b.data(), n);
      EXPECT_EQ(a, b) << what << ": memory of PE (" << x << ", " << y << ")";
    }
  }
}

}  // namespace weft::wse::testing
