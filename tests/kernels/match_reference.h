// Runs one Graph on the CPU device and in the reference interpreter, and compares all that training leaves.
#pragma once

#include "models/graph.h"
#include "tests/kernels/graph_builder.h"
#include "tests/kernels/run_graph.h"

namespace plumb {

// Compares losses, top-1 and top-5 of every iteration, gradients of the first, parameters and statistics of
// the last. An element may be off by 2e-5 of its tensor's largest magnitude plus 2e-6. Why that much: fp32
// rounds at 6e-8; a sum of k = 10..1000 products in another order is off by about sqrt(k) of that (2e-6 of
// the largest summand), a norm multiplies errors by |mean| / deviation and passes them on, and a test has up
// to a dozen operations in a row, forward and backward. Absolute: gradients that are sums of larger terms
// which cancel (all that lies in front of a norm). A wrong formula, index or layout is off by the size of the
// tensor itself.
void expect_cpu_matches_reference(const Graph& graph, const TestTensors& tensors,
                                  const GraphRunOptions& options = {});
// … on random tensors.
void expect_cpu_matches_reference(const Graph& graph, const GraphRunOptions& options = {});

}  // namespace plumb
