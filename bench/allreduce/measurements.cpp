#include "bench/allreduce/measurements.h"

#include <algorithm>

#include "base/text.h"
#include "bench/plan/step_plan.h"
#include "results/record/schema.h"
#include "results/statistics/statistics.h"

namespace plumb {
namespace {

void fill_messages(Exchange& exchange, const Transfer& transfer, const MessagePattern& pattern) {
  const Collective& collective = transfer.collective;
  exchange.memory().fill(collective, pattern, transfer.from.value_or(collective.buffer));
  // The result must not be left over. The pattern has no such value.
  if (transfer.from) exchange.memory().overwrite(collective, std::byte{0x33});
}

// "rank 1 on node2: element 17 of 1,048,576 is 3 and should be 6"; empty if nothing is wrong.
std::string wrong_text(const Job& job, const MessagePattern::Wrong& wrong) {
  if (wrong.elements == 0) return "";
  return fmt::format("{} on rank {} on {}, the first is element {}: {} instead of {}",
                     counted(wrong.elements, "wrong element"), job.rank(), job.host(), wrong.first,
                     wrong.found, wrong.wanted);
}

BenchOptions run_options(const AllreduceOptions& options) {
  BenchOptions run{.model = options.replay.model};
  run.precision = options.replay.precision;
  run.comm = options.comm;  // so that a single rank exchanges, too
  run.device = options.device;
  run.batch_per_device = options.batch_per_device;
  if (options.bucket_mb) run.bucket_mb = *options.bucket_mb;
  return run;
}

}  // namespace

std::string collective_name(Collective::Kind kind) {
  switch (kind) {
    case Collective::Kind::allreduce_sum:
      return "allreduce";
    case Collective::Kind::reduce_scatter_sum:
      return "reducescatter";
    default:
      return std::string(name_of(kind));
  }
}

double MeasuredTransfer::algbw_bytes_per_second() const {
  return seconds() > 0 ? static_cast<double>(bytes) / seconds() : 0;
}

double MeasuredTransfer::busbw_bytes_per_second() const {
  return algbw_bytes_per_second() * bus_factor(name_of(kind), world_size);
}

RankTimes times_over_ranks(std::span<const double> rank_iterations, int world_size) {
  const std::size_t ranks = static_cast<std::size_t>(world_size);
  const std::size_t iterations = rank_iterations.size() / ranks;
  std::vector<double> longest(iterations, 0), medians;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::span<const double> of_rank = rank_iterations.subspan(rank * iterations, iterations);
    medians.push_back(median(of_rank));
    for (std::size_t i = 0; i < iterations; ++i) longest[i] = std::max(longest[i], of_rank[i]);
  }
  return {.iterations = range_of(longest),
          .ranks = range_of(medians),
          .slowest_rank = static_cast<int>(std::ranges::max_element(medians) - medians.begin())};
}

MeasuredTransfer measure(Exchange& exchange, const Transfer& transfer, const TransferMeasure& how) {
  const Job& job = exchange.job();
  const Collective& collective = transfer.collective;
  const MessagePattern pattern(collective, job.rank(), job.size());
  MeasuredTransfer measured{.kind = collective.kind,
                            .bytes = static_cast<std::int64_t>(collective.bytes()),
                            .dtype = collective.dtype,
                            .in_place = !transfer.from,
                            .world_size = job.size()};
  fill_messages(exchange, transfer, pattern);
  const std::vector<double> all = job.gather(exchange.time(transfer, how.warmup, how.iterations));
  if (job.rank() == 0) measured.times = times_over_ranks(all, job.size());
  fill_messages(exchange, transfer, pattern);
  exchange.carry_out(transfer);
  const MessagePattern::Wrong wrong = exchange.memory().check(collective, pattern, how.damage);
  measured.wrong_elements = static_cast<std::int64_t>(job.sum({static_cast<double>(wrong.elements)}).front());
  for (const std::string& text : job.all_gather(wrong_text(job, wrong)))
    if (measured.wrong.empty() && !text.empty())
      measured.wrong = fmt::format("{} of {} bytes {} left {}", collective_name(collective.kind),
                                   collective.bytes(), transfer.from ? "out of place" : "in place", text);
  return measured;
}

Program replayed_program(const AllreduceOptions& options, Device& device, int rank, int world_size) {
  const BenchOptions run = run_options(options);
  if (!device.limits().flops_per_second.contains(run.precision))
    throw Error(ExitCode::usage, "--replay {}: device {} does not support {}; replay another precision",
                options.replay.text, device.limits().name, name_of(run.precision));
  const BenchOptions resolved = resolve(run, device.limits(), world_size);
  Program program = make_step_plan(resolved, device.limits(), rank, world_size, {}, &device).program;
  std::erase_if(program.instructions,
                [](const Instruction& instruction) { return !instruction.as<Collective>(); });
  return program;
}

}  // namespace plumb
