// IResNet: insightface's fresnet with unit 3 and output E (863a7ea9, recognition/symbol/fresnet.py), with the
// names and the parameter order of its PyTorch port (7fadd420, arcface_torch/backbones/iresnet.py).
#include <array>
#include <string>

#include "base/text.h"
#include "models/arcface.h"

namespace plumb {
namespace {

constexpr double kEpsilon = 2e-5;

BatchNormOptions plain_norm() {
  return {.epsilon = kEpsilon};
}

BatchNormOptions prelu_norm(const ModelOptions& options, const std::string& slope) {
  return {.activation = Activation::prelu,
          .epsilon = kEpsilon,
          .slope = slope,
          .one_slope = options.prelu_per_layer};
}

// bn3(conv2(prelu(bn2(conv1(bn1(in)))))) + shortcut(in), without activation after the sum. Each stage's first
// unit halves the image in conv2 and in the shortcut.
ValueId add_unit(ModelBuilder& net, const std::string& name, ValueId in, std::int64_t channels, bool is_first,
                 const ModelOptions& options) {
  const int stride = is_first ? 2 : 1;
  ValueId main = net.batch_norm(name + ".bn1", in, plain_norm());
  main = net.conv(name + ".conv1", main, {.channels = channels, .kernel = 3, .padding = 1});
  main = net.batch_norm(name + ".bn2", main, prelu_norm(options, name + ".prelu.weight"));
  main = net.conv(name + ".conv2", main, {.channels = channels, .kernel = 3, .stride = stride, .padding = 1});
  const BatchNorm last = net.declare_batch_norm(name + ".bn3", channels, plain_norm());
  ValueId shortcut = in;
  if (is_first) {
    shortcut = net.conv(name + ".downsample.0", in, {.channels = channels, .stride = stride});
    shortcut = net.batch_norm(name + ".downsample.1", shortcut, plain_norm());
  }
  return net.apply(last, main, shortcut);
}

// `units`: per stage; the four stages have 64, 128, 256 and 512 channels.
ValueId add_iresnet(ModelBuilder& net, ValueId images, const std::array<int, 4>& units,
                    const ModelOptions& options) {
  ValueId value = net.conv("conv1", images, {.channels = 64, .kernel = 3, .padding = 1});
  value = net.batch_norm("bn1", value, prelu_norm(options, "prelu.weight"));
  for (std::size_t stage = 0; stage < units.size(); ++stage) {
    const std::int64_t channels = std::int64_t{64} << stage;
    for (int unit = 0; unit < units[stage]; ++unit) {
      const std::string name = fmt::format("layer{}.{}", stage + 1, unit);
      value = add_unit(net, name, value, channels, unit == 0, options);
    }
  }
  value = net.batch_norm("bn2", value, plain_norm());
  if (options.dropout > 0) value = net.dropout("dropout", value, options.dropout, options.seed);
  return add_embedding(net, "fc", "features", value, options);
}

}  // namespace

ValueId add_iresnet50(ModelBuilder& net, ValueId images, const ModelOptions& options) {
  return add_iresnet(net, images, {3, 4, 14, 3}, options);
}

ValueId add_iresnet100(ModelBuilder& net, ValueId images, const ModelOptions& options) {
  return add_iresnet(net, images, {3, 13, 30, 3}, options);
}

}  // namespace plumb
