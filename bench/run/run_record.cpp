#include "bench/run/run_record.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>

#include "base/machine/machine.h"
#include "base/output.h"
#include "base/paths.h"
#include "base/text.h"
#include "bench/output/profile.h"
#include "bench/run/environment.h"
#include "bench/run/gpu_monitor.h"
#include "comm/gradient_reduction.h"
#include "kernels/program/winograd.h"
#include "results/analysis/configuration.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

// Rank 0's record gets them all.
void add_ranks(const Job& job, const Measurements& measured, RunRecord& record) {
  const std::vector<std::string> hosts = job.all_gather(job.host());
  const double exposed = measured.exposed_communication_seconds, data = measured.data_wait_seconds;
  const double step =
      measured.timer.window_seconds(record.warmup) / static_cast<double>(record.iterations - record.warmup);
  const std::vector<double> all = job.gather({exposed, std::max(0.0, step - exposed - data), data});
  for (std::size_t rank = 0; 3 * rank < all.size(); ++rank)
    record.ranks.push_back(
        {hosts[rank], all[3 * rank], all[3 * rank + 1], all[3 * rank + 2], static_cast<int>(rank)});
}

// Seconds of a step in which collectives were under way on the rank that waited for others least in them, as
// far as they were timed; else nothing.
std::optional<double> shortest_communication(const std::vector<double>& communicating,
                                             const std::vector<CollectiveRecord>& collectives) {
  double seconds = *std::ranges::min_element(communicating);
  if (seconds == 0)
    for (const CollectiveRecord& one : collectives) seconds += one.seconds.min;
  return seconds > 0 ? std::optional(seconds) : std::nullopt;
}

void add_traffic(const Job& job, const Program& program, const Measurements& measured, RunRecord& record) {
  const std::vector<double> communicating = job.gather({measured.communicating_seconds});
  record.sent_bytes_per_step = sent_bytes_per_rank(program, job.size());
  if (job.rank() != 0 || record.sent_bytes_per_step == 0) return;
  if (const auto seconds = shortest_communication(communicating, record.collectives))
    record.bus_bytes_per_second = record.sent_bytes_per_step / *seconds;
}

// Every rank stamps, or none.
void add_collectives(const Job& job, const Program& program, const std::vector<InstructionTime>& stamped,
                     RunRecord& record) {
  if (job.size() < 2 || stamped.empty()) return;
  const std::vector<double> seconds = job.gather(collective_seconds(program, stamped));
  if (job.rank() == 0) record.collectives = collective_records(program, seconds);
}

void add_loss_scale(const BenchOptions& options, const Measurements& measured, RunRecord& record) {
  if (options.loss_scaling.value_or(LossScaling{}).kind == LossScaling::Kind::none) return;
  for (const IterationMetrics& metrics : measured.metrics) {
    record.loss_scale.push_back(metrics.loss_scale);
    record.skipped_iterations += metrics.skipped ? 1 : 0;
  }
}

void add_energy(const Job& job, const std::optional<GpuRecord>& gpu, RunRecord& record) {
  record.gpus = gather_gpus(job, gpu);
  const std::int64_t images = record.batch_per_device * job.size() * (record.iterations - record.warmup);
  if (const auto joules = total_joules(record.gpus, job.size()))
    record.energy_joules_per_image = *joules / static_cast<double>(images);
}

LogCase log_case(const BenchOptions& options, int world_size, const RunRecord& record) {
  return {.model = record.model,
          .precision = record.precision,
          .batch_per_device = record.batch_per_device,
          .image_size = options.image_size,
          .data = !options.batch.empty()        ? "batch"
                  : options.data == "synthetic" ? "synthetic"
                                                : "images",
          .head = head_options(record.config),
          .settings = log_settings(record, has_collectives(options, world_size)),
          .nodes = record.nodes,
          .devices_per_node = record.devices_per_node};
}

}  // namespace

RunRecord make_record(const DescribedStep& step) {
  const BenchOptions& options = step.options;
  RunRecord record;
  record.model = step.plan.graph.model;
  record.precision = name_of(options.precision);
  record.device = name_of(step.device->limits().kind);
  record.device_name = step.device->description();
  record.batch_per_device = *options.batch_per_device;
  record.world_size = step.job.size();
  record.nodes = options.nodes;
  record.devices_per_node = options.devices_per_node;
  record.ranks_per_gpu = step.ranks_per_gpu;
  record.iterations = options.iterations;
  record.warmup = options.warmup;
  record.config = options_json(options);
  return record;
}

void add_plan(const PlannedStep& step, RunRecord& record) {
  const Graph& graph = step.plan.graph;
  record.parameters = backbone_parameter_count(graph);
  record.macs_per_image = macs_per_image(graph);
  record.head_parameters = head_parameter_count(graph);
  record.head_macs_per_image = head_macs_per_image(graph);
  for (const auto& [part, bytes] : memory_parts(step.plan))
    record.memory_bytes[part] = static_cast<std::int64_t>(bytes);
  for (const PlainLayer& layer : step.tuning.plain)
    record.unfused_layers.push_back(
        {name_of(graph.ops[layer.op]), std::string(name_of(layer.pattern)), layer.reason});
  record.winograd_ops = winograd_instructions(step.plan.program);
}

