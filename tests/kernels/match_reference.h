// Runs one Graph on the CPU device and in the reference interpreter, and compares all results of training.
#pragma once

#include "models/graph.h"
#include "tests/kernels/graph_builder.h"
#include "tests/kernels/run_graph.h"

namespace plumb {

// Compares losses, top-1 and top-5 of every iteration, gradients of the first, parameters and statistics of
// the last. Tolerance: 2e-5 of the tensor's largest magnitude plus 2e-6. fp32 rounds at 6e-8; a sum of k =
// 10..1000 products in another order is off by about sqrt(k) times that (2e-6 of the largest summand); a norm
// multiplies errors by |mean| / deviation and passes them on; and a test chains up to a dozen operations,
// forward and backward. The absolute part covers gradients that are sums of larger, cancelling terms
// (everything before a norm). bf16 rounds at 4e-3, so 3e-2 and 1e-3. A wrong formula, index or layout is off
// by the tensor's own magnitude.
void expect_cpu_matches_reference(const Graph& graph, const TestTensors& tensors,
                                  const GraphRunOptions& options = {});
// The same on random tensors.
void expect_cpu_matches_reference(const Graph& graph, const GraphRunOptions& options = {});

}  // namespace plumb
