// Which engines and fused patterns a run uses: rank 0 finds out, every rank takes its answer if it can.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/console/progress.h"
#include "base/machine/nvml.h"
#include "base/steady_clock.h"
#include "base/text.h"
#include "bench/run/session.h"

namespace plumb {
namespace {

// A line for each instruction that has a choice of engines.
std::string engines_of(const Program& program) {
  std::string lines;
  for (const Instruction& instruction : program.instructions)
    if (!instruction.engine.empty()) lines += instruction.name + " by " + instruction.engine + "\n";
  return lines;
}

}  // namespace

void compare_engines(const Job& job, Session& session) {
  const std::vector<std::string> engines = job.all_gather(engines_of(session.plan.program)),
                                 hosts = job.all_gather(job.host());
  if (job.rank() != 0) return;
  const std::string& own = engines.front();
  const auto odd = std::ranges::find_if(engines, [&](const std::string& theirs) { return theirs != own; });
  if (odd == engines.end()) return;
  const std::vector<std::string> ours = split(own, '\n'), theirs = split(*odd, '\n');
  const auto [here, there] = std::ranges::mismatch(ours, theirs);
  const std::size_t rank = static_cast<std::size_t>(odd - engines.begin());
  session.tuning.remarks.push_back(fmt::format(
      "{} of {} ranks can't run the engines that rank 0 chose: rank {} on {} runs {}, rank 0 {}; give all "
      "ranks devices of one kind and the same libraries",
      engines.size() - static_cast<std::size_t>(std::ranges::count(engines, own)), engines.size(), rank,
      hosts[rank], there == theirs.end() ? "none" : *there, here == ours.end() ? "none" : *here));
}

void tune_session(const Job& job, Session& session, const UpdateRule& rule) {
  const bool first = job.rank() == 0;
  job.enter_phase(RunPhase::tuning);
  job.together([&] {
    if (!first) return;
    std::optional<ProgressBar> bar;
    const double start = steady_seconds();
    const auto progress = [&](std::size_t done, std::size_t known) {
      if (!bar)
        bar.emplace(session.options.quiet ? nullptr : stderr, terminal_of(stderr),
                    static_cast<std::int64_t>(known), 1, "engines chosen/s");
      bar->update(static_cast<std::int64_t>(done), steady_seconds() - start);
    };
    TuningOptions how{.time_engines = session.options.autotune && !session.options.deterministic,
                      .captures = session.captures,
                      .progress = progress};
    const bool by_energy = session.options.tune_for == TuneFor::energy;
    const std::unique_ptr<NvmlGpu> gpu =
        by_energy ? open_nvml_gpu(session.device->unique_id(), nvml_library_name()) : nullptr;
    if (gpu && gpu->energy_millijoules())
      how.joules = [&gpu]() -> std::optional<double> {
        if (const auto counted = gpu->energy_millijoules()) return 1e-3 * static_cast<double>(*counted);
        return {};
      };
    session.tuning = session.device->tune(session.plan.graph, rule, session.plan.described_with, how);
    if (by_energy && !how.joules)
      session.tuning.remarks.push_back(
          "option --tune-for: NVML reads no energy counter of this GPU; time chose the engines");
  });
  const std::string choices =
      job.all_gather(first ? choices_to_json(session.tuning).dump() : std::string()).front();
  if (!first) session.tuning = choices_from_json(nlohmann::json::parse(choices));
  job.enter_phase(RunPhase::preparing);
}

}  // namespace plumb
