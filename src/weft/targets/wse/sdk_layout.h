// SPDX-License-Identifier: Apache-2.0
#pragma once
// Programs put together from code regions with ports: colours are allocated, ports connected by
// automatic routes, streams of the host attached to ports. The names are those of the Cerebras
// SDK's SdkLayout.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/json.h"
#include "weft/targets/wse/program.h"

namespace weft::wse {

enum class Edge : std::uint8_t { TOP, BOTTOM, LEFT, RIGHT };

/// Inputs and outputs of a colour in one switch position, as port bits.
struct RoutingPosition {
  std::uint8_t rx = 0, tx = 0;
  RoutingPosition& set_input(std::initializer_list<int> ports) {
    for (int p : ports) rx |= port_bit(p);
    return *this;
  }
  RoutingPosition& set_output(std::initializer_list<int> ports) {
    for (int p : ports) tx |= port_bit(p);
    return *this;
  }
};

struct EdgeRouting {
  Edge edge = Edge::TOP;
  std::vector<RoutingPosition> positions;
};
/// Half-open rectangle within a region.
struct IntRectangle {
  std::int32_t x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};
using ColorRef = std::size_t;
struct PortRef {
  std::size_t region = 0, port = 0;
};

class SdkLayout {
 public:
  explicit SdkLayout(Arch arch) : arch_(arch) {}

  /// `value` < 0: chosen at compilation.
  ColorRef color(std::string name, int value = -1);
  std::size_t create_code_region(std::string file, std::string name, std::int32_t width,
                                 std::int32_t height);
  void place(std::size_t region, std::int32_t x, std::int32_t y);
  void set_param(std::size_t region, IntRectangle where, std::string name, std::int64_t value);
  void set_param(std::size_t region, IntRectangle where, std::string name, ColorRef color,
                 bool is_color);
  void set_symbol(std::size_t region, std::int32_t x, std::int32_t y, std::string name,
                  std::string bytes);
  void paint(std::size_t region, IntRectangle where, ColorRef color,
             std::vector<RoutingPosition> positions, const std::vector<EdgeRouting>& edges = {});
  PortRef create_port(std::size_t region, ColorRef color, Edge edge,
                      std::vector<RoutingPosition> positions, std::int64_t size, bool input,
                      std::string name);
  void connect(PortRef from, PortRef to);
  /// The stream's name is the port's.
  void create_stream(PortRef port, bool input);
  /// Between the host and the PE at (x, y) of the layout, on a colour that its region has painted.
  void create_stream_at(std::int32_t x, std::int32_t y, ColorRef color, bool input,
                        std::string name);
  /// Folders for imports, and the 16-bit floating-point format.
  void compile_with(std::vector<std::string> import_paths, Ty fp16) {
    import_paths_ = std::move(import_paths);
    fp16_ = fp16;
  }

  /// Throws Error(value, "wse.sdklayout.…") where regions, ports or routes do not fit; the
  /// compiler's errors.
  Layout compile();

 private:
  struct Param {
    IntRectangle where;
    std::string name;
    bool is_color = false;
    std::int64_t value = 0;
  };
  struct Port {
    ColorRef color;
    Edge edge;
    std::vector<RoutingPosition> positions;
    std::int64_t size;
    bool input;
    std::string name;
    bool used = false;
  };
  struct Region {
    std::string file, name;
    std::int32_t width = 1, height = 1, x = 0, y = 0;
    std::vector<Param> params;
    std::vector<Preset> symbols;
    std::vector<Port> ports;
    std::map<std::pair<std::int32_t, std::int32_t>,
             std::map<ColorRef, std::vector<RoutingPosition>>>
        painted;
  };
  struct Color {
    std::string name;
    int value = -1;
    ColorRef root = 0;
  };
  struct Cell {
    std::int32_t region = -1;
    std::map<int, std::vector<RoutingPosition>> routes;
  };

  struct Stream {
    PortRef port;           // unless `at_place`
    bool at_place = false;  // the rest counts
    std::int32_t x = 0, y = 0;
    ColorRef color = 0;
    bool input = false;
    std::string name;
  };

  ColorRef find(ColorRef c) const;
  int number(ColorRef c) const { return colors_[find(c)].value; }
  PortStream port_stream(std::vector<Cell>& grid, PortRef ref);
  PortStream place_stream(const std::vector<Cell>& grid, const Stream& s) const;
  void number_colors();
  std::vector<std::pair<std::int32_t, std::int32_t>> port_pes(const Region& region,
                                                              const Port& port) const;
  void route(std::vector<Cell>& grid, std::pair<std::int32_t, std::int32_t> from,
             std::pair<std::int32_t, std::int32_t> to, const Port& out, const Port& in, int color);
  Port& port(PortRef ref) { return regions_.at(ref.region).ports.at(ref.port); }

  Arch arch_;
  std::vector<Color> colors_;
  std::vector<Region> regions_;
  std::vector<std::pair<PortRef, PortRef>> connections_;
  std::vector<Stream> streams_;
  std::vector<std::string> import_paths_;
  Ty fp16_ = Ty::f16;
  std::int32_t width_ = 0, height_ = 0;
};

/// The layout that Python's classes describe.
SdkLayout sdk_layout_from(const Json& description);

}  // namespace weft::wse
