// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/target/text_backend.h"
#include "weft/targets/cuda/device.h"
#include "weft/targets/cuda/nvrtc.h"
#include "weft/targets/cuda/product_text.h"
#include "weft/targets/cuda/roles.h"
#include "weft/targets/cuda/spelling.h"
#include "weft/targets/cuda/tensor_cores.h"

namespace weft::cuda {

namespace {

class CudaBackend final : public TextBackend {
 public:
  CudaBackend()
      : TextBackend({.name = "cuda",
                     .format = "cubin",
                     .number = "a card's number",
                     .options = {"arch"},
                     .vector_lanes = 16,
                     .spelling = spelling}) {}

  TargetInfo rows(const Target& target) const override {
    GroupLimits limits;
    limits.shared_bytes = shared_of(arch(target));
    TargetInfo out = grid_target_info(stated(limits, target));
    out.limits["vector_bytes"] = 16;
    if (copies_asynchronously(arch(target))) out.queues.push_back({"cp.async", true, "group", 0});
    if (capability(arch(target)) >= 90) out.queues.push_back({"bulk", false, "token", 0});
    if (capability(arch(target)) == 90) out.queues.push_back({"wgmma", true, "group", 0});
    out.limits["vector_align"] = 16;
    out.instructions = tensor_core_rows();
    out.whole_products = capability(arch(target)) == 90;  // wgmma is of sm_90a alone
    if (!out.whole_products) {
      for (InstructionInfo& row : out.instructions) row.product.reset();
    }
    return out;
  }

  runtime::Binary whole_product(const WholeProduct& product, const Target& target) const override {
    using runtime::ParamKind;
    runtime::Binary out;
    out.target = target.text();
    out.format = "cubin";
    out.source = product_text(product);
    runtime::KernelSignature k;
    k.name = "product";
    k.axes = {"blockIdx.x", "threadIdx.x"};
    k.scratch_bytes = product.shared_bytes();
    const bool patches = product.mode == WholeProduct::Mode::patches,
               places = product.mode == WholeProduct::Mode::places;
    const int *size = product.patch, *step = product.step;
    // Every `step`-th of an image, from one window's place on.
    const std::vector<int> patch = {64, (size[0] - 1) * step[0] + 1, (size[1] - 1) * step[1] + 1,
                                    size[2]},
                           dense = {64, size[0], size[1], size[2]}, tile = {64, 64, 1, 1},
                           one = {1, 1, 1, 1}, apart = {1, step[0], step[1], 1};
    const std::vector<int> rows = {64, 64 * product.groups, 1, 1},
                           columns = {64, product.columns, 1, 1};
    auto tensor = [&](const char* name, const std::vector<int>& box,
                      const std::vector<int>& steps) {
      k.params.push_back({name, ParamKind::tensor, product.type, "global", box, steps});
    };
    if (patches || places) tensor("a", patch, apart);
    else tensor("a", product.a_along_m ? tile : rows, one);
    if (places) tensor("b", dense, one);
    else tensor("b", product.b_along_n ? tile : columns, one);
    if (product.out == WholeProduct::Out::copied) tensor("out", patches ? dense : tile, one);
    k.params.push_back({"to", ParamKind::pointer, product.type, "global", {}, {}});
    for (const char* name :
         {"tiles_m",   "tiles_n", "batches", "parts",   "steps",   "part",    "m",
          "n",         "inner",   "move_a0", "move_a1", "move_b0", "move_b1", "patches_w",
          "patches_h", "patch_w", "patch_h", "patch_n", "step_x",  "step_y",  "before_x",
          "before_y",  "window",  "chunks",  "turned"})
      k.params.push_back({name, ParamKind::scalar, dtypes::int32, "global", {}, {}});
    out.kernels = {k};
    compile(out, target);
    return out;
  }

  ir::PrimFunc spell(const ir::PrimFunc& kernel) const override { return spell_roles(kernel); }

  TargetInfo kind() const override {
    Target newest;
    newest.name = "cuda";
    newest.options["arch"] = "sm_90";
    return rows(newest);
  }

