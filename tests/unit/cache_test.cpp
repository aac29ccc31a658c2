// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <set>
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

/// Two hashes that have nothing to do with one another: 128 bits, not twice the same 64.
TEST(CacheKeys, both_halves_depend_on_the_content) {
  std::set<std::uint64_t> halves;
  for (const char* content :
       {"", "a", "b", "ab", "ba", "key", "key ", "a longer key of a program"}) {
    const CacheKey key = CacheKey::of(content);
    halves.insert(key.high), halves.insert(key.low);
    EXPECT_EQ(key.text(), CacheKey::of(content).text());
    EXPECT_EQ(key.text().size(), 32u);
  }
  EXPECT_EQ(halves.size(), 16u);
}

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

TEST(FileCache, a_directory_that_others_could_exchange_is_refused) {
  Scratch scratch;
  const std::string shared = scratch.path + "/shared";
  ASSERT_EQ(::mkdir(shared.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(shared.c_str(), 0777), 0);
  try {
    FileCache cache(shared + "/mine");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "cache.directory");
    EXPECT_NE(std::string(error.what()).find("which others can change"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(shared), std::string::npos);
  }
  ASSERT_EQ(::chmod(shared.c_str(), 01777), 0);  // as /tmp: others cannot rename what is mine
  EXPECT_NO_THROW(FileCache(shared + "/mine"));
}

TEST(FileCache, without_a_directory_nothing_is_kept) {
  FileCache cache("");
  cache.store(key(), "value");
  EXPECT_FALSE(cache.load(key()));
  EXPECT_EQ(cache.get(key(), [] { return std::string("made"); }), "made");
  cache.discard(key());
}

TEST(FileCache, the_longest_unused_entries_go_first) {
  Scratch scratch;
  FileCache cache(scratch.path + "/bounded", 100000);
  auto numbered = [](int i) { return CacheKey::of(std::to_string(i)); };
  const std::string value(10000, 'v');
  for (int i = 0; i < 6; ++i) {
    cache.store(numbered(i), value);
    const auto age = std::chrono::hours(10 - i);
    std::filesystem::last_write_time(cache.path(numbered(i)),
                                     std::filesystem::file_time_type::clock::now() - age);
  }
  EXPECT_TRUE(cache.load(numbered(0)));  // used now
  for (int i = 6; i < 12; ++i) cache.store(numbered(i), value);
  EXPECT_TRUE(cache.load(numbered(0)));
  EXPECT_FALSE(cache.load(numbered(1)));
  EXPECT_FALSE(cache.load(numbered(2)));
  EXPECT_TRUE(cache.load(numbered(11)));
  std::uint64_t total = 0;
  for (const auto& e : std::filesystem::directory_iterator(scratch.path + "/bounded"))
    total += e.file_size();
  EXPECT_LE(total, 100000u);
}

TEST(FileCache, what_killed_processes_left_is_removed) {
  Scratch scratch;
  FileCache cache(scratch.path + "/c");
  const std::string old = scratch.path + "/c/x.weft-tmp-0123", young = old + "4";
  for (const std::string& file : {old, young}) write_file_atomic(file, "half");
  std::filesystem::last_write_time(
      old, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  cache.store(key(), "value");
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(young));  // may be at work
}

TEST(WriteFileAtomic, names_beside_the_file_are_not_guessed_and_links_not_followed) {
  Scratch scratch;
  const std::string path = scratch.path + "/file", other = scratch.path + "/other";
  write_file_atomic(other, "mine");
  ASSERT_EQ(::symlink(other.c_str(), path.c_str()), 0);  // the link itself is replaced
  write_file_atomic(path, "new");
  EXPECT_EQ(read_file(other), "mine");
  EXPECT_EQ(read_file(path), "new");
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(info.st_mode & 0777, 0666 & ~mask);
  // The names that were guessed once: process and count.
  for (int i = 0; i < 64; ++i) {
    const std::string guess = path + ".tmp" + std::to_string(::getpid()) + "-" + std::to_string(i);
    ASSERT_EQ(::symlink(other.c_str(), guess.c_str()), 0);
  }
  for (int i = 0; i < 64; ++i) write_file_atomic(path, "again");
  EXPECT_EQ(read_file(other), "mine");
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
