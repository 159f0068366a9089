// Invariants of every described Program on any device.
#include "kernels/program/describe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <sstream>

#include "kernels/program/dependencies.h"
#include "kernels/program/memory_plan.h"
#include "kernels/program/roofline.h"
#include "models/arcface.h"
#include "models/resnet50.h"
#include "tests/bench/expect_error.h"
#include "tests/kernels/live_bytes.h"

namespace plumb {
namespace {

struct Case {
  std::string target;
  Precision precision;
  bool fuse = true;
  bool scale_loss = false;
};
std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.target << " " << name_of(one.precision) << (one.fuse ? "" : " unfused")
             << (one.scale_loss ? " scaled" : "");
}
std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  std::ostringstream text;
  text << info.param;
  std::string name = text.str();
  std::replace_if(
      name.begin(), name.end(), [](char letter) { return letter == '-' || letter == ' '; }, '_');
  return name;
}

DescribeOptions options_of(const Case& one) {
  return {.precision = one.precision,
          .load_batch_every_step = true,
          .fuse = one.fuse,
          .scale_loss = one.scale_loss};
}

Program resnet50(const Case& one, std::int64_t batch, std::int64_t image_size = 224) {
  return describe(make_resnet50({.batch = batch, .image_size = image_size}), options_of(one),
                  *find_target(one.target));
}

class DescribedProgram : public testing::TestWithParam<Case> {
 protected:
  const Graph graph_ = make_resnet50({.batch = 2, .image_size = 64});
  const Program program_ = resnet50(GetParam(), 2, 64);

  std::vector<std::pair<const Instruction*, Access>> uses_of(BufferId id) const {
    std::vector<std::pair<const Instruction*, Access>> uses;
    for (const Instruction& instruction : program_.instructions) {
      for (const BufferUse& use : instruction.uses()) {
        if (use.buffer == id) uses.emplace_back(&instruction, use.access);
      }
    }
    return uses;
  }
};

TEST_P(DescribedProgram, WritesEachGradientOnceAndUpdatesEachParameterOnceAfterwards) {
  std::size_t gradients = 0, masters = 0;
  for (BufferId id = 0; id < program_.buffers.size(); ++id) {
    const Buffer& buffer = program_.buffers[id];
    if (buffer.role == Role::gradient) {
      ++gradients;
      auto uses = uses_of(id);
      // Where a block ends without its convolution's output, the sum of its gradient is also a factor.
      std::erase_if(uses, [](const auto& use) {
        return use.first->template as<ProductNormBackward>() && use.second == Access::read;
      });
      ASSERT_EQ(uses.size(), GetParam().scale_loss ? 3u : 2u) << buffer.name;
      EXPECT_EQ(uses[0].second, Access::write) << buffer.name;
      EXPECT_EQ(uses[0].first->phase, Phase::backward) << buffer.name;
      EXPECT_EQ(uses[1].second, Access::read) << buffer.name;
      EXPECT_EQ(uses.back().second, Access::read) << buffer.name;
      EXPECT_TRUE(uses.back().first->as<Update>()) << buffer.name;
    } else if (buffer.role == Role::parameter || buffer.role == Role::optimizer) {
      masters += buffer.role == Role::optimizer;
      const auto uses = uses_of(id);
      ASSERT_FALSE(uses.empty()) << buffer.name;
      for (const auto& [instruction, access] : uses) {
        const bool last = instruction == uses.back().first;
        EXPECT_EQ(instruction->as<Update>() != nullptr, last) << buffer.name << " in " << instruction->name;
        EXPECT_EQ(access != Access::read, last) << buffer.name << " in " << instruction->name;
      }
    }
  }
  EXPECT_EQ(gradients, graph_.parameters.size());
  EXPECT_EQ(masters, graph_.parameters.size());
}

// Without a convolution's output a block's end multiplies more: the input's channels with each other and with
// the factors of its gradient over all pixels, and both matrices with the weights.
TEST_P(DescribedProgram, CountsTheGraphsMacsThreeTimesButForTheImagesGradient) {
  double macs = 0, of_block_ends = 0;
  for (const Instruction& instruction : program_.instructions) {
    macs += instruction.work.macs;
    if (!instruction.as<ProductNormBackward>()) continue;
    const Conv& conv = std::get<Conv>(graph_.ops[instruction.op]);
    const Shape &in = graph_.values[conv.in].shape, &out = graph_.values[conv.out].shape;
    of_block_ends += 2 * static_cast<double>(in.c * in.c * (out.n * out.h * out.w + out.c));
  }
  const double expected = static_cast<double>(
      graph_.batch() * (3 * macs_per_image(graph_) - macs_per_image(graph_, graph_.ops[0])));
  EXPECT_DOUBLE_EQ(macs, expected + of_block_ends);
}

