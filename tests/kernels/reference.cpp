#include "tests/kernels/reference.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "models/dropout.h"
#include "tests/kernels/reference_loops.h"

namespace plumb {
namespace {

struct NormStatistics {
  Doubles mean, variance;  // of the batch, biased
  double elements = 0;     // per channel
};

NormStatistics statistics_of(const Doubles& in, const Shape& shape) {
  NormStatistics result{Doubles(shape.c), Doubles(shape.c), static_cast<double>(shape.n * shape.h * shape.w)};
  for_each_element(shape, [&](auto n, auto c, auto y, auto x) {
    result.mean[c] += in[at(shape, n, c, y, x)] / result.elements;
  });
  for_each_element(shape, [&](auto n, auto c, auto y, auto x) {
    const double centerd = in[at(shape, n, c, y, x)] - result.mean[c];
    result.variance[c] += centerd * centerd / result.elements;
  });
  return result;
}

// Runs one batch through the Graph; each op has a forward and a backward overload.
class Interpreter {
 public:
  Interpreter(const Graph& graph, const ReferenceState& state, std::span<const std::int64_t> labels,
              ReferencePosition position)
      : graph_(graph), state_(state), labels_(labels), position_(position) {
    result_.statistics = state.statistics;
    for (const Value& value : graph.values) {
      result_.values.emplace_back(value.shape.elements());
      result_.value_gradients.emplace_back(value.shape.elements());
    }
    for (const Parameter& parameter : graph.parameters)
      result_.parameter_gradients.emplace_back(parameter.elements());
  }

  ReferencePass run(std::span<const double> images) {
    result_.values[0].assign(images.begin(), images.end());
    for (const Op& op : graph_.ops) std::visit([this](const auto& o) { forward(o); }, op);
    for (auto op = graph_.ops.rbegin(); op != graph_.ops.rend(); ++op)
      std::visit([this](const auto& o) { backward(o); }, *op);
    return std::move(result_);
  }

 private:
  const Shape& shape(ValueId value) const { return graph_.values[value].shape; }
  const Doubles& parameter(ParameterId id) const { return state_.parameters[id]; }
  Doubles& value(ValueId id) { return result_.values[id]; }
  Doubles& gradient(ValueId id) { return result_.value_gradients[id]; }
  Doubles& parameter_gradient(ParameterId id) { return result_.parameter_gradients[id]; }

  void forward(const Conv& op) {
    const Doubles &in = value(op.in), &weight = parameter(op.weight);
    Doubles& out = value(op.out);
    for_each_product<Split::outputs>(
        op, shape(op.in), shape(op.out),
        [&](std::size_t i, std::size_t w, std::size_t o) { out[o] += in[i] * weight[w]; });
  }

  void backward(const Conv& op) {
    const Doubles &in = value(op.in), &weight = parameter(op.weight), &d_out = gradient(op.out);
    Doubles &d_in = gradient(op.in), &d_weight = parameter_gradient(op.weight);
    for_each_product<Split::inputs>(
        op, shape(op.in), shape(op.out),
        [&](std::size_t i, std::size_t w, std::size_t o) { d_in[i] += d_out[o] * weight[w]; });
    for_each_product<Split::weights>(
        op, shape(op.in), shape(op.out),
        [&](std::size_t i, std::size_t w, std::size_t o) { d_weight[w] += d_out[o] * in[i]; });
  }

  double slope_below_zero(const BatchNorm& op, std::int64_t c) const {
    if (op.activation == Activation::none) return 1;
    if (op.activation == Activation::relu) return 0;
    const Doubles& slope = parameter(*op.slope);
    return slope.size() == 1 ? slope[0] : slope[c];
  }

  void forward(const BatchNorm& op) {
    const Shape& extent = shape(op.in);
    const NormStatistics batch = statistics_of(value(op.in), extent);
    for_each_element(extent, [&](auto n, auto c, auto y, auto x) {
      const std::size_t i = at(extent, n, c, y, x);
      const double normalized = (value(op.in)[i] - batch.mean[c]) / std::sqrt(batch.variance[c] + op.epsilon);
      double out = parameter(op.scale)[c] * normalized + parameter(op.bias)[c];
      if (op.residual) out += value(*op.residual)[i];
      value(op.out)[i] = out > 0 ? out : slope_below_zero(op, c) * out;
    });
    // With one element per channel there is no unbiased variance; the running value then takes the biased
    // one, 0.
    const double unbiased = batch.elements > 1 ? batch.elements / (batch.elements - 1) : 1;
    for (std::int64_t c = 0; c < extent.c; ++c) {
      double& mean = result_.statistics[op.running_mean][c];
      double& variance = result_.statistics[op.running_variance][c];
      mean = (1 - op.momentum) * mean + op.momentum * batch.mean[c];
      variance = (1 - op.momentum) * variance + op.momentum * unbiased * batch.variance[c];
    }
  }

