// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/sdk_layout.h"

#include <algorithm>
#include <deque>

#include "weft/base/error.h"
#include "weft/targets/wse/csl/compile.h"

namespace weft::wse {

namespace {

constexpr int kOpposite[kPorts] = {kWest, kEast, kSouth, kNorth, kRamp};
constexpr int kEdgePort[] = {kNorth, kSouth, kWest, kEast};  // by Edge
constexpr std::int32_t kDx[] = {1, -1, 0, 0}, kDy[] = {0, 0, -1, 1};

Route route_of(const std::vector<RoutingPosition>& positions) {
  Route r;
  if (positions.empty()) return r;
  r.rx = positions[0].rx;
  r.tx = positions[0].tx;
  for (std::size_t i = 1; i < positions.size() && i < 4; ++i) {
    SwitchPosition& p = r.positions[i - 1];
    p.valid = true;
    p.rx = positions[i].rx;
    p.tx = positions[i].tx;
  }
  return r;
}

[[noreturn]] void refuse(std::string_view what, std::string message) {
  throw Error(ErrorKind::value, cat("wse.sdklayout.", what), std::move(message));
}

}  // namespace

ColorRef SdkLayout::color(std::string name, int value) {
  if (value >= kColors)
    refuse("color", cat("colour \"", name, "\" has the value ", value, "; there are ", kColors));
  colors_.push_back({std::move(name), value, colors_.size()});
  return colors_.size() - 1;
}

std::size_t SdkLayout::create_code_region(std::string file, std::string name, std::int32_t width,
                                          std::int32_t height) {
  if (width < 1 || height < 1)
    refuse("region", cat("region \"", name, "\" has ", width, " x ", height, " PEs"));
  for (const Region& r : regions_) {
    if (r.name == name) refuse("region", cat("there are two regions named \"", name, "\""));
  }
  Region r;
  r.file = std::move(file);
  r.name = std::move(name);
  r.width = width;
  r.height = height;
  regions_.push_back(std::move(r));
  return regions_.size() - 1;
}

void SdkLayout::place(std::size_t region, std::int32_t x, std::int32_t y) {
  Region& r = regions_.at(region);
  if (x < 0 || y < 0)
    refuse("place", cat("region \"", r.name, "\" is placed at (", x, ", ", y, ")"));
  r.x = x;
  r.y = y;
}

void SdkLayout::set_param(std::size_t region, IntRectangle where, std::string name,
                          std::int64_t value) {
  regions_.at(region).params.push_back({where, std::move(name), false, value});
}

void SdkLayout::set_param(std::size_t region, IntRectangle where, std::string name, ColorRef color,
                          bool is_color) {
  regions_.at(region).params.push_back(
      {where, std::move(name), is_color, static_cast<std::int64_t>(color)});
}

void SdkLayout::set_symbol(std::size_t region, std::int32_t x, std::int32_t y, std::string name,
                           std::string bytes) {
  regions_.at(region).symbols.push_back({x, y, std::move(name), std::move(bytes)});
}

void SdkLayout::paint(std::size_t region, IntRectangle w, ColorRef color,
                      std::vector<RoutingPosition> positions,
                      const std::vector<EdgeRouting>& edges) {
  Region& r = regions_.at(region);
  if (w.x0 < 0 || w.y0 < 0 || w.x1 > r.width || w.y1 > r.height) {
    refuse("paint", cat("(", w.x0, ", ", w.y0, ") to (", w.x1, ", ", w.y1, ") leaves region \"",
                        r.name, "\" of ", r.width, " x ", r.height));
  }
  if (positions.empty() || positions.size() > 4)
    refuse("paint", cat("colour \"", colors_.at(color).name, "\" has ", positions.size(),
                        " positions; legal are 1 to 4"));
  for (std::int32_t y = w.y0; y < w.y1; ++y) {
    for (std::int32_t x = w.x0; x < w.x1; ++x) {
      auto* chosen = &positions;
      std::vector<RoutingPosition> special;
      for (const EdgeRouting& e : edges) {
        bool on = e.edge == Edge::TOP      ? y == 0
                  : e.edge == Edge::BOTTOM ? y == r.height - 1
                  : e.edge == Edge::LEFT   ? x == 0
                                           : x == r.width - 1;
        if (on) {
          special = e.positions;
          chosen = &special;
        }
      }
      r.painted[{x, y}][color] = *chosen;
    }
  }
}

PortRef SdkLayout::create_port(std::size_t region, ColorRef color, Edge edge,
                               std::vector<RoutingPosition> positions, std::int64_t size,
                               bool input, std::string name) {
  Region& r = regions_.at(region);
  if (positions.empty() || positions.size() > 4)
    refuse("port", cat("port ", name, " has ", positions.size(), " positions; legal are 1 to 4"));
  for (const RoutingPosition& p : positions) {
    if (input ? p.rx : p.tx)
      refuse("port",
             cat("port ", name, ": an ", input ? "input" : "output", " port must leave its ",
                 input ? "inputs" : "outputs", " to the compiler"));
  }
  for (const Port& p : r.ports) {
    if (p.name == name)
      refuse("port", cat("there are two ports named ", name, "; a prefix tells them apart"));
  }
  r.ports.push_back({color, edge, std::move(positions), size, input, std::move(name)});
  return {region, r.ports.size() - 1};
}

void SdkLayout::connect(PortRef from, PortRef to) {
  Port& a = port(from);
  Port& b = port(to);
  if (a.input || !b.input)
    refuse("connect",
           cat("connect wants an output and an input port, not ", a.name, " and ", b.name));
  if (a.size != b.size)
    refuse("connect",
           cat("port ", a.name, " has size ", a.size, ", port ", b.name, " has ", b.size));
  if (a.used || b.used)
    refuse("connect", cat("port ", a.used ? a.name : b.name, " is already connected"));
  a.used = b.used = true;
  connections_.emplace_back(from, to);
}

void SdkLayout::create_stream(PortRef ref, bool input) {
  Port& p = port(ref);
  if (p.input != input)
    refuse("stream", cat("an ", input ? "input" : "output", " stream cannot use port ", p.name));
  if (p.used) refuse("stream", cat("port ", p.name, " is already connected"));
  p.used = true;
  Stream s;
  s.port = ref;
  streams_.push_back(std::move(s));
}

void SdkLayout::create_stream_at(std::int32_t x, std::int32_t y, ColorRef color, bool input,
                                 std::string name) {
  Stream s;
  s.at_place = true;
  s.x = x;
  s.y = y;
  s.color = color;
  s.input = input;
  s.name = std::move(name);
  streams_.push_back(std::move(s));
}

ColorRef SdkLayout::find(ColorRef c) const {
  while (colors_[c].root != c) c = colors_[c].root;
  return c;
}

// Connected ports share a colour; every other colour gets a number of its own.
void SdkLayout::number_colors() {
  for (const auto& [from, to] : connections_) {
    ColorRef a = find(port(from).color), b = find(port(to).color);
    if (a == b) continue;
    if (colors_[a].value >= 0 && colors_[b].value >= 0 && colors_[a].value != colors_[b].value) {
      refuse("color", cat("connected ports have the colours ", colors_[a].name, " = ",
                          colors_[a].value, " and ", colors_[b].name, " = ", colors_[b].value));
    }
    if (colors_[a].value < 0) std::swap(a, b);
    colors_[b].root = a;
  }
  std::vector<bool> taken(kColors);
  for (const Color& c : colors_) {
    if (c.value >= 0) taken[static_cast<std::size_t>(c.value)] = true;
  }
  int next = 0;
  for (ColorRef i = 0; i < colors_.size(); ++i) {
    Color& c = colors_[find(i)];
    if (c.value >= 0) continue;
    while (next < kColors && taken[static_cast<std::size_t>(next)]) ++next;
    if (next >= kColors)
      refuse("color",
             cat("the layout needs more than ", kColors, " colours; \"", c.name, "\" gets none"));
    taken[static_cast<std::size_t>(next)] = true;
    c.value = next;
  }
}

std::vector<std::pair<std::int32_t, std::int32_t>> SdkLayout::port_pes(const Region& r,
                                                                       const Port& p) const {
  std::vector<std::pair<std::int32_t, std::int32_t>> out;
  if (p.edge == Edge::TOP || p.edge == Edge::BOTTOM) {
    for (std::int32_t x = 0; x < r.width; ++x)
      out.emplace_back(r.x + x, p.edge == Edge::TOP ? r.y : r.y + r.height - 1);
  } else {
    for (std::int32_t y = 0; y < r.height; ++y)
      out.emplace_back(p.edge == Edge::LEFT ? r.x : r.x + r.width - 1, r.y + y);
  }
  return out;
}

// Shortest way between two PEs over routers that do not use the colour yet.
void SdkLayout::route(std::vector<Cell>& grid, std::pair<std::int32_t, std::int32_t> from,
                      std::pair<std::int32_t, std::int32_t> to, const Port& out, const Port& in,
                      int color) {
  auto at = [&](std::int32_t x, std::int32_t y) {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
           static_cast<std::size_t>(x);
  };
  std::vector<std::int8_t> came(grid.size(), -1);
  std::deque<std::pair<std::int32_t, std::int32_t>> todo{from};
  came[at(from.first, from.second)] = kRamp;
  while (!todo.empty() && came[at(to.first, to.second)] < 0) {
    auto [x, y] = todo.front();
    todo.pop_front();
    for (int d = 0; d < 4; ++d) {
      std::int32_t nx = x + kDx[d], ny = y + kDy[d];
      if (nx < 0 || ny < 0 || nx >= width_ || ny >= height_ || came[at(nx, ny)] >= 0) continue;
      bool goal = nx == to.first && ny == to.second;
      if (!goal && grid[at(nx, ny)].routes.count(color)) continue;
      came[at(nx, ny)] = static_cast<std::int8_t>(d);
      todo.emplace_back(nx, ny);
    }
  }
  if (came[at(to.first, to.second)] < 0) {
    refuse("route",
           cat("there is no way for colour ", color, " from port ", out.name, " at (", from.first,
               ", ", from.second, ") to port ", in.name, " at (", to.first, ", ", to.second, ")"));
  }
  std::int32_t x = to.first, y = to.second;
  int d = came[at(x, y)];
  std::vector<RoutingPosition> positions = in.positions;
  for (RoutingPosition& p : positions) p.rx = port_bit(kOpposite[d]);
  grid[at(x, y)].routes[color] = positions;
  while (true) {
    x -= kDx[d];
    y -= kDy[d];
    int leave = d;
    d = came[at(x, y)];
    if (d == kRamp) {
      positions = out.positions;
      for (RoutingPosition& p : positions) p.tx = port_bit(leave);
      grid[at(x, y)].routes[color] = positions;
      return;
    }
    RoutingPosition pass;
    pass.rx = port_bit(kOpposite[d]);
    pass.tx = port_bit(leave);
    grid[at(x, y)].routes[color] = {pass};
  }
}

// A stream of the host comes in at the edge on which its port lies, or leaves there.
PortStream SdkLayout::port_stream(std::vector<Cell>& grid, PortRef ref) {
  const Port& p = port(ref);
  auto pes = port_pes(regions_[ref.region], p);
  if (pes.size() != 1)
    refuse("stream", cat("a stream needs a port of one PE; ", p.name, " has ", pes.size()));
  auto [x, y] = pes[0];
  const int direction = kEdgePort[static_cast<int>(p.edge)];
  std::vector<RoutingPosition> positions = p.positions;
  for (RoutingPosition& q : positions) (p.input ? q.rx : q.tx) = port_bit(direction);
  const std::size_t at =
      static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x);
  grid[at].routes[number(p.color)] = positions;
  PortStream s;
  s.name = p.name;
  s.color = static_cast<std::uint8_t>(number(p.color));
  s.to_device = p.input;
  s.x = x;
  s.y = y;
  s.port = static_cast<std::uint8_t>(direction);
  return s;
}

