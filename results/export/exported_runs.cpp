#include "results/export/exported_runs.h"

#include "base/error.h"
#include "results/anomalies/flags.h"

namespace plumb {

std::string why_not_exported(const Measurement& run) {
  if (!run.record) return "it is a log, which says too little; name the run's folder with result.json";
  const RunRecord& record = *run.record;
  if (record.status != "ok") return failure_text(record);
  if (record.ranks_per_gpu > 1) return shared_gpu_text(record.ranks_per_gpu);
  for (const auto& [check, passed] : record.checks.items())
    if (passed != true)
      return fmt::format("its check {} {}; run the bench again{}", check,
                         passed == false ? "failed" : "was skipped",
                         passed == false ? "" : " without --no-check");
  return record.checks.empty() ? "it has no checks; run the bench again" : "";
}

LoadedSamples exported_runs(LoadedSamples loaded) {
  for (Sample& sample : loaded.samples)
    std::erase_if(sample.runs, [&](const Measurement& run) {
      const std::string why = why_not_exported(run);
      if (!why.empty()) loaded.bad.push_back({"unfinished", why, run.origin});
      return !why.empty();
    });
  std::erase_if(loaded.samples, [](const Sample& sample) { return sample.runs.empty(); });
  if (loaded.samples.empty() && !loaded.bad.empty())
    throw Error(ExitCode::bad_data, "no run can be exported; '{}' can't: {}", loaded.bad.front().subject,
                loaded.bad.front().text);
  return loaded;
}

}  // namespace plumb
