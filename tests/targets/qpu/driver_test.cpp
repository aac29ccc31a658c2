// SPDX-License-Identifier: Apache-2.0
// The driver of the chip against a board that records: exact messages, errors of every kind,
// timeouts, and that whatever was taken is given back.

#include "weft/targets/qpu/driver/device.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <deque>

#include "weft/targets/qpu/isa.h"
#include "weft/targets/qpu/language/kernel.h"

namespace weft::qpu::hw {
namespace {

constexpr std::uint32_t kPi1 = 0x20000000u, kPi3 = 0x3f000000u;

/// A Raspberry Pi in memory. Bus addresses are handed out from 0xc0000000 | 0x10000 on.
class FakeBoard final : public Board {
 public:
  explicit FakeBoard(std::uint32_t base = kPi3, bool wide_ranges = false) {
    files["/proc/device-tree/model"] = std::string("Raspberry Pi 3 Model B Rev 1.2\0", 31);
    std::string ranges(wide_ranges ? 16 : 12, '\0');
    ranges[0] = 0x7e;
    for (int i = 0; i < 4; ++i)
      ranges[static_cast<std::size_t>((wide_ranges ? 8 : 4) + i)] =
          static_cast<char>(base >> (24 - 8 * i));
    files["/proc/device-tree/soc/ranges"] = ranges;
  }
  std::optional<std::string> read_file(const std::string& path) override {
    auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  }
  int probe(const std::string& path) override { return no_open == path ? EACCES : 0; }
  int property(std::uint32_t* w) override {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(w) % 16, 0u);
    EXPECT_EQ(w[1], 0u);
    EXPECT_EQ(w[w[0] / 4 - 1], 0u) << "end tag";
    messages.emplace_back(w, w + w[0] / 4);
    std::uint32_t tag = w[2];
    if (fail_send == tag) return EPERM;
    w[1] = fail_status == tag ? 0x80000001u : 0x80000000u;
    if (fail_tag != tag) w[4] = 0x80000000u | w[3];
    if (fail_status == tag || fail_tag == tag) return 0;  // nothing done
    bool odd = fail_value == tag;
    switch (tag) {
      case 0x0003000c:
        if (odd) {
          w[5] = 0;
        } else {
          sizes[next_handle] = w[5];
          w[5] = next_handle++;
        }
        break;
      case 0x0003000d: {
        std::uint32_t handle = w[5];
        w[5] = odd ? 0 : 0xc0000000u + 0x10000u * handle;
        if (!odd) ++locked;
        break;
      }
      case 0x0003000e:
        --locked;
        w[5] = odd;
        break;
      case 0x0003000f:
        sizes.erase(w[5]);
        w[5] = odd;
        break;
      case 0x00030011:
        if (on_execute) on_execute(w + 5);
        w[5] = odd ? 0x80000000u : 0;
        break;
      case 0x00030012:
        enabled = odd ? enabled : w[5];
        w[5] = odd ? 0x80000000u : 0;
        break;
      case 0x00030002: w[6] = 300000000u; break;
      case 0x00010002: w[5] = 0xa02082u; break;
      default: ADD_FAILURE() << "tag " << tag;
    }
    return 0;
  }
  volatile void* map(std::uint64_t physical, std::size_t bytes, int* error) override {
    if (fail_map && physical == fail_map) {
      *error = EPERM;
      return nullptr;
    }
    EXPECT_EQ(physical % 4096, 0u);
    ++mapped;
    if (memory[physical].size() < bytes) memory[physical].resize(bytes);
    return memory[physical].data();
  }
  void unmap(volatile void*, std::size_t) override { --mapped; }
  std::uint32_t load(volatile void*, std::size_t offset) override {
    if (offset == 0) return ident;
    EXPECT_EQ(offset, 0x43cu);
    std::uint32_t s = statuses.empty() ? last_status : statuses.front();
    if (!statuses.empty()) statuses.pop_front();
    return s;
  }
  void store(volatile void*, std::size_t offset, std::uint32_t value) override {
    stores.push_back({offset, value});
  }
  double now() override { return time; }
  void rest() override { time += 0.001; }