// A stream at a place uses the side that the painted routes leave to it: the first one that they
// receive from, or send to.
PortStream SdkLayout::place_stream(const std::vector<Cell>& grid, const Stream& stream) const {
  auto [x, y] = std::pair{stream.x, stream.y};
  auto wrong = [&](std::string found) {
    refuse("stream", cat("stream ", stream.name, " at (", x, ", ", y, ") on colour \"",
                         colors_[stream.color].name, "\": ", found));
  };
  if (x < 0 || y < 0 || x >= width_ || y >= height_) wrong("no region has that place");
  const Cell& cell = grid[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
                          static_cast<std::size_t>(x)];
  if (cell.region < 0) wrong("no region has that place");
  auto painted = cell.routes.find(number(stream.color));
  if (painted == cell.routes.end()) wrong("its region does not paint the colour there");
  std::uint8_t sides = 0;
  for (const RoutingPosition& p : painted->second) sides |= stream.input ? p.rx : p.tx;
  int side = 0;
  while (side < kRamp && !(sides & port_bit(side))) ++side;
  if (side == kRamp)
    wrong(cat("the painted routes ", stream.input ? "receive from" : "send to", " no side"));
  PortStream s;
  s.name = stream.name;
  s.color = static_cast<std::uint8_t>(number(stream.color));
  s.to_device = stream.input;
  s.x = x;
  s.y = y;
  s.port = static_cast<std::uint8_t>(side);
  return s;
}

