#include "tests/conformance/hand_made.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/random.h"
#include "kernels/cpu/state.h"
#include "kernels/cuda/plan/state.h"
#include "kernels/program/lowering.h"
#include "tests/conformance/reference_run.h"

namespace plumb {
namespace {

constexpr std::size_t kStateBytes = std::max(sizeof(cpu::State), sizeof(cuda::State));

}  // namespace

HandMade::HandMade(Graph of) : graph(std::move(of)) {
  if (graph.values.empty()) graph.values.push_back({"images", {1, 1, 1, 1}});
  program.tensors.values.resize(graph.values.size(), kNone);
  program.tensors.values[0] = add(DType::f32, nchw(graph.values[0].shape));
  program.tensors.labels = add(DType::i32, {graph.values[0].shape.n});
  program.tensors.state = add(DType::u8, {static_cast<std::int64_t>(kStateBytes)});
  program.tensors.parameters.resize(graph.parameters.size());
}

BufferId HandMade::add(DType dtype, std::vector<std::int64_t> dims, bool persistent) {
  return add_buffer(program, {.name = "buffer" + std::to_string(program.buffers.size()),
                              .dtype = dtype,
                              .dims = std::move(dims),
                              .persistent = persistent});
}

InstructionId HandMade::add(Operation operation, std::size_t op) {
  program.instructions.push_back({.name = "instruction" + std::to_string(program.instructions.size()),
                                  .operation = std::move(operation),
                                  .op = op});
  return program.instructions.size() - 1;
}

BufferId HandMade::add(DType dtype, std::vector<std::int64_t> dims, Doubles values) {
  const BufferId id = add(dtype, std::move(dims));
  write(id, std::move(values));
  return id;
}

BufferId HandMade::add_normal(DType dtype, std::vector<std::int64_t> dims, std::uint64_t seed,
                              double deviation, double mean) {
  std::size_t count = 1;
  for (const std::int64_t dim : dims) count *= static_cast<std::size_t>(dim);
  Doubles values = normal_values(dtype, count, seed);
  for (double& value : values) value = rounded(dtype, mean + deviation * value);
  return add(dtype, std::move(dims), std::move(values));
}

std::unique_ptr<CheckedProgram> HandMade::start(Device& device) const {
  auto checked = std::make_unique<CheckedProgram>(device, graph, rule, program);
  for (const auto& [id, values] : written_) checked->write(id, values);
  return checked;
}

Doubles normal_values(DType dtype, std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  fill_normal(stream_key(seed, "test"), 0, 1, values);
  Doubles result(values.begin(), values.end());
  for (double& value : result) value = rounded(dtype, value);
  return result;
}

}  // namespace plumb
