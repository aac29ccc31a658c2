// SPDX-License-Identifier: Apache-2.0
#pragma once
// The server's side of one connection: its device, its handles, and the loop that answers frames.
// Everything it holds goes when it is destroyed.

#include <atomic>
#include <functional>
#include <map>

#include "weft/runtime/rpc/rpc.h"
#include "weft/runtime/rpc/wire.h"

namespace weft::rpc {

using Stream = grpc::ServerReaderWriter<Frame, Frame>;

/// What a connection asks of its server.
struct Host {
  std::function<bool()> admit;      // after a good HELLO: whether there is room for one more
  std::function<bool()> cancelled;  // the client is gone or the server is to stop
};

class Connection {
 public:
  Connection(const ServerOptions& options, const OpenDevice& open, Stream& stream, std::string peer,
             std::atomic<std::uint64_t>& held, std::int64_t id, Host host);
  ~Connection();
  /// Until the client goes or breaks the rules. False: there was no room for it.
  bool serve();

 private:
  bool read(Frame& frame);
  void reply(const Frame& frame);
  void log(std::string_view what);
  bool hello();
  Frame put_file(const Frame& f);
  Frame load_module(const Frame& f);
  Frame load_program(const Frame& f);
  Frame reconfigure(const Frame& f);
  Frame program_chip(const Frame& f);
  /// Refuses one more where `count` are held already.
  void limit_count(std::size_t count, std::size_t most, std::string_view what) const;
  /// Where the server names its modules, clients bring no code: reads and refuses `n` bytes of it.
  void refuse_code(std::int64_t n, std::string_view what);
  /// Answers frames until the stream ends; `measuring`: or until MEASURE_END.
  void loop(bool measuring);
  Frame handle(const Frame& frame);

  Frame write_storage(const Frame& f);
  Frame read_storage(const Frame& f);
  Frame launch(const Frame& f);
  Frame call(const Frame& f, bool timed);
  Frame measure();
  /// `n` bytes in DATA frames; refuses more than the connection may hold, after `freed` bytes of
  /// what it holds are gone.
  std::string receive(std::int64_t n, std::uint64_t freed = 0);
  void release_all();
  void check_room(std::uint64_t bytes, std::uint64_t freed) const;
  void charge(std::uint64_t bytes);
  void discharge(std::uint64_t bytes);

  struct Held {
    Ref<runtime::Storage> storage;
    runtime::Bytes bytes;
  };
  template <typename T>
  struct Charged {
    Ref<T> value;
    std::uint64_t bytes = 0;  // what it is charged with
  };
  Held& storage(std::int64_t handle);
  std::int64_t number(const Frame& f, int index) const;
  std::vector<runtime::CallArg> arguments(const Frame& f);

  const ServerOptions& options_;
  const OpenDevice& open_;
  Stream& stream_;
  std::string peer_;
  std::atomic<std::uint64_t>& held_by_all_;
  std::int64_t id_;  // the server's number of this connection
  Ref<runtime::Device> device_;
  std::map<std::int64_t, Held> storages_;
  std::map<std::int64_t, Charged<runtime::Executable>> executables_;
  std::map<std::int64_t, Charged<runtime::Module>> modules_;
  std::map<std::pair<std::int64_t, std::string>, Ref<runtime::Function>> functions_;
  std::map<std::string, std::string> files_;
  std::int64_t next_ = 1;
  std::uint64_t held_ = 0;
  bool broken_ = false;  // the stream no longer makes sense: end it
  bool full_ = false;    // refused for want of room
  int measuring_ = 0;    // how deep measurements are nested
  Host host_;
};

}  // namespace weft::rpc
