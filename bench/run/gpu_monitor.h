// Watches a GPU during a run. A separate thread samples NVML, so the timed loop never calls it; samples
// outside the window are dropped afterwards.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/machine/nvml.h"
#include "base/steady_clock.h"
#include "comm/job.h"
#include "results/record/schema.h"

namespace plumb {

struct GpuSample {
  double seconds = 0;  // on the monitor's clock
  NvmlReading reading;
  std::optional<std::uint64_t> energy_millijoules;
};

// Figures over the samples in [begin, end], seconds on the samples' clock. No energy without two samples, or
// without a counter (GPUs before Volta). rank, name, id and the like are left for the caller to fill in.
GpuRecord summarize_gpu(std::span<const GpuSample> samples, double begin, double end);

struct GpuMonitorOptions {
  double period_seconds = 0.2;
  // Kept at once; when they are reached every second one goes and the period doubles. 4096 take 14 minutes.
  std::size_t most_samples = 4096;
  std::function<double()> clock = steady_seconds;
};

class GpuMonitor {
 public:
  // Samples from now on, until stop().
  explicit GpuMonitor(NvmlGpu gpu, GpuMonitorOptions options = {});
  ~GpuMonitor() { stop(); }
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  // Takes a last sample and ends the thread.
  void stop();

  // After stop(): of the window from `begin` to `end` on the options' clock, its samples included. `rank`: of
  // this process.
  GpuRecord record(double begin, double end, int rank, const std::string& id) const;
  const std::vector<GpuSample>& samples() const { return samples_; }  // after stop()

 private:
  void sample_until(const std::stop_token& stop);
  void take_sample();

  NvmlGpu gpu_;
  GpuMonitorOptions options_;
  std::vector<GpuSample> samples_;
  std::mutex mutex_;  // guards nothing: the thread waits with it
  std::condition_variable_any stopped_;
  std::jthread thread_;  // last: uses the others
};

// A monitor of the GPU `id` (Device::unique_id); null where there is none or NVML doesn't know it.
std::unique_ptr<GpuMonitor> watch_gpu(const std::string& id, GpuMonitorOptions options = {});

// Every rank's record, in rank order, on every rank; samples are rank 0's. A collective.
std::vector<GpuRecord> gather_gpus(const Job& job, std::optional<GpuRecord> mine);

}  // namespace plumb
