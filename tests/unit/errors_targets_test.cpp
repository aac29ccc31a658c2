// SPDX-License-Identifier: Apache-2.0
// What the emitters and devices of the C-like targets and of LLVM refuse: kind, slug and text.
// Binaries are made by hand where no program of ours could provoke the refusal.

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "../expect_error.h"
#include "weft/ir/build.h"
#include "weft/ir/te.h"
#include "weft/ir/text.h"
#include "weft/runtime/module.h"
#include "weft/target/backend.h"
#include "weft/target/target.h"
#include "weft/targets/c/device.h"

namespace weft {
namespace {

using namespace ir;
using namespace runtime;
using testing::expect_error;

struct Scratch {
  std::string path = (std::filesystem::temp_directory_path() / "weft-errors-XXXXXX").string();
  Scratch() { EXPECT_NE(mkdtemp(path.data()), nullptr); }
  ~Scratch() { std::filesystem::remove_all(path); }
};

Binary c_binary(const std::string& text) {
  Binary b;
  b.target = "c";
  b.format = "c";
  b.bytes = text;
  b.kernels = {{"k", {}, {}, 0}};
  return b;
}

TEST(CErrors, compilers_that_are_not_there_or_do_not_compile) {
  expect_error(ErrorKind::device, "c.absent", {"\"/none/cc\"", "c:cc=PATH"},
               [] { open_device("c:cc=/none/cc"); });
  expect_error(ErrorKind::emit, "c.compiler.refused", {"\"cc\" refused", "kernel.c:1"},
               [] { c::compile("int f( {", "cc", ""); });
  auto device = open_device("c");
  expect_error(ErrorKind::emit, "c.symbol", {"no entry for kernel \"k\""},
               [&] { device->load(c_binary("int other(void) { return 1; }\n")); });
  // A compiler that writes no shared object.
  Scratch scratch;
  const std::string cc = scratch.path + "/cc";
  std::ofstream(cc) << "#!/bin/sh\n[ \"$1\" = --version ] && echo false 1 && exit 0\n"
                       "while [ \"$1\" != -o ]; do shift; done\necho garbage > \"$2\"\n";
  ASSERT_EQ(chmod(cc.c_str(), 0755), 0);
  auto fake = open_device("c:cc=" + cc);
  expect_error(ErrorKind::emit, "c.load", {"8 bytes cannot be loaded"},
               [&] { fake->load(c_binary("int f;\n")); });
}

TEST(CErrors, no_scratch_directory) {
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  for (const char* place : {"/proc", "/none/such"}) {
    setenv("TMPDIR", place, 1);
    expect_error(ErrorKind::io, "c.scratch", {"no scratch directory", "TMPDIR"},
                 [] { c::compile("int f;", "cc", ""); });
  }
  if (before) setenv("TMPDIR", kept.c_str(), 1);
  else unsetenv("TMPDIR");
}

/// A kernel without blocks, as emitters get them.
PrimFunc kernel(DType type, const std::function<Stmt(const Buffer&)>& body) {
  Buffer a = make_buffer("A", type, {make_int(64)});
  return make_func("k", {buffer_param(a)}, body(a));
}

void emit(std::string_view target, DType type, const std::function<Stmt(const Buffer&)>& body) {
  find_backend(target).emit({kernel(type, body)}, Target::parse(target));
}

TEST(EmitErrors, what_c_text_cannot_say) {
  for (const char* target : {"c", "opencl", "metal"}) {
    expect_error(ErrorKind::emit, "emit.lane", {"\"vector_extract\"", "constant lane"}, [&] {
      emit(target, dtypes::float32, [](const Buffer& a) {
        Var i = make_var("i");
        Expr v = load(a, {ramp(make_int(0), make_int(1), 4)});
        return make_for(i, make_int(0), make_int(4), store(a, call("vector_extract", {v, i}), {i}));
      });
    });
    expect_error(ErrorKind::emit, "emit.reduce", {"te reduction", target}, [&] {
      emit(target, dtypes::float32, [](const Buffer& a) {
        IterVar k = te::reduce_axis(4, "k");
        return store(a, te::sum(load(a, {k.var}), {k}), {make_int(0)});
      });
    });
  }
}

TEST(EmitErrors, what_llvm_text_cannot_say) {
  auto cpu = [](DType type, std::string_view code, std::initializer_list<std::string_view> parts,
                const std::function<Stmt(const Buffer&)>& body) {
    expect_error(ErrorKind::emit, code, parts, [&] { emit("cpu", type, body); });
  };
  cpu(parse_dtype("complex64"), "cpu.emit.type", {"complex64"},
      [](const Buffer& a) { return store(a, load(a, {make_int(1)}), {make_int(0)}); });
  cpu(dtypes::float32, "cpu.emit.expression", {"text", "warp"},
      [](const Buffer&) { return evaluate(make_string("warp")); });
  cpu(dtypes::int32, "cpu.emit.call", {"\"call_extern\""},
      [](const Buffer&) { return evaluate(call("call_extern", {make_int(1)})); });
  cpu(dtypes::int32, "cpu.emit.call", {"\"mulhi\" has no vector form"}, [](const Buffer& a) {
    Expr at = ramp(make_int(0), make_int(1), 4), v = load(a, {at});
    return store(a, call("mulhi", {v, v}), {at});
  });
  cpu(dtypes::int32, "cpu.emit.statement", {"block", "\"root\""}, [](const Buffer& a) {
    return root_block(store(a, make_int(1, dtypes::int32), {make_int(0)}));
  });
}

TEST(CpuErrors, binaries_of_another_host_or_without_the_kernel) {
  auto module = build(make_module(parse_func(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            A[vi] = T.float32(1)
)")),
                      "cpu");
  auto device = open_device("cpu");
  Binary renamed = module->binary();
  renamed.kernels[0].name = "other";
  expect_error(ErrorKind::emit, "cpu.binary.symbol", {"kernel \"other\""},
               [&] { device->load(renamed); });
  Binary foreign = module->binary();
  foreign.metadata["host"] = "vax 11/780";
  expect_error(ErrorKind::emit, "cpu.binary.host", {"vax 11/780", "this one is", "target \"c\""},
               [&] { device->load(foreign); });
}

TEST(CpuErrors, an_assertion_of_a_kernel) {
  for (const char* target : {"cpu", "c"}) {
    auto device = open_device(target);
    auto module = build(make_module(parse_func(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            assert A[vi] < T.float32(3), "A is below three"
            A[vi] = T.float32(1)
)")),
                        target);
    Function f(module, "main", device);
    auto storage = device->allocate(16);
    CallArg arg{storage.get(), 0, dtypes::float32, {4}, {}, 0, 0};
    float values[4] = {0, 1, 2, 2};
    device->upload(*storage, 0, values, 16);
    f.call(std::span(&arg, 1)).wait();
    values[3] = 3;
    device->upload(*storage, 0, values, 16);
    expect_error(ErrorKind::fault, "kernel.assertion", {"A is below three"},
                 [&] { f.call(std::span(&arg, 1)).wait(); });
  }
}

TEST(HostPlanErrors, values_that_only_the_device_has) {
  expect_error(ErrorKind::lower, "lower.host.expression", {"main", "on the host", "binding a loop"},
               [] {
                 build(make_module(parse_func(R"(
@T.prim_func
def main(A: T.Buffer((64,), "float32"), N: T.Buffer((1,), "int64")):
    for i in T.serial(N[0]):
        for j in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("A"):
                vi = T.axis.spatial(64, j)
                A[vi] = A[vi] * T.float32(2)
)")),
                       "opencl");
               });
}

struct OpenCl : ::testing::Test {
  Ref<Device> device;
  Ref<Storage> a;
  void SetUp() override {
    const auto all = find_backend("opencl").devices();
    if (all.empty() || !all[0].available) GTEST_SKIP() << (all.empty() ? "" : all[0].reason);
    device = open_device("opencl");
    a = device->allocate(64);
  }
  static Binary binary(const std::string& text, const std::string& name = "k") {
    Binary b;
    b.target = "opencl";
    b.format = "opencl-c";
    b.bytes = text;
    KernelParam p{"A", ParamKind::pointer, dtypes::float32, "global"};
    b.kernels = {{name, {p}, {"threadIdx.x"}, 0}};
    return b;
  }
  static constexpr const char* kText =
      "__kernel void k(__global float* A, long o) { A[o + get_local_id(0)] = 1; }\n";
  void launch(Ref<Executable> ready, Bytes offset, std::int64_t threads) {
    KernelArg arg = KernelArg::pointer(a.get(), offset);
    device->launch(*ready, 0, std::span(&arg, 1), std::span(&threads, 1)).wait();
  }
};

TEST(OpenClErrors, a_device_that_is_not_there) {
  expect_error(ErrorKind::device, "opencl.absent", {"opencl:77 is absent"},
               [] { open_device("opencl:77"); });
}

TEST_F(OpenCl, texts_and_names) {
  expect_error(ErrorKind::emit, "opencl.compiler.refused", {"refused the generated OpenCL C"},
               [&] { device->load(binary("__kernel void k( {")); });
  expect_error(ErrorKind::device, "opencl.driver", {"finding kernel other", "OpenCL error"},
               [&] { device->load(binary(kText, "other")); });
}

TEST_F(OpenCl, launches) {
  auto ready = device->load(binary(kText));
  expect_error(ErrorKind::value, "opencl.launch.offset", {"\"A\" of k", "byte 6"},
               [&] { launch(ready, 6, 4); });
  expect_error(ErrorKind::device, "opencl.launch.threads", {"asks for 1048576 work-items"},
               [&] { launch(ready, 0, 1 << 20); });
  Binary large = binary(kText);
  large.metadata = Json::parse("{\"shared_bytes\": {\"k\": 1099511627776}}");
  expect_error(ErrorKind::device, "opencl.launch.shared",
               {"needs 1099511627776 bytes of local memory"},
               [&] { launch(device->load(large), 0, 4); });
}

TEST_F(OpenCl, launches_as_large_as_the_device_allows) {
  const std::int64_t threads = device->info().limits.at("threads_per_block"),
                     shared = device->info().limits.at("shared_bytes");
  a = device->allocate(static_cast<Bytes>(threads) * 4);
  launch(device->load(binary(kText)), 0, threads);
  std::vector<float> out(static_cast<std::size_t>(threads));
  device->download(out.data(), *a, 0, out.size() * 4);
  EXPECT_EQ(std::count(out.begin(), out.end(), 1.0f), threads);
  expect_error(ErrorKind::device, "opencl.launch.threads", {cat("has ", threads)},
               [&] { launch(device->load(binary(kText)), 0, threads + 1); });
  Binary all = binary(kText);
  all.metadata = Json::parse(cat("{\"shared_bytes\": {\"k\": ", shared, "}}"));
  launch(device->load(all), 0, 4);
  all.metadata = Json::parse(cat("{\"shared_bytes\": {\"k\": ", shared + 1, "}}"));
  expect_error(ErrorKind::device, "opencl.launch.shared", {cat("has ", shared)},
               [&] { launch(device->load(all), 0, 4); });
}

TEST(Devices, refuse_copies_outside_a_storage) {
  for (const DeviceStatus& status : all_devices()) {
    if (!status.available) continue;
    SCOPED_TRACE(status.name);
    const Ref<Device> device = open_device(status.name);
    const Ref<Storage> a = device->allocate(64), b = device->allocate(64);
    float two[2] = {};
    for (const Bytes offset : {Bytes{60}, Bytes{64}, Bytes{1} << 40, ~Bytes{0} - 3}) {
      SCOPED_TRACE(offset);
      const auto refuse = [](auto&& copy) {
        expect_error(ErrorKind::index, "device.access", {"outside a storage of 64 bytes"}, copy);
      };
      refuse([&] { device->upload(*a, offset, two, 8); });
      refuse([&] { device->download(two, *a, offset, 8); });
      refuse([&] { device->copy(*a, offset, *b, 0, 8); });
      refuse([&] { device->copy(*a, 0, *b, offset, 8); });
      refuse([&] { device->copy(*a, offset, *a, 0, 8); });
    }
  }
}

}  // namespace
}  // namespace weft
