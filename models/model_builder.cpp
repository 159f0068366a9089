#include "models/model_builder.h"

#include <cmath>
#include <utility>

namespace plumb {
namespace {

constexpr Initializer kZeros{Initializer::Kind::constant, 0};
constexpr Initializer kOnes{Initializer::Kind::constant, 1};
constexpr Initializer kSlopes{Initializer::Kind::constant, 0.25};  // He et al. 2015, arXiv:1502.01852

Shape window_shape(const Shape& from, int kernel, int stride, int padding, std::int64_t channels) {
  const auto windows = [&](std::int64_t size) {
    return (size + std::int64_t{2} * padding - kernel) / stride + 1;
  };
  return {from.n, windows(from.h), windows(from.w), channels};
}

std::int64_t elements_per_image(const Shape& shape) {
  return shape.h * shape.w * shape.c;
}

}  // namespace

Initializer he_fan_out(std::int64_t outputs, std::int64_t window) {
  return {Initializer::Kind::normal,
          std::sqrt(2.0 / (static_cast<double>(outputs) * static_cast<double>(window)))};
}

ModelBuilder::ModelBuilder(std::string model, DecayRule decay) : decay_(decay) {
  graph_.model = std::move(model);
}

Graph ModelBuilder::take() {
  return std::move(graph_);
}

ValueId ModelBuilder::images(std::int64_t batch, std::int64_t size) {
  return add_value("images", {batch, size, size, 3});
}

ValueId ModelBuilder::conv(const std::string& name, ValueId in, const ConvOptions& options) {
  const auto [channels, kernel, stride, padding, groups] = options;
  const ParameterId weight =
      add_parameter(name + ".weight", {channels, shape(in).c / groups, kernel, kernel},
                    he_fan_out(channels, std::int64_t{kernel} * kernel), ParameterUse::weight);
  const ValueId out = add_value(name, window_shape(shape(in), kernel, stride, padding, channels));
  graph_.ops.push_back(Conv{name, in, out, weight, kernel, stride, padding, static_cast<int>(groups)});
  return out;
}

BatchNorm ModelBuilder::declare_batch_norm(const std::string& name, std::int64_t channels,
                                           const BatchNormOptions& options) {
  BatchNorm norm;
  norm.name = name;
  norm.activation = options.activation;
  norm.epsilon = options.epsilon;
  norm.scale = add_parameter(name + ".weight", {channels}, kOnes, ParameterUse::other);
  if (options.fixed_scale) {
    graph_.parameters[norm.scale].trained = false;
    graph_.parameters[norm.scale].decays = false;
  }
  norm.bias = add_parameter(name + ".bias", {channels}, kZeros, ParameterUse::other);
  norm.running_mean = add_statistic(name + ".running_mean", channels, 0);
  norm.running_variance = add_statistic(name + ".running_var", channels, 1);
  if (options.activation == Activation::prelu)
    norm.slope =
        add_parameter(options.slope, {options.one_slope ? 1 : channels}, kSlopes, ParameterUse::other);
  return norm;
}

ValueId ModelBuilder::apply(BatchNorm norm, ValueId in, std::optional<ValueId> residual) {
  norm.in = in;
  norm.out = add_value(norm.name, shape(in));
  norm.residual = residual;
  graph_.ops.push_back(norm);
  return norm.out;
}

ValueId ModelBuilder::batch_norm(const std::string& name, ValueId in, const BatchNormOptions& options) {
  return apply(declare_batch_norm(name, shape(in).c, options), in);
}

ValueId ModelBuilder::max_pool(const std::string& name, ValueId in, int kernel, int stride, int padding) {
  const ValueId out = add_value(name, window_shape(shape(in), kernel, stride, padding, shape(in).c));
  graph_.ops.push_back(Pool{name, in, out, Pool::Kind::max, kernel, stride, padding});
  return out;
}

ValueId ModelBuilder::global_average_pool(const std::string& name, ValueId in) {
  const int window = static_cast<int>(shape(in).h);
  const ValueId out = add_value(name, {shape(in).n, 1, 1, shape(in).c});
  graph_.ops.push_back(Pool{name, in, out, Pool::Kind::global_average, window, 1, 0});
  return out;
}

ValueId ModelBuilder::dropout(const std::string& name, ValueId in, double probability, std::uint64_t seed) {
  const ValueId out = add_value(name, shape(in));
  graph_.ops.push_back(Dropout{name, in, out, probability, seed});
  return out;
}

ValueId ModelBuilder::dense(const std::string& name, ValueId in, std::int64_t outputs,
                            const DenseInitializers& start) {
  const ParameterId weight = add_parameter(name + ".weight", {outputs, elements_per_image(shape(in))},
                                           start.weight, ParameterUse::weight);
  const ParameterId bias = add_parameter(name + ".bias", {outputs}, start.bias, ParameterUse::other);
  const ValueId out = add_value(name, {shape(in).n, 1, 1, outputs});
  graph_.head_begin = graph_.ops.size();
  graph_.ops.push_back(Dense{name, in, out, weight, bias});
  return out;
}

void ModelBuilder::softmax_loss(const std::string& name, ValueId in, double label_smoothing) {
  graph_.ops.push_back(SoftmaxLoss{name, in, label_smoothing});
}

void ModelBuilder::margin_loss(MarginLoss loss, ValueId in, std::int64_t own_rows, const Initializer& start) {
  loss.in = in;
  loss.weight = add_parameter(loss.name + ".weight", {own_rows, elements_per_image(shape(in))}, start,
                              ParameterUse::weight);
  if (loss.head != Head::replicated)
    graph_.parameters[loss.weight].shard = RowShard{.first_row = loss.first_class, .all_rows = loss.classes};
  graph_.ops.push_back(std::move(loss));
}

ValueId ModelBuilder::add_value(const std::string& name, const Shape& shape) {
  graph_.values.push_back({name, shape});
  return graph_.values.size() - 1;
}

ParameterId ModelBuilder::add_parameter(const std::string& name, std::vector<std::int64_t> dims,
                                        const Initializer& init, ParameterUse use) {
  graph_.parameters.push_back(
      {.name = name, .dims = std::move(dims), .initializer = init, .decays = decays(name, use)});
  return graph_.parameters.size() - 1;
}

StatisticId ModelBuilder::add_statistic(const std::string& name, std::int64_t channels, double initial) {
  graph_.statistics.push_back({name, channels, initial});
  return graph_.statistics.size() - 1;
}

bool ModelBuilder::decays(const std::string& name, ParameterUse use) const {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (decay_ == DecayRule::weights_only) return use == ParameterUse::weight;
  return decay_ == DecayRule::all || !(has("bn") || has("batchnorm"));
}

}  // namespace plumb
