#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "bench/plan/step_plan.h"
#include "tests/golden_text.h"

namespace plumb {
namespace {

StepPlan small_plan() {
  StepPlan plan;
  plan.program.buffers = {{.name = "bucket", .role = Role::gradient, .dims = {4}, .bytes = 16},
                          {.name = "weight.grad",
                           .role = Role::gradient,
                           .dims = {4},
                           .bytes = 16,
                           .persistent = true,
                           .view = View{0, 8}}};
  Instruction compute{.name = "loss",
                      .operation = SoftmaxCrossEntropy{.logits = 0, .labels = 0, .d_logits = 1, .state = 0},
                      .phase = Phase::backward,
                      .workspace_bytes = 5,
                      .work = {.macs = 7, .bytes = 9}};
  Instruction reduce{.name = "reduce.0",
                     .operation = Collective{.buffer = 0, .elements = 4, .parts = {1}},
                     .phase = Phase::reduce,
                     .lane = Lane::communication};
  plan.program.instructions = {compute, reduce};
  plan.memory.offsets = {4096, 4104};
  plan.memory.arena_bytes = 8192;
  return plan;
}

TEST(ProgramJson, HoldsBuffersOpsWorkAndCollectives) {
  StepPlan plan = small_plan();
  std::string text = program_json(plan).dump(1) + "\n";
  std::get<Collective>(plan.program.instructions[1].operation).kind = Collective::Kind::reduce_scatter_sum;
  plan.program.buffers[1].sharded = true;
  text += program_json(plan).dump(1) + "\n";
  expect_golden("tables/program.txt", text);
}

}  // namespace
}  // namespace plumb
