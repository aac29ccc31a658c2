// SPDX-License-Identifier: Apache-2.0
// Random numbers, and the generator that calls without a key advance: a Python dictionary of "key"
// and "offset", which is read and written while the interpreter's lock is held.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "array_type.h"
#include "direct.h"
#include "random.h"
#include "weft/array/mersenne.h"
#include "weft/array/ops.h"
#include "weft/array/random.h"
#include "weft/array/samplers.h"

namespace weft::py {

namespace {

using Counter = std::pair<std::uint64_t, std::uint64_t>;

/// (seed, first counter) of a draw of `words` words, four to a counter; the generator goes on
/// behind them.
Counter next_counter(nb::dict state, std::int64_t words) {
  static PyObject* const key = PyUnicode_InternFromString("key");
  static PyObject* const offset = PyUnicode_InternFromString("offset");
  const auto number = [&](PyObject* name) {
    PyObject* held = PyDict_GetItemWithError(state.ptr(), name);
    const std::uint64_t out = held ? PyLong_AsUnsignedLongLongMask(held) : 0;
    if (PyErr_Occurred()) throw nb::python_error();
    return out;
  };
  const Counter out = {number(key), number(offset)};
  const std::uint64_t after = out.second + static_cast<std::uint64_t>((words + 3) / 4);
  const nb::object next = nb::steal(PyLong_FromUnsignedLongLong(after));
  if (!next.is_valid() || PyDict_SetItem(state.ptr(), offset, next.ptr())) throw nb::python_error();
  return out;
}

/// An extent, or a tuple of them; nothing of what the Python code has to refuse or convert.
std::optional<Dims> plain_shape(nb::handle shape) {
  Dims out;
  const auto add = [&](PyObject* extent) {
    if (!PyLong_CheckExact(extent)) return false;
    const std::int64_t n = PyLong_AsLongLong(extent);
    if (n < 0) return PyErr_Clear(), false;
    out.push_back(n);
    return true;
  };
  if (!PyTuple_CheckExact(shape.ptr()))
    return add(shape.ptr()) ? std::optional<Dims>(out) : std::nullopt;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape.ptr()); ++i)
    if (!add(PyTuple_GET_ITEM(shape.ptr(), i))) return std::nullopt;
  return out;
}

std::optional<double> plain_number(nb::handle o) {
  if (!PyFloat_CheckExact(o.ptr()) && !PyLong_CheckExact(o.ptr())) return std::nullopt;
  const double value = PyFloat_AsDouble(o.ptr());
  if (value == -1 && PyErr_Occurred()) return PyErr_Clear(), std::nullopt;
  return value;
}

NDArray shaped(const NDArray& numbers, const Dims& shape) {
  return shape.size() == 1 ? numbers : numbers.reshape(shape);
}

/// Other threads of Python go on while many numbers are made.
template <typename F>
NDArray made(std::int64_t count, F&& f) {
  constexpr std::int64_t kMany = 1 << 14;
  if (count < kMany) return f();
  nb::gil_scoped_release nogil;
  return f();
}

/// Numbers of the host from the generator; none where the Python code has to see to it.
std::optional<NDArray> draw(bool normal, nb::dict state, nb::handle shape, nb::handle first,
                            nb::handle second, nb::handle dtype, nb::handle device) {
  const std::optional<Dims> extents = plain_shape(shape);
  const std::optional<double> a = plain_number(first), b = plain_number(second);
  const Elem e = optional_elem(dtype).value_or(Elem::float32);
  const Ref<Device> on = device_from_python(device);
  if (!extents || !a || !b || (e != Elem::float32 && e != Elem::float64)) return std::nullopt;
  if (!on->info().host_accessible) return std::nullopt;
  const std::int64_t count = checked_size(*extents, elem_bytes(e));
  const std::int64_t numbers = normal ? count + count % 2 : count;  // normal ones come in pairs
  const Counter at = next_counter(std::move(state), numbers * (elem_bytes(e) / 4));
  const RandomScale scale = normal ? RandomScale{*b, *a} : RandomScale{*b - *a, *a};
  return made(count, [&] {
    return shaped(
        (normal ? random_normal : random_uniform)(on, at.first, at.second, count, e, scale),
        *extents);
  });
}

