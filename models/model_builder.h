// Adds operations to a Graph, with the parameters and values they need.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/graph.h"

namespace plumb {

// Bounds that keep every element count and every product of costs inside 64 bits; whether a Graph fits is the
// memory plan's matter.
inline constexpr std::int64_t kMaxBatch = std::int64_t{1} << 24;
inline constexpr std::int64_t kMaxRanks = std::int64_t{1} << 18;

// Which parameters weight decay applies to. all: each tensor. no_bn: all but those with "bn" or "batchnorm"
// in their name (NVIDIA DeepLearningExamples, PyTorch: norms of the shortcuts are called downsample.1 and do
// decay). weights_only: weights of convolutions and dense layers, and class centers.
enum class DecayRule { all, no_bn, weights_only };

// Weights of convolutions and dense layers: N(0, 2 / fan_out) (He et al. 2015, arXiv:1502.01852, section 2.2,
// backward case), where fan_out = outputs x window as MXNet's Xavier("out") and PyTorch count it, groups or
// not.
Initializer he_fan_out(std::int64_t outputs, std::int64_t window = 1);

struct ConvOptions {
  std::int64_t channels = 0;  // of the output
  int kernel = 1, stride = 1, padding = 0;
  std::int64_t groups = 1;
};

struct BatchNormOptions {
  Activation activation = Activation::none;
  double epsilon = 1e-5;
  bool fixed_scale = false;  // the scale stays 1
  std::string slope = {};    // prelu: the parameter's name
  bool one_slope = false;    // prelu: for all channels
};

// Initializers of a dense layer.
struct DenseInitializers {
  Initializer weight, bias;
};

// Parameters come in the order of the calls; names are those that operations have, plus ".weight" and ".bias"
// (".running_mean" and ".running_var").
class ModelBuilder {
 public:
  ModelBuilder(std::string model, DecayRule decay);
  Graph take();

  const Shape& shape(ValueId value) const { return graph_.values[value].shape; }

  // The input, [batch, size, size, 3].
  ValueId images(std::int64_t batch, std::int64_t size);
  ValueId conv(const std::string& name, ValueId in, const ConvOptions& options);
  ValueId batch_norm(const std::string& name, ValueId in, const BatchNormOptions& options);
  // A norm in two parts, for one that runs later than its place among the parameters.
  BatchNorm declare_batch_norm(const std::string& name, std::int64_t channels,
                               const BatchNormOptions& options);
  ValueId apply(BatchNorm norm, ValueId in, std::optional<ValueId> residual = {});
  ValueId max_pool(const std::string& name, ValueId in, int kernel, int stride, int padding);
  ValueId global_average_pool(const std::string& name, ValueId in);
  ValueId dropout(const std::string& name, ValueId in, double probability, std::uint64_t seed);
  // All elements of an image to `outputs` numbers. The Graph's head begins with the last of these.
  ValueId dense(const std::string& name, ValueId in, std::int64_t outputs, const DenseInitializers& start);
  void softmax_loss(const std::string& name, ValueId in, double label_smoothing);
  // `loss` with the features `in` and class centers [own_rows, elements of an image] called "<name>.weight".
  void margin_loss(MarginLoss loss, ValueId in, std::int64_t own_rows, const Initializer& start);

 private:
  enum class ParameterUse { weight, other };

  ValueId add_value(const std::string& name, const Shape& shape);
  ParameterId add_parameter(const std::string& name, std::vector<std::int64_t> dims, const Initializer& init,
                            ParameterUse use);
  StatisticId add_statistic(const std::string& name, std::int64_t channels, double initial);
  bool decays(const std::string& name, ParameterUse use) const;

  Graph graph_;
  DecayRule decay_;
};

}  // namespace plumb