TEST_P(DescribedProgram, IsPlannedWithinFifteenPercentOfWhatIsLiveAtOnce) {
  for (std::int64_t batch : {8, 32, 128, 256}) {
    const Program program = resnet50(GetParam(), batch);
    const std::size_t planned = plan_memory(program).arena_bytes, live = largest_live_bytes(program);
    EXPECT_GE(planned, live) << "batch " << batch;
    EXPECT_LE(static_cast<double>(planned), 1.15 * static_cast<double>(live)) << "batch " << batch;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Devices, DescribedProgram,
    testing::Values(Case{"cpu", Precision::fp32}, Case{"v100-16gb", Precision::fp32},
                    Case{"v100-16gb", Precision::fp16, true, true}, Case{"a100-80gb", Precision::fp16},
                    Case{"a100-80gb", Precision::fp16, true, true}, Case{"h200", Precision::tf32},
                    Case{"h200", Precision::fp16}, Case{"h200", Precision::fp16, true, true},
                    Case{"h200", Precision::fp16, false, true}, Case{"h200", Precision::bf16}),
    name_of_case);

// Whether it is the line of a norm that finalizes its statistics itself, which uses it with that; backward of
// a block's end reads the mask.
bool is_line_of_one_pass(const Program& program, BufferId id) {
  return std::any_of(program.instructions.begin(), program.instructions.end(),
                     [&](const Instruction& instruction) {
                       const auto* apply = instruction.as<BatchNormApply>();
                       return apply && apply->finalize && apply->line() == id;
                     });
}

// Names tell instructions and buffers apart; every temporary is written before it is read, once except for
// sums and in place, and is read by another instruction; every gradient is written once.
void expect_all_written_and_read(const Program& program) {
  std::set<std::string> names;
  std::set<BufferId> written;  // roots
  std::vector<int> writes(program.buffers.size(), 0);
  std::vector<bool> is_read_last(program.buffers.size(), true);
  for (const Instruction& instruction : program.instructions) {
    EXPECT_TRUE(names.insert(instruction.name).second) << instruction.name;
    const auto uses = instruction.uses();
    for (const BufferUse& use : uses) {
      const BufferId root = root_of(program, use.buffer);
      EXPECT_TRUE(!use.reads() || program.buffers[root].persistent || written.contains(root))
          << instruction.name << " reads " << program.buffers[use.buffer].name;
      const auto reads_it = [&](const BufferUse& other) {
        return other.buffer == use.buffer && other.reads();
      };
      writes[use.buffer] += use.access == Access::write && std::ranges::none_of(uses, reads_it);
      is_read_last[use.buffer] = use.access == Access::read;
    }
    for (const BufferUse& use : uses)
      if (use.writes()) written.insert(root_of(program, use.buffer));
  }
  names.clear();
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    EXPECT_TRUE(names.insert(buffer.name).second) << buffer.name;
    if (buffer.role != Role::gradient && buffer.persistent) continue;
    EXPECT_EQ(writes[id], 1) << buffer.name;
    EXPECT_TRUE(is_read_last[id] || is_line_of_one_pass(program, id)) << buffer.name;
  }
}

TEST(Describe, MakesSoundProgramsForEveryGpuAndPrecision) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  expect_all_written_and_read(describe(graph, {.load_batch_every_step = true}, *find_target("cpu")));
  DeviceLimits limits = *find_target("h200");
  for (const int compute_capability : {70, 75, 80, 86, 89, 90, 100, 120})
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16})
      for (const bool fuse : {false, true})
        for (const bool everything_else : {false, true}) {
          SCOPED_TRACE("sm_" + std::to_string(compute_capability) + " " + std::string(name_of(precision)) +
                       (fuse ? " fused" : "") + (everything_else ? " loading, scaled" : ""));
          limits.compute_capability = compute_capability;
          expect_all_written_and_read(describe(graph,
                                               {.precision = precision,
                                                .load_batch_every_step = everything_else,
                                                .fuse = fuse,
                                                .scale_loss = everything_else},
                                               limits));
        }
}

TEST(Describe, TellsStepsAndBuffersOfFacesApart) {
  for (const Backbone backbone : {kIResNet50, kMobileFaceNet})
    for (const bool fp32_head : {false, true}) {
      const Graph graph =
          make_arcface({.backbone = backbone, .batch = 2, .image_size = 32, .embedding = 64, .classes = 100});
      const DescribeOptions options{.precision = Precision::fp16, .scale_loss = true, .fp32_head = fp32_head};
      std::set<std::string> names;
      for (const Instruction& instruction : describe(graph, options, *find_target("h200")).instructions)
        EXPECT_TRUE(names.insert(instruction.name).second) << instruction.name;
    }
}

}  // namespace
}  // namespace plumb