  // With y = (x - mean) / s, s = sqrt(variance + epsilon), m elements per channel and g = d loss / d
  // (scale*y+bias): d scale = sum g*y, d bias = sum g, d x = scale / s * (g - sum g / m - y * sum(g*y) / m).
  void backward(const BatchNorm& op) {
    const Shape& extent = shape(op.in);
    const NormStatistics batch = statistics_of(value(op.in), extent);
    Doubles g = gradient(op.out);
    const auto normalized = [&](std::size_t i, std::int64_t c) {
      return (value(op.in)[i] - batch.mean[c]) / std::sqrt(batch.variance[c] + op.epsilon);
    };
    for_each_element(extent, [&](auto n, auto c, auto y, auto x) {
      const std::size_t i = at(extent, n, c, y, x);
      double activated = parameter(op.scale)[c] * normalized(i, c) + parameter(op.bias)[c];
      if (op.residual) activated += value(*op.residual)[i];
      if (activated > 0) return;
      if (op.slope) {
        Doubles& d_slope = parameter_gradient(*op.slope);
        d_slope[d_slope.size() == 1 ? 0 : c] += g[i] * activated;
      }
      g[i] *= slope_below_zero(op, c);
    });
    if (op.residual)
      for (std::size_t i = 0; i < g.size(); ++i) gradient(*op.residual)[i] += g[i];
    Doubles sum_g(extent.c), sum_gy(extent.c);
    for_each_element(extent, [&](auto n, auto c, auto y, auto x) {
      const std::size_t i = at(extent, n, c, y, x);
      sum_g[c] += g[i];
      sum_gy[c] += g[i] * normalized(i, c);
    });
    for_each_element(extent, [&](auto n, auto c, auto y, auto x) {
      const std::size_t i = at(extent, n, c, y, x);
      const double s = std::sqrt(batch.variance[c] + op.epsilon);
      gradient(op.in)[i] +=
          parameter(op.scale)[c] / s *
          (g[i] - sum_g[c] / batch.elements - normalized(i, c) * sum_gy[c] / batch.elements);
    });
    for (std::int64_t c = 0; c < extent.c; ++c) {
      parameter_gradient(op.scale)[c] += sum_gy[c];
      parameter_gradient(op.bias)[c] += sum_g[c];
    }
  }

  void forward(const Pool& op) {
    const Shape &in = shape(op.in), &out = shape(op.out);
    if (op.kind == Pool::Kind::max) {
      for_each_element(out, [&](auto n, auto c, auto y, auto x) {
        value(op.out)[at(out, n, c, y, x)] = value(op.in)[argmax(op, in, value(op.in), n, c, y, x)];
      });
    } else {
      for_each_element(in, [&](auto n, auto c, auto y, auto x) {
        value(op.out)[at(out, n, c, 0, 0)] += value(op.in)[at(in, n, c, y, x)] / (in.h * in.w);
      });
    }
  }

  void backward(const Pool& op) {
    const Shape &in = shape(op.in), &out = shape(op.out);
    if (op.kind == Pool::Kind::max) {
      for_each_element(out, [&](auto n, auto c, auto y, auto x) {
        gradient(op.in)[argmax(op, in, value(op.in), n, c, y, x)] += gradient(op.out)[at(out, n, c, y, x)];
      });
    } else {
      for_each_element(in, [&](auto n, auto c, auto y, auto x) {
        gradient(op.in)[at(in, n, c, y, x)] += gradient(op.out)[at(out, n, c, 0, 0)] / (in.h * in.w);
      });
    }
  }

  std::int64_t inputs_of(const Dense& op) const { return shape(op.in).elements() / shape(op.in).n; }
  // An image's elements are in c, h, w order, like the weights.
  void forward(const Dense& op) {
    const std::int64_t inputs = inputs_of(op), outputs = shape(op.out).c;
    for (std::int64_t n = 0; n < shape(op.in).n; ++n)
      for (std::int64_t o = 0; o < outputs; ++o) {
        double sum = parameter(op.bias)[o];
        for (std::int64_t i = 0; i < inputs; ++i)
          sum += value(op.in)[n * inputs + i] * parameter(op.weight)[o * inputs + i];
        value(op.out)[n * outputs + o] = sum;
      }
  }

