// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/runtime/cache.h"

namespace weft::runtime {
namespace {

struct Scratch {
  std::string path;
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weft-cache-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~Scratch() { std::filesystem::remove_all(path); }
};

TEST(KernelCache, gives_back_what_was_put) {
  Scratch scratch;
  KernelCache cache(scratch.path + "/a/b");
  EXPECT_FALSE(cache.get("elf", "key"));
  std::string value("bytes\0with zero", 15);
  cache.put("elf", "key", value);
  EXPECT_EQ(cache.get("elf", "key"), value);
  EXPECT_FALSE(cache.get("elf", "other"));
  EXPECT_FALSE(cache.get("cubin", "key"));
}

TEST(KernelCache, damage_is_a_miss) {
  Scratch scratch;
  KernelCache cache(scratch.path + "/c");
  cache.put("elf", "key", "the value");
  std::string file = cache.path("elf", "key"), content = read_file(file);
  for (std::size_t cut = 0; cut < content.size(); ++cut) {
    write_file_atomic(file, content.substr(0, cut));
    EXPECT_FALSE(cache.get("elf", "key")) << cut;
  }
  for (std::size_t i = 0; i < content.size(); ++i) {
    std::string changed = content;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    write_file_atomic(file, changed);
    EXPECT_FALSE(cache.get("elf", "key")) << i;
  }
  write_file_atomic(file, content);
  EXPECT_EQ(cache.get("elf", "key"), "the value");
}

TEST(KernelCache, a_directory_of_others_is_refused) {
  Scratch scratch;
  std::string open = scratch.path + "/open";
  ASSERT_EQ(::mkdir(open.c_str(), 0700), 0);
  KernelCache cache(open);
  cache.put("elf", "key", "v");
  ASSERT_EQ(::chmod(open.c_str(), 0755), 0);
  EXPECT_FALSE(cache.get("elf", "key"));
  try {
    cache.put("elf", "key", "v");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "cache.directory");
    EXPECT_NE(std::string(error.what()).find("chmod 700"), std::string::npos);
  }
  EXPECT_NO_THROW(KernelCache("").put("elf", "key", "v"));
}

TEST(KernelCache, concurrent_writers_leave_whole_files) {
  Scratch scratch;
  KernelCache cache(scratch.path + "/d");
  std::string big(100000, 'x');
  std::vector<std::thread> threads;
  std::atomic<int> torn{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        cache.put("elf", "key", big);
        auto value = cache.get("elf", "key");
        if (!value || *value != big) ++torn;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(torn, 0);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path + "/d")) files += entry.is_regular_file();
  EXPECT_EQ(files, 1u);
}

}  // namespace
}  // namespace weft::runtime
