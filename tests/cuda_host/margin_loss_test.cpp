// The softmax of margin losses on the emulated GPU against loops in double.
#include "kernels/cuda/margin_loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "kernels/device.h"
#include "models/margin_head.h"
#include "tests/cuda_host/guarded_tensor.h"

namespace plumb::cuda {
namespace {

constexpr MarginRule kArcFace{.scale = 16, .m1 = 1, .m2 = 0.5, .m3 = 0};
const double kNaN = std::nan("");

struct Case {
  std::int64_t images = 1, classes = 1;
  std::optional<std::int64_t> used = std::nullopt;  // of a sample
  std::int32_t first_class = 0;
  MarginRule rule = kArcFace;
  float loss_scale = 1;
  OwnImages own = {0, 1};
  std::uint64_t iteration = 0;

  std::int64_t in_use() const { return used.value_or(classes); }
};

struct Inputs {
  std::vector<double> products;  // [images, classes]: cosines times norms
  std::vector<double> inverse_norms;
  std::vector<double> columns;

  double product(const Case& by, std::int64_t image, std::int64_t column) const {
    return products[static_cast<std::size_t>(image * by.classes + column)];
  }
  double inverse_norm(std::int64_t column) const { return inverse_norms[static_cast<std::size_t>(column)]; }
};

// Every label at some place, every fifth one on another rank.
Inputs inputs_of(const Case& by, DType dtype) {
  Inputs inputs;
  const std::vector<double> cosines =
      normal_values(DType::f32, static_cast<std::size_t>(by.images * by.classes), 1);
  for (std::int64_t k = 0; k < by.classes; ++k)
    inputs.inverse_norms.push_back(rounded(DType::f32, 0.5 + 0.01 * static_cast<double>(k % 100)));
  for (std::size_t i = 0; i < cosines.size(); ++i)
    inputs.products.push_back(
        rounded(dtype, std::tanh(cosines[i]) / inputs.inverse_norms[i % inputs.inverse_norms.size()]));
  for (std::int64_t image = 0; image < by.images; ++image) {
    const std::int64_t column = image * 7919 % by.in_use();
    const std::int64_t elsewhere = by.used ? -1 : by.classes + image;
    inputs.columns.push_back(static_cast<double>(by.first_class + (image % 5 == 3 ? elsewhere : column)));
  }
  return inputs;
}

struct Statistics {
  std::vector<double> max, sum, target, factor;
};

std::int64_t target_of(const Case& by, const Inputs& inputs, std::int64_t image) {
  const auto column =
      static_cast<std::int64_t>(inputs.columns[static_cast<std::size_t>(image)]) - by.first_class;
  return column >= 0 && column < by.in_use() ? column : -1;
}

double logit_of(const Case& by, const Inputs& inputs, std::int64_t image, std::int64_t column,
                double* factor) {
  const double cosine = inputs.product(by, image, column) * inputs.inverse_norm(column);
  if (column != target_of(by, inputs, image)) return by.rule.scale * cosine;
  const auto target = margin_target(cosine, by.rule.m1, by.rule.m2, by.rule.m3, by.rule.straight_through);
  if (factor != nullptr) *factor = target.factor;
  return by.rule.scale * target.cosine;
}

Statistics statistics_of(const Case& by, const Inputs& inputs) {
  Statistics wanted;
  for (std::int64_t image = 0; image < by.images; ++image) {
    double largest = -1e300, sum = 0, factor = 0;
    for (std::int64_t k = 0; k < by.in_use(); ++k)
      largest = std::max(largest, logit_of(by, inputs, image, k, &factor));
    for (std::int64_t k = 0; k < by.in_use(); ++k)
      sum += std::exp(logit_of(by, inputs, image, k, nullptr) - largest);
    const std::int64_t target = target_of(by, inputs, image);
    wanted.max.push_back(largest);
    wanted.sum.push_back(sum);
    wanted.target.push_back(target < 0 ? 0 : logit_of(by, inputs, image, target, nullptr));
    wanted.factor.push_back(target < 0 ? 0 : factor);
  }
  return wanted;
}

// The kernels' operands; `products` lie as far apart as the kernels have them, between NaNs.
class Softmax {
 public:
  Softmax(const Case& by, DType dtype, const Inputs& inputs)
      : by_(by),
        stride_(product_stride(by.classes, dtype)),
        products_(dtype, padded(inputs)),
        norms_(DType::f32, inputs.inverse_norms),
        columns_(DType::i32, inputs.columns),
        count_(DType::i32, std::vector<double>{static_cast<double>(by.in_use())}),
        max_(DType::f32, images()),
        row_max_(DType::f32, images()),
        sums_(DType::f32, 2 * images()),
        factor_(DType::f32, images()),
        logits_{.products = products_.data(),
                .dtype = dtype,
                .images = by.images,
                .classes = by.classes,
                .class_inverse_norms = norms_.as<float>(),
                .columns = columns_.as<std::int32_t>(),
                .first_class = by.first_class,
                .sample_count = by.used ? count_.as<std::int32_t>() : nullptr},
        rows_{max_.as<float>(), row_max_.as<float>(), sums_.as<float>(), factor_.as<float>()} {}

