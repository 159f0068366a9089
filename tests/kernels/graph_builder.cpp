#include "tests/kernels/graph_builder.h"

#include <cmath>
#include <random>

namespace plumb {

GraphBuilder::GraphBuilder(Shape images) {
  graph_.model = "test";
  graph_.values.push_back({"images", images});
}

std::string GraphBuilder::next_name(const std::string& kind) {
  return kind + std::to_string(names_++);
}

ValueId GraphBuilder::add_value(const std::string& name, Shape shape) {
  graph_.values.push_back({name, shape});
  return graph_.values.size() - 1;
}

ParameterId GraphBuilder::add_parameter(std::string name, std::vector<std::int64_t> dims) {
  graph_.parameters.push_back({std::move(name), std::move(dims), {}, true});
  return graph_.parameters.size() - 1;
}

ValueId GraphBuilder::conv(ValueId in, std::int64_t out_channels, ConvOptions options) {
  const Shape from = shape(in);
  const auto pixels = [&](std::int64_t size) {
    return (size + 2 * options.padding - options.kernel) / options.stride + 1;
  };
  Conv op{.name = next_name("conv"), .in = in};
  op.out = add_value(op.name, {from.n, pixels(from.h), pixels(from.w), out_channels});
  op.weight = add_parameter(op.name + ".weight",
                            {out_channels, from.c / options.groups, options.kernel, options.kernel});
  op.kernel = options.kernel;
  op.stride = options.stride;
  op.padding = options.padding;
  op.groups = options.groups;
  graph_.ops.push_back(op);
  return op.out;
}

ValueId GraphBuilder::norm(ValueId in, Activation activation, std::optional<ValueId> residual) {
  const Shape extent = shape(in);
  BatchNorm op{.name = next_name("norm"), .in = in, .residual = residual};
  op.out = add_value(op.name, extent);
  op.scale = add_parameter(op.name + ".weight", {extent.c});
  op.bias = add_parameter(op.name + ".bias", {extent.c});
  graph_.statistics.push_back({op.name + ".running_mean", extent.c, 0});
  op.running_mean = graph_.statistics.size() - 1;
  graph_.statistics.push_back({op.name + ".running_var", extent.c, 1});
  op.running_variance = graph_.statistics.size() - 1;
  op.activation = activation;
  graph_.ops.push_back(op);
  return op.out;
}

ValueId GraphBuilder::norm_prelu(ValueId in, bool slope_per_channel) {
  const ValueId out = norm(in, Activation::prelu);
  BatchNorm& op = std::get<BatchNorm>(graph_.ops.back());
  op.slope = add_parameter(op.name + ".slope", {slope_per_channel ? shape(in).c : 1});
  return out;
}

void GraphBuilder::fix_scale(ValueId norm_out) {
  for (const Op& op : graph_.ops) {
    const BatchNorm* norm = std::get_if<BatchNorm>(&op);
    if (norm && norm->out == norm_out) graph_.parameters[norm->scale].trained = false;
  }
}

ValueId GraphBuilder::bottleneck(ValueId in, std::int64_t channels, int stride) {
  const bool projects = stride > 1 || shape(in).c != 4 * channels;
  const ValueId first = norm(conv(in, channels, {}), Activation::relu);
  const ValueId second =
      norm(conv(first, channels, {.kernel = 3, .stride = stride, .padding = 1}), Activation::relu);
  const ValueId third = conv(second, 4 * channels, {});
  const ValueId residual = projects ? norm(conv(in, 4 * channels, {.stride = stride})) : in;
  return norm(third, Activation::relu, residual);
}

ValueId GraphBuilder::max_pool(ValueId in, int kernel, int stride, int padding) {
  const Shape from = shape(in);
  const auto pixels = [&](std::int64_t size) { return (size + 2 * padding - kernel) / stride + 1; };
  Pool op{.name = next_name("max_pool"), .in = in};
  op.out = add_value(op.name, {from.n, pixels(from.h), pixels(from.w), from.c});
  op.kind = Pool::Kind::max;
  op.kernel = kernel;
  op.stride = stride;
  op.padding = padding;
  graph_.ops.push_back(op);
  return op.out;
}

ValueId GraphBuilder::global_average(ValueId in) {
  const Shape from = shape(in);
  Pool op{.name = next_name("average"), .in = in};
  op.out = add_value(op.name, {from.n, 1, 1, from.c});
  op.kind = Pool::Kind::global_average;
  op.kernel = static_cast<int>(from.h);
  graph_.ops.push_back(op);
  return op.out;
}

ValueId GraphBuilder::dense(ValueId in, std::int64_t outputs) {
  const Shape from = shape(in);
  Dense op{.name = next_name("dense"), .in = in};
  op.out = add_value(op.name, {from.n, 1, 1, outputs});
  op.weight = add_parameter(op.name + ".weight", {outputs, from.c * from.h * from.w});
  op.bias = add_parameter(op.name + ".bias", {outputs});
  graph_.ops.push_back(op);
  return op.out;
}

ValueId GraphBuilder::dropout(ValueId in, double probability, std::uint64_t seed) {
  Dropout op{.name = next_name("dropout"), .in = in, .probability = probability, .seed = seed};
  op.out = add_value(op.name, shape(in));
  graph_.ops.push_back(op);
  return op.out;
}

Graph GraphBuilder::loss(ValueId logits, double label_smoothing) {
  graph_.ops.push_back(SoftmaxLoss{.name = "loss", .in = logits, .label_smoothing = label_smoothing});
  return std::move(graph_);
}

Graph GraphBuilder::classify(ValueId in, std::int64_t classes) {
  if (shape(in).h * shape(in).w > 1) in = global_average(in);
  return loss(dense(in, classes));
}

namespace {

std::int64_t classes_of(const Graph& graph) {
  if (const auto* loss = std::get_if<MarginLoss>(&graph.ops.back())) return loss->classes;
  return graph.values[std::get<SoftmaxLoss>(graph.ops.back()).in].shape.c;
}

}  // namespace

TestTensors random_tensors(const Graph& graph, std::uint32_t seed) {
  // std::mt19937 is the same everywhere; the standard distributions aren't.
  std::mt19937 bits(seed);
  const auto even = [&] { return static_cast<double>(bits()) / 2147483648.0 - 1.0; };  // in [-1, 1)
  TestTensors tensors;
  for (const Parameter& parameter : graph.parameters) {
    const bool is_weight = parameter.dims.size() > 1;
    const double fan_in = is_weight ? static_cast<double>(parameter.elements() / parameter.dims[0]) : 0;
    const bool is_scale = !is_weight && parameter.name.ends_with(".weight");
    std::vector<float> values(parameter.elements());
    for (float& value : values)
      value = static_cast<float>(is_weight  ? std::sqrt(6 / fan_in) * even()
                                 : is_scale ? 1 + 0.5 * even()
                                            : 0.5 * even());
    tensors.parameters.push_back(std::move(values));
  }
  for (const Statistic& statistic : graph.statistics)
    tensors.statistics.emplace_back(statistic.channels, static_cast<float>(statistic.initial));
  tensors.images.resize(graph.values[0].shape.elements());
  for (float& value : tensors.images) value = static_cast<float>(1.7 * even() + 0.1);
  const std::int64_t classes = classes_of(graph);
  for (std::int64_t n = 0; n < graph.batch(); ++n) tensors.labels.push_back(bits() % classes);
  return tensors;
}

}  // namespace plumb
