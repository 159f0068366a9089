// What gradient reduction makes of small Programs, against golden text (tests/data/plans): buckets, casts,
// overflow searches, a head's collectives, and which lane waits for which.
#include <gtest/gtest.h>

#include "base/text.h"
#include "comm/gradient_reduction.h"
#include "kernels/program/dependencies.h"
#include "kernels/program/memory_plan.h"
#include "tests/comm/small_program.h"
#include "tests/golden_text.h"

namespace plumb {
namespace {

using Kind = Collective::Kind;

std::string line_of(const Program& program, BufferId id) {
  const Buffer& buffer = program.buffers[id];
  const std::string place =
      buffer.view
          ? fmt::format(" in {} from {}", program.buffers[buffer.view->root].name, buffer.view->offset)
          : "";
  return fmt::format("buffer {} {} {}, {} bytes{}{}", buffer.name, name_of(buffer.role),
                     name_of(buffer.dtype), buffer.bytes, place, buffer.persistent ? ", kept" : "");
}

std::string line_of(const Program& program, const Instruction& instruction, const std::string& waits) {
  std::string line =
      fmt::format("op {} {} in {}:", instruction.name, name_of(instruction.phase), name_of(instruction.lane));
  for (const BufferUse& use : instruction.uses()) {
    const char* access = use.access == Access::read ? "<" : use.access == Access::write ? ">" : "<>";
    line += fmt::format(" {}{}", access, program.buffers[use.buffer].name);
  }
  if (const auto* collective = instruction.as<Collective>())
    line += fmt::format(", {} of {} {} in {}", name_of(collective->kind), collective->elements,
                        name_of(collective->dtype), program.buffers[collective->buffer].name);
  if (const auto* cast = instruction.as<Cast>())
    line += fmt::format(", times {}, {} bytes", cast->scale, instruction.work.bytes);
  return line + waits;
}

// Of the buffers that reduction makes or changes, and all instructions.
std::string text_of(const std::string& title, const Program& before,
                    const GradientReductionOptions& options) {
  const Program program = add_gradient_reduction(before, options);
  EXPECT_NO_THROW(plan_memory(program));
  std::string text = "== " + title + "\n";
  for (BufferId id = 0; id < program.buffers.size(); ++id)
    if (program.buffers[id].role == Role::gradient || id >= before.buffers.size())
      text += line_of(program, id) + "\n";
  const std::vector<std::vector<InstructionId>> waits = HappensBefore(program).waits();
  for (InstructionId id = 0; id < program.instructions.size(); ++id) {
    std::string after;
    for (const InstructionId wait : waits[id]) after += ", after " + program.instructions[wait].name;
    text += line_of(program, program.instructions[id], after) + "\n";
  }
  return text;
}

GradientReductionOptions limits(std::size_t last, std::size_t others, ReduceDType dtype = ReduceDType::same,
                                bool overlap = true) {
  GradientReductionOptions options;
  options.buckets = {.last_bucket_bytes = last, .bucket_bytes = others};
  options.dtype = dtype;
  options.world_size = 8;
  options.overlap = overlap;
  return options;
}

TEST(ReductionPlans, Buckets) {
  Program added = small_program({{100}, {100}}), read = added;
  recorded_uses(added.instructions[3]).push_back({1, Access::read_write});
  recorded_uses(read.instructions[3]).push_back({1, Access::read});
  expect_golden(
      "plans/reduced_buckets.txt",
      text_of("three gradients in two buckets", small_program({{100}, {100}, {100}}), limits(100, 200)) +
          text_of("without overlap", small_program({{100}, {100}, {100}}),
                  limits(100, 200, ReduceDType::same, false)) +
          text_of("of 64 bytes each or multiples", small_program({{100}, {4}, {64}}), limits(1000, 1000)) +
          text_of("dtypes never share a bucket",
                  small_program({{100}, {50, DType::f16}, {100}, {50, DType::f16}}), limits(10000, 10000)) +
          text_of("backward_input adds to a gradient", added, limits(1, 1)) +
          text_of("backward_input reads a rank's own gradient", read, limits(1, 1)) +
          text_of("no gradients", small_program({}), {}));
}

TEST(ReductionPlans, Dtypes) {
  using enum ReduceDType;
  const Program two = small_program({{100}, {100}}), halves = small_program({{128, DType::f16}});
  expect_golden("plans/reduced_dtypes.txt",
                text_of("fp32 in fp16", two, limits(100, 200, fp16)) +
                    text_of("without overlap", two, limits(100, 200, fp16, false)) +
                    text_of("fp32 in fp32", two, limits(100, 200, fp32)) +
                    text_of("fp16 in fp32", halves, limits(100, 200, fp32)) +
                    text_of("fp16 in fp16", halves, limits(100, 200, fp16)));
}

// Every rank finds an overflow in sums; of a shard's gradient, which only its rank has, all are told.
TEST(ReductionPlans, Overflows) {
  expect_golden(
      "plans/reduced_overflows.txt",
      text_of("all gradients are summed", scaled_program({{100}, {100}}), limits(100, 100)) +
          text_of("one is sharded", scaled_program({{100}, kSharded, {100}}), limits(1000, 1000)) +
          text_of("without overlap", scaled_program({{100}, kSharded, {100}}),
                  limits(100, 100, ReduceDType::same, false)) +
          text_of("all are sharded", scaled_program({kSharded, kSharded}), {}) +
          text_of("sharded, without a loss scale", small_program({kSharded, {100}}), {}) +
          text_of("sharded halves", small_program({{100, DType::f16, true}, {100}}),
                  limits(1000, 1000, ReduceDType::fp32)) +
          text_of("cast back before the search", scaled_program({{100, DType::f16}, {100, DType::f16}}),
                  limits(1000, 1000, ReduceDType::fp32)));
}

// Adds a head's collectives after forward (allgathers of features and labels) and after backward's first
// instruction (feature gradients), and the instruction that waits for the latter. Rank `rank` of 4.
Program head_program(const std::vector<SmallGradient>& gradients, int rank = 0) {
  Program program = scaled_program(gradients);
  const BufferId first = program.buffers.size();
  const auto own = static_cast<std::size_t>(rank) * 16;
  program.buffers.push_back({.name = "features", .dims = {16}, .bytes = 64});
  program.buffers.push_back({.name = "labels", .dtype = DType::i32, .dims = {16}, .bytes = 64});
  program.buffers.push_back({.name = "d_features", .dims = {16}, .bytes = 64});
  program.buffers.push_back(
      {.name = "own_features", .dims = {4}, .bytes = 16, .view = View{.root = first, .offset = own}});
  program.buffers.push_back(
      {.name = "own_d_features", .dims = {4}, .bytes = 16, .view = View{.root = first + 2, .offset = own}});
  const auto collective = [&](const std::string& name, BufferId buffer, Kind kind) {
    return Instruction{.name = name,
                       .operation = Collective{.kind = kind,
                                               .buffer = buffer,
                                               .elements = 16,
                                               .dtype = program.buffers[buffer].dtype,
                                               .parts = {buffer}},
                       .phase = Phase::reduce,
                       .lane = Lane::communication};
  };
  recorded_uses(program.instructions[0]) = {{first + 3, Access::write}, {first + 1, Access::write}};
  std::vector<AnyOperand>& backward = recorded_uses(program.instructions[1]);
  backward.insert(backward.end(),
                  {{first, Access::read}, {first + 1, Access::read}, {first + 2, Access::write}});
  recorded_uses(program.instructions[2]).push_back({first + 4, Access::read});
  program.instructions.insert(program.instructions.begin() + 2,
                              collective("scatter", first + 2, Kind::reduce_scatter_sum));
  program.instructions.insert(
      program.instructions.begin() + 1,
      {collective("features", first, Kind::allgather), collective("labels", first + 1, Kind::allgather)});
  return program;
}

TEST(ReductionPlans, Heads) {
  const Program program = head_program({{100}, kSharded});
  expect_golden("plans/reduced_heads.txt",
                text_of("a head", program, {}) +
                    text_of("without overlap", program, limits(1000, 1000, ReduceDType::same, false)));
}

// Parts of ranks lie elsewhere, and a shard may have more rows.
TEST(ReductionPlans, OfHeadsHaveOneHashOnAllRanks) {
  const auto hash = [](int rank, std::size_t bytes) {
    return reduction_hash(
        add_gradient_reduction(head_program({{100}, {.bytes = bytes, .sharded = true}}, rank), {}));
  };
  EXPECT_EQ(hash(0, 100), hash(3, 100));
  EXPECT_EQ(hash(0, 100), hash(0, 104));
}

TEST(ShardedGradient, MayBeReadByAnybody) {
  Program program = small_program({{100}, kSharded});
  recorded_uses(program.instructions[3]).push_back({1, Access::read});  // "backward_input"
  const BufferId state = 2, weight = 3, momentum = 4;
  program.instructions.back().operation = UpdateRows{.parameter = 1,
                                                     .master = weight,
                                                     .momentum = momentum,
                                                     .d_rows = 1,
                                                     .samples = state,
                                                     .sample_count = state,
                                                     .state = state,
                                                     .overflow = {}};
  EXPECT_NO_THROW(add_gradient_reduction(program, {}));
}

}  // namespace
}  // namespace plumb