  void gather() {
    GuardedTensor workspace(DType::u8, statistics_workspace_bytes(by_.images, by_.classes, logits_.dtype));
    launch_margin_statistics(logits_, by_.rule, rows_, workspace.as<RowShare>(), nullptr);
  }
  // What another rank may have found: larger logits for some images, a sum of 1, and the targets that aren't
  // here.
  void meet_other_rank(Statistics& wanted) {
    for (std::size_t i = 0; i < images(); ++i) {
      const float instruction = i % 2 == 0 ? 3.0F : 0.0F;
      rows_.row_max[i] += instruction;
      wanted.sum[i] = wanted.sum[i] * std::exp(-instruction) + 1;
      wanted.max[i] += instruction;
    }
    launch_margin_rescale(rows_, by_.images, nullptr);
    for (std::size_t i = 0; i < images(); ++i) rows_.row_sums[i] += 1;
    for (std::size_t i = 0; i < images(); ++i)
      if (wanted.factor[i] == 0)
        rows_.row_sums[images() + i] = static_cast<float>(wanted.target[i] = wanted.max[i] - 0.5);
  }
  IterationRecord put_gradient() {
    const State state{.step = {.iteration = by_.iteration, .loss_scale = by_.loss_scale}};
    std::vector<IterationRecord> records(kMetricsKept);
    launch_margin_gradient(logits_, by_.rule.scale, rows_, by_.own, &state, records.data(), nullptr);
    return records[by_.iteration % kMetricsKept];
  }

  std::vector<double> products() const {
    std::vector<double> values;
    const std::vector<double> held = products_.values();
    for (std::int64_t image = 0; image < by_.images; ++image)
      values.insert(values.end(), held.begin() + image * stride_,
                    held.begin() + image * stride_ + by_.classes);
    return values;
  }
  Statistics statistics() const {
    const std::vector<double> sums = sums_.values();
    const auto middle = sums.begin() + by_.images;
    return {max_.values(), {sums.begin(), middle}, {middle, sums.end()}, factor_.values()};
  }
  std::vector<double> row_max() const { return row_max_.values(); }

 private:
  std::size_t images() const { return static_cast<std::size_t>(by_.images); }
  std::vector<double> padded(const Inputs& inputs) const {
    std::vector<double> values(static_cast<std::size_t>(by_.images * stride_), kNaN);
    for (std::int64_t image = 0; image < by_.images; ++image)
      std::copy_n(inputs.products.begin() + image * by_.classes, by_.classes,
                  values.begin() + image * stride_);
    return values;
  }

