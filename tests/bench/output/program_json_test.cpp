#include "bench/output/program_json.h"

#include <gtest/gtest.h>

#include "results/record/program_format.h"

namespace plumb {
namespace {

Program small_program() {
  Program program;
  program.buffers = {{.name = "bucket", .role = Role::gradient, .dims = {4}, .bytes = 16},
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
  program.instructions = {compute, reduce};
  return program;
}

MemoryPlan small_plan() {
  MemoryPlan plan;
  plan.offsets = {4096, 4104};
  plan.arena_bytes = 8192;
  return plan;
}

TEST(ProgramJson, HoldsBuffersStepsWorkAndCollectives) {
  const nlohmann::ordered_json json = program_json(small_program(), small_plan());
  EXPECT_EQ(json.at("format"), kProgramFormat);
  EXPECT_EQ(json.at("arena_bytes"), 8192);
  EXPECT_EQ(json.at("buffers")[1].at("view").dump(), R"({"of":0,"offset":8})");
  EXPECT_EQ(json.at("buffers")[1].at("offset"), 4104);
  EXPECT_EQ(json.at("buffers")[1].at("persistent"), true);
  EXPECT_FALSE(json.at("buffers")[0].contains("persistent"));
  const auto& instruction = json.at("ops")[0];
  EXPECT_EQ(instruction.at("kind"), "softmax_loss");
  EXPECT_EQ(instruction.at("uses").size(), 4U);
  EXPECT_EQ(instruction.at("uses")[1].dump(), R"({"operand":"labels","buffer":0,"access":"r"})");
  EXPECT_EQ(instruction.at("uses")[2].dump(), R"({"operand":"d_logits","buffer":1,"access":"w"})");
  EXPECT_EQ(instruction.at("uses")[3].dump(), R"({"operand":"state","buffer":0,"access":"rw"})");
  EXPECT_EQ(instruction.at("lane"), "compute");
  EXPECT_EQ(instruction.at("macs"), 7);
  EXPECT_EQ(instruction.at("bytes"), 9);
  EXPECT_FALSE(instruction.contains("collective"));
  EXPECT_EQ(json.at("ops")[1].at("collective").at("elements"), 4);
  EXPECT_EQ(json.at("ops")[1].at("lane"), "communication");
}

TEST(ProgramJson, TellsTheKindOfACollectiveAndWhatIsSharded) {
  Program program = small_program();
  std::get<Collective>(program.instructions[1].operation).kind = Collective::Kind::reduce_scatter_sum;
  program.buffers[1].sharded = true;
  const nlohmann::ordered_json json = program_json(program, small_plan());
  EXPECT_EQ(json.at("ops")[1].at("collective").at("kind"), "reduce_scatter_sum");
  EXPECT_EQ(json.at("buffers")[1].at("sharded"), true);
  EXPECT_FALSE(json.at("buffers")[0].contains("sharded"));
  EXPECT_EQ(program_json(small_program(), small_plan()).at("ops")[1].at("collective").at("kind"),
            "allreduce_sum");
}

}  // namespace
}  // namespace plumb
