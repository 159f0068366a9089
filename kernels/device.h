// A device that can hold a Program's memory and run its steps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/describe.h"
#include "kernels/memory_plan.h"
#include "kernels/program.h"
#include "kernels/targets.h"
#include "models/graph.h"

namespace plumb {

enum class DeviceChoice { automatic, cpu, cuda };

struct DeviceOptions {
  DeviceChoice choice = DeviceChoice::automatic;
  int threads = 0;     // cpu: 0 means all CPUs of the affinity mask
  int local_rank = 0;  // cuda: which GPU
};

// Hyper-parameters of the update, the same at every iteration.
struct UpdateRule {
  Optimizer optimizer = Optimizer::sgd;
  double momentum = 0.875;
  double weight_decay = 3.0517578125e-5;  // applied to parameters with Parameter::decays
};

// What changes from iteration to iteration; lives in device memory, and the last step advances it.
struct StepState {
  std::uint64_t iteration = 0;  // of the step that is running, from 0
  float learning_rate = 0;
  float gradient_scale = 1;  // the update multiplies gradients by it: 1 / world size (collectives sum)
};

// What one iteration reports, over the images of this rank.
struct IterationMetrics {
  double loss = 0;  // mean over the batch
  int top1 = 0;     // images whose label has the largest logit
  int top5 = 0;     // … one of the five largest
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceLimits& limits() const = 0;
  virtual std::string description() const = 0;  // one line for people: model, threads or driver

  // First half of binding: chooses implementations and layouts, and raises the bytes of buffers and
  // workspaces to what they really take. Allocates nothing that a plan accounts for.
  virtual void prepare(const Graph& graph, const UpdateRule& rule, Program& program) = 0;
  // Second half: takes the arena and gives every compute step its callable. Throws Error(out_of_memory).
  virtual void bind(Program& program, const MemoryPlan& plan) = 0;

  // Whole tensors across the border, in the public dims (row-major fp32). A parameter (Graph::parameters[p])
  // goes to its master and to every copy that the device keeps of it.
  virtual void write_parameter(ParameterId parameter, std::span<const float> values) = 0;
  virtual void read_parameter(ParameterId parameter, std::span<float> values) const = 0;
  virtual void read_gradient(ParameterId parameter, std::span<float> values) const = 0;
  virtual void write_statistic(StatisticId statistic, std::span<const float> values) = 0;
  virtual void read_statistic(StatisticId statistic, std::span<float> values) const = 0;
  // images: [n, 3, h, w] fp32, normalised; labels: [n].
  virtual void write_batch(std::span<const float> images, std::span<const std::int64_t> labels) = 0;

  virtual void write_state(const StepState& state) = 0;
  // Of iterations that have ended; the device keeps the last `kMetricsKept`.
  static constexpr std::uint64_t kMetricsKept = 1024;
  virtual IterationMetrics metrics(std::uint64_t iteration) const = 0;

  // First byte of a buffer in the arena, for collectives.
  virtual std::byte* data(BufferId buffer) = 0;
  // Most bytes that the process has held so far (cpu: peak resident set; cuda: of the driver's count).
  virtual std::size_t peak_bytes() const = 0;
};

// "automatic": cuda if a GPU answers, else cpu. Throws Error(unavailable) with what was looked for and found.
std::unique_ptr<Device> make_device(const DeviceOptions& options);
namespace cpu {
std::unique_ptr<Device> make_device(const DeviceOptions& options);
}  // namespace cpu
namespace cuda {
std::unique_ptr<Device> make_device(const DeviceOptions& options);
}  // namespace cuda

}  // namespace plumb
