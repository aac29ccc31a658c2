// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
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

CacheKey key() { return CacheKey::of("key"); }

TEST(FileCache, gives_back_what_was_stored) {
  Scratch scratch;
  FileCache cache(scratch.path + "/a/b");
  EXPECT_FALSE(cache.load(key()));
  std::string value("bytes\0with zero", 15);
  cache.store(key(), value);
  EXPECT_EQ(cache.load(key()), value);
  EXPECT_FALSE(cache.load(CacheKey::of("other")));
  EXPECT_EQ(cache.get(CacheKey::of("made"), [] { return std::string("new"); }), "new");
  EXPECT_EQ(
      cache.get(CacheKey::of("made"),
                []() -> std::string { throw Error(ErrorKind::internal, "test", "made twice"); }),
      "new");
}

std::string refusal(const FileCache& cache) {
  try {
    cache.load(key());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    return error.code();
  }
  return "";
}

TEST(FileCache, a_damaged_entry_is_a_typed_error_and_is_made_again) {
  Scratch scratch;
  FileCache cache(scratch.path + "/c");
  cache.store(key(), "the value");
  std::string file = cache.path(key()), content = read_file(file);
  for (std::size_t cut = 0; cut < content.size(); ++cut) {
    write_file_atomic(file, content.substr(0, cut));
    EXPECT_EQ(refusal(cache), cut < 8 ? "cache.file.foreign" : "cache.file.truncated") << cut;
  }
  for (std::size_t i = 0; i < content.size(); ++i) {
    std::string changed = content;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    write_file_atomic(file, changed);
    EXPECT_EQ(refusal(cache), i < 8    ? "cache.file.foreign"
                              : i < 12 ? "cache.file.version"
                              : i < 20 ? "cache.file.truncated"
                                       : "cache.file.checksum")
        << i;
  }
  EXPECT_EQ(cache.get(key(), [] { return std::string("made again"); }), "made again");
  EXPECT_EQ(cache.load(key()), "made again");
}

TEST(FileCache, a_value_that_cannot_be_kept_is_given_all_the_same) {
  Scratch scratch;
  FileCache cache(scratch.path + "/gone");
  std::filesystem::remove_all(scratch.path + "/gone");
  EXPECT_THROW(cache.store(key(), "value"), Error);
  EXPECT_EQ(cache.get(key(), [] { return std::string("made"); }), "made");
  EXPECT_THROW(
      cache.get(key(),
                []() -> std::string { throw Error(ErrorKind::io, "test.make", "not made"); }),
      Error);
}

TEST(FileCache, a_directory_open_to_others_is_refused) {
  Scratch scratch;
  std::string open = scratch.path + "/open";
  ASSERT_EQ(::mkdir(open.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(open.c_str(), 0755), 0);
  try {
    FileCache cache(open);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "cache.directory");
    EXPECT_NE(std::string(error.what()).find("chmod 700"), std::string::npos);
  }
}

TEST(FileCache, concurrent_writers_leave_whole_files) {
  Scratch scratch;
  FileCache cache(scratch.path + "/d");
  std::string big(100000, 'x');
  std::vector<std::thread> threads;
  std::atomic<int> torn{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        cache.store(key(), big);
        auto value = cache.load(key());
        if (!value || *value != big) ++torn;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(torn, 0);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path + "/d"))
    files += entry.is_regular_file();
  EXPECT_EQ(files, 1u);
}

}  // namespace
}  // namespace weft::runtime
