// The operands of a batch norm's instructions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "tests/conformance/hand_made.h"

namespace plumb {

// A norm's tensors with their numbers; the instructions of a device over them.
class NormTensors {
 public:
  NormTensors(Device& device, const Shape& extent, DType dtype)
      : device_(device), extent_(extent), dtype_(dtype), made_(graph_of(extent)) {
    made_.program.tensors.values[1] = tensor(1, true);
    for (ParameterId p : {0, 1}) made_.program.tensors.parameters[p].master = channels(2 + p, p == 0 ? 1 : 0);
    for (const double initial : {0.25, 2.0}) {
      made_.program.tensors.statistics.push_back(
          made_.add(DType::f32, {extent.c}, Doubles(size(extent.c), initial)));
    }
    made_.program.tensors.parameters[2].master = channels(9, 0);
  }

  Program& program() { return made_.program; }
  BufferId in() const { return made_.program.tensors.values[1]; }
  BufferId scale() const { return made_.program.tensors.parameters[0].master; }
  BufferId bias() const { return made_.program.tensors.parameters[1].master; }
  const Shape& extent() const { return extent_; }
  DType dtype() const { return dtype_; }

  // Standard normal values; `spread`: channel c has mean 0.5 c - 1 and deviation 1 + c / 4 (c modulo 8).
  BufferId tensor(std::uint64_t seed, bool spread = false) {
    const BufferId id = unwritten_tensor();
    Doubles values = normal_values(dtype_, size(extent_.elements()), seed);
    if (spread)
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double c = static_cast<double>(i / size(extent_.h * extent_.w) % size(extent_.c) % 8);
        values[i] = values[i] * (1 + c / 4) + 0.5 * c - 1;
      }
    made_.write(id, std::move(values));
    return id;
  }
  BufferId unwritten_tensor() {
    return made_.add(dtype_, {extent_.n, extent_.c, extent_.h, extent_.w}, false);
  }
  BufferId channels(std::uint64_t seed, double around = 0, std::int64_t rows = 1, DType dtype = DType::f32) {
    const BufferId id = unwritten_channels(rows, dtype);
    Doubles values = normal_values(dtype, size(rows * extent_.c), seed);
    for (double& value : values) value += around;
    made_.write(id, std::move(values));
    return id;
  }
  BufferId unwritten_channels(std::int64_t rows = 1, DType dtype = DType::f32) {
    return rows == 1 ? made_.add(dtype, {extent_.c}, false) : made_.add(dtype, {rows, extent_.c}, false);
  }
  BufferId slopes(bool per_channel) {
    const BufferId id = made_.add(DType::f32, {per_channel ? extent_.c : 1}, false);
    made_.write(id, normal_values(DType::f32, per_channel ? size(extent_.c) : 1, 10));
    return id;
  }
  BufferId counters() { return made_.add(DType::i32, {4096}); }
  // A mask of pseudo-random bits.
  BufferId mask() {
    const BufferId id = unwritten_mask();
    Doubles bits((size(extent_.elements()) + 7) / 8);
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<double>((i * 2654435761U >> 7) % 256);
    made_.write(id, std::move(bits));
    return id;
  }
  BufferId unwritten_mask() { return made_.add(DType::u8, {(extent_.elements() + 7) / 8}, false); }
  void write(BufferId id, Doubles values) { made_.write(id, std::move(values)); }

  BatchNormMoments moments(DType scale_shift = DType::f32) {
    return {.scale = scale(),
            .bias = bias(),
            .running_mean = made_.program.tensors.statistics[0],
            .running_variance = made_.program.tensors.statistics[1],
            .scale_shift = unwritten_channels(2, scale_shift),
            .mean = unwritten_channels(),
            .inv_std = unwritten_channels()};
  }
  InstructionId add(Operation operation, Activation activation) {
    return made_.add(std::move(operation), activation == Activation::none   ? 0
                                           : activation == Activation::relu ? 1
                                                                            : 2);
  }
  // Checks every instruction, as often as a replayed step would meet the counters.
  void check(int times = 1) {
    const auto program = start();
    for (int i = 0; i < times; ++i)
      for (InstructionId id = 0; id < program->program().instructions.size(); ++id) program->check(id);
  }
  std::unique_ptr<CheckedProgram> start() const { return made_.start(device_); }

 private:
  static std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }
  static Graph graph_of(const Shape& extent) {
    Graph graph;
    graph.values = {{"images", {extent.n, 1, 1, 3}}, {"in", extent}};
    graph.parameters = {{.name = "scale", .dims = {extent.c}},
                        {.name = "bias", .dims = {extent.c}},
                        {.name = "slope", .dims = {extent.c}}};
    graph.statistics = {{"mean", extent.c}, {"variance", extent.c}};
    for (const Activation activation : {Activation::none, Activation::relu, Activation::prelu})
      graph.ops.push_back(BatchNorm{.name = "norm",
                                    .in = 1,
                                    .out = 1,
                                    .scale = 0,
                                    .bias = 1,
                                    .running_mean = 0,
                                    .running_variance = 1,
                                    .activation = activation,
                                    .momentum = 0.25});
    std::get<BatchNorm>(graph.ops[2]).slope = 2;
    return graph;
  }

  Device& device_;
  Shape extent_;
  DType dtype_;
  HandMade made_;
};

}  // namespace plumb
