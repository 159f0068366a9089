#include "bench/data/batch_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "models/weights.h"
#include "tests/bench/expect_error.h"
#include "tests/bench/image_files.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

BatchSourceOptions synthetic(std::uint64_t seed, int rank) {
  BatchSourceOptions options;
  options.batch_per_device = 16;
  options.image_size = 32;
  options.seed = seed;
  options.rank = rank;
  options.world_size = 4;
  return options;
}

// All parts of the batch of every step.
struct WholeBatch {
  std::vector<float> images;
  std::vector<std::int64_t> labels;
  int parts = 0;
};
WholeBatch batch_of(const BatchSourceOptions& options) {
  WholeBatch batch;
  make_batch_source(options)->write_lasting([&](std::int64_t first_image, const Batch& part) {
    EXPECT_EQ(first_image, std::ssize(batch.labels));
    batch.images.insert(batch.images.end(), part.images.begin(), part.images.end());
    batch.labels.insert(batch.labels.end(), part.labels.begin(), part.labels.end());
    ++batch.parts;
  });
  return batch;
}
std::vector<float> images_of(const BatchSourceOptions& options) {
  return batch_of(options).images;
}

TEST(SyntheticSource, PixelsAreStandardNormalAndLabelsUniform) {
  BatchSourceOptions options = synthetic(1, 0);
  options.batch_per_device = 500;
  options.image_size = 16;
  options.classes = 10;
  const WholeBatch batch = batch_of(options);
  ASSERT_EQ(batch.images.size(), 500U * 3 * 16 * 16);
  double sum = 0, squares = 0;
  for (const float pixel : batch.images) sum += pixel, squares += pixel * pixel;
  const auto count = static_cast<double>(batch.images.size());
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 1, 0.01);
  std::vector<int> hits(10);
  for (const std::int64_t label : batch.labels) ++hits.at(static_cast<std::size_t>(label));
  for (const int hit : hits) EXPECT_NEAR(hit, 50, 30);
}

TEST(SyntheticSource, DependsOnSeedAndRankAlone) {
  EXPECT_EQ(images_of(synthetic(1, 0)), images_of(synthetic(1, 0)));
  EXPECT_NE(images_of(synthetic(1, 0)), images_of(synthetic(1, 1)));
  EXPECT_NE(images_of(synthetic(1, 0)), images_of(synthetic(2, 0)));
}

TEST(SyntheticSource, ALargeBatchComesInPartsAndBeginsLikeASmallOne) {
  BatchSourceOptions options = synthetic(1, 0);
  options.image_size = 1200;  // an image has more than half of what is made at once
  options.batch_per_device = 1;
  const WholeBatch one = batch_of(options);
  options.batch_per_device = 3;
  const WholeBatch three = batch_of(options);
  EXPECT_EQ(three.parts, 3);
  EXPECT_TRUE(std::ranges::equal(one.images, std::span(three.images).first(one.images.size())));
  EXPECT_EQ(three.images.size(), 3 * one.images.size());
  EXPECT_EQ(three.labels.size(), 3U);
}

// A batch file with `rows` rows of 3 x 4 x 4; tests overwrite the parts to be wrong.
TensorFile batch_tensors(std::int64_t rows) {
  TensorFile file;
  Tensor& images = file.floats["images"];
  images.dims = {rows, 3, 4, 4};
  images.values.resize(static_cast<std::size_t>(rows * 48));
  std::iota(images.values.begin(), images.values.end(), 0.0F);
  std::vector<std::int64_t> labels(static_cast<std::size_t>(rows));
  std::iota(labels.begin(), labels.end(), 5);
  file.integers["labels"] = {{rows}, labels};
  return file;
}

class BatchFile : public testing::Test {
 protected:
  BatchSourceOptions written(const TensorFile& file) {
    BatchSourceOptions options;
    options.batch_file = (folder_ / "batch.safetensors").string();
    std::filesystem::remove(options.batch_file);
    write_safetensors(options.batch_file, file);
    options.batch_per_device = 2;
    options.image_size = 4;
    options.classes = 10;
    return options;
  }
  void expect_refused(const TensorFile& file, std::vector<std::string> words) {
    const BatchSourceOptions options = written(file);
    words.push_back("--batch-file");
    words.push_back("batch.safetensors");
    expect_error(ExitCode::bad_data, words, [&] { make_batch_source(options); });
  }

 private:
  ScratchFolder folder_;
};

TEST_F(BatchFile, GivesItsFirstRowsToEveryRank) {
  BatchSourceOptions options = written(batch_tensors(3));
  for (const int rank : {0, 1}) {
    options.rank = rank;
    const WholeBatch batch = batch_of(options);
    ASSERT_EQ(batch.images.size(), 96U);
    EXPECT_EQ(batch.images[95], 95);
    EXPECT_EQ(batch.labels, (std::vector<std::int64_t>{5, 6}));
  }
}

TEST_F(BatchFile, TooFewRowsAreRefused) {
  expect_refused(batch_tensors(1), {"\"images\"", "1 rows", "fewer than --bs 2", "smaller --bs"});
  TensorFile file = batch_tensors(2);
  file.integers["labels"] = {{1}, {3}};
  expect_refused(file, {"\"labels\"", "1 rows", "fewer than --bs 2"});
}

TEST_F(BatchFile, WrongShapesAreRefusedWithWantedAndFound) {
  TensorFile file = batch_tensors(2);
  file.floats["images"].dims = {2, 3, 2, 8};
  expect_refused(file, {"\"images\"", "[2, 3, 4, 4]", "[2, 3, 2, 8]"});
  file = batch_tensors(2);
  file.integers["labels"] = {{2, 1}, {1, 1}};
  expect_refused(file, {"\"labels\"", "[2]", "[2, 1]"});
}

TEST_F(BatchFile, MissingTensorsAndTypesAreNamed) {
  TensorFile file = batch_tensors(2);
  file.floats.erase("images");
  expect_refused(file, {"fp32", "\"images\""});
  file = batch_tensors(2);
  file.integers.erase("labels");
  file.floats["labels"] = {{2}, {1, 2}};
  expect_refused(file, {"int64", "\"labels\""});
}

TEST_F(BatchFile, LabelsOutsideTheClassesAreRefused) {
  for (const std::int64_t label : {-1, 10}) {
    TensorFile file = batch_tensors(3);
    file.integers["labels"].values[1] = label;
    expect_refused(file, {"label " + std::to_string(label), "row 1", "0 to 9"});
  }
}

TEST_F(BatchFile, RowsThatAreNotTakenAreNotJudged) {
  TensorFile file = batch_tensors(3);
  file.integers["labels"].values[2] = 99;
  EXPECT_NO_THROW(make_batch_source(written(file)));
}

}  // namespace
}  // namespace plumb
