// The instructions of a margin loss, shared by all devices. Each rank multiplies all ranks' features with its
// own class centers; the feature gradients are summed over ranks.
//
// With more than one rank in the head, collectives run in the order of PLSC's distributed FC and
// InsightFace's Partial FC: features, labels, row maxima, row sums (together with the target logits),
// feature gradients. `products` holds x^ w, the cosine times the center's norm; backward overwrites it with
// its gradient:
//   logit_ij = scale * products_ij * class_inverse_norms_j           (with margin if j is i's label)
//   products_ij := (p_ij - [j = y_i]) / batch * scale * factor_ij * class_inverse_norms_j * loss scale
// `batch` is that of one rank: the update divides by the number of ranks (StepState::gradient_scale), as for
// every other gradient.
// Unused rows of a sample and their inverse norms are 0 from margin_gather on. The softmax skips them, and
// their gradient is 0.
#pragma once

#include <cstddef>
#include <optional>

#include "kernels/program/lowering.h"
#include "models/graph.h"

namespace plumb {

// N: images of all ranks in the head's batch (world_size * n); C: own classes, or the capacity of the sample.
struct MarginBuffers {
  BufferId normalized_all = 0;  // f32 [N, E]: x / |x| of all ranks
  BufferId normalized = 0;      // [n, E]: this rank's part, a view; with one rank normalized_all itself
  BufferId labels_all = 0;      // i32 [N]
  BufferId inverse_norms = 0;   // f32 [n]: 1 / |x|
  BufferId rows = 0;            // [C, E]: weight, its copy in half precision, or the sampled rows
  // i32 [N]: column of each image's label. Unsampled: labels_all (subtract first_class). Sampled: its index
  // in the sample, -1 if the class belongs to another rank.
  BufferId columns = 0;
  std::optional<BufferId> samples;       // i32 [C]: weight row of each sampled row; -1: unused
  std::optional<BufferId> sample_count;  // i32 [1]: number of rows in use
  BufferId class_inverse_norms = 0;      // f32 [C]: 1 / |w|
  BufferId products = 0;                 // [N, C] in the dtype of rows
  BufferId local_max = 0, row_max = 0;   // f32 [N]: largest logit of a row on this rank, on all ranks
  BufferId row_sums = 0;       // f32 [2, N]: sum of exp(logit - max); target logit, 0 if on another rank
  BufferId target_factor = 0;  // f32 [N]: d target cosine with margin / d cosine, 0 without the target
  BufferId d_rows = 0;         // [C, E]: gradient of weight, or of the sampled rows
};

// Adds the forward instructions of the MarginLoss Graph::ops[op]. `features`: f32 [n, E]. Rows have the
// operation's dtype; a sample's are gathered from the fp32 master. Adds collectives if world_size > 1. With
// sampling ParameterBuffers::gradient becomes the sharded gradient of the rows, [C, E]; the device's describe
// adds UpdateRows.
MarginBuffers lower_margin_forward(Lowering& lowering, std::size_t op, BufferId features);
// Adds the backward instructions. Returns the feature gradient, f32 [n, E]; its reduction overlaps with
// computing the centers' gradient.
BufferId lower_margin_backward(Lowering& lowering, std::size_t op, const MarginBuffers& buffers);

}  // namespace plumb