/// int64 of the host in [low, high), likewise.
std::optional<NDArray> draw_integers(nb::dict state, nb::handle low, nb::handle high,
                                     nb::handle shape, nb::handle device) {
  const std::optional<Dims> extents = plain_shape(shape);
  const std::optional<double> a = plain_number(low), b = plain_number(high);
  constexpr double kExact = 0x1p53;
  if (!extents || !a || !b || !PyLong_CheckExact(low.ptr()) || !PyLong_CheckExact(high.ptr()))
    return std::nullopt;
  if (!(std::abs(*a) < kExact && std::abs(*b) < kExact && *a < *b && *b - *a < 0x1p32))
    return std::nullopt;
  const Ref<Device> on = device_from_python(device);
  if (!on->info().host_accessible) return std::nullopt;
  const std::int64_t count = checked_size(*extents, elem_bytes(Elem::int64));
  const Counter at = next_counter(std::move(state), 2 * count);
  return made(count, [&] {
    return shaped(random_integers(on, at.first, at.second, count, static_cast<std::int64_t>(*a),
                                  static_cast<std::uint32_t>(*b - *a)),
                  *extents);
  });
}

/// 0 to n - 1 in the order of n numbers of 64 bits.
NDArray permutation(const Ref<Device>& on, const Counter& at, std::int64_t n) {
  return made(n, [&] { return random_permutation(on, at.first, at.second, n); });
}

/// What direct functions of random numbers are bound to: the generator, and whether this thread's
/// calls are recorded, which the Python functions refuse.
bool recorded(PyObject* self) {
  const nb::object on = nb::steal(PyObject_CallNoArgs(PyTuple_GET_ITEM(self, 1)));
  if (!on.is_valid()) throw nb::python_error();
  return on.ptr() != Py_False;
}
nb::dict generator(PyObject* self) {
  return nb::borrow<nb::dict>(nb::handle(PyTuple_GET_ITEM(self, 0))["_state"]);
}

template <bool kNormal>
PyObject* direct_draw(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    static constexpr const char* kUniform[] = {"shape", "low", "high", "dtype", "device"};
    static constexpr const char* kGaussian[] = {"shape", "mean", "std", "dtype", "device"};
    const PlainArguments<5> given(args, count, names, kNormal ? kGaussian : kUniform);
    static PyObject* const none = PyTuple_New(0);
    static PyObject* const zero = PyFloat_FromDouble(0);
    static PyObject* const one = PyFloat_FromDouble(1);
    const nb::handle shape = given(0, none);
    // A number of elements may be another's argument in NumPy's order.
    if (!given.plain || !PyTuple_CheckExact(shape.ptr()) || recorded(self)) return not_plain();
    return wrap_plain(draw(kNormal, generator(self), shape, given(1, zero), given(2, one),
                           given(3, Py_None), given(4, Py_None)));
  });
}

PyObject* direct_permutation(PyObject* self, PyObject* const* args, Py_ssize_t count,
                             PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    const PlainArguments<2> given(args, count, names, {"n", "device"});
    if (!given.plain || count != 1 || !PyLong_CheckExact(args[0]) || recorded(self))
      return not_plain();
    const std::int64_t n = PyLong_AsLongLong(args[0]);
    if (PyErr_Occurred()) PyErr_Clear();
    const Ref<Device> on = device_from_python(given(1, Py_None));
    if (n < 1 || n > (std::int64_t{1} << 40) || !on->info().host_accessible) return not_plain();
    return wrap(permutation(on, next_counter(generator(self), 2 * n), n));
  });
}

/// The state of a generator in NumPy's manner, which its functions are bound to.
nb::dict state_of(PyObject* self) { return nb::borrow<nb::dict>(PyTuple_GET_ITEM(self, 0)); }

