// SPDX-License-Identifier: Apache-2.0
// Built programs are found again by key and by structure, and are checked as a user's are.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "weft/devices/program_cache.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/text.h"
#include "weft/runtime/cache.h"
#include "weft/target/accepts.h"
#include "weft/target/backend.h"

namespace weft {
namespace {

/// Modules of this process are kept in a folder of its own.
struct OwnFolder {
  std::string path = (std::filesystem::temp_directory_path() / "weft-kept-XXXXXX").string();
  OwnFolder() {
    if (mkdtemp(path.data())) runtime::FileCache::set_shared_directory(path);
  }
  ~OwnFolder() { std::filesystem::remove_all(path); }
} own_folder;

ir::PrimFunc twice(const char* name, const char* loop = "serial") {
  return ir::parse_func(cat("@T.prim_func\ndef main(", name, ": T.Buffer((8,), \"float32\")):\n",
                            "    for i in T.", loop, "(8):\n        ", name, "[i] = ", name,
                            "[i] + ", name, "[i]\n"));
}

TEST(ProgramCache, equal_programs_are_built_once) {
  Ref<Device> device = open_device("ref");
  int made = 0;
  auto make = [&](const char* name) { return [&made, name] { return ++made, twice(name); }; };
  const Ref<runtime::Function> one = built_program(device, {"test.twice", {1}}, make("A"));
  EXPECT_EQ(built_program(device, {"test.twice", {1}}, make("A")).get(), one.get());
  EXPECT_EQ(made, 1) << "a key that is known makes no program";
  EXPECT_EQ(built_program(device, {"test.twice", {2}}, make("B")).get(), one.get());
  EXPECT_EQ(made, 2);
  const Ref<runtime::Function> other = built_program(device, {"test.twice", {3}}, [] {
    return ir::parse_func(
        "@T.prim_func\ndef main(A: "
        "T.Buffer((8,), \"float32\")):\n"
        "    for i in T.serial(8):\n"
        "        A[i] = T.float32(2)\n");
  });
  EXPECT_NE(other.get(), one.get());

  NDArray x = full(device, Elem::float32, Dims{8}, Scalar(3.0));
  ProgramCall(device).array(x).run({"test.twice", {1}}, make("A"));
  float got = 0;
  x.read_element(7, &got);
  EXPECT_EQ(got, 6.0f);
}

TEST(ProgramCache, digests_tell_programs_apart) {
  auto digest = [](std::string_view params, std::string_view value) {
    const ir::Digest d = ir::structural_digest(ir::make_module(
        ir::parse_func(cat("@T.prim_func\ndef main(", params,
                           "):\n    for i in T.serial(8):\n        A[i] = ", value, "\n"))));
    return std::pair(d.high, d.low);
  };
  const char *array = "A: T.Buffer((8,), \"float32\")", *number = "s: T.float32";
  const auto first = digest(cat(array, ", ", number), "s");
  EXPECT_EQ(digest(cat(array, ", t: T.float32"), "t"), first) << "names do not matter";
  EXPECT_NE(digest(cat(number, ", ", array), "s"), first) << "the order of parameters does";
  EXPECT_NE(digest(cat(array, ", ", number), "s + s"), first);
  EXPECT_NE(digest(cat(array, ", ", number), "T.float32(1)"), first);
}

TEST(ProgramCache, threads_get_one_function) {
  Ref<Device> device = open_device("ref");
  std::vector<Ref<runtime::Function>> got(8);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < got.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t k = 0; k < 4; ++k)
        got[t] = built_program(device, {"test.threads", {k}}, [] { return twice("X"); });
    });
  }
  for (std::thread& t : threads) t.join();
  for (const auto& f : got) EXPECT_EQ(f.get(), got[0].get());
}

/// Counts what it is asked to load.
class CountingDevice final : public runtime::Device {
 public:
  CountingDevice() { info_.name = "ref"; }
  const runtime::DeviceInfo& info() const override { return info_; }
  Ref<Storage> allocate(runtime::Bytes bytes, runtime::Bytes, std::string_view space) override {
    return make_ref<Storage>(Ref<runtime::Device>(this), 4096, bytes, space);
  }
  void upload(Storage&, runtime::Bytes, const void*, runtime::Bytes) override {}
  void download(void*, const Storage&, runtime::Bytes, runtime::Bytes) override {}
  void copy(Storage&, runtime::Bytes, const Storage&, runtime::Bytes, runtime::Bytes) override {}
  Ref<runtime::Executable> load(runtime::Binary binary) override {
    ++loaded;
    return make_ref<runtime::Executable>(Ref<runtime::Device>(this), std::move(binary));
  }
  runtime::Event launch(runtime::Executable&, std::size_t, std::span<const runtime::KernelArg>,
                        std::span<const std::int64_t>) override {
    return {};
  }
  std::atomic<int> loaded{0};

