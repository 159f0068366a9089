// Who answers for which step.
#include <stdexcept>

#include "kernels/cuda/binding.h"
#include "kernels/cuda/depthwise_shape.h"

namespace plumb::cuda {

namespace {

constexpr const char* kOwnKernels = "plumbline";

Finish prepare_by_kind(Context& context, Step& step) {
  switch (step.kind) {
    case StepKind::conv_forward:
    case StepKind::conv_backward_data:
    case StepKind::conv_backward_weights:
    case StepKind::conv_norm_backward_data:
      return is_depthwise(context.graph, std::get<Conv>(context.graph.ops[step.op]))
                 ? prepare_depthwise(context, step)
                 : prepare_conv(context, step);
    case StepKind::norm_statistics:
    case StepKind::norm_finalize:
    case StepKind::norm_apply:
    case StepKind::norm_backward:
    case StepKind::norm_backward_apply:
      return prepare_norm(context, step);
    case StepKind::pool_forward:
    case StepKind::pool_backward:
      return prepare_pool(context, step);
    case StepKind::dense_forward:
    case StepKind::dense_backward_data:
    case StepKind::dense_backward_weights:
      return prepare_dense(context, step);
    case StepKind::dropout_forward:
    case StepKind::dropout_backward:
      return prepare_dropout(context, step);
    case StepKind::softmax_loss:
      return prepare_softmax_loss(context, step);
    case StepKind::margin_features:
    case StepKind::margin_sample:
    case StepKind::margin_gather:
    case StepKind::margin_class_norms:
    case StepKind::margin_products:
    case StepKind::margin_statistics:
    case StepKind::margin_rescale:
    case StepKind::margin_gradient:
    case StepKind::margin_feature_products:
    case StepKind::margin_weight_gradient:
    case StepKind::margin_features_backward:
      return prepare_margin_loss(context, step);
    case StepKind::pack_batch:
    case StepKind::accumulate:
    case StepKind::cast:
      return prepare_elementwise(context, step);
    case StepKind::find_overflow:
    case StepKind::update:
    case StepKind::advance_state:
      return prepare_update(context, step);
    case StepKind::update_rows:
      return prepare_update_rows(context, step);
    case StepKind::load_batch:
    case StepKind::reduce:
      return {};  // the runner's and the communicator's
    default:
      throw std::logic_error("the cuda device has no answer for step " + step.name);
  }
}

}  // namespace

Finish prepare_step(Context& context, Step& step) {
  Finish finish = prepare_by_kind(context, step);
  if (finish && step.engine.empty()) step.engine = kOwnKernels;
  return finish;
}

}  // namespace plumb::cuda
