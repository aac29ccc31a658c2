// SPDX-License-Identifier: Apache-2.0
// The board driver over a recorded, executing fake: register by register, and a whole product.
#include "weft/targets/vta/board.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support.h"
#include "weft/runtime/programmable.h"
#include "weft/sim/memory.h"
#include "weft/targets/vta/engine.h"
#include "weft/targets/vta/execute.h"
#include "weft/targets/vta/schedules.h"

namespace weft::vta {
namespace {

struct Access {
  bool write;
  std::uint64_t address;
  std::uint32_t value;
  bool operator==(const Access&) const = default;
};

/// A board in memory: records register accesses, and runs the stream when it is started.
class FakeBus final : public BoardBus {
 public:
  explicit FakeBus(const Config& config, std::vector<Access>& log, bool hangs = false)
      : isa_(config), log_(log), hangs_(hangs), memory_("board", 1 << 24, 0x10000000) {
    memory_.allocate(1 << 24, 4096);
  }
  std::uint32_t read(std::uint64_t address) override {
    const auto& page = isa_.config().board().registers;
    std::uint32_t value = 0;
    if (register_map_of(isa_.config()) == RegisterMap::chisel) {
      if (address == page[0] + chisel::kControl) value = done_ ? chisel::kFinished : 0;
      if (address == page[0] + chisel::kCycles) value = 1234;
    } else if (address == page[2] + hls::kDoneRead) {
      value = done_;
    }
    log_.push_back({false, address, value});
    return value;
  }
  void write(std::uint64_t address, std::uint32_t value) override {
    log_.push_back({true, address, value});
    registers_[address] = value;
    const auto& page = isa_.config().board().registers;
    bool one_block = register_map_of(isa_.config()) == RegisterMap::chisel;
    if (one_block && address == page[0] + chisel::kControl)
      start(registers_[page[0] + chisel::kAddress], registers_[page[0] + chisel::kCount]);
    if (!one_block && address == page[3] + hls::kControl)
      start(registers_[page[0] + hls::kFetchAddress], registers_[page[0] + hls::kFetchCount]);
  }
  std::span<std::byte> memory() override { return {memory_.raw(physical()), 1 << 24}; }
  std::uint64_t physical() const override { return 0x10000000; }
  void program(std::string_view bitstream) override { programmed = std::string(bitstream); }
  std::string programmed;

 private:
  void start(std::uint64_t address, std::uint64_t count) {
    if (hangs_) return;
    Stream stream;
    for (std::uint64_t i = 0; i < count; ++i) {
      isa::Word word{memory_.load<std::uint64_t>(address + 16 * i),
                     memory_.load<std::uint64_t>(address + 16 * i + 8)};
      stream.insns.push_back(isa_.decode(word));
      stream.base.push_back(kAbsolute);
    }
    auto engine = make_oracle(isa_);
    Work work;
    ExecuteOptions options;
    options.strict = true;  // as far as the chip's design says
    execute(Prepared(stream), {}, 0, *engine, memory_, options, work);
    done_ = true;
  }

