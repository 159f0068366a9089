// What is odd about a run or a sample.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/compare/samples.h"
#include "results/record/note.h"
#include "results/record/schema.h"

namespace plumb {

// Kinds: "warmup_not_over", "drift", "outliers", "throttling", "slow_rank", "slow_link", "outlier_run",
// "failed_check", "note".
// Within one run: the first steps behind the warm-up slower than the rest, a drift over the window, steps far
// off, GPU clocks held back, ranks that share a GPU, a rank for which the others wait
// (RunRecord::ranks), a slow host or link (RunRecord::links), a loss that diverged.
std::vector<Note> run_flags(const RunRecord& record);
// "2 ranks share one GPU: a check, not a speed"; empty if no GPU has several ranks. `ranks_per_gpu`: on the
// fullest GPU.
std::string shared_gpu_text(int ranks_per_gpu);
// Between the runs of one configuration: a run far off, a few runs far apart; behind them each run's own.
std::vector<Note> sample_flags(const Sample& sample);

// The parts that the flags of a run are made of, and how they write numbers.

// The window without its first fifth.
std::span<const double> settled(std::span<const double> window);

// `window`: step times behind the warm-up, seconds; `warmup`: steps left out before it.
std::optional<Note> warmup_flag(std::span<const double> window, std::int64_t warmup);
std::optional<Note> drift_flag(std::span<const double> window);
std::optional<Note> outliers_flag(std::span<const double> window);

// A step of over 5 times the median; `warmup`: iterations before the window.
std::optional<Note> stall_flag(std::span<const double> window, std::int64_t warmup);

// One flag for each host with slow ranks. `step_seconds`: the mean step of the window, as waits are means.
std::vector<Note> slow_rank_flags(const std::vector<RankRecord>& ranks, double step_seconds);

std::string whole_percent(double share);    // "9 %", "2.4 %", from 10 % on without a decimal
std::string duration_text(double seconds);  // "124 ms", "1.52 s"

}  // namespace plumb