void add_window(const BoundStep& step, const Measurements& measured, RunRecord& record) {
  record.exposed_communication_seconds = measured.exposed_communication_seconds;
  record.data_wait_seconds = measured.data_wait_seconds;
  record.memory_bytes["peak"] = static_cast<std::int64_t>(step.device->peak_bytes());
}

void add_measurements(const BoundStep& step, const Measurements& measured, RunRecord& record) {
  const Job& job = step.job;
  record.iterations = measured.timer.iterations();
  record.step_seconds = measured.timer.step_seconds();
  record.loss = job.sum(mapped(measured.metrics, &IterationMetrics::loss));
  for (double& loss : record.loss) loss /= job.size();
  record.rank_window_seconds = job.gather({measured.timer.window_seconds(record.warmup)});
  if (job.rank() == 0)
    record.images_per_second = images_per_second(record.step_seconds, record.rank_window_seconds,
                                                 record.warmup, record.batch_per_device * job.size());
  add_ranks(job, measured, record);
  add_collectives(job, step.plan.program, measured.stamped, record);
  add_traffic(job, step.plan.program, measured, record);
  add_loss_scale(step.options, measured, record);
  add_energy(job, measured.gpu, record);
}

CorruptFiles corrupt_of_all_ranks(const Job& job, const BatchSource& source) {
  const CorruptFiles mine = source.corrupt_files();
  const double count = job.sum({static_cast<double>(mine.count)}).front();
  CorruptFiles all{.count = static_cast<std::int64_t>(count)};
  for (const std::string& name : job.all_gather(mine.first.empty() ? "" : mine.first.front()))
    if (!name.empty() && all.first.empty()) all.first.push_back(name);
  return all;
}

std::string corrupt_text(const CorruptFiles& corrupt) {
  return fmt::format("skipped {} (every rank counts those it met), the first is {}",
                     counted(corrupt.count, "corrupt image"), corrupt.first.front());
}

RunOutputs open_outputs(const ResolvedRun& run, RunRecord& record) {
  const Job& job = run.job;
  const BenchOptions& options = run.options;
  RunOutputs outputs;
  std::random_device random;
  std::uint64_t run_id = std::uint64_t{random()} << 32 | random();
  job.broadcast(run_id);
  record.run_id = fmt::format("{:016x}", run_id);
  for (const std::string& process : job.all_gather(fmt::format("{} {}", ::getpid(), job.host()))) {
    const std::size_t blank = process.find(' ');
    record.processes.push_back({process.substr(blank + 1), std::stoll(process)});
  }
  nlohmann::ordered_json machine = machine_json();
  machine["threads"] = options.threads;
  constexpr auto kNotUtf8 = nlohmann::ordered_json::error_handler_t::replace;  // a name of the kernel's
  const std::vector<std::string> machines = job.all_gather(machine.dump(-1, ' ', false, kNotUtf8));
  job.together([&] {
    if (job.rank() != 0) return;
    if (!options.save_weights.empty())
      OutputFile({.option = "--save-weights", .path = options.save_weights});  // made and removed
    outputs.results.emplace(options.output, run_folder_name(record, std::chrono::system_clock::now()),
                            record);
    try {
      outputs.log.emplace(options.log_dir, log_case(options, job.size(), record), options.run,
                          formats_to_write(options.dialect, options.seconds > 0 ? 0 : options.iterations));
    } catch (const Error&) {
      outputs.results->discard();
      throw;
    }
    record.config["run"] = outputs.log->run();
    outputs.results->write_json("env.json", environment_json(machines));
    outputs.folder = absolute_path(outputs.results->folder());
  });
  outputs.folder = job.all_gather(outputs.folder).front();
  return outputs;
}

void log_iteration(const BenchOptions& options, const Measurements& measured, LogWriter& log) {
  const IterationMetrics& metrics = measured.metrics.back();
  const StepTimer& timer = measured.timer;
  const auto batch = static_cast<double>(*options.batch_per_device);
  constexpr double kNotCounted = std::numeric_limits<double>::quiet_NaN();
  log.write({.iteration = timer.iterations() - 1,
             .loss = metrics.loss,
             .top1 = metrics.top1 / batch,
             .top5 = metrics.top5 < 0 ? kNotCounted : metrics.top5 / batch,
             .learning_rate = options.learning_rate,
             .seconds = timer.step_seconds().back(),
             .end_seconds = timer.end_seconds().back()},
            timer.start_wall_time());
}

std::string write_profile(const BoundStep& step, const RunRecord& record,
                          const std::vector<InstructionTime>& stamped, const ResultWriter& results) {
  const Program& program = step.plan.program;
  std::string table;
  if (step.options.profile) {
    const RunProfile profile = make_profile(program, stamped, step.device->limits(), step.options.precision,
                                            median(record.window()));
    results.write_json("profile.json", profile_json(profile));
    table = profile_text(profile);
  }
  if (step.options.trace) results.write_text("trace.json", trace_text(program, stamped, record.device_name));
  return table;
}

}  // namespace plumb
