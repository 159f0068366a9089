#include "comm/gradient_reduction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "kernels/program/dependencies.h"
#include "kernels/program/describe.h"
#include "kernels/program/memory_plan.h"
#include "models/resnet50.h"
#include "tests/comm/resnet50_program.h"
#include "tests/comm/small_program.h"
#include "tests/kernels/live_bytes.h"

namespace plumb {
namespace {

using Names = std::vector<std::string>;

GradientReductionOptions limits(std::size_t last, std::size_t others) {
  GradientReductionOptions options;
  options.buckets = {.last_bucket_bytes = last, .bucket_bytes = others};
  return options;
}

TEST(GradientReduction, StepStandsAfterTheLastWriterOfItsLastGradient) {
  const Program program = add_gradient_reduction(small_program({{100}, {100}, {100}}), limits(100, 200));
  EXPECT_EQ(instruction_names(program),
            (Names{"forward", "backward2", "backward1", "bucket0.allreduce", "backward0", "bucket1.allreduce",
                   "backward_input", "update0", "update1", "update2"}));
}

TEST(GradientReduction, WithoutOverlapAllStandAfterTheLastBackwardStep) {
  GradientReductionOptions options = limits(100, 200);
  options.overlap = false;
  const Program program = add_gradient_reduction(small_program({{100}, {100}, {100}}), options);
  EXPECT_EQ(instruction_names(program),
            (Names{"forward", "backward2", "backward1", "backward0", "backward_input", "bucket0.allreduce",
                   "bucket1.allreduce", "update0", "update1", "update2"}));
}

TEST(GradientReduction, OverlapDoesNotChangeWhatIsReduced) {
  GradientReductionOptions options = limits(1000, 5000);
  const std::vector<SmallGradient> gradients(20, SmallGradient{900});
  const Program with = add_gradient_reduction(small_program(gradients), options);
  options.overlap = false;
  EXPECT_EQ(reduction_hash(with), reduction_hash(add_gradient_reduction(small_program(gradients), options)));
}

TEST(GradientReduction, StepDeclaresLanePhaseAndEveryGradient) {
  const Program program = add_gradient_reduction(small_program({{100}, {4}}), limits(1000, 1000));
  const Instruction& instruction = instruction_named(program, "bucket0.allreduce");
  EXPECT_EQ(instruction.phase, Phase::reduce);
  EXPECT_EQ(instruction.lane, Lane::communication);
  const std::vector<BufferUse> uses = instruction.uses();
  ASSERT_TRUE(instruction.as<Collective>());
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].buffer, 1u);
  EXPECT_EQ(uses[1].buffer, 0u);
  for (const BufferUse& use : uses) EXPECT_EQ(use.access, Access::read_write);
}

TEST(GradientReduction, GradientsAreViewsAtMultiplesOf64Bytes) {
  const Program program = add_gradient_reduction(small_program({{100}, {4}, {64}}), limits(1000, 1000));
  const BufferId root = root_of(program, 0);
  const Buffer& bucket = program.buffers[root];
  EXPECT_EQ(bucket.name, "bucket0");
  EXPECT_EQ(bucket.role, Role::gradient);
  EXPECT_TRUE(bucket.persistent);
  EXPECT_EQ(bucket.bytes, 64u + 64u + 128u);
  const std::size_t offsets[] = {128, 64, 0};
  for (BufferId id = 0; id < 3; ++id) {
    ASSERT_TRUE(program.buffers[id].view);
    EXPECT_EQ(program.buffers[id].view->root, root);
    EXPECT_EQ(program.buffers[id].view->offset, offsets[id]);
  }
  const std::vector<Collective> collectives = collectives_of(program);
  ASSERT_EQ(collectives.size(), 1u);
  EXPECT_EQ(collectives[0].buffer, root);
  EXPECT_EQ(collectives[0].elements, 256u / 4);
}

TEST(GradientReduction, DtypesNeverShareABucket) {
  const Program program = add_gradient_reduction(
      small_program({{100}, {50, DType::f16}, {100}, {50, DType::f16}}), limits(10000, 10000));
  const std::vector<Collective> collectives = collectives_of(program);
  ASSERT_EQ(collectives.size(), 2u);
  EXPECT_EQ(collectives[0].dtype, DType::f16);  // gradient 1 precedes gradient 0
  EXPECT_EQ(collectives[1].dtype, DType::f32);
  for (BufferId id = 0; id < 4; ++id) {
    EXPECT_EQ(program.buffers[root_of(program, id)].dtype, program.buffers[id].dtype);
  }
}

