#include "bench/run/training.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "base/new_file.h"
#include "bench/output/log_writer.h"
#include "bench/output/profile.h"
#include "bench/output/program_json.h"
#include "bench/output/progress.h"
#include "bench/output/result_writer.h"
#include "bench/output/summary.h"
#include "bench/output/trace_writer.h"
#include "bench/plan/head_table.h"
#include "bench/run/checks.h"
#include "bench/run/environment.h"
#include "bench/run/failures.h"
#include "bench/run/gpu_monitor.h"
#include "bench/run/runner.h"
#include "bench/run/stamped_iterations.h"
#include "bench/run/timed_loop.h"
#include "models/cost.h"
#include "results/record/schema.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

// With data that only one rank sees as poisoned, a non-finite gradient reaches all ranks one iteration later.
// Rank 0 reports as soon as it sees it; others only if rank 0 has had the time and did not.
constexpr int kPatienceOfOtherRanks = 3;

class TrainingRun {
 public:
  TrainingRun(const Job& job, const BenchOptions& options, const TrainingHooks& hooks)
      : job_(job), hooks_(hooks), messages_(stderr, terminal_of(stderr), options.quiet || job.rank() != 0) {
    session_ = open_session(job, options);
    read_inputs(job, session_);
    open_outputs();
  }

  void run() {
    try {
      prepare();
      train();
      gather();
      check();
      finish();
    } catch (const Error& error) {
      report_failure(error);
      throw;
    }
    print();
  }

 private:
  bool first() const { return job_.rank() == 0; }
  const BenchOptions& options() const { return session_.options; }
  std::int64_t images_per_step() const { return *options().batch_per_device * job_.size(); }

  void open_outputs() {
    record_.model = session_.plan.graph.model;
    record_.precision = name_of(options().precision);
    record_.device = name_of(session_.device->limits().kind);
    record_.device_name = session_.device->description();
    record_.batch_per_device = *options().batch_per_device;
    record_.world_size = job_.size();
    record_.nodes = session_.layout.nodes;
    record_.devices_per_node = session_.layout.devices_per_node;
    record_.iterations = options().iterations;
    record_.warmup = options().warmup;
    record_.config = options_json(options());
    job_.together([&] {
      if (!first()) return;
      if (!options().save_weights.empty()) check_new_file("--save-weights", options().save_weights);
      results_.emplace(options().out, run_folder_name(record_, std::chrono::system_clock::now()), record_);
      try {
        log_.emplace(options().log_dir, log_case(), options().run,
                     dialects_to_write(options().dialect, options().seconds > 0 ? 0 : options().iterations));
      } catch (const Error&) {
        results_->discard();
        throw;
      }
      record_.config["run"] = log_->run();
      results_->write_json("env.json", environment_json());
    });
  }

  LogCase log_case() const {
    return {.model = record_.model,
            .precision = record_.precision,
            .batch_per_device = record_.batch_per_device,
            .image_size = options().image_size,
            .data = !options().batch.empty()        ? "batch"
                    : options().data == "synthetic" ? "synthetic"
                                                    : "images",
            .head = head_options(record_.config),
            .nodes = record_.nodes,
            .devices_per_node = record_.devices_per_node};
  }

  void prepare() {
    const std::string head = head_options(record_.config);
    messages_.say("training " + record_.model + " " + record_.precision + " on " + record_.device_name +
                  session_.why_this_device + ", " + std::to_string(job_.size()) +
                  (job_.size() == 1 ? " rank" : " ranks") + ", batch " +
                  std::to_string(record_.batch_per_device) + " each" + (head.empty() ? "" : ", ") + head +
                  image_size_remark());
    prepare_session(job_, session_);
    note_tuning();
    if (options().verbose)
      messages_.say(session_.source->description() + "; " + head_text() + program_text());
    if (!session_.remark.empty()) messages_.say(session_.remark);
    record_.parameters = backbone_parameter_count(session_.plan.graph);
    record_.macs_per_image = macs_per_image(session_.plan.graph);
    record_.head_parameters = head_parameter_count(session_.plan.graph);
    record_.head_macs_per_image = head_macs_per_image(session_.plan.graph);
    const MemoryBytes bytes = memory_bytes(session_.plan.program, session_.plan.memory);
    const auto number = [](std::size_t value) { return static_cast<std::int64_t>(value); };
    record_.memory_bytes = {
        {"parameters", number(bytes.parameters)}, {"gradients", number(bytes.gradients)},
        {"optimizer", number(bytes.optimizer)},   {"activations", number(bytes.activations)},
        {"workspace", number(bytes.workspace)},   {"planned", number(bytes.planned)}};
    initial_checksum_ = parameter_checksum(session_.plan.graph, *session_.device);
    job_.together([&] {
      if (first())
        results_->write_json("program.json", program_json(session_.plan.program, &session_.plan.memory));
    });
  }

