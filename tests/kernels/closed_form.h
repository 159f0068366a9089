// Weights, images and labels in closed form. tests/reference/closed_form.py computes the same numbers, so
// PyTorch's results can be compared without shipping weights.
#pragma once

#include <cstdint>

#include "models/graph.h"
#include "tests/kernels/graph_builder.h"

namespace plumb {

// Number `element` of the tensor at position `tensor` of the public order: in [-1, 1), 24 random bits,
// bit-identical everywhere. The finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom
// Number Generators, 2014) over both positions.
double closed_form_even(std::uint64_t tensor, std::uint64_t element);

// All tensors for a Graph of make_resnet50 or make_arcface. Convolutions have variance 2 / fan_out, dense
// layers and class centers the bound 1 / sqrt(fan_in); scales are 1, at a block's end 0.2; PReLU slopes are
// around 0.25. Norm biases are around 3, at a block's end around 0: that keeps ReLUs off their edge, where
// one rounding error changes gradients by a per cent.
TestTensors closed_form_tensors(const Graph& graph);

}  // namespace plumb
