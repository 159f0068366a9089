#include "models/weights.h"

#include <cmath>
#include <utility>

#include "models/error.h"
#include "models/random.h"

namespace plumb {
namespace {

constexpr const char* kRemedy = "; give a file with the names and shapes of torchvision's model";

Tensor fresh_tensor(const Parameter& parameter, std::uint64_t seed) {
  Tensor tensor{parameter.dims, std::vector<float>(static_cast<std::size_t>(parameter.elements()))};
  const auto number = static_cast<float>(parameter.initializer.number);
  const PhiloxKey key = stream_key(seed, parameter.name);
  switch (parameter.initializer.kind) {
    case Initializer::Kind::constant:
      tensor.values.assign(tensor.values.size(), number);
      break;
    case Initializer::Kind::normal:
      fill_normal(key, 0, number, tensor.values);
      break;
    case Initializer::Kind::uniform:
      fill_uniform(key, -number, number, tensor.values);
      break;
  }
  return tensor;
}

std::string text_of(const std::vector<std::int64_t>& dims) {
  std::string text;
  for (std::int64_t dim : dims) text += (text.empty() ? "" : ", ") + std::to_string(dim);
  return "[" + text + "]";
}

bool ignored(const std::string& name) {
  return name.ends_with(".num_batches_tracked");
}

// What the Graph wants: name and dims, in the Graph's order.
std::vector<std::pair<std::string, std::vector<std::int64_t>>> wanted_tensors(const Graph& graph) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> wanted;
  for (const Parameter& parameter : graph.parameters) wanted.emplace_back(parameter.name, parameter.dims);
  for (const Statistic& statistic : graph.statistics) {
    wanted.emplace_back(statistic.name, std::vector<std::int64_t>{statistic.channels});
  }
  return wanted;
}

}  // namespace

TensorMap initial_tensors(const Graph& graph, std::uint64_t seed) {
  TensorMap tensors;
  for (const Parameter& parameter : graph.parameters) tensors[parameter.name] = fresh_tensor(parameter, seed);
  for (const Statistic& statistic : graph.statistics) {
    tensors[statistic.name] = {{statistic.channels},
                               std::vector<float>(static_cast<std::size_t>(statistic.channels),
                                                  static_cast<float>(statistic.initial))};
  }
  return tensors;
}

TensorMap tensors_for(const Graph& graph, const TensorFile& file, const std::filesystem::path& path) {
  const auto fail = [&](const std::string& name, const std::string& what) {
    throw Error(ExitCode::bad_data,
                "option --weights: " + path.string() + ": tensor " + shown_name(name) + " " + what + kRemedy);
  };
  TensorMap tensors;
  for (const auto& [name, dims] : wanted_tensors(graph)) {
    if (file.integers.contains(name)) fail(name, "holds I64 values where F32 is wanted");
    const auto found = file.floats.find(name);
    if (found == file.floats.end()) fail(name, "of shape " + text_of(dims) + " is missing");
    if (found->second.dims != dims) {
      fail(name, "has shape " + text_of(found->second.dims) + " where " + text_of(dims) + " is wanted");
    }
    tensors.emplace(name, found->second);
  }
  const auto refuse_unknown = [&](const std::string& name) {
    if (!tensors.contains(name) && !ignored(name)) fail(name, "is unknown to model " + graph.model);
  };
  for (const auto& entry : file.floats) refuse_unknown(entry.first);
  for (const auto& entry : file.integers) refuse_unknown(entry.first);
  return tensors;
}

}  // namespace plumb
