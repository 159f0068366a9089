// A device that can hold a Program's memory and run its instructions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/program/describe.h"
#include "kernels/program/memory_plan.h"
#include "kernels/program/program.h"
#include "kernels/program/step_state.h"
#include "kernels/program/targets.h"
#include "kernels/program/tuning.h"
#include "models/graph.h"

namespace plumb {

enum class DeviceChoice { automatic, cpu, cuda };

struct DeviceOptions {
  DeviceChoice choice = DeviceChoice::automatic;
  int threads = 0;             // cpu: 0 means all CPUs of the affinity mask
  int local_rank = 0;          // cuda: which GPU, modulo the number of visible ones
  bool deterministic = false;  // cuda: only engines that sum in a fixed order
};

// Metrics of one iteration, over the images of this rank.
struct IterationMetrics {
  double loss = 0;  // mean over the batch
  int top1 = 0;     // images whose label has the largest logit
  int top5 = 0;     // images whose label is among the five largest; -1: not counted (margin loss)
  float loss_scale = 1;
  bool skipped = false;  // a gradient overflowed on some rank; no parameter changed
  // The compute lane's waits for collectives and for its batch; 0 where the host measures them.
  double exposed_seconds = 0, data_wait_seconds = 0;
};

// Begin and end of an instruction, in seconds since start_clock().
struct InstructionTime {
  InstructionId instruction = 0;
  double begin = 0, end = 0;
};

// Staging of device buffers through page-locked host memory.
class HostStaging {
 public:
  virtual ~HostStaging() = default;
  // Page-locked; freed with its last owner.
  virtual std::shared_ptr<std::byte> allocate_pinned(std::size_t bytes) = 0;
  // Enqueues on `lane`.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes, Lane lane) = 0;
  // The end of the work enqueued on `lane` so far, and whether that work has run; neither waits.
  virtual std::size_t mark(Lane lane) = 0;
  virtual bool reached(std::size_t mark) = 0;
};

// One iteration as one graph launch.
class StepCapture {
 public:
  virtual ~StepCapture() = default;
  // Records the work that `enqueue` puts on the compute and communication lanes without running it.
  virtual void capture(const std::function<void()>& enqueue) = 0;
  // Runs it. Host-side effects of `enqueue` are not replayed.
  virtual void replay() = 0;
  // Call before destroying a communicator that the capture uses, also while handling a failure.
  virtual void drop_capture() noexcept = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceLimits& limits() const = 0;
  virtual std::string description() const = 0;  // one line for people: model, threads or driver
  // The GPU's UUID as driver and NVML write it ("GPU-" and five groups of hex digits); empty on a CPU.
  virtual std::string unique_id() const { return {}; }

  // Finds the engines and fused patterns that train the Graph fastest. Call before prepare(): apply_tuning()
  // copies the result into Instruction::engine. Empty if the device has no choices. Throws Error(internal)
  // that names the engine if one makes the device unusable.
  virtual Tuning tune(const Graph& /*graph*/, const UpdateRule& /*rule*/, const DescribeOptions& /*options*/,
                      const TuningOptions& /*how*/) {
    return {};
  }
  // First half of binding: chooses implementations and layouts, and raises the bytes of buffers and
  // workspaces to their real sizes. Allocates no memory of the plan. Throws Error(internal) if a vendor
  // library has no engine for an instruction.
  virtual void prepare(const Graph& graph, const UpdateRule& rule, Program& program) = 0;
  // Second half: allocates the arena and gives every instruction its callable. Throws Error(out_of_memory).
  virtual void bind(Program& program, const MemoryPlan& plan) = 0;

  // Transfers of whole tensors between host and device, in the public dims (row-major fp32).