Layout SdkLayout::compile() {
  if (regions_.empty()) refuse("empty", cat("the layout has ", regions_.size(), " code regions"));
  number_colors();
  width_ = height_ = 0;
  for (const Region& r : regions_) {
    width_ = std::max(width_,
                      r.x + r.width + 1);  // one free column and row for routes around the regions
    height_ = std::max(height_, r.y + r.height + 1);
  }
  std::vector<Cell> grid(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_));
  auto cell = [&](std::int32_t x, std::int32_t y) -> Cell& {
    return grid[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
                static_cast<std::size_t>(x)];
  };
  for (std::size_t i = 0; i < regions_.size(); ++i) {
    const Region& r = regions_[i];
    for (std::int32_t y = 0; y < r.height; ++y) {
      for (std::int32_t x = 0; x < r.width; ++x) {
        Cell& c = cell(r.x + x, r.y + y);
        if (c.region >= 0)
          refuse("overlap",
                 cat("regions \"", regions_[static_cast<std::size_t>(c.region)].name, "\" and \"",
                     r.name, "\" overlap at (", r.x + x, ", ", r.y + y, ")"));
        c.region = static_cast<std::int32_t>(i);
        if (auto it = r.painted.find({x, y}); it != r.painted.end()) {
          for (const auto& [color, positions] : it->second) c.routes[number(color)] = positions;
        }
      }
    }
  }
  Layout ports_of;  // only its ports are used
  for (const Stream& stream : streams_) {
    ports_of.ports.push_back(stream.at_place ? place_stream(grid, stream)
                                             : port_stream(grid, stream.port));
  }
  for (const auto& [from, to] : connections_) {
    const Port& a = port(from);
    const Port& b = port(to);
    auto pa = port_pes(regions_[from.region], a), pb = port_pes(regions_[to.region], b);
    if (pa.size() != pb.size())
      refuse("connect",
             cat("port ", a.name, " has ", pa.size(), " PEs, port ", b.name, " has ", pb.size()));
    // Neighbouring ways must not take each other's PEs: the ends are marked first.
    for (const auto& [x, y] : pa) cell(x, y).routes[number(a.color)] = a.positions;
    for (const auto& [x, y] : pb) cell(x, y).routes[number(a.color)] = b.positions;
    for (std::size_t i = 0; i < pa.size(); ++i) route(grid, pa[i], pb[i], a, b, number(a.color));
  }

  csl::CompileOptions options;
  options.arch = arch_;
  options.fp16 = fp16_;
  options.import_paths = import_paths_;
  options.width = width_;
  options.height = height_;
  options.tiles.resize(grid.size());
  std::vector<Preset> presets;
  for (const Region& r : regions_) {
    for (std::int32_t y = 0; y < r.height; ++y) {
      for (std::int32_t x = 0; x < r.width; ++x) {
        csl::TileSpec& t =
            options.tiles[static_cast<std::size_t>(r.y + y) * static_cast<std::size_t>(width_) +
                          static_cast<std::size_t>(r.x + x)];
        t.file = r.file;
        std::map<std::string, std::int64_t> values;
        std::map<std::string, int> colors;
        for (const Param& p : r.params) {  // the last one wins
          if (x < p.where.x0 || y < p.where.y0 || x >= p.where.x1 || y >= p.where.y1) continue;
          if (p.is_color) colors[p.name] = number(static_cast<ColorRef>(p.value));
          else values[p.name] = p.value;
        }
        t.params.assign(values.begin(), values.end());
        t.colors.assign(colors.begin(), colors.end());
      }
    }
    for (Preset p : r.symbols) {
      p.x += r.x;
      p.y += r.y;
      presets.push_back(std::move(p));
    }
  }
  Layout layout = csl::compile(options);
  layout.ports = std::move(ports_of.ports);
  layout.presets = std::move(presets);
  layout.route_sets.assign(1, {});
  for (std::size_t i = 0; i < grid.size(); ++i) {
    RouteSet set;
    for (const auto& [color, positions] : grid[i].routes)
      set.push_back({static_cast<std::uint8_t>(color), route_of(positions)});
    layout.tiles[i].routes = 0;
    if (!set.empty()) {
      layout.tiles[i].routes = static_cast<std::uint32_t>(layout.route_sets.size());
      layout.route_sets.push_back(std::move(set));
    }
  }
  return layout;
}

