// Sharded and sampled class centers on the CPU device give the results of one rank with all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/program/describe.h"
#include "models/margin_head.h"
#include "tests/kernels/margin_ranks.h"
#include "tests/models/margin_reference.h"

namespace plumb {
namespace {

// The same images and centers on one rank.
MarginRun run_replicated(MarginRanks setup, const MarginTensors& tensors) {
  setup.head = Head::replicated;
  setup.images *= setup.ranks;
  setup.ranks = 1;
  return run_margin_ranks(setup, tensors);
}

void expect_near(const std::vector<float>& values, const std::vector<float>& expected, double tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance) << "element " << i;
}

void expect_same(const MarginRun& run, const MarginRun& expected) {
  ASSERT_EQ(run.losses.size(), expected.losses.size());
  for (std::size_t i = 0; i < run.losses.size(); ++i)
    EXPECT_NEAR(run.losses[i] / expected.losses[i], 1, 1e-5) << "iteration " << i;
  EXPECT_EQ(run.top1, expected.top1);
  expect_near(run.centers, expected.centers, 1e-5);
  double largest = 0;
  for (float value : expected.feature_gradient) largest = std::max(largest, std::abs(double{value}));
  expect_near(run.feature_gradient, expected.feature_gradient, 3e-5 * largest);
}

// Scale 16 keeps probabilities away from 0 and 1, so every center has a significant gradient.
MarginRanks spread_over(int ranks, Head head = Head::sharded) {
  return {.ranks = ranks,
          .images = 3,
          .embedding = 24,
          .classes = 101,
          .head = head,
          .scale = 16,
          .learning_rate = 0.05f,
          .iterations = 4};
}

TEST(CpuMarginSharding, GivesWhatOneRankGives) {
  for (int ranks : {1, 2, 3, 4}) {
    SCOPED_TRACE(ranks);
    const MarginRanks setup = spread_over(ranks);
    const MarginTensors tensors = random_margin_tensors(setup, 1);
    expect_same(run_margin_ranks(setup, tensors), run_replicated(setup, tensors));
  }
}

TEST(CpuMarginSharding, HoldsForTheFullScaleToo) {
  MarginRanks setup = spread_over(3);
  setup.scale = 64;
  setup.learning_rate = 0.01f;
  const MarginTensors tensors = random_margin_tensors(setup, 2);
  expect_same(run_margin_ranks(setup, tensors), run_replicated(setup, tensors));
}

TEST(CpuMarginSharding, ASampleOfAllIsAll) {
  for (int ranks : {1, 2, 3, 4}) {
    SCOPED_TRACE(ranks);
    const MarginRanks setup = spread_over(ranks, Head::sampled);
    const MarginTensors tensors = random_margin_tensors(setup, 3);
    expect_same(run_margin_ranks(setup, tensors), run_replicated(setup, tensors));
  }
}

TEST(CpuMarginSharding, LabelsMayLieOnBorders) {
  const MarginRanks setup = spread_over(4);  // 26, 25, 25 and 25 classes
  MarginTensors tensors = random_margin_tensors(setup, 4);
  tensors.labels = {0, 25, 26, 50, 51, 75, 76, 100, 25, 26, 100, 0};
  expect_same(run_margin_ranks(setup, tensors), run_replicated(setup, tensors));
}

TEST(CpuMarginSharding, AShardMayHaveNoPositive) {
  const MarginRanks setup = spread_over(2);  // 51 and 50
  MarginTensors tensors = random_margin_tensors(setup, 5);
  tensors.labels = {3, 50, 0, 50, 17, 8};
  expect_same(run_margin_ranks(setup, tensors), run_replicated(setup, tensors));
}

TEST(CpuMarginSharding, AShardMayBeOneClass) {
  MarginRanks setup = spread_over(4);
  setup.classes = 5;
  const MarginTensors tensors = random_margin_tensors(setup, 6);
  expect_same(run_margin_ranks(setup, tensors), run_replicated(setup, tensors));
}

TEST(CpuMarginSharding, ShardsOfManyBlocksAddUp) {
  MarginRanks setup = spread_over(3);
  setup.classes = 3 * 4096 + 10;
  const MarginTensors tensors = random_margin_tensors(setup, 7);
  expect_same(run_margin_ranks(setup, tensors), run_replicated(setup, tensors));
}

// A rank's sample in a step, by the definition.
std::vector<std::int32_t> expected_sample(const MarginRanks& setup, const std::vector<std::int64_t>& labels,
                                          int rank, std::uint64_t step) {
  const Graph graph = margin_graph(setup, rank);
  const auto& op = std::get<MarginLoss>(graph.ops[0]);
  const ClassShard shard = class_shard(setup.classes, rank, setup.ranks);
  std::set<std::int32_t> positives;
  for (std::int64_t label : labels)
    if (label >= shard.first && label < shard.first + shard.count)
      positives.insert(static_cast<std::int32_t>(label - shard.first));
  std::vector<std::int32_t> sample(positives.begin(), positives.end());
  const auto permutation = class_permutation(sample_key(op), step, static_cast<std::uint32_t>(shard.count));
  const auto wanted = static_cast<std::size_t>(sampled_rows(setup.sample_rate, shard.count));
  for (std::uint32_t i = 0; sample.size() < wanted; ++i) {
    const auto value = static_cast<std::int32_t>(permutation(i));
    if (!positives.contains(value)) sample.push_back(value);
  }
  sample.resize(static_cast<std::size_t>(margin_rows(op, shard.count, setup.images)), -1);
  return sample;
}

// The same training in double: updates the sampled centers and leaves the others alone.
struct SampledTraining {
  std::vector<double> centers, momentum;