  // Sets the master of Graph::parameters[p] and all copies on the device.
  virtual void write_parameter(ParameterId parameter, std::span<const float> values) = 0;
  // The same for some rows of class centers, of which whole ones may not fit into host memory.
  virtual void write_rows(ParameterId parameter, std::int64_t first_row, std::span<const float> rows) = 0;
  virtual void read_parameter(ParameterId parameter, std::span<float> values) const = 0;
  // For trained parameters. With sampled class centers, rows outside the sample are 0.
  virtual void read_gradient(ParameterId parameter, std::span<float> values) const = 0;
  virtual void write_statistic(StatisticId statistic, std::span<const float> values) = 0;
  virtual void read_statistic(StatisticId statistic, std::span<float> values) const = 0;
  // Images of the batch of every step, from `first_image` on. images: [count, 3, h, w] fp32, normalized;
  // labels: [count].
  virtual void write_batch(std::int64_t first_image, std::span<const float> images,
                           std::span<const std::int64_t> labels) = 0;
  // The next step's batch, for a Program with load_batch. pixels: [n, h, w, 3], in the host's memory or the
  // device's; labels: [n]. A GPU may read both until the second call after this one has returned.
  virtual void stage_batch(std::span<const std::uint8_t> pixels, std::span<const std::int32_t> labels) = 0;
  virtual void write_state(const StepState& state) = 0;
  // `iteration` must have ended and be one of the last kMetricsKept.
  virtual IterationMetrics metrics(std::uint64_t iteration) const = 0;

  // Ordering between lanes. On an asynchronous device (cuda), callables, stage_batch() and collectives only
  // enqueue on their lane. The defaults are those of a synchronous device (cpu).

  // Marks `instruction` as done once everything enqueued on `lane` so far has run.
  virtual void signal(InstructionId /*instruction*/, Lane /*lane*/) {}
  // Work enqueued on `lane` after this call waits for `instruction`.
  virtual void wait(InstructionId /*instruction*/, Lane /*lane*/) {}
  // The lane's stream (cudaStream_t); null on a cpu.
  virtual void* queue(Lane /*lane*/) { return nullptr; }
  // Blocks the host until all lanes are idle.
  virtual void synchronize() {}

  // Seconds on the device's own clock.

  // Waits until all work has ended, then sets the clock to 0.
  virtual void start_clock() = 0;
  // Call once all work of an iteration is enqueued; the next iteration's work runs after it.
  virtual void end_iteration() = 0;
  // End, in seconds, of the oldest iteration not returned yet; nullopt if it is still running. Its metrics
  // are readable then. Doesn't wait.
  virtual std::optional<double> next_end() = 0;
  // For profiles and traces, outside captures: records the lane's time before or after an instruction.
  virtual void stamp(InstructionId instruction, Lane lane, bool after) = 0;
  // Times stamped since the last call, in stamping order. Waits for the device.
  virtual std::vector<InstructionTime> step_times() = 0;
  // Stamps the start or end of a wait of the compute lane (IterationMetrics). Works inside captures.
  virtual void stamp_wait(Wait /*what*/, bool /*after*/) {}

  // First byte of a buffer in the arena, for collectives.
  virtual std::byte* data(BufferId buffer) = 0;
  // Null if data() is host memory.
  virtual HostStaging* host_staging() { return nullptr; }
  // Null if the device can't capture an iteration.
  virtual StepCapture* step_capture() { return nullptr; }

  // The most bytes that the process has held so far (CPU: peak resident set; GPU: by the driver's count).
  virtual std::size_t peak_bytes() const = 0;
};

// "automatic": cuda if a GPU responds, else cpu. Throws Error(unavailable) listing the devices looked for and
// found. `why_not_cuda`, if not null, receives the reason why "automatic" chose the cpu.
std::unique_ptr<Device> make_device(const DeviceOptions& options, std::string* why_not_cuda = nullptr);
namespace cpu {
std::unique_ptr<Device> make_device(const DeviceOptions& options);
}  // namespace cpu
namespace cuda {
std::unique_ptr<Device> make_device(const DeviceOptions& options);
// Versions of CUDA's runtime, cuDNN and cuBLASLt: "cuDNN 9.19.0". Needs neither a GPU nor a driver; empty in
// a build without CUDA. Without `load` cuBLASLt is left out where no GPU is used.
std::vector<std::string> library_versions(bool load = false);
}  // namespace cuda

}  // namespace plumb
