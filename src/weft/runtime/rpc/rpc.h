// SPDX-License-Identifier: Apache-2.0
#pragma once
// Devices over a network. A server gives each connection a device of its own (opened by a factory),
// or a shared one; a connection reaches only what it allocated itself, and whatever it held is
// released when it ends, however it ends. The client's side is an ordinary runtime::Device. gRPC
// stays behind this header.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/runtime/device.h"
#include "weft/runtime/module.h"

namespace weft::rpc {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 9091;                // 0: any free one; see Server::port()
  std::string key;                // what clients must present; empty: none
  std::string tls_cert, tls_key;  // PEM text; both or neither
  std::uint64_t session_bytes =
      1ull << 30;     // device memory and files that one connection may hold, each
  int sessions = 64;  // connections at a time, counted from their accepted HELLO on
  std::chrono::milliseconds hello_deadline{5000};  // from the start of a stream to its HELLO
  /// Module files by name. Where there are any, clients may load these and nothing else: they send
  /// no file, no program and no bitstream.
  std::map<std::string, std::string> modules{};
  std::string device_name =
      "device";  // what session.device(name) must ask for (the part before ':')
  std::function<void(std::string_view)>
      log;  // refusals, connections that came and went; called from any thread
};

/// Bytes of the shortest key that a server takes.
inline constexpr std::size_t kShortestKey = 16;

/// Opens the device for a connection; `config` is empty or the text given to Session::reconfigure.
using OpenDevice = std::function<Ref<runtime::Device>(std::string_view config)>;

class Server {
 public:
  /// Serves until destroyed. Throws Error(value, "rpc.bind.open") for an address off this host
  /// without key and TLS, Error(value, "rpc.key.short") for a key of less than kShortestKey bytes,
  /// Error(io, "rpc.bind.failed") when the port cannot be had, Error(value, "rpc.tls.pair").
  Server(ServerOptions options, OpenDevice open);
  ~Server();
  int port() const;
  /// Connections alive now, and bytes that they hold on devices.
  int sessions() const;
  std::uint64_t held_bytes() const;
  /// Blocks until another thread calls stop().
  void wait();
  void stop();

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

struct ConnectOptions {
  std::string key;
  std::string tls_ca;    // PEM text; empty: plain text
  std::string tls_name;  // name that the certificate must bear, when not the host's
  std::chrono::milliseconds deadline{10000};       // for every answer but those of running kernels
  std::chrono::milliseconds run_deadline{600000};  // for launches, calls and measurements
};

class Session;

/// A module loaded on the server.
class RemoteModule : public RefCounted {
 public:
  RemoteModule(Ref<Session> session, std::int64_t id, std::vector<std::string> functions);
  const std::vector<std::string>& functions() const { return functions_; }
  /// One round trip: the server checks the arguments and runs the function's plan.
  void call(std::string_view function, std::span<const runtime::CallArg> args);
  /// Measured on the server; simulated machines report cycles.
  runtime::TimeResult time(std::string_view function, std::span<const runtime::CallArg> args,
                           int number = 10, int repeat = 3, double min_seconds = 0);

 private:
  Ref<Session> session_;
  std::int64_t id_;
  std::vector<std::string> functions_;
};

/// A connection. Methods may be called from several threads; they take turns.
class Session : public RefCounted {
 public:
  /// Throws Error(rpc, "rpc.connect" | "rpc.key" | "rpc.version" | "rpc.busy").
  static Ref<Session> connect(std::string host, int port, ConnectOptions options = {});
  ~Session() override;

  /// Files are held by the server for this connection only. Names are plain file names. Throws
  /// "rpc.file.name".
  void upload(std::string_view name, std::string_view bytes);
  /// The file at `path` under its own name.
  void upload_file(const std::string& path);
  Ref<RemoteModule> load_module(std::string_view name);
  /// Throws Error(device, "rpc.device.unknown") when the server serves another.
  Ref<runtime::Device> device(std::string_view name = {});
  /// A new device with this configuration, for this connection. Refused ("rpc.reconfigure.busy")
  /// while arrays live or a measurement has begun.
  void reconfigure(std::string_view config);
  /// Programs the chip; empty: the bitstream that the server has for its configuration.
  void program(std::string_view bitstream = {});
  /// `what` lives until the session ends, after its last device and array.
  void keep(std::shared_ptr<void> what);
  /// Round trips and bytes so far, as rows.
  runtime::StatReport traffic() const;

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A session of a server inside this process, which lives as long as the session.
Ref<Session> local(OpenDevice open, std::string device_name = "device");

}  // namespace weft::rpc
