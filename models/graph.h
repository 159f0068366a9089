// A network as data: values, parameters and operations, independent of device, layout and precision.
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

// Logical shape of an activation: n images (one device's batch) of h x w pixels with c channels.
struct Shape {
  std::int64_t n = 0, h = 1, w = 1, c = 0;
  std::int64_t elements() const { return n * h * w * c; }
  bool operator==(const Shape&) const = default;
};

struct Value {
  std::string name;  // its operation's, e.g. "layer1.0.conv1"; "images" for the input
  Shape shape;
};

// A parameter's initial values. constant: `number` everywhere; normal: mean 0, standard deviation `number`;
// uniform: between -number and +number.
struct Initializer {
  enum class Kind { constant, normal, uniform };
  Kind kind = Kind::constant;
  double number = 0;
};

// This rank's rows of a sharded tensor.
struct RowShard {
  std::int64_t first_row = 0;  // index in the whole tensor
  std::int64_t all_rows = 0;
};

// A trained tensor. `dims` are the public model's: [out, in/groups, kh, kw] for convolutions, [out, in] for
// dense layers, [channels] for norms and biases. In a shard, dims[0] is this rank's rows.
struct Parameter {
  std::string name;  // the public model's, e.g. torchvision's "layer1.0.conv1.weight"
  std::vector<std::int64_t> dims;
  Initializer initializer;
  bool decays = true;   // weight decay applies
  bool trained = true;  // false: keeps its initial value, like a norm's scale fixed at 1
  std::optional<RowShard> shard = std::nullopt;  // nullopt: replicated
  std::int64_t elements() const {
    std::int64_t count = 1;
    for (std::int64_t dim : dims) count *= dim;
    return count;
  }
};

// A norm's running mean or variance, [channels]: state that isn't trained.
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

// out = activation(scale * (in - mean) / sqrt(variance + epsilon) + bias [+ residual]); mean and (biased)
// variance over this batch's n, h, w. running = (1 - momentum) * running + momentum * batch statistic, with
// the unbiased variance (PyTorch's BatchNorm2d).
struct Norm {
  std::string name;
  ValueId in = 0, out = 0;
  std::optional<ValueId> residual;
  ParameterId scale = 0, bias = 0;
  StatisticId running_mean = 0, running_variance = 0;
  Activation activation = Activation::none;
  double epsilon = 1e-5, momentum = 0.1;
  std::optional<ParameterId> slope;  // prelu: [channels], or [1] for all channels; never with a residual
};

// max: kernel x kernel windows, padding never wins. average: global, kernel = h = w, no padding.
struct Pool {
  enum class Kind { max, global_average };
  std::string name;
  ValueId in = 0, out = 0;
  Kind kind = Kind::max;
  int kernel = 1, stride = 1, padding = 0;
};

// out[n, o] = sum_i in[n, i] * weight[o, i] + bias[o]; i runs over an image's elements in c, h, w order.
struct Dense {
  std::string name;
  ValueId in = 0, out = 0;
  ParameterId weight = 0, bias = 0;
};

// out = in / (1 - probability) with probability 1 - probability, else 0; mask: models/dropout.h.
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

// Distribution of a margin loss's class centres. replicated: every rank holds all centres and a loss over its
// own images (data-parallel). sharded: each rank holds its rows and gets all ranks' features and labels
// (model-parallel). sampled: sharded; a step uses its labels' centres and a sample of the others (Partial FC,
// An et al. 2021, arXiv:2010.05222).
enum class Head { replicated, sharded, sampled };

// The target's logit is scale * (cos(m1 theta + m2) - m3), every other logit scale * cos(theta); theta is the
// angle between an image's features and a class centre (Deng et al. 2019, arXiv:1801.07698).
struct Margins {
  double m1 = 1, m2 = 0.5, m3 = 0;
  bool operator==(const Margins&) const = default;
};

// Mean cross-entropy of these logits over all ranks' images. Formulas: models/margin_head.h.
struct MarginLoss {
  enum class Gradient { exact, straight_through };
  std::string name;
  ValueId in = 0;                // features [n, 1, 1, embedding]
  ParameterId weight = 0;        // class centres, this rank's rows [own classes, embedding]
  std::int64_t classes = 0;      // on all ranks
  std::int64_t first_class = 0;  // on this rank
  Margins margins;
  double scale = 64;
  Gradient gradient = Gradient::exact;
  Head head = Head::replicated;
  int rank = 0, world_size = 1;  // ranks that share centres and batch; replicated: 0 and 1
  double sample_rate = 1;        // sampled: fraction of this rank's classes, in (0, 1]
  std::uint64_t seed = 0;        // sampled: for the sample
};

using Op = std::variant<Conv, Norm, Pool, Dense, Dropout, SoftmaxLoss, MarginLoss>;
inline const std::string& name_of(const Op& op) {
  return std::visit([](const auto& one) -> const std::string& { return one.name; }, op);
}

// Operations are in execution order; values[0] is the input ("images", [n, h, w, 3]).
struct Graph {
  std::string model;  // name in logs and results, e.g. "resnet50"
  std::vector<Value> values;
  std::vector<Parameter> parameters;
  std::vector<Statistic> statistics;
  std::vector<Op> ops;
  // The head's first operation; the head maps the backbone's output to features and loss.
  std::size_t head_begin = 0;

  std::int64_t batch() const { return values.front().shape.n; }
};

}  // namespace plumb
