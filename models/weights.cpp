#include "models/weights.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/random.h"

namespace plumb {
namespace {

constexpr const char* kRemedy = "; use a file with this model's names and shapes";

// Index of a parameter's first element in the whole tensor.
std::int64_t first_element(const Parameter& parameter) {
  if (!parameter.shard) return 0;
  return parameter.shard->first_row * (parameter.elements() / parameter.dims.front());
}

// Dims in a file: for a shard, the whole tensor's.
std::vector<std::int64_t> whole_dims(const Parameter& parameter) {
  std::vector<std::int64_t> dims = parameter.dims;
  if (parameter.shard) dims.front() = parameter.shard->all_rows;
  return dims;
}

// This rank's rows of the whole tensor.
Tensor own_rows(const Parameter& parameter, const Tensor& whole) {
  if (!parameter.shard) return whole;
  const auto begin = whole.values.begin() + first_element(parameter);
  return {parameter.dims, {begin, begin + parameter.elements()}};
}

// Takes tensors out of a file and rejects wrong ones.
struct Taker {
  const Graph& graph;
  const TensorFile& file;
  const std::filesystem::path& path;

  const Tensor& take(const std::string& name, const std::vector<std::int64_t>& dims) const {
    if (file.integers.contains(name)) refuse(name, "expected F32 values, found I64");
    const auto found = file.floats.find(name);
    if (found == file.floats.end())
      refuse(name, fmt::format("expected it with shape [{}]", fmt::join(dims, ", ")));
    if (found->second.dims != dims) refuse_dims(name, found->second.dims, dims);
    const std::vector<float>& values = found->second.values;
    const auto odd = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
    if (odd != values.end())
      refuse(name, fmt::format("element {1} is {0}", *odd, odd - values.begin()),
             "; use the weights of a run that has not diverged");
    return found->second;
  }

  [[noreturn]] void refuse(const std::string& name, const std::string& what,
                           const std::string& remedy = kRemedy) const {
    throw Error(ExitCode::bad_data, "--weights {}: tensor {}: {}{}", path.string(), shown_name(name), what,
                remedy);
  }

  [[noreturn]] void refuse_dims(const std::string& name, const std::vector<std::int64_t>& found,
                                const std::vector<std::int64_t>& wanted) const {
    const std::optional<ParameterId> centers = class_centres(graph);
    if (centers && name == graph.parameters[*centers].name && found.size() == 2 && found[1] == wanted[1]) {
      refuse(name, fmt::format("it has the centers of {} classes, and {} are expected", found[0], wanted[0]),
             fmt::format("; pass --classes {}, or another file", found[0]));
    }
    refuse(name,
           fmt::format("expected shape [{1}], found [{0}]", fmt::join(found, ", "), fmt::join(wanted, ", ")));
  }
};

constexpr std::size_t kDrawnByThread = std::size_t{1} << 20;  // at least: a hundredth of a second

// From the rank's element `first` on.
void draw(const Parameter& parameter, std::uint64_t seed, std::int64_t first, std::span<float> values) {
  const auto number = static_cast<float>(parameter.initializer.number);
  const PhiloxKey key = stream_key(seed, parameter.name);
  const auto begin = static_cast<std::uint64_t>(first_element(parameter) + first);
  fill_together(values, [&](std::span<float> part, std::size_t at) {
    if (parameter.initializer.kind == Initializer::Kind::constant)
      std::ranges::fill(part, number);
    else if (parameter.initializer.kind == Initializer::Kind::normal)
      fill_normal(key, 0, number, part, begin + at);
    else
      fill_uniform(key, -number, number, part, begin + at);
  });
}

}  // namespace

std::optional<ParameterId> class_centres(const Graph& graph) {
  const MarginLoss* loss = graph.margin_loss();
  return loss ? std::optional(loss->weight) : std::nullopt;
}

void fill_together(std::span<float> values,
                   const std::function<void(std::span<float> part, std::size_t first)>& fill) {
  const std::size_t most = std::max(std::thread::hardware_concurrency(), 1U);
  const std::size_t parts = std::clamp<std::size_t>(values.size() / kDrawnByThread, 1, most);
  const std::size_t each = (values.size() + parts - 1) / parts;
  const auto fill_part = [&](std::size_t first) {
    fill(values.subspan(first, std::min(each, values.size() - first)), first);
  };
  std::vector<std::jthread> threads;
  for (std::size_t first = each; first < values.size(); first += each) {
    try {
      threads.emplace_back(fill_part, first);
    } catch (const std::system_error&) {  // no more threads
      fill_part(first);
    }
  }
  fill_part(0);
}

std::vector<float> initial_values(const Parameter& parameter, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(parameter.elements()));
  draw(parameter, seed, 0, values);
  return values;
}

void draw_rows(const Parameter& parameter, std::uint64_t seed, std::int64_t first_row,
               std::span<float> rows) {
  draw(parameter, seed, first_row * (parameter.elements() / parameter.dims.front()), rows);
}

std::vector<float> initial_values(const Statistic& statistic) {
  return std::vector<float>(static_cast<std::size_t>(statistic.channels),
                            static_cast<float>(statistic.initial));
}

TensorMap tensors_for(const Graph& graph, const TensorFile& file, const std::filesystem::path& path) {
  const Taker taker{graph, file, path};
  TensorMap tensors;
  for (const Parameter& parameter : graph.parameters)
    tensors.emplace(parameter.name, own_rows(parameter, taker.take(parameter.name, whole_dims(parameter))));
  for (const Statistic& statistic : graph.statistics)
    tensors.emplace(statistic.name, taker.take(statistic.name, {statistic.channels}));
  const auto check_known = [&](const std::string& name) {
    if (!tensors.contains(name) && !name.ends_with(".num_batches_tracked"))
      taker.refuse(name, "it is unknown to model " + graph.model);
  };
  for (const auto& entry : file.floats) check_known(entry.first);
  for (const auto& entry : file.integers) check_known(entry.first);
  return tensors;
}

}  // namespace plumb