  Case by_;
  std::int64_t stride_;
  GuardedTensor products_, norms_, columns_, count_, max_, row_max_, sums_, factor_;
  MarginLogits logits_;
  MarginRows rows_;
};

std::vector<double> gradient_of(const Case& by, const Inputs& inputs, const Statistics& all) {
  std::vector<double> gradient;
  for (std::int64_t image = 0; image < by.images; ++image) {
    const auto i = static_cast<std::size_t>(image);
    const std::int64_t target = target_of(by, inputs, image);
    for (std::int64_t k = 0; k < by.classes; ++k) {
      const double probability = std::exp(logit_of(by, inputs, image, k, nullptr) - all.max[i]) / all.sum[i];
      const double by_logit = k == target ? (probability - 1) * all.factor[i] : probability;
      gradient.push_back(k < by.in_use() ? by_logit / static_cast<double>(by.own.count) * by.rule.scale *
                                               inputs.inverse_norm(k) * by.loss_scale
                                         : 0);
    }
  }
  return gradient;
}

// Fewer classes than one access, than a round of a block, several shares; images that don't fill a group;
// samples of which some or all rows are in use; more rounds than one per block.
const Case kCases[] = {
    {.images = 1, .classes = 1},
    {.images = 5, .classes = 3, .own = {1, 2}, .iteration = 7},
    {.images = 4, .classes = 257, .first_class = 1000, .loss_scale = 1024, .own = {0, 4}},
    {.images = 7, .classes = 2053, .used = 1500, .own = {4, 3}, .iteration = kMetricsKept + 3},
    {.images = 6,
     .classes = 4096,
     .used = 4096,
     .rule = {.scale = 64, .m1 = 1, .m2 = 0, .m3 = 0.4},
     .own = {3, 3}},
    {.images = 3,
     .classes = 100,
     .used = 1,
     .rule = {.scale = 64, .m1 = 1, .m2 = 0.3, .m3 = 0.2, .straight_through = true},
     .own = {0, 3}},
    {.images = 1024, .classes = 7 * 1024 + 1, .own = {512, 256}},
};

std::string text_of(const Case& by, DType dtype) {
  return std::string(name_of(dtype)) + " " + std::to_string(by.images) + " x " + std::to_string(by.classes);
}

bool is_large(const Case& by) {
  return by.images * by.classes > 1000000;
}

TEST(MarginLoss, GathersMaximaAndSumsOfEveryRow) {
  for (const Case& by : kCases) {
    for (DType dtype : kStorageTypes) {
      if (is_large(by) && dtype != DType::f32) continue;
      SCOPED_TRACE(text_of(by, dtype));
      const Inputs inputs = inputs_of(by, dtype);
      const Statistics wanted = statistics_of(by, inputs);
      Softmax softmax(by, dtype, inputs);
      softmax.gather();
      const Statistics found = softmax.statistics();
      expect_close(found.max, wanted.max, DType::f32, 8);
      EXPECT_EQ(softmax.row_max(), found.max);
      expect_close(found.sum, wanted.sum, DType::f32, 16 * by.rule.scale);
      expect_close(found.target, wanted.target, DType::f32, 8);
      expect_close(found.factor, wanted.factor, DType::f32, 8);
    }
  }
}

TEST(MarginLoss, PutsTheGradientInPlaceOfProductsAndKeepsTheRecord) {
  for (const Case& by : kCases) {
    for (DType dtype : kStorageTypes) {
      if (is_large(by) && dtype != DType::f32) continue;
      SCOPED_TRACE(text_of(by, dtype));
      const Inputs inputs = inputs_of(by, dtype);
      Statistics all = statistics_of(by, inputs);
      Softmax softmax(by, dtype, inputs);
      softmax.gather();
      softmax.meet_other_rank(all);
      const IterationRecord record = softmax.put_gradient();
      double loss = 0;
      int top1 = 0;
      for (std::int64_t image = by.own.first; image < by.own.first + by.own.count; ++image) {
        const auto i = static_cast<std::size_t>(image);
        loss += (all.max[i] + std::log(all.sum[i]) - all.target[i]) / static_cast<double>(by.own.count);
        top1 += all.target[i] >= all.max[i] ? 1 : 0;
      }
      EXPECT_NEAR(record.loss, loss, 1e-5 * std::max(1.0, std::abs(loss)));
      EXPECT_EQ(record.top1, top1);
      EXPECT_EQ(record.top5, -1);
      const double scale = by.rule.scale * by.loss_scale / static_cast<double>(by.own.count);
      // A half type rounds once more, and holds nothing below 6e-8.
      expect_close(softmax.products(), gradient_of(by, inputs, all), dtype, dtype == DType::f32 ? 256 : 1.3,
                   dtype == DType::f32 ? scale : std::max(1e-2 * scale, 1e-4));
    }
  }
}

TEST(MarginLoss, IsNaNIfAProductIsNoNumber) {
  for (const double bad : {kNaN, std::numeric_limits<double>::infinity()}) {
    for (std::size_t place : {0, 1, 299}) {
      const Case by{.images = 3, .classes = 300, .own = {0, 3}};
      Inputs inputs = inputs_of(by, DType::f16);
      inputs.products[300 + place] = bad;
      Softmax softmax(by, DType::f16, inputs);
      softmax.gather();
      EXPECT_TRUE(std::isnan(softmax.put_gradient().loss));
      EXPECT_TRUE(std::isnan(softmax.products()[310]));
      EXPECT_FALSE(std::isnan(softmax.products()[0]) || std::isnan(softmax.products()[600])) << "another row";
    }
  }
}

TEST(MarginLoss, StaysFiniteWhereCosinesAreOne) {
  for (const double cosine : {1.0, -1.0}) {
    Case by{.images = 1, .classes = 2};
    by.rule.scale = 64;
    const Inputs inputs{.products = {cosine, -cosine}, .inverse_norms = {1, 1}, .columns = {0}};
    Softmax softmax(by, DType::f32, inputs);
    softmax.gather();
    EXPECT_TRUE(std::isfinite(softmax.put_gradient().loss));
    const std::vector<double> wanted = gradient_of(by, inputs, statistics_of(by, inputs));
    expect_close(softmax.products(), wanted, DType::f32, 256, std::max(64.0, std::abs(wanted[0])));
  }
}

TEST(MarginLoss, HasNothingToAddWithoutColumns) {
  const Case by{.images = 2, .classes = 8, .used = 0};
  Inputs inputs = inputs_of({.images = 2, .classes = 8}, DType::f32);
  inputs.columns = {-1, -1};
  Softmax softmax(by, DType::f32, inputs);
  softmax.gather();
  const Statistics found = softmax.statistics();
  EXPECT_EQ(found.sum, (std::vector<double>{0, 0}));
  for (double max : found.max) EXPECT_LT(max, -1e30);
  EXPECT_EQ(found.target, (std::vector<double>{0, 0}));
}

// Their groups are more than a grid's second dimension holds.
TEST(MarginLoss, TakesTheImagesOf2048GpusWith128Each) {
  const Case by{.images = 2048 * 128, .classes = 1};
  const Inputs inputs = inputs_of(by, DType::f16);
  Softmax softmax(by, DType::f16, inputs);
  softmax.put_gradient();  // of rows whose sums are 0
  std::size_t left = 0;
  for (double product : softmax.products()) left += std::isfinite(product) ? 1 : 0;
  EXPECT_EQ(left, 0U);
}

TEST(MarginLoss, RepeatsBitForBitInAnyOrderOfThreads) {
  const Case by{.images = 9, .classes = 5000, .own = {0, 9}};
  const Inputs inputs = inputs_of(by, DType::bf16);
  std::vector<std::vector<double>> gradients, sums;
  for (int i = 0; i < 3; ++i) {
    Softmax softmax(by, DType::bf16, inputs);
    softmax.gather();
    sums.push_back(softmax.statistics().sum);
    softmax.put_gradient();
    gradients.push_back(softmax.products());
  }
  EXPECT_EQ(sums[1], sums[0]);
  EXPECT_EQ(sums[2], sums[0]);
  EXPECT_EQ(gradients[1], gradients[0]);
  EXPECT_EQ(gradients[2], gradients[0]);
}

}  // namespace
}  // namespace plumb::cuda
