// Pools, dense layers, dropout and the softmax loss.
#include <algorithm>
#include <limits>

#include "models/dropout.h"
#include "tests/conformance/reference_loops.h"
#include "tests/conformance/reference_run.h"

namespace plumb {
namespace {

constexpr double kNoWinner = 255;  // kernels/cuda/own/layers.h
constexpr double kAnything = std::numeric_limits<double>::infinity();

// The place in its window of element `index` of `in`.
std::size_t place_of(const Pool& op, const Shape& in, std::size_t index, std::int64_t y, std::int64_t x) {
  const auto width = static_cast<std::size_t>(in.w), pixel = index % static_cast<std::size_t>(in.h * in.w);
  const std::int64_t row = static_cast<std::int64_t>(pixel / width) - (y * op.stride - op.padding);
  const std::int64_t column = static_cast<std::int64_t>(pixel % width) - (x * op.stride - op.padding);
  return static_cast<std::size_t>(row * op.kernel + column);
}

}  // namespace

void Run::of(const PoolForward& pool) {
  const Pool& op = this->op<Pool>();
  const Shape &from = shape(op.in), &to = shape(op.out);
  const auto outputs = static_cast<std::size_t>(to.elements());
  if (op.kind == Pool::Kind::global_average) {
    Sums out(outputs);
    for_each_element(from, [&](auto n, auto c, auto y, auto x) {
      out.add(at(to, n, c, 0, 0), in(pool.in)[at(from, n, c, y, x)] / static_cast<double>(from.h * from.w));
    });
    return expect(pool.out, std::move(out).expected());
  }
  Doubles values = pool.scale_shift ? on_line(in(pool.in), in(*pool.scale_shift), from) : in(pool.in);
  if (pool.scale_shift)
    for (double& value : values) value = std::max(value, 0.0);
  Expected out{Doubles(outputs), Doubles(outputs)}, places = out, winners = out;
  std::vector<std::size_t>& chosen = reference_.winners_[instruction_.op];
  chosen.assign(outputs, 0);
  for_each_element(to, [&](auto n, auto c, auto y, auto x) {
    const std::size_t window = at(to, n, c, y, x), winner = argmax(op, from, values, n, c, y, x);
    const bool held_back = pool.scale_shift && values[winner] == 0;  // which one won makes no difference
    chosen[window] = winner;
    out.values[window] = values[winner];
    out.slack[window] = pool.scale_shift ? 8 * 0x1p-24 * (std::abs(values[winner]) + 4) : 0;
    places.values[window] =
        held_back && pool.winners ? kNoWinner : static_cast<double>(place_of(op, from, winner, y, x));
    places.slack[window] = held_back && !pool.winners ? kAnything : 0;
    winners.values[window] = in(pool.in)[winner];
    winners.slack[window] = held_back ? kAnything : 0;
  });
  expect(pool.out, std::move(out));
  if (pool.winners) expect(*pool.winners, std::move(winners));
  if (!on_gpu()) {  // oneDNN's workspace
    const std::size_t bytes = made(*pool.argmax).size();
    places = {Doubles(bytes), Doubles(bytes, kAnything)};
  }
  expect(*pool.argmax, std::move(places));
}

void Run::of(const PoolBackward& pool) {
  const Pool& op = this->op<Pool>();
  const Shape &from = shape(op.in), &to = shape(op.out);
  const Doubles& d_out = in(pool.d_out);
  Sums d_in(static_cast<std::size_t>(from.elements()));
  if (op.kind == Pool::Kind::global_average) {
    for_each_element(from, [&](auto n, auto c, auto y, auto x) {
      d_in.add(at(from, n, c, y, x), d_out[at(to, n, c, 0, 0)] / static_cast<double>(from.h * from.w));
    });
  } else {
    for_each_element(to, [&](auto n, auto c, auto y, auto x) {
      const std::size_t window = at(to, n, c, y, x);
      d_in.add(reference_.winners_.at(instruction_.op)[window], d_out[window]);
    });
  }
  // oneDNN adds up windows in bf16.
  expect(pool.d_in, std::move(d_in).expected(on_gpu() ? kSumUnits : kSumUnits + 2 * roundoff(pool.d_in)));
}

void Run::of(const DenseForward& dense) {
  const Dense& op = this->op<Dense>();
  const auto rows = static_cast<std::size_t>(shape(op.in).n),
             columns = static_cast<std::size_t>(shape(op.out).c), inner = in(dense.in).size() / rows;
  Sums out(rows * columns);
  for (std::size_t i = 0; i < rows * columns; ++i) {
    for (std::size_t k = 0; k < inner; ++k)
      out.add(i, in(dense.in)[i / columns * inner + k] * in(dense.weight)[i % columns * inner + k]);
    out.add(i, in(dense.bias)[i % columns]);
  }
  expect(dense.out, std::move(out).expected(product_units(inner) +
                                            (dtype(dense.out) == DType::f32 ? 0 : roundoff(dense.out))));
}

void Run::of(const DenseBackwardData& dense) {
  const auto rows = static_cast<std::size_t>(shape(op<Dense>().in).n);
  const std::size_t columns = in(dense.d_out).size() / rows, inner = in(dense.weight).size() / columns;
  Sums d_in(rows * inner);
  for (std::size_t n = 0; n < rows; ++n)
    for (std::size_t o = 0; o < columns; ++o)
      for (std::size_t k = 0; k < inner; ++k)
        d_in.add(n * inner + k, in(dense.d_out)[n * columns + o] * in(dense.weight)[o * inner + k]);
  expect(dense.d_in, std::move(d_in).expected(product_units(columns)));
}

void Run::of(const DenseBackwardWeights& dense) {
  const auto rows = static_cast<std::size_t>(shape(op<Dense>().in).n);
  const std::size_t columns = in(dense.d_out).size() / rows, inner = in(dense.in).size() / rows;
  Sums d_weight(columns * inner), d_bias(columns);
  for (std::size_t n = 0; n < rows; ++n)
    for (std::size_t o = 0; o < columns; ++o) {
      d_bias.add(o, in(dense.d_out)[n * columns + o]);
      for (std::size_t k = 0; k < inner; ++k)
        d_weight.add(o * inner + k, in(dense.d_out)[n * columns + o] * in(dense.in)[n * inner + k]);
    }
  expect(dense.d_weight, std::move(d_weight).expected(product_units(rows)));
  expect(dense.d_bias, std::move(d_bias).expected(product_units(rows)));
}

void Run::drop(BufferId from, BufferId into) {
  const Dropout& op = this->op<Dropout>();
  const DropoutRule rule = dropout_rule(op.seed, op.name, op.probability);
  const auto per_image = static_cast<std::size_t>(shape(op.in).elements() / shape(op.in).n);
  Sums out(in(from).size());
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    const std::size_t element = i % per_image;
    const PhiloxBlock bits = dropout_bits(rule.key, state_.iteration, state_.first_sample + i / per_image,
                                          static_cast<std::uint32_t>(element / 4));
    if (bits[element % 4] >= rule.threshold) out.add(i, in(from)[i] / (1 - op.probability));
  }
  expect(into, std::move(out).expected(4 * 0x1p-24));
}

