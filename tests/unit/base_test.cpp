// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "weft/base/dtype.h"
#include "weft/base/error.h"
#include "weft/base/fork_safe_mutex.h"
#include "weft/base/json.h"
#include "weft/base/patient_lock.h"
#include "weft/base/repairs.h"
#include "weft/base/text.h"

namespace weft {

TEST(DType, every_name_reads_back) {
  for (const char* name :
       {"bool", "int8", "uint64", "float16", "bfloat16", "float32x4", "complex128"}) {
    EXPECT_EQ(to_string(parse_dtype(name)), name);
  }
  try {
    parse_dtype("flaot32");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "dtype.unknown");
    EXPECT_NE(std::string(error.what()).find("did you mean \"float32\"?"), std::string::npos);
  }
}

TEST(DType, half_and_bfloat_round_to_nearest_even) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    auto half = static_cast<std::uint16_t>(bits);
    float value = half_to_float(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(half_to_float(float_to_half(value))));
    } else {
      EXPECT_EQ(float_to_half(value), half);
    }
    float wide = bfloat_to_float(half);
    if (!std::isnan(wide)) {
      EXPECT_EQ(float_to_bfloat(wide), half);
    }
  }
  EXPECT_EQ(float_to_half(65519.0f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(2049.0f), float_to_half(2048.0f));
  EXPECT_EQ(float_to_half(2051.0f), float_to_half(2052.0f));
  EXPECT_EQ(double_to_half(2049.0000001), float_to_half(2050.0f));
}

TEST(Json, reads_what_it_writes) {
  std::string text = R"({"a": [1, 2.5, -3, true, null, "x\n\"é"], "b": {"c": 9007199254740993}})";
  Json value = Json::parse(text);
  EXPECT_EQ(value.at("b").at("c").as_int(), 9007199254740993);
  EXPECT_EQ(Json::parse(value.dump()), value);
  EXPECT_EQ(Json::parse(value.dump(2)), value);
}

TEST(Json, escapes_become_utf_8) {
  auto read = [](const char* escapes) { return Json::parse(cat("\"", escapes, "\"")).as_string(); };
  EXPECT_EQ(read("\\u0041\\u007f"), "A\x7f");
  EXPECT_EQ(read("\\u0080\\u00e9\\u07ff"), "\xc2\x80\xc3\xa9\xdf\xbf");
  EXPECT_EQ(read("\\u0800\\u20aC\\uffff"), "\xe0\xa0\x80\xe2\x82\xac\xef\xbf\xbf");
  EXPECT_EQ(read("\\ud800\\udc00\\ud83d\\ude00\\udbff\\udfff"),
            "\xf0\x90\x80\x80\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf");
  // A second half that stands first begins no pair.
  EXPECT_EQ(read("\\udc00\\u0041"),
            "\xed\xb0\x80"
            "A");
  EXPECT_THROW(read("\\ud800\\u0041"), Error);
  EXPECT_THROW(read("\\ud800\\ue000"), Error);
  EXPECT_THROW(read("\\u00g0"), Error);
}

TEST(Json, errors_show_the_place) {
  try {
    Json::parse("{\"a\": 1,\n  \"b\" 2}");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "json.parse");
    EXPECT_NE(error.message().find(":2:7:"), std::string::npos) << error.message();
  }
  std::string deep(1000, '[');
  EXPECT_THROW(Json::parse(deep), Error);
  EXPECT_THROW(Json::parse("[1] x"), Error);
  EXPECT_THROW(Json::parse("\"\\q\""), Error);
}

TEST(Json, a_number_ends_with_its_text) {
  const std::string digits =
      "1234567.5e3";  // what follows the part that is read is a number's, too
  EXPECT_EQ(Json::parse(std::string_view(digits).substr(0, 2)).as_int(), 12);
  EXPECT_EQ(Json::parse(std::string_view(digits).substr(0, 7)).as_int(), 1234567);
  EXPECT_EQ(Json::parse(std::string_view(digits).substr(0, 9)).as_double(), 1234567.5);
}

