// Small Graphs for tests, written top to bottom: every call appends one operation and returns its output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/graph.h"

namespace plumb {

class GraphBuilder {
 public:
  explicit GraphBuilder(Shape images);

  static constexpr ValueId kImages = 0;

  struct ConvOptions {
    int kernel = 1, stride = 1, padding = 0, groups = 1;
  };
  ValueId conv(ValueId in, std::int64_t out_channels, ConvOptions options);
  ValueId norm(ValueId in, Activation activation = Activation::none, std::optional<ValueId> residual = {});
  // Adds a PReLU: one slope per channel, or one for all.
  ValueId norm_prelu(ValueId in, bool slope_per_channel = true);
  void fix_scale(ValueId norm_out);  // makes that norm's scale untrained
  // A block of ResNet-50, whose output has 4 * channels: with a projection where that changes its shape.
  ValueId bottleneck(ValueId in, std::int64_t channels, int stride);
  ValueId max_pool(ValueId in, int kernel, int stride, int padding);
  ValueId global_average(ValueId in);  // in must be square
  ValueId dense(ValueId in, std::int64_t outputs);
  ValueId dropout(ValueId in, double probability, std::uint64_t seed = 1);

  // The Graph with a softmax loss on `logits`; leaves the builder empty.
  Graph loss(ValueId logits, double label_smoothing = 0.1);
  // … with a dense layer of `classes` outputs before it, and a global average if `in` has more than one
  // pixel.
  Graph classify(ValueId in, std::int64_t classes = 7);

  const Shape& shape(ValueId value) const { return graph_.values[value].shape; }

 private:
  std::string next_name(const std::string& kind);
  ValueId add_value(const std::string& name, Shape shape);
  ParameterId add_parameter(std::string name, std::vector<std::int64_t> dims);

  Graph graph_;
  int names_ = 0;
};

// Values that depend only on `seed` and are the same on every machine: uniform parameters scaled so that
// activations stay near 1, the Graph's initial statistics, images and labels.
struct TestTensors {
  std::vector<std::vector<float>> parameters, statistics;
  std::vector<float> images;  // [n, c, h, w]
  std::vector<std::int64_t> labels;
};
TestTensors random_tensors(const Graph& graph, std::uint32_t seed);

}  // namespace plumb
