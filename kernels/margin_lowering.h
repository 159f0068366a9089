// The steps of a margin loss, the same for every device: how features and labels of all ranks meet the class
// centres of each, and how the gradients come back.
//
// With more than one rank in the head: order of collectives as PLSC's distributed FC and InsightFace's
// Partial FC have it: features, labels, row maxima, row sums (with the targets' logits beside them),
// gradients of features. `products` holds cosines times norms of the centres, x^ w, once, and what flows back
// takes its place:
//   logit_ij = scale * products_ij * class_inverse_norms_j           (its margin where j is i's label)
//   products_ij := (p_ij - [j = y_i]) / batch * scale * factor_ij * class_inverse_norms_j * loss scale
// Divided by the batch of one rank: updates divide by the number of ranks (StepState::gradient_scale), as
// they do for every other gradient.
// Rows of a sample that are not in use are zeros from margin_gather on, and so are their inverse norms; they
// have no part in the softmax, and what flows back to them is 0.
#pragma once

#include <cstddef>
#include <optional>

#include "kernels/lowering.h"
#include "models/graph.h"

namespace plumb {

// N: images of all ranks in the head's batch (world_size * n); C: own classes, or the capacity of the sample.
struct MarginBuffers {
  BufferId normalized_all = 0;  // f32 [N, E]: x / |x| of all ranks; this rank's part:
  BufferId normalized = 0;      // [n, E], a view unless there is one rank
  BufferId labels_all = 0;      // i32 [N]
  BufferId inverse_norms = 0;   // f32 [n]: 1 / |x|
  BufferId rows = 0;            // [C, E]: weight, its copy in half precision, or the sampled rows
  // i32 [N]: which column is an image's label: labels_all (from which first_class is to be taken), or, of a
  // sample, its place there, -1 if another rank has it.
  BufferId columns = 0;
  std::optional<BufferId> samples;       // i32 [C]: row of weight for each sampled row, -1: none
  std::optional<BufferId> sample_count;  // i32 [1]: how many rows are in use; the others stand for nothing
  BufferId class_inverse_norms = 0;      // f32 [C]: 1 / |w|
  BufferId products = 0;                 // [N, C] in the dtype of rows
  BufferId local_max = 0, row_max = 0;   // f32 [N]: largest logit of a row on this rank, and on all
  BufferId row_sums = 0;  // f32 [2, N]: sum of exp(logit - max), and the target's logit, 0 where it isn't
  BufferId target_factor = 0;  // f32 [N]: d target cosine with margin / d cosine, 0 where it isn't
  BufferId d_rows = 0;         // [C, E]: gradient of weight, or of the sampled rows
};

// Adds the steps from features to the loss (`features` f32 [n, E]) or from there back; `op` is the index of
// the MarginLoss in the Graph. `weight`: what forward reads of the class centres (f32, f16 or bf16), ignored
// where they are sampled, which reads the master and makes rows in `rows_dtype`. Collectives are there where
// world_size > 1. Of sampled centres ParameterBuffers::gradient becomes that of the rows, [C, E] in
// `rows_dtype`, and sharded; update_rows is the device's describe's to add.
MarginBuffers lower_margin_forward(Lowering& lowering, std::size_t op, BufferId features, BufferId weight,
                                   DType rows_dtype);
// Returns the gradient of the features, f32 [n, E]; the centres' gradient is made while its parts travel.
BufferId lower_margin_backward(Lowering& lowering, std::size_t op, const MarginBuffers& buffers);

}  // namespace plumb
