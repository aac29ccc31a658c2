// SPDX-License-Identifier: Apache-2.0
// Schedules that weft.tuning found for programs of array operations, and their calls.

#include "weft/devices/tuned_programs.h"

#include <bit>

#include <nanobind/stl/vector.h>

#include "array_type.h"
#include "program.h"

namespace weft::py {

namespace {

nb::tuple tuple_of_numbers(std::span<const std::int64_t> numbers) {
  nb::list out;
  for (std::int64_t n : numbers) out.append(n);
  return nb::tuple(out);
}

/// Calls three Python functions: find(operation, program, device) -> PrimFunc or None,
/// refused(operation, program, device, reason), and decide(operation, facts, device, extents) -> a
/// list of int or None.
class PythonPrograms final : public TunedPrograms {
 public:
  PythonPrograms(nb::callable find, nb::callable refused, nb::object decide)
      : find_(std::move(find)), refused_(std::move(refused)), decide_(std::move(decide)) {}
  ~PythonPrograms() override {
    nb::gil_scoped_acquire held;
    find_.reset(), refused_.reset(), decide_.reset();
  }
  ir::PrimFunc find(const ProgramRequest& r) override {
    nb::gil_scoped_acquire held;
    const nb::object out =
        find_(std::string(r.operation), PyFunc{r.program}, r.device->info().name);
    return out.is_none() ? nullptr : nb::cast<PyFunc>(out).func;
  }
  void refused(const ProgramRequest& r, const Error& reason) override {
    nb::gil_scoped_acquire held;
    const std::string text = reason.what();
    refused_(std::string(r.operation), PyFunc{r.program}, r.device->info().name,
             text.substr(0, text.find('\n')));
  }
  Decision decide(const DecisionRequest& r) override {
    nb::gil_scoped_acquire held;
    if (decide_.is_none()) return {};
    const nb::object out = decide_(std::string(r.operation), tuple_of_numbers(r.facts),
                                   r.device->info().name, r.extents);
    return out.is_none() ? Decision{} : nb::cast<Decision>(out);
  }

 private:
  nb::object find_, refused_, decide_;
};

/// Python objects end with the GIL held, whoever holds the function last.
std::shared_ptr<nb::object> shared(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* o) {
            nb::gil_scoped_acquire held;
            delete o;
          }};
}

}  // namespace

void bind_tuned(nb::module_& m) {
  m.def(
      "set_tuned_programs",
      [](nb::object find, nb::object refused, nb::object decide) {
        set_tuned_programs(find.is_none()
                               ? nullptr
                               : std::make_shared<PythonPrograms>(nb::cast<nb::callable>(find),
                                                                  nb::cast<nb::callable>(refused),
                                                                  std::move(decide)));
      },
      nb::arg("find").none(), nb::arg("refused").none() = nb::none(),
      nb::arg("decide").none() = nb::none(),
      "find(operation, program, device) gives programs of array operations their schedule, or "
      "None; refused(operation, program, device, reason) hears of one that cannot be built; "
      "decide(operation, facts, device, extents) gives a decision that no program holds, a list of "
      "int, or None; extents: the bits of facts that are sizes.");
  m.def(
      "built_programs",
      [] {
        nb::list out;
        for (const BuiltProgram& p : built_programs())
          out.append(nb::make_tuple(std::string(p.request.operation), PyFunc{p.request.program},
                                    p.request.device->info().name, p.source));
        return out;
      },
      "(operation, program, device, source) of each program that array operations have built.");
  m.def("forget_programs", &forget_programs,
        "Programs of array operations are built again at their next call.");
  m.def("forget_decisions", &forget_decisions,
        "Decisions of array operations are looked up again.");
  m.def(
      "record_programs",
      [](nb::object recorder) {
        if (recorder.is_none()) return record_programs(nullptr);
        record_programs([kept = shared(std::move(recorder))](
                            const ProgramRequest& r, const std::vector<RecordedArgument>& args) {
          nb::gil_scoped_acquire held;
          nb::list out;
          for (std::size_t i = 0; i < args.size(); ++i) {
            const auto& param = r.program->params[i];
            if (args[i].array.defined()) out.append(args[i].array);
            else if (param.var->dtype.is_float()) out.append(std::bit_cast<double>(args[i].number));
            else out.append(args[i].number);
          }
          (*kept)(std::string(r.operation), PyFunc{r.program}, r.device->info().name, out);
        });
      },
      nb::arg("recorder").none(),
      "recorder(operation, program, device, arguments) sees each launch of a program of an array "
      "operation whose schedule is the rules'; None ends that.");
  m.def(
      "record_decisions",
      [](nb::object recorder) {
        if (recorder.is_none()) return record_decisions(nullptr);
        record_decisions([kept = shared(std::move(recorder))](
                             const DecisionRequest& r, const std::vector<Decision>& options) {
          nb::gil_scoped_acquire held;
          nb::list all;
          for (const Decision& option : options) all.append(tuple_of_numbers(option));
          (*kept)(std::string(r.operation), tuple_of_numbers(r.facts), r.device->info().name, all);
        });
      },
      nb::arg("recorder").none(),
      "recorder(operation, facts, device, options) sees each decision of an array operation that "
      "no "
      "program holds, and what is legal, what the rule takes first; None ends that.");
}

}  // namespace weft::py