// -- Distributions (weft/array/samplers.h) --------------------------------------------------------

/// (seed, counter) that a draw depends on: of the generator where `key` is None or a stream of its
/// own, which go on; of another key those that its uniform numbers do not have.
Counter counter_of(PyObject* self, nb::handle key) {
  if (PyTuple_GET_ITEM(self, 1) == Py_None) return next_counter(state_of(self), 4);
  if (key.is_none()) return next_counter(generator(self), 4);
  const nb::object state = key.attr("state");
  if (!state.is_none()) return next_counter(nb::borrow<nb::dict>(state), 4);
  return {nb::cast<std::uint64_t>(key.attr("seed")),
          nb::cast<std::uint64_t>(key.attr("offset")) ^ std::uint64_t{1} << 62};
}

/// What calls give a distribution by place and by name: its parameters, then the rest.
struct SampleArguments {
  enum Rest { shape, dtype, device, key, size, kRest };
  nb::handle parameter[Sampler::kMost], rest[kRest];
  bool plain = true;

  SampleArguments(const Sampler& s, PyObject* const* args, Py_ssize_t count, PyObject* names) {
    static constexpr const char* kNames[kRest] = {"shape", "dtype", "device", "key", "size"};
    plain = count <= s.parameters + 1;
    for (Py_ssize_t i = 0; plain && i < count; ++i)
      (i < s.parameters ? parameter[i] : rest[shape]) = args[i];
    const Py_ssize_t named = names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t i = 0; plain && i < named; ++i) {
      PyObject* name = PyTuple_GET_ITEM(names, i);
      const auto is = [&](const char* n) { return PyUnicode_CompareWithASCIIString(name, n) == 0; };
      nb::handle* at = nullptr;
      for (int k = 0; k < kRest; ++k)
        if (is(kNames[k])) at = rest + k;
      for (int k = 0; k < s.parameters; ++k)
        if (is(s.names[k])) at = parameter + k;
      plain = at && !at->ptr();
      if (plain) *at = args[count + i];
    }
    if (rest[size].ptr()) plain = plain && !rest[shape].ptr(), rest[shape] = rest[size];
  }
  nb::handle operator()(Rest k) const { return rest[k].ptr() ? rest[k] : nb::handle(Py_None); }
};

/// The parameters of a call, one number or one for each element.
struct SampleValues {
  double number[Sampler::kMost];
  std::optional<NDArray> array[Sampler::kMost];
  SampleParameter at[Sampler::kMost];

  /// False: not plain.
  bool read(const Sampler& s, const SampleArguments& given) {
    for (int k = 0; k < s.parameters; ++k) {
      const nb::handle p = given.parameter[k];
      if (!p.ptr()) {
        number[k] = s.defaults[k];
        if (std::isnan(number[k])) return false;
      } else if (const std::optional<double> n = plain_number(p)) {
        number[k] = *n;
      } else if (Py_TYPE(p.ptr()) == ndarray_type() || is_list_of_numbers(p.ptr())) {
        const NDArray x = Py_TYPE(p.ptr()) == ndarray_type()
                              ? unwrap(p.ptr())
                              : to_array(p.ptr(), std::nullopt, default_device(), Copy::always);
        if (!x.on_host() || is_complex(x.elem())) return false;
        array[k] = x.elem() == Elem::float64 ? x : x.astype(Elem::float64);
      } else {
        return false;
      }
    }
    return true;
  }
  Dims common_shape(int count) const {
    std::vector<const Dims*> shapes;
    for (int k = 0; k < count; ++k)
      if (array[k]) shapes.push_back(&array[k]->shape());
    return shapes.empty() ? Dims{} : broadcast_shapes(shapes, "a distribution");
  }
  /// The parameters of each element; false: some are not legal, or of another shape.
  bool spread(const Sampler& s, const Dims& shape, std::int64_t count) {
    for (int k = 0; k < s.parameters; ++k) {
      at[k] = {&number[k], 0};
      if (!array[k]) continue;
      const Dims common = common_shape(s.parameters);
      const Dims* both[] = {&common, &shape};
      if (broadcast_shapes(both, "a distribution") != shape) return false;
      array[k] = array[k]->broadcast_to(shape).contiguous();
      at[k] = {reinterpret_cast<const double*>(array[k]->host()), 1};
    }
    const bool same = !array[0] && !array[1] && !array[2];
    for (std::int64_t i = 0; i < (same ? 1 : count); ++i) {
      double values[Sampler::kMost] = {};
      for (int k = 0; k < s.parameters; ++k) values[k] = at[k].at[i * at[k].step];
      if (!s.legal(values)) return false;
    }
    return true;
  }
};