  void note_tuning() {
    const Tuning& tuning = session_.tuning;
    std::string remarks;
    for (const std::string& remark : tuning.remarks) remarks += (remarks.empty() ? "" : "; ") + remark;
    if (!remarks.empty()) messages_.warn(remarks);
    for (const PlainLayer& layer : tuning.plain)
      record_.unfused_layers.push_back(
          {name_of(session_.plan.graph.ops[layer.op]), std::string(name_of(layer.pattern)), layer.reason});
    job_.together([&] {
      if (first() && !tuning.trials.empty()) results_->write_text("tuning.csv", trials_csv(tuning));
    });
  }

  std::string image_size_remark() const {
    const std::int64_t published = options().model->image_size;
    if (options().image_size == published) return "";
    return ", images of " + std::to_string(options().image_size) +
           " pixels (not comparable with published numbers: " + std::to_string(published) + ")";
  }

  std::string head_text() const {
    return options().model->margin_head ? shard_text(session_.plan.graph) + " of rank 0; " : "";
  }

  // One line for --verbose: what the options have become.
  std::string program_text() const {
    const auto collectives =
        std::count_if(session_.plan.program.steps.begin(), session_.plan.program.steps.end(),
                      [](const Step& step) { return step.lane == Lane::communication; });
    return std::to_string(session_.plan.program.steps.size()) + " steps" +
           (session_.captures ? ", captured as one CUDA graph, " : ", ") +
           (collectives == 0 ? ""
                             : std::to_string(collectives) +
                                   (collectives == 1 ? " collective over " : " collectives over ") +
                                   options().comm + ", ") +
           std::to_string(session_.plan.memory.arena_bytes >> 20) + " MiB planned";
  }

  void train() {
    job_.barrier();
    Runner runner(session_.plan.program, *session_.device, session_.communicator.get(), *session_.source);
    try {
      run_iterations(runner);
    } catch (const Error& error) {
      report_failure(error);
      log_.reset();  // an empty log goes
      end_for_all(std::string(options().model->program), job_, error);
      throw FailureOfThisRank(error);
    }
  }

  void run_iterations(Runner& runner) {
    ProgressBar bar(stderr, first() && !options().quiet ? terminal_of(stderr) : Terminal{},
                    options().iterations, images_per_step());
    const std::unique_ptr<GpuMonitor> monitor = watch_gpu(session_.device->unique_id());
    run_timed(job_, session_, runner, session_.captures, timed_, [&](std::int64_t iteration) {
      record_iteration(iteration);
      bar.update(timed_.timer.iterations(), timed_.timer.elapsed_seconds());
      if (hooks_.after_iteration) hooks_.after_iteration(iteration, session_);
    });
    record_.exposed_communication_seconds = timed_.exposed_communication_seconds;
    record_.data_wait_seconds = timed_.data_wait_seconds;
    if (monitor) gpu_ = record_of(*monitor);
    bar.clear();
    record_.memory_bytes["peak"] = static_cast<std::int64_t>(session_.device->peak_bytes());
    if (options().profile || options().trace) stamped_ = run_stamped(session_, runner);
  }

