#include "bench/allreduce/run_allreduce.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <optional>

#include "base/console/messages.h"
#include "base/console/print.h"
#include "base/error.h"
#include "base/options/completions.h"
#include "base/output.h"
#include "base/process/this_process.h"
#include "base/steady_clock.h"
#include "base/text.h"
#include "base/units.h"
#include "bench/allreduce/allreduce_options.h"
#include "bench/allreduce/allreduce_report.h"
#include "bench/allreduce/exchange.h"
#include "bench/allreduce/measurements.h"
#include "bench/links/host_links.h"
#include "bench/links/link_probe.h"
#include "bench/run/run_program.h"
#include "comm/distinct_gpus.h"
#include "comm/job.h"
#include "comm/launcher.h"
#include "results/anomalies/flags.h"
#include "results/anomalies/slow_links.h"

namespace plumb {
namespace {

constexpr double kSecondsBetweenLines = 10;

// One run: what every rank needs, and what rank 0 will print.
class AllreduceRun {
 public:
  AllreduceRun(const Job& job, const AllreduceOptions& options, const MessageDamage& damage)
      : job_(job),
        how_{.warmup = options.warmup, .iterations = options.iterations, .damage = damage},
        line_(stderr, terminal_of(stderr)),
        shows_(job.rank() == 0 && !options.quiet) {
    report_.options = options;
    report_.world_size = job.size();
    report_.nodes = job.nodes();
    report_.devices_per_node = job.devices_per_node();
  }

  void run() {
    check_output_file();
    job_.require_same("options", options_fingerprint(options()));
    warn(load_warning(job_));
    if (options().pairs)
      measure_links();
    else
      measure_collectives();
    line_.clear();
    finish();
  }

 private:
  const AllreduceOptions& options() const { return report_.options; }

  void check_output_file() {
    if (options().output.empty()) return;
    job_.together([&] {
      if (job_.size() == 1)
        throw Error(ExitCode::usage, "--output {}: a single rank has no links; start several with mpirun",
                    options().output);
      if (job_.rank() == 0) check_output(output());
    });
  }
  Output output() const { return {"--output", options().output, options().overwrite}; }

  void measure_links() {
    job_.together([&] {
      if (job_.nodes() < 2)
        throw Error(ExitCode::usage,
                    "--pairs measures links between hosts; start ranks on two hosts or more");
    });
    report_.options.comm = "mpi";
    job_.enter_phase(RunPhase::measuring);
    by_itself([&] { report_.pairs = measure_pairs(job_, [&](const std::string& text) { say(text); }); });
  }

  void measure_collectives() {
    job_.together([&] {
      device_ = make_device({.choice = options().device, .threads = 1, .local_rank = job_.local_rank()});
      report_.options = resolve(options(), device_->limits());
    });
    probe();
    const bool may_share = options().share_gpu || options().comm == "mpi";
    report_.ranks_per_gpu = require_distinct_gpus(job_, device_->unique_id(), may_share);
    job_.require_same("device", fmt::format("kind={}\n", name_of(device_->limits().kind)));
    if (report_.ranks_per_gpu > 1) warn(shared_gpu_text(report_.ranks_per_gpu));
    report_.device_name = device_->limits().name;
    if (options().replay.model)
      replay();
    else
      sweep();
    probe_again();
  }

  // Measures the links between hosts. It uses MPI, so it says nothing about messages over NCCL.
  void probe() {
    if (job_.nodes() < 2 || options().comm != "mpi") return;
    Messages messages(stderr, terminal_of(stderr), shows_ ? Loudness::usual : Loudness::quiet);
    by_itself([&] { report_.probed = probe_host_links(job_, messages); });
    if (report_.probed) warn(slow_warning(*report_.probed));
    report_.ring = ProbedRing{.before = probe_whole_ring()};
  }

  double probe_whole_ring() {
    std::vector<int> all(static_cast<std::size_t>(job_.size()));
    std::iota(all.begin(), all.end(), 0);
    double bytes_per_second = 0;
    by_itself([&] { bytes_per_second = probe_ring(job_, all); });
    return bytes_per_second;
  }

  void probe_again() {
    if (!report_.ring) return;
    report_.ring->after = probe_whole_ring();
    if (job_.rank() != 0) return;
    for (const std::string& sentence : ring_warnings(*report_.ring, highest_busbw(report_.results)))
      warn(sentence);
  }

  void warn(const std::string& sentence) {
    if (!sentence.empty()) report_.warnings.push_back(sentence);
  }

  void say_how_long(const std::vector<std::uint64_t>& sizes) {
    constexpr double kWorthSaying = 5;  // seconds
    if (!shows_ || !report_.ring || report_.ring->before <= 0) return;
    Link link{.bytes_per_second = report_.ring->before};
    if (report_.probed)
      for (const HostPair& pair : report_.probed->pairs)
        link.latency_seconds = std::max(link.latency_seconds, pair.link.latency_seconds);
    const double seconds = estimated_seconds(options(), sizes, job_.size(), link);
    if (seconds < kWorthSaying) return;
    line_.clear();
    std::fprintf(stderr, "%s: %s will take about %s; pass a smaller --max or --iters for less\n",
                 kAllreduceProgram, counted(sizes.size(), "size").c_str(), rough_time_text(seconds).c_str());
  }