TEST(GradientReduction, LastWriterCountsIfThereAreSeveral) {
  Program program = small_program({{100}, {100}});
  recorded_uses(program.instructions[3])
      .push_back({1, Access::read_write});  // "backward_input" adds to gradient 1
  EXPECT_EQ(program.instructions[3].name, "backward_input");
  EXPECT_EQ(instruction_names(add_gradient_reduction(program, limits(1, 1))),
            (Names{"forward", "backward1", "backward0", "bucket0.allreduce", "backward_input",
                   "bucket1.allreduce", "update0", "update1"}));
}

// A block's end without its convolution's output reads the sum that is its norm's bias's gradient.
TEST(GradientReduction, BackwardReadsARanksOwnGradientBeforeItIsReduced) {
  Program program = small_program({{100}, {100}});
  recorded_uses(program.instructions[3]).push_back({1, Access::read});
  EXPECT_EQ(instruction_names(add_gradient_reduction(program, limits(1, 1))),
            (Names{"forward", "backward1", "backward0", "bucket0.allreduce", "backward_input",
                   "bucket1.allreduce", "update0", "update1"}));
}

TEST(GradientReduction, RefusesAGradientThatNoStepWrites) {
  Program program = small_program({{100}, {100}});
  recorded_uses(program.instructions[1]).clear();
  EXPECT_THROW(add_gradient_reduction(program, {}), Error);
}

TEST(GradientReduction, RefusesToRunTwice) {
  const Program once = add_gradient_reduction(small_program({{100}}), {});
  EXPECT_THROW(add_gradient_reduction(once, {}), Error);
}

TEST(GradientReduction, AProgramWithoutGradientsStaysAsItIs) {
  EXPECT_EQ(instruction_names(add_gradient_reduction(small_program({}), {})),
            (Names{"forward", "backward_input"}));
}

TEST(GradientReduction, HashSeesAGradientsBytesNameAndOrder) {
  const auto hash = [](const Program& program) {
    return reduction_hash(add_gradient_reduction(program, limits(100, 1000)));
  };
  const Program program = small_program({{100}, {100}, {100}});
  Program other_bytes = program, other_name = program, other_order = program;
  other_bytes.buffers[1].bytes = 104;  // the bucket's size is unchanged
  other_name.buffers[1].name = "another";
  other_order.instructions[2].operation = program.instructions[3].operation;
  other_order.instructions[3].operation = program.instructions[2].operation;
  EXPECT_EQ(hash(program), hash(program));
  EXPECT_NE(hash(program), hash(other_bytes));
  EXPECT_NE(hash(program), hash(other_name));
  EXPECT_NE(hash(program), hash(other_order));
}

TEST(GradientReduction, OfResNet50HoldsEachGradientInExactlyOneBucket) {
  const Program before = resnet50_program();
  const Program program = add_gradient_reduction(before, {});
  std::set<BufferId> reduced;
  std::size_t uses = 0, bytes = 0;
  for (const Collective& collective : collectives_of(program)) {
    for (BufferId part : collective.parts) {
      reduced.insert(part);
      bytes += program.buffers[part].bytes;
      ++uses;
    }
  }
  EXPECT_EQ(uses, 161u);
  EXPECT_EQ(reduced.size(), 161u);
  EXPECT_EQ(bytes, 25557032u * 4);
}

TEST(GradientReduction, OfResNet50WaitsForWritersAndUpdatesWaitForIt) {
  const Program program = add_gradient_reduction(resnet50_program(), {});
  const HappensBefore happens_before(program);
  std::size_t checked = 0;
  for (InstructionId reduce = 0; reduce < program.instructions.size(); ++reduce) {
    const auto* collective = program.instructions[reduce].as<Collective>();
    if (!collective) continue;
    for (BufferId reduced : collective->parts) {
      for (InstructionId instruction = 0; instruction < program.instructions.size(); ++instruction) {
        for (const BufferUse& use : program.instructions[instruction].uses()) {
          if (use.buffer != reduced || instruction == reduce) continue;
          EXPECT_TRUE(use.writes() ? happens_before(instruction, reduce)
                                   : happens_before(reduce, instruction));
          ++checked;
        }
      }
    }
  }
  EXPECT_EQ(checked, 161u * 2);
}

TEST(GradientReduction, OfResNet50CanBePlanned) {
  const Program program = add_gradient_reduction(resnet50_program(), {});
  const MemoryPlan plan = plan_memory(program);
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const std::optional<View>& view = program.buffers[id].view;
    if (!view) continue;
    EXPECT_EQ(plan.offsets[id], plan.offsets[view->root] + view->offset);
  }
}

