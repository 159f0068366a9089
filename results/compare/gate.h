// The regression gate: are runs slower than those of a baseline, by more than is allowed?
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "results/analysis/configuration.h"
#include "results/compare/samples.h"
#include "results/record/fields.h"
#include "results/statistics/significance.h"

namespace plumb {

struct GateCriteria {
  double max_regression = 0.02;  // of the baseline's throughput
  bool allow_missing = false;    // cases of the baseline that weren't run are passed over
};

// A run and its figure, as JSON has them.
struct RunFigure {
  std::string origin;
  double images_per_second = 0;  // over all devices
  static void fields(auto& self, auto&& each) {
    each("origin", self.origin), each("images_per_second", self.images_per_second);
  }
};

struct GateCase {
  // cant_tell: no regression is shown, and these runs vary too much to have shown twice what is allowed.
  enum class Outcome { passed, cant_tell, regression, too_few, missing };

  Configuration configuration;                       // the baseline's
  std::vector<std::string> baseline_runs, new_runs;  // origins
  std::vector<double> baseline, figures;             // images/s, as many as runs
  Outcome outcome = Outcome::passed;
  std::string finding;  // a sentence without the case's name
  // 1 - shift_ratio(baseline, figures); negative: faster. Not the ratio of medians: of 7 runs that vary by
  // 0.8 % its error is 0.52 %, so that it falls short of 2 % in one of 36 slow-downs of 3 %; that of the
  // median over all pairs is 0.44 %, and it does so in one of 85.
  double slow_down = 0;
  double p = 1;  // one-sided: that the new runs tend to be slower
  // The smallest slow-down that these runs would have shown four times in five; infinite: none.
  double smallest_shown = 0;
  // For a missing case: the differences to the nearest new runs (the baseline first).
  std::vector<Difference> differences;
  // What the new runs were made with and on, other than the baseline: commit, libraries, hosts, ….
  std::vector<Difference> surroundings;

  bool is_judged() const { return outcome <= Outcome::regression; }
  static void fields(auto& self, auto&& each);
};

struct GateReport {
  GateCriteria criteria;
  std::vector<GateCase> cases;          // of the baseline, in its order
  std::vector<Configuration> only_new;  // run, but not in the baseline
  std::vector<std::string> notes;       // on samples whose runs are not alike

  std::size_t count(GateCase::Outcome outcome) const {
    return static_cast<std::size_t>(std::ranges::count(cases, outcome, &GateCase::outcome));
  }
  static void fields(auto& self, auto&& each);
};

// Keeps the `count` latest runs of each sample that began before any of `runs`; drops samples without any.
std::vector<Sample> latest_before(std::vector<Sample> baseline, const std::vector<Sample>& runs,
                                  std::size_t count);

// A case is a regression if the new runs are significantly slower and the estimate of the slow-down is above
// max_regression: a slow-down that matters and isn't chance. Throws Error(bad_data) if a configuration that
// is known in part fits several of the other side.
GateReport gate(const std::vector<Sample>& baseline, const std::vector<Sample>& runs,
                const GateCriteria& criteria = {});

// regression if any case is one; else bad_data if a case can't be judged (too few runs, missing without
// allow_missing) or none is left; else ok, also for cases that can't be told.
ExitCode gate_exit_code(const GateReport& report);
// One sentence: what the exit code stands for.
std::string gate_summary(const GateReport& report);

std::string gate_table(const GateReport& report);
// For a job's summary: the finding and a table in Markdown.
std::string gate_markdown(const GateReport& report);
Json gate_json(const GateReport& report);
extern const Document kGateDocument;
// JUnit's XML, as CI servers read it: a test case per case of the baseline; a regression is a failure, what
// can't be judged an error.
std::string gate_junit(const GateReport& report);

}  // namespace plumb
