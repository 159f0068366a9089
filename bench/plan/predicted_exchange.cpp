#include "bench/plan/predicted_exchange.h"

#include <algorithm>

#include "bench/output/program_json.h"
#include "results/simulation/simulator.h"
#include "results/simulation/step_model.h"

namespace plumb {

double modeled_exchange_seconds(const Program& program, const CollectiveCost& cost) {
  double seconds = 0;
  for (const Instruction& instruction : program.instructions)
    if (const auto* one = instruction.as<Collective>())
      seconds += cost.seconds(name_of(one->kind),
                              static_cast<double>(one->elements) * static_cast<double>(bytes_of(one->dtype)));
  return seconds;
}

PredictedExchange predict_exchange(const StepPlan& plan, std::span<const double> instruction_seconds,
                                   Layout layout, const Link& link) {
  const Program& program = plan.program;
  const CollectiveCost cost({.between_hosts = link}, layout);
  PredictedExchange predicted{
      .layout = layout, .link = link, .seconds = modeled_exchange_seconds(program, cost)};
  if (std::ranges::any_of(program.buffers, &Buffer::sharded)) return predicted;
  const StepModel step =
      step_model(program_json(program, plan.memory), instruction_seconds, "the program of a dry run");
  predicted.exposed_seconds = simulate(step, [&](const StepCollective& one) {
                                return cost.seconds(one.kind, one.bytes);
                              }).exposed_seconds;
  return predicted;
}

}  // namespace plumb
