#include "models/resnet50.h"

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "models/error.h"

namespace plumb {
namespace {

// Bounds that keep every element count of the Graph far from overflow; whether it fits is the memory plan's
// matter.
constexpr std::int64_t kMaxBatch = std::int64_t{1} << 24;
constexpr std::int64_t kMinImageSize = 32, kMaxImageSize = 8192;
constexpr std::int64_t kMaxClasses = std::int64_t{1} << 24;

constexpr Initializer kZeros{Initializer::Kind::constant, 0};
constexpr Initializer kOnes{Initializer::Kind::constant, 1};

// One of the four groups of bottleneck blocks (He et al., table 1). `width`: channels inside a block; four
// times as many leave it. `stride`: of the first block's 3x3 convolution and shortcut.
struct Stage {
  int blocks;
  std::int64_t width;
  int stride;
};
constexpr std::array<Stage, 4> kStages{{{3, 64, 1}, {4, 128, 2}, {6, 256, 2}, {3, 512, 2}}};
constexpr std::int64_t kExpansion = 4;

void require_between(std::int64_t value, std::int64_t least, std::int64_t most, const std::string& what,
                     const std::string& option) {
  if (value >= least && value <= most) return;
  throw Error(ExitCode::usage, what + " " + std::to_string(value) + " is out of range: give " + option +
                                   " from " + std::to_string(least) + " to " + std::to_string(most));
}

std::int64_t window_count(std::int64_t size, int kernel, int stride, int padding) {
  return (size + std::int64_t{2} * padding - kernel) / stride + 1;
}

// Adds operations to a Graph, with the parameters and values they need, in the order of the calls.
class ResNetBuilder {
 public:
  ResNetBuilder(std::string model, DecayRule decay) : decay_(decay) { graph_.model = std::move(model); }

  Graph take() { return std::move(graph_); }

  ValueId add_value(const std::string& name, const Shape& shape) {
    graph_.values.push_back({name, shape});
    return graph_.values.size() - 1;
  }

  ValueId conv(const std::string& name, ValueId in, std::int64_t channels, int kernel, int stride) {
    const Shape from = graph_.values[in].shape;
    const int padding = kernel / 2;
    const double fan_out = static_cast<double>(channels) * kernel * kernel;
    const Initializer init{Initializer::Kind::normal, std::sqrt(2.0 / fan_out)};
    const ParameterId weight =
        add_parameter(name + ".weight", {channels, from.c, kernel, kernel}, init, ParameterUse::weight);
    const Shape to{from.n, window_count(from.h, kernel, stride, padding),
                   window_count(from.w, kernel, stride, padding), channels};
    const ValueId out = add_value(name, to);
    graph_.ops.push_back(Conv{name, in, out, weight, kernel, stride, padding, 1});
    return out;
  }

  // Registers a norm's parameters and statistics; apply() adds the operation.
  Norm declare_norm(const std::string& name, std::int64_t channels) {
    Norm norm;
    norm.name = name;
    norm.scale = add_parameter(name + ".weight", {channels}, kOnes, ParameterUse::other);
    norm.bias = add_parameter(name + ".bias", {channels}, kZeros, ParameterUse::other);
    norm.running_mean = add_statistic(name + ".running_mean", channels, 0);
    norm.running_variance = add_statistic(name + ".running_var", channels, 1);
    return norm;
  }

  ValueId apply(Norm norm, ValueId in, Activation activation, std::optional<ValueId> residual = {}) {
    norm.in = in;
    norm.out = add_value(norm.name, graph_.values[in].shape);
    norm.activation = activation;
    norm.residual = residual;
    graph_.ops.push_back(norm);
    return norm.out;
  }

  ValueId norm(const std::string& name, ValueId in, Activation activation) {
    return apply(declare_norm(name, graph_.values[in].shape.c), in, activation);
  }

  ValueId max_pool(const std::string& name, ValueId in, int kernel, int stride, int padding) {
    const Shape from = graph_.values[in].shape;
    const ValueId out = add_value(name, {from.n, window_count(from.h, kernel, stride, padding),
                                         window_count(from.w, kernel, stride, padding), from.c});
    graph_.ops.push_back(Pool{name, in, out, Pool::Kind::max, kernel, stride, padding});
    return out;
  }

  ValueId global_average_pool(const std::string& name, ValueId in) {
    const Shape from = graph_.values[in].shape;
    const ValueId out = add_value(name, {from.n, 1, 1, from.c});
    graph_.ops.push_back(Pool{name, in, out, Pool::Kind::global_average, static_cast<int>(from.h), 1, 0});
    return out;
  }