TEST(Json, random_bytes_never_crash) {
  std::mt19937 rng(7);
  const std::string alphabet = "{}[]\",:0123456789.eE-+ tfn\\u\"aul";
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (unsigned n = rng() % 24; n--;) text += alphabet[rng() % alphabet.size()];
    try {
      Json value = Json::parse(text);
      EXPECT_EQ(Json::parse(value.dump()), value) << text;
      ++accepted;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(accepted, 10);
}

TEST(Error, renders_places_notes_and_help) {
  Error error(ErrorKind::shape, "array.matmul.inner",
              "matmul needs equal inner extents, but they are 64 and 10");
  error.at("left", "float32[32, 64]")
      .note("rule: [m, k] by [k, n]")
      .help("transpose the right one");
  std::string text = error.what();
  EXPECT_TRUE(text.starts_with("error[array.matmul.inner]: matmul needs")) << text;
  EXPECT_NE(text.find("left   float32[32, 64]"), std::string::npos) << text;
  EXPECT_NE(text.find(" = help: transpose"), std::string::npos) << text;
}

TEST(Error, takes_the_repair_of_its_slug) {
  const Error plain(ErrorKind::io, "file.read", "cannot read \"x\"");
  EXPECT_EQ(plain.refusal().help, "check the path and its rights");
  EXPECT_NE(std::string(plain.what()).find("\n = help: check the path"), std::string::npos);
  // Families: one word in place of the star, and none where the slug has nothing there.
  EXPECT_FALSE(Error(ErrorKind::shape, "array.any_name.rank", "x").refusal().help.empty());
  EXPECT_TRUE(Error(ErrorKind::shape, "array.rank", "x").refusal().help.empty());
  EXPECT_TRUE(Error(ErrorKind::shape, "no.such.slug", "x").refusal().help.empty());
  // Help of the case at hand wins, wherever it is given; no help is no reason to lose the row's.
  EXPECT_EQ(Error(ErrorKind::io, Refusal{"file.read", "x", {}, {}, "own"}).refusal().help, "own");
  EXPECT_EQ(Error(ErrorKind::io, "file.read", "x").help("own").refusal().help, "own");
  EXPECT_EQ(Error(ErrorKind::io, "file.read", "x").help("").refusal().help, plain.refusal().help);
}

TEST(Error, every_repair_is_one_line_for_one_slug) {
  std::set<std::string_view> seen;
  for (const RepairRow& row : repair_rows()) {
    EXPECT_TRUE(seen.insert(row.slug).second) << row.slug << " has two rows";
    EXPECT_FALSE(row.text.empty()) << row.slug;
    EXPECT_TRUE(!row.text.ends_with(".") || row.text.ends_with("..."))
        << row.slug;  // no sentence; Python's ellipsis may end one
    EXPECT_EQ(row.text.find('\n'), std::string_view::npos) << row.slug;
  }
  EXPECT_GT(seen.size(), 400u);
}

TEST(Error, checks_of_ours_say_so) {
  try {
    WEFT_CHECK(1 == 2, "one is ", 1);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    EXPECT_NE(error.message().find("1 == 2: one is 1"), std::string::npos);
  }
}

TEST(Text, what_was_meant_is_the_first_of_the_nearest) {
  // A name cut short counts as one slip, whatever is missing.
  EXPECT_EQ(did_you_mean("til", {"tip", "tiling"}), "did you mean \"tip\"?");
  EXPECT_EQ(did_you_mean("til", {"tiling", "tip"}), "did you mean \"tiling\"?");
  EXPECT_EQ(did_you_mean("til", {"other", "tilted by much"}), "did you mean \"tilted by much\"?");
  EXPECT_EQ(did_you_mean("ti", {"tilted"}), "");  // two letters are no beginning
  EXPECT_EQ(did_you_mean("tile", {"tiles", "tile"}), "");
  EXPECT_EQ(did_you_mean("loom", {"shuttle"}), "");
}

/// Children that are forked while other threads hold one of two locks, one inside the other.
TEST(ForkSafeMutex, nobody_holds_it_in_a_child) {
  ForkSafeMutex outer, inner;
  std::atomic<bool> going = true;
  std::int64_t count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      while (going) {
        std::unique_lock one(t % 2 ? outer : inner);
        std::unique_lock<ForkSafeMutex> two;
        if (t % 2) two = std::unique_lock(inner);
        for (int k = 0; k < 200; ++k) count += k;
        if (t == 1) ForkSafeMutex another;  // the list of all changes meanwhile
      }
    });
  }
  std::atomic<int> bad = 0;
  const auto fork_often = [&] {
    for (int k = 0; k < 100 && bad <= 2; ++k) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(60);  // ends it when it hangs
        std::lock_guard one(outer);
        std::lock_guard two(inner);
        _exit(0);
      }
      int status = -1;
      waitpid(child, &status, 0);
      bad += status != 0;
    }
  };
  std::thread other(fork_often);  // two threads that fork at once
  fork_often();
  other.join();
  going = false;
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(bad, 0);
  EXPECT_TRUE(outer.try_lock());
  outer.unlock();
}

TEST(PatientLock, waits_as_it_is_told) {
  std::mutex mutex;
  static int told = 0;
  { EXPECT_TRUE(patient_lock(mutex).owns_lock()); }
  set_patience([](const std::function<void()>& wait) {
    ++told;
    wait();
  });
  { EXPECT_TRUE(patient_lock(mutex).owns_lock()); }
  EXPECT_EQ(told, 0) << "a lock that is free is taken at once";
  std::unique_lock held(mutex);
  std::thread other([&] { EXPECT_TRUE(patient_lock(mutex).owns_lock()); });
  while (told == 0) usleep(100);
  held.unlock();
  other.join();
  EXPECT_EQ(told, 1);
  set_patience(nullptr);
  held.lock();
  std::thread last([&] { EXPECT_TRUE(patient_lock(mutex).owns_lock()); });
  usleep(1000);
  held.unlock();
  last.join();
  EXPECT_EQ(told, 1);
}

}  // namespace weft