PyObject* direct_sample(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    const Sampler& s = *static_cast<const Sampler*>(PyLong_AsVoidPtr(PyTuple_GET_ITEM(self, 2)));
    const SampleArguments given(s, args, count, names);
    const nb::handle shape = given(SampleArguments::shape), key = given(SampleArguments::key);
    SampleValues values;
    const bool own = PyTuple_GET_ITEM(self, 1) == Py_None;  // a generator's
    if (!given.plain || (!own && key.is_none() && recorded(self)) || !values.read(s, given))
      return not_plain();
    const std::optional<Dims> extents =
        shape.is_none() ? values.common_shape(s.parameters) : plain_shape(shape);
    const Elem e = optional_elem(given(SampleArguments::dtype))
                       .value_or(s.make_whole ? Elem::int64 : Elem::float32);
    const bool known = s.make_whole ? e == Elem::int64 : e == Elem::float32 || e == Elem::float64;
    const Ref<Device> on = device_from_python(given(SampleArguments::device));
    if (!extents || !known || !on->info().host_accessible) return not_plain();
    const std::int64_t n = checked_size(*extents, elem_bytes(e));
    if (!values.spread(s, *extents, n)) return not_plain();
    const Counter at = counter_of(self, key);
    return wrap(made(n, [&] {
      return shaped(random_sample(s, on, at.first, at.second, n, e, values.at), *extents);
    }));
  });
}

// -- Generators in NumPy's manner: the state is what the function is bound to
// ----------------------

/// NumPy's size: None is one number.
nb::handle size_of(nb::handle size) {
  static PyObject* const none = PyTuple_New(0);
  return size.is_none() ? nb::handle(none) : size;
}

PyObject* numpy_draw(PyObject* self, bool normal, nb::handle size, nb::handle first,
                     nb::handle second, nb::handle dtype) {
  return wrap_plain(draw(normal, state_of(self), size_of(size), first, second, dtype, nb::none()));
}
/// random(size, dtype), standard_normal(size, dtype).
template <bool kNormal>
PyObject* numpy_standard(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    const PlainArguments<2> given(args, count, names, {"size", "dtype"});
    static PyObject* const zero = PyFloat_FromDouble(0);
    static PyObject* const one = PyFloat_FromDouble(1);
    if (!given.plain) return not_plain();
    return numpy_draw(self, kNormal, given(0, Py_None), zero, one, given(1, Py_None));
  });
}
/// uniform(low, high, size), normal(loc, scale, size).
template <bool kNormal>
PyObject* numpy_placed(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    static constexpr const char* kUniform[] = {"low", "high", "size"};
    static constexpr const char* kGaussian[] = {"loc", "scale", "size"};
    const PlainArguments<3> given(args, count, names, kNormal ? kGaussian : kUniform);
    static PyObject* const zero = PyFloat_FromDouble(0);
    static PyObject* const one = PyFloat_FromDouble(1);
    if (!given.plain) return not_plain();
    return numpy_draw(self, kNormal, given(2, Py_None), given(0, zero), given(1, one), Py_None);
  });
}
PyObject* numpy_integers(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guarded(static_cast<PyObject*>(nullptr), [&] {
    const PlainArguments<3> given(args, count, names, {"low", "high", "size"});
    static PyObject* const zero = PyLong_FromLong(0);
    const nb::handle first = given(0, Py_None), second = given(1, Py_None);
    if (!given.plain || first.is_none()) return not_plain();
    const bool below = second.is_none();
    return wrap_plain(draw_integers(state_of(self), below ? nb::handle(zero) : first,
                                    below ? first : second, size_of(given(2, Py_None)),
                                    nb::none()));
  });
}

