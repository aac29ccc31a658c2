// SPDX-License-Identifier: Apache-2.0
// weft._rpc: sessions and servers. A module of its own, because gRPC takes long to load; it is
// loaded with weft.rpc only. Devices, arguments and openers come from weft._core as capsules
// (rpc_bridge.h), so that arrays on remote devices are ordinary ones.

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "rpc_bridge.h"
#include "weft/base/interrupt.h"
#include "weft/runtime/rpc/rpc.h"

namespace weft::py {

namespace nb = nanobind;

namespace {

struct PySession {
  Ref<rpc::Session> session;
};
struct PyRemoteModule {
  Ref<rpc::RemoteModule> module;
};

/// Lines of the server's log, taken by whoever waits for them: the server's threads never need
/// Python's lock.
class PyServer {
 public:
  PyServer(rpc::ServerOptions options, rpc::OpenDevice open) {
    options.log = [this](std::string_view line) {
      std::lock_guard lock(mutex_);
      if (lines_.size() < kLines) lines_.emplace_back(line);
      changed_.notify_all();
    };
    server_ = std::make_unique<rpc::Server>(std::move(options), std::move(open));
  }
  ~PyServer() { stop(); }
  rpc::Server& server() { return *server_; }
  void stop() {
    nb::gil_scoped_release release;
    server_->stop();
  }
  std::vector<std::string> log(double seconds) {
    nb::gil_scoped_release release;
    std::unique_lock lock(mutex_);
    if (lines_.empty()) changed_.wait_for(lock, std::chrono::duration<double>(seconds));
    std::vector<std::string> out(lines_.begin(), lines_.end());  // UTF-8: the server made them so
    lines_.clear();
    return out;
  }

 private:
  static constexpr std::size_t kLines = 10000;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  std::unique_ptr<rpc::Server> server_;
};

std::chrono::milliseconds milliseconds(double seconds) {
  if (!(seconds > 0) || seconds > 1e6)
    throw Error(ErrorKind::value, "rpc.deadline.value", cat("a deadline of ", seconds, " seconds"))
        .note("legal: more than 0, at most 1000000");
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000 + 0.5));
}

nb::dict rows(const runtime::StatReport& report) {
  nb::dict out;
  for (const runtime::Stat& row : report.rows()) out[row.name.c_str()] = row.value;
  return out;
}

/// Runs `f` without Python's lock.
template <typename F>
auto unlocked(F&& f) {
  nb::gil_scoped_release release;
  return f();
}

