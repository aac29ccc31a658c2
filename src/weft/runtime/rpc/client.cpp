// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>

#include <mutex>

#include <unistd.h>

#include "weft/base/file.h"
#include "weft/base/json.h"
#include "weft/base/patient_lock.h"
#include "weft/runtime/rpc/client_stream.h"
#include "weft/runtime/rpc/rpc.h"
#include "weft/runtime/rpc/wire.h"

namespace weft::rpc {

namespace {

/// `where` and the server's number of the connection make the name differ from that of any other
/// connection's device.
runtime::DeviceInfo info_from(const Json& j, std::string_view where, int generation) {
  runtime::DeviceInfo info;
  // A configuration file's folder is the server's business.
  const std::string& served = j.at("name").as_string();
  std::size_t colon = served.find(':'), slash = served.rfind('/');
  info.name = cat("rpc:",
                  colon != std::string::npos && slash != std::string::npos && slash > colon
                      ? cat(served.substr(0, colon + 1), served.substr(slash + 1))
                      : served,
                  "@", where, "#", j.at("connection").as_int());
  if (generation > 0) info.name += cat(".", generation);
  std::int64_t kind = j.at("kind").as_int();
  info.kind = kind >= 0 && kind <= 2 ? static_cast<runtime::DeviceKind>(kind)
                                     : runtime::DeviceKind::hardware;
  info.description = j.at("description").as_string();
  info.clock_hz = j.at("clock_hz").as_double();
  info.dl_type = static_cast<int>(j.at("dl_type").as_int());
  info.dl_id = static_cast<int>(j.at("dl_id").as_int());
  info.memory_bytes = static_cast<runtime::Bytes>(j.at("memory_bytes").as_int());
  for (const auto& [name, value] : j.at("limits").as_object()) info.limits[name] = value.as_int();
  return info;
}

}  // namespace

struct Session::Impl {
  std::shared_ptr<void> keep;  // destroyed last
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<Weft::Stub> stub;
  std::unique_ptr<ClientStream> stream;
  std::recursive_mutex mutex;
  ConnectOptions options;
  std::string where;
  std::string lost;  // why the connection is gone; empty: it is not
  Json info;
  int generation = 0;  // of the server's device; changes with reconfigure
  std::int64_t trips = 0, sent = 0, received = 0;
  const pid_t process = getpid();

  /// gRPC's threads and locks are not there in a child that was forked: calls would hang.
  bool forked() const { return process != getpid(); }

  [[noreturn]] void fail(std::chrono::milliseconds limit) {
    if (lost.empty()) {
      if (stream->late()) {
        lost = cat("no answer within ", limit.count(), " ms");
        throw Error(ErrorKind::rpc, "rpc.deadline", cat(where, " gave ", lost))
            .help("the connection is closed; connect again");
      }
      const grpc::Status& status = stream->finish();
      lost = status.error_message().empty() ? "the connection ended" : status.error_message();
      if (status.error_message().starts_with("rpc.busy"))
        throw Error(ErrorKind::rpc, "rpc.busy", cat(where, ": ", status.error_message()));
    }
    throw Error(ErrorKind::rpc, "rpc.lost", cat(where, ": ", lost))
        .help("connect again; what the connection held on the server has been released");
  }

