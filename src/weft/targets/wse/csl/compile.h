// SPDX-License-Identifier: Apache-2.0
#pragma once
// The compile driver of `cslc`: layout file, parameters and fabric options to a compiled layout.

#include <map>
#include <string>
#include <vector>

#include "weft/targets/wse/program.h"

namespace weft::wse::csl {

/// A tile of an SdkLayout program: file and parameters instead of a layout block.
struct TileSpec {
  std::string file;
  std::vector<std::pair<std::string, std::int64_t>> params;  // integers
  std::vector<std::pair<std::string, int>> colors;           // params of type color
  std::vector<ColorRoute> routes;                            // painted
};

/// Whose language and library a program is written for. `detect` takes both.
enum class Sdk : std::uint8_t { detect, v1, v2 };

struct CompileOptions {
  std::string root;  // path of layout.csl
  Arch arch = Arch::wse2;
  int fabric_width = 0, fabric_height = 0;
  int offset_x = 0, offset_y = 0;
  bool memcpy = false;
  int channels = 1;
  std::vector<std::pair<std::string, std::int64_t>> params;
  std::vector<std::pair<std::string, int>> colors;
  std::vector<std::string> import_paths;
  /// Where variables with linksection(name) lie, in bytes; other sections are among the rest.
  std::vector<std::pair<std::string, std::uint32_t>> sections;
  Ty fp16 = Ty::f16;
  std::int64_t comptime_steps = 400'000'000;  // bound on compile-time work
  int max_errors = 20;
  bool warnings_as_errors = false;
  Sdk sdk = Sdk::detect;
  /// Source texts by path; asked before the file system. For tests and for programs made in memory.
  std::map<std::string, std::string> files;
  bool read_disk = true;
  /// SdkLayout: tiles given directly, row-major, width * height of them; `root` is then unused.
  std::vector<TileSpec> tiles;
  int width = 0, height = 0;
};

struct CompileResult {
  Layout layout;
  std::string warnings;                   // rendered
  std::vector<std::string> printed;       // @comptime_print
  bool uses_v1 = false, uses_v2 = false;  // what only one of the versions has
  bool like_v2 = false;  // params without a type hold structs, numbers stand for colors
};

/// Throws Error(parse, "wse.csl.…") that carries every diagnostic with file, line, column and
/// source line.
CompileResult compile_program(const CompileOptions& options);
Layout compile(const CompileOptions& options);

}  // namespace weft::wse::csl
