// A network as data: values, parameters and operations, with no device, no layout and no precision in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace plumb {

using ValueId = std::size_t;      // index into Graph::values
using ParameterId = std::size_t;  // index into Graph::parameters
using StatisticId = std::size_t;  // index into Graph::statistics

// Logical extent of an activation: n images (the batch of one device) of h x w pixels with c channels.
struct Shape {
  std::int64_t n = 0, h = 1, w = 1, c = 0;
  std::int64_t elements() const { return n * h * w * c; }
  bool operator==(const Shape&) const = default;
};

struct Value {
  std::string name;  // of the operation that makes it, e.g. "layer1.0.conv1"; "images" for the input
  Shape shape;
};

// How a parameter starts. constant: `number` everywhere; normal: mean 0, standard deviation `number`;
// uniform: between -number and +number.
struct Initializer {
  enum class Kind { constant, normal, uniform };
  Kind kind = Kind::constant;
  double number = 0;
};

// A trained tensor. `dims` are those of the public model: [out, in/groups, kh, kw] for convolutions,
// [out, in] for dense layers, [channels] for norms and biases.
struct Parameter {
  std::string name;  // torchvision's name, e.g. "layer1.0.conv1.weight"
  std::vector<std::int64_t> dims;
  Initializer initializer;
  bool decays = true;  // weight decay applies
  std::int64_t elements() const {
    std::int64_t count = 1;
    for (std::int64_t dim : dims) count *= dim;
    return count;
  }
};

// A running mean or variance of a norm: state that is not trained, [channels].
struct Statistic {
  std::string name;  // torchvision's name, e.g. "bn1.running_mean"
  std::int64_t channels = 0;
  double initial = 0;
};

enum class Activation { none, relu };

// out = in * weight, no bias. kernel, stride and padding are the same for both axes.
struct Conv {
  std::string name;
  ValueId in = 0, out = 0;
  ParameterId weight = 0;
  int kernel = 1, stride = 1, padding = 0, groups = 1;
};

// out = activation(scale * (in - mean) / sqrt(variance + epsilon) + bias [+ residual]), mean and (biased)
// variance over n, h, w of this batch. running = (1 - momentum) * running + momentum * statistic of the
// batch, with the unbiased variance (PyTorch's BatchNorm2d).
struct Norm {
  std::string name;
  ValueId in = 0, out = 0;
  std::optional<ValueId> residual;
  ParameterId scale = 0, bias = 0;
  StatisticId running_mean = 0, running_variance = 0;
  Activation activation = Activation::none;
  double epsilon = 1e-5, momentum = 0.1;
};

// max: kernel x kernel windows, padding never wins. average: global, kernel = h = w, no padding.
struct Pool {
  enum class Kind { max, global_average };
  std::string name;
  ValueId in = 0, out = 0;
  Kind kind = Kind::max;
  int kernel = 1, stride = 1, padding = 0;
};

// out[n, o] = sum_i in[n, i] * weight[o, i] + bias[o]; in's h and w are 1.
struct Dense {
  std::string name;
  ValueId in = 0, out = 0;
  ParameterId weight = 0, bias = 0;
};

// Mean over the batch of cross-entropy against q = (1 - smoothing) * onehot + smoothing / classes.
struct SoftmaxLoss {
  std::string name;
  ValueId in = 0;
  double label_smoothing = 0;
};

using Op = std::variant<Conv, Norm, Pool, Dense, SoftmaxLoss>;

// Operations are in an order in which they can run; values[0] is the input ("images", [n, h, w, 3]).
struct Graph {
  std::string model;  // as logs and results name it, e.g. "resnet50"
  std::vector<Value> values;
  std::vector<Parameter> parameters;
  std::vector<Statistic> statistics;
  std::vector<Op> ops;

  std::int64_t batch() const { return values.front().shape.n; }
};

}  // namespace plumb
