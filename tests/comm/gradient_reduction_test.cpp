#include "comm/gradient_reduction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "kernels/program/dependencies.h"
#include "kernels/program/describe.h"
#include "kernels/program/memory_plan.h"
#include "models/arcface.h"
#include "models/resnet50.h"
#include "tests/comm/small_program.h"
#include "tests/kernels/live_bytes.h"

namespace plumb {
namespace {

GradientReductionOptions with_buckets(std::size_t last, std::size_t others) {
  GradientReductionOptions options;
  options.buckets = {.last_bucket_bytes = last, .bucket_bytes = others};
  return options;
}

TEST(GradientReduction, OverlapDoesNotChangeWhatIsReduced) {
  GradientReductionOptions options = with_buckets(1000, 5000);
  const std::vector<SmallGradient> gradients(20, SmallGradient{900});
  const Program with = add_gradient_reduction(small_program(gradients), options);
  options.overlap = false;
  EXPECT_EQ(reduction_hash(with), reduction_hash(add_gradient_reduction(small_program(gradients), options)));
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

TEST(GradientReduction, HashSeesAGradientsBytesNameAndOrder) {
  const auto hash = [](const Program& program) {
    return reduction_hash(add_gradient_reduction(program, with_buckets(100, 1000)));
  };
  GradientReductionOptions in_fp16 = with_buckets(100, 1000);
  in_fp16.dtype = ReduceDType::fp16;
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
  EXPECT_NE(hash(program), reduction_hash(add_gradient_reduction(program, in_fp16)));
}

// Each gradient in exactly one collective, fused or not, identically on all ranks.
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

TEST(GradientReduction, ReducesEachGradientOnceBetweenBackwardAndUpdateAndCanBePlanned) {
  for (const GpuCase& one :
       {GpuCase{"cpu", Precision::fp32, true, false}, GpuCase{"h200"},
        GpuCase{"h200", Precision::fp16, false},
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

// Only an overflow of a shard's gradient needs a collective of its own.
TEST(GradientReduction, SumsTheOverflowWhereRanksShareOutClassCentersOnly) {
  const auto sums_overflow = [](const Graph& graph) {
    const Program program = add_gradient_reduction(
        describe(graph, {.precision = Precision::fp16, .scale_loss = true}, *find_target("h200")),
        {.world_size = 2});
    return std::ranges::count(program.instructions, "overflow.allreduce", &Instruction::name);
  };
  const auto faces = [](Head head) {
    return make_arcface(
        {.backbone = kMobileFaceNet, .batch = 2, .classes = 100, .head = head, .world_size = 2});
  };
  EXPECT_EQ(sums_overflow(make_resnet50({.batch = 2, .image_size = 64})), 0);
  EXPECT_EQ(sums_overflow(faces(Head::replicated)), 0);
  EXPECT_EQ(sums_overflow(faces(Head::sharded)), 1);
  EXPECT_EQ(sums_overflow(faces(Head::sampled)), 1);
}

}  // namespace
}  // namespace plumb