  /// Sends a frame (and data), waits for the answer.
  Frame ask(const Frame& frame, std::string_view data = {}, bool runs = false,
            const std::function<void(const std::string&)>& chunk = {}) {
    if (forked())
      throw Error(ErrorKind::rpc, "rpc.fork",
                  cat("the connection to ", where, " was opened by process ", process,
                      " and is used by its child ", getpid()))
          .help("connect in the child, or start processes by \"spawn\" or \"forkserver\"");
    const auto lock = patient_lock(mutex);
    std::chrono::milliseconds limit = runs ? options.run_deadline : options.deadline;
    if (!lost.empty()) fail(limit);
    // The server ends a connection that sends more than it may hold; who asks first keeps it.
    const Json* told = info.is_object() ? info.find("session_bytes") : nullptr;
    const std::int64_t most = told && told->is_int() ? told->as_int() : 0;
    if (most > 0 && data.size() > static_cast<std::uint64_t>(most))
      throw Error(ErrorKind::memory, "rpc.limit.bytes",
                  cat("a transfer of ", human_bytes(data.size()), " to ", where))
          .note(cat("each connection may hold ", human_bytes(static_cast<std::uint64_t>(most))))
          .help("weft serve --session-bytes sets the limit");
    stream->arm(limit);
    ++trips;
    sent += static_cast<std::int64_t>(data.size());
    Frame answer;
    bool good = false;
    try {
      good = stream->write(frame) && send_data(data.data(), data.size(), [&](const Frame& f) {
               stream->arm(limit);  // progress
               return stream->write(f);
             });
      // A refusal may come before all has been sent; it is there to be read.
      while (!stream->late() && (good = stream->read(answer)) && answer.op() == DATA) {
        stream->arm(limit);
        received += static_cast<std::int64_t>(answer.data().size());
        if (chunk) chunk(answer.data());
      }
    } catch (...) {
      if (stream->interrupted()) lost = "a call was interrupted, and the connection ended with it";
      throw;
    }
    if (!good) fail(limit);
    if (answer.op() == FAILED) throw to_error(answer.failure());
    if (answer.op() != frame.op())
      throw Error(ErrorKind::rpc, "rpc.protocol",
                  cat(where, " answered operation ", static_cast<int>(frame.op()), " with ",
                      static_cast<int>(answer.op())));
    if (chunk && !answer.data().empty()) {
      received += static_cast<std::int64_t>(answer.data().size());
      chunk(answer.data());
    }
    return answer;
  }

  /// Sends without waiting; never throws: for releases.
  void tell(const Frame& frame) noexcept {
    if (forked()) return;
    try {
      const auto lock = patient_lock(mutex);
      if (!lost.empty()) return;
      stream->arm(options.deadline);
      stream->tell(frame);
    } catch (...) {  // a lock that cannot be had: the server frees it with the connection
    }
  }
};

namespace {

Frame make(Op op, std::initializer_list<std::int64_t> ints = {}, std::string_view text = {},
           bool has_text = false) {
  Frame f;
  f.set_op(op);
  for (std::int64_t i : ints) f.add_ints(i);
  if (has_text || !text.empty()) f.add_texts(std::string(text));
  return f;
}

class RemoteExecutable final : public runtime::Executable {
 public:
  RemoteExecutable(Ref<runtime::Device> device, runtime::Binary binary, Ref<Session> session,
                   std::int64_t id, int generation)
      : Executable(std::move(device), std::move(binary)),
        session_(std::move(session)),
        id_(id),
        generation_(generation) {}
  ~RemoteExecutable() override { session_->impl().tell(make(UNLOAD, {id_})); }
  std::int64_t id() const { return id_; }

 private:
  Ref<Session> session_;
  std::int64_t id_;
  int generation_;
};

/// A remote address is the server's handle times this: checks of alignment on this side then pass,
/// as they do on the server, whose allocator was told the alignment.
constexpr std::uint64_t kHandleUnit = 4096;

class RemoteDevice final : public runtime::Device {
 public:
  explicit RemoteDevice(Ref<Session> session)
      : session_(std::move(session)),
        info_(
            info_from(session_->impl().info, session_->impl().where, session_->impl().generation)),
        generation_(session_->impl().generation) {}
  const runtime::DeviceInfo& info() const override { return info_; }

