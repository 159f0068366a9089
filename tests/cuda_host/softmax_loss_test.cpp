// The loss kernels on the emulated GPU against loops in double.
#include "kernels/cuda/softmax_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/device.h"
#include "tests/cuda_host/guarded_tensor.h"

namespace plumb::cuda {
namespace {

struct Case {
  std::size_t rows = 1, classes = 1;
  float smoothing = 0;
  float loss_scale = 1;
  std::uint64_t iteration = 0;
};

struct Result {
  std::vector<double> d_logits;
  double loss = 0;
  int top1 = 0, top5 = 0;
};

std::vector<double> labels_of(const Case& by) {
  std::vector<double> labels;
  for (std::size_t row = 0; row < by.rows; ++row)
    labels.push_back(static_cast<double>(row * 7919 % by.classes));
  return labels;
}

Result run(const Case& by, DType dtype, const std::vector<double>& logits,
           const std::vector<double>& labels) {
  GuardedTensor logit_operand(DType::f32, logits), label_operand(DType::i32, labels);
  GuardedTensor d_logits(dtype, logits.size()), workspace(DType::u8, by.rows * sizeof(RowLoss));
  State state{.step = {.iteration = by.iteration, .loss_scale = by.loss_scale}};
  std::vector<IterationRecord> records(kMetricsKept);
  launch_softmax_loss({.logits = logit_operand.as<float>(),
                       .labels = label_operand.as<std::int32_t>(),
                       .d_logits = d_logits.data(),
                       .d_logits_dtype = dtype,
                       .state = &state,
                       .row_losses = workspace.as<RowLoss>(),
                       .records = records.data()},
                      static_cast<std::int64_t>(by.rows), static_cast<std::int64_t>(by.classes), by.smoothing,
                      nullptr);
  const IterationRecord& record = records[by.iteration % kMetricsKept];
  return {.d_logits = d_logits.values(), .loss = record.loss, .top1 = record.top1, .top5 = record.top5};
}

Result reference(const Case& by, const std::vector<double>& logits, const std::vector<double>& labels) {
  Result result{.d_logits = std::vector<double>(logits.size())};
  const auto rows = static_cast<double>(by.rows), classes = static_cast<double>(by.classes);
  for (std::size_t row = 0; row < by.rows; ++row) {
    const double* z = logits.data() + row * by.classes;
    const auto label = static_cast<std::size_t>(labels[row]);
    const double largest = *std::max_element(z, z + by.classes);
    double sum = 0;
    int larger = 0;
    for (std::size_t k = 0; k < by.classes; ++k) {
      sum += std::exp(z[k] - largest);
      larger += z[k] > z[label] ? 1 : 0;
    }
    for (std::size_t k = 0; k < by.classes; ++k) {
      const double q = by.smoothing / classes + (k == label ? 1.0 - by.smoothing : 0.0);
      const double log_probability = z[k] - largest - std::log(sum);
      result.loss -= q * log_probability / rows;
      result.d_logits[row * by.classes + k] = (std::exp(log_probability) - q) / rows * by.loss_scale;
    }
    result.top1 += larger < 1 ? 1 : 0;
    result.top5 += larger < 5 ? 1 : 0;
  }
  return result;
}

// Fewer classes than a warp, than a block, and more; none that a block divides.
const Case kCases[] = {
    {.rows = 1, .classes = 1},
    {.rows = 3, .classes = 7, .smoothing = 0.1F},
    {.rows = 5, .classes = 257, .smoothing = 0.1F, .loss_scale = 1024, .iteration = 7},
    {.rows = 2, .classes = 1000, .smoothing = 0, .loss_scale = 65536, .iteration = kMetricsKept + 3},
    {.rows = 300, .classes = 10, .smoothing = 0.1F, .loss_scale = 3},  // more rows than a block has threads
};

TEST(SoftmaxLoss, IsTheSmoothedCrossEntropyAndItsGradient) {
  for (const Case& by : kCases) {
    const std::vector<double> logits = normal_values(DType::f32, by.rows * by.classes, 1);
    const std::vector<double> labels = labels_of(by);
    const Result wanted = reference(by, logits, labels);
    for (DType dtype : kStorageTypes) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << by.rows << " x " << by.classes);
      const Result result = run(by, dtype, logits, labels);
      EXPECT_NEAR(result.loss, wanted.loss, 1e-6 * std::max(1.0, wanted.loss));
      EXPECT_EQ(result.top1, wanted.top1);
      EXPECT_EQ(result.top5, wanted.top5);
      // A half type holds nothing below 6e-8.
      const double scale = by.loss_scale / static_cast<double>(by.rows);
      expect_close(result.d_logits, wanted.d_logits, dtype, dtype == DType::f32 ? 8 : 1.1,
                   std::max(scale * (dtype == DType::f32 ? 1 : 1e-3), 1e-4));
    }
  }
}

