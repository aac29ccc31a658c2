// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/target/text_backend.h"
#include "weft/targets/cuda/device.h"
#include "weft/targets/cuda/nvrtc.h"
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
                     .options = {"arch", "code"},
                     .vector_lanes = 16,
                     .spelling = spelling}) {}

  TargetInfo rows(const Target& target) const override {
    TargetInfo out = grid_target_info();
    out.set_group(out.group_threads(), shared_of(arch(target)));
    read_card(out, target);
    out.limits[limits::kVectorBytes] = 16;
    if (copies_asynchronously(arch(target))) out.queues.push_back({"cp.async", true, "group", 0});
    if (capability(arch(target)) >= 90) out.queues.push_back({"bulk", false, "token", 0});
    if (capability(arch(target)) == 90) out.queues.push_back({"wgmma", true, "group", 0});
    out.limits[limits::kVectorAlign] = 16;
    if (capability(arch(target)) == 90) read_rates(out);
    if (int sums = double_product_sums(capability(arch(target))))
      out.limits[limits::kDoubleProductSums] = sums;
    out.instructions = tensor_core_rows();
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
    binary.metadata["arch"] = arch;
    Json early = Json::array();
    for (const runtime::KernelSignature& k : binary.kernels)
      if (capability(arch) >= 90 && waits_for_earlier(binary.source, k.name))
        early.push_back(k.name);
    binary.metadata["waits_for_earlier"] = std::move(early);
    const std::string code = target.option("code", "cubin");
    if (code == "text") {
      binary.format = kTextFormat;
      binary.bytes.clear();
      return;
    }
    if (code != "cubin") {
      throw Error(ErrorKind::value, "cuda.option.code", cat("\"", code, "\" is no form of code"))
          .note("cubin: compiled now; text: compiled by the device that loads it, beside others");
    }
    Compiled compiled = cuda::compile(binary.source, arch);
    binary.bytes = std::move(compiled.cubin);
    if (!compiled.log.empty()) binary.metadata["log"] = compiled.log;
  }

  Target for_device(const Target& target) const override {
    Target out = target;
    out.options.emplace("code", "text");
    return out;
  }

  std::string compiler(const Target& target) const override {
    return cat(arch(target), " ", nvrtc_version());
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

  /// What the card says, unless the target string names an architecture instead of one.
  static void read_card(TargetInfo& out, const Target& target) {
    if (!target.option("arch", "").empty()) return;
    std::string reason;
    const std::vector<Card> all = cards(&reason);
    if (const auto i = static_cast<std::size_t>(index(target)); i < all.size())
      out.limits[limits::kProcessors] = all[i].processors;
  }

  /// What processors of sm_90 reach while all of them multiply tiles, and the clock and memory of
  /// the card that was measured, which a card at hand replaces by its own: NVIDIA H200, 2026-11-23;
  /// a refit: bench/gpu/gemm_tiles.py.
  static void read_rates(TargetInfo& out) {
    out.limits[limits::kProductSums] = 2048;
    out.limits[limits::kCacheRate] = 74;
    out.limits[limits::kSharedCacheRate] = 53;
    out.limits[limits::kTileNs] = 330, out.limits[limits::kHalfPieceNs] = 320;
    out.limits[limits::kStagedRate] = 185000;
    out.limits[limits::kKernelNs] = 300, out.limits[limits::kClusterNs] = 1700;
    out.limits[limits::kClockKhz] = 1980000;
    out.limits[limits::kMemoryRate] = 4800000;
  }

  /// cp.async exists from compute capability 8.0 on.
  static bool copies_asynchronously(const std::string& arch) { return capability(arch) >= 80; }

  /// The architecture whose compiler knows what the text uses: wgmma only that of sm_90a.
  static std::string arch_for(const std::string& source, const std::string& arch) {
    const bool group = source.find("wgmma.") != std::string::npos ||
                       source.find("setmaxnreg.") != std::string::npos;
    if (capability(arch) < 90 && source.find("mbarrier.") != std::string::npos)
      throw Error(ErrorKind::emit, "cuda.instruction.arch",
                  cat("the kernel has tokens that count bytes, which ", arch, " does not have"))
          .note("mbarrier with bulk copies: sm_90 and later")
          .help("pipeline copies with software_pipeline_stage instead");
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
