// SPDX-License-Identifier: Apache-2.0
#include "weft/base/interrupt.h"
#include "weft/base/json.h"
#include "weft/runtime/allocation_limit.h"
#include "weft/runtime/programmable.h"
#include "weft/runtime/rpc/connection.h"
#include "weft/runtime/signature.h"

namespace weft::rpc {

namespace {

Error protocol(std::string message) {
  return Error(ErrorKind::rpc, "rpc.protocol", std::move(message));
}

constexpr int kMostMeasurements = 8;            // one inside another
constexpr std::size_t kMostStorages = 1 << 16;  // arrays of a connection
constexpr std::size_t kMostPrograms = 1 << 10;  // programs, modules, functions, of each
constexpr double kLongestSample = 60;           // seconds of a sample of TIME
// Memory that a loaded module takes beside its file: what was parsed, and its code.
constexpr std::uint64_t kModuleFactor = 4;

Json info_json(const runtime::DeviceInfo& info, const ServerOptions& options,
               std::int64_t connection) {
  Json j = Json::object();
  j["connection"] = connection;
  j["served"] = options.device_name;
  j["session_bytes"] = static_cast<std::int64_t>(options.session_bytes);
  j["name"] = info.name;
  j["kind"] = static_cast<int>(info.kind);
  j["description"] = info.description;
  j["clock_hz"] = info.clock_hz;
  j["dl_type"] = info.dl_type;
  j["dl_id"] = info.dl_id;
  j["memory_bytes"] = info.memory_bytes;
  Json limits = Json::object();
  for (const auto& [name, value] : info.limits) limits[name] = value;
  j["limits"] = std::move(limits);
  return j;
}

}  // namespace

Connection::Connection(const ServerOptions& options, const OpenDevice& open, Stream& stream,
                       std::string peer, std::atomic<std::uint64_t>& held, std::int64_t id,
                       Host host)
    : options_(options),
      open_(open),
      stream_(stream),
      peer_(std::move(peer)),
      held_by_all_(held),
      id_(id),
      host_(std::move(host)) {}

Connection::~Connection() { release_all(); }

void Connection::release_all() {
  functions_.clear();
  modules_.clear();
  executables_.clear();
  storages_.clear();
  files_.clear();
  held_by_all_ -= held_;
  held_ = 0;
}

void Connection::log(std::string_view what) {
  if (options_.log) options_.log(printable(cat(peer_, ": ", what)));
}

bool Connection::read(Frame& frame) { return !broken_ && stream_.Read(&frame); }
void Connection::reply(const Frame& frame) {
  if (!stream_.Write(frame)) broken_ = true;
}

void Connection::check_room(std::uint64_t bytes, std::uint64_t freed) const {
  if (bytes <= options_.session_bytes && held_ - freed <= options_.session_bytes - bytes) return;
  throw Error(ErrorKind::memory, "rpc.limit.bytes",
              cat("the connection would hold ", human_bytes(held_ - freed + bytes)))
      .note(cat("each may hold ", human_bytes(options_.session_bytes)));
}

void Connection::charge(std::uint64_t bytes) {
  check_room(bytes, 0);
  held_ += bytes;
  held_by_all_ += bytes;
}

void Connection::discharge(std::uint64_t bytes) {
  held_ -= bytes;
  held_by_all_ -= bytes;
}

bool Connection::serve() {
  try {
    if (!hello()) return !full_;
    // Whatever runs here for long asks now and then whether anybody still waits for it.
    const InterruptScope scope([this] {
      if (host_.cancelled())
        throw Error(ErrorKind::rpc, "rpc.cancelled",
                    cat("connection ", id_, " ended or its server stops: its work was given up"));
    });
    loop(false);
    log("closed");
  } catch (const Error& error) {
    log(cat("ended: ", error.code(), ": ", error.message()));
  } catch (const std::exception& error) {
    log(cat("ended: ", error.what()));
  }
  return true;
}

bool Connection::hello() {
  Frame frame, answer;
  if (!read(frame)) {
    log("left before it said anything");
    return false;
  }
  auto refuse = [&](const Error& error) {
    log(cat("refused: ", error.code(), ": ", error.message()));
    answer.set_op(FAILED);
    *answer.mutable_failure() = to_failure(error);
    reply(answer);
    return false;
  };
  if (frame.op() != HELLO || frame.ints_size() != 1 || frame.texts_size() != 1)
    return refuse(protocol("a connection begins with HELLO"));
  if (frame.ints(0) != kVersion) {
    return refuse(
        Error(ErrorKind::rpc, "rpc.version",
              cat("the client speaks version ", frame.ints(0), ", this server ", kVersion)));
  }
  if (!same_key(frame.texts(0), options_.key))
    return refuse(
        Error(ErrorKind::rpc, "rpc.key",
              "the key is not this server's, " +
                  std::string(frame.texts(0).empty() ? "none was given" : "another was given")));
  if (!host_.admit()) {
    full_ = true;
    return false;
  }
  try {
    device_ = open_({});
  } catch (const Error& error) {
    return refuse(error);
  }
  answer.set_op(HELLO);
  answer.add_texts(info_json(device_->info(), options_, id_).dump());
  reply(answer);
  log("connected");
  return true;
}

void Connection::loop(bool measuring) {
  Frame frame;
  while (read(frame)) {
    if (frame.op() == MEASURE_END && measuring) return;
    Frame answer;
    try {
      answer = handle(frame);
      answer.set_op(frame.op() == MEASURE_BEGIN
                        ? MEASURE_END
                        : frame.op());  // a measurement is answered at its end
    } catch (const Error& error) {
      answer.Clear();
      answer.set_op(FAILED);
      *answer.mutable_failure() = to_failure(error);
      if (error.code().starts_with("rpc."))
        log(cat("refused: ", error.code(), ": ", error.message()));
    } catch (const std::exception& error) {
      answer.Clear();
      answer.set_op(FAILED);
      *answer.mutable_failure() =
          to_failure(Error(ErrorKind::internal, "rpc.server", error.what()));
      log(cat("failed: ", error.what()));
    }
    if (frame.op() == RELEASE || frame.op() == UNLOAD) continue;  // said without waiting
    reply(answer);
  }
  if (measuring) throw protocol("the stream ended inside a measurement");
}

std::int64_t Connection::number(const Frame& f, int index) const {
  if (index >= f.ints_size())
    throw protocol(cat("operation ", static_cast<int>(f.op()), " needs ", index + 1, " numbers, ",
                       f.ints_size(), " came"));
  std::int64_t value = f.ints(index);
  if (value < 0)
    throw protocol(cat("operation ", static_cast<int>(f.op()), " was given the number ", value));
  return value;
}

Connection::Held& Connection::storage(std::int64_t handle) {
  auto found = storages_.find(handle);
  if (found == storages_.end())
    throw Error(ErrorKind::value, "rpc.handle", cat("this connection holds no array ", handle));
  return found->second;
}

std::string Connection::receive(std::int64_t n, std::uint64_t freed) {
  auto bytes = static_cast<std::uint64_t>(n);
  std::exception_ptr no_room;  // what comes is read, so that the connection goes on, and not kept
  try {
    check_room(bytes, freed);
  } catch (const Error&) {
    no_room = std::current_exception();
  }
  Error refusal(ErrorKind::rpc, "", "");
  bool refused = false;
  if (bytes > options_.session_bytes) {
    refusal = Error(ErrorKind::memory, "rpc.limit.bytes", cat("a transfer of ", human_bytes(bytes)))
                  .note(cat("each connection may hold ", human_bytes(options_.session_bytes)));
    refused = true;
  }
  std::string out;
  std::uint64_t got = 0;
  Frame frame;
  while (got < bytes) {
    if (!read(frame)) {
      broken_ = true;
      throw protocol(cat("the stream ended after ", got, " of ", bytes, " bytes"));
    }
    if (frame.op() != DATA || frame.data().empty() || frame.data().size() > bytes - got) {
      broken_ = true;
      throw protocol(cat("after ", got, " of ", bytes, " bytes came operation ",
                         static_cast<int>(frame.op()), " with ", frame.data().size()));
    }
    got += frame.data().size();
    if (refused) {  // do not take what has been refused
      broken_ = true;
      throw refusal;
    }
    if (!no_room) out += frame.data();
  }
  if (refused) throw refusal;
  if (no_room) std::rethrow_exception(no_room);
  return out;
}

Frame Connection::write_storage(const Frame& f) {
  std::int64_t offset = number(f, 1), bytes = number(f, 2);
  Held* held = nullptr;
  std::exception_ptr refusal;
  try {
    held = &storage(number(f, 0));
    runtime::check_range(*held->storage, static_cast<runtime::Bytes>(offset),
                         static_cast<runtime::Bytes>(bytes));
  } catch (...) {
    refusal = std::current_exception();  // the data is on its way and must be read first
  }
  std::uint64_t got = 0, total = static_cast<std::uint64_t>(bytes);
  Frame frame;
  while (got < total) {
    if (!read(frame)) {
      broken_ = true;
      throw protocol(cat("the stream ended after ", got, " of ", total, " bytes"));
    }
    if (frame.op() != DATA || frame.data().empty() || frame.data().size() > total - got) {
      broken_ = true;
      throw protocol(cat("after ", got, " of ", total, " bytes came operation ",
                         static_cast<int>(frame.op())));
    }
    if (!refusal)
      device_->upload(*held->storage, static_cast<runtime::Bytes>(offset) + got,
                      frame.data().data(), frame.data().size());
    got += frame.data().size();
  }
  if (refusal) std::rethrow_exception(refusal);
  return {};
}

Frame Connection::read_storage(const Frame& f) {
  Held& held = storage(number(f, 0));
  auto offset = static_cast<runtime::Bytes>(number(f, 1)),
       bytes = static_cast<runtime::Bytes>(number(f, 2));
  runtime::check_range(*held.storage, offset, bytes);
  // One frame where it fits; more otherwise, the last one without op DATA being the answer.
  std::string chunk;
  for (runtime::Bytes at = 0; at < bytes || bytes == 0;) {
    runtime::Bytes n = std::min<runtime::Bytes>(kChunk, bytes - at);
    Frame frame;
    std::string* data = frame.mutable_data();
    data->resize(n);
    device_->download(data->data(), *held.storage, offset + at, n);
    at += n;
    if (at >= bytes) return frame;
    frame.set_op(DATA);
    reply(frame);
    if (broken_) throw protocol("the client left while reading");
  }
  return {};
}

Frame Connection::launch(const Frame& f) {
  auto found = executables_.find(number(f, 0));
  if (found == executables_.end())
    throw Error(ErrorKind::value, "rpc.handle",
                cat("this connection holds no program ", f.ints(0)));
  auto kernel = static_cast<std::size_t>(number(f, 1));
  const auto& kernels = found->second.value->binary().kernels;
  if (kernel >= kernels.size()) throw protocol(cat("kernel ", kernel, " of ", kernels.size()));
  const std::vector<bool> pointers = runtime::pointer_arguments(kernels[kernel]);
  if (static_cast<std::size_t>(f.arguments_size()) != pointers.size()) {
    throw protocol(cat("\"", kernels[kernel].name, "\" takes ", pointers.size(), " arguments, ",
                       f.arguments_size(), " came"));
  }
  std::vector<runtime::KernelArg> args;
  for (int i = 0; i < f.arguments_size(); ++i) {
    const Argument& a = f.arguments(i);
    const bool pointer = pointers[static_cast<std::size_t>(i)];
    if (pointer != (a.storage() != 0))
      throw protocol(cat("argument ", i, " of \"", kernels[kernel].name, "\" is ",
                         pointer ? "an array" : "a scalar"));
    if (!pointer) {
      args.push_back(runtime::KernelArg::integer(a.integer()));
      continue;
    }
    Held& held = storage(static_cast<std::int64_t>(a.storage()));
    runtime::check_range(*held.storage, a.offset(), 0);
    args.push_back(runtime::KernelArg::pointer(held.storage.get(), a.offset()));
  }
  std::vector<std::int64_t> extents;
  for (int i = 2; i < f.ints_size(); ++i) extents.push_back(f.ints(i));
  if (extents.size() != kernels[kernel].axes.size())
    throw protocol(cat("\"", kernels[kernel].name, "\" has ", kernels[kernel].axes.size(),
                       " launch axes, ", extents.size(), " extents came"));
  device_->launch(*found->second.value, kernel, args, extents).wait();
  return {};
}

std::vector<runtime::CallArg> Connection::arguments(const Frame& f) {
  std::vector<runtime::CallArg> out;
  for (const Argument& a : f.arguments()) {
    runtime::CallArg arg;
    if (a.storage()) arg.storage = storage(static_cast<std::int64_t>(a.storage())).storage.get();
    arg.byte_offset = a.offset();
    arg.dtype = parse_dtype(a.dtype());
    arg.shape.assign(a.shape().begin(), a.shape().end());
    arg.strides.assign(a.strides().begin(), a.strides().end());
    arg.int_value = a.integer();
    arg.float_value = a.real();
    out.push_back(std::move(arg));
  }
  return out;
}

Frame Connection::call(const Frame& f, bool timed) {
  std::int64_t id = number(f, 0);
  auto module = modules_.find(id);
  if (module == modules_.end())
    throw Error(ErrorKind::value, "rpc.handle", cat("this connection holds no module ", id));
  if (f.texts_size() != 1) throw protocol("a call names its function");
  auto [function, fresh] = functions_.try_emplace({id, f.texts(0)});
  if (fresh) {
    try {
      limit_count(functions_.size() - 1, kMostPrograms, "functions");
      function->second = make_ref<runtime::Function>(module->second.value, f.texts(0), device_);
    } catch (...) {
      functions_.erase(function);
      throw;
    }
  }
  std::vector<runtime::CallArg> args = arguments(f);
  const runtime::AllocationLimit limit(options_.session_bytes - held_);
  Frame out;
  if (!timed) {
    function->second->call(args).wait();
    return out;
  }
  if (f.reals_size() != 1 || number(f, 1) < 1 || number(f, 2) < 1 || number(f, 1) > 1'000'000 ||
      number(f, 2) > 10'000)
    throw protocol("number and repeat of a measurement");
  if (!(f.reals(0) >= 0 && f.reals(0) <= kLongestSample))
    throw Error(ErrorKind::value, "rpc.limit.seconds",
                cat("a sample of at least ", f.reals(0), " seconds"))
        .note(cat("legal: 0 to ", kLongestSample));
  runtime::TimeResult r = function->second->time(args, static_cast<int>(f.ints(1)),
                                                 static_cast<int>(f.ints(2)), f.reals(0));
  for (double v : {r.mean, r.median, r.min, r.max, r.stddev, r.cycles, r.wall}) out.add_reals(v);
  for (double v : r.results) out.add_reals(v);
  return out;
}

Frame Connection::measure() {
  if (measuring_ >= kMostMeasurements) {
    broken_ = true;
    throw protocol(cat("measurements are nested ", measuring_ + 1, " deep; legal: at most ",
                       kMostMeasurements));
  }
  struct Nested {
    int& depth;
    explicit Nested(int& d) : depth(d) { ++depth; }
    ~Nested() { --depth; }
  } const nested(measuring_);
  Frame begun;
  begun.set_op(MEASURE_BEGIN);
  reply(begun);
  runtime::Span span = device_->measure([&] { loop(true); });
  Frame out;
  out.add_reals(span.seconds);
  out.add_reals(span.wall);
  out.add_ints(span.cycles);
  return out;
}

void Connection::limit_count(std::size_t count, std::size_t most, std::string_view what) const {
  if (count < most) return;
  throw Error(ErrorKind::rpc, "rpc.limit.handles", cat("the connection holds ", count, " ", what))
      .note(cat("each may hold ", most))
      .help("release what is no longer used");
}

void Connection::refuse_code(std::int64_t n, std::string_view what) {
  if (options_.modules.empty()) return;
  receive(n);  // it is on its way and must be read first
  std::vector<std::string> names;
  for (const auto& [name, bytes] : options_.modules) names.push_back(name);
  throw Error(ErrorKind::rpc, "rpc.modules.only",
              cat("this server takes no ", what, ": it serves modules of its own"))
      .note(cat("modules: ", join(names)))
      .help("load one of them by name");
}

Frame Connection::load_program(const Frame& f) {
  refuse_code(number(f, 0), "programs");
  const std::string bytes = receive(number(f, 0));
  limit_count(executables_.size(), kMostPrograms, "programs");
  const std::uint64_t cost = kModuleFactor * bytes.size();
  charge(cost);
  try {
    Ref<runtime::Module> module = runtime::Module::deserialize(bytes, "<rpc>");
    executables_[next_] = {device_->load(module->binary()), cost};
  } catch (...) {
    executables_.erase(next_);
    discharge(cost);
    throw;
  }
  Frame out;
  out.add_ints(next_++);
  return out;
}

Frame Connection::put_file(const Frame& f) {
  if (f.texts_size() != 1) throw protocol("PUT_FILE names the file");
  std::int64_t bytes = number(f, 0);
  refuse_code(bytes, "files");
  Verdict refusal = check_file_name(f.texts(0));
  if (!refusal && files_.size() >= 256 && !files_.count(f.texts(0)))
    refusal = Refusal{"rpc.limit.files", "the connection holds 256 files", {}, {}, ""};
  auto old = files_.find(f.texts(0));  // replaced: only the difference counts
  const std::uint64_t held = old == files_.end() ? 0 : old->second.size();
  std::string content = receive(bytes, held);
  if (refusal) throw Error(ErrorKind::rpc, std::move(*refusal));
  if (content.size() > held) charge(content.size() - held);
  if (content.size() < held) discharge(held - content.size());
  files_[f.texts(0)] = std::move(content);
  return {};
}

Frame Connection::load_module(const Frame& f) {
  if (f.texts_size() != 1) throw protocol("LOAD_MODULE names the file");
  const auto& files = options_.modules.empty() ? files_ : options_.modules;
  auto file = files.find(f.texts(0));
  if (file == files.end()) {
    std::vector<std::string> known;
    for (const auto& entry : files) known.push_back(entry.first);
    throw Error(ErrorKind::io, "rpc.file.unknown",
                cat(options_.modules.empty() ? "this connection has uploaded no file "
                                             : "this server has no module ",
                    json_quote(f.texts(0))))
        .note(cat("files: ", join(known)));
  }
  limit_count(modules_.size(), kMostPrograms, "modules");
  const std::uint64_t cost = kModuleFactor * file->second.size();
  charge(cost);
  Frame out;
  try {
    Ref<runtime::Module> module = runtime::Module::deserialize(file->second, file->first);
    out.add_ints(next_);
    for (const runtime::HostPlan& plan : module->plans()) out.add_texts(plan.name);
    modules_[next_] = {std::move(module), cost};
  } catch (...) {
    discharge(cost);
    throw;
  }
  ++next_;
  return out;
}

Frame Connection::reconfigure(const Frame& f) {
  if (f.texts_size() != 1) throw protocol("RECONFIGURE carries the configuration");
  if (measuring_ > 0) {  // by the device that would go
    throw Error(ErrorKind::rpc, "rpc.reconfigure.busy",
                "a measurement of the present device has begun and not ended")
        .help("end the measurement first");
  }
  if (!storages_.empty() || !executables_.empty()) {
    throw Error(ErrorKind::rpc, "rpc.reconfigure.busy",
                cat("the connection still holds ", storages_.size(), " arrays and ",
                    executables_.size(), " programs of the present device"))
        .help("release them first");
  }
  functions_.clear();
  for (const auto& [id, module] : modules_) discharge(module.bytes);
  modules_.clear();
  device_ = open_(f.texts(0));
  Frame out;
  out.add_texts(info_json(device_->info(), options_, id_).dump());
  return out;
}

Frame Connection::program_chip(const Frame& f) {
  refuse_code(number(f, 0), "bitstreams");
  std::string bits = receive(number(f, 0));
  if (!bits.empty() && device_->info().kind != runtime::DeviceKind::hardware) {
    throw Error(ErrorKind::device, "rpc.program.simulator",
                cat("\"", device_->info().name, "\" is no chip and takes no bitstream of ",
                    bits.size(), " bytes"))
        .help("reconfigure(config) gives a simulator another configuration");
  }
  if (auto* chip = dynamic_cast<runtime::Programmable*>(device_.get())) {
    chip->program(bits);
  } else if (!bits.empty()) {
    throw Error(ErrorKind::device, "rpc.program.fixed",
                cat("\"", device_->info().name, "\" takes no bitstream of ", bits.size(), " bytes"))
        .note("only chips with loadable logic do");
  }
  return {};
}

Frame Connection::handle(const Frame& f) {
  Frame out;
  switch (f.op()) {
    case ALLOCATE: {
      auto bytes = static_cast<std::uint64_t>(number(f, 0)),
           align = static_cast<std::uint64_t>(number(f, 1));
      if (align == 0 || align > (1u << 20) || (align & (align - 1)))
        throw protocol(cat("alignment ", align));
      if (f.texts_size() != 1) throw protocol("ALLOCATE names the memory space");
      limit_count(storages_.size(), kMostStorages, "arrays");
      charge(bytes);
      try {
        storages_[next_] = {device_->allocate(bytes, align, f.texts(0)), bytes};
      } catch (...) {
        storages_.erase(next_);
        discharge(bytes);
        throw;
      }
      out.add_ints(next_++);
      return out;
    }
    case RELEASE: {
      Held& held = storage(number(f, 0));
      runtime::Bytes bytes = held.bytes;
      storages_.erase(f.ints(0));
      discharge(bytes);
      return out;
    }
    case WRITE: return write_storage(f);
    case READ: return read_storage(f);
    case COPY: {
      Held& dst = storage(number(f, 0));
      Held& src = storage(number(f, 2));
      auto dst_at = static_cast<runtime::Bytes>(number(f, 1)),
           src_at = static_cast<runtime::Bytes>(number(f, 3)),
           n = static_cast<runtime::Bytes>(number(f, 4));
      runtime::check_range(*dst.storage, dst_at, n);
      runtime::check_range(*src.storage, src_at, n);
      device_->copy(*dst.storage, dst_at, *src.storage, src_at, n);
      return out;
    }
    case LOAD: return load_program(f);
    case UNLOAD: {
      auto found = executables_.find(number(f, 0));
      if (found == executables_.end()) return out;
      discharge(found->second.bytes);
      executables_.erase(found);
      return out;
    }
    case LAUNCH: return launch(f);
    case SYNCHRONIZE: device_->synchronize(); return out;
    case MEASURE_BEGIN: return measure();
    case STATS: {
      Json rows = Json::array();
      const runtime::StatReport report = device_->stats();
      for (const runtime::Stat& s : report.rows())
        rows.push_back(Json::Array{s.name, s.unit, s.meaning, s.value});
      out.add_texts(rows.dump());
      return out;
    }
    case CLEAR_STATS: device_->clear_stats(); return out;
    case PUT_FILE: return put_file(f);
    case LOAD_MODULE: return load_module(f);
    case CALL: return call(f, false);
    case TIME: return call(f, true);
    case RECONFIGURE: return reconfigure(f);
    case PROGRAM: return program_chip(f);
    default:
      broken_ = true;
      throw protocol(cat("operation ", static_cast<int>(f.op()), " is unknown or out of place"));
  }
}

}  // namespace weft::rpc
