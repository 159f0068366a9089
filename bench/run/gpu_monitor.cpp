#include "bench/run/gpu_monitor.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace plumb {
namespace {

constexpr double kMilli = 1e-3;

ValueRange range_or_zeros(const std::vector<double>& values) {
  return values.empty() ? ValueRange() : range_of(values);
}

double watts(const GpuSample& sample) {
  return kMilli * sample.reading.power_milliwatts;
}

// By the counter's mean rate. `around`: the samples in the window, one before it and one after it.
void add_energy(std::span<const GpuSample> around, GpuRecord& record) {
  if (around.size() < 2) return;
  const GpuSample &first = around.front(), &last = around.back();
  if (!first.energy_millijoules || !last.energy_millijoules) return;
  const auto joules = kMilli * static_cast<double>(*last.energy_millijoules - *first.energy_millijoules);
  record.joules = joules * record.window_seconds / (last.seconds - first.seconds);
}

}  // namespace

GpuRecord summarize_gpu(std::span<const GpuSample> samples, double begin, double end) {
  const auto first = std::ranges::lower_bound(samples, begin, {}, &GpuSample::seconds);
  const auto last = std::ranges::upper_bound(samples, end, {}, &GpuSample::seconds);
  const std::span inside(first, last);
  GpuRecord record;
  record.window_seconds = end - begin;
  record.sample_count = std::ssize(inside);
  for (const GpuSample& sample : inside) {
    const NvmlReading& reading = sample.reading;
    for (const std::string& reason : reason_names(reading.reasons)) record.throttle_reasons[reason] += 1;
    record.samples.seconds.push_back(sample.seconds - begin);
    record.samples.sm_clock_mhz.push_back(reading.sm_clock_mhz);
    record.samples.memory_clock_mhz.push_back(reading.memory_clock_mhz);
    record.samples.temperature_celsius.push_back(reading.temperature_celsius);
    record.samples.power_watts.push_back(watts(sample));
    record.samples.throttled.push_back(is_throttled(reading.reasons));
  }
  const double count = std::max(1.0, static_cast<double>(inside.size()));
  for (auto& [reason, share] : record.throttle_reasons) share /= count;
  const auto throttled = std::count(record.samples.throttled.begin(), record.samples.throttled.end(), true);
  record.throttled_share = static_cast<double>(throttled) / count;
  record.sm_clock_mhz = range_or_zeros(record.samples.sm_clock_mhz);
  record.memory_clock_mhz = range_or_zeros(record.samples.memory_clock_mhz);
  record.temperature_celsius = range_or_zeros(record.samples.temperature_celsius);
  record.power_watts = range_or_zeros(record.samples.power_watts);
  add_energy({first - (first > samples.begin()), last + (last < samples.end())}, record);
  return record;
}

GpuMonitor::GpuMonitor(NvmlGpu gpu, GpuMonitorOptions options)
    : gpu_(std::move(gpu)), options_(std::move(options)) {
  samples_.reserve(options_.most_samples + 1);  // stop() adds one
  take_sample();                                // before whatever is timed begins
  thread_ = std::jthread([this](const std::stop_token& stop) { sample_until(stop); });
}

void GpuMonitor::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  take_sample();
}

void GpuMonitor::sample_until(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    stopped_.wait_for(lock, stop, std::chrono::duration<double>(options_.period_seconds),
                      [] { return false; });
    if (stop.stop_requested()) return;
    take_sample();
    if (samples_.size() < options_.most_samples) continue;
    for (std::size_t i = 0; 2 * i < samples_.size(); ++i) samples_[i] = samples_[2 * i];
    samples_.resize((samples_.size() + 1) / 2);
    options_.period_seconds *= 2;
  }
}

void GpuMonitor::take_sample() {
  const double seconds = options_.clock();
  samples_.push_back({seconds, gpu_.read(), gpu_.energy_millijoules()});
}

GpuRecord GpuMonitor::record(double begin, double end, int rank, const std::string& id) const {
  GpuRecord record = summarize_gpu(samples_, begin, end);
  record.rank = rank;
  record.name = gpu_.name;
  record.id = id;
  record.driver_version = gpu_.driver_version;
  record.highest_sm_clock_mhz = gpu_.highest_sm_clock_mhz;
  return record;
}

std::vector<GpuRecord> gather_gpus(const Job& job, std::optional<GpuRecord> mine) {
  if (mine && job.rank() != 0) mine->samples = {};
  std::vector<GpuRecord> gpus;
  for (const std::string& text : job.all_gather(mine ? fields::written(*mine).dump() : ""))
    if (!text.empty())
      fields::read_all(ObjectReader(nlohmann::ordered_json::parse(text), "NVML's readings", "gpus"),
                       gpus.emplace_back());
  return gpus;
}

std::unique_ptr<GpuMonitor> watch_gpu(const std::string& id, GpuMonitorOptions options) {
  if (id.empty()) return nullptr;
  std::optional<NvmlGpu> gpu = open_nvml_gpu(id, nvml_library_name());
  if (!gpu) return nullptr;
  return std::make_unique<GpuMonitor>(std::move(*gpu), std::move(options));
}

}  // namespace plumb
