// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "weft/base/wait.h"
#include "weft/runtime/rpc/connection.h"

namespace weft::rpc {

namespace {
/// Gives what the connections of many threads have freed back to the host: glibc keeps it for each.
void give_memory_back() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}
constexpr std::chrono::seconds kBetweenReturns{1};
}  // namespace

struct Server::Impl final : Weft::Service {
  Impl(ServerOptions o, OpenDevice d) : options(std::move(o)), open(std::move(d)) {}

  /// A stream that has not said HELLO.
  struct Silent {
    grpc::ServerContext* context;
    std::chrono::steady_clock::time_point until;
    bool gone = false;  // cancelled; its thread takes it off the list
    void end() {
      gone = true;
      context->TryCancel();
    }
  };

  grpc::Status Session(grpc::ServerContext* context, Stream* stream) override {
    std::list<Silent>::iterator mine;
    {
      std::lock_guard lock(mutex);
      // The oldest goes first: those who say HELLO at once are served however many do not.
      auto talking = [](const Silent& s) { return !s.gone; };
      if (std::count_if(silent.begin(), silent.end(), talking) >= options.sessions)
        std::find_if(silent.begin(), silent.end(), talking)->end();
      silent.push_back({context, std::chrono::steady_clock::now() + options.hello_deadline, false});
      mine = std::prev(silent.end());
    }
    changed.notify_all();
    bool waiting = true, counted = false;
    auto heard = [&] {
      if (!std::exchange(waiting, false)) return;
      std::lock_guard lock(mutex);
      silent.erase(mine);
    };
    Host host;
    host.admit = [&] {
      heard();
      if (alive.fetch_add(1) < options.sessions) return counted = true;
      --alive;
      return false;
    };
    host.cancelled = [&] { return stopping || context->IsCancelled(); };
    const bool room =
        Connection(options, open, *stream, context->peer(), held, ++connections, std::move(host))
            .serve();
    heard();
    if (counted) --alive;
    {
      std::lock_guard lock(mutex);
      idle = alive == 0;
    }
    changed.notify_all();
    if (room) return grpc::Status::OK;
    if (options.log)
      options.log(
          cat(context->peer(), ": refused: rpc.busy: ", options.sessions, " connections are open"));
    return {grpc::StatusCode::RESOURCE_EXHAUSTED,
            cat("rpc.busy: ", options.sessions, " connections are open")};
  }

  /// Ends streams that stay silent; gives memory back when no connection is left.
  void watch() {
    std::unique_lock lock(mutex);
    std::chrono::steady_clock::time_point returns{};
    while (!stopped) {
      const auto now = std::chrono::steady_clock::now();
      const auto next =
          std::find_if(silent.begin(), silent.end(), [](const Silent& s) { return !s.gone; });
      if (next != silent.end() && next->until <= now) {
        next->end();
      } else if (idle && returns <= now) {
        idle = false;
        returns = now + kBetweenReturns;
        lock.unlock();
        give_memory_back();
        lock.lock();
      } else if (idle || next != silent.end()) {
        changed.wait_until(lock, !idle                  ? next->until
                                 : next == silent.end() ? returns
                                                        : std::min(returns, next->until));
      } else {
        weft::wait(changed, lock);
      }
    }
  }

  ServerOptions options;
  OpenDevice open;
  std::atomic<int> alive{0};
  std::atomic<std::int64_t> connections{0};  // so far
  std::atomic<std::uint64_t> held{0};
  std::unique_ptr<grpc::Server> server;
  int port = 0;
  std::mutex mutex;
  std::condition_variable changed;
  bool stopped = false;
  bool idle = false;  // the last connection has ended, and its memory was not given back
  std::atomic<bool> stopping{false};
  std::list<Silent> silent;  // the oldest first
  std::thread watcher;
  const pid_t process = getpid();  // a forked child has no server
};

Server::Server(ServerOptions options, OpenDevice open)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(open))) {
  const ServerOptions& o = impl_->options;
  if (o.tls_cert.empty() != o.tls_key.empty()) {
    throw Error(ErrorKind::value, "rpc.tls.pair",
                cat("a TLS ", o.tls_cert.empty() ? "key was given without a certificate"
                                                 : "certificate was given without a key"));
  }
  if (!o.key.empty() && o.key.size() < kShortestKey) {
    throw Error(ErrorKind::value, "rpc.key.short",
                cat("a key of ", o.key.size(), " bytes can be guessed"))
        .note(cat("legal: at least ", kShortestKey, " bytes"))
        .help("make one: head -c 32 /dev/urandom | base64");
  }
  bool here =
      o.host == "localhost" || o.host == "127.0.0.1" || o.host == "::1" || o.host == "[::1]";
  if (!here && (o.key.empty() || o.tls_cert.empty())) {
    throw Error(ErrorKind::value, "rpc.bind.open",
                cat("\"", o.host, "\" can be reached from other hosts, but ",
                    o.key.empty() ? "there is no key" : "there is no TLS"))
        .note("a server that others can reach needs a key and a TLS certificate")
        .help("bind to 127.0.0.1, or give both");
  }
  if (o.port < 0 || o.port > 65535)
    throw Error(ErrorKind::value, "rpc.bind.port", cat("port ", o.port)).note("legal: 0 to 65535");
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (!o.tls_cert.empty()) {
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({o.tls_key, o.tls_cert});
    credentials = grpc::SslServerCredentials(tls);
  }
  silence_transport();
  grpc::ServerBuilder builder;
  builder.AddListeningPort(cat(o.host, ":", o.port), credentials, &impl_->port);
  builder.RegisterService(impl_.get());
  builder.SetMaxReceiveMessageSize(kMaxRequest);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // A client whose host vanished is noticed within seconds.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  impl_->server = builder.BuildAndStart();
  if (!impl_->server || impl_->port == 0) {
    throw Error(ErrorKind::io, "rpc.bind.failed", cat("cannot listen on ", o.host, ":", o.port))
        .note(
            "the port is taken, the address is not this host's, or the certificate cannot be read")
        .help("port 0 takes any free one; 127.0.0.1 and 0.0.0.0 are always this host's");
  }
  impl_->watcher = std::thread([impl = impl_.get()] { impl->watch(); });
}

Server::~Server() {
  stop();
  if (impl_->process != getpid()) static_cast<void>(impl_.release());
}

int Server::port() const { return impl_->port; }
int Server::sessions() const { return impl_->alive; }
std::uint64_t Server::held_bytes() const { return impl_->held; }

void Server::wait() {
  std::unique_lock lock(impl_->mutex);
  weft::wait(impl_->changed, lock, [&] { return impl_->stopped; });
}

void Server::stop() {
  if (impl_->process != getpid()) return;
  {
    std::lock_guard lock(impl_->mutex);
    if (impl_->stopped) return;
    impl_->stopped = true;
    impl_->stopping = true;
  }
  impl_->changed.notify_all();
  if (impl_->watcher.joinable()) impl_->watcher.join();
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->server->Wait();
  impl_->changed.notify_all();
}

Ref<Session> local(OpenDevice open, std::string device_name) {
  ServerOptions options;
  options.port = 0;
  options.device_name = std::move(device_name);
  auto server = std::make_shared<Server>(std::move(options), std::move(open));
  Ref<Session> session = Session::connect("127.0.0.1", server->port());
  session->keep(std::move(server));
  return session;
}

}  // namespace weft::rpc