// (p - q) / batch * loss scale, and the loss of the reference in metrics().
void Run::of(const SoftmaxCrossEntropy& loss) {
  const SoftmaxLoss& op = this->op<SoftmaxLoss>();
  const auto batch = static_cast<std::size_t>(shape(op.in).n),
             classes = static_cast<std::size_t>(shape(op.in).c);
  Expected d_logits{Doubles(batch * classes), Doubles(batch * classes)};
  IterationMetrics metrics;
  for (std::size_t n = 0; n < batch; ++n) {
    const double* logits = &in(loss.logits)[n * classes];
    const auto label = static_cast<std::size_t>(in(loss.labels)[n]);
    const double largest = *std::max_element(logits, logits + classes);
    double sum = 0;
    for (std::size_t k = 0; k < classes; ++k) sum += std::exp(logits[k] - largest);
    int better = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      const double log_p = logits[k] - largest - std::log(sum), p = std::exp(log_p);
      const double q =
          op.label_smoothing / static_cast<double>(classes) + (k == label ? 1 - op.label_smoothing : 0);
      const double factor = state_.loss_scale / static_cast<double>(batch);
      metrics.loss -= q * log_p / static_cast<double>(batch);
      d_logits.values[n * classes + k] = (p - q) * factor;
      d_logits.slack[n * classes + k] = 16 * 0x1p-24 * factor * (p * (1 + std::abs(log_p)) + q);
      better += logits[k] > logits[label];
    }
    metrics.top1 += better < 1;
    metrics.top5 += better < 5;
  }
  expect(loss.d_logits, std::move(d_logits));
  reference_.metrics_ = metrics;
}

}  // namespace plumb
