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

// This rank's rows of a tensor whose rows the ranks share out.
struct RowShard {
  std::int64_t first_row = 0;  // of the whole tensor
  std::int64_t all_rows = 0;
};

// A trained tensor. `dims` are those of the public model: [out, in/groups, kh, kw] for convolutions,
// [out, in] for dense layers, [channels] for norms and biases; of a shard, dims[0] is this rank's rows.
struct Parameter {
  std::string name;  // of the public model, e.g. torchvision's "layer1.0.conv1.weight"
  std::vector<std::int64_t> dims;
  Initializer initializer;
  bool decays = true;   // weight decay applies
  bool trained = true;  // false: keeps the value that it starts with, like a norm's scale that is fixed at 1
  std::optional<RowShard> shard = std::nullopt;  // nothing: every rank has all of it
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

// prelu: x where x > 0, slope * x elsewhere (He et al. 2015, arXiv:1502.01852).
enum class Activation { none, relu, prelu };

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
struct BatchNorm {
  std::string name;
  ValueId in = 0, out = 0;
  std::optional<ValueId> residual;
  ParameterId scale = 0, bias = 0;
  StatisticId running_mean = 0, running_variance = 0;
  Activation activation = Activation::none;
  double epsilon = 1e-5, momentum = 0.1;
  std::optional<ParameterId> slope;  // prelu: [channels], or [1] for all of them; never with a residual
};

// max: kernel x kernel windows, padding never wins. average: global, kernel = h = w, no padding.
struct Pool {
  enum class Kind { max, global_average };
  std::string name;
  ValueId in = 0, out = 0;
  Kind kind = Kind::max;
  int kernel = 1, stride = 1, padding = 0;
};

// out[n, o] = sum_i in[n, i] * weight[o, i] + bias[o], where i counts the elements of an image in the order
// c, h, w.
struct Dense {
  std::string name;
  ValueId in = 0, out = 0;
  ParameterId weight = 0, bias = 0;
};

// out = in / (1 - probability) with probability 1 - probability, else 0; models/dropout.h says which.
struct Dropout {
  std::string name;
  ValueId in = 0, out = 0;
  double probability = 0;
  std::uint64_t seed = 0;
};

// Mean over the batch of cross-entropy against q = (1 - smoothing) * onehot + smoothing / classes.
struct SoftmaxLoss {
  std::string name;
  ValueId in = 0;
  double label_smoothing = 0;
};

// How the class centers of a margin loss lie on the ranks.
// replicated: every rank has all of them, and a loss over its own images (data-parallel).
// sharded: each has its rows, features and labels of all ranks meet there (model-parallel).
// sampled: sharded, and a step takes the centers of its labels and a sample of the others (Partial FC, An et
// al. 2021, arXiv:2010.05222).
enum class Head { replicated, sharded, sampled };

// The target's logit is scale * (cos(m1 theta + m2) - m3), every other one scale * cos(theta), where theta is
// the angle between an image's features and a class center (Deng et al. 2019, arXiv:1801.07698).
struct Margins {
  double m1 = 1, m2 = 0.5, m3 = 0;
  bool operator==(const Margins&) const = default;
};

// Mean over the images of all ranks of the cross-entropy of those logits. models/margin_head.h has the
// formulas.
struct MarginLoss {
  enum class Gradient { exact, straight_through };
  std::string name;
  ValueId in = 0;                // features [n, 1, 1, embedding]
  ParameterId weight = 0;        // class centers, this rank's rows [own classes, embedding]
  std::int64_t classes = 0;      // of all ranks
  std::int64_t first_class = 0;  // this rank's first one
  Margins margins;
  double scale = 64;
  Gradient gradient = Gradient::exact;
  Head head = Head::replicated;
  int rank = 0, world_size = 1;  // over which centers and batch are spread; replicated: 0 and 1
  double sample_rate = 1;        // sampled: of this rank's classes, in (0, 1]
  std::uint64_t seed = 0;        // sampled: of the sample
};

using Op = std::variant<Conv, BatchNorm, Pool, Dense, Dropout, SoftmaxLoss, MarginLoss>;
inline const std::string& name_of(const Op& op) {
  return std::visit([](const auto& one) -> const std::string& { return one.name; }, op);
}

// Operations are in an order in which they can run; values[0] is the input ("images", [n, h, w, 3]).
struct Graph {
  std::string model;  // as logs and results name it, e.g. "resnet50"
  std::vector<Value> values;
  std::vector<Parameter> parameters;
  std::vector<Statistic> statistics;
  std::vector<Op> ops;
  // The first operation of the head, which turns the backbone's output into features and loss.
  std::size_t head_begin = 0;

  std::int64_t batch() const { return values.front().shape.n; }
  // The loss that the Graph ends with, if it is of this kind.
  const MarginLoss* margin_loss() const {
    return ops.empty() ? nullptr : std::get_if<MarginLoss>(&ops.back());
  }
};

// Elements of the parameters that this rank has, without class centers, trained or not: what models are
// published with.
std::int64_t backbone_parameter_count(const Graph& graph);
// Elements of the class centers of all ranks; 0 if there is no margin loss.
std::int64_t head_parameter_count(const Graph& graph);

// Multiply-accumulates of one operation's forward pass for one image (convolutions and dense layers; others
// 0).
std::int64_t macs_per_image(const Graph& graph, const Op& op);
// … of the whole forward pass for one image, but for class centers. A training step costs about three times
// that.
std::int64_t macs_per_image(const Graph& graph);
// … of one image with the class centers of all ranks that a step takes (of a sample, rows as margin_rows
// counts them); 0 if there is no margin loss.
std::int64_t head_macs_per_image(const Graph& graph);

}  // namespace plumb