  void backward(const Dense& op) {
    const std::int64_t inputs = inputs_of(op), outputs = shape(op.out).c;
    for (std::int64_t n = 0; n < shape(op.in).n; ++n)
      for (std::int64_t o = 0; o < outputs; ++o) {
        const double g = gradient(op.out)[n * outputs + o];
        parameter_gradient(op.bias)[o] += g;
        for (std::int64_t i = 0; i < inputs; ++i) {
          parameter_gradient(op.weight)[o * inputs + i] += g * value(op.in)[n * inputs + i];
          gradient(op.in)[n * inputs + i] += g * parameter(op.weight)[o * inputs + i];
        }
      }
  }

  double dropout_factor(const Dropout& op, std::int64_t image, std::int64_t element) const {
    const DropoutRule rule = dropout_rule(op.seed, op.name, op.probability);
    const PhiloxBlock bits = dropout_bits(rule.key, position_.iteration,
                                          position_.first_sample + static_cast<std::uint64_t>(image),
                                          static_cast<std::uint32_t>(element / 4));
    return bits[static_cast<std::size_t>(element % 4)] < rule.threshold ? 0 : 1 / (1 - op.probability);
  }
  void spread_dropout(const Dropout& op, const Doubles& from, Doubles& into) {
    const std::int64_t per_image = shape(op.in).elements() / shape(op.in).n;
    for (std::int64_t i = 0; i < shape(op.in).elements(); ++i)
      into[i] += dropout_factor(op, i / per_image, i % per_image) * from[i];
  }
  void forward(const Dropout& op) { spread_dropout(op, value(op.in), value(op.out)); }
  void backward(const Dropout& op) { spread_dropout(op, gradient(op.out), gradient(op.in)); }

  // Loss and logits' gradient (p - q) / batch together, because the loss is the last operation.
  void forward(const SoftmaxLoss& op) {
    const std::int64_t batch = shape(op.in).n, classes = shape(op.in).c;
    for (std::int64_t n = 0; n < batch; ++n) {
      const double* logits = value(op.in).data() + n * classes;
      const double largest = *std::max_element(logits, logits + classes);
      double sum = 0;
      for (std::int64_t k = 0; k < classes; ++k) sum += std::exp(logits[k] - largest);
      int better = 0;
      for (std::int64_t k = 0; k < classes; ++k) {
        const double log_p = logits[k] - largest - std::log(sum);
        const double q = op.label_smoothing / classes + (k == labels_[n] ? 1 - op.label_smoothing : 0);
        result_.loss -= q * log_p / batch;
        gradient(op.in)[n * classes + k] += (std::exp(log_p) - q) / batch;
        better += logits[k] > logits[labels_[n]];
      }
      result_.top1 += better < 1;
      result_.top5 += better < 5;
    }
  }
  void backward(const SoftmaxLoss&) {}

  void forward(const MarginLoss& op) { throw std::logic_error("no reference pass through " + op.name); }
  void backward(const MarginLoss& op) { throw std::logic_error("no reference pass through " + op.name); }

  const Graph& graph_;
  const ReferenceState& state_;
  std::span<const std::int64_t> labels_;
  ReferencePosition position_;
  ReferencePass result_;
};

}  // namespace

ReferencePass reference_pass(const Graph& graph, const ReferenceState& state, std::span<const double> images,
                             std::span<const std::int64_t> labels, ReferencePosition position) {
  return Interpreter(graph, state, labels, position).run(images);
}

void reference_update(const Graph& graph, const UpdateRule& rule, double learning_rate, double gradient_scale,
                      const std::vector<Doubles>& gradients, ReferenceState& state) {
  for (std::size_t p = 0; p < graph.parameters.size(); ++p) {
    if (!graph.parameters[p].trained) continue;
    const double decay = graph.parameters[p].decays ? rule.weight_decay : 0;
    for (std::size_t i = 0; i < gradients[p].size(); ++i) {
      double &w = state.parameters[p][i], &v = state.momenta[p][i];
      const double g = gradient_scale * gradients[p][i] + decay * w;
      v = rule.momentum * v + g;
      w -= learning_rate * (rule.optimizer == Optimizer::nag ? g + rule.momentum * v : v);
    }
  }
}

ReferenceTraining reference_train(const Graph& graph, ReferenceState state, std::span<const double> images,
                                  std::span<const std::int64_t> labels, const UpdateRule& rule,
                                  double learning_rate, int iterations, std::uint64_t first_sample) {
  ReferenceTraining training;
  for (int i = 0; i < iterations; ++i) {
    ReferencePass pass =
        reference_pass(graph, state, images, labels,
                       {.iteration = static_cast<std::uint64_t>(i), .first_sample = first_sample});
    state.statistics = pass.statistics;
    reference_update(graph, rule, learning_rate, 1, pass.parameter_gradients, state);
    training.passes.push_back(std::move(pass));
  }
  training.end = std::move(state);
  return training;
}

}  // namespace plumb
