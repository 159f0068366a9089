// Softmax cross-entropy with label smoothing, its gradient, and top-1 and top-5 counts. Loss of a row:
// log(sum exp z) - (1 - s) z_y - s / K sum z; gradient (p - q) / n with q = (1 - s) onehot + s / K
// (Szegedy et al. 2016, arXiv:1512.00567, section 7).
#include <algorithm>
#include <cmath>

#include "kernels/cpu/binding.h"
#include "kernels/cpu/element_types.h"

namespace plumb::cpu {
namespace {

struct Row {
  double loss = 0;
  int rank_of_label = 0;  // number of logits larger than the label's
};

// One image: `classes` logits and gradients. Sums in double.
template <typename T>
Row softmax_row(const float* logits, T* gradient, std::size_t classes, std::int32_t label, float smoothing,
                float inverse_batch) {
  const float largest = *std::max_element(logits, logits + classes);
  double sum = 0, logit_sum = 0;
  Row row;
  for (std::size_t k = 0; k < classes; ++k) {
    sum += std::exp(logits[k] - largest);
    logit_sum += logits[k];
    row.rank_of_label += logits[k] > logits[label] ? 1 : 0;
  }
  const double log_sum = static_cast<double>(largest) + std::log(sum);
  row.loss =
      log_sum - (1.0 - smoothing) * logits[label] - smoothing * logit_sum / static_cast<double>(classes);
  const auto scale = static_cast<float>(inverse_batch / sum);
  const float everywhere = smoothing / static_cast<float>(classes) * inverse_batch;
  const auto wanted = static_cast<std::size_t>(label);
  for (std::size_t k = 0; k < classes; ++k) {
    const float slope = std::exp(logits[k] - largest) * scale - everywhere;
    gradient[k] = from_float<T>(k == wanted ? slope - (1 - smoothing) * inverse_batch : slope);
  }
  return row;
}

template <typename T>
IterationMetrics softmax_loss(const float* logits, const std::int32_t* labels, T* gradient, std::size_t batch,
                              std::size_t classes, float smoothing) {
  double loss = 0;
  int top1 = 0, top5 = 0;
  const float inverse_batch = 1 / static_cast<float>(batch);
  // Serial, since rows are few and short: the order of the sum doesn't depend on the number of threads.
  for (std::size_t n = 0; n < batch; ++n) {
    const Row row = softmax_row(logits + n * classes, gradient + n * classes, classes, labels[n], smoothing,
                                inverse_batch);
    loss += row.loss;
    top1 += row.rank_of_label < 1 ? 1 : 0;
    top5 += row.rank_of_label < 5 ? 1 : 0;
  }
  return {.loss = loss / static_cast<double>(batch), .top1 = top1, .top5 = top5};
}

}  // namespace

Binder prepare(Context& context, Instruction& instruction, const SoftmaxCrossEntropy& loss) {
  const SoftmaxLoss& op = context.op<SoftmaxLoss>(instruction);
  const Shape& shape = context.graph.values[op.in].shape;
  const DType dtype = context.dtype(loss.d_logits);
  context.settle(loss.logits, plain_layout({shape.n, shape.c}));
  context.settle(loss.d_logits, plain_layout({shape.n, shape.c}, dtype));
  return with_type_of(dtype, [&]<typename T>(T) {
    return bind_loop([=, batch = static_cast<std::size_t>(shape.n),
                      classes = static_cast<std::size_t>(shape.c),
                      smoothing = static_cast<float>(op.label_smoothing)](const Arena& at) {
      State& state = *at.as<State>(loss.state);
      state.metrics[state.step.iteration % kMetricsKept] =
          softmax_loss(at.as(loss.logits), at.as<std::int32_t>(loss.labels), at.as<T>(loss.d_logits), batch,
                       classes, smoothing);
    });
  });
}

}  // namespace plumb::cpu
