// A device that can hold a Program's memory and run its steps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/describe.h"
#include "kernels/memory_plan.h"
#include "kernels/program.h"
#include "kernels/step_state.h"
#include "kernels/targets.h"
#include "kernels/tuning.h"
#include "models/graph.h"

namespace plumb {

enum class DeviceChoice { automatic, cpu, cuda };

struct DeviceOptions {
  DeviceChoice choice = DeviceChoice::automatic;
  int threads = 0;             // cpu: 0 means all CPUs of the affinity mask
  int local_rank = 0;          // cuda: which GPU, modulo the number of visible ones
  bool deterministic = false;  // cuda: only engines that sum in a fixed order
};

// What one iteration reports, over the images of this rank.
struct IterationMetrics {
  double loss = 0;  // mean over the batch
  int top1 = 0;     // images whose label has the largest logit
  int top5 = 0;     // … one of the five largest; -1: not counted (a margin loss)
  float loss_scale = 1;
  bool skipped = false;        // a gradient overflowed on some rank: no parameter changed
  double exposed_seconds = 0;  // that the compute lane waited for collectives; 0 where the host measures it
};

// When a step began and ended, in seconds since start_clock().
struct StepTime {
  StepId step = 0;
  double begin = 0, end = 0;
};

// In the sentence of an Error(internal) where a vendor's library computes no such step.
inline constexpr std::string_view kNoEngine = " has no engine for ";

// Whole tensors between host and device, in the public dims (row-major fp32).
class TensorAccess {
 public:
  virtual ~TensorAccess() = default;
  // A parameter (Graph::parameters[p]) goes to its master and to every copy that the device keeps of it.
  virtual void write_parameter(ParameterId parameter, std::span<const float> values) = 0;
  virtual void read_parameter(ParameterId parameter, std::span<float> values) const = 0;
  // The gradient of a trained parameter; 0 in rows of class centres that the step did not sample.
  virtual void read_gradient(ParameterId parameter, std::span<float> values) const = 0;
  virtual void write_statistic(StatisticId statistic, std::span<const float> values) = 0;
  virtual void read_statistic(StatisticId statistic, std::span<float> values) const = 0;
  // images: [n, 3, h, w] fp32, normalised; labels: [n].
  virtual void write_batch(std::span<const float> images, std::span<const std::int64_t> labels) = 0;
  // Makes the rank's synthetic batch (bench/data/synthetic.h) on the device. False if the host must write it.
  virtual bool make_synthetic_batch(std::uint64_t /*seed*/, int /*rank*/) { return false; }
  virtual void write_state(const StepState& state) = 0;
  // Metrics of an iteration that has ended, one of the last kMetricsKept.
  virtual IterationMetrics metrics(std::uint64_t iteration) const = 0;
};

// The order of work between lanes. Callables, write_batch() and collectives of a device that runs behind the
// host's back only enqueue on their lane; the defaults are for a device where they have ended when they
// return.
class LaneOrder {
 public:
  virtual ~LaneOrder() = default;
  // Marks `step` as done once everything enqueued on `lane` so far has run.
  virtual void signal(StepId /*step*/, Lane /*lane*/) {}
  // Work enqueued on `lane` after this call waits for `step`.
  virtual void wait(StepId /*step*/, Lane /*lane*/) {}
  // The lane's queue as the vendor's libraries know it (cudaStream_t), or null.
  virtual void* queue(Lane /*lane*/) { return nullptr; }
  // The host waits until all lanes are idle.
  virtual void synchronize() {}
};

// Seconds on the device's own clock.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;
  // The device is idle when this returns, and its time is 0.
  virtual void start_clock() = 0;
  // All lanes' work of this iteration is enqueued; the next iteration's comes after it.
  virtual void end_iteration() = 0;
  // When the oldest iteration not yet reported ended; nothing if it hasn't. Its metrics are there then.
  // Doesn't wait.
  virtual std::optional<double> next_end() = 0;
  // For profiles and traces, outside of captures: stamps the lane's time before and after a step.
  virtual void stamp(StepId step, Lane lane, bool after) = 0;
  // The stamps since the last call, in order. Waits for the device.
  virtual std::vector<StepTime> step_times() = 0;
  // Around a wait of the compute lane for collectives: IterationMetrics::exposed_seconds, also in a capture.
  virtual void stamp_wait(bool /*after*/) {}
};

// Copies between device memory and page-locked host memory.
class HostStaging {
 public:
  virtual ~HostStaging() = default;
  // Page-locked; freed with its last owner.
  virtual std::shared_ptr<std::byte> allocate_pinned(std::size_t bytes) = 0;
  // Enqueues on `lane`.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes, Lane lane) = 0;
  // The end of the work enqueued on `lane` so far, and whether the lane has reached it; neither waits.
  virtual std::size_t mark(Lane lane) = 0;
  virtual bool reached(std::size_t mark) = 0;
};

// An iteration as one launch.
class StepCapture {
 public:
  virtual ~StepCapture() = default;
  // Records, without running, what `enqueue` enqueues on the compute and communication lanes.
  virtual void capture(const std::function<void()>& enqueue) = 0;
  // Runs it. No host-side effect of `enqueue` is repeated.
  virtual void replay() = 0;
  // Before what it calls (a communicator) is destroyed; also after a failure.
  virtual void drop_capture() noexcept = 0;
};

class Device : public TensorAccess, public LaneOrder, public DeviceClock {
 public:
  virtual const DeviceLimits& limits() const = 0;
  virtual std::string description() const = 0;  // one line for people: model, threads or driver
  // The GPU's UUID as its driver and NVML write it ("GPU-" and five groups of hex digits); empty on a CPU.
  virtual std::string unique_id() const { return {}; }

  // Finds the engines and fused patterns that train the Graph fastest; before prepare(), which takes
  // Step::engine as apply_tuning() sets it. Empty where there is no choice. Throws Error(internal) that names
  // an engine which made the device unusable.
  virtual Tuning tune(const Graph& /*graph*/, const UpdateRule& /*rule*/, const DescribeOptions& /*options*/,
                      const TuningOptions& /*how*/) {
    return {};
  }
  // First half of binding: chooses implementations and layouts, and raises the bytes of buffers and
  // workspaces to what they really take. Allocates nothing that a plan accounts for. Throws Error(internal)
  // with kNoEngine.
  virtual void prepare(const Graph& graph, const UpdateRule& rule, Program& program) = 0;
  // Second half: allocates the arena and gives every step its callable. Throws Error(out_of_memory).
  virtual void bind(Program& program, const MemoryPlan& plan) = 0;

  // First byte of a buffer in the arena, for collectives.
  virtual std::byte* data(BufferId buffer) = 0;
  // Null if data() is host memory.
  virtual HostStaging* host_staging() { return nullptr; }
  // Null if the device can't capture an iteration.
  virtual StepCapture* step_capture() { return nullptr; }

  // The most bytes that the process has held so far (CPU: peak resident set; GPU: by the driver's count).
  virtual std::size_t peak_bytes() const = 0;
};

// "automatic": cuda if a GPU answers, else cpu. Throws Error(unavailable) with what was looked for and found.
// `why_not_cuda`, if given, takes the sentence that says why "automatic" took the cpu.
std::unique_ptr<Device> make_device(const DeviceOptions& options, std::string* why_not_cuda = nullptr);
namespace cpu {
std::unique_ptr<Device> make_device(const DeviceOptions& options);
}  // namespace cpu
namespace cuda {
std::unique_ptr<Device> make_device(const DeviceOptions& options);
}  // namespace cuda

}  // namespace plumb
