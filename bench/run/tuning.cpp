// Which engines and fused patterns a run uses: rank 0 finds out, every rank takes its answer.
#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "bench/output/progress.h"
#include "bench/run/session.h"
#include "bench/run/step_timer.h"

namespace plumb {
namespace {

constexpr double kSecondsBetweenLines = 10;

class TuningProgress {
 public:
  explicit TuningProgress(bool quiet) : quiet_(quiet), terminal_(terminal_of(stderr)) {}

  void update(std::size_t done, std::size_t known) {
    if (quiet_) return;
    const double elapsed = steady_seconds() - start_seconds_;
    if (!bar_) bar_.emplace(stderr, terminal_, static_cast<std::int64_t>(known), 1, "engines chosen/s");
    bar_->update(static_cast<std::int64_t>(done), elapsed);
    if (terminal_.is_terminal || elapsed - told_at_seconds_ < kSecondsBetweenLines) return;
    told_at_seconds_ = elapsed;
    fmt::print(stderr, "tuning: {} of {} engines chosen after {:.0f} s\n", done, known, elapsed);
  }

 private:
  bool quiet_;
  Terminal terminal_;
  std::optional<ProgressBar> bar_;
  double start_seconds_ = steady_seconds(), told_at_seconds_ = 0;
};

}  // namespace

void tune_session(const Job& job, Session& session, const UpdateRule& rule) {
  const bool first = job.rank() == 0;
  job.together([&] {
    if (!first) return;
    TuningProgress progress(session.options.quiet);
    session.tuning = session.device->tune(
        session.plan.graph, rule, session.plan.described_with,
        {.time_engines = session.options.autotune,
         .progress = [&](std::size_t done, std::size_t known) { progress.update(done, known); }});
  });
  const std::string choices =
      job.all_gather(first ? choices_to_json(session.tuning).dump() : std::string()).front();
  if (!first) session.tuning = choices_from_json(nlohmann::json::parse(choices));
}

}  // namespace plumb