void bind_session(nb::module_& m) {
  nb::class_<PyRemoteModule>(m, "RemoteModule")
      .def_prop_ro("functions", [](const PyRemoteModule& r) { return r.module->functions(); })
      .def("call",
           [](PyRemoteModule& r, const std::string& function, nb::capsule args) {
             auto& list = from_capsule<std::vector<runtime::CallArg>>(args, kArgsCapsule);
             unlocked([&] { r.module->call(function, list); });
           })
      .def("time", [](PyRemoteModule& r, const std::string& function, nb::capsule args, int number,
                      int repeat, double min_seconds) {
        auto& list = from_capsule<std::vector<runtime::CallArg>>(args, kArgsCapsule);
        runtime::TimeResult t =
            unlocked([&] { return r.module->time(function, list, number, repeat, min_seconds); });
        nb::dict out;
        out["mean"] = t.mean, out["median"] = t.median, out["min"] = t.min, out["max"] = t.max;
        out["stddev"] = t.stddev, out["cycles"] = t.cycles, out["wall"] = t.wall;
        out["results"] = t.results;
        return out;
      });
  nb::class_<PySession>(m, "Session")
      .def("upload",
           [](PySession& s, const std::string& name, nb::bytes content) {
             std::string_view bytes(content.c_str(), content.size());
             unlocked([&] { s.session->upload(name, bytes); });
           })
      .def("load_module",
           [](PySession& s, const std::string& name) {
             return PyRemoteModule{unlocked([&] { return s.session->load_module(name); })};
           })
      .def("device",
           [](PySession& s, const std::string& name) {
             return to_capsule(s.session->device(name), kDeviceCapsule);
           })
      .def("reconfigure",
           [](PySession& s, const std::string& config) {
             unlocked([&] { s.session->reconfigure(config); });
           })
      .def("program",
           [](PySession& s, nb::bytes bits) {
             std::string_view bytes(bits.c_str(), bits.size());
             unlocked([&] { s.session->program(bytes); });
           })
      .def("traffic", [](PySession& s) { return rows(s.session->traffic()); });
  m.def("local", [](const std::string& device_name, nb::capsule opener) {
    auto& open = from_capsule<rpc::OpenDevice>(opener, kOpenerCapsule);
    return PySession{unlocked([&] { return rpc::local(open, device_name); })};
  });
  m.def(
      "connect",
      [](const std::string& host, int port, const std::string& key, const std::string& tls_ca,
         const std::string& tls_name, double deadline, double run_deadline) {
        rpc::ConnectOptions options;
        options.key = key, options.tls_ca = tls_ca, options.tls_name = tls_name;
        options.deadline = milliseconds(deadline);
        options.run_deadline = milliseconds(run_deadline);
        return PySession{unlocked([&] { return rpc::Session::connect(host, port, options); })};
      },
      nb::arg("host"), nb::arg("port"), nb::kw_only(), nb::arg("key"), nb::arg("tls_ca"),
      nb::arg("tls_name"), nb::arg("deadline"), nb::arg("run_deadline"));
}

void bind_server(nb::module_& m) {
  nb::class_<PyServer>(m, "Server")
      .def(
          "__init__",
          [](PyServer* self, const std::string& device_name, nb::capsule opener,
             const std::string& host, int port, const std::string& key, const std::string& tls_cert,
             const std::string& tls_key, std::uint64_t session_bytes, int sessions,
             const std::map<std::string, nb::bytes>& modules) {
            rpc::ServerOptions options;
            options.host = host, options.port = port, options.key = key;
            options.tls_cert = tls_cert, options.tls_key = tls_key;
            options.session_bytes = session_bytes, options.sessions = sessions;
            options.device_name = device_name;
            for (const auto& [name, content] : modules)
              options.modules[name] = std::string(content.c_str(), content.size());
            new (self)
                PyServer(std::move(options), from_capsule<rpc::OpenDevice>(opener, kOpenerCapsule));
          },
          nb::arg("device_name"), nb::arg("opener"), nb::kw_only(), nb::arg("host"),
          nb::arg("port"), nb::arg("key"), nb::arg("tls_cert"), nb::arg("tls_key"),
          nb::arg("session_bytes"), nb::arg("sessions"), nb::arg("modules"))
      .def_prop_ro("port", [](PyServer& s) { return s.server().port(); })
      .def_prop_ro("sessions", [](PyServer& s) { return s.server().sessions(); })
      .def_prop_ro("held_bytes", [](PyServer& s) { return s.server().held_bytes(); })
      .def("log", &PyServer::log, nb::arg("seconds"))
      .def("stop", &PyServer::stop);
}

}  // namespace

void bind_rpc(nb::module_& m) {
  bind_session(m);
  bind_server(m);
}

}  // namespace weft::py

NB_MODULE(_rpc, m) {
  nanobind::set_leak_warnings(false);
  // weft._core, imported before, registered the translation of weft::Error.
  const auto core = nanobind::module_::import_("weft._core");
  const auto slot = nanobind::cast<nanobind::capsule>(core.attr("interrupt_slot"));
  weft::share_interrupts(weft::py::from_capsule<void** (*)()>(slot, weft::py::kInterruptCapsule));
  weft::set_patience(&weft::py::wait_without_interpreter);
  weft::py::bind_rpc(m);
}
