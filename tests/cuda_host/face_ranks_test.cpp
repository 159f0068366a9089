// Heads whose class centres the ranks of a job share out, over NCCL in a captured step, on emulated GPUs, one
// per rank (EMULATED_GPUS): the losses of the head that every rank has whole, and of the CPU device.
#include "tests/bench/face_ranks.h"

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
  static void expect_near(const FaceRun& run, const FaceRun& wanted, double losses, double weights) {
    EXPECT_TRUE(wanted.captured);
    for (std::size_t i = 0; i < wanted.losses.size(); ++i)
      EXPECT_NEAR(run.losses.at(i) / wanted.losses[i], 1, losses) << "iteration " << i;
    EXPECT_LE(largest_difference(run.backbone, wanted.backbone), weights);
    EXPECT_LE(largest_difference(run.centres, wanted.centres), weights);
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

}  // namespace
}  // namespace plumb