  Isa isa_;
  std::vector<Access>& log_;
  bool hangs_, done_ = false;
  sim::Memory memory_;
  std::map<std::uint64_t, std::uint32_t> registers_;
};

Config board_config(const char* name) { return Config::sample(name); }

TEST(VtaBoard, writes_the_registers_of_both_designs_in_order) {
  for (const char* name : {"pynq", "ultra96", "de10"}) {
    SCOPED_TRACE(name);
    Config c = board_config(name);
    std::vector<Access> log;
    FakeBus bus(c, log, true);
    BoardOptions options;
    options.polls = 3;
    Refused refusal = refused([&] { run_on_board(bus, c, 0x10002000, 7, options); });
    EXPECT_EQ(refusal.code, "vta.hw.timeout");
    EXPECT_NE(refusal.text.find("7 instructions"), std::string::npos) << refusal.text;
    auto page = c.board().registers;
    std::vector<Access> want;
    if (register_map_of(c) == RegisterMap::chisel) {
      for (std::uint64_t r : {0x10, 0x14, 0x18, 0x1c, 0x20}) want.push_back({true, page[0] + r, 0});
      want.push_back({true, page[0] + 0x08, 7});
      want.push_back({true, page[0] + 0x0c, 0x10002000});
      want.push_back({true, page[0], 1});
      for (int i = 0; i < 3; ++i) want.push_back({false, page[0], 0});
    } else {
      want = {{true, page[0] + 0x10, 7}, {true, page[0] + 0x18, 0x10002000},
              {true, page[1] + 0x10, 0}, {true, page[1] + 0x18, 0},
              {true, page[2] + 0x20, 0}, {true, page[2] + 0x28, 0},
              {true, page[3] + 0x10, 0}, {true, page[2] + 0x10, 0},
              {true, page[0], 0x1},      {true, page[1], 0x81},
              {true, page[2], 0x81},     {true, page[3], 0x81}};
      for (int i = 0; i < 3; ++i) want.push_back({false, page[2] + 0x18, 0});
    }
    EXPECT_EQ(log.size(), want.size());
    EXPECT_TRUE(log == want);
  }
  std::vector<Access> log;
  Config c = board_config("pynq");
  FakeBus bus(c, log);
  EXPECT_EQ(refused([&] { run_on_board(bus, c, 1ull << 33, 1, {}); }).code, "vta.hw.range");
}

TEST(VtaBoard, a_product_through_registers_equals_integers) {
  for (const char* name : {"pynq", "de10"}) {
    SCOPED_TRACE(name);
    Config c = board_config(name);
    std::vector<Access> log;
    auto owned = std::make_unique<FakeBus>(c, log);
    FakeBus* bus = owned.get();
    Ref<runtime::Device> device = open_board(c, std::move(owned));
    EXPECT_EQ(device->info().kind, runtime::DeviceKind::hardware);
    MatmulShape shape{2, 3, 4};
    Program program = matmul(c, shape, {1, 3, 2, 2});
    Ref<runtime::Executable> loaded = device->load(to_binary(program, "vta"));
    std::mt19937_64 rng(5);
    auto a = random_values<std::int8_t>(rng, 2 * 4 * 16, -128, 127),
         w = random_values<std::int8_t>(rng, 3 * 4 * 256, -128, 127);
    Ref<runtime::Storage> sa = device->allocate(a.size()), sw = device->allocate(w.size()),
                          sc = device->allocate(2 * 3 * 16);
    device->upload(*sa, 0, a.data(), a.size());
    device->upload(*sw, 0, w.data(), w.size());
    std::vector<runtime::KernelArg> args{runtime::KernelArg::pointer(sa.get()),
                                         runtime::KernelArg::pointer(sw.get()),
                                         runtime::KernelArg::pointer(sc.get())};
    device->launch(*loaded, 0, args, {}).wait();
    std::vector<std::int8_t> got(2 * 3 * 16), want(got.size());
    device->download(got.data(), *sc, 0, got.size());
    for (std::size_t i = 0; i < 2; ++i) {
      for (std::size_t j = 0; j < 48; ++j) {
        std::int64_t sum = 0;
        for (std::size_t k = 0; k < 64; ++k)
          sum += a[(i * 4 + k / 16) * 16 + k % 16] *
                 w[((j / 16 * 4 + k / 16) * 16 + j % 16) * 16 + k % 16];
        want[i * 48 + j] = static_cast<std::int8_t>(sum & 0xff);
      }
    }
    EXPECT_EQ(got, want);
    auto* chip = dynamic_cast<runtime::Programmable*>(device.get());
    ASSERT_NE(chip, nullptr);
    chip->program("bits");
    EXPECT_EQ(bus->programmed, "bits");
    chip->program({});
    EXPECT_EQ(refused([&] { device->allocate(1 << 25); }).code, "vta.hw.memory");
    Program other = matmul(Config::sample("4x8x8"), {1, 1, 1}, {1, 1, 1, 1});
    EXPECT_EQ(refused([&] { device->load(to_binary(other, "vta")); }).code, "vta.binary.config");
    Builder bytes(c, "bytes");
    bytes.load(MemType::acc8, 0, bytes.param("x", dtypes::int8), 0, {1, 2});
    const Program widening = bytes.finish(Checked::no);
    Refused acc8 = refused([&] { device->load(to_binary(widening, "vta")); });
    EXPECT_EQ(acc8.code, "vta.hw.acc8") << acc8.text;
    EXPECT_NE(acc8.text.find("kernel \"bytes\" loads signed bytes"), std::string::npos)
        << acc8.text;
  }
}

TEST(VtaBoard, without_a_board_it_says_what_was_searched) {
  Refused refusal = refused([] { open_linux_bus(Config(), "/nonexistent"); });
  EXPECT_EQ(refusal.code, "vta.absent");
  EXPECT_NE(refusal.text.find("/nonexistent/dev/udmabuf0"), std::string::npos) << refusal.text;
}

TEST(VtaBoard, the_linux_bus_over_files_of_a_test) {
  namespace fs = std::filesystem;
  fs::path root = fs::temp_directory_path() / cat("weft-vta-board-", ::getpid());
  fs::create_directories(root / "dev");
  fs::create_directories(root / "sys/class/u-dma-buf/udmabuf0");
  auto file = [&](const char* name, const std::string& text) {
    std::ofstream(root / name) << text;
  };
  file("dev/mem", "");
  file("dev/udmabuf0", std::string(8192, 'x'));
  file("sys/class/u-dma-buf/udmabuf0/size", "8192\n");
  EXPECT_EQ(refused([&] { open_linux_bus(Config(), root.string()); }).code, "vta.absent");
  file("sys/class/u-dma-buf/udmabuf0/phys_addr", "0x1f400000\n");
  std::unique_ptr<BoardBus> bus = open_linux_bus(Config(), root.string());
  EXPECT_EQ(bus->physical(), 0x1f400000u);
  ASSERT_EQ(bus->memory().size(), 8192u);
  EXPECT_EQ(bus->memory()[0], static_cast<std::byte>('x'));
  Refused away = refused([&] { bus->read(0x1234); });
  EXPECT_EQ(away.code, "vta.hw.register");
  EXPECT_NE(away.text.find("0x1234"), std::string::npos) << away.text;
  Refused bits = refused([&] { bus->program("bits"); });
  EXPECT_EQ(bits.code, "vta.hw.program");
  EXPECT_NE(bits.text.find("4 bytes"), std::string::npos) << bits.text;
  fs::create_directories(root / "lib/firmware");
  fs::create_directories(root / "sys/class/fpga_manager/fpga0");
  bus->program("bits");
  std::ifstream named(root / "sys/class/fpga_manager/fpga0/firmware");
  std::string name;
  named >> name;
  EXPECT_EQ(fs::file_size(root / "lib/firmware" / name), 4u);
  bus.reset();
  fs::remove_all(root);
}

}  // namespace
}  // namespace weft::vta
