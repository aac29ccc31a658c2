// SPDX-License-Identifier: Apache-2.0
#include "weft/runtime/rpc/rpc.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>
#include <random>

#include "../expect_error.h"
#include "../server_process.h"
#include "rpc_test_certificate.h"
#include "rpc_test_device.h"

namespace weft::rpc {
namespace {

using testing::refused;
using testing::Refused;

/// A server in this process whose log can be read.
struct Served {
  explicit Served(ServerOptions options = {}) {
    options.port = 0;
    options.device_name = "memory";
    options.log = [this](std::string_view line) {
      std::lock_guard lock(mutex);
      lines += std::string(line) + "\n";
    };
    server = std::make_unique<Server>(std::move(options), [](std::string_view config) {
      if (config == "slow") sleep(2);
      return memory_device(config);
    });
  }
  ~Served() { server.reset(); }
  Ref<Session> connect(ConnectOptions options = {}) {
    return Session::connect("localhost", server->port(), std::move(options));
  }
  std::string log() {
    std::lock_guard lock(mutex);
    return lines;
  }
  /// Until the condition holds; false: it did not within a minute.
  template <typename F>
  bool soon(F&& condition) {
    for (int i = 0; i < 12000; ++i) {
      if (condition()) return true;
      usleep(5000);
    }
    return false;
  }
  std::mutex mutex;
  std::string lines;
  std::unique_ptr<Server> server;
};

std::string bytes_of(runtime::Device& d, const runtime::Storage& s) {
  std::string out(s.bytes(), '\0');
  d.download(out.data(), s, 0, s.bytes());
  return out;
}

TEST(Rpc, a_remote_device_is_a_device) {
  Served served;
  Ref<Session> session = served.connect();
  Ref<runtime::Device> device = session->device("memory");
  EXPECT_EQ(device->info().name, cat("rpc:memory@localhost:", served.server->port(), "#1"));
  EXPECT_EQ(device->info().limits.at("answer"), 42);
  EXPECT_EQ(device->info().kind, runtime::DeviceKind::simulator);
  // Sizes around the chunk's.
  std::mt19937_64 rng(1);
  for (std::size_t n : {0u, 1u, 1000u, (1u << 20) - 1, 1u << 20, (1u << 20) + 1, (3u << 20) + 17}) {
    std::string data(n, '\0');
    for (char& c : data) c = static_cast<char>(rng());
    Ref<runtime::Storage> s = device->allocate(n);
    device->upload(*s, 0, data.data(), n);
    EXPECT_EQ(bytes_of(*device, *s), data) << n;
    if (n > 100) {
      Ref<runtime::Storage> t = device->allocate(n);
      device->copy(*t, 5, *s, 3, n - 10);
      EXPECT_EQ(bytes_of(*device, *t).substr(5, n - 10), data.substr(3, n - 10));
    }
  }
  Ref<runtime::Executable> e = device->load(memory_binary());
  Ref<runtime::Storage> s = device->allocate(4);
  device->upload(*s, 0, "\1\2\3\4", 4);
  runtime::KernelArg args[] = {runtime::KernelArg::pointer(s.get())};
  runtime::Span span = device->measure([&] {
    device->launch(*e, 0, args, {}).wait();
    device->launch(*e, 0, args, {}).wait();
  });
  EXPECT_EQ(span.cycles, 2000);
  EXPECT_DOUBLE_EQ(span.seconds, 2e-3);
  EXPECT_EQ(bytes_of(*device, *s), std::string("\4\10\14\20", 4));
  EXPECT_EQ(device->stats().get("cycles"), 2000);
  device->clear_stats();
  EXPECT_EQ(device->stats().get("cycles"), 0);
  EXPECT_GT(session->traffic().get("rpc.trips"), 10);
  // An error inside a measurement ends the measurement, not the connection.
  EXPECT_EQ(refused([&] { device->measure([&] { device->launch(*e, 2, {}, {}).wait(); }); }).code,
            "memory.fault");
  EXPECT_EQ(device->stats().get("cycles"), 0);
}

TEST(Rpc, errors_cross_with_kind_code_and_text) {
  Served served;
  Ref<Session> session = served.connect();
  Ref<runtime::Device> device = session->device();
  Ref<runtime::Executable> e = device->load(memory_binary());
  try {
    device->launch(*e, 2, {}, {}).wait();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::fault);
    EXPECT_EQ(error.code(), "memory.fault");
    std::string text = error.what();
    for (const char* part : {"unit 3", "at pc 7", "as it should", "do not run it", "on the server"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  const std::uint64_t before = served.server->held_bytes();
  Refused memory = refused([&] { device->allocate(300u << 20); });
  EXPECT_EQ(memory.code, "device.memory.exhausted");
  EXPECT_NE(memory.text.find("256 MiB in all"), std::string::npos);
  EXPECT_EQ(served.server->held_bytes(), before);  // what failed is not counted
  runtime::Binary foreign = memory_binary();
  foreign.format = "other";
  EXPECT_EQ(refused([&] { device->load(foreign); }).code, "device.binary.format");
  Ref<runtime::Storage> s = device->allocate(16);
  EXPECT_EQ(refused([&] { device->upload(*s, 8, "12345678901234567890", 20); }).code,
            "device.access");
  Refused unknown = refused([&] { session->device("toaster"); });
  EXPECT_EQ(unknown.code, "rpc.device.unknown");
  EXPECT_NE(unknown.text.find("serves \"memory\""), std::string::npos);
}

TEST(Rpc, the_key_is_needed_and_checked) {
  ServerOptions options;
  options.key = "open sesame, wide gate";
  Served served(options);
  for (const char* key :
       {"", "open sesame, wide gat", "open sesame, wide gate!", "OPEN SESAME, WIDE GATE"}) {
    ConnectOptions o;
    o.key = key;
    EXPECT_EQ(refused([&] { served.connect(o); }).code, "rpc.key") << key;
  }
  EXPECT_TRUE(
      served.soon([&] { return served.log().find("refused: rpc.key") != std::string::npos; }));
  ConnectOptions good;
  good.key = "open sesame, wide gate";
  EXPECT_NO_THROW(served.connect(good)->device());
}

TEST(Rpc, tls_and_the_rules_of_binding) {
  auto start = [](auto&& edit) {
    ServerOptions o;
    o.port = 0;
    edit(o);
    return refused([&] { Server(o, [](std::string_view c) { return memory_device(c); }); });
  };
  EXPECT_EQ(start([](ServerOptions& o) { o.host = "0.0.0.0"; }).code, "rpc.bind.open");
  EXPECT_EQ(
      start([](ServerOptions& o) { o.host = "0.0.0.0", o.key = "a key of some length"; }).code,
      "rpc.bind.open");
  EXPECT_EQ(start([](ServerOptions& o) {
              o.host = "0.0.0.0", o.tls_cert = kTestCertificate, o.tls_key = kTestKey;
            }).code,
            "rpc.bind.open");
  EXPECT_EQ(start([](ServerOptions& o) {
              o.host = "0.0.0.0", o.key = "a key of some length", o.tls_cert = kTestCertificate,
              o.tls_key = kTestKey;
            }).code,
            "nothing was refused");
  EXPECT_EQ(start([](ServerOptions& o) { o.tls_cert = kTestCertificate; }).code, "rpc.tls.pair");
  EXPECT_EQ(start([](ServerOptions& o) { o.port = 70000; }).code, "rpc.bind.port");
  EXPECT_EQ(start([](ServerOptions& o) {
              o.host = "127.0.0.1", o.tls_cert = "junk", o.tls_key = "junk";
            }).code,
            "rpc.bind.failed");
  ServerOptions tls;
  tls.tls_cert = kTestCertificate, tls.tls_key = kTestKey;
  Served served(tls);
  ConnectOptions with;
  with.tls_ca = kTestCertificate;
  Ref<runtime::Device> device = served.connect(with)->device();
  Ref<runtime::Storage> s = device->allocate(3);
  device->upload(*s, 0, "abc", 3);
  EXPECT_EQ(bytes_of(*device, *s), "abc");
  ConnectOptions without;
  without.deadline = std::chrono::milliseconds(800);
  Refused plain = refused([&] { served.connect(without); });
  // Where the server's refusal comes late, the deadline is the first to end it.
  EXPECT_TRUE(plain.code == "rpc.connect" || plain.code == "rpc.lost" ||
              plain.code == "rpc.deadline")
      << plain.text;
  int taken = served.server->port();
  EXPECT_EQ(start([&](ServerOptions& o) { o.port = taken; }).code, "rpc.bind.failed");
}

TEST(Rpc, files_have_plain_names) {
  Served served;
  Ref<Session> session = served.connect();
  for (const char* name : {"", ".", "..", "../x", "a/b", "/etc/passwd", "a\\b", ".hidden", "a b",
                           "a\nb", "x\xc3\xa9"}) {
    EXPECT_EQ(refused([&] { session->upload(name, "x"); }).code, "rpc.file.name") << name;
  }
  EXPECT_EQ(refused([&] { session->upload(std::string(200, 'a'), "x"); }).code, "rpc.file.name");
  session->upload("good-name_1.weft-mod", "not a module");
  EXPECT_EQ(refused([&] { session->load_module("other"); }).code, "rpc.file.unknown");
  EXPECT_TRUE(refused([&] {
                session->load_module("good-name_1.weft-mod");
              }).code.starts_with("module.file"));
  EXPECT_NO_THROW(session->device()->allocate(8));
}

TEST(Rpc, modules_are_uploaded_called_and_timed) {
  runtime::HostPlan plan;
  plan.name = "twice";
  plan.params.resize(1);
  plan.params[0].tensor = {
      "data", dtypes::int8, {{{runtime::PlanOp::constant, 4}}}, {-1}, false, {}, 1, true, "global"};
  plan.buffers = 1;
  runtime::PlanStep step;
  step.kind = runtime::StepKind::launch;
  step.text = "double";
  step.args.resize(1);
  step.args[0].offset_bytes = {{runtime::PlanOp::constant, 0}};
  plan.steps = {step, step};
  runtime::Module module(memory_binary(), {plan});
  Served served;
  Ref<Session> session = served.connect();
  session->upload("m.weft-mod", module.serialize());
  Ref<RemoteModule> remote = session->load_module("m.weft-mod");
  EXPECT_EQ(remote->functions(), std::vector<std::string>{"twice"});
  Ref<runtime::Device> device = session->device();
  Ref<runtime::Storage> s = device->allocate(4);
  device->upload(*s, 0, "\1\2\3\4", 4);
  runtime::CallArg arg;
  arg.storage = s.get(), arg.dtype = dtypes::int8, arg.shape = {4};
  remote->call("twice", {&arg, 1});
  EXPECT_EQ(bytes_of(*device, *s), std::string("\4\10\14\20", 4));
  runtime::TimeResult t = remote->time("twice", {&arg, 1}, 2, 3);
  EXPECT_EQ(t.results.size(), 3u);
  EXPECT_DOUBLE_EQ(t.cycles, 2000);
  EXPECT_DOUBLE_EQ(t.mean, 2e-3);
  EXPECT_EQ(refused([&] { remote->call("thrice", {&arg, 1}); }).code, "module.function.unknown");
  arg.shape = {5};
  EXPECT_TRUE(refused([&] { remote->call("twice", {&arg, 1}); }).code.starts_with("call."));
  // The same plan, interpreted on this side over the remote device.
  Ref<runtime::Function> here = make_ref<runtime::Function>(
      make_ref<runtime::Module>(memory_binary(), std::vector{plan}), "twice", device);
  arg.shape = {4};
  device->upload(*s, 0, "\1\2\3\4", 4);
  here->call({&arg, 1}).wait();
  EXPECT_EQ(bytes_of(*device, *s), std::string("\4\10\14\20", 4));
}

TEST(Rpc, what_a_client_held_goes_with_it) {
  Served served;
  {
    Ref<Session> session = served.connect();
    Ref<runtime::Device> device = session->device();
    Ref<runtime::Storage> a = device->allocate(1000), b = device->allocate(500);
    session->upload("f", std::string(250, 'x'));
    EXPECT_EQ(served.server->held_bytes(), 1750u);
    b = nullptr;
    device->synchronize();
    EXPECT_EQ(served.server->held_bytes(), 1250u);
    EXPECT_EQ(served.server->sessions(), 1);
  }
  EXPECT_TRUE(served.soon(
      [&] { return served.server->sessions() == 0 && served.server->held_bytes() == 0; }));
}

TEST(Rpc, clients_do_not_see_one_another) {
  Served served;
  Ref<Session> one = served.connect(), two = served.connect();
  Ref<runtime::Device> d1 = one->device(), d2 = two->device();
  Ref<runtime::Storage> secret = d1->allocate(6);
  d1->upload(*secret, 0, "secret", 6);
  // The other connection asks for the same handle.
  Ref<runtime::Storage> forged = make_ref<runtime::Storage>(d2, secret->address(), 6, "global");
  EXPECT_EQ(refused([&] { bytes_of(*d2, *forged); }).code, "rpc.handle");
  EXPECT_EQ(refused([&] { d2->upload(*forged, 0, "forged", 6); }).code, "rpc.handle");
  EXPECT_EQ(refused([&] { bytes_of(*d2, *secret); }).code, "rpc.device.mixed");
  EXPECT_NE(d1->info().name, d2->info().name);
  // Two device objects of one connection are the same device.
  EXPECT_EQ(bytes_of(*one->device(), *secret), "secret");
  EXPECT_EQ(bytes_of(*d1, *secret), "secret");
  one->upload("mine", "1");
  EXPECT_EQ(refused([&] { two->load_module("mine"); }).code, "rpc.file.unknown");
}

TEST(Rpc, many_clients_at_once) {
  ServerOptions options;
  options.sessions = 6;
  Served served(options);
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      Ref<Session> session = served.connect();
      Ref<runtime::Device> device = session->device();
      Ref<runtime::Executable> e = device->load(memory_binary());
      for (int i = 0; i < 30; ++i) {
        std::string data(static_cast<std::size_t>(100 + t), static_cast<char>(t + 1));
        Ref<runtime::Storage> s = device->allocate(data.size());
        device->upload(*s, 0, data.data(), data.size());
        runtime::KernelArg args[] = {runtime::KernelArg::pointer(s.get())};
        device->launch(*e, 0, args, {}).wait();
        good += bytes_of(*device, *s) == std::string(data.size(), static_cast<char>(2 * (t + 1)));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, 180);
  std::vector<Ref<Session>> all;
  served.soon([&] { return served.server->sessions() == 0; });
  for (int i = 0; i < 6; ++i) all.push_back(served.connect());
  for (int i = 0; i < 3; ++i) {  // who is refused takes no place, and one that is left is free
    EXPECT_EQ(refused([&] { served.connect(); }).code, "rpc.busy");
    EXPECT_EQ(served.server->sessions(), 6);
    all.pop_back();
    ASSERT_TRUE(served.soon([&] { return served.server->sessions() == 5; }));
    ASSERT_NO_THROW(all.push_back(served.connect()));
  }
}

TEST(Rpc, limits_are_kept) {
  ServerOptions options;
  options.session_bytes = 10000;
  Served served(options);
  Ref<Session> session = served.connect();
  Ref<runtime::Device> device = session->device();
  Refused r = refused([&] { device->allocate(10001); });
  EXPECT_EQ(r.code, "rpc.limit.bytes");
  EXPECT_NE(r.text.find("each may hold"), std::string::npos);
  Ref<runtime::Storage> s = device->allocate(9000);
  EXPECT_EQ(refused([&] { session->upload("f", std::string(2000, 'x')); }).code, "rpc.limit.bytes");
  EXPECT_NO_THROW(session->upload("f", std::string(900, 'x')));
  EXPECT_EQ(refused([&] { session->upload("g", std::string(1 << 22, 'x')); }).code,
            "rpc.limit.bytes");
  EXPECT_NO_THROW(session->upload("f", std::string(950, 'y')));  // nothing was sent: it goes on
  EXPECT_EQ(refused([&] { session->upload("f", std::string(1100, 'x')); }).code, "rpc.limit.bytes");
  EXPECT_NO_THROW(served.connect()->device()->allocate(5000));  // the server goes on
}

TEST(Rpc, reconfigure_gives_this_connection_another_device) {
  Served served;
  Ref<Session> one = served.connect(), two = served.connect();
  Ref<runtime::Device> old = one->device();
  {
    Ref<runtime::Storage> s = old->allocate(8);
    Refused busy = refused([&] { one->reconfigure("wide"); });
    EXPECT_EQ(busy.code, "rpc.reconfigure.busy");
    EXPECT_NE(busy.text.find("1 arrays"), std::string::npos);
  }
  one->reconfigure("wide");
  EXPECT_EQ(one->device()->info().name,
            cat("rpc:memory:wide@localhost:", served.server->port(), "#1.1"));
  EXPECT_EQ(two->device()->info().name, cat("rpc:memory@localhost:", served.server->port(), "#2"));
  EXPECT_EQ(refused([&] { old->allocate(8); }).code, "rpc.device.replaced");
  EXPECT_EQ(refused([&] { one->reconfigure("bad"); }).code, "memory.config");
  EXPECT_EQ(one->device()->info().name,
            cat("rpc:memory:wide@localhost:", served.server->port(), "#1.1"));
  EXPECT_NO_THROW(one->program());
  EXPECT_EQ(refused([&] { one->program("bits"); }).code, "rpc.program.simulator");
}

TEST(Rpc, a_slow_answer_is_an_error_in_time) {
  Served served;
  ConnectOptions o;
  o.run_deadline = std::chrono::milliseconds(1000);
  Ref<Session> patient = served.connect(), session = served.connect(o);
  Ref<runtime::Device> device = patient->device();
  Ref<runtime::Executable> e = device->load(memory_binary());
  runtime::KernelArg quick[] = {runtime::KernelArg::integer(20)},
                     endless[] = {runtime::KernelArg::integer(-1)};
  EXPECT_NO_THROW(device->launch(*e, 1, quick, {}).wait());
  device = session->device();
  e = device->load(memory_binary());
  waits_end = false;
  EXPECT_EQ(refused([&] { device->launch(*e, 1, endless, {}).wait(); }).code, "rpc.deadline");
  waits_end = true;
  EXPECT_EQ(refused([&] { device->allocate(8); }).code, "rpc.lost");
  Refused nobody = refused([] {
    ConnectOptions c;
    c.deadline = std::chrono::milliseconds(300);
    Session::connect("127.0.0.1", 1, c);
  });
  EXPECT_EQ(nobody.code, "rpc.connect");
  EXPECT_NE(nobody.text.find("300 ms"), std::string::npos);
}

/// A configuration may take as long as a run, not as an answer.
TEST(Rpc, a_slow_configuration_has_the_deadline_of_runs) {
  Served served;
  ConnectOptions o;
  o.run_deadline = std::chrono::milliseconds(500);
  Ref<Session> session = served.connect(o);
  EXPECT_EQ(refused([&] { session->reconfigure("slow"); }).code, "rpc.deadline");
  EXPECT_NO_THROW(served.connect()->reconfigure("slow"));
}

TEST(Rpc, a_server_that_dies_or_stops_is_an_error_not_a_hang) {
  for (int signal : {SIGKILL, SIGSTOP}) {
    testing::ServerProcess process(WEFT_RPC_TEST_SERVER);
    ASSERT_GT(process.port, 0);
    ConnectOptions o;
    o.deadline = std::chrono::milliseconds(3000);
    Ref<Session> session = Session::connect("127.0.0.1", process.port, o);
    Ref<runtime::Device> device = session->device();
    Ref<runtime::Storage> s = device->allocate(100);
    ASSERT_EQ(kill(process.pid, signal), 0);
    siginfo_t info{};  // the signal takes effect a little later: an answer could still come
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED | WSTOPPED | WNOWAIT),
              0);
    auto start = std::chrono::steady_clock::now();
    Refused r = refused([&] { device->upload(*s, 0, std::string(100, 'x').data(), 100); });
    EXPECT_EQ(r.code, signal == SIGKILL ? "rpc.lost" : "rpc.deadline") << r.text;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
    EXPECT_EQ(refused([&] { device->allocate(8); }).code, "rpc.lost");
  }
}

int dial(int port) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address)) {
    close(fd);
    return -1;
  }
  return fd;
}

TEST(Rpc, connections_of_garbage_that_die_at_any_byte) {
  Served served;
  Ref<Session> session = served.connect();
  std::mt19937_64 rng(2);
  std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  preface += std::string("\0\0\0\4\0\0\0\0\0", 9);
  for (int round = 0; round < 120; ++round) {
    int fd = dial(served.server->port());
    ASSERT_GE(fd, 0);
    std::string data = round % 2 ? preface.substr(0, rng() % (preface.size() + 1)) : preface;
    std::size_t junk = rng() % 300;
    if (round % 3) {
      for (std::size_t i = 0; i < junk; ++i) data += static_cast<char>(rng());
    }
    send(fd, data.data(), data.size(), MSG_NOSIGNAL);
    close(fd);
  }
  EXPECT_NO_THROW(session->device()->allocate(8));
  EXPECT_NO_THROW(served.connect()->device()->allocate(8));
}

}  // namespace
}  // namespace weft::rpc
