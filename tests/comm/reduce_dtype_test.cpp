#include <gtest/gtest.h>

#include <algorithm>

#include "comm/gradient_reduction.h"
#include "kernels/program/dependencies.h"
#include "kernels/program/memory_plan.h"
#include "tests/comm/small_program.h"

namespace plumb {
namespace {

using Names = std::vector<std::string>;

GradientReductionOptions options_for(ReduceDType dtype) {
  GradientReductionOptions options;
  options.buckets = {.last_bucket_bytes = 100, .bucket_bytes = 200};
  options.dtype = dtype;
  return options;
}

TEST(ReduceDType, Fp16CastsIntoAStagingBufferAndBackBeforeTheFirstUpdate) {
  const Program program =
      add_gradient_reduction(small_program({{100}, {100}, {100}}), options_for(ReduceDType::fp16));
  EXPECT_EQ(instruction_names(program),
            (Names{"forward", "backward2", "backward1", "bucket0.cast", "bucket0.allreduce", "backward0",
                   "bucket1.cast", "bucket1.allreduce", "backward_input", "bucket0.cast_back",
                   "bucket1.cast_back", "update0", "update1", "update2"}));
}

TEST(ReduceDType, WithoutOverlapCastsComeLateToo) {
  GradientReductionOptions options = options_for(ReduceDType::fp16);
  options.overlap = false;
  const Program program = add_gradient_reduction(small_program({{100}, {100}}), options);
  EXPECT_EQ(instruction_names(program),
            (Names{"forward", "backward1", "backward0", "backward_input", "bucket0.cast", "bucket0.allreduce",
                   "bucket1.cast", "bucket1.allreduce", "bucket0.cast_back", "bucket1.cast_back", "update0",
                   "update1"}));
}

TEST(ReduceDType, Fp16ReducesTheStagingBuffer) {
  const Program program =
      add_gradient_reduction(small_program({{100}, {100}}), options_for(ReduceDType::fp16));
  const auto& collective = std::get<Collective>(instruction_named(program, "bucket0.allreduce").operation);
  EXPECT_EQ(collective.dtype, DType::f16);
  EXPECT_EQ(collective.elements, 128u / 4);
  const Buffer& staging = program.buffers.at(collective.buffer);
  EXPECT_EQ(staging.name, "bucket0.staging");
  EXPECT_EQ(staging.dtype, DType::f16);
  EXPECT_EQ(staging.bytes, 128u / 2);
  ASSERT_EQ(collective.parts.size(), 1u);
  EXPECT_EQ(collective.parts[0].buffer, collective.buffer);
  EXPECT_EQ(collective.parts[0].access(), Access::read_write);
}

// Makes the fp16 sum the mean, so that it overflows no earlier.
TEST(ReduceDType, Fp16SumsAreDividedByTheWorldSizeBeforeAndMultipliedAfter) {
  GradientReductionOptions options = options_for(ReduceDType::fp16);
  options.world_size = 8;
  const Program program = add_gradient_reduction(small_program({{100}}), options);
  EXPECT_EQ(std::get<Cast>(instruction_named(program, "bucket0.cast").operation).scale, 0.125);
  EXPECT_EQ(std::get<Cast>(instruction_named(program, "bucket0.cast_back").operation).scale, 8);
}

TEST(ReduceDType, CastsGoBetweenBucketAndStaging) {
  const Program program = add_gradient_reduction(small_program({{100}}), options_for(ReduceDType::fp16));
  const Instruction& cast = instruction_named(program, "bucket0.cast");
  const Instruction& back = instruction_named(program, "bucket0.cast_back");
  const BufferId bucket = root_of(program, 0);
  const BufferId staging = collectives_of(program).at(0).buffer;
  ASSERT_TRUE(cast.as<Cast>() && back.as<Cast>());
  EXPECT_EQ(cast.as<Cast>()->from, bucket);
  EXPECT_EQ(cast.as<Cast>()->into, staging);
  EXPECT_EQ(back.as<Cast>()->from, staging);
  EXPECT_EQ(back.as<Cast>()->into, bucket);
  for (const Instruction* instruction : {&cast, &back}) {
    EXPECT_EQ(instruction->lane, Lane::compute);
    EXPECT_DOUBLE_EQ(instruction->work.bytes, 128 + 64);
  }
}

TEST(ReduceDType, UpdateReadsOnlyWhatIsCastBack) {
  const Program program = add_gradient_reduction(small_program({{100}}), options_for(ReduceDType::fp16));
  const HappensBefore happens_before(program);
  const Names names = instruction_names(program);
  const auto index = [&](const std::string& name) {
    return static_cast<InstructionId>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  EXPECT_TRUE(happens_before(index("backward0"), index("bucket0.cast")));
  EXPECT_TRUE(happens_before(index("bucket0.cast"), index("bucket0.allreduce")));
  EXPECT_TRUE(happens_before(index("bucket0.allreduce"), index("bucket0.cast_back")));
  EXPECT_TRUE(happens_before(index("bucket0.cast_back"), index("update0")));
  EXPECT_NO_THROW(plan_memory(program));
}

TEST(ReduceDType, TheGradientsOwnDtypeNeedsNoStaging) {
  const Program same = add_gradient_reduction(small_program({{100}}), options_for(ReduceDType::same));
  const Program fp32 = add_gradient_reduction(small_program({{100}}), options_for(ReduceDType::fp32));
  EXPECT_EQ(instruction_names(same), instruction_names(fp32));
  EXPECT_EQ(same.buffers.size(), fp32.buffers.size());
  const Program half =
      add_gradient_reduction(small_program({{100, DType::f16}}), options_for(ReduceDType::fp16));
  EXPECT_EQ(instruction_names(half), instruction_names(same));
}

TEST(ReduceDType, Fp32WidensF16Gradients) {
  const Program program =
      add_gradient_reduction(small_program({{128, DType::f16}}), options_for(ReduceDType::fp32));
  const Collective collective = collectives_of(program).at(0);
  EXPECT_EQ(collective.dtype, DType::f32);
  EXPECT_EQ(collective.elements, 64u);
  EXPECT_EQ(program.buffers.at(collective.buffer).bytes, 256u);
}

TEST(ReduceDType, HashSeesTheDtypeAndStagedGradients) {
  const auto hash = [](const Program& program, ReduceDType dtype) {
    return reduction_hash(add_gradient_reduction(program, options_for(dtype)));
  };
  const Program program = small_program({{100}, {100}});
  Program other = program;
  other.buffers[1].bytes = 104;
  EXPECT_NE(hash(program, ReduceDType::same), hash(program, ReduceDType::fp16));
  EXPECT_NE(hash(program, ReduceDType::fp16), hash(other, ReduceDType::fp16));
}

}  // namespace
}  // namespace plumb
