// SPDX-License-Identifier: Apache-2.0
// The tools without a runtime: cslc, and the compilation of SdkLayout programs.
#include "weft/base/error.h"
#include "weft/targets/wse/api.h"
#include "weft/targets/wse/csl/compile.h"
#include "weft/targets/wse/program_io.h"
#include "weft/targets/wse/sdk_layout.h"

namespace weft::wse {

namespace {

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
  const std::string& fp16 = a.at("fp16_format").as_string();
  o.fp16 = fp16 == "bf16" ? Ty::bf16 : fp16 == "cb16" ? Ty::cb16 : Ty::f16;
  o.warnings_as_errors = a.at("warnings_as_errors").as_bool();
  csl::CompileResult result = csl::compile_program(o);
  write_artifact(result.layout, a.at("out").as_string());
  Json out = Json::object();
  out["warnings"] = result.warnings;
  Json printed = Json::array();
  for (std::string& line : result.printed) printed.push_back(std::move(line));
  out["printed"] = printed;
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
