// SPDX-License-Identifier: Apache-2.0
// Both sides of the wire against a peer that does not speak as it should: a client of bare frames,
// and a server of bare frames.

#include <grpcpp/grpcpp.h>

#include <functional>
#include <stdexcept>

#include "../expect_error.h"
#include "rpc_test_device.h"
#include "weft/runtime/rpc/rpc.h"
#include "weft/runtime/rpc/wire.h"

namespace weft::rpc {
namespace {

using testing::expect_error;

struct RawClient {
  std::unique_ptr<Weft::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<Frame, Frame>> stream;
  explicit RawClient(int port)
      : stub(Weft::NewStub(
            grpc::CreateChannel(cat("localhost:", port), grpc::InsecureChannelCredentials()))),
        stream(stub->Session(&context)) {}
  /// The answer to a frame; a failure of the server is thrown here.
  Frame ask(Op op, std::initializer_list<std::int64_t> ints, std::string text) {
    Frame frame, answer;
    frame.set_op(op);
    for (std::int64_t i : ints) frame.add_ints(i);
    frame.add_texts(std::move(text));
    EXPECT_TRUE(stream->Write(frame));
    EXPECT_TRUE(stream->Read(&answer));
    if (answer.op() == FAILED) throw to_error(answer.failure());
    return answer;
  }
};

TEST(RpcWire, a_client_of_another_version_or_language) {
  ServerOptions options;
  options.port = 0;
  Server server(options, [](std::string_view config) { return memory_device(config); });
  expect_error(ErrorKind::rpc, "rpc.version", {"speaks version 99", "this server 1"},
               [&] { RawClient(server.port()).ask(HELLO, {99}, ""); });
  expect_error(ErrorKind::rpc, "rpc.protocol", {"begins with HELLO"},
               [&] { RawClient(server.port()).ask(STATS, {}, ""); });
  RawClient client(server.port());
  EXPECT_EQ(client.ask(HELLO, {kVersion}, "").op(), HELLO);
  expect_error(ErrorKind::rpc, "rpc.protocol", {"needs 1 numbers, 0 came"},
               [&] { client.ask(ALLOCATE, {}, ""); });
  EXPECT_EQ(client.ask(SYNCHRONIZE, {}, "").op(), SYNCHRONIZE);  // the connection still serves
}

TEST(RpcWire, a_device_that_throws_something_else) {
  ServerOptions options;
  options.port = 0;
  Server server(options, [](std::string_view config) -> Ref<runtime::Device> {
    if (config == "strange") throw std::runtime_error("the loom caught fire");
    return memory_device(config);
  });
  auto session = Session::connect("localhost", server.port(), {});
  expect_error(ErrorKind::internal, "rpc.server", {"the loom caught fire"},
               [&] { session->reconfigure("strange"); });
  EXPECT_NO_THROW(session->device()->allocate(8));
}

TEST(RpcWire, a_connection_holds_256_files) {
  ServerOptions options;
  options.port = 0;
  Server server(options, [](std::string_view config) { return memory_device(config); });
  auto session = Session::connect("localhost", server.port(), {});
  for (int i = 0; i < 256; ++i) session->upload(cat("file", i), "x");
  expect_error(ErrorKind::rpc, "rpc.limit.files", {"256 files"},
               [&] { session->upload("one-more", "x"); });
  EXPECT_NO_THROW(session->upload("file7", "another"));
}

TEST(RpcWire, a_client_that_sends_more_than_it_may_is_cut_off) {
  ServerOptions options;
  options.port = 0;
  options.session_bytes = 1000;
  Server server(options, [](std::string_view config) { return memory_device(config); });
  RawClient client(server.port());
  EXPECT_EQ(client.ask(HELLO, {kVersion}, "").op(), HELLO);
  Frame put, data, answer;
  put.set_op(PUT_FILE), put.add_ints(1 << 30), put.add_texts("large");
  data.set_op(DATA), data.set_data(std::string(600, 'x'));
  ASSERT_TRUE(client.stream->Write(put));
  client.stream->Write(data);
  ASSERT_TRUE(client.stream->Read(&answer));
  ASSERT_EQ(answer.op(), FAILED);
  EXPECT_EQ(answer.failure().code(), "rpc.limit.bytes");
  EXPECT_NE(answer.failure().message().find("1 GiB"), std::string::npos);
  EXPECT_FALSE(client.stream->Read(&answer));  // the rest is not taken
  EXPECT_EQ(server.held_bytes(), 0u);
}

/// Answers HELLO properly and everything else with what the test says.
class RawServer final : public Weft::Service {
 public:
  explicit RawServer(std::function<Frame(const Frame&)> answer) : answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("localhost:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~RawServer() override { server_->Shutdown(std::chrono::system_clock::now()); }
  int port() const { return port_; }
  grpc::Status Session(grpc::ServerContext*,
                       grpc::ServerReaderWriter<Frame, Frame>* stream) override {
    Frame frame;
    while (stream->Read(&frame)) {
      Frame out;
      if (frame.op() == HELLO) {
        out.set_op(HELLO);
        out.add_texts(
            R"({"connection": 1, "served": "memory", "name": "memory", "kind": 1, "description": "",)"
            R"( "clock_hz": 1e6, "dl_type": 0, "dl_id": 0, "memory_bytes": 64, "limits": {}})");
      } else {
        out = answer_(frame);
      }
      stream->Write(out);
    }
    return grpc::Status::OK;
  }

 private:
  std::function<Frame(const Frame&)> answer_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST(RpcWire, a_server_that_answers_something_else) {
  Frame given;
  RawServer server([&](const Frame& asked) {
    Frame out = given;
    if (out.op() == NONE) out.set_op(asked.op());
    return out;
  });
  auto protocol = [&](std::initializer_list<std::string_view> parts, const Frame& answer,
                      const std::function<void(Session&, runtime::Device&)>& f) {
    auto session = rpc::Session::connect("localhost", server.port(), {});
    auto device = session->device();
    given = answer;
    expect_error(ErrorKind::rpc, "rpc.protocol", parts, [&] { f(*session, *device); });
  };
  Frame nothing, other, handle, data;
  other.set_op(LAUNCH);
  protocol({"answered operation 10 with 9"}, other, [](auto&, auto& d) { d.synchronize(); });
  protocol({"ALLOCATE was answered without a handle"}, nothing,
           [](auto&, auto& d) { d.allocate(8); });
  protocol({"LOAD was answered without a handle"}, nothing,
           [](auto&, auto& d) { d.load(memory_binary()); });
  protocol({"LOAD_MODULE was answered without a handle"}, nothing,
           [](auto& s, auto&) { s.load_module("m"); });
  protocol({"without its figures"}, nothing, [](auto&, auto& d) { d.measure([] {}); });
  handle.add_ints(1);
  data.set_data("0123456789");
  for (std::size_t wanted : {8u, 12u}) {
    protocol({wanted == 8 ? "more than was asked for" : "sent 10 of 12 bytes"}, handle,
             [&](auto&, auto& d) {
               auto s = d.allocate(wanted);
               given = data;
               char room[12];
               d.download(room, *s, 0, wanted);
             });
  }
}

}  // namespace
}  // namespace weft::rpc
