// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pictures of the fabric: one cell per PE, coloured by what it did. The ending of the path says the
// format: .svg (with PE names and figures as tooltips) or .png.

#include <string>
#include <vector>

#include "weft/targets/wse/fabric.h"

namespace weft::wse {

/// Figures per PE, row-major; PEs never touched count 0. `what`: busy, stall, idle, traffic, east,
/// west, north, south, ramp, elements, instructions. Throws Error(value, "wse.picture.what")
/// listing them.
std::vector<std::int64_t> heat_values(Fabric& fabric, const std::string& what);

/// Throws Error(value, "wse.picture.format") for other endings, Error(io, "file.write") when it
/// cannot write.
void write_heat_map(Fabric& fabric, const std::string& what, const std::string& path);

/// A PNG of 24-bit pixels, row-major; for tests and other pictures.
std::string png_bytes(int width, int height, const std::vector<std::uint8_t>& rgb);

}  // namespace weft::wse
