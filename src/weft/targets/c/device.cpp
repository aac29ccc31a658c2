// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/c/device.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/hash.h"
#include "weft/runtime/cache.h"

extern char** environ;

namespace weft::c {

namespace {

struct Output {
  int status = -1;
  std::string text;
};

/// Runs a program without a shell; stdout and stderr together.
Output run(const std::vector<std::string>& command) {
  Output out;
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return out;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 2);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  int error = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  char room[4096];
  for (ssize_t n; (n = read(pipe_ends[0], room, sizeof(room))) > 0 || (n < 0 && errno == EINTR);) {
    if (n > 0) out.text.append(room, static_cast<std::size_t>(n));
  }
  close(pipe_ends[0]);
  if (error != 0) return out;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

/// What -march=native depends on.
std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  std::string out, line;
  while (std::getline(in, line)) {
    if (line.starts_with("model name") || line.starts_with("flags") || line.starts_with("Features"))
      out += line;
    if (line.empty()) break;  // the first processor is enough
  }
  return out;
}

/// A directory that disappears with its files.
struct ScratchDirectory {
  std::string path;
  ScratchDirectory() {
    std::error_code wrong;  // a TMPDIR that is no directory is an error of ours, not of the library
    const std::filesystem::path folder = std::filesystem::temp_directory_path(wrong);
    if (!wrong) remove_leftovers(folder, "weft-c-", std::chrono::hours(1));
    std::string name = (folder / "weft-c-XXXXXX").string();
    if (wrong || !mkdtemp(name.data())) {
      throw Error(ErrorKind::io, "c.scratch", cat("no scratch directory could be made at ", name))
          .help("name a writable directory in TMPDIR");
    }
    path = name;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

struct Library final : RefCounted {
  void* handle = nullptr;
  int file = -1;
  explicit Library(const std::string& bytes) {
    file = memfd_create("weft", MFD_CLOEXEC);
    std::size_t done = 0;
    while (file >= 0 && done < bytes.size()) {
      ssize_t n = write(file, bytes.data() + done, bytes.size() - done);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    if (done == bytes.size())
      handle = dlopen(cat("/proc/self/fd/", file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* why = dlerror();
      throw Error(ErrorKind::emit, "c.load",
                  cat("compiled code of ", bytes.size(),
                      " bytes cannot be loaded: ", why ? why : std::strerror(errno)));
    }
  }
  ~Library() override {
    if (handle) dlclose(handle);
    if (file >= 0) close(file);
  }
};

}  // namespace

std::string compiler_version(const std::string& compiler) {
  Output out = run({compiler, "--version"});
  return out.status == 0 ? out.text.substr(0, out.text.find('\n')) : "";
}

std::string compile(const std::string& text, const std::string& compiler,
                    const std::string& flags) {
  ScratchDirectory scratch;
  std::string source = scratch.path + "/kernel.c", object = scratch.path + "/kernel.so";
  write_file_atomic(source, text);
  std::vector<std::string> command{compiler};
  for (const std::string& flag : split(flags, ' ')) {
    if (!flag.empty()) command.push_back(flag);
  }
  for (const char* word : {"-std=c11", "-shared", "-fPIC", "-w", "-o"}) command.emplace_back(word);
  command.push_back(object);
  command.push_back(source);
  command.emplace_back("-lm");
  Output out = run(command);
  if (out.status != 0) {
    throw Error(ErrorKind::emit, "c.compiler.refused",
                cat("\"", compiler, "\" refused the generated C (status ", out.status, ")"))
        .note(out.text.substr(0, 4000));
  }
  return read_file(object);
}

CDevice::CDevice(std::string name, std::string compiler, std::string flags)
    : HostDevice(std::move(name), cat("C11 through ", compiler, " ", flags), "c"),
      compiler_(std::move(compiler)),
      flags_(std::move(flags)) {}

CDevice::Ready CDevice::make_ready(const runtime::Binary& binary) {
  std::string version = compiler_version(compiler_);
  if (version.empty()) {
    throw Error(ErrorKind::device, "c.absent",
                cat("the C compiler \"", compiler_, "\" cannot be run"))
        .help("install one, or name it: c:cc=PATH");
  }
  static const std::string native = processor();
  auto key = runtime::CacheKey::of(
      cat("c 1\n", binary.bytes, "\n", compiler_, "\n", version, "\n", flags_, "\n", native));
  std::string object = runtime::FileCache::shared().get(
      key, [&] { return compile(binary.bytes, compiler_, flags_); });
  Ref<Library> library = make_ref<Library>(object);
  Ready ready;
  for (const runtime::KernelSignature& k : binary.kernels) {
    void* entry = dlsym(library->handle, cat(k.name, "_entry").c_str());
    if (!entry)
      throw Error(ErrorKind::emit, "c.symbol",
                  cat("compiled code has no entry for kernel \"", k.name, "\""));
    ready.kernels.push_back(reinterpret_cast<weft_kernel>(entry));
  }
  ready.keep = library;
  return ready;
}

}  // namespace weft::c