  // Weight and bias start as in PyTorch's nn.Linear: uniform within 1 / sqrt(inputs).
  ValueId dense(const std::string& name, ValueId in, std::int64_t outputs) {
    const Shape from = graph_.values[in].shape;
    const Initializer init{Initializer::Kind::uniform, 1 / std::sqrt(static_cast<double>(from.c))};
    const ParameterId weight = add_parameter(name + ".weight", {outputs, from.c}, init, ParameterUse::weight);
    const ParameterId bias = add_parameter(name + ".bias", {outputs}, init, ParameterUse::other);
    const ValueId out = add_value(name, {from.n, 1, 1, outputs});
    graph_.ops.push_back(Dense{name, in, out, weight, bias});
    return out;
  }

  void softmax_loss(const std::string& name, ValueId in, double label_smoothing) {
    graph_.ops.push_back(SoftmaxLoss{name, in, label_smoothing});
  }

  std::int64_t channels(ValueId value) const { return graph_.values[value].shape.c; }

 private:
  enum class ParameterUse { weight, other };

  ParameterId add_parameter(const std::string& name, std::vector<std::int64_t> dims, const Initializer& init,
                            ParameterUse use) {
    graph_.parameters.push_back({name, std::move(dims), init, decays(name, use)});
    return graph_.parameters.size() - 1;
  }

  StatisticId add_statistic(const std::string& name, std::int64_t channels, double initial) {
    graph_.statistics.push_back({name, channels, initial});
    return graph_.statistics.size() - 1;
  }

  bool decays(const std::string& name, ParameterUse use) const {
    if (decay_ == DecayRule::weights_only) return use == ParameterUse::weight;
    return decay_ == DecayRule::all || name.find("bn") == std::string::npos;
  }

  Graph graph_;
  DecayRule decay_;
};

// relu(bn3(conv3(relu(bn2(conv2(relu(bn1(conv1(in)))))))) + shortcut(in)). Parameters are registered in
// torchvision's order, where bn3's come before the shortcut's although it is the last to run.
ValueId add_bottleneck(ResNetBuilder& net, const std::string& name, ValueId in, std::int64_t width,
                       int stride) {
  const std::int64_t channels = width * kExpansion;
  ValueId main = net.conv(name + ".conv1", in, width, 1, 1);
  main = net.norm(name + ".bn1", main, Activation::relu);
  main = net.conv(name + ".conv2", main, width, 3, stride);
  main = net.norm(name + ".bn2", main, Activation::relu);
  main = net.conv(name + ".conv3", main, channels, 1, 1);
  const Norm last = net.declare_norm(name + ".bn3", channels);
  ValueId shortcut = in;
  if (stride != 1 || net.channels(in) != channels) {
    shortcut = net.conv(name + ".downsample.0", in, channels, 1, stride);
    shortcut = net.norm(name + ".downsample.1", shortcut, Activation::none);
  }
  return net.apply(last, main, Activation::relu, shortcut);
}

}  // namespace

Graph make_resnet50(const ResNet50Options& options) {
  require_between(options.batch, 1, kMaxBatch, "batch per device", "--bs");
  require_between(options.image_size, kMinImageSize, kMaxImageSize, "image size", "--image-size");
  require_between(options.classes, 1, kMaxClasses, "number of classes", "a number");
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1)) {
    throw Error(ExitCode::usage, "label smoothing " + std::to_string(options.label_smoothing) +
                                     " is out of range: give --label-smoothing from 0 to below 1.");
  }

  ResNetBuilder net("resnet50", options.decay);
  ValueId value = net.add_value("images", {options.batch, options.image_size, options.image_size, 3});
  value = net.conv("conv1", value, 64, 7, 2);
  value = net.norm("bn1", value, Activation::relu);
  value = net.max_pool("maxpool", value, 3, 2, 1);
  for (std::size_t s = 0; s < kStages.size(); ++s) {
    for (int block = 0; block < kStages[s].blocks; ++block) {
      const std::string name = "layer" + std::to_string(s + 1) + "." + std::to_string(block);
      value = add_bottleneck(net, name, value, kStages[s].width, block == 0 ? kStages[s].stride : 1);
    }
  }
  value = net.global_average_pool("avgpool", value);
  value = net.dense("fc", value, options.classes);
  net.softmax_loss("loss", value, options.label_smoothing);
  return net.take();
}

}  // namespace plumb