  void allocate(const std::vector<Exchange::Message>& messages) {
    exchange_.emplace(job_, *device_, messages, options().comm, report_.ranks_per_gpu);
  }

  void sweep() {
    const std::vector<std::uint64_t> sizes = message_bytes(options(), job_.size());
    allocate({{"input", sizes.back()}, {"result", sizes.back()}});
    const BufferId input = exchange_->buffer_of(0), result = exchange_->buffer_of(1);
    say_how_long(sizes);
    for (const std::uint64_t bytes : sizes)
      for (const bool in_place : {false, true}) {
        Transfer transfer{.collective = {.kind = options().collective,
                                         .buffer = result,
                                         .elements = bytes / bytes_of(options().dtype),
                                         .dtype = options().dtype}};
        if (!in_place) transfer.from = input;
        measure_one("", transfer);
      }
  }

  void replay() {
    Program replayed;
    job_.together([&] { replayed = replayed_program(options(), *device_, job_.rank(), job_.size()); });
    std::vector<Instruction>& instructions = replayed.instructions;
    allocate(mapped(instructions, [](const Instruction& one) {
      return Exchange::Message{one.name, one.as<Collective>()->bytes()};
    }));
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      auto& collective = std::get<Collective>(instructions[i].operation);
      collective.buffer = exchange_->buffer_of(i);
      measure_one(instructions[i].name, {.collective = collective});
    }
  }

  void measure_one(const std::string& name, const Transfer& transfer) {
    say(fmt::format("{} of {} bytes, {}", name.empty() ? collective_name(transfer.collective.kind) : name,
                    transfer.collective.bytes(), transfer.from ? "out of place" : "in place"));
    job_.enter_phase(RunPhase::window);
    MeasuredTransfer& measured = report_.results.emplace_back();
    by_itself([&] { measured = measure(*exchange_, transfer, how_); });
    measured.name = name;
    if (wrong_.empty()) wrong_ = measured.wrong;
  }

  // A failure here is this rank's alone: it ends the job before anything unwinds.
  void by_itself(const std::function<void()>& measure_something) {
    try {
      measure_something();
    } catch (const Error& error) {
      end_for_all(kAllreduceProgram, job_, error);
      throw FailureOfThisRank(error);
    }
  }

  void finish() {
    job_.enter_phase(RunPhase::checking);
    const std::vector<LinkHost> hosts = hosts_of(job_);
    job_.together([&] {
      if (job_.rank() != 0) return;
      print_text(options().json ? json_text(document_json(kAllreduceSchema, report_)) : to_text(report_));
      if (!options().output.empty() && wrong_.empty())
        write_output(output(), to_json(links_of(report_, hosts)).dump(1) + "\n");
    });
    if (wrong_.empty()) return;
    const std::string sentence =
        wrong_ + "; look at that host's memory and network, this link cannot be trusted";
    job_.together([&] {
      if (job_.rank() == 0) throw Error(ExitCode::verification_failed, sentence);
    });
  }

  // On a terminal one line that changes, elsewhere now and then a line.
  void say(const std::string& text) {
    if (!shows_) return;
    line_.draw(text);
    if (line_.terminal().is_terminal || steady_seconds() - said_at_seconds_ < kSecondsBetweenLines) return;
    said_at_seconds_ = steady_seconds();
    std::fprintf(stderr, "%s: %s\n", kAllreduceProgram, text.c_str());
  }

  const Job& job_;
  TransferMeasure how_;
  AllreduceReport report_;
  LiveLine line_;
  bool shows_ = false;
  double said_at_seconds_ = steady_seconds();
  std::string wrong_;
  std::unique_ptr<Device> device_;
  std::optional<Exchange> exchange_;  // ends before the device
};

}  // namespace

int run_allreduce_program(int argc, char** argv, const std::function<MessageDamage(const Job&)>& damage_of) {
  open_standard_descriptors();
  AllreduceOptions defaults;
  if (const auto code = answer_to_shell(argc, argv, [&] { return allreduce_option_table(defaults); }))
    return *code;
  return run_program(kAllreduceProgram, [&] {
    const AllreduceOptions options = parse_allreduce_options(argc, argv);
    if (const auto answer = answer_to(options.questions, allreduce_option_table(defaults), options.json)) {
      if (launched_as().rank == 0) print_text(*answer);
      return;
    }
    run_job(kAllreduceProgram, {.watch = options.watch, .quiet = options.quiet}, &argc, &argv,
            [&](const Job& job, Interruption&, Watchdog*) {
              AllreduceRun(job, options, damage_of ? damage_of(job) : MessageDamage()).run();
            });
  });
}

}  // namespace plumb
