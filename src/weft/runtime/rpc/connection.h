// SPDX-License-Identifier: Apache-2.0
#pragma once
// The server's side of one connection: its device, its handles, and the loop that answers frames.
// Everything it holds goes when it is destroyed.

#include <atomic>
#include <map>

#include "weft/runtime/rpc/rpc.h"
#include "weft/runtime/rpc/wire.h"

namespace weft::rpc {

using Stream = grpc::ServerReaderWriter<Frame, Frame>;

class Connection {
 public:
  Connection(const ServerOptions& options, const OpenDevice& open, Stream& stream, std::string peer,
             std::atomic<std::uint64_t>& held, std::int64_t id);
  ~Connection();
  /// Until the client goes or breaks the rules.
  void serve();

 private:
  bool read(Frame& frame);
  void reply(const Frame& frame);
  void log(std::string_view what);
  bool hello();
  /// Answers frames until the stream ends; `measuring`: or until MEASURE_END.
  void loop(bool measuring);
  Frame handle(const Frame& frame);

  Frame write_storage(const Frame& f);
  Frame read_storage(const Frame& f);
  Frame launch(const Frame& f);
  Frame call(const Frame& f, bool timed);
  Frame measure();
  /// `n` bytes in DATA frames; refuses more than the connection may hold.
  std::string receive(std::int64_t n);
  void release_all();
  void charge(std::uint64_t bytes);
  void discharge(std::uint64_t bytes);

  struct Held {
    Ref<runtime::Storage> storage;
    runtime::Bytes bytes;
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
  std::map<std::int64_t, Ref<runtime::Executable>> executables_;
  std::map<std::int64_t, Ref<runtime::Module>> modules_;
  std::map<std::pair<std::int64_t, std::string>, Ref<runtime::Function>> functions_;
  std::map<std::string, std::string> files_;
  std::int64_t next_ = 1;
  std::uint64_t held_ = 0;
  bool broken_ = false;  // the stream no longer makes sense: end it
  std::string program_text_;
};

}  // namespace weft::rpc