  Ref<runtime::Storage> allocate(runtime::Bytes bytes, runtime::Bytes align,
                                 std::string_view space) override {
    Frame answer =
        ask(make(ALLOCATE, {static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(align)},
                 space, true));
    if (answer.ints_size() != 1)
      throw Error(ErrorKind::rpc, "rpc.protocol", "ALLOCATE was answered without a handle");
    return make_ref<runtime::Storage>(Ref<runtime::Device>(this),
                                      static_cast<std::uint64_t>(answer.ints(0)) * kHandleUnit,
                                      bytes, space);
  }
  void upload(runtime::Storage& dst, runtime::Bytes offset, const void* src,
              runtime::Bytes bytes) override {
    runtime::check_range(dst, offset, bytes);
    ask(make(WRITE,
             {handle(dst), static_cast<std::int64_t>(offset), static_cast<std::int64_t>(bytes)}),
        {static_cast<const char*>(src), bytes});
  }
  void download(void* dst, const runtime::Storage& src, runtime::Bytes offset,
                runtime::Bytes bytes) override {
    runtime::check_range(src, offset, bytes);
    runtime::Bytes got = 0;
    check();
    session_->impl().ask(
        make(READ,
             {handle(src), static_cast<std::int64_t>(offset), static_cast<std::int64_t>(bytes)}),
        {}, false, [&](const std::string& chunk) {
          if (chunk.size() > bytes - got)
            throw Error(ErrorKind::rpc, "rpc.protocol", "the server sent more than was asked for");
          std::memcpy(static_cast<char*>(dst) + got, chunk.data(), chunk.size());
          got += chunk.size();
        });
    if (got != bytes)
      throw Error(ErrorKind::rpc, "rpc.protocol",
                  cat("the server sent ", got, " of ", bytes, " bytes"));
  }
  void copy(runtime::Storage& dst, runtime::Bytes dst_offset, const runtime::Storage& src,
            runtime::Bytes src_offset, runtime::Bytes bytes) override {
    runtime::check_range(dst, dst_offset, bytes);
    runtime::check_range(src, src_offset, bytes);
    ask(make(COPY, {handle(dst), static_cast<std::int64_t>(dst_offset), handle(src),
                    static_cast<std::int64_t>(src_offset), static_cast<std::int64_t>(bytes)}));
  }
  Ref<runtime::Executable> load(runtime::Binary binary) override {
    std::string bytes = runtime::Module(binary, {}).serialize();
    check();
    Frame answer =
        session_->impl().ask(make(LOAD, {static_cast<std::int64_t>(bytes.size())}), bytes, true);
    if (answer.ints_size() != 1)
      throw Error(ErrorKind::rpc, "rpc.protocol", "LOAD was answered without a handle");
    return make_ref<RemoteExecutable>(Ref<runtime::Device>(this), std::move(binary), session_,
                                      answer.ints(0), generation_);
  }
  runtime::Event launch(runtime::Executable& executable, std::size_t kernel,
                        std::span<const runtime::KernelArg> args,
                        std::span<const std::int64_t> extents) override {
    Frame frame = make(LAUNCH, {static_cast<RemoteExecutable&>(executable).id(),
                                static_cast<std::int64_t>(kernel)});
    for (const runtime::KernelArg& a : args) {
      Argument* out = frame.add_arguments();
      if (a.storage) out->set_storage(static_cast<std::uint64_t>(handle(*a.storage)));
      out->set_offset(a.offset);
      out->set_integer(a.scalar);
    }
    for (std::int64_t e : extents) frame.add_ints(e);
    ask(frame, true);
    return {};
  }
  void synchronize() override { ask(make(SYNCHRONIZE), true); }
  runtime::Span measure(const std::function<void()>& work) override {
    check();
    const auto lock = patient_lock(session_->impl().mutex);  // nobody else's work is measured
    ask(make(MEASURE_BEGIN));
    std::exception_ptr failed;
    try {
      work();
    } catch (...) {
      failed = std::current_exception();
    }
    Frame end = make(MEASURE_END);
    Frame answer;
    try {
      answer = finish_measure();
    } catch (...) {
      if (failed) std::rethrow_exception(failed);
      throw;
    }
    if (failed) std::rethrow_exception(failed);
    if (answer.reals_size() != 2 || answer.ints_size() != 1)
      throw Error(ErrorKind::rpc, "rpc.protocol", "a measurement was answered without its figures");
    return {answer.reals(0), answer.reals(1), answer.ints(0)};
  }
  runtime::StatReport stats() const override {
    runtime::StatReport out;
    Frame answer = session_->impl().ask(make(STATS));
    const Json rows = Json::parse(answer.texts_size() ? answer.texts(0) : "[]");
    for (const Json& row : rows.as_array()) {
      out.add(row.at(std::size_t{0}).as_string(), row.at(std::size_t{1}).as_string(),
              row.at(std::size_t{2}).as_string(), row.at(std::size_t{3}).as_int());
    }
    return out;
  }
  void clear_stats() override { ask(make(CLEAR_STATS)); }