  // Of the window, on the monitor's clock.
  GpuRecord record_of(GpuMonitor& monitor) const {
    const double start = steady_seconds() - timed_.timer.elapsed_seconds();
    const double end = start + timed_.timer.end_seconds().back();
    monitor.stop();
    return monitor.record(end - timed_.timer.window_seconds(options().warmup), end, job_.rank(),
                          session_.device->unique_id());
  }

  void record_iteration(std::int64_t iteration) {
    const IterationMetrics& metrics = timed_.metrics.back();
    const StepTimer& timer = timed_.timer;
    const auto batch = static_cast<double>(record_.batch_per_device);
    constexpr double kNotCounted = std::numeric_limits<double>::quiet_NaN();
    if (log_)
      log_->write({.iteration = iteration,
                   .loss = metrics.loss,
                   .top1 = metrics.top1 / batch,
                   .top5 = metrics.top5 < 0 ? kNotCounted : metrics.top5 / batch,
                   .learning_rate = options().learning_rate,
                   .seconds = timer.step_seconds().back(),
                   .end_seconds = timer.end_seconds().back()},
                  timer.start_wall_time());
    not_finite_ = std::isfinite(metrics.loss) ? 0 : not_finite_ + 1;
    if (not_finite_ >= (first() ? 1 : kPatienceOfOtherRanks))  // --no-check or not: never a score
      throw Error(ExitCode::verification_failed, "the loss is not finite at iteration " +
                                                     std::to_string(iteration) + "; lower --lr " +
                                                     options_json(options()).at("learning_rate").dump() +
                                                     " or look at the data: this run is no measurement");
  }

  std::vector<double> losses() const {  // of this rank
    std::vector<double> values;
    for (const IterationMetrics& metrics : timed_.metrics) values.push_back(metrics.loss);
    return values;
  }

  void gather() {
    record_.iterations = timed_.timer.iterations();
    record_.step_seconds = timed_.timer.step_seconds();
    record_.loss = job_.sum(losses());
    for (double& loss : record_.loss) loss /= job_.size();
    record_.rank_window_seconds = job_.gather({timed_.timer.window_seconds(options().warmup)});
    if (first())
      record_.images_per_second = images_per_second(record_.step_seconds, record_.rank_window_seconds,
                                                    options().warmup, images_per_step());
    gather_ranks();
    gather_loss_scale();
    gather_energy();
    tell_corrupt_files();
  }

  void gather_ranks() {
    const std::vector<std::string> hosts = job_.all_gather(job_.host());
    const std::vector<double> exposed = job_.gather({timed_.exposed_communication_seconds});
    for (std::size_t rank = 0; rank < exposed.size(); ++rank)
      record_.ranks.push_back({hosts[rank], exposed[rank]});
  }

  void gather_loss_scale() {
    if (options().loss_scaling.value_or(LossScaling{}).kind == LossScaling::Kind::none) return;
    for (const IterationMetrics& metrics : timed_.metrics) {
      record_.loss_scale.push_back(metrics.loss_scale);
      record_.skipped_iterations += metrics.skipped ? 1 : 0;
    }
  }

  void gather_energy() {
    record_.gpus = gather_gpus(job_, gpu_);
    const auto images = static_cast<double>(images_per_step() * (record_.iterations - options().warmup));
    if (const auto joules = total_joules(record_.gpus, job_.size()))
      record_.energy_joules_per_image = *joules / images;
  }

  void tell_corrupt_files() {
    const CorruptFiles corrupt = session_.source->corrupt_files();
    const double count = job_.sum({static_cast<double>(corrupt.count)}).front();
    const std::vector<std::string> names =
        job_.all_gather(corrupt.first.empty() ? "" : corrupt.first.front());
    const auto named =
        std::find_if(names.begin(), names.end(), [](const std::string& name) { return !name.empty(); });
    if (named != names.end())
      messages_.warn("corrupt images were skipped " + std::to_string(static_cast<std::int64_t>(count)) +
                     " times over all ranks, the first is " + *named);
  }