TEST(SoftmaxLoss, StaysFiniteWhereExponentialsWouldNot) {
  const Case by{.rows = 2, .classes = 3};
  const std::vector<double> logits{1e4, -1e4, 0, -3e38, 3e38, 0};
  const Result result = run(by, DType::f32, logits, {0, 1});
  EXPECT_EQ(result.loss, 0);
  EXPECT_EQ(result.d_logits, std::vector<double>(6, 0.0));
  const Result wrong = run(by, DType::f32, {1e4, -1e4, 0, 2, 2, 2}, {1, 1});
  EXPECT_NEAR(wrong.loss, (2e4 + std::log(3.0)) / 2, 1e-3);
}

TEST(SoftmaxLoss, IsNaNIfALogitIsNoNumber) {
  const Case by{.rows = 3, .classes = 300};
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    for (std::size_t place : {0, 1, 299}) {
      std::vector<double> logits = normal_values(DType::f32, 900, 2);
      logits[300 + place] = bad;
      const Result result = run(by, DType::f16, logits, labels_of(by));
      EXPECT_TRUE(std::isnan(result.loss));
      EXPECT_TRUE(std::isnan(result.d_logits[300]));
      EXPECT_FALSE(std::isnan(result.d_logits[0]) || std::isnan(result.d_logits[600])) << "another row";
    }
  }
}

TEST(SoftmaxLoss, CountsLabelsAmongTheLargest) {
  const Case by{.rows = 4, .classes = 8};
  const std::vector<double> row{5, 4, 3, 2, 1, 0, -1, -1};
  std::vector<double> logits;
  for (int i = 0; i < 4; ++i) logits.insert(logits.end(), row.begin(), row.end());
  const auto counts = [&](std::vector<double> labels) {
    const Result result = run(by, DType::f32, logits, labels);
    return std::array{result.top1, result.top5};
  };
  EXPECT_EQ(counts({0, 0, 0, 0}), (std::array{4, 4}));
  EXPECT_EQ(counts({0, 1, 4, 5}), (std::array{1, 3}));
  EXPECT_EQ(counts({5, 6, 7, 5}), (std::array{0, 0}));
  logits.assign(32, 1.0);  // of equals none is larger
  EXPECT_EQ(counts({0, 3, 5, 7}), (std::array{4, 4}));
}

TEST(SoftmaxLoss, RepeatsBitForBitInAnyOrderOfThreads) {
  const Case by{.rows = 40, .classes = 1000, .smoothing = 0.1F, .loss_scale = 128};
  const std::vector<double> logits = normal_values(DType::f32, by.rows * by.classes, 3);
  const Result first = run(by, DType::bf16, logits, labels_of(by));
  for (int i = 0; i < 2; ++i) {
    const Result again = run(by, DType::bf16, logits, labels_of(by));
    EXPECT_EQ(again.loss, first.loss);
    EXPECT_EQ(again.d_logits, first.d_logits);
  }
}

}  // namespace
}  // namespace plumb::cuda