  std::int64_t handle(const runtime::Storage& s) const {
    return handle_of(s, *session_, info_.name);
  }
  /// The server's handle; refuses what is not of the present device of `session`.
  static std::int64_t handle_of(const runtime::Storage& s, const Session& session,
                                std::string_view wanted) {
    auto* device = dynamic_cast<const RemoteDevice*>(s.device().get());
    if (!device || device->session_.get() != &session)
      throw Error(ErrorKind::device, "rpc.device.mixed",
                  cat("an array of ", s.device()->info().name, " was given to ", wanted))
          .help("copy it there first: to(device)");
    device->check();
    return static_cast<std::int64_t>(s.address() / kHandleUnit);
  }

 protected:
  void free_storage(std::uint64_t address, runtime::Bytes, std::string_view) override {
    session_->impl().tell(make(RELEASE, {static_cast<std::int64_t>(address / kHandleUnit)}));
  }

 private:
  void check() const {
    if (session_->impl().generation != generation_)
      throw Error(ErrorKind::device, "rpc.device.replaced",
                  "the connection was reconfigured; ask the session for its device again");
  }
  Frame ask(const Frame& frame, bool runs = false) const {
    check();
    return session_->impl().ask(frame, {}, runs);
  }
  void ask(const Frame& frame, std::string_view data) const {
    check();
    session_->impl().ask(frame, data);
  }
  Frame finish_measure() {
    // The answer to MEASURE_END is that of MEASURE_BEGIN, completed.
    return session_->impl().ask(make(MEASURE_END), {}, true);
  }

  Ref<Session> session_;
  runtime::DeviceInfo info_;
  int generation_;
};

void add_arguments(Frame& frame, const Session& session, std::span<const runtime::CallArg> args) {
  for (const runtime::CallArg& a : args) {
    Argument* out = frame.add_arguments();
    if (a.storage)
      out->set_storage(static_cast<std::uint64_t>(
          RemoteDevice::handle_of(*a.storage, session, "a function of another connection")));
    out->set_offset(a.byte_offset);
    out->set_integer(a.int_value);
    out->set_real(a.float_value);
    out->set_dtype(to_string(a.dtype));
    for (std::int64_t v : a.shape) out->add_shape(v);
    for (std::int64_t v : a.strides) out->add_strides(v);
  }
}

}  // namespace

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Session::~Session() {
  if (impl_->forked()) static_cast<void>(impl_.release());
}

Ref<Session> Session::connect(std::string host, int port, ConnectOptions options) {
  silence_transport();
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  impl->where = cat(host, ":", port);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxAnswer);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (!impl->options.tls_ca.empty()) {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = impl->options.tls_ca;
    credentials = grpc::SslCredentials(tls);
    if (!impl->options.tls_name.empty()) arguments.SetSslTargetNameOverride(impl->options.tls_name);
  }
  impl->channel = grpc::CreateCustomChannel(impl->where, credentials, arguments);
  if (!impl->channel->WaitForConnected(std::chrono::system_clock::now() + impl->options.deadline)) {
    throw Error(
        ErrorKind::rpc, "rpc.connect",
        cat("cannot reach ", impl->where, " within ", impl->options.deadline.count(), " ms"))
        .note(impl->options.tls_ca.empty() ? "plain text was tried; a server with TLS refuses it"
                                           : "TLS was tried with the given certificate authority")
        .help("is \"weft serve\" running there?");
  }
  impl->stub = Weft::NewStub(impl->channel);
  impl->stream = std::make_unique<ClientStream>(*impl->stub, impl->options.deadline);
  Ref<Session> session(new Session(std::move(impl)));
  Frame answer = session->impl_->ask(make(HELLO, {kVersion}, session->impl_->options.key, true));
  session->impl_->info = Json::parse(answer.texts_size() ? answer.texts(0) : "", "<hello>");
  return session;
}