/// What torch keeps of its generator of hosts, as torch.get_rng_state() gives it; more follows.
struct TorchGenerator {
  std::uint64_t seed;
  std::int32_t left, seeded;  // words left and one more
  std::uint64_t next;
  std::uint64_t words[Mersenne::kWords];
};

/// `draw` of that generator's numbers; `state`, its bytes, is changed to what torch's would be.
template <typename Draw>
NDArray drawn_as_torch(const NDArray& state, const Draw& draw) {
  constexpr int kWords = Mersenne::kWords;
  WEFT_CHECK(state.on_host() && state.elem() == Elem::uint8 && state.is_contiguous() &&
                 state.nbytes() >= static_cast<std::int64_t>(sizeof(TorchGenerator)),
             "no state of a generator");
  TorchGenerator held;
  std::memcpy(&held, state.host(), sizeof held);
  WEFT_CHECK(held.left >= 1 && held.left <= kWords + 1, held.left, " words left");
  std::uint32_t words[kWords];
  std::copy_n(held.words, kWords, words);
  Mersenne generator(words, kWords + 1 - held.left);
  NDArray out = draw(generator);
  if (out.size() == 0) return out;
  std::copy_n(generator.words(), kWords, held.words);
  held.left = kWords + 1 - generator.next();
  held.next = static_cast<std::uint64_t>(generator.next());
  std::memcpy(state.host(), &held, sizeof held);
  return out;
}

}  // namespace

