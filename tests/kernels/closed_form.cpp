#include "tests/kernels/closed_form.h"

#include <cmath>
#include <string>

namespace plumb {
namespace {

std::vector<float> parameter_values(const Parameter& parameter, std::uint64_t position) {
  const auto filled = [&](double center, double amplitude) {
    std::vector<float> values(parameter.elements());
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(center + amplitude * closed_form_even(position, i));
    return values;
  };
  const auto& dims = parameter.dims;
  if (dims.size() == 4) return filled(0, std::sqrt(6.0 / static_cast<double>(dims[0] * dims[2] * dims[3])));
  if (dims.size() == 2) return filled(0, std::sqrt(1.0 / static_cast<double>(dims[1])));
  if (parameter.name == "fc.bias") return filled(0, 0.1);
  const bool ends_block = parameter.name.find("bn3.") != std::string::npos;
  if (parameter.name.ends_with("relu.weight")) return filled(0.25, 0.125);
  if (parameter.name.ends_with(".weight")) return filled(ends_block ? 0.2 : 1, 0);
  return filled(ends_block ? 0 : 3, 1);
}

std::vector<float> image_values(const Shape& shape) {
  std::vector<float> values;
  values.reserve(shape.elements());
  for (std::int64_t n = 0; n < shape.n; ++n)
    for (std::int64_t c = 0; c < shape.c; ++c)
      for (std::int64_t y = 0; y < shape.h; ++y)
        for (std::int64_t x = 0; x < shape.w; ++x) {
          const double u = static_cast<double>(y) / shape.h, v = static_cast<double>(x) / shape.w;
          double value = 1.2 * std::sin(6.0 * u * (1.0 + 0.5 * n) + 1.1 * c);
          value += 0.8 * std::cos(9.0 * v * (1.0 + 0.25 * c) - 0.7 * n);
          value += 0.5 * std::sin(14.0 * u * v + n + c);
          values.push_back(static_cast<float>(value));
        }
  return values;
}

}  // namespace

double closed_form_even(std::uint64_t tensor, std::uint64_t element) {
  std::uint64_t z = (tensor + 1) * 0x9E3779B97F4A7C15u + element * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return static_cast<double>(z >> 40) / 8388608.0 - 1.0;
}

TestTensors closed_form_tensors(const Graph& graph) {
  TestTensors tensors;
  const auto* margin = std::get_if<MarginLoss>(&graph.ops.back());
  for (ParameterId p = 0; p < graph.parameters.size(); ++p)
    tensors.parameters.push_back(parameter_values(graph.parameters[p], p));
  for (const Statistic& statistic : graph.statistics)
    tensors.statistics.emplace_back(statistic.channels, static_cast<float>(statistic.initial));
  tensors.images = image_values(graph.values[0].shape);
  for (std::int64_t n = 0; n < graph.batch(); ++n)
    tensors.labels.push_back((37 * n + 11) % (margin ? margin->classes : 1000));
  return tensors;
}

}  // namespace plumb
