// Sharded heads over NCCL in a captured step, on emulated GPUs, one per rank (EMULATED_GPUS): same losses as
// the replicated head and the CPU device.
#include "tests/bench/run/face_ranks.h"

#include <algorithm>
#include <cmath>

#include "tests/comm/mpi/mpi_test.h"

namespace plumb {
namespace {

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}));
  return largest;
}

class GpuFaceRanks : public MpiTest {
 protected:
  FaceTraining training(Precision precision = Precision::fp32) const {
    FaceTraining training{.graph = SmallFaceNet{}, .device = DeviceChoice::cuda, .iterations = 4};
    training.describe.precision = precision;
    for (int i = 0; i < job().size() * static_cast<int>(SmallFaceNet::kImages); ++i)
      training.labels.push_back((i * 37 + 11) % 101);
    return training;
  }
  FaceRun train(FaceTraining training, Head head) const {
    training.head = head;
    return train_faces(job(), training);
  }
  FaceTraining scaled_training() const {
    FaceTraining half = training(Precision::fp16);
    half.describe.scale_loss = true;
    half.loss_scaling = {.kind = LossScaling::Kind::fixed, .initial = 1024};
    return half;
  }
  bool is_last() const { return job().rank() + 1 == job().size(); }
  static std::ptrdiff_t sends(const FaceRun& run, const std::string& collective) {
    return std::count(run.sent.begin(), run.sent.end(), collective);
  }
  // Either all steps on this rank were skipped, which leaves the parameters unchanged, or none.
  FaceRun expect_steps(FaceTraining training, Head head, bool skipped) const {
    FaceRun run = train(training, head);
    EXPECT_EQ(run.skipped, std::vector<bool>(run.skipped.size(), skipped));
    training.iterations = 0;
    EXPECT_EQ(run.backbone == train(training, head).backbone, skipped);
    return run;
  }
  static void expect_near(const FaceRun& run, const FaceRun& wanted, double losses, double weights) {
    EXPECT_TRUE(wanted.captured);
    for (std::size_t i = 0; i < wanted.losses.size(); ++i)
      EXPECT_NEAR(run.losses.at(i) / wanted.losses[i], 1, losses) << "iteration " << i;
    EXPECT_LE(largest_difference(run.backbone, wanted.backbone), weights);
    EXPECT_LE(largest_difference(run.centers, wanted.centers), weights);
  }
};

TEST_F(GpuFaceRanks, GiveWhatAWholeHeadGivesAndWhatTheCpuGives) {
  const FaceRun replicated = train(training(), Head::replicated);
  expect_near(train(training(), Head::sharded), replicated, 1e-5, 1e-5);
  expect_near(train(training(), Head::sampled), replicated, 1e-5, 1e-5);
  FaceTraining on_cpu = training();
  on_cpu.device = DeviceChoice::cpu;
  expect_near(train(on_cpu, Head::sharded), replicated, 1e-4, 1e-4);
}

TEST_F(GpuFaceRanks, GiveTheSameInHalfPrecisionBothWithAHeadInFp32AndWithout) {
  for (bool fp32_head : {false, true}) {
    FaceTraining half = training(Precision::fp16);
    half.describe.fp32_head = fp32_head;
    const FaceRun replicated = train(half, Head::replicated);
    for (double loss : replicated.losses) EXPECT_TRUE(std::isfinite(loss)) << loss;
    expect_near(train(half, Head::sharded), replicated, 5e-3, 2e-2);
    expect_near(train(half, Head::sampled), replicated, 5e-3, 2e-2);
  }
}

TEST_F(GpuFaceRanks, OneRankWithCollectivesIsOneWithoutToTheBit) {
  if (job().size() > 1) return;
  for (Head head : {Head::replicated, Head::sharded}) {
    FaceTraining half = scaled_training();
    const FaceRun without = train(half, head);
    half.even_alone = true;
    const FaceRun with = train(half, head);
    EXPECT_TRUE(with.captured);
    EXPECT_TRUE(without.sent.empty());
    EXPECT_EQ(sends(with, "bucket0.allreduce"), 1);
    EXPECT_EQ(sends(with, "overflow.allreduce"), head == Head::sharded ? 1 : 0);
    EXPECT_EQ(with.losses, without.losses);
    EXPECT_EQ(with.backbone, without.backbone);
    EXPECT_EQ(with.centers, without.centers);
  }
}

// Detected in the sums, which are equal on all ranks, even if summed in another dtype and cast back.
TEST_F(GpuFaceRanks, AnOverflowOfOneRankIsFoundByAllInTheSums) {
  for (ReduceDType dtype : {ReduceDType::same, ReduceDType::fp32, ReduceDType::fp16}) {
    FaceTraining half = scaled_training();
    half.reduce_dtype = dtype;
    expect_steps(half, Head::replicated, /*skipped=*/false);
    if (is_last()) half.pixel_factor = 1e6F;
    EXPECT_EQ(sends(expect_steps(half, Head::replicated, /*skipped=*/true), "overflow.allreduce"), 0);
  }
}

// No other rank has this gradient: the flag tells them of the overflow.
TEST_F(GpuFaceRanks, AnOverflowInARanksOwnCentresIsToldToAll) {
  FaceTraining half = scaled_training();
  expect_steps(half, Head::sharded, /*skipped=*/false);
  half.overflowing_shard = is_last();
  const FaceRun run = expect_steps(half, Head::sharded, /*skipped=*/true);
  EXPECT_EQ(sends(run, "overflow.allreduce"), job().size() > 1 ? 1 : 0);
}

}  // namespace
}  // namespace plumb
