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

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceLimits& limits() const = 0;
  virtual std::string description() const = 0;  // one line for people: model, threads or driver
  // What tells this device from all others: the GPU's UUID as its driver writes it ("GPU-" and five groups of
  // hex digits), by which NVML knows it too; empty on a cpu.
  virtual std::string unique_id() const { return {}; }

  // Which engines and fused patterns train the Graph fastest; before prepare(), which takes Step::engine from
  // what apply_tuning() makes of the result. Empty where there is nothing to choose. Throws Error(internal)
  // that names an engine which made the device unusable.
  virtual Tuning tune(const Graph& /*graph*/, const UpdateRule& /*rule*/, const DescribeOptions& /*options*/,
                      const TuningOptions& /*how*/) {
    return {};
  }
  // First half of binding: chooses implementations and layouts, and raises the bytes of buffers and
  // workspaces to what they really take. Allocates nothing that a plan accounts for. Throws Error(internal)
  // with kNoEngine.
  virtual void prepare(const Graph& graph, const UpdateRule& rule, Program& program) = 0;
  // Second half: takes the arena and gives every compute step its callable. Throws Error(out_of_memory).
  virtual void bind(Program& program, const MemoryPlan& plan) = 0;

  // Whole tensors across the border, in the public dims (row-major fp32). A parameter (Graph::parameters[p])
  // goes to its master and to every copy that the device keeps of it.
  virtual void write_parameter(ParameterId parameter, std::span<const float> values) = 0;
  virtual void read_parameter(ParameterId parameter, std::span<float> values) const = 0;
  // Of a parameter that is trained; of class centres that a step samples, 0 in the rows that it left out.
  virtual void read_gradient(ParameterId parameter, std::span<float> values) const = 0;
  virtual void write_statistic(StatisticId statistic, std::span<const float> values) = 0;
  virtual void read_statistic(StatisticId statistic, std::span<float> values) const = 0;
  // images: [n, 3, h, w] fp32, normalised; labels: [n].
  virtual void write_batch(std::span<const float> images, std::span<const std::int64_t> labels) = 0;

  // The rank's synthetic batch (bench/data/synthetic.h), made by the device itself. False if it leaves that
  // to the host and write_batch().
  virtual bool make_synthetic_batch(std::uint64_t /*seed*/, int /*rank*/) { return false; }

  virtual void write_state(const StepState& state) = 0;
  // Of an iteration that has ended, one of the last kMetricsKept.
  virtual IterationMetrics metrics(std::uint64_t iteration) const = 0;

  // First byte of a buffer in the arena, for collectives. In the memory that limits().kind has.
  virtual std::byte* data(BufferId buffer) = 0;

  // Order. On a device that runs behind the host's back (cuda), callables, write_batch() and collectives only
  // enqueue on their lane; on a cpu they have ended when they return, and ordering has nothing to do.
  // What the lane has been given so far is what `step` is.
  virtual void signal(StepId /*step*/, Lane /*lane*/) {}
  // What the lane is given from now on waits for that.
  virtual void wait(StepId /*step*/, Lane /*lane*/) {}
  // The queue of a lane as the vendor's libraries know it (cudaStream_t); null where there is none.
  virtual void* queue(Lane /*lane*/) { return nullptr; }
  // The host waits until everything has ended.
  virtual void synchronize() {}

  // For what carries device buffers through host memory; a cpu has no use for them and throws
  // Error(internal). Page-locked; freed with its last owner.
  virtual std::shared_ptr<std::byte> allocate_pinned(std::size_t bytes);
  virtual void copy(std::byte* to, const std::byte* from, std::size_t bytes, Lane lane);  // enqueues
  virtual std::size_t mark(Lane lane);     // the end of what the lane was given so far
  virtual bool reached(std::size_t mark);  // whether the lane has come so far; doesn't wait

  // One iteration as one launch: what `enqueue` enqueues on the compute and communication lanes is recorded,
  // not run; replay() runs it. No host-side effect of `enqueue` is repeated.
  virtual bool can_capture() const { return false; }
  virtual void capture(const std::function<void()>& enqueue);  // throws Error(internal) unless can_capture()
  virtual void replay();
  // Before what it calls (a communicator) goes; also on the way out of a failure.
  virtual void drop_capture() noexcept {}

  // The device's clock: everything has ended when start_clock() returns, and its time is 0.
  virtual void start_clock() = 0;
  // All lanes' work of this iteration is enqueued; the next iteration's comes after it.
  virtual void end_iteration() = 0;
  // Seconds at which the oldest iteration whose end wasn't told yet ended; nothing if it hasn't. Its metrics
  // are there then. Doesn't wait.
  virtual std::optional<double> next_end() = 0;

  // For profiles and traces, outside of captures: stamps the lane's time before and after a step.
  virtual void stamp(StepId step, Lane lane, bool after) = 0;
  // What was stamped since this was last called, in order of stamping. Waits for the device.
  virtual std::vector<StepTime> step_times() = 0;
  // Around a wait of the compute lane for collectives: IterationMetrics::exposed_seconds, also in a capture.
  virtual void stamp_wait(bool /*after*/) {}

  // Most bytes that the process has held so far (cpu: peak resident set; cuda: of the driver's count).
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