 protected:
  void free_storage(std::uint64_t, runtime::Bytes, std::string_view) override {}

 private:
  runtime::DeviceInfo info_;
};

TEST(ProgramCache, threads_that_ask_at_once_build_once) {
  auto counting = make_ref<CountingDevice>();
  const Ref<Device> device = counting;
  constexpr int kThreads = 8;
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      // All have their programs before the first is built.
      built_program(device, {"test.at_once", {t}}, [&] {
        ++made;
        while (made < kThreads) std::this_thread::yield();
        return twice("Z");
      });
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(counting->loaded, 1);
}

TEST(ProgramCache, who_waited_for_a_build_that_failed_says_why) {
  Ref<Device> device = open_device("ref");
  std::atomic<int> made{0}, refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      try {
        built_program(device, {"test.racy_at_once", {t}}, [&] {
          ++made;
          while (made < 4) std::this_thread::yield();
          return ir::parse_func(
              "@T.prim_func\ndef main(A: T.Buffer((9,), \"float32\")):\n    for i in "
              "T.parallel(8):\n        A[i] = A[i + 1]\n");
        });
      } catch (const Error& e) {
        refused += e.code() == "verify.race";
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(refused, 4);
}

TEST(ProgramCache, programs_are_checked_and_named_in_errors) {
  Ref<Device> device = open_device("ref");
  auto racy = [] {
    return ir::parse_func(
        "@T.prim_func\ndef main(A: T.Buffer((9,), \"float32\")):\n    for i in T.parallel(8):\n"
        "        A[i] = A[i + 1]\n");
  };
  for (int again = 0; again < 2; ++again) {
    try {
      built_program(device, {"test.racy", {}}, racy);
      ADD_FAILURE() << "a race was built";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "verify.race");
      EXPECT_NE(std::string(e.what()).find("building test.racy for arrays on ref"),
                std::string::npos)
          << e.what();
    }
  }
  EXPECT_THROW((ProgramKey{"test.large", {std::int64_t{1} << 32}}), Error);
}

/// An entry of the cache is whole, but what it holds is no module, or one of another version.
TEST(KeptModules, that_cannot_be_read_are_made_again) {
  const runtime::FileCache& files = runtime::FileCache::shared();
  ASSERT_EQ(files.directory(), own_folder.path);
  std::vector<std::string> tried;
  for (const DeviceStatus& device : all_devices()) {
    const Target target = Target::parse(device.name);
    if (!device.available || !find_backend(target.name).facts(target)) continue;
    tried.push_back(device.name);
    SCOPED_TRACE(device.name);
    const ir::IRModule program = ir::make_module({{"main", twice("Kept")}});
    BuildOptions options;
    options.keep = true;
    std::set<std::string> before;
    for (const auto& file : std::filesystem::directory_iterator(files.directory()))
      before.insert(file.path().filename());
    const std::string source = build(program, device.name, options)->source();
    int found = 0;
    for (const auto& file : std::filesystem::directory_iterator(files.directory())) {
      const std::string name = file.path().filename();
      if (before.contains(name)) continue;
      const runtime::CacheKey key{std::stoull(name.substr(0, 16), nullptr, 16),
                                  std::stoull(name.substr(16), nullptr, 16)};
      const std::string held = files.load(key).value();
      if (!held.starts_with("WEFTMOD")) continue;  // code that a driver has made
      ++found;
      std::string other = held;
      ++other[8];  // the version
      for (const std::string& wrong : {std::string("no module"), other, held.substr(0, 60)}) {
        files.store(key, wrong);
        EXPECT_EQ(build(program, device.name, options)->source(), source);
        EXPECT_EQ(files.load(key), held);
      }
    }
    EXPECT_EQ(found, 1);
  }
  if (tried.empty()) GTEST_SKIP() << "no device whose modules are kept";
}

/// What lowering refuses of a program with a schedule of its own is an answer, no exception.
TEST(Accepts, says_what_building_throws) {
  const auto racy = [](const char* loop) {
    return ir::make_module(
        {{"main", ir::parse_func(cat("@T.prim_func\ndef main(A: T.Buffer((9,), \"float32\")):\n"
                                     "    for i in T.",
                                     loop, "(8):\n        A[i] = A[i + 1]\n"))}});
  };
  for (const char* target : {"ref", "null", "c"}) {
    SCOPED_TRACE(target);
    EXPECT_FALSE(accepts(racy("serial"), target));
    Verdict no;
    ASSERT_NO_THROW(no = accepts(racy("parallel"), target));
    ASSERT_TRUE(no);
    EXPECT_EQ(Error(ErrorKind::verify, std::move(*no)).code(), "verify.race");
    EXPECT_THROW(build(racy("parallel"), target), Error);
  }
}

}  // namespace
}  // namespace weft
