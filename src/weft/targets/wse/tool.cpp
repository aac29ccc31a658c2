// SPDX-License-Identifier: Apache-2.0
// The tools without a runtime: cslc, and the compilation of SdkLayout programs.
#include "weft/base/error.h"
#include "weft/targets/wse/api.h"
#include "weft/targets/wse/csl/compile.h"
#include "weft/targets/wse/program_io.h"
#include "weft/targets/wse/sdk_layout.h"

namespace weft::wse {

namespace {

std::string ports(std::uint8_t bits) {
  static constexpr std::string_view names[] = {"EAST", "WEST", "NORTH", "SOUTH", "RAMP"};
  static_assert(kEast == 0 && kWest == 1 && kNorth == 2 && kSouth == 3 && kRamp == 4);
  std::string out;
  for (std::size_t k = 0; k < std::size(names); ++k) {
    if (bits >> k & 1u) out += cat(out.empty() ? "" : " ", names[k]);
  }
  return out.empty() ? "-" : out;
}

std::string pad_right(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text + " ";
}
std::string pad_left(const std::string& text, std::size_t width) {
  return std::string(text.size() < width ? width - text.size() : 0, ' ') + text;
}

// A row per PE and colour: inputs, outputs, switch positions and what else is set.
std::string routes_table(const Layout& layout) {
  std::string out = cat(pad_left("x", 5), pad_left("y", 5), pad_left("color", 7), "  ",
                        pad_right("rx", 12), pad_right("tx", 24), "more\n");
  for (std::size_t k = 0; k < layout.tiles.size(); ++k) {
    const Tile& tile = layout.tiles[k];
    auto rows = [&](const std::vector<ColorRoute>& routes) {
      for (const ColorRoute& c : routes) {
        const Route& r = c.route;
        std::string more;
        for (std::size_t p = 0; p < r.positions.size(); ++p) {
          const SwitchPosition& s = r.positions[p];
          if (s.valid)
            more += cat(" pos", p + 1, s.rx ? cat(" rx ", ports(s.rx)) : std::string(),
                        s.tx ? cat(" tx ", ports(s.tx)) : std::string(), ";");
        }
        if (r.ring) more += " ring;";
        if (r.pop != PopMode::none) more += " pops;";
        if (r.filter.kind != Filter::none) more += " filter;";
        if (r.teardown) more += " teardown;";
        if (r.swap_x || r.swap_y)
          more += cat(" swap", r.swap_x ? " x" : "", r.swap_y ? " y" : "", ";");
        auto width = static_cast<std::size_t>(layout.width);
        out += cat(pad_left(cat(k % width), 5), pad_left(cat(k / width), 5),
                   pad_left(cat(static_cast<int>(c.color)), 7), "  ", pad_right(ports(r.rx), 12),
                   pad_right(ports(r.tx), 24), more, "\n");
      }
    };
    if (tile.routes < layout.route_sets.size()) rows(layout.route_sets[tile.routes]);
    if (tile.program < layout.programs.size()) rows(layout.programs[tile.program].routes);
  }
  return out;
}

Json compile_tool(const Json& a) {
  csl::CompileOptions o;
  o.root = a.at("root").as_string();
  o.arch = a.at("arch").as_string() == "wse3" ? Arch::wse3 : Arch::wse2;
  o.fabric_width = static_cast<int>(a.at("fabric_dims").at(0).as_int());
  o.fabric_height = static_cast<int>(a.at("fabric_dims").at(1).as_int());
  o.offset_x = static_cast<int>(a.at("fabric_offsets").at(0).as_int());
  o.offset_y = static_cast<int>(a.at("fabric_offsets").at(1).as_int());
  for (const auto& [name, v] : a.at("params").as_object()) o.params.emplace_back(name, v.as_int());
  for (const auto& [name, v] : a.at("colors").as_object())
    o.colors.emplace_back(name, static_cast<int>(v.as_int()));
  o.memcpy = a.at("memcpy").as_bool();
  o.channels = static_cast<int>(a.at("channels").as_int());
  if (o.channels < 1 || o.channels > 16) {
    throw Error(ErrorKind::value, "wse.cslc.channels",
                cat("--channels=", o.channels, "; legal are 1 to 16"));
  }
  for (const Json& p : a.at("import_paths").as_array()) o.import_paths.push_back(p.as_string());
  if (const Json* sections = a.find("sections")) {
    for (const auto& [name, at] : sections->as_object()) {
      if (at.as_int() < 16 || at.as_int() >= kMemoryBytes || at.as_int() % 2)
        throw Error(ErrorKind::value, "wse.cslc.section",
                    cat("--link-section-start-address-bytes=", name, ":", at.as_int(),
                        "; legal are even addresses from 16 to ", kMemoryBytes - 2));
      o.sections.emplace_back(name, static_cast<std::uint32_t>(at.as_int()));
    }
  }
  const std::string& fp16 = a.at("fp16_format").as_string();
  o.fp16 = fp16 == "bf16" ? Ty::bf16 : fp16 == "cb16" ? Ty::cb16 : Ty::f16;
  if (const Json* v = a.find("sdk_version")) {
    const std::string& sdk = v->as_string();
    if (sdk != "detect" && sdk != "1.4" && sdk != "2.10")
      throw Error(ErrorKind::value, "wse.cslc.sdk_version",
                  cat("--sdk-version=", sdk, "; legal are detect, 1.4 and 2.10"));
    o.sdk = sdk == "1.4" ? csl::Sdk::v1 : sdk == "2.10" ? csl::Sdk::v2 : csl::Sdk::detect;
  }
  o.warnings_as_errors = a.at("warnings_as_errors").as_bool();
  csl::CompileResult result = csl::compile_program(o);
  write_artifact(result.layout, a.at("out").as_string());
  Json out = Json::object();
  out["sdk_version"] =
      o.sdk == csl::Sdk::v1 || (result.uses_v1 && !result.uses_v2)                       ? "1.4"
      : o.sdk == csl::Sdk::v2 || ((result.uses_v2 || result.like_v2) && !result.uses_v1) ? "2.10"
      : result.uses_v1                                                                   ? "both"
                                                                                         : "either";
  out["warnings"] = result.warnings;
  Json printed = Json::array();
  for (std::string& line : result.printed) printed.push_back(std::move(line));
  out["printed"] = printed;
  if (const Json* r = a.find("routes"); r && r->as_bool())
    out["routes"] = routes_table(result.layout);
  return out;
}

}  // namespace

Json call_tool(const std::string& method, const Json& args) {
  if (method == "compile") return compile_tool(args);
  if (method == "compile_layout") {
    write_artifact(sdk_layout_from(args).compile(), args.at("out").as_string());
    return Json();
  }
  throw Error(ErrorKind::value, "wse.api.method",
              cat("there is no tool \"", method, "\"; there are compile and compile_layout"));
}

}  // namespace weft::wse
