// The exchange of a step over links that are only asked about, for a dry run.
#pragma once

#include <optional>
#include <span>

#include "bench/plan/step_plan.h"
#include "results/record/links.h"
#include "results/simulation/collective_cost.h"

namespace plumb {

struct PredictedExchange {
  Layout layout;
  Link link;           // of a node to others
  double seconds = 0;  // of all collectives, one after the other
  std::optional<double>
      exposed_seconds;  // in which compute waits; nothing: its head is shared out over ranks
};

// Seconds of all collectives of the program, one after the other.
double modeled_exchange_seconds(const Program& program, const CollectiveCost& cost);

// Rings as results/simulation/collective_cost.h has them, over `link` alone: links within a node count as
// faster. What is exposed is simulated, with `instruction_seconds` for each instruction of the plan.
PredictedExchange predict_exchange(const StepPlan& plan, std::span<const double> instruction_seconds,
                                   Layout layout, const Link& link);

}  // namespace plumb
