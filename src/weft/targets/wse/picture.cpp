// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/picture.h"

#include <algorithm>
#include <array>

#include "weft/base/error.h"
#include "weft/base/file.h"

namespace weft::wse {

namespace {

// A perceptually even ramp from dark blue over green to yellow, from five supports.
std::array<std::uint8_t, 3> shade(double t) {
  constexpr double kRamp[5][3] = {
      {68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}};
  t = std::clamp(t, 0.0, 1.0) * 4;
  int i = std::min(3, static_cast<int>(t));
  std::array<std::uint8_t, 3> out;
  for (std::size_t c = 0; c < 3; ++c) {
    out[c] =
        static_cast<std::uint8_t>(kRamp[i][c] + (kRamp[i + 1][c] - kRamp[i][c]) * (t - i) + 0.5);
  }
  return out;
}

std::uint32_t crc32(const std::string& data, std::size_t from) {
  std::uint32_t c = ~0u;
  for (std::size_t i = from; i < data.size(); ++i) {
    c ^= static_cast<unsigned char>(data[i]);
    for (int k = 0; k < 8; ++k) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0u);
  }
  return ~c;
}

void be32(std::string& out, std::uint32_t v) {
  for (int s = 24; s >= 0; s -= 8) out.push_back(static_cast<char>(v >> s));
}

void chunk(std::string& out, const char* name, const std::string& body) {
  be32(out, static_cast<std::uint32_t>(body.size()));
  std::size_t from = out.size();
  out += name;
  out += body;
  be32(out, crc32(out, from));
}

}  // namespace

std::string png_bytes(int width, int height, const std::vector<std::uint8_t>& rgb) {
  std::string raw;
  std::size_t row = static_cast<std::size_t>(width) * 3;
  for (int y = 0; y < height; ++y) {
    raw.push_back(0);  // filter: none
    raw.append(reinterpret_cast<const char*>(rgb.data()) + static_cast<std::size_t>(y) * row, row);
  }
  std::string z("\x78\x01", 2);  // zlib header, then stored blocks
  for (std::size_t at = 0; at < raw.size() || at == 0; at += 65535) {
    auto n = static_cast<std::uint16_t>(std::min<std::size_t>(65535, raw.size() - at));
    z.push_back(at + n >= raw.size() ? 1 : 0);
    z.push_back(static_cast<char>(n & 255));
    z.push_back(static_cast<char>(n >> 8));
    z.push_back(static_cast<char>(~n & 255));
    z.push_back(static_cast<char>(static_cast<std::uint16_t>(~n) >> 8));
    z.append(raw, at, n);
  }
  std::uint32_t a = 1, b = 0;
  for (unsigned char c : raw) {
    a = (a + c) % 65521u;
    b = (b + a) % 65521u;
  }
  be32(z, b << 16 | a);
  std::string out("\x89PNG\r\n\x1a\n", 8), head;
  be32(head, static_cast<std::uint32_t>(width));
  be32(head, static_cast<std::uint32_t>(height));
  head += std::string("\x08\x02\x00\x00\x00", 5);
  chunk(out, "IHDR", head);
  chunk(out, "IDAT", z);
  chunk(out, "IEND", "");
  return out;
}

std::vector<std::int64_t> heat_values(Fabric& fabric, const std::string& what) {
  static const std::vector<std::string> kNames = {"busy", "stall",    "idle",        "traffic",
                                                  "east", "west",     "north",       "south",
                                                  "ramp", "elements", "instructions"};
  auto it = std::find(kNames.begin(), kNames.end(), what);
  if (it == kNames.end()) {
    throw Error(ErrorKind::value, "wse.picture.what",
                cat("there is no figure \"", what, "\" per PE"))
        .note(cat("there are ", join(kNames)));
  }
  auto which = it - kNames.begin();
  fabric.settle();
  std::vector<std::int64_t> out;
  const Layout& l = fabric.layout();
  for (std::int32_t y = 0; y < l.height; ++y) {
    for (std::int32_t x = 0; x < l.width; ++x) {
      const Pe* pe = fabric.find(x, y);
      std::int64_t v = 0;
      if (pe) {
        const PeCounters& c = pe->count;
        switch (which) {
          case 0: v = c.busy; break;
          case 1: v = c.stall; break;
          case 2: v = fabric.now() - c.busy - c.stall; break;
          case 3: v = c.sent[0] + c.sent[1] + c.sent[2] + c.sent[3]; break;
          case 9: v = c.elements; break;
          case 10: v = c.instructions; break;
          default: v = c.sent[static_cast<std::size_t>(which - 4)]; break;
        }
      }
      out.push_back(v);
    }
  }
  return out;
}

void write_heat_map(Fabric& fabric, const std::string& what, const std::string& path) {
  std::vector<std::int64_t> values = heat_values(fabric, what);
  const Layout& l = fabric.layout();
  std::int64_t top = std::max<std::int64_t>(1, *std::max_element(values.begin(), values.end()));
  auto shade_at = [&](std::int32_t x, std::int32_t y) {
    return shade(static_cast<double>(values[static_cast<std::size_t>(y * l.width + x)]) /
                 static_cast<double>(top));
  };
  int cell = std::clamp(960 / std::max(l.width, l.height), 1, 32);
  if (path.ends_with(".png")) {
    int w = l.width * cell, h = l.height * cell;
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(w) * static_cast<std::size_t>(h) * 3);
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) {
        auto c = shade_at(x / cell, y / cell);
        if (cell >= 8 && (x % cell == 0 || y % cell == 0)) c = {255, 255, 255};
        std::copy(c.begin(), c.end(),
                  rgb.begin() + static_cast<std::ptrdiff_t>(
                                    (static_cast<std::size_t>(y) * static_cast<std::size_t>(w) +
                                     static_cast<std::size_t>(x)) *
                                    3));
      }
    }
    write_file_atomic(path, png_bytes(w, h, rgb));
    return;
  }
  if (!path.ends_with(".svg")) {
    throw Error(ErrorKind::value, "wse.picture.format",
                cat("\"", path, "\" ends in neither .svg nor .png"));
  }
  std::string out =
      cat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", l.width * cell + 20, "\" height=\"",
          l.height * cell + 50,
          "\" font-family=\"sans-serif\" font-size=\"12\">\n<text x=\"10\" y=\"18\">", what,
          " per PE, ", l.width, " x ", l.height, " PEs, largest ", top, "</text>\n");
  for (std::int32_t y = 0; y < l.height; ++y) {
    for (std::int32_t x = 0; x < l.width; ++x) {
      auto c = shade_at(x, y);
      out += cat("<rect x=\"", 10 + x * cell, "\" y=\"", 30 + y * cell, "\" width=\"", cell,
                 "\" height=\"", cell, "\" fill=\"rgb(", static_cast<int>(c[0]), ",",
                 static_cast<int>(c[1]), ",", static_cast<int>(c[2]), ")\"><title>PE (", x, ", ", y,
                 "): ", values[static_cast<std::size_t>(y * l.width + x)], "</title></rect>\n");
    }
  }
  write_file_atomic(path, out + "</svg>\n");
}

}  // namespace weft::wse