// GPU Programs: each gradient in exactly one collective, fused or not, identically on all ranks.
struct GpuCase {
  std::string target;
  Precision precision = Precision::fp16;
  bool fuse = true, scale_loss = true;
  ReduceDType dtype = ReduceDType::same;
  bool block_ends = true;  // without their convolution's output
};
Program reduced_gpu_program(const GpuCase& one) {
  DescribeOptions options{.precision = one.precision,
                          .load_batch_every_step = true,
                          .fuse = one.fuse,
                          .scale_loss = one.scale_loss};
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  for (std::size_t op = 0; !one.block_ends && op < graph.ops.size(); ++op)
    options.plain.push_back({op, FusedPattern::product_norm, "to compare"});
  GradientReductionOptions reduction;
  reduction.dtype = one.dtype;
  reduction.world_size = 4;
  return add_gradient_reduction(describe(graph, options, *find_target(one.target)), reduction);
}

TEST(GradientReduction, OfGpuProgramsReducesEachGradientOnceBetweenBackwardAndUpdateAndCanBePlanned) {
  for (const GpuCase& one :
       {GpuCase{"h200"}, GpuCase{"h200", Precision::fp16, false},
        GpuCase{"h200", Precision::fp16, true, true, ReduceDType::fp32},
        GpuCase{"h200", Precision::bf16, true, false}, GpuCase{"a100-80gb"},
        GpuCase{"a100-80gb", Precision::tf32, true, false},
        GpuCase{"v100-16gb", Precision::fp32, true, false, ReduceDType::fp16}, GpuCase{"v100-16gb"}}) {
    const Program program = reduced_gpu_program(one);
    std::vector<int> collectives(program.buffers.size(), 0);  // by root
    std::vector<InstructionId> first(program.buffers.size(), program.instructions.size());
    std::vector<InstructionId> last(program.buffers.size(), 0);
    for (InstructionId id = 0; id < program.instructions.size(); ++id) {
      const Instruction& instruction = program.instructions[id];
      const auto* collective = instruction.as<Collective>();
      if (!collective && !instruction.as<Cast>()) continue;
      if (collective) ++collectives[root_of(program, collective->parts.at(0))];
      for (const BufferUse& use : instruction.uses()) {
        const BufferId root = root_of(program, use.buffer);
        first[root] = std::min(first[root], id);
        last[root] = id;
      }
    }
    const HappensBefore happens_before(program);
    for (InstructionId id = 0; id < program.instructions.size(); ++id) {
      const Instruction& instruction = program.instructions[id];
      if (instruction.phase == Phase::reduce) continue;
      for (const BufferUse& use : instruction.uses()) {
        if (program.buffers[use.buffer].role != Role::gradient) continue;
        const BufferId root = root_of(program, use.buffer);
        EXPECT_TRUE(instruction.phase == Phase::update ? happens_before(last[root], id)
                                                       : happens_before(id, first[root]))
            << one.target << ", " << instruction.name << ", " << program.buffers[use.buffer].name;
      }
    }
    std::size_t gradients = 0;
    for (BufferId id = 0; id < program.buffers.size(); ++id) {
      const Buffer& buffer = program.buffers[id];
      if (buffer.role == Role::overflow) {
        EXPECT_EQ(collectives[id], 0);  // detected in the sums, identically on all ranks
      }
      if (buffer.role != Role::gradient || !buffer.view) continue;
      ++gradients;
      if (one.dtype == ReduceDType::same) {
        EXPECT_EQ(collectives[root_of(program, id)], 1) << buffer.name;
      }
    }
    EXPECT_EQ(gradients, 161u);
    EXPECT_GE(plan_memory(program).arena_bytes, largest_live_bytes(program));
  }
}

TEST(GradientReduction, IsTheSameWhateverIsFused) {
  for (const std::string target : {"h200", "a100-80gb"}) {
    GpuCase fused{target}, plain{target};
    fused.block_ends = false;
    plain.fuse = false;
    EXPECT_NE(reduced_gpu_program(fused).instructions.size(), reduced_gpu_program(plain).instructions.size());
    EXPECT_EQ(reduction_hash(reduced_gpu_program(fused)), reduction_hash(reduced_gpu_program(plain)))
        << target;
  }
}

// Where blocks end without their convolution's output, the gradients of shortcuts' norms come earlier.
TEST(GradientReduction, OfBlockEndsHasOtherPlacesForGradientsInTheSameBuckets) {
  const auto collectives = [](const GpuCase& one) {
    const Program program = reduced_gpu_program(one);
    std::vector<std::pair<std::size_t, std::set<std::string>>> all;
    for (const Collective& collective : collectives_of(program)) {
      std::set<std::string> names;
      for (const BufferId part : collective.parts) names.insert(program.buffers[part].name);
      all.emplace_back(collective.elements, std::move(names));
    }
    return all;
  };
  for (const std::string target : {"h200", "a100-80gb"}) {
    GpuCase plain{target};
    plain.fuse = false;
    EXPECT_EQ(collectives({target}), collectives(plain)) << target;
  }
}

}  // namespace
}  // namespace plumb