void bind_random(nb::module_& m) {
  // The interpreter's lock is held: it keeps two of Python's threads from drawing the same numbers.
  m.def(
      "_torch_bernoulli",
      [](const NDArray& state, nb::handle shape, double p) {
        const Dims extents = dims_of(shape, "shape");
        const std::int64_t count = checked_size(extents, 1);
        return drawn_as_torch(state, [&](Mersenne& from) {
          return shaped(from.below(state.device(), count, p), extents);
        });
      },
      nb::arg("state"), nb::arg("shape"), nb::arg("p"));
  m.def(
      "_torch_uniform",
      [](const NDArray& state, nb::handle shape, bool wide) {
        const Dims extents = dims_of(shape, "shape");
        const Elem elem = wide ? Elem::float64 : Elem::float32;
        const std::int64_t count = checked_size(extents, elem_bytes(elem));
        return drawn_as_torch(state, [&](Mersenne& from) {
          return shaped(from.uniform(state.device(), count, elem), extents);
        });
      },
      nb::arg("state"), nb::arg("shape"), nb::arg("wide"));
  m.def(
      "_random_bits",
      [](std::uint64_t seed, std::uint64_t first, std::int64_t n, nb::handle device) {
        const Ref<Device> on = device_from_python(device);
        return made(n, [&] { return random_bits(on, seed, first, n); });
      },
      nb::arg("seed"), nb::arg("first"), nb::arg("n"), nb::arg("device").none());
  m.def(
      "_random_pairs",
      [](std::uint64_t seed, std::uint64_t first, std::int64_t n, nb::handle device) {
        const Ref<Device> on = device_from_python(device);
        return made(n, [&] { return random_pairs(on, seed, first, n); });
      },
      nb::arg("seed"), nb::arg("first"), nb::arg("n"), nb::arg("device").none());
  using RandomReals = NDArray (*)(const Ref<Device>&, std::uint64_t, std::uint64_t, std::int64_t,
                                  Elem, RandomScale);
  for (const auto& [name, make] :
       {std::pair<const char*, RandomReals>{"_random_uniform", random_uniform},
        {"_random_normal", random_normal}}) {
    m.def(
        name,
        [make = make](std::uint64_t seed, std::uint64_t first, nb::handle shape, bool wide,
                      nb::handle device) {
          const Ref<Device> on = device_from_python(device);
          const Dims extents = dims_of(shape, "shape");
          const Elem elem = wide ? Elem::float64 : Elem::float32;
          const std::int64_t count = checked_size(extents, elem_bytes(elem));
          return made(count,
                      [&] { return shaped(make(on, seed, first, count, elem, {}), extents); });
        },
        nb::arg("seed"), nb::arg("first"), nb::arg("shape"), nb::arg("wide"),
        nb::arg("device").none());
  }
  m.def(
      "_random_integers",
      [](std::uint64_t seed, std::uint64_t first, nb::handle shape, std::int64_t low,
         std::uint32_t range, nb::handle device) {
        const Ref<Device> on = device_from_python(device);
        const Dims extents = dims_of(shape, "shape");
        const std::int64_t count = checked_size(extents, elem_bytes(Elem::int64));
        return made(count, [&] {
          return shaped(random_integers(on, seed, first, count, low, range), extents);
        });
      },
      nb::arg("seed"), nb::arg("first"), nb::arg("shape"), nb::arg("low"), nb::arg("range"),
      nb::arg("device").none());
  m.def(
      "_random_permutation",
      [](std::uint64_t seed, std::uint64_t first, std::int64_t n, nb::handle device) {
        return permutation(device_from_python(device), {seed, first}, n);
      },
      nb::arg("seed"), nb::arg("first"), nb::arg("n"), nb::arg("device").none());
  m.def(
      "_random_choice",
      [](std::uint64_t seed, std::uint64_t first, std::int64_t n, std::int64_t count,
         nb::handle device) {
        const Ref<Device> on = device_from_python(device);
        return made(count, [&] { return random_choice(on, seed, first, n, count); });
      },
      nb::arg("seed"), nb::arg("first"), nb::arg("n"), nb::arg("count"), nb::arg("device").none());
  m.def(
      "_direct_random",
      [](const std::string& name, nb::dict space, nb::object captured) {
        static PyMethodDef direct[] = {direct_definition("uniform", direct_draw<false>),
                                       direct_definition("normal", direct_draw<true>),
                                       direct_definition("permutation", direct_permutation)};
        static PyMethodDef numpys[] = {direct_definition("random", numpy_standard<false>),
                                       direct_definition("standard_normal", numpy_standard<true>),
                                       direct_definition("uniform", numpy_placed<false>),
                                       direct_definition("normal", numpy_placed<true>),
                                       direct_definition("integers", numpy_integers)};
        if (captured.is_none()) {  // of a generator with its own state
          for (PyMethodDef& d : numpys)
            if (name == d.ml_name) return direct_function(d, nb::make_tuple(space));
        }
        for (PyMethodDef& d : direct)
          if (!captured.is_none() && name == d.ml_name)
            return direct_function(d, nb::make_tuple(space, captured));
        static PyMethodDef sample = direct_definition("sample", direct_sample);
        const Sampler* s = sampler(name);
        if (!s) return nb::object(nb::none());
        const nb::object at = nb::steal(PyLong_FromVoidPtr(const_cast<Sampler*>(s)));
        return direct_function(sample, nb::make_tuple(space, captured, at));
      },
      nb::arg("name"), nb::arg("space"), nb::arg("captured").none(),
      "The direct function of this name over the module whose _state is the default generator, or "
      "with None in NumPy's manner over a generator's own state.");
  m.def("_random_next", next_counter, nb::arg("state"), nb::arg("words"));
  m.def("_random_draw", draw, nb::arg("normal"), nb::arg("state"), nb::arg("shape"),
        nb::arg("first"), nb::arg("second"), nb::arg("dtype").none(), nb::arg("device").none());
  m.def("_random_draw_integers", draw_integers, nb::arg("state"), nb::arg("low"), nb::arg("high"),
        nb::arg("shape"), nb::arg("device").none());
}

}  // namespace weft::py