  void check() {
    if (!options().check) {
      record_.checks = {{"replicas_identical", "skipped"},
                        {"parameters_moved", "skipped"},
                        {"loss_finite", true},  // every one was looked at when it came
                        {"tensors_finite", "skipped"}};
      return;
    }
    RunEvidence evidence{
        .checksums = {},
        .initial_checksum = initial_checksum_,
        .not_finite = job_.all_gather(first_not_finite(session_.plan.graph, *session_.device)),
        .loss = record_.loss,
        .learning_rate = options().learning_rate};
    for (const std::string& text :
         job_.all_gather(std::to_string(parameter_checksum(session_.plan.graph, *session_.device))))
      evidence.checksums.push_back(std::stoull(text));
    Checks checks = check_run(evidence);
    if (!checks.failure.empty() && options().reduce_dtype == ReduceDType::fp16)
      checks.failure += " (--reduce-dtype fp16 overflows beyond 65504; same keeps the gradients as they are)";
    record_.checks = {{"replicas_identical", checks.replicas_identical},
                      {"parameters_moved", checks.parameters_moved},
                      {"loss_finite", checks.loss_finite},
                      {"tensors_finite", checks.tensors_finite}};
    job_.together([&] {
      if (first() && !checks.failure.empty()) throw Error(ExitCode::verification_failed, checks.failure);
    });
  }

  void finish() {
    TensorFile tensors;
    if (!options().save_weights.empty())
      tensors = gather_tensors(job_, session_.plan.graph, *session_.device);
    job_.together([&] {
      if (!first()) return;
      if (!options().save_weights.empty()) write_safetensors(options().save_weights, tensors);
      write_profile();
      record_.log_files = log_->paths();
      record_.status = "ok";
      results_->write_result(record_);  // before the log gets its name: no .log without a result that says ok
      log_->finish();
    });
  }

  // profile.json and trace.json, and the table for print().
  void write_profile() {
    const Program& program = session_.plan.program;
    if (options().profile) {
      const auto window = std::span(record_.step_seconds).subspan(static_cast<std::size_t>(record_.warmup));
      const double step_seconds = median({window.begin(), window.end()});
      const Profile profile = make_profile(program, stamped_, session_.device->limits(), options().precision);
      results_->write_json("profile.json", profile_json(program, profile, step_seconds));
      profile_text_ = profile_text(program, profile, step_seconds);
    }
    if (options().trace)
      write_trace_file(results_->folder() + "/trace.json", program, stamped_,
                       {.rank = job_.rank(), .device = record_.device_name});
  }

  // The run stands as it is, even where nobody can read its table.
  void print() {
    job_.together([&] {
      if (!first()) return;
      print_result(record_, options().json);
      if (!options().json && options().verbose) print_fusion();
      if (!options().json && options().profile) print_text("\n" + profile_text_);
      messages_.last(results_->folder());
    });
  }

  void print_fusion() const {
    const std::string text =
        fusion_text(session_.plan.graph, session_.plan.described_with, session_.device->limits());
    if (!text.empty()) print_text("\n" + text);
  }

  void report_failure(const Error& error) {
    if (!results_) return;
    record_.status = "failed";
    record_.failure = error.what();
    if (record_.step_seconds.empty()) record_.step_seconds = timed_.timer.step_seconds();
    if (record_.loss.empty()) record_.loss = losses();
    record_.log_files.clear();
    try {
      results_->write_result(record_);
    } catch (const Error&) {
      // The same disk may be what failed. The result.json from the start says failed, too.
    }
  }

  const Job& job_;
  const TrainingHooks& hooks_;
  Messages messages_;
  Session session_;
  std::optional<LogWriter> log_;         // rank 0
  std::optional<ResultWriter> results_;  // rank 0
  RunRecord record_;
  TimedIterations timed_;
  std::optional<GpuRecord> gpu_;   // of this rank, in the window
  std::vector<StepTime> stamped_;  // of the iterations behind the window, with --profile or --trace
  std::string profile_text_;       // rank 0
  std::uint64_t initial_checksum_ = 0;
  int not_finite_ = 0;  // iterations in a row
};

}  // namespace

void run_training(const Job& job, const BenchOptions& options, const TrainingHooks& hooks) {
  TrainingRun(job, options, hooks).run();
}

}  // namespace plumb
