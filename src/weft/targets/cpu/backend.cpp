// SPDX-License-Identifier: Apache-2.0
// The host's processor through LLVM: vectors of the host, parallel loops on the shared pool, object
// code in the kernel cache.

#include <unistd.h>

#include "weft/base/text.h"
#include "weft/jit/jit.h"
#include "weft/pass/lower_float8.h"
#include "weft/runtime/cache.h"
#include "weft/runtime/host_device.h"
#include "weft/target/backend.h"
#include "weft/target/open_schedules.h"
#include "weft/target/pipeline.h"
#include "weft/target/rules.h"
#include "weft/target/transpose_rows.h"
#include "weft/targets/cpu/emit_llvm.h"
#include "weft/targets/cpu/processors.h"

namespace weft::cpu {

namespace {

constexpr int kEmitterVersion =
    2;  // part of the cache key: raise it when the text's meaning changes

class CpuDevice final : public runtime::HostDevice {
 public:
  CpuDevice() : HostDevice("cpu", "host processor", "elf") {}

 protected:
  Ready make_ready(const runtime::Binary& binary) override {
    const Json* host = binary.metadata.is_object() ? binary.metadata.find("host") : nullptr;
    if (!host || host->as_string() != jit::host_fingerprint()) {
      throw Error(ErrorKind::emit, "cpu.binary.host",
                  cat("the binary was compiled for another processor (",
                      host ? host->as_string() : "unknown", ")"))
          .note(cat("this one is ", jit::host_fingerprint()))
          .help("build it again here, or ship a module of target \"c\"");
    }
    Ref<jit::Code> code = jit::load_object(binary.bytes);
    Ready out;
    for (const runtime::KernelSignature& k : binary.kernels) {
      auto f = reinterpret_cast<weft_kernel>(code->find(k.name));
      if (!f)
        throw Error(ErrorKind::emit, "cpu.binary.symbol",
                    cat("the binary has no code for kernel \"", k.name, "\""));
      out.kernels.push_back(f);
    }
    out.keep = code;
    return out;
  }
};

/// "avx512" 64 bytes and so on, from the flags that the compiler's built-in knows.
int vector_bytes() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return 64;
  return __builtin_cpu_supports("avx2") ? 32 : 16;
#else
  return 16;
#endif
}

class CpuBackend final : public Backend, public OpenSchedules {
 public:
  std::string_view name() const override { return "cpu"; }

  TargetInfo info(const Target& target) const override {
    check_options(target, {"mcpu", "passes", "check_bounds"}, "");
    TargetInfo out;
    out.name = "cpu";
    MemoryInfo global, local;
    global.scope = "global";
    local.scope = "local";
    out.memories = {global, local};
    out.dtypes = generic_target_info().dtypes;
    out.instructions = transpose_rows();
    int bytes = vector_bytes();
    out.limits = {{limits::kVectorBytes, bytes},
                  {limits::kRegisters, bytes == 64 ? 32 : 16},
                  {"max_vector_bytes", 256}};
    if (target.option("mcpu", "host") == "host") DotInstructions::of_host(bytes).state(out);
    // 0 where the system does not say.
    if (const long first = sysconf(_SC_LEVEL1_DCACHE_SIZE); first > 0)
      out.limits[limits::kCache1Bytes] = first;
    if (const long second = sysconf(_SC_LEVEL2_CACHE_SIZE); second > 0)
      out.limits[limits::kCache2Bytes] = second;
    return out;
  }

  Verdict accepts(const ir::PrimFunc&, const Target&) const override { return std::nullopt; }

  ir::PrimFunc default_schedule(const ir::PrimFunc& f, const Target& target) const override {
    return rules::schedule_for_host(f, info(target));
  }

  std::unique_ptr<const OpenedSchedule> open_schedule(const ir::PrimFunc& f,
                                                      const Target& target) const override {
    return open_host_rules(f, info(target));
  }

  pass::Pipeline pipeline(const Target& target) const override {
    LoweringOptions options;
    options.vector_lanes = 64;
    options.narrow = false;
    options.unroll.how = pass::Unroll::replicate;
    options.transposes = options.masked_loads = true;
    options.hoist_guards = true;
    options.read(target);
    return standard_pipeline(info(target), options);
  }

  runtime::Binary emit(const std::vector<ir::PrimFunc>& kernels,
                       const Target& target) const override {
    jit::CompileOptions options;
    options.cpu = target.option("mcpu", "host");
    check_processor(options.cpu);
    std::vector<ir::PrimFunc> lowered;
    for (const ir::PrimFunc& f : kernels) lowered.push_back(pass::lower_float8(f));
    const bool here = options.cpu == "host";
    LlvmText llvm = emit_llvm(lowered, here ? vector_bytes() : 0,
                              here ? DotInstructions::of_host(vector_bytes()) : DotInstructions{});
    // A schedule that wrote its own vectors only needs its accumulators in registers; LLVM's loop
    // passes would spoil them. Plain loops get everything.
    options.passes = target.option(
        "passes", llvm.explicit_vectors ? "always-inline,function(sroa,early-cse)" : "default<O3>");
    options.codegen_level = 3;
    runtime::Binary out;
    out.target = target.text();
    out.format = "elf";
    out.source = llvm.text;
    std::string key = cat("cpu ", kEmitterVersion, " ", jit::host_fingerprint(), " ", options.cpu,
                          " ", options.passes, "\n", llvm.text);
    out.bytes = runtime::FileCache::shared().get(
        runtime::CacheKey::of(key), [&] { return jit::compile_to_object(llvm.text, options); });
    Json assertions = Json::object();
    for (const auto& [kernel, texts] : llvm.assertions) {
      Json list = Json::array();
      for (const std::string& text : texts) list.push_back(text);
      assertions[kernel] = std::move(list);
    }
    out.metadata = Json::object();
    out.metadata["host"] = jit::host_fingerprint();
    out.metadata["assertions"] = std::move(assertions);
    for (const ir::PrimFunc& f : kernels) {
      runtime::KernelSignature signature;
      signature.name = f->name;
      for (const ir::Param& p : f->params) {
        runtime::KernelParam param;
        param.name = p.buffer ? p.buffer->name : p.var->name;
        param.kind = p.buffer ? runtime::ParamKind::pointer : runtime::ParamKind::scalar;
        param.dtype = p.buffer ? p.buffer->dtype : p.var->dtype;
        signature.params.push_back(std::move(param));
      }
      out.kernels.push_back(std::move(signature));
    }
    return out;
  }

  std::vector<DeviceStatus> devices() const override {
    return {{"cpu", runtime::DeviceKind::hardware, true, "", "host processor through LLVM"}};
  }

  Ref<runtime::Device> open(const Target& target) const override {
    check_options(target, {"mcpu", "passes", "check_bounds"}, "");
    return make_ref<CpuDevice>();
  }
};

}  // namespace

Backend& backend() {
  static CpuBackend instance;
  return instance;
}

}  // namespace weft::cpu