void Session::upload(std::string_view name, std::string_view bytes) {
  if (Verdict refusal = check_file_name(name)) throw Error(ErrorKind::rpc, std::move(*refusal));
  impl_->ask(make(PUT_FILE, {static_cast<std::int64_t>(bytes.size())}, name), bytes);
}

void Session::upload_file(const std::string& path) {
  std::size_t slash = path.find_last_of('/');
  upload(slash == std::string::npos ? path : path.substr(slash + 1), read_file(path));
}

Ref<RemoteModule> Session::load_module(std::string_view name) {
  Frame answer = impl_->ask(make(LOAD_MODULE, {}, name, true), {}, true);
  if (answer.ints_size() != 1)
    throw Error(ErrorKind::rpc, "rpc.protocol", "LOAD_MODULE was answered without a handle");
  return make_ref<RemoteModule>(
      Ref<Session>(this), answer.ints(0),
      std::vector<std::string>(answer.texts().begin(), answer.texts().end()));
}

Ref<runtime::Device> Session::device(std::string_view name) {
  const std::string& served = impl_->info.at("served").as_string();
  std::string_view wanted = name.substr(0, name.find(':'));
  if (!name.empty() && name != served && wanted != served.substr(0, served.find(':'))) {
    throw Error(ErrorKind::device, "rpc.device.unknown",
                cat(impl_->where, " serves no device \"", name, "\""))
        .note(cat("it serves \"", served, "\""));
  }
  return make_ref<RemoteDevice>(Ref<Session>(this));
}

void Session::reconfigure(std::string_view config) {
  Frame answer = impl_->ask(make(RECONFIGURE, {}, config, true), {}, true);
  impl_->info = Json::parse(answer.texts_size() ? answer.texts(0) : "", "<reconfigure>");
  ++impl_->generation;
}

void Session::program(std::string_view bitstream) {
  impl_->ask(make(PROGRAM, {static_cast<std::int64_t>(bitstream.size())}), bitstream, true);
}

void Session::keep(std::shared_ptr<void> what) { impl_->keep = std::move(what); }

runtime::StatReport Session::traffic() const {
  const auto lock = patient_lock(impl_->mutex);
  runtime::StatReport r;
  r.add("rpc.trips", "1", "questions asked", impl_->trips);
  r.add("bytes.rpc.written", "bytes", "buffers and files sent", impl_->sent);
  r.add("bytes.rpc.read", "bytes", "buffers received", impl_->received);
  return r;
}

RemoteModule::RemoteModule(Ref<Session> session, std::int64_t id,
                           std::vector<std::string> functions)
    : session_(std::move(session)), id_(id), functions_(std::move(functions)) {}

void RemoteModule::call(std::string_view function, std::span<const runtime::CallArg> args) {
  Frame frame = make(CALL, {id_}, function, true);
  add_arguments(frame, *session_, args);
  session_->impl().ask(frame, {}, true);
}

runtime::TimeResult RemoteModule::time(std::string_view function,
                                       std::span<const runtime::CallArg> args, int number,
                                       int repeat, double min_seconds) {
  Frame frame = make(TIME, {id_, number, repeat}, function, true);
  frame.add_reals(min_seconds);
  add_arguments(frame, *session_, args);
  Frame answer = session_->impl().ask(frame, {}, true);
  if (answer.reals_size() < 7)
    throw Error(ErrorKind::rpc, "rpc.protocol", "a measurement was answered without its figures");
  runtime::TimeResult r;
  r.mean = answer.reals(0), r.median = answer.reals(1), r.min = answer.reals(2),
  r.max = answer.reals(3), r.stddev = answer.reals(4), r.cycles = answer.reals(5),
  r.wall = answer.reals(6);
  r.results.assign(answer.reals().begin() + 7, answer.reals().end());
  return r;
}

}  // namespace weft::rpc
