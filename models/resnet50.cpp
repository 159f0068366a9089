#include "models/resnet50.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace plumb {
namespace {

constexpr Activation kRelu = Activation::relu;

constexpr std::int64_t kExpansion = 4;

// relu(bn3(conv3(relu(bn2(conv2(relu(bn1(conv1(in)))))))) + shortcut(in)). Parameters are registered in
// torchvision's order: bn3's before the shortcut's, although bn3 runs last.
ValueId add_bottleneck(ModelBuilder& net, const std::string& name, ValueId in, std::int64_t width,
                       int stride) {
  const std::int64_t channels = width * kExpansion;
  ValueId main = net.conv(name + ".conv1", in, {.channels = width});
  main = net.batch_norm(name + ".bn1", main, {.activation = kRelu});
  main = net.conv(name + ".conv2", main, {.channels = width, .kernel = 3, .stride = stride, .padding = 1});
  main = net.batch_norm(name + ".bn2", main, {.activation = kRelu});
  main = net.conv(name + ".conv3", main, {.channels = channels});
  const BatchNorm last = net.declare_batch_norm(name + ".bn3", channels, {.activation = kRelu});
  ValueId shortcut = in;
  if (stride != 1 || net.shape(in).c != channels) {
    shortcut = net.conv(name + ".downsample.0", in, {.channels = channels, .stride = stride});
    shortcut = net.batch_norm(name + ".downsample.1", shortcut, {});
  }
  return net.apply(last, main, shortcut);
}

// PyTorch's nn.Linear initialization: weight and bias uniform within 1 / sqrt(inputs).
DenseInitializers torch_linear(std::int64_t inputs) {
  const Initializer uniform{Initializer::Kind::uniform, 1 / std::sqrt(static_cast<double>(inputs))};
  return {.weight = uniform, .bias = uniform};
}

}  // namespace

Graph make_resnet50(const ResNet50Options& options) {
  ModelBuilder net("resnet50", options.decay);
  ValueId value = net.images(options.batch, options.image_size);
  value = net.conv("conv1", value, {.channels = 64, .kernel = 7, .stride = 2, .padding = 3});
  value = net.batch_norm("bn1", value, {.activation = kRelu});
  value = net.max_pool("maxpool", value, 3, 2, 1);
  for (std::size_t s = 0; s < options.stages.size(); ++s) {
    const ResNetStage& stage = options.stages[s];
    for (int block = 0; block < stage.blocks; ++block) {
      const std::string name = fmt::format("layer{}.{}", s + 1, block);
      value = add_bottleneck(net, name, value, stage.width, block == 0 ? stage.stride : 1);
    }
  }
  value = net.global_average_pool("avgpool", value);
  value = net.dense("fc", value, options.classes, torch_linear(net.shape(value).c));
  net.softmax_loss("loss", value, options.label_smoothing);
  return net.take();
}

}  // namespace plumb
