// SPDX-License-Identifier: Apache-2.0
// The back end `wse:WxH`: blocks become stages on a rectangle of PEs, stages become CSL text, our
// own compiler takes it from there.

#include "weft/target/backend.h"

#include "weft/base/text.h"
#include "weft/target/pipeline.h"
#include "weft/targets/wse/device.h"
#include "weft/targets/wse/lower.h"

namespace weft::wse {

namespace {

struct Size {
  std::int32_t width = 4, height = 4;
};

Size size_of_target(const Target& target) {
  check_options(target, {"arch", "threads"}, "WxH");
  std::string text = target.option("", "4x4");
  Size s;
  std::size_t x = text.find('x');
  auto part = [&](std::string_view t) -> std::int32_t {
    std::int32_t v = 0;
    if (t.empty() || t.size() > 4) return 0;
    for (char c : t) {
      if (c < '0' || c > '9') return 0;
      v = v * 10 + (c - '0');
    }
    return v;
  };
  if (x != std::string::npos)
    s = {part(std::string_view(text).substr(0, x)), part(std::string_view(text).substr(x + 1))};
  if (x == std::string::npos || s.width < 1 || s.height < 1 || s.width > 750 || s.height > 990) {
    throw Error(ErrorKind::value, "wse.option.size", cat("\"", text, "\" is no rectangle of PEs"))
        .note("legal are 1x1 to 750x990, written width x height")
        .help("for example wse:4x4");
  }
  return s;
}

Arch arch_of_target(const Target& target) {
  std::string arch = target.option("arch", "wse2");
  if (arch != "wse2" && arch != "wse3")
    throw Error(ErrorKind::value, "wse.option.arch",
                cat("arch=", arch, "; legal are wse2 and wse3"));
  return arch == "wse3" ? Arch::wse3 : Arch::wse2;
}

class WseBackend final : public Backend {
 public:
  std::string_view name() const override { return "wse"; }

  TargetInfo info(const Target& target) const override {
    Size s = size_of_target(target);
    TargetInfo out;
    out.name = "wse";
    AxisInfo x, y;
    x.name = "pe.x";
    y.name = "pe.y";
    x.kind = y.kind = AxisKind::spatial;
    x.limit = s.width;
    y.limit = s.height;
    x.reduces = y.reduces = true;
    x.collectives = y.collectives = {"reduce"};
    out.axes = {x, y};
    MemoryInfo global, local;
    global.scope = "global";
    global.access = "dma";
    global.min_transfer_bytes = 2;  // copies of 16 and of 32 bits
    local.scope = "local";
    local.bytes = kMemoryBytes;
    local.private_to = {"pe.x", "pe.y"};
    out.memories = {global, local};
    out.dtypes = {dtypes::float32, dtypes::float16, dtypes::int32,  dtypes::int16,
                  dtypes::uint32,  dtypes::uint16,  dtypes::boolean};
    out.limits = {{"pe_bytes", kMemoryBytes}, {"width", s.width}, {"height", s.height}};
    out.symbolic_shapes = false;
    return out;
  }

  Verdict accepts(const ir::PrimFunc& f, const Target& target) const override {
    Size s = size_of_target(target);
    for (const ir::Param& p : f->params) {
      if (p.buffer && p.buffer->shape.empty()) {
        Refusal no;
        no.code = "wse.lower.rank";
        no.message = cat("buffer ", p.buffer->name, " has no dimensions");
        return no.repair("give it the shape (1,)");
      }
    }
    try {
      StageProgram p = lower_stages(f, s.width, s.height);
      pe_text(p);
    } catch (const Error& e) {
      return e.refusal();
    }
    return std::nullopt;
  }

  pass::Pipeline pipeline(const Target&) const override {
    return {};
  }  // blocks are what the target reads

  runtime::Binary emit(const std::vector<ir::PrimFunc>& kernels,
                       const Target& target) const override {
    Size s = size_of_target(target);
    arch_of_target(target);
    runtime::Binary out;
    out.target = target.text();
    out.format = "csl";
    Json all = Json::array();
    for (const ir::PrimFunc& f : kernels) {
      StageProgram p = lower_stages(f, s.width, s.height);
      Json k = Json::object();
      k["layout"] = layout_text(p);
      k["pe"] = pe_text(p);
      k["plan"] = describe(p);
      out.source += cat("// ======== layout.csl\n", k.at("layout").as_string(),
                        "\n// ======== pe.csl\n", k.at("pe").as_string());
      all.push_back(k);
      runtime::KernelSignature signature;
      signature.name = f->name;
      for (const ir::Param& q : f->params) {
        runtime::KernelParam param;
        param.name = q.buffer ? q.buffer->name : q.var->name;
        param.dtype = q.buffer ? q.buffer->dtype : q.var->dtype;
        param.kind = q.buffer ? runtime::ParamKind::pointer : runtime::ParamKind::scalar;
        signature.params.push_back(std::move(param));
      }
      out.kernels.push_back(std::move(signature));
    }
    out.bytes = all.dump();
    return out;
  }

  std::vector<DeviceStatus> devices() const override {
    return {{"wse:4x4", runtime::DeviceKind::simulator, true, "",
             "4 x 4 simulated PEs; any wse:WxH up to 750x990"}};
  }

  bool client_may_set(std::string_view key, std::string_view) const override {
    return key.empty() || key == "arch";
  }

  Ref<runtime::Device> open(const Target& target) const override {
    Size s = size_of_target(target);
    std::int64_t threads = target.integer("threads", 1);
    if (threads < 1 || threads > 64)
      throw Error(ErrorKind::value, "wse.option.threads",
                  cat("threads=", threads, "; legal are 1 to 64"));
    return make_ref<WseDevice>(target.text(), s.width, s.height, arch_of_target(target),
                               static_cast<int>(threads));
  }
};

}  // namespace

Backend& backend() {
  static WseBackend instance;
  return instance;
}

}  // namespace weft::wse
