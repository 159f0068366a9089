// Class-centre samples on the emulated GPU: exactly the rows, in exactly the order, of models/margin_head.h.
#include "kernels/cuda/margin_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/cuda_host/guarded_tensor.h"

namespace plumb::cuda {
namespace {

struct Case {
  std::int64_t images = 1;  // on all ranks
  std::int32_t first_class = 0, own_classes = 1, least = 1;
  std::int64_t classes = 1;  // range of the labels …
  std::int64_t stride = 1;   // … and their distance, so some repeat
  std::uint64_t iteration = 0;

  std::int64_t capacity() const {
    return std::max<std::int64_t>(least, std::min<std::int64_t>(images, own_classes));
  }
};

struct Sample {
  std::vector<double> rows, columns;
  double count = 0;
  bool operator==(const Sample&) const = default;
};

constexpr PhiloxKey kKey{0x12345678, 0x9ABCDEF0};

std::vector<double> labels_of(const Case& by) {
  std::vector<double> labels;
  for (std::int64_t i = 0; i < by.images; ++i)
    labels.push_back(static_cast<double>(i * by.stride % by.classes));
  return labels;
}

Sample wanted_sample(const Case& by) {
  std::set<std::int64_t> positives;
  for (double label : labels_of(by)) {
    const std::int64_t row = static_cast<std::int64_t>(label) - by.first_class;
    if (row >= 0 && row < by.own_classes) positives.insert(row);
  }
  Sample sample{.rows = {positives.begin(), positives.end()}};
  const std::size_t size = std::max<std::size_t>(positives.size(), static_cast<std::size_t>(by.least));
  const auto permutation = class_permutation(kKey, by.iteration, static_cast<std::uint32_t>(by.own_classes));
  for (std::uint32_t i = 0; sample.rows.size() < size; ++i)
    if (!positives.contains(permutation(i))) sample.rows.push_back(permutation(i));
  for (double label : labels_of(by)) {
    const auto found = positives.find(static_cast<std::int64_t>(label) - by.first_class);
    sample.columns.push_back(
        found == positives.end() ? -1 : static_cast<double>(std::distance(positives.begin(), found)));
  }
  sample.count = static_cast<double>(size);
  sample.rows.resize(static_cast<std::size_t>(by.capacity()), -1);
  return sample;
}

Sample drawn(const Case& by) {
  const State state{.step = {.iteration = by.iteration}};
  GuardedTensor labels(DType::i32, labels_of(by)),
      samples(DType::i32, static_cast<std::size_t>(by.capacity()));
  GuardedTensor columns(DType::i32, static_cast<std::size_t>(by.images)), count(DType::i32, 1);
  GuardedTensor workspace(DType::u8, sample_workspace_bytes(by.images, by.capacity()));
  launch_margin_sample({.labels = labels.as<std::int32_t>(),
                        .state = &state,
                        .samples = samples.as<std::int32_t>(),
                        .sample_count = count.as<std::int32_t>(),
                        .columns = columns.as<std::int32_t>(),
                        .workspace = workspace.as<std::int32_t>(),
                        .key = kKey,
                        .images = by.images,
                        .capacity = by.capacity(),
                        .first_class = by.first_class,
                        .own_classes = by.own_classes,
                        .least = by.least},
                       nullptr);
  return {.rows = samples.values(), .columns = columns.values(), .count = count.values().front()};
}

const Case kCases[] = {
    {},
    {.images = 8, .own_classes = 10, .least = 1, .classes = 40, .stride = 3},  // more positives than samples
    {.images = 8, .own_classes = 10, .least = 10, .classes = 10},              // all classes
    {.images = 6, .first_class = 90, .own_classes = 10, .least = 4, .classes = 50},  // no positive
    {.images = 6, .own_classes = 10, .least = 0, .classes = 50, .stride = 13},
    {.images = 300,
     .first_class = 25,
     .own_classes = 50,
     .least = 20,
     .classes = 100,
     .stride = 7},  // duplicates
    {.images = 40,
     .first_class = 10,
     .own_classes = 20,
     .least = 5,
     .classes = 40,
     .iteration = 3},  // shard boundaries
    {.images = 64,
     .own_classes = 100000,
     .least = 5000,
     .classes = 100000,
     .stride = 997,
     .iteration = 1ULL << 33},
    {.images = 5000, .first_class = 1000, .own_classes = 3000, .least = 300, .classes = 4000, .stride = 11},
};

TEST(MarginSample, TakesLabelsThenThePermutationsValuesInTheirOrder) {
  for (const Case& by : kCases) {
    SCOPED_TRACE(testing::Message() << by.images << " images, " << by.least << " of " << by.own_classes);
    const Sample sample = drawn(by), wanted = wanted_sample(by);
    EXPECT_EQ(sample.rows, wanted.rows);
    EXPECT_EQ(sample.columns, wanted.columns);
    EXPECT_EQ(sample.count, wanted.count);
  }
}

TEST(MarginSample, DiffersFromIterationToIteration) {
  Case by{.images = 4, .own_classes = 1000, .least = 100, .classes = 1000};
  const Sample first = drawn(by);
  EXPECT_EQ(drawn(by), first);
  by.iteration = 1;
  EXPECT_NE(drawn(by).rows, first.rows);
}

TEST(MarginSample, GathersItsRowsAndZeros) {
  constexpr std::size_t kClasses = 9, kCapacity = 5;
  for (std::size_t embedding : {8, 24, 264}) {
    for (DType dtype : kStorageTypes) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << embedding);
      const std::vector<double> weights = normal_values(DType::f32, kClasses * embedding, 4);
      const std::vector<double> samples{8, 0, 3, -1, -1};
      GuardedTensor weight(DType::f32, weights), rows(dtype, kCapacity * embedding),
          chosen(DType::i32, samples);
      GuardedTensor count(DType::i32, std::vector<double>{3});
      launch_margin_gather({.samples = chosen.as<std::int32_t>(),
                            .sample_count = count.as<std::int32_t>(),
                            .weight = weight.as<float>(),
                            .rows = rows.data(),
                            .dtype = dtype},
                           kCapacity, static_cast<std::int64_t>(embedding), nullptr);
      std::vector<double> wanted(kCapacity * embedding, 0.0);
      for (std::size_t k = 0; k < 3; ++k)
        for (std::size_t i = 0; i < embedding; ++i)
          wanted[k * embedding + i] =
              rounded(dtype, weights[static_cast<std::size_t>(samples[k]) * embedding + i]);
      EXPECT_EQ(rows.values(), wanted);
    }
  }
}

}  // namespace
}  // namespace plumb::cuda
