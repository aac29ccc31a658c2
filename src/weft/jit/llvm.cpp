// SPDX-License-Identifier: Apache-2.0
// libLLVM through its C API, with hand-declared prototypes (llvm-c is ABI-stable for these).

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include "weft/base/error.h"
#include "weft/jit/jit.h"

namespace weft::jit {

namespace {

using Handle = void*;

struct Api {
  Handle (*ContextCreate)();
  void (*ContextDispose)(Handle);
  Handle (*CreateMemoryBufferWithMemoryRangeCopy)(const char*, std::size_t, const char*);
  int (*ParseIRInContext)(Handle, Handle, Handle*, char**);
  void (*DisposeMessage)(char*);
  void (*DisposeModule)(Handle);
  int (*VerifyModule)(Handle, int, char**);
  void (*SetTarget)(Handle, const char*);
  void (*SetDataLayout)(Handle, const char*);
  int (*GetTargetFromTriple)(const char*, Handle*, char**);
  char* (*GetDefaultTargetTriple)();
  char* (*GetHostCPUName)();
  char* (*GetHostCPUFeatures)();
  Handle (*CreateTargetMachine)(Handle, const char*, const char*, const char*, int, int, int);
  void (*DisposeTargetMachine)(Handle);
  Handle (*CreateTargetDataLayout)(Handle);
  char* (*CopyStringRepOfTargetData)(Handle);
  void (*DisposeTargetData)(Handle);
  int (*TargetMachineEmitToMemoryBuffer)(Handle, Handle, int, char**, Handle*);
  const char* (*GetBufferStart)(Handle);
  std::size_t (*GetBufferSize)(Handle);
  void (*DisposeMemoryBuffer)(Handle);
  Handle (*CreatePassBuilderOptions)();
  void (*DisposePassBuilderOptions)(Handle);
  Handle (*RunPasses)(Handle, const char*, Handle, Handle);
  char* (*GetErrorMessage)(Handle);
  void (*DisposeErrorMessage)(char*);
  void (*ContextSetDiagnosticHandler)(Handle, void (*)(Handle, void*), void*);
  char* (*GetDiagInfoDescription)(Handle);
  int (*GetDiagInfoSeverity)(Handle);
};

Api api;
Availability state;
std::once_flag once;

/// A limit of the host that dlopen met says nothing about the library: the next call tries again.
void refuse_if_exhausted() {
  const char* said = ::dlerror();
  const std::string_view text = said ? said : "";
  for (int limit : {EMFILE, ENFILE, ENOMEM}) {
    if (text.find(std::strerror(limit)) == std::string_view::npos) continue;
    throw Error(ErrorKind::emit, "jit.llvm.open", cat("libLLVM could not be opened: ", text))
        .help("close files or free memory, then call again");
  }
}

void open_llvm() {
  struct Candidate {
    const char* file;
    int major;
  };
  static constexpr Candidate candidates[] = {{"libLLVM.so.19.1", 19},
                                             {"libLLVM-19.so.1", 19},
                                             {"/usr/lib/llvm-19/lib/libLLVM.so.19.1", 19},
                                             {"libLLVM.so.18.1", 18},
                                             {"libLLVM-18.so.1", 18},
                                             {"libLLVM-18.so", 18},
                                             {"libLLVM-17.so.1", 17},
                                             {"libLLVM-17.so", 17},
                                             {"libLLVM-16.so.1", 16},
                                             {"libLLVM-16.so", 16},
                                             {"libLLVM-15.so.1", 15},
                                             {"libLLVM-15.so", 15}};
  std::vector<Candidate> tried(std::begin(candidates), std::end(candidates));
  const std::string wish = wanted_llvm();
  if (wish == "oldest") {
    std::reverse(tried.begin(), tried.end());
  } else if (!wish.empty()) {
    std::erase_if(tried, [&](const Candidate& c) { return std::to_string(c.major) != wish; });
    if (tried.empty()) {
      state.reason = cat("WEFT_LLVM is \"", wish, "\"; it may be 15 to 19, or oldest");
      return;
    }
  }
  void* library = nullptr;
  std::vector<std::string> searched;
  for (const Candidate& candidate : tried) {
    library = ::dlopen(candidate.file, RTLD_NOW | RTLD_LOCAL);
    if (library) {
      state.path = candidate.file;
      state.major = candidate.major;
      break;
    }
    refuse_if_exhausted();
    searched.emplace_back(candidate.file);
  }
  if (!library) {
    state.reason = cat("libLLVM was not found; searched ", join(searched));
    return;
  }
  bool complete = true;
  auto get = [&](auto& slot, const char* name) {
    void* symbol = ::dlsym(library, name);
    if (!symbol) {
      complete = false;
      state.reason = cat(state.path, " has no symbol ", name);
    }
    slot = reinterpret_cast<std::remove_reference_t<decltype(slot)>>(symbol);
  };
#define WEFT_LLVM(name) get(api.name, "LLVM" #name)
  WEFT_LLVM(ContextCreate);
  WEFT_LLVM(ContextDispose);
  WEFT_LLVM(CreateMemoryBufferWithMemoryRangeCopy);
  WEFT_LLVM(ParseIRInContext);
  WEFT_LLVM(DisposeMessage);
  WEFT_LLVM(DisposeModule);
  WEFT_LLVM(VerifyModule);
  WEFT_LLVM(SetTarget);
  WEFT_LLVM(SetDataLayout);
  WEFT_LLVM(GetTargetFromTriple);
  WEFT_LLVM(GetDefaultTargetTriple);
  WEFT_LLVM(GetHostCPUName);
  WEFT_LLVM(GetHostCPUFeatures);
  WEFT_LLVM(CreateTargetMachine);
  WEFT_LLVM(DisposeTargetMachine);
  WEFT_LLVM(CreateTargetDataLayout);
  WEFT_LLVM(CopyStringRepOfTargetData);
  WEFT_LLVM(DisposeTargetData);
  WEFT_LLVM(TargetMachineEmitToMemoryBuffer);
  WEFT_LLVM(GetBufferStart);
  WEFT_LLVM(GetBufferSize);
  WEFT_LLVM(DisposeMemoryBuffer);
  WEFT_LLVM(CreatePassBuilderOptions);
  WEFT_LLVM(DisposePassBuilderOptions);
  WEFT_LLVM(RunPasses);
  WEFT_LLVM(GetErrorMessage);
  WEFT_LLVM(DisposeErrorMessage);
  WEFT_LLVM(ContextSetDiagnosticHandler);
  WEFT_LLVM(GetDiagInfoDescription);
  WEFT_LLVM(GetDiagInfoSeverity);
#undef WEFT_LLVM
#if defined(__x86_64__)
  const char* arch = "X86";
#elif defined(__aarch64__)
  const char* arch = "AArch64";
#else
  const char* arch = "ARM";
#endif
  for (const char* part : {"TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser"}) {
    void (*initialize)() = nullptr;
    get(initialize, cat("LLVMInitialize", arch, part).c_str());
    if (initialize) initialize();
  }
  state.available = complete;
}

std::string take(char* text) {
  std::string out = text ? text : "";
  if (text) api.DisposeMessage(text);
  return out;
}

struct Diagnostics {
  std::string text;
};

void on_diagnostic(Handle info, void* user) {
  if (api.GetDiagInfoSeverity(info) == 0) {  // errors only
    static_cast<Diagnostics*>(user)->text += take(api.GetDiagInfoDescription(info));
  }
}

/// Frees a handle at the end of a scope.
struct Guard {
  Handle handle = nullptr;
  void (*dispose)(Handle) = nullptr;
  Guard(Handle h, void (*d)(Handle)) : handle(h), dispose(d) {}
  Guard(const Guard&) = delete;
  ~Guard() {
    if (handle) dispose(handle);
  }
};

std::string compile_as(std::string_view text, const CompileOptions& options, int file_type) {
  if (!llvm().available) {
    throw Error(ErrorKind::emit, "jit.llvm.absent", "compiling needs libLLVM 15 to 19")
        .note(state.reason)
        .help("apt-get install libllvm19 (Debian 12 has libllvm15), or build for target \"c\"");
  }
  Guard context(api.ContextCreate(), api.ContextDispose);
  Diagnostics diagnostics;
  api.ContextSetDiagnosticHandler(context.handle, on_diagnostic, &diagnostics);
  Handle buffer = api.CreateMemoryBufferWithMemoryRangeCopy(text.data(), text.size(), "weft");
  Handle module = nullptr;
  char* message = nullptr;
  if (api.ParseIRInContext(context.handle, buffer, &module, &message)) {
    throw Error(ErrorKind::emit, "jit.llvm.parse",
                cat("LLVM ", state.major, " refuses the text: ", take(message)));
  }
  Guard module_guard(module, api.DisposeModule);
  if (api.VerifyModule(module, 2, &message)) {
    throw Error(ErrorKind::emit, "jit.llvm.verify",
                cat("LLVM ", state.major, " finds the module ill-formed: ", take(message)));
  }
  if (message) api.DisposeMessage(message);

  bool host = options.triple == "host";
  std::string triple = host ? take(api.GetDefaultTargetTriple()) : options.triple;
  std::string cpu = options.cpu == "host" ? take(api.GetHostCPUName()) : options.cpu;
  std::string features = options.features == "host"
                             ? (options.cpu == "host" ? take(api.GetHostCPUFeatures()) : "")
                             : options.features;
  Handle target = nullptr;
  message = nullptr;
  if (api.GetTargetFromTriple(triple.c_str(), &target, &message)) {
    throw Error(ErrorKind::emit, "jit.llvm.target",
                cat("LLVM knows no target \"", triple, "\": ", take(message)));
  }
  constexpr int kRelocPic = 2, kCodeModelSmall = 3;
  Guard machine(api.CreateTargetMachine(target, triple.c_str(), cpu.c_str(), features.c_str(),
                                        options.codegen_level, kRelocPic, kCodeModelSmall),
                api.DisposeTargetMachine);
  WEFT_CHECK(machine.handle, "no target machine for ", triple, " ", cpu);
  api.SetTarget(module, triple.c_str());
  {
    Guard layout(api.CreateTargetDataLayout(machine.handle), api.DisposeTargetData);
    std::string layout_text = take(api.CopyStringRepOfTargetData(layout.handle));
    api.SetDataLayout(module, layout_text.c_str());
  }
  if (!options.passes.empty()) {
    Guard builder(api.CreatePassBuilderOptions(), api.DisposePassBuilderOptions);
    if (Handle error =
            api.RunPasses(module, options.passes.c_str(), machine.handle, builder.handle)) {
      char* why = api.GetErrorMessage(error);
      std::string copy = why;
      api.DisposeErrorMessage(why);
      throw Error(ErrorKind::emit, "jit.llvm.passes",
                  cat("LLVM refuses the passes \"", options.passes, "\": ", copy));
    }
  }
  Handle out = nullptr;
  message = nullptr;
  if (api.TargetMachineEmitToMemoryBuffer(machine.handle, module, file_type, &message, &out) ||
      !diagnostics.text.empty()) {
    throw Error(ErrorKind::emit, "jit.llvm.emit",
                cat("LLVM cannot emit code for ", cpu, ": ",
                    diagnostics.text.empty() ? take(message) : diagnostics.text));
  }
  Guard out_guard(out, api.DisposeMemoryBuffer);
  return std::string(api.GetBufferStart(out), api.GetBufferSize(out));
}

}  // namespace

std::string wanted_llvm() {
  const char* wish = std::getenv("WEFT_LLVM");
  return wish ? wish : "";
}

const Availability& llvm() {
  std::call_once(once, open_llvm);
  return state;
}

bool llvm_opened() { return state.available; }

std::string compile_to_object(std::string_view text, const CompileOptions& options) {
  return compile_as(text, options, 1);
}

std::string compile_to_assembly(std::string_view text, const CompileOptions& options) {
  return compile_as(text, options, 0);
}

Ref<Code> compile(std::string_view text, const CompileOptions& options,
                  const std::function<void*(std::string_view)>& resolve) {
  return load_object(compile_to_object(text, options), resolve);
}

}  // namespace weft::jit
