// MobileFaceNet y1 (Chen et al. 2018, arXiv:1804.07573, table 1) with the blocks [1, 4, 6, 2], the output GDC
// and the layer names of insightface 863a7ea9, recognition/symbol/fmobilefacenet.py. It has no dropout.
#include <array>
#include <optional>
#include <string>

#include "base/text.h"
#include "models/arcface.h"

namespace plumb {
namespace {

constexpr double kEpsilon = 1e-3;  // MXNet's default for BatchNorm

// A block that halves the image, then `residual_blocks` that keep its size. `expanded`: channels between the
// 1x1 convolutions.
struct Stage {
  const char* halving;
  std::int64_t halving_expanded;
  const char* residual;
  std::int64_t residual_expanded;
  int residual_blocks;
  std::int64_t channels;
};
constexpr std::array<Stage, 3> kStages{{{"dconv_23", 128, "res_3", 128, 4, 64},
                                        {"dconv_34", 256, "res_4", 256, 6, 128},
                                        {"dconv_45", 512, "res_5", 256, 2, 128}}};

// prelu(norm(conv(in))).
ValueId add_conv(ModelBuilder& net, const std::string& name, ValueId in, const ConvOptions& conv,
                 const ModelOptions& options) {
  const ValueId out = net.conv(name + "_conv2d", in, conv);
  return net.batch_norm(name + "_batchnorm", out,
                        {.activation = Activation::prelu,
                         .epsilon = kEpsilon,
                         .slope = name + "_relu.weight",
                         .one_slope = options.prelu_per_layer});
}

// norm(conv(in)) [+ residual].
ValueId add_linear(ModelBuilder& net, const std::string& name, ValueId in, const ConvOptions& conv,
                   std::optional<ValueId> residual = {}) {
  const ValueId out = net.conv(name + "_conv2d", in, conv);
  const BatchNorm norm = net.declare_batch_norm(name + "_batchnorm", net.shape(out).c, {.epsilon = kEpsilon});
  return net.apply(norm, out, residual);
}

ConvOptions depthwise(std::int64_t channels, int kernel, int stride, int padding) {
  return {.channels = channels, .kernel = kernel, .stride = stride, .padding = padding, .groups = channels};
}

// 1x1 to `expanded` channels, 3x3 depthwise, 1x1 to `channels`.
ValueId add_depth_wise_block(ModelBuilder& net, const std::string& name, ValueId in, std::int64_t expanded,
                             std::int64_t channels, bool is_residual, const ModelOptions& options) {
  ValueId value = add_conv(net, name + "_conv_sep", in, {.channels = expanded}, options);
  value = add_conv(net, name + "_conv_dw", value, depthwise(expanded, 3, is_residual ? 1 : 2, 1), options);
  const std::optional<ValueId> residual = is_residual ? std::optional(in) : std::nullopt;
  return add_linear(net, name + "_conv_proj", value, {.channels = channels}, residual);
}

}  // namespace

ValueId add_mobilefacenet(ModelBuilder& net, ValueId images, const ModelOptions& options) {
  ValueId value =
      add_conv(net, "conv_1", images, {.channels = 64, .kernel = 3, .stride = 2, .padding = 1}, options);
  value = add_conv(net, "conv_2_dw", value, depthwise(64, 3, 1, 1), options);
  for (const Stage& stage : kStages) {
    value = add_depth_wise_block(net, stage.halving, value, stage.halving_expanded, stage.channels, false,
                                 options);
    for (int block = 0; block < stage.residual_blocks; ++block) {
      const std::string name = fmt::format("{}_block{}", stage.residual, block);
      value = add_depth_wise_block(net, name, value, stage.residual_expanded, stage.channels, true, options);
    }
  }
  value = add_conv(net, "conv_6sep", value, {.channels = 512}, options);
  value = add_linear(net, "conv_6dw7_7", value, depthwise(512, static_cast<int>(net.shape(value).h), 1, 0));
  return add_embedding(net, "pre_fc1", "fc1", value, options);
}

}  // namespace plumb
