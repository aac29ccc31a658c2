// SPDX-License-Identifier: Apache-2.0
// Clients that mean harm, as bare frames. After each the server serves and holds nothing.

#include <grpcpp/grpcpp.h>

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <mutex>
#include <random>
#include <thread>

#include "../expect_error.h"
#include "rpc_test_device.h"
#include "weft/runtime/rpc/rpc.h"
#include "weft/runtime/rpc/wire.h"

namespace weft::rpc {
namespace {

using runtime::HostPlan;
using runtime::PlanOp;
using runtime::PlanStep;
using runtime::StepKind;
using testing::expect_error;
using testing::refused;

ServerOptions any_port(ServerOptions options = {}) {
  options.port = 0;
  return options;
}

struct Target {
  std::mutex mutex;
  std::string lines;
  Server server;
  explicit Target(ServerOptions options = {})
      : server(logged(any_port(std::move(options))),
               [](std::string_view config) { return memory_device(config); }) {}
  ServerOptions logged(ServerOptions o) {
    o.log = [this](std::string_view line) {
      std::lock_guard lock(mutex);
      lines += std::string(line) + "\n";
    };
    return o;
  }
  std::string log() {
    std::lock_guard lock(mutex);
    return lines;
  }
  /// A well-behaved client is served, and nothing of others is left.
  void expect_serves() {
    EXPECT_NO_THROW(Session::connect("localhost", server.port(), {})->device()->allocate(8));
    for (int i = 0; i < 12000 && (server.sessions() || server.held_bytes()); ++i) usleep(5000);
    EXPECT_EQ(server.sessions(), 0);
    EXPECT_EQ(server.held_bytes(), 0u);
  }
};

struct Client {
  std::unique_ptr<Weft::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<Frame, Frame>> stream;
  explicit Client(int port, bool hello = true)
      : stub(Weft::NewStub(
            grpc::CreateChannel(cat("localhost:", port), grpc::InsecureChannelCredentials()))),
        stream(stub->Session(&context)) {
    if (hello) ask(HELLO, {kVersion}, "");
  }
  ~Client() { context.TryCancel(); }
  Frame ask(Op op, std::initializer_list<std::int64_t> ints, std::string text,
            std::string_view data = {}) {
    Frame frame, answer;
    frame.set_op(op);
    for (std::int64_t i : ints) frame.add_ints(i);
    frame.add_texts(std::move(text));
    EXPECT_TRUE(stream->Write(frame));
    if (!data.empty()) {
      Frame more;
      more.set_op(DATA), more.set_data(std::string(data));
      EXPECT_TRUE(stream->Write(more));
    }
    if (!stream->Read(&answer)) throw Error(ErrorKind::rpc, "test.ended", "the stream ended");
    if (answer.op() == FAILED) throw to_error(answer.failure());
    return answer;
  }
  /// Uploads and loads a module; its handle.
  std::int64_t load(const std::string& module) {
    ask(PUT_FILE, {static_cast<std::int64_t>(module.size())}, "m", module);
    return ask(LOAD_MODULE, {}, "m").ints(0);
  }
};

/// A module of one function without parameters that runs these steps.
std::string module_of(std::vector<PlanStep> steps, std::int32_t buffers = 1) {
  HostPlan plan;
  plan.name = "main";
  plan.slots = 1;
  plan.buffers = buffers;
  plan.steps = std::move(steps);
  return runtime::Module(memory_binary(), {plan}).serialize();
}

PlanStep step_of(StepKind kind, runtime::PlanExpr value) {
  PlanStep s;
  s.kind = kind;
  s.value = std::move(value);
  return s;
}

TEST(RpcHostile, bytes_in_names_reach_the_log_as_text) {
  Target target;
  Client client(target.server.port());
  expect_error(ErrorKind::rpc, "rpc.file.name", {"no plain file name"},
               [&] { client.ask(PUT_FILE, {1}, "\xff\xfe\x1b[2J", "x"); });
  EXPECT_EQ(target.log().find('\xff'), std::string::npos);
  EXPECT_NE(target.log().find("\\xff\\xfe"), std::string::npos) << target.log();
  client.context.TryCancel();
  target.expect_serves();
}

TEST(RpcHostile, measurements_nest_a_little_and_no_more) {
  Target target;
  Client client(target.server.port());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(client.ask(MEASURE_BEGIN, {}, "").op(), MEASURE_BEGIN);
  expect_error(ErrorKind::rpc, "rpc.protocol", {"nested 9 deep", "at most 8"},
               [&] { client.ask(MEASURE_BEGIN, {}, ""); });
  client.context.TryCancel();
  target.expect_serves();
}

/// The device that measures would be gone when the measurement ends.
TEST(RpcHostile, a_measurement_keeps_its_device) {
  Target target;
  Client client(target.server.port());
  client.ask(MEASURE_BEGIN, {}, "");
  for (const char* config : {"", "other"})
    expect_error(ErrorKind::rpc, "rpc.reconfigure.busy", {"a measurement", "not ended"},
                 [&] { client.ask(RECONFIGURE, {}, config); });
  EXPECT_EQ(client.ask(MEASURE_END, {}, "").op(), MEASURE_END);
  EXPECT_EQ(client.ask(RECONFIGURE, {}, "other").op(), RECONFIGURE);
  client.context.TryCancel();
  target.expect_serves();
}

/// A module of one function with a tensor int32 (n, m), with strides of its own or compact, that
/// runs nothing.
std::string module_of_tensor(bool strided) {
  HostPlan plan;
  plan.name = "main";
  plan.slots = 4, plan.buffers = 1;
  runtime::PlanParam data;
  auto slot = [](std::int32_t k) { return runtime::PlanExpr{{PlanOp::slot, k}}; };
  data.tensor = {"data", dtypes::int32, {slot(0), slot(1)}, {0, 1}, strided, {}, 4, true, "global"};
  if (strided) data.tensor.stride_slots = {2, 3};
  plan.params = {data};
  return runtime::Module(memory_binary(), {plan}).serialize();
}

/// Extents whose bytes wrap around in 64 bits would let a kernel of the server write anywhere.
TEST(RpcHostile, shapes_stay_inside_their_storage) {
  Target target;
  Client client(target.server.port());
  const std::int64_t array = client.ask(ALLOCATE, {400, 64}, "global").ints(0);
  std::mt19937_64 rng(20261129);
  const std::int64_t large = std::numeric_limits<std::int64_t>::max();
  const std::int64_t extents[] = {0,         1,         2,         3,         10,        -1,
                                  -2,        large,     large - 1, 1LL << 62, 1LL << 61, 1LL << 32,
                                  1LL << 31, 1LL << 30, 1LL << 33, -large - 1};
  int accepted = 0, refusals = 0;
  for (const bool strided : {false, true}) {
    const std::int64_t id = client.load(module_of_tensor(strided));
    for (int round = 0; round < 4000; ++round) {
      auto pick = [&] { return extents[rng() % std::size(extents)]; };
      Frame frame, answer;
      frame.set_op(CALL), frame.add_ints(id), frame.add_texts("main");
      Argument& a = *frame.add_arguments();
      a.set_storage(static_cast<std::uint64_t>(array)), a.set_dtype("int32");
      const std::int64_t n = pick(), m = pick();
      a.add_shape(n), a.add_shape(m);
      const auto at =
          static_cast<std::int64_t>(rng() % 3 ? 0 : 4 * static_cast<std::uint64_t>(pick()));
      a.set_offset(static_cast<std::uint64_t>(at));
      std::int64_t strides[] = {m, 1};
      if (strided && rng() % 2) {
        for (std::int64_t& s : strides) s = pick(), a.add_strides(s);
      }
      client.stream->Write(frame);
      ASSERT_TRUE(client.stream->Read(&answer));
      if (answer.op() == FAILED) {
        ++refusals;
        continue;
      }
      ++accepted;
      ASSERT_TRUE(n >= 0 && m >= 0) << n << " " << m;
      if (n == 0 || m == 0) continue;
      __int128 low = 0, high = 0;
      for (const auto& [extent, stride] : {std::pair{n, strides[0]}, {m, strides[1]}})
        (stride < 0 ? low : high) += static_cast<__int128>(stride) * (extent - 1);
      ASSERT_TRUE(at + 4 * low >= 0 && at + 4 * (high + 1) <= 400)
          << n << " x " << m << " strides " << strides[0] << ", " << strides[1] << " at " << at;
    }
  }
  EXPECT_GT(accepted, 200);
  EXPECT_GT(refusals, 4000);
  client.context.TryCancel();
  target.expect_serves();
}

/// Two bytes of such a message become an object of more than a hundred.
TEST(RpcHostile, messages_of_empty_parts_are_limited) {
  ServerOptions options;
  options.hello_deadline = std::chrono::hours(1);  // a busy machine takes seconds for the message
  Target target(options);
  for (const bool hello : {false, true}) {
    Client client(target.server.port(), hello);
    Frame frame, answer;
    frame.set_op(hello ? CALL : HELLO);
    for (int i = 0; i < 700'000; ++i) frame.add_arguments();
    EXPECT_GT(frame.ByteSizeLong(), static_cast<std::size_t>(kMaxRequest));
    client.stream->Write(frame);
    EXPECT_FALSE(client.stream->Read(&answer));
    EXPECT_EQ(client.stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    target.expect_serves();
  }
}

TEST(RpcHostile, silent_streams_take_no_ones_place) {
  ServerOptions options;
  options.sessions = 4;
  options.hello_deadline = std::chrono::milliseconds(60000);
  Target target(options);
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 12; ++i)
    silent.push_back(std::make_unique<Client>(target.server.port(), false));
  usleep(100000);
  for (int i = 0; i < 8; ++i)
    EXPECT_NO_THROW(Session::connect("localhost", target.server.port(), {})->device()) << i;
  silent.clear();
  target.expect_serves();
}

TEST(RpcHostile, silence_ends_at_the_deadline) {
  ServerOptions options;
  options.hello_deadline = std::chrono::milliseconds(50);
  Target target(options);
  Client silent(target.server.port(), false);
  Frame answer;
  EXPECT_FALSE(silent.stream->Read(&answer));
  EXPECT_EQ(silent.stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // The next client may be late itself on a busy machine; silent_streams_take_no_ones_place serves
  // others.
}

TEST(RpcHostile, programs_and_modules_are_charged) {
  ServerOptions options;
  options.session_bytes = 64 << 10;
  Target target(options);
  Client client(target.server.port());
  const std::string module = module_of({});
  const auto size = static_cast<std::int64_t>(module.size());
  client.load(module);
  EXPECT_GE(target.server.held_bytes(), 5 * module.size());
  int loaded = 0;
  const auto limit = refused([&] {
    for (; loaded < 1000; ++loaded) client.ask(LOAD_MODULE, {}, "m");
  });
  EXPECT_EQ(limit.code, "rpc.limit.bytes") << limit.text;
  EXPECT_LT(loaded, 64);
  client.context.TryCancel();
  target.expect_serves();
  Client other(target.server.port());
  EXPECT_EQ(refused([&] {
              for (int i = 0; i < 1000; ++i) other.ask(LOAD, {size}, "", module);
            }).code,
            "rpc.limit.bytes");
  // What is unloaded is given back.
  const std::uint64_t before = target.server.held_bytes();
  other.stream->Write([] {
    Frame f;
    f.set_op(UNLOAD), f.add_ints(1);
    return f;
  }());
  other.ask(SYNCHRONIZE, {}, "");
  EXPECT_LT(target.server.held_bytes(), before);
  other.context.TryCancel();
  target.expect_serves();
}

TEST(RpcHostile, buffers_of_plans_are_limited) {
  ServerOptions options;
  options.session_bytes = 1 << 20;
  Target target(options);
  Client client(target.server.port());
  std::vector<PlanStep> steps;
  for (std::int32_t i = 0; i < 3; ++i) {
    steps.push_back(step_of(StepKind::allocate, {{PlanOp::constant, 500000}}));
    steps.back().target = i;
  }
  const std::int64_t id = client.load(module_of(steps, 3));
  expect_error(ErrorKind::memory, "call.limit.bytes", {"main would hold", "it may hold"},
               [&] { client.ask(CALL, {id}, "main"); });
  // What the connection holds leaves them less.
  const std::int64_t one = client.load(module_of({steps[0]}, 1));
  EXPECT_EQ(client.ask(CALL, {one}, "main").op(), CALL);
  client.ask(ALLOCATE, {600000, 64}, "global");
  expect_error(ErrorKind::memory, "call.limit.bytes", {"main would hold", "it may hold"},
               [&] { client.ask(CALL, {one}, "main"); });
  client.context.TryCancel();
  target.expect_serves();
}

TEST(RpcHostile, arithmetic_of_plans_never_traps) {
  Target target;
  Client client(target.server.port());
  const std::int64_t least = INT64_MIN;
  for (PlanOp op : {PlanOp::floordiv, PlanOp::floormod}) {
    const std::int64_t id = client.load(module_of(
        {step_of(StepKind::set, {{PlanOp::constant, least}, {PlanOp::constant, -1}, {op, 0}})}));
    EXPECT_EQ(client.ask(CALL, {id}, "main").op(), CALL);
  }
  client.context.TryCancel();
  target.expect_serves();
}

/// What the steps of a plan do, on a device whose kernel "fail" says that it ran.
TEST(HostPlans, loops_begin_at_their_minimum_and_nothing_is_launched_for_no_one) {
  auto device = memory_device("");
  auto run = [&](std::vector<PlanStep> steps) {
    HostPlan plan;
    plan.name = "main";
    plan.slots = 2;
    plan.steps = std::move(steps);
    runtime::Function(make_ref<runtime::Module>(memory_binary(), std::vector{plan}), "main", device)
        .call({})
        .wait();
  };
  auto constant = [](std::int64_t n) { return runtime::PlanExpr{{PlanOp::constant, n}}; };
  // slot 1 becomes 10 * slot 1 + slot 0 for 5, 6 and 7
  PlanStep digit = step_of(StepKind::set, {{PlanOp::slot, 1},
                                           {PlanOp::constant, 10},
                                           {PlanOp::mul, 0},
                                           {PlanOp::slot, 0},
                                           {PlanOp::add, 0}});
  digit.target = 1;
  PlanStep turns = step_of(StepKind::loop, constant(3));
  turns.min = constant(5), turns.body = {digit};
  PlanStep right =
      step_of(StepKind::assert_, {{PlanOp::slot, 1}, {PlanOp::constant, 567}, {PlanOp::eq, 0}});
  EXPECT_NO_THROW(run({turns, right}));
  turns.min = {};
  EXPECT_EQ(refused([&] { run({turns, right}); }).code, "call.assert");
  PlanStep launch = step_of(StepKind::launch, {});
  launch.text = "fail";
  for (std::vector<std::int64_t> extents : {std::vector<std::int64_t>{0}, {3, 0}, {-1}, {2, -3}}) {
    launch.extents.clear();
    for (std::int64_t n : extents) launch.extents.push_back(constant(n));
    EXPECT_NO_THROW(run({launch}));
  }
  launch.extents = {constant(1)};
  EXPECT_EQ(refused([&] { run({launch}); }).code, "memory.fault");
}

/// A call that would last for ever ends when its client goes, and when the server stops.
TEST(RpcHostile, endless_plans_end_with_client_and_server) {
  const std::string endless = module_of({step_of(StepKind::loop, {{PlanOp::constant, INT64_MAX}})});
  auto target = std::make_unique<Target>();
  auto start = [&](Client& client) {
    const std::int64_t id = client.load(endless);
    Frame call;
    call.set_op(CALL), call.add_ints(id), call.add_texts("main");
    client.stream->Write(call);
    usleep(20000);
  };
  {
    Client client(target->server.port());
    start(client);
    EXPECT_EQ(target->server.sessions(), 1);
    client.context.TryCancel();
    target->expect_serves();
  }
  Client client(target->server.port());
  start(client);
  const auto begin = std::chrono::steady_clock::now();
  target->server.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  EXPECT_EQ(target->server.sessions(), 0);
}

TEST(RpcHostile, times_have_a_limit) {
  Target target;
  Client client(target.server.port());
  const std::int64_t id = client.load(module_of({}));
  for (double seconds : {-1.0, 61.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    expect_error(ErrorKind::value, "rpc.limit.seconds", {"legal: 0 to 60"}, [&] {
      Frame frame, answer;
      frame.set_op(TIME), frame.add_texts("main"), frame.add_reals(seconds);
      for (std::int64_t i : {id, std::int64_t{1}, std::int64_t{1}}) frame.add_ints(i);
      client.stream->Write(frame);
      ASSERT_TRUE(client.stream->Read(&answer));
      throw to_error(answer.failure());
    });
  }
  client.context.TryCancel();
  target.expect_serves();
}

TEST(RpcHostile, arrays_are_counted) {
  Target target;
  Client client(target.server.port());
  Frame frame, answer;
  frame.set_op(ALLOCATE), frame.add_ints(0), frame.add_ints(64), frame.add_texts("global");
  int allocated = 0;
  do {
    client.stream->Write(frame);
    ASSERT_TRUE(client.stream->Read(&answer));
  } while (answer.op() != FAILED && ++allocated < 70000);
  EXPECT_EQ(allocated, 65536);
  EXPECT_EQ(answer.failure().code(), "rpc.limit.handles");
  EXPECT_EQ(answer.failure().message(), "the connection holds 65536 arrays");
  client.context.TryCancel();
  target.expect_serves();
}

TEST(RpcHostile, a_server_of_named_modules_takes_no_code) {
  ServerOptions options;
  options.modules["served.weft-mod"] = module_of({});
  Target target(options);
  Client client(target.server.port());
  for (Op op : {PUT_FILE, LOAD, PROGRAM})
    expect_error(ErrorKind::rpc, "rpc.modules.only", {"served.weft-mod", "by name"},
                 [&] { client.ask(op, {3}, "mine", "abc"); });
  expect_error(ErrorKind::io, "rpc.file.unknown", {"no module \"mine\"", "served.weft-mod"},
               [&] { client.ask(LOAD_MODULE, {}, "mine"); });
  const std::int64_t id = client.ask(LOAD_MODULE, {}, "served.weft-mod").ints(0);
  EXPECT_EQ(client.ask(CALL, {id}, "main").op(), CALL);
  client.context.TryCancel();
  target.expect_serves();
}

TEST(RpcHostile, keys_have_a_least_length) {
  for (std::size_t n : {1u, 15u}) {
    ServerOptions options = any_port();
    options.key = std::string(n, 'k');
    expect_error(ErrorKind::value, "rpc.key.short", {"at least 16", "urandom"}, [&] {
      Server(options, [](std::string_view config) { return memory_device(config); });
    });
  }
}

/// Frames that a client might send, each with something changed.
class FrameMaker {
 public:
  explicit FrameMaker(std::uint64_t seed) : rng_(seed) {
    // Not "wait", which sleeps as long as it is told.
    runtime::Binary binary = memory_binary();
    std::erase_if(binary.kernels, [](const auto& k) { return k.name == "wait"; });
    HostPlan plan;
    plan.name = "main";
    plan.slots = 1, plan.buffers = 1;
    plan.steps = {step_of(StepKind::allocate, {{PlanOp::constant, 64}})};
    plan.steps[0].text = "global";
    module_ = runtime::Module(binary, {plan}).serialize();
  }
  bool in_data() const { return pending_ > 0; }
  void begin() { depth_ = 0, pending_ = 0; }
  Frame next() {
    Frame f = sound();
    for (std::uint64_t n = below(32) ? 0 : 1 + below(2); n > 0; --n) change(f);
    return f;
  }

 private:
  std::uint64_t below(std::uint64_t n) { return rng_() % n; }
  std::int64_t number() {
    static constexpr std::int64_t kEnds[] = {-1,      0,         1,         7,         4096,
                                             1 << 20, INT32_MAX, 1ll << 32, INT64_MAX, INT64_MIN};
    return below(3) ? static_cast<std::int64_t>(below(12)) : kEnds[below(std::size(kEnds))];
  }
  std::string text() {
    static constexpr const char* kTexts[] = {"",     "m",    "main", "global", "double",
                                             "fail", "../m", "bad",  "int8",   "\xff"};
    std::string out = kTexts[below(std::size(kTexts))];
    if (below(8) == 0) out.append(below(300), static_cast<char>(below(256)));
    return out;
  }
  /// What carries data is followed by it, most of the time.
  Frame sound() {
    if (pending_ > 0 && below(200)) {
      Frame f;
      f.set_op(DATA);
      f.set_data(file_.substr(file_.size() - static_cast<std::size_t>(pending_)));
      if (below(16) == 0 && f.data().size() > 1) f.set_data(f.data().substr(1));
      pending_ -= static_cast<std::int64_t>(f.data().size());
      return f;
    }
    pending_ = 0;
    Frame f;
    // What ends a stream is rare.
    f.set_op(static_cast<Op>(below(500) ? ALLOCATE + below(PROGRAM - ALLOCATE + 1) : below(40)));
    if (f.op() == RECONFIGURE && below(8)) f.set_op(ALLOCATE);
    if (f.op() == MEASURE_END && depth_ == 0) f.set_op(MEASURE_BEGIN);
    if (f.op() == MEASURE_BEGIN && depth_ == 8 && below(16)) f.set_op(MEASURE_END);
    depth_ += (f.op() == MEASURE_BEGIN) - (f.op() == MEASURE_END);
    for (std::uint64_t n = f.op() == LOAD_MODULE ? 0 : below(6); n > 0; --n) f.add_ints(number());
    if (below(8)) f.add_texts(text());
    if (f.op() == TIME) f.add_reals(below(2) ? 0 : -1e300);
    for (std::uint64_t n = f.op() == CALL || f.op() == LAUNCH ? below(3) : 0; n > 0; --n)
      argument(f);
    if (f.op() == PUT_FILE || f.op() == LOAD || f.op() == WRITE || f.op() == PROGRAM) {
      file_ = f.op() == WRITE ? std::string(below(64), 'w') : module_;
      for (std::uint64_t n = below(4); n > 0 && !file_.empty(); --n)
        file_[below(file_.size())] = static_cast<char>(below(256));
      pending_ = static_cast<std::int64_t>(file_.size());
      f.clear_ints();
      if (f.op() == WRITE) f.add_ints(number()), f.add_ints(number());
      f.add_ints(pending_);
      if (f.texts_size() == 0) f.add_texts("m");
    }
    return f;
  }
  void argument(Frame& f) {
    Argument* a = f.add_arguments();
    a->set_storage(static_cast<std::uint64_t>(number()));
    a->set_offset(static_cast<std::uint64_t>(number()));
    a->set_integer(number());
    a->set_dtype(text());
    for (std::uint64_t n = below(4); n > 0; --n) a->add_shape(number()), a->add_strides(number());
  }
  void change(Frame& f) {
    switch (below(6)) {
      case 0: f.set_op(static_cast<Op>(below(40))); break;
      case 1: f.add_ints(number()); break;
      case 2:
        if (f.ints_size()) f.set_ints(static_cast<int>(below(f.ints_size())), number());
        break;
      case 3: f.add_texts(text()); break;
      case 4: f.add_reals(below(2) ? std::numeric_limits<double>::quiet_NaN() : 1e308); break;
      default: argument(f);
    }
    pending_ = f.op() == DATA ? pending_ : 0;
  }

  std::mt19937_64 rng_;
  std::string module_, file_;
  std::int64_t pending_ = 0;
  int depth_ = 0;  // of measurements
};

std::size_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}
std::int64_t resident_pages() {
  std::ifstream file("/proc/self/statm");
  std::int64_t whole = 0, resident = 0;
  file >> whole >> resident;
  return resident;
}

TEST(RpcHostile, what_will_be_refused_is_not_kept_meanwhile) {
  ServerOptions options;
  options.session_bytes = 96 << 20;
  Target target(options);
  Client client(target.server.port());
  client.ask(ALLOCATE, {96 << 20, 64}, "global");
  Frame head, chunk, answer;
  head.set_op(PUT_FILE), head.add_ints(96 << 20), head.add_texts("m");
  chunk.set_op(DATA), chunk.set_data(std::string(1 << 20, 'x'));
  const std::int64_t before = resident_pages();
  ASSERT_TRUE(client.stream->Write(head));
  for (int i = 0; i < 95; ++i) ASSERT_TRUE(client.stream->Write(chunk));
  // Kept, it would be 95 MiB. Until the server has read what it will a busy machine holds the
  // messages on their way, and the allocator keeps some of what was freed.
  const std::int64_t most = (64 << 20) / getpagesize();
  for (int i = 0; i < 1200 && resident_pages() - before > most; ++i) usleep(50000);
  EXPECT_LE(resident_pages() - before, most);
  ASSERT_TRUE(client.stream->Write(chunk));
  ASSERT_TRUE(client.stream->Read(&answer));
  EXPECT_EQ(answer.failure().code(), "rpc.limit.bytes");
  EXPECT_EQ(client.ask(SYNCHRONIZE, {}, "").op(), SYNCHRONIZE);  // the connection goes on
  client.context.TryCancel();
  target.expect_serves();
}

/// WEFT_TEST_FRAMES=1000000 sends so many, WEFT_TEST_SEED others.
TEST(RpcHostile, mutated_frames) {
  const char *asked = std::getenv("WEFT_TEST_FRAMES"), *seed = std::getenv("WEFT_TEST_SEED");
  const std::int64_t most = asked ? std::atoll(asked) : 4000;
  ServerOptions options;
  options.hello_deadline = std::chrono::minutes(2);  // clients here may wait for a busy machine
  Target target(options);
  FrameMaker maker(seed ? std::strtoull(seed, nullptr, 10) : 22);
  std::int64_t sent = 0, answers = 0, refusals = 0, streams = 0, pages = 0;
  std::size_t files = 0;
  while (sent < most) {
    Client client(target.server.port());
    maker.begin();
    std::atomic<bool> over = false;
    std::atomic<int> heard = 0;
    std::thread reader([&] {  // answers are read side by side, so that nobody waits for room
      for (Frame answer; client.stream->Read(&answer); ++answers)
        refusals += answer.op() == FAILED, heard += answer.op() == SYNCHRONIZE;
      over = true;
    });
    int asked = 0;
    Frame marker;
    marker.set_op(SYNCHRONIZE);
    for (int i = 0; i < 5000 && sent < most && !over; ++i, ++sent) {
      const Frame frame = maker.next();
      if (!client.stream->Write(frame)) break;
      asked += frame.op() == SYNCHRONIZE;
      if (i % 32 != 31 || maker.in_data()) continue;
      // Nothing is sent to a stream that has ended: what is counted has been read.
      if (!client.stream->Write(marker)) break;
      for (++asked; heard < asked && !over;) usleep(50);
    }
    client.stream->WritesDone();
    client.context.TryCancel();
    reader.join();
    if (++streams == 20) target.expect_serves(), files = open_files(), pages = resident_pages();
  }
  target.expect_serves();
  std::printf("%lld frames in %lld streams: %lld answers, %lld of them refusals\n",
              static_cast<long long>(sent), static_cast<long long>(streams),
              static_cast<long long>(answers), static_cast<long long>(refusals));
  EXPECT_GT(answers, sent / 20);
  EXPECT_GT(answers - refusals, answers / 100);
  if (streams <= 20) return;
  EXPECT_LE(open_files(), files + 4);
  EXPECT_LE(resident_pages() - pages, (64 << 20) / getpagesize());
}

}  // namespace
}  // namespace weft::rpc