  double step(const MarginRanks& setup, const MarginTensors& tensors,
              const std::vector<std::vector<std::int32_t>>& samples) {
    MarginProblem problem{.images = setup.images * setup.ranks,
                          .embedding = setup.embedding,
                          .classes = setup.classes,
                          .features = {tensors.features.begin(), tensors.features.end()},
                          .centers = centers,
                          .labels = tensors.labels,
                          .margins = setup.margins,
                          .scale = setup.scale,
                          .gradient = setup.gradient};
    for (int rank = 0; rank < setup.ranks; ++rank)
      for (std::int32_t row : samples[static_cast<std::size_t>(rank)])
        if (row >= 0) problem.sample.push_back(class_shard(setup.classes, rank, setup.ranks).first + row);
    const MarginAnswer answer = margin_reference(problem);
    for (std::int64_t row : problem.sample)
      for (std::int64_t i = row * setup.embedding; i < (row + 1) * setup.embedding; ++i) {
        const double slope = answer.centre_gradient[i] + setup.rule.weight_decay * centers[i];
        momentum[i] = setup.rule.momentum * momentum[i] + slope;
        const bool nesterov = setup.rule.optimizer == Optimizer::nag;
        centers[i] -=
            setup.learning_rate * (nesterov ? slope + setup.rule.momentum * momentum[i] : momentum[i]);
      }
    return answer.loss;
  }
};

void expect_sampled_training(const MarginRanks& setup, const MarginTensors& tensors) {
  const MarginRun run = run_margin_ranks(setup, tensors);
  SampledTraining expected{.centers = {tensors.centers.begin(), tensors.centers.end()},
                           .momentum = std::vector<double>(tensors.centers.size())};
  std::set<std::size_t> touched;
  for (std::size_t i = 0; i < run.losses.size(); ++i) {
    for (int rank = 0; rank < setup.ranks; ++rank) {
      const auto& sample = run.samples[i][static_cast<std::size_t>(rank)];
      EXPECT_EQ(sample, expected_sample(setup, tensors.labels, rank, i)) << "rank " << rank;
      for (std::int32_t row : sample)
        if (row >= 0)
          touched.insert(static_cast<std::size_t>(class_shard(setup.classes, rank, setup.ranks).first + row));
    }
    EXPECT_NEAR(run.losses[i] / expected.step(setup, tensors, run.samples[i]), 1, 1e-5);
  }
  const auto width = static_cast<std::size_t>(setup.embedding);
  for (std::size_t i = 0; i < run.centers.size(); ++i) {
    // Untouched values are bit-identical.
    const bool touched_once = touched.contains(i / width);
    ASSERT_NEAR(run.centers[i], expected.centers[i], touched_once ? 1e-5 : 0) << "class " << i / width;
  }
}

TEST(CpuMarginSampling, TrainsTheSampleAndNothingElse) {
  for (int ranks : {1, 2, 3}) {
    for (Optimizer optimizer : {Optimizer::sgd, Optimizer::nag}) {
      SCOPED_TRACE(ranks);
      MarginRanks setup = spread_over(ranks, Head::sampled);
      setup.sample_rate = 0.3;
      setup.rule.optimizer = optimizer;
      expect_sampled_training(setup, random_margin_tensors(setup, 8));
    }
  }
}

TEST(CpuMarginSampling, ChangesFromStepToStep) {
  MarginRanks setup = spread_over(1, Head::sampled);
  setup.sample_rate = 0.3;
  const MarginRun run = run_margin_ranks(setup, random_margin_tensors(setup, 9));
  EXPECT_NE(run.samples[0], run.samples[1]);
}

TEST(CpuMarginSampling, LabelsMayRepeat) {
  MarginRanks setup = spread_over(2, Head::sampled);
  setup.sample_rate = 0.2;
  MarginTensors tensors = random_margin_tensors(setup, 10);
  tensors.labels = {60, 60, 7, 60, 7, 60};
  expect_sampled_training(setup, tensors);
}

TEST(CpuMarginSampling, TakesAllPositivesIfTheyAreMoreThanTheSample) {
  MarginRanks setup = spread_over(2, Head::sampled);
  setup.images = 8;
  setup.sample_rate = 0.06;  // 3 rows of 51 and of 50
  MarginTensors tensors = random_margin_tensors(setup, 11);
  tensors.labels = {0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 3, 100, 7, 9, 51};
  expect_sampled_training(setup, tensors);
}

TEST(CpuMarginSampling, ARankMayHaveNothingToDo) {
  MarginRanks setup = spread_over(2, Head::sampled);
  setup.sample_rate = 0.001;  // no row except the labels
  MarginTensors tensors = random_margin_tensors(setup, 12);
  tensors.labels = {3, 50, 0, 50, 17, 8};
  expect_sampled_training(setup, tensors);
}

TEST(CpuMarginSampling, TakesALargeSampleFromMoreThreads) {
  MarginRanks setup = spread_over(1, Head::sampled);
  setup.classes = 60000;
  setup.embedding = 4;
  setup.sample_rate = 0.5;
  setup.threads = 3;
  setup.iterations = 1;
  const MarginTensors tensors = random_margin_tensors(setup, 13);
  const MarginRun run = run_margin_ranks(setup, tensors);
  EXPECT_EQ(run.samples[0][0], expected_sample(setup, tensors.labels, 0, 0));
}

TEST(MarginLowering, SpreadHeadsMeetInTheOrderThatPublishedOnesHave) {
  const MarginRanks setup = spread_over(3, Head::sampled);
  const auto device = cpu::make_device({.choice = DeviceChoice::cpu});
  const Program program = describe(margin_graph(setup, 1), {}, device->limits());
  std::vector<std::string> names;
  for (const Instruction& instruction : program.instructions)
    if (instruction.as<Collective>()) names.push_back(instruction.name);
  EXPECT_EQ(names, (std::vector<std::string>{"head.features.allgather", "head.labels.allgather",
                                             "head.row_max.allreduce", "head.row_sums.allreduce",
                                             "head.features.reduce_scatter"}));
}

TEST(MarginLowering, OneRankMeetsNobody) {
  const auto device = cpu::make_device({.choice = DeviceChoice::cpu});
  for (Head head : {Head::replicated, Head::sharded, Head::sampled}) {
    const Program program = describe(margin_graph(spread_over(1, head), 0), {}, device->limits());
    for (const Instruction& instruction : program.instructions) {
      EXPECT_FALSE(instruction.as<Collective>()) << instruction.name;
      EXPECT_FALSE(instruction.as<MarginRescale>()) << instruction.name;
    }
    for (const Buffer& buffer : program.buffers) EXPECT_FALSE(buffer.view) << buffer.name;
  }
}

TEST(MarginLowering, ShardedCentresAreNotReduced) {
  const auto device = cpu::make_device({.choice = DeviceChoice::cpu});
  for (Head head : {Head::replicated, Head::sharded, Head::sampled}) {
    const Program program =
        describe(margin_graph(spread_over(head == Head::replicated ? 1 : 2, head), 0), {}, device->limits());
    for (const Buffer& buffer : program.buffers) {
      if (buffer.role != Role::gradient) continue;
      EXPECT_EQ(buffer.sharded, head != Head::replicated) << buffer.name;
    }
  }
}

}  // namespace
}  // namespace plumb
