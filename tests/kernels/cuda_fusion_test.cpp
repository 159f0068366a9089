// Which fused engines a GPU's Program uses, and the traffic they save.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "kernels/program/memory_plan.h"
#include "kernels/program/roofline.h"
#include "tests/kernels/fused_resnet50.h"

namespace plumb::cuda {
namespace {

Program repeatable_resnet50(int compute_capability) {
  return resnet50(compute_capability, true, 2, 64, true);
}

std::map<std::string_view, int> kinds_of(const Program& program) {
  std::map<std::string_view, int> kinds;
  for (const Instruction& instruction : program.instructions) ++kinds[instruction.kind()];
  return kinds;
}

double megabytes_per_image(const Program& program, std::int64_t batch) {
  return roofline(program, gpu(90), Precision::fp16).bytes / static_cast<double>(batch) / 1e6;
}

TEST(Fusion, OnHopperOnlyNormsThatEndBlocksNeedAStepThatNormalizes) {
  const Program program = with_plain_ends(90);
  for (const Instruction& instruction : program.instructions) {
    if (instruction.as<BatchNormApply>()) {
      EXPECT_TRUE(instruction.name.ends_with(".bn3.forward")) << instruction.name;
    }
  }
  EXPECT_EQ(count_kind<BatchNormApply>(program), 16u);
  EXPECT_EQ(count_kind<BatchNormStatistics>(program), 0u);
}

TEST(Fusion, TheMaxPoolNormalisesTheFirstConvolutionsOutputOnEveryGpu) {
  for (const int compute_capability : {75, 80, 90}) {
    const Program program = resnet50(compute_capability);
    EXPECT_EQ(operands_of(program, "maxpool.forward"),
              (Operands{"in r conv1", "out w maxpool", "argmax w maxpool.argmax",
                        "scale_shift r bn1.scale_shift", "winners w maxpool.winners"}));
    EXPECT_FALSE(has_buffer(program, "bn1"));
  }
}

TEST(Fusion, TheFirstNormGoesBackThroughTheMaxPoolOnEveryGpu) {
  for (const int compute_capability : {75, 80, 90}) {
    for (const bool fuse : {false, true}) {
      const Program program = resnet50(compute_capability, fuse);
      EXPECT_FALSE(has_instruction(program, "maxpool.backward"));
      EXPECT_FALSE(has_buffer(program, "bn1.gradient_by.maxpool"));
      EXPECT_EQ(operands_of(program, "bn1.backward"),
                (Operands{"in r conv1", "winners r maxpool.winners", "argmax r maxpool.argmax",
                          "d_out r maxpool.gradient_by.layer1.0.downsample.0", "scale r bn1.weight",
                          "mean r bn1.mean", "inv_std r bn1.inv_std", "scale_shift r bn1.scale_shift",
                          "d_in w conv1.gradient_by.bn1", "d_scale w bn1.weight.gradient",
                          "d_bias w bn1.bias.gradient", "counters rw norm_counters",
                          "second_d_out r maxpool.gradient_by.layer1.0.conv1"}));
      // In tensors of conv1's size: in and d_in; a quarter of winners, half of that in argmax, and twice a
      // quarter of each d_out.
      const double size = 2.0 * 32 * 32 * 64 * 2;
      EXPECT_NEAR(instruction_named(program, "bn1.backward").work.bytes / size, 2 + 0.375 + 1, 0.02);
    }
  }
}

TEST(Fusion, InNchwTheMaxPoolHasABackwardOfItsOwn) {
  const Program program =
      plumb::describe(make_resnet50({.batch = 2, .image_size = 64}), {.layout = TensorLayout::nchw}, gpu(90));
  EXPECT_TRUE(has_instruction(program, "maxpool.backward"));
  EXPECT_TRUE(has_buffer(program, "bn1.gradient_by.maxpool"));
  EXPECT_FALSE(has_buffer(program, "maxpool.winners"));
  EXPECT_EQ(operand_of(program, "bn1.backward", "scale_shift"), "r bn1.scale_shift");
}

// Our own kernels still normalize shortcuts and the max pool's input on the way, sum gradients of blocks'
// ends, and end blocks without their convolution's output.
TEST(Fusion, WhereRunsAreToRepeatBitForBitOnlyOwnKernelsFuse) {
  auto plain = kinds_of(resnet50(90, false));
  for (const std::string_view kind :
       {ConvForward::kName, ConvBackwardData::kName, ConvBackwardWeights::kName, BatchNormStatistics::kName})
    plain[kind] -= 16 + 4;
  plain[BatchNormApply::kName] -= 16;
  plain[BatchNormBackward::kName] -= 12 + 16;
  plain.erase(BatchNormPairBackward::kName);
  plain[BatchNormBackwardApply::kName] = plain[BlockEndForward::kName] = 16;
  plain[MaskedGradient::kName] = 1;  // of the last block
  plain[SamplePixels::kName] = 4;
  plain[ChannelProducts::kName] = 2 * (16 + 4);
  for (const std::string_view kind :
       {ProductNormStatistics::kName, ProductNormBackward::kName, BlockEndBackwardData::kName})
    plain[kind] = 16 + 4;
  for (const int compute_capability : {80, 90, 100}) {
    const Program program = repeatable_resnet50(compute_capability);
    EXPECT_EQ(kinds_of(program), plain);
    EXPECT_EQ(count_with(program, &ConvForward::scale_shift), 0u);
    EXPECT_EQ(count_with(program, &ConvForward::sums), 0u);
    EXPECT_TRUE(has_buffer(program, "layer1.0.bn2"));
    EXPECT_FALSE(has_buffer(program, "bn1"));
  }
}

TEST(Fusion, BlackwellGathersStatisticsAndStoresEveryNorm) {
  const Program program = resnet50(100);
  EXPECT_EQ(count_with(program, &ConvForward::scale_shift), 0u);
  EXPECT_EQ(count_with(program, &ConvForward::sums), 53u - 16 - 4);
  EXPECT_EQ(count_kind<BatchNormApply>(program), 53u - 16 - 5);
  EXPECT_TRUE(has_buffer(program, "layer1.0.bn2"));
}

TEST(Fusion, ANormThatIsStoredFinalizesItsStatisticsItself) {
  const Program blackwell = resnet50(100);
  EXPECT_EQ(count_with(blackwell, &BatchNormApply::finalize), 53u - 16 - 5);
  EXPECT_EQ(count_kind<BatchNormFinalize>(blackwell), 1u) << "the max pool normalizes";
  EXPECT_EQ(
      operands_of(blackwell, "layer1.0.bn2.forward"),
      (Operands{"in r layer1.0.conv2", "sums r layer1.0.conv2.sums", "scale r layer1.0.bn2.weight",
                "bias r layer1.0.bn2.bias", "running_mean rw layer1.0.bn2.running_mean",
                "running_variance rw layer1.0.bn2.running_var", "scale_shift w layer1.0.bn2.scale_shift",
                "mean w layer1.0.bn2.mean", "inv_std w layer1.0.bn2.inv_std", "out w layer1.0.bn2",
                "out_sums w layer1.0.bn2.channel_sums", "counters rw norm_counters"}));
  const Program hopper = resnet50(90);
  EXPECT_EQ(count_with(hopper, &BatchNormApply::finalize), 15u + 1);
  EXPECT_EQ(count_kind<BatchNormFinalize>(hopper), 1u + 16) << "convolutions normalize, too";
}

TEST(Fusion, ANormWithoutAResidualMasksItsGradientByItsScaleAndShiftWhereNoEngineDoes) {
  for (const int compute_capability : {75, 80}) {
    const Program program = resnet50(compute_capability);
    EXPECT_EQ(count_kind<ConvNormBackwardData>(program), 0u);
    EXPECT_EQ(operand_of(program, "layer1.0.bn1.backward", "scale_shift"), "r layer1.0.bn1.scale_shift");
    EXPECT_FALSE(has_buffer(program, "layer1.0.bn1.mask"));
  }
}

TEST(Fusion, StepsReadAndWriteWhatTheirOperandsAreCalled) {
  const Program program = resnet50(90);
  EXPECT_EQ(operands_of(program, "layer1.0.conv2.forward"),
            (Operands{"in r layer1.0.conv1", "weight r layer1.0.conv2.weight.half", "out w layer1.0.conv2",
                      "scale_shift r layer1.0.bn1.scale_shift", "sums w layer1.0.conv2.sums"}));
  EXPECT_EQ(
      operands_of(program, "layer1.0.bn1.finalize"),
      (Operands{"sums r layer1.0.conv1.sums", "scale r layer1.0.bn1.weight", "bias r layer1.0.bn1.bias",
                "running_mean rw layer1.0.bn1.running_mean", "running_variance rw layer1.0.bn1.running_var",
                "scale_shift w layer1.0.bn1.scale_shift", "mean w layer1.0.bn1.mean",
                "inv_std w layer1.0.bn1.inv_std"}));
  EXPECT_EQ(
      operands_of(program, "layer1.0.conv2.backward_weights"),
      (Operands{"in r layer1.0.conv1", "d_out r layer1.0.conv2.gradient_by.layer1.0.bn2",
                "d_weight w layer1.0.conv2.weight.gradient", "scale_shift r layer1.0.bn1.scale_shift"}));
  EXPECT_EQ(
      operands_of(program, "layer1.0.conv2.backward_data"),
      (Operands{"d_out r layer1.0.conv2.gradient_by.layer1.0.bn2", "weight r layer1.0.conv2.weight.half",
                "norm_in r layer1.0.conv1", "bias r layer1.0.bn1.bias", "mean r layer1.0.bn1.mean",
                "inv_std r layer1.0.bn1.inv_std", "scale r layer1.0.bn1.weight",
                "d_activated w layer1.0.bn1.gradient_by.layer1.0.conv2",
                "d_scale w layer1.0.bn1.weight.gradient", "d_bias w layer1.0.bn1.bias.gradient",
                "coefficients w layer1.0.bn1.coefficients"}));
  EXPECT_EQ(operands_of(program, "layer1.0.bn1.backward"),
            (Operands{"d_activated r layer1.0.bn1.gradient_by.layer1.0.conv2", "in r layer1.0.conv1",
                      "coefficients r layer1.0.bn1.coefficients",
                      "d_in w layer1.0.conv1.gradient_by.layer1.0.bn1"}));
}

TEST(Fusion, ScaleAndShiftHaveTheDtypeOfActivationsWhereAConvolutionReadsThem) {
  for (const int compute_capability : {80, 90, 100}) {
    const Program program = resnet50(compute_capability);
    for (const Instruction& instruction : program.instructions) {
      for (const BufferUse& use : instruction.uses()) {
        const Buffer& buffer = program.buffers[use.buffer];
        if (!use.reads() || !buffer.name.ends_with(".scale_shift")) continue;
        if (instruction.as<ConvForward>() || instruction.as<ConvBackwardWeights>()) {
          EXPECT_EQ(buffer.dtype, DType::f16) << instruction.name;
        } else if (instruction.as<BatchNormApply>()) {
          EXPECT_EQ(buffer.dtype, DType::f32) << instruction.name;
        }
      }
    }
  }
}

// MB of memory traffic per image. A count by hand of ResNet-50 in fp16 gives 344 for plain convolutions with
// fused norm, add and ReLU, from which shortcuts and the max pool save 14 here, and 261 for complete
// fusion that stores the outputs of the convolutions that end blocks. The Program with these outputs moves
// more than 261: our own kernel reads each end's mask, and the last end's sums are a separate pass. Without
// them a block's end saves 20 tensors of its convolution's input, 2.7 in all blocks, on Hopper: 17 passes
// become 12 forward, 27 become 12 backward. The four shortcuts' convolutions save 22 MB more in the same way.
TEST(Fusion, SavesThePassesThatItSays) {
  constexpr std::int64_t kBatch = 256;
  const auto megabytes = [](int compute_capability, bool fuse) {
    return megabytes_per_image(resnet50(compute_capability, fuse, kBatch, 224), kBatch);
  };
  EXPECT_NEAR(megabytes(90, false), 329, 0.005 * 329);
  EXPECT_NEAR(megabytes(100, true), 204, 0.005 * 204);
  EXPECT_NEAR(megabytes(80, true), 196, 0.005 * 196);
  EXPECT_NEAR(megabytes(90, true), 192.4, 0.005 * 192.4);
  EXPECT_NEAR(megabytes_per_image(with_stored_outputs(100, kBatch, 224), kBatch), 285, 0.005 * 285);
  EXPECT_NEAR(megabytes_per_image(with_stored_outputs(80, kBatch, 224), kBatch), 272, 0.005 * 272);
  EXPECT_NEAR(megabytes_per_image(with_stored_outputs(90, kBatch, 224), kBatch), 265, 0.005 * 265);
  EXPECT_NEAR(megabytes_per_image(with_plain_sums(90, kBatch, 224), kBatch), 276, 0.005 * 276);
  EXPECT_NEAR(megabytes_per_image(with_plain_ends(80, kBatch, 224), kBatch), 293, 0.005 * 293);
  EXPECT_NEAR(megabytes_per_image(with_plain_ends(90, kBatch, 224), kBatch), 286, 0.005 * 286);
}

// Outside convolutions, a stored norm is read for its statistics, read for normalization, and written; a
// fused norm needs none of these passes.
TEST(Fusion, CountsThePassesOfEachStep) {
  const Program plain = resnet50(90, false), fused = with_plain_ends(90), ampere = with_plain_sums(80),
                summed = with_stored_outputs(80);
  const double size = 2.0 * 16 * 16 * 64 * 2;  // bytes of layer1.0.conv1's output
  const auto passes = [&](const Program& program, const std::string& instruction) {
    return instruction_named(program, instruction).work.bytes / size;
  };
  EXPECT_NEAR(passes(plain, "layer1.0.bn1.statistics"), 1, 0.05);
  EXPECT_NEAR(passes(plain, "layer1.0.bn1.forward"), 2, 0.05);
  EXPECT_NEAR(passes(plain, "layer1.0.bn1.backward"), 5, 0.05);
  EXPECT_NEAR(passes(ampere, "layer1.0.bn1.backward"), 5, 0.05);
  EXPECT_NEAR(passes(fused, "layer1.0.bn1.backward"), 3, 0.05);
  EXPECT_NEAR(passes(fused, "layer1.0.bn1.finalize"), 0, 0.05);
  EXPECT_NEAR(passes(plain, "layer1.0.conv2.backward_data"), 3.13, 0.01);  // with 74 kB of weights
  EXPECT_NEAR(passes(fused, "layer1.0.conv2.backward_data") - passes(plain, "layer1.0.conv2.backward_data"),
              1,
              0.05);  // the norm's input
  // The end of a block with a shortcut: 4 tensors and the mask read, 3 of that size read again, 3 written.
  EXPECT_NEAR(passes(plain, "layer1.0.bn3.backward"), 4 * (10 + 1.0 / 16), 0.3);
  EXPECT_NEAR(passes(plain, "layer1.1.bn3.backward"), 4 * (7 + 1.0 / 16), 0.15);
  // A block's end reads in and the residual, writes out and mask.
  EXPECT_NEAR(passes(plain, "layer1.1.bn3.forward"), 4 * (3 + 1.0 / 16), 0.15);
  // A completed gradient: the convolution reads the other part and the mask. The end's norm reads 2 tensors
  // and those again, and writes one; with a shortcut 3, those again, and 2.
  EXPECT_NEAR(passes(ampere, "layer1.2.conv1.backward_data") - passes(plain, "layer1.2.conv1.backward_data"),
              4 * (1 + 1.0 / 16), 0.05);
  EXPECT_NEAR(passes(ampere, "layer1.1.bn3.backward"), 4 * 5, 0.15);
  EXPECT_NEAR(passes(ampere, "layer1.0.bn3.backward"), 4 * 8, 0.3);
  // With sums it reads the norm's input, too, and the norm only reads both tensors once and writes one.
  EXPECT_NEAR(passes(summed, "layer1.2.conv1.backward_data") - passes(ampere, "layer1.2.conv1.backward_data"),
              4, 0.15);
  EXPECT_NEAR(passes(summed, "layer1.1.bn3.backward"), 4 * 3, 0.15);
  EXPECT_NEAR(passes(summed, "layer1.1.conv1.backward_data") - passes(ampere, "layer1.1.conv1.backward_data"),
              4 * 2, 0.3);
  EXPECT_NEAR(passes(summed, "layer1.0.bn3.backward"), 4 * 5, 0.15);
}

// In tensors of the convolution's input; its output would be four of them. Nothing reads or writes that one:
// the input is written for it, then read by five instructions, the gradient of the block's output by two.
TEST(Fusion, CountsThePassesOfABlocksEndWithoutItsConvolutionsOutput) {
  constexpr std::int64_t kBatch = 256;
  for (const int compute_capability : {80, 90, 100}) {
    const Program program = resnet50(compute_capability, true, kBatch),
                  stored = with_stored_outputs(compute_capability, kBatch),
                  masked = with_plain_sums(compute_capability, kBatch);
    const double size = 2.0 * kBatch * 16 * 16 * 64;
    const auto passes = [&](const Program& from, const std::string& instruction) {
      return instruction_named(from, instruction).work.bytes / size;
    };
    const std::map<std::string, double> expected{{"layer1.1.bn2.forward", 2},
                                                 {"layer1.1.conv3.in_products", 1},
                                                 {"layer1.1.bn3.statistics", 0},
                                                 {"layer1.1.bn3.forward", 1 + 4 * (2 + 1.0 / 16)},
                                                 {"layer1.1.conv3.gradient_products", 4 + 1},
                                                 {"layer1.1.conv3.backward_weights", 0},
                                                 {"layer1.1.conv3.backward_data", 4 + 3},
                                                 {"layer1.1.bn2.backward", 3},
                                                 {"layer1.0.downsample.0.sample", 1},
                                                 {"layer1.0.bn3.forward", 1 + 1 + 4 * (1 + 1.0 / 16)},
                                                 {"layer1.0.downsample.0.gradient_products", 4 + 1},
                                                 {"layer1.0.downsample.0.backward_data", 4 + 2}};
    for (const auto& [instruction, count] : expected)
      EXPECT_NEAR(passes(program, instruction), count, 0.05) << instruction;
    EXPECT_NEAR(passes(program, "layer1.2.conv1.backward_data"),
                passes(masked, "layer1.2.conv1.backward_data"), 0.01);
    EXPECT_NEAR(passes(program, "layer1.1.conv1.backward_data"),
                passes(stored, "layer1.1.conv1.backward_data") - 2 * 4, 0.01)
        << "reads the input of neither norm";
  }
}

TEST(Fusion, OffAndElsewhereGivesThePlainProgram) {
  const auto kinds = kinds_of(resnet50(90, false));
  EXPECT_EQ(kinds, kinds_of(with_stored_outputs(75)));
  for (const std::string_view kind :
       {BatchNormFinalize::kName, BatchNormBackwardApply::kName, ConvNormBackwardData::kName})
    EXPECT_FALSE(kinds.contains(kind)) << kind;
}

TEST(Fusion, LeavesParametersAndGradientsAsTheyAre) {
  const auto of_parameters = [](const Program& program) {
    std::vector<std::string> described;
    for (const Buffer& buffer : program.buffers) {
      if (buffer.role == Role::parameter || buffer.role == Role::gradient || buffer.role == Role::optimizer ||
          buffer.role == Role::statistic)
        described.push_back(buffer.name + " " + std::string(name_of(buffer.dtype)) + " " +
                            std::to_string(buffer.bytes));
    }
    return described;
  };
  for (const int compute_capability : {80, 90, 100})
    EXPECT_EQ(of_parameters(resnet50(compute_capability)),
              of_parameters(resnet50(compute_capability, false)));
}

// Every temporary is written before it is read, once except for sums, and is read by somebody; every gradient
// is written once.
void expect_sound(const Program& program) {
  EXPECT_NO_THROW(plan_memory(program));
  std::vector<int> writes(program.buffers.size(), 0);
  std::vector<bool> is_read_last(program.buffers.size(), true);
  for (const Instruction& instruction : program.instructions) {
    for (const BufferUse& use : instruction.uses()) {
      writes[use.buffer] += use.access == Access::write;
      is_read_last[use.buffer] = use.access == Access::read;
    }
  }
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (buffer.role != Role::gradient && buffer.persistent) continue;
    EXPECT_EQ(writes[id], 1) << buffer.name;
    EXPECT_TRUE(is_read_last[id] || is_line_of_one_pass(program, id)) << buffer.name;
  }
}

TEST(Fusion, DescribesSoundProgramsForEveryGpuAndPrecision) {
  const Graph graph = make_resnet50({.batch = 2, .image_size = 64});
  for (const int compute_capability : {70, 75, 80, 86, 89, 90, 100, 120}) {
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16}) {
      for (const bool fuse : {false, true}) {
        for (const bool everything_else : {false, true}) {
          SCOPED_TRACE("sm_" + std::to_string(compute_capability) + " " + std::string(name_of(precision)) +
                       (fuse ? " fused" : "") + (everything_else ? " loading, scaled" : ""));
          expect_sound(plumb::describe(graph,
                                       {.precision = precision,
                                        .load_batch_every_step = everything_else,
                                        .fuse = fuse,
                                        .scale_loss = everything_else},
                                       gpu(compute_capability)));
        }
      }
    }
  }
}

TEST(Fusion, TakesNoMoreMemoryThanWithout) {
  for (const int compute_capability : {80, 90, 100}) {
    const std::size_t fused = plan_memory(resnet50(compute_capability, true, 64, 224)).arena_bytes;
    EXPECT_LE(fused, plan_memory(resnet50(compute_capability, false, 64, 224)).arena_bytes)
        << compute_capability;
    EXPECT_LT(
        static_cast<double>(fused),
        0.85 * static_cast<double>(plan_memory(with_stored_outputs(compute_capability, 64, 224)).arena_bytes))
        << compute_capability << ": outputs of convolutions that end blocks";
  }
}

// The gradient of the last norm's input must not overwrite the one that is added.
TEST(Fusion, ACompletedGradientHasAPlaceOfItsOwn) {
  const Program program = resnet50(90);
  const MemoryPlan plan = plan_memory(program);
  const auto conv = *instruction_named(program, "layer1.2.conv1.backward_data").as<ConvBackwardData>();
  EXPECT_NE(plan.offsets[conv.d_in], plan.offsets[*conv.added]);
}

}  // namespace
}  // namespace plumb::cuda