  /// Nothing taken is left.
  void expect_clean() {
    EXPECT_EQ(mapped, 0);
    EXPECT_EQ(locked, 0);
    EXPECT_TRUE(sizes.empty());
    EXPECT_EQ(enabled, 0u);
  }
  std::uint32_t word(std::uint32_t bus, std::size_t i) {
    for (auto& [physical, bytes] : memory) {
      std::uint64_t at = bus & 0x3fffffffu;
      if (at < physical || at + 4 * i + 4 > physical + bytes.size()) continue;
      std::uint32_t v;
      std::memcpy(&v, bytes.data() + (at - physical) + 4 * i, 4);
      return v;
    }
    ADD_FAILURE() << "no memory at " << bus;
    return 0;
  }

  std::map<std::string, std::string> files;
  std::string no_open;
  std::vector<std::vector<std::uint32_t>> messages;
  std::uint32_t fail_send = 0, fail_status = 0, fail_tag = 0, fail_value = 0, enabled = 0;
  std::uint32_t next_handle = 7, ident = 0x02443356u, last_status = 0;
  std::uint64_t fail_map = 0;
  std::map<std::uint32_t, std::uint32_t> sizes;
  std::map<std::uint64_t, std::vector<unsigned char>> memory;
  std::deque<std::uint32_t> statuses;
  std::vector<std::pair<std::size_t, std::uint32_t>> stores;
  std::function<void(const std::uint32_t*)> on_execute;
  int mapped = 0, locked = 0;
  double time = 0;
};

runtime::Binary kernel(const char* text = "mov r0, unif\nnop; nop; thrend\nnop\nnop\n") {
  runtime::Binary b;
  b.format = "qpu";
  for (const Instr& i : assemble(text)) {
    Code word = encode(i);
    b.bytes.append(reinterpret_cast<const char*>(&word), 8);
  }
  b.metadata = Json::object();
  b.metadata["uniforms"] = Json(Json::Array{"me", "p0", "s0", "spill"});
  b.metadata["spill_bytes"] = Json(std::int64_t{128});
  return b;
}

/// Opens, loads, launches on `qpus`; everything is given back when it returns or throws.
void run(const std::shared_ptr<FakeBoard>& board, int qpus, HwOptions options = {},
         const char* text = nullptr) {
  auto device = make_ref<HwDevice>("qpu:hw", options, board);
  Ref<runtime::Storage> data = device->allocate(100, 64, "global");
  std::uint32_t value = 77;
  device->upload(*data, 96, &value, 4);
  Ref<runtime::Executable> program = device->load(text ? kernel(text) : kernel());
  runtime::KernelArg args[] = {runtime::KernelArg::pointer(data.get(), 16),
                               runtime::KernelArg::integer(-5)};
  std::int64_t extents[] = {qpus};
  device->launch(*program, 0, args, extents).wait();
  value = 0;
  device->download(&value, *data, 96, 4);
  EXPECT_EQ(value, 77u);
}

std::string code_of(const std::function<void()>& f, std::string* text = nullptr) {
  try {
    f();
  } catch (const Error& e) {
    if (text) *text = e.what();
    return e.code();
  }
  return "";
}

using Words = std::vector<std::uint32_t>;

TEST(QpuDriver, mailbox_messages_word_by_word) {
  auto board = std::make_shared<FakeBoard>();
  int runs = 0;
  board->on_execute = [&](const std::uint32_t* values) {
    ++runs;
    EXPECT_EQ(values[0], 2u);
    std::uint32_t control = values[1];
    EXPECT_EQ(values[2], 0u) << "caches are to be cleared";
    EXPECT_EQ(values[3], 10000u);
    std::uint32_t code = board->word(control, 1);
    EXPECT_EQ(board->word(control, 3), code);
    EXPECT_EQ(code >> 30, 3u) << "a bus address";
    Words words;
    for (std::size_t q = 0; q < 2; ++q)
      for (std::size_t u = 0; u < 4; ++u)
        words.push_back(board->word(board->word(control, q * 2), u));
    EXPECT_EQ(words[0], 0u);
    EXPECT_EQ(words[4], 1u);
    EXPECT_EQ(words[1], 0xc0000000u + 0x10000u * 7 + 16);
    EXPECT_EQ(words[2], static_cast<std::uint32_t>(-5));
    EXPECT_EQ(words[7] - words[3], 128u) << "spill areas lie apart";
    EXPECT_EQ(board->word(code, 2), 0x009e7000u) << "the code: thread end";
  };
  run(board, 2);
  EXPECT_EQ(runs, 1);
  board->expect_clean();
  ASSERT_GE(board->messages.size(), 12u);
  EXPECT_EQ(board->messages[0], (Words{28, 0, 0x00030012, 4, 4, 1, 0}));
  EXPECT_EQ(board->messages[1], (Words{32, 0, 0x00030002, 8, 4, 5, 0, 0}));
  EXPECT_EQ(board->messages[2], (Words{36, 0, 0x0003000c, 12, 12, 4096, 4096, 0x4, 0}));
  EXPECT_EQ(board->messages[3], (Words{28, 0, 0x0003000d, 4, 4, 7, 0}));
  EXPECT_EQ(board->messages.back(), (Words{28, 0, 0x00030012, 4, 4, 0, 0}));
  auto unlock = board->messages[board->messages.size() - 3],
       release = board->messages[board->messages.size() - 2];
  EXPECT_EQ(unlock[2], 0x0003000eu);
  EXPECT_EQ(release[2], 0x0003000fu);
  EXPECT_EQ(unlock[5], release[5]);
}

TEST(QpuDriver, address_maps_of_the_boards) {
  for (bool wide : {false, true}) {
    FakeBoard pi3(kPi3, wide);
    Found f = find_chip(pi3);
    EXPECT_TRUE(f.usable) << f.reason;
    EXPECT_EQ(f.peripherals, kPi3);
    EXPECT_FALSE(f.first_generation);
    EXPECT_EQ(f.model, "Raspberry Pi 3 Model B Rev 1.2");
  }
  auto pi1 = std::make_shared<FakeBoard>(kPi1);
  EXPECT_TRUE(find_chip(*pi1).first_generation);
  run(pi1, 1);
  EXPECT_EQ(pi1->messages[2][7], 0xcu) << "a Pi 1 shares the L2";
  pi1->expect_clean();
}

TEST(QpuDriver, what_is_missing_is_named) {
  auto reason = [](const std::function<void(FakeBoard&)>& change) {
    FakeBoard board;
    change(board);
    Found f = find_chip(board);
    EXPECT_FALSE(f.usable);
    return f.reason;
  };
  auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(reason([](FakeBoard& b) { b.files.clear(); }),
      "not on a Raspberry Pi: there is no /proc/device-tree/model");
  has(reason([](FakeBoard& b) { b.files["/proc/device-tree/model"] = "Other Board"; }),
      "says \"Other Board\"");
  has(reason([](FakeBoard& b) { b.files.erase("/proc/device-tree/soc/ranges"); }), "is missing");
  has(reason([](FakeBoard& b) { b.files["/proc/device-tree/soc/ranges"] = "x"; }), "too short");
  has(reason([](FakeBoard& b) {
        b.files["/proc/device-tree/soc/ranges"] = std::string("\x7e\0\0\0\xfe\0\0\0\0\0\0\0", 12);
      }),
      "0xfe000000");
  has(reason([](FakeBoard& b) { b.no_open = "/dev/vcio"; }), "/dev/vcio cannot be opened");
  has(reason([](FakeBoard& b) { b.no_open = "/dev/mem"; }), "run as root");
  auto board = std::make_shared<FakeBoard>();
  board->files.clear();
  std::string text;
  EXPECT_EQ(code_of([&] { HwDevice("qpu:hw", {}, board); }, &text), "qpu.absent");
  has(text, "/proc/device-tree/model");
  EXPECT_TRUE(board->messages.empty());
}

TEST(QpuDriver, every_error_of_the_mailbox_gives_everything_back) {
  struct Case {
    std::uint32_t FakeBoard::*how;
    std::uint32_t tag;
    const char *slug, *part;
  };
  const Case cases[] = {
      {&FakeBoard::fail_send, 0x00030012, "qpu.hw.mailbox.send", "errno 1"},
      {&FakeBoard::fail_status, 0x00030012, "qpu.hw.mailbox.status", "0x80000001"},
      {&FakeBoard::fail_tag, 0x00030012, "qpu.hw.mailbox.tag", "0x00030012"},
      {&FakeBoard::fail_value, 0x00030012, "qpu.hw.enable", "vc4-kms-v3d"},
      {&FakeBoard::fail_send, 0x00030002, "qpu.hw.mailbox.send", "clock"},
      {&FakeBoard::fail_value, 0x0003000c, "qpu.hw.memory.exhausted", "gpu_mem"},
      {&FakeBoard::fail_tag, 0x0003000c, "qpu.hw.mailbox.tag", "allocate memory"},
      {&FakeBoard::fail_value, 0x0003000d, "qpu.hw.memory.lock", "handle 7"},
      {&FakeBoard::fail_status, 0x0003000d, "qpu.hw.mailbox.status", "lock memory"},
      {&FakeBoard::fail_value, 0x00030011, "qpu.hw.timeout", "within 10000 ms"},
      {&FakeBoard::fail_send, 0x00030011, "qpu.hw.mailbox.send", "run the QPUs"},
  };
  for (const Case& c : cases) {
    auto board = std::make_shared<FakeBoard>();
    (*board).*c.how = c.tag;
    std::string text;
    EXPECT_EQ(code_of([&] { run(board, 3); }, &text), c.slug);
    EXPECT_NE(text.find(c.part), std::string::npos) << text;
    board->expect_clean();
    (*board).*c.how = 0;  // and the next attempt works
    run(board, 3);
    board->expect_clean();
  }
  // Where giving back fails, the rest is still given back.
  for (std::uint32_t tag : {0x0003000eu, 0x0003000fu}) {
    auto board = std::make_shared<FakeBoard>();
    board->fail_value = tag;
    run(board, 1);
    EXPECT_EQ(board->mapped, 0);
    EXPECT_TRUE(board->sizes.empty());
    EXPECT_EQ(board->enabled, 0u);
    Mailbox mailbox(*board);
    EXPECT_EQ(code_of([&] { tag == 0x0003000e ? mailbox.unlock(9) : mailbox.release(9); }),
              tag == 0x0003000e ? "qpu.hw.memory.unlock" : "qpu.hw.memory.release");
  }
  auto board = std::make_shared<FakeBoard>();
  board->fail_map = 0x10000 * 7;
  EXPECT_EQ(code_of([&] { run(board, 1); }), "qpu.hw.memory.map");
  board->expect_clean();
  EXPECT_EQ(Mailbox(*board).board_revision(), 0xa02082u);
}

TEST(QpuDriver, registers_start_and_watch_the_programs) {
  HwOptions options;
  options.launch = LaunchBy::registers;
  auto board = std::make_shared<FakeBoard>();
  board->statuses = {0x00000302u, 0x00010302u, 0x00030300u};
  run(board, 3, options);
  board->expect_clean();
  EXPECT_TRUE(board->statuses.empty());
  for (const auto& m : board->messages) EXPECT_NE(m[2], 0x00030011u);
  std::vector<std::pair<std::size_t, std::uint32_t>> fixed = {
      {0x504, 16}, {0xe00, 0},          {0xe2c, 0},         {0xe30, 0xffffffffu},
      {0x020, 4},  {0x024, 0x0f0f0f0f}, {0x43c, 0x00010181}};
  ASSERT_EQ(board->stores.size(), fixed.size() + 9);
  for (std::size_t i = 0; i < fixed.size(); ++i) EXPECT_EQ(board->stores[i], fixed[i]) << i;
  for (std::size_t q = 0; q < 3; ++q) {
    auto* s = &board->stores[fixed.size() + 3 * q];
    EXPECT_EQ(s[0].first, 0x434u);
    EXPECT_EQ(s[1], (std::pair<std::size_t, std::uint32_t>{0x438, 1024}));
    EXPECT_EQ(s[2].first, 0x430u);
    EXPECT_EQ(s[0].second - board->stores[fixed.size()].second, 16 * q);
    EXPECT_EQ(s[2].second, board->stores[fixed.size() + 2].second);
  }
  std::string text;
  board = std::make_shared<FakeBoard>();
  board->last_status = 0x00010302u;
  options.timeout_ms = 50;
  EXPECT_EQ(code_of([&] { run(board, 3, options); }, &text), "qpu.hw.timeout");
  EXPECT_NE(text.find("1 finished"), std::string::npos) << text;
  EXPECT_NEAR(board->time, 0.05, 0.002);
  EXPECT_EQ(board->stores.back(), (std::pair<std::size_t, std::uint32_t>{0x43c, 0x00010181}));
  board->expect_clean();
  board = std::make_shared<FakeBoard>();
  board->last_status = 0x00000380u;
  EXPECT_EQ(code_of([&] { run(board, 3, options); }), "qpu.hw.queue");
  board->expect_clean();
  board = std::make_shared<FakeBoard>();
  board->ident = 0xdeadbeefu;
  EXPECT_EQ(code_of([&] { run(board, 3, options); }, &text), "qpu.hw.registers.ident");
  EXPECT_NE(text.find("0xdeadbeef"), std::string::npos);
  board->expect_clean();
  board = std::make_shared<FakeBoard>();
  board->fail_map = kPi3 + 0xc00000;
  EXPECT_EQ(code_of([&] { run(board, 3, options); }), "qpu.hw.registers.map");
  board->expect_clean();
}

TEST(QpuDriver, bad_input) {
  auto board = std::make_shared<FakeBoard>();
  EXPECT_EQ(code_of([&] { run(board, 13); }), "qpu.launch.qpus");
  EXPECT_EQ(code_of([&] { run(board, 0); }), "qpu.launch.qpus");
  board->expect_clean();
  EXPECT_EQ(code_of([&] { run(board, 1, {}, "nop; nop; bkpt\nnop; nop; thrend\nnop\nnop\n"); }),
            "qpu.hw.breakpoint");
  {
    auto device = make_ref<HwDevice>("qpu:hw", HwOptions{}, board);
    runtime::Binary b = kernel();
    b.format = "vta";
    EXPECT_EQ(code_of([&] { device->load(b); }), "device.binary.format");
    b = kernel();
    b.bytes.pop_back();
    EXPECT_EQ(code_of([&] { device->load(b); }), "qpu.binary.size");
    Ref<runtime::Storage> s = device->allocate(8, 64, "global");
    std::uint32_t w = 0;
    EXPECT_EQ(code_of([&] { device->upload(*s, 6, &w, 4); }), "device.access");
    EXPECT_EQ(code_of([&] { device->allocate(std::uint64_t{1} << 40, 64, "global"); }),
              "qpu.hw.memory.exhausted");
    EXPECT_EQ(device->info().clock_hz, 300e6);
  }
  board->expect_clean();
  EXPECT_EQ(code_of([] { parse_hw_options("qpu:hw,launch=magic"); }), "qpu.device.option");
  EXPECT_EQ(code_of([] { parse_hw_options("qpu:hw,qpus=13"); }), "qpu.device.option");
  EXPECT_EQ(parse_hw_options("qpu:hw,launch=registers,timeout=5,qpus=3").timeout_ms, 5u);
  EXPECT_TRUE(names_chip("qpu:hw"));
  EXPECT_FALSE(names_chip("qpu:qpus=2"));
}

TEST(QpuDriver, bad_arguments_leave_the_chip_usable) {
  auto board = std::make_shared<FakeBoard>();
  int runs = 0;
  board->on_execute = [&](const std::uint32_t*) { ++runs; };
  {
    auto device = make_ref<HwDevice>("qpu:hw", HwOptions{}, board);
    auto other = make_ref<HwDevice>("qpu:hw,qpus=3", HwOptions{}, std::make_shared<FakeBoard>());
    Ref<runtime::Storage> data = device->allocate(100, 64, "global"),
                          elsewhere = other->allocate(100, 64, "global");
    Ref<runtime::Executable> program = device->load(kernel());
    std::size_t blocks = board->sizes.size();
    using runtime::KernelArg;
    auto launch = [&](std::vector<KernelArg> args, std::int64_t qpus = 1, std::size_t which = 0) {
      std::int64_t extents[] = {qpus};
      device->launch(*program, which, args, extents).wait();
    };
    const KernelArg pointer = KernelArg::pointer(data.get()), five = KernelArg::integer(5);
    struct Case {
      std::vector<KernelArg> args;
      std::int64_t qpus;
      std::size_t which;
      const char *slug, *part;
    };
    const Case cases[] = {
        {{KernelArg::pointer(data.get(), 2), five}, 1, 0, "qpu.launch.align", "multiple of 4"},
        {{five}, 1, 0, "qpu.launch.unbound", "pointer parameter 0"},
        {{pointer}, 1, 0, "qpu.launch.unbound", "scalar parameter 0"},
        {{KernelArg::pointer(nullptr), five}, 1, 0, "qpu.launch.unbound", "pointer parameter 0"},
        {{pointer, KernelArg::integer(std::int64_t{1} << 40)}, 1, 0, "qpu.launch.range", "32 bits"},
        {{KernelArg::pointer(elsewhere.get()), five}, 1, 0, "qpu.launch.device", "qpu:hw,qpus=3"},
        {{pointer, five}, 13, 0, "qpu.launch.qpus", "13 QPUs"},
        {{pointer, five}, 1, 1, "qpu.launch.kernel", "number 1"},
    };
    for (const Case& c : cases) {
      std::string text;
      EXPECT_EQ(code_of([&] { launch(c.args, c.qpus, c.which); }, &text), c.slug);
      EXPECT_NE(text.find(c.part), std::string::npos) << text;
      EXPECT_EQ(board->sizes.size(), blocks) << c.slug << " left memory behind";
      EXPECT_EQ(runs, 0) << c.slug << " reached the chip";
    }
    launch({pointer, five}, 12);
    EXPECT_EQ(runs, 1);
    // Damaged binaries are refused before anything is taken.
    auto load = [&](const std::function<void(runtime::Binary&)>& spoil) {
      runtime::Binary bad = kernel();
      spoil(bad);
      std::string code = code_of([&] { device->load(bad); });
      EXPECT_EQ(board->sizes.size(), blocks) << code;
      return code;
    };
    EXPECT_EQ(load([](auto& b) { b.bytes.clear(); }), "qpu.binary.empty");
    EXPECT_EQ(load([](auto& b) { b.bytes[7] = '\xf0', b.bytes[6] = '\xc8'; }), "qpu.binary.word");
    EXPECT_EQ(load([](auto& b) { b.metadata["uniforms"] = Json(Json::Array{"x9"}); }),
              "qpu.binary.uniform");
    launch({pointer, five});
    EXPECT_EQ(runs, 2);
    // A kernel that does not end: the device is used again afterwards.
    board->fail_value = 0x00030011;
    EXPECT_EQ(code_of([&] { launch({pointer, five}); }), "qpu.hw.timeout");
    EXPECT_EQ(board->sizes.size(), blocks);
    board->fail_value = 0;
    launch({pointer, five});
    EXPECT_EQ(runs, 4);
  }
  board->expect_clean();
}

TEST(QpuDriver, what_only_the_emulator_can_do) {
  std::string text;
  EXPECT_EQ(
      code_of([] { detail::only_emulator(nullptr, "qpu:hw", "show what kernels print"); }, &text),
      "qpu.hw.emulator_only");
  EXPECT_NE(text.find("\"qpu:hw\" cannot show what kernels print"), std::string::npos) << text;
}

TEST(QpuDriver, this_machine_answers_with_a_reason) {
  std::shared_ptr<Board> board = this_board();
  Found f = find_chip(*board);
  if (f.usable) GTEST_SKIP() << "a Raspberry Pi: " << f.model;
  EXPECT_NE(f.reason, "");
  EXPECT_FALSE(board->read_file("/nowhere"));
  EXPECT_EQ(board->probe("/nowhere"), ENOENT);
  EXPECT_GT(board->now(), 0);
  std::uint32_t words[8] = {};
  if (board->probe("/dev/vcio")) {
    EXPECT_NE(board->property(words), 0);
  }
}

}  // namespace
}  // namespace weft::qpu::hw
