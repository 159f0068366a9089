// Which engines and fused patterns a run uses: rank 0 finds out, every rank takes its answer.
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/output/progress.h"
#include "bench/run/session.h"
#include "bench/run/step_timer.h"

namespace plumb {

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
    session.tuning = session.device->tune(
        session.plan.graph, rule, session.plan.described_with,
        {.time_engines = session.options.autotune, .captures = session.captures, .progress = progress});
  });
  const std::string choices =
      job.all_gather(first ? choices_to_json(session.tuning).dump() : std::string()).front();
  if (!first) session.tuning = choices_from_json(nlohmann::json::parse(choices));
  job.enter_phase(RunPhase::preparing);
}

}  // namespace plumb