namespace {

std::vector<RoutingPosition> positions_of(const Json& list) {
  std::vector<RoutingPosition> out;
  for (const Json& p : list.as_array()) {
    RoutingPosition r;
    for (const Json& d : p.at("rx").as_array()) r.rx |= port_bit(static_cast<int>(d.as_int()));
    for (const Json& d : p.at("tx").as_array()) r.tx |= port_bit(static_cast<int>(d.as_int()));
    out.push_back(r);
  }
  return out;
}

IntRectangle rectangle_of(const Json& r) {
  auto at = [&](std::size_t i) { return static_cast<std::int32_t>(r.at(i).as_int()); };
  return {at(0), at(1), at(2), at(3)};
}

std::string bytes_of(const std::string& hex) {
  std::string out;
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<char>(digit(hex[i]) << 4 | digit(hex[i + 1])));
  return out;
}

}  // namespace

SdkLayout sdk_layout_from(const Json& d) {
  SdkLayout layout(d.at("arch").as_string() == "wse3" ? Arch::wse3 : Arch::wse2);
  std::map<std::string, ColorRef> colors;
  for (const auto& [key, c] : d.at("colors").as_object()) {
    const Json& v = c.at("value");
    colors[key] =
        layout.color(c.at("name").as_string(), v.is_null() ? -1 : static_cast<int>(v.as_int()));
  }
  for (const Json& r : d.at("regions").as_array()) {
    auto small = [&](const char* key) { return static_cast<std::int32_t>(r.at(key).as_int()); };
    std::size_t id = layout.create_code_region(r.at("file").as_string(), r.at("name").as_string(),
                                               small("width"), small("height"));
    layout.place(id, small("x"), small("y"));
    for (const Json& p : r.at("params").as_array()) {
      if (const Json* c = p.find("color"))
        layout.set_param(id, rectangle_of(p.at("rect")), p.at("name").as_string(),
                         colors.at(c->as_string()), true);
      else
        layout.set_param(id, rectangle_of(p.at("rect")), p.at("name").as_string(),
                         p.at("value").as_int());
    }
    for (const Json& p : r.at("paints").as_array()) {
      std::vector<EdgeRouting> edges;
      for (const Json& e : p.at("edges").as_array())
        edges.push_back(
            {static_cast<Edge>(e.at("edge").as_int()), positions_of(e.at("positions"))});
      layout.paint(id, rectangle_of(p.at("rect")), colors.at(p.at("color").as_string()),
                   positions_of(p.at("positions")), edges);
    }
    for (const Json& p : r.at("ports").as_array()) {
      layout.create_port(id, colors.at(p.at("color").as_string()),
                         static_cast<Edge>(p.at("edge").as_int()), positions_of(p.at("positions")),
                         p.at("size").as_int(), p.at("input").as_bool(), p.at("name").as_string());
    }
    for (const Json& s : r.at("symbols").as_array()) {
      layout.set_symbol(id, static_cast<std::int32_t>(s.at("x").as_int()),
                        static_cast<std::int32_t>(s.at("y").as_int()), s.at("name").as_string(),
                        bytes_of(s.at("bytes").as_string()));
    }
  }
  auto ref = [](const Json& p) {
    return PortRef{static_cast<std::size_t>(p.at(0).as_int()),
                   static_cast<std::size_t>(p.at(1).as_int())};
  };
  for (const Json& c : d.at("connections").as_array())
    layout.connect(ref(c.at("from")), ref(c.at("to")));
  for (const Json& s : d.at("streams").as_array()) {
    if (const Json* port = s.find("port")) {
      layout.create_stream(ref(*port), s.at("input").as_bool());
    } else {
      layout.create_stream_at(static_cast<std::int32_t>(s.at("x").as_int()),
                              static_cast<std::int32_t>(s.at("y").as_int()),
                              colors.at(s.at("color").as_string()), s.at("input").as_bool(),
                              s.at("name").as_string());
    }
  }
  std::vector<std::string> libs;
  for (const Json& folder : d.at("libs").as_array()) libs.push_back(folder.as_string());
  const std::string& fp16 = d.at("fp16_format").as_string();
  layout.compile_with(std::move(libs), fp16 == "bf16"   ? Ty::bf16
                                       : fp16 == "cb16" ? Ty::cb16
                                                        : Ty::f16);
  return layout;
}

}  // namespace weft::wse