  pass::Pipeline pipeline(const Target& target) const override {
    pass::Pipeline out = TextBackend::pipeline(target);
    // While indices are still quotients and remainders.
    auto before = std::find_if(out.begin(), out.end(),
                               [](const auto& p) { return p.name == "lower_division"; });
    out.insert(before, {"select_tensor_cores", select_tensor_cores});
    return out;
  }

  void compile(runtime::Binary& binary, const Target& target) const override {
    const std::string arch = arch_for(binary.source, CudaBackend::arch(target));
    Compiled compiled = cuda::compile(binary.source, arch);
    binary.bytes = std::move(compiled.cubin);
    binary.metadata["arch"] = arch;
    if (!compiled.log.empty()) binary.metadata["log"] = compiled.log;
  }

  std::vector<DeviceStatus> devices() const override {
    std::string reason;
    std::vector<DeviceStatus> out;
    int i = 0;
    for (const Card& card : cards(&reason)) {
      DeviceStatus status;
      status.name = cat("cuda:", i++);
      status.available = nvrtc_available();
      if (!status.available)
        status.reason = cat("the compiler NVRTC was not found; searched ", nvrtc_searched());
      status.description = cat(card.name, " (", card.arch, ", ", human_bytes(card.memory), ")");
      out.push_back(std::move(status));
    }
    if (out.empty()) {
      DeviceStatus status;
      status.name = "cuda:0";
      status.reason = reason;
      out.push_back(std::move(status));
    }
    return out;
  }

  Ref<runtime::Device> open(const Target& target) const override {
    return open_card(index(target));
  }

 private:
  static int index(const Target& target) { return static_cast<int>(target.integer("", 0)); }

  static std::string arch(const Target& target) {
    std::string stated = target.option("arch", "");
    if (!stated.empty()) {
      if (!stated.starts_with("sm_")) {
        throw Error(ErrorKind::value, "cuda.option.arch",
                    cat("\"", stated, "\" is no architecture of cuda"))
            .note("for example sm_80, sm_90, sm_90a");
      }
      return stated;
    }
    std::string reason;
    std::vector<Card> all = cards(&reason);
    auto i = static_cast<std::size_t>(index(target));
    return i < all.size() ? all[i].arch : "sm_90";
  }

  static int capability(const std::string& arch) {
    int number = 0;
    for (char c : arch.substr(3)) {
      if (c < '0' || c > '9') break;
      number = number * 10 + (c - '0');
    }
    return number;
  }

  /// cp.async exists from compute capability 8.0 on.
  static bool copies_asynchronously(const std::string& arch) { return capability(arch) >= 80; }

  /// The architecture whose compiler knows what the text uses: wgmma only that of sm_90a.
  static std::string arch_for(const std::string& source, const std::string& arch) {
    const bool group = source.find("wgmma.") != std::string::npos;
    if (group ? capability(arch) != 90
              : capability(arch) < 80 && source.find("mma.sync") != std::string::npos) {
      throw Error(ErrorKind::emit, "cuda.instruction.arch",
                  cat("the kernel uses ", group ? "wgmma" : "mma.m16n8k16", ", which ", arch,
                      " does not have"))
          .note(group ? "wgmma: sm_90a alone" : "mma.m16n8k16: sm_80 and later")
          .help(group ? "tensorize with cuda.mma.* instead" : "leave the block as loops");
    }
    return group ? "sm_90a" : arch;
  }

  /// Shared memory that one block may ask for, from the vendor's table of compute capabilities.
  static std::int64_t shared_of(const std::string& arch) {
    if (arch.starts_with("sm_9") || arch.starts_with("sm_10")) return 232448;
    if (arch == "sm_80" || arch == "sm_87") return 166912;
    if (arch.starts_with("sm_8") || arch.starts_with("sm_12")) return 101376;
    return arch.starts_with("sm_7") ? 65536 : 49152;
  }
};

}  // namespace

Backend& backend() {
  static CudaBackend instance;
  return instance;
}

}  // namespace weft::cuda
