#include "bench/data/image_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>

#include "tests/bench/expect_error.h"
#include "tests/bench/image_files.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

BatchSourceOptions options_for(const ScratchFolder& folder, std::int64_t batch, int workers = 2) {
  BatchSourceOptions options;
  options.data = folder.path();
  options.batch_per_device = batch;
  options.image_size = 16;
  options.workers = workers;
  options.seed = 3;
  return options;
}

struct Batches {
  std::vector<std::uint8_t> images;
  std::vector<std::int32_t> labels;
};

Batches take(BatchSource& source, int count) {
  Batches taken;
  for (int i = 0; i < count; ++i) {
    const PixelBatch batch = source.next();
    taken.images.insert(taken.images.end(), batch.pixels.begin(), batch.pixels.end());
    taken.labels.insert(taken.labels.end(), batch.labels.begin(), batch.labels.end());
  }
  return taken;
}

// A value of /proc/self/status: "VmHWM:" is the peak of resident memory.
std::size_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::size_t kilobytes = 0; word == name && status >> kilobytes) return kilobytes << 10;
  return 0;
}

void make_corrupt(const std::filesystem::path& file) {
  std::filesystem::resize_file(file, 300);
}

TEST(ImageLoader, RanksShareAnEpochWithoutOverlap) {
  const ScratchFolder folder;
  write_image_folder(folder.path(), 24, 1);  // one image per class: the label identifies the image
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::map<std::int64_t, int> seen;
    for (int rank = 0; rank < 3; ++rank) {
      BatchSourceOptions options = options_for(folder, 4);
      options.rank = rank;
      options.world_size = 3;
      ImageLoader loader(options);
      take(loader, 2 * epoch);
      for (const std::int64_t label : take(loader, 2).labels) ++seen[label];
    }
    EXPECT_EQ(seen.size(), 24U);
  }
}

// Only some crops meet damage in the lower half.
void damage_lower_half(const std::filesystem::path& file) {
  const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(file) * 3 / 4);
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(middle).write("\xff\xd9", 2);
}

TEST(ImageLoader, BatchesDoNotDependOnTheNumberOfWorkers) {
  const ScratchFolder folder;
  for (const auto damage : {make_corrupt, damage_lower_half}) {
    write_image_folder(folder.path(), 5, 1);
    write_file(folder / "class_1002/image_0.jpg", encode_jpeg(160, 160, JpegKind::color, [](int x, int y) {
                 return Pixel{static_cast<std::uint8_t>(x * y), static_cast<std::uint8_t>(x), 0};
               }));
    damage(folder / "class_1002/image_0.jpg");
    ImageLoader single(options_for(folder, 3, 1));
    const Batches wanted = take(single, 20);
    EXPECT_EQ(single.corrupt_files().count, 1);
    for (const int workers : {2, 7}) {
      ImageLoader loader(options_for(folder, 3, workers));
      const Batches found = take(loader, 20);
      EXPECT_EQ(found.labels, wanted.labels) << workers << " workers";
      EXPECT_EQ(found.images, wanted.images) << workers << " workers";
    }
    const bool is_used = std::ranges::count(wanted.labels, 2) > 0;
    EXPECT_EQ(is_used, damage == damage_lower_half);
  }
}

TEST(ImageLoader, SeedsAndEpochsGiveOtherPixels) {
  const ScratchFolder folder;
  write_image_folder(folder.path(), 1, 1);
  ImageLoader loader(options_for(folder, 1));
  BatchSourceOptions other_seed = options_for(folder, 1);
  other_seed.seed = 4;
  ImageLoader other(other_seed);
  const Batches epochs = take(loader, 2);
  const auto half = static_cast<std::ptrdiff_t>(epochs.images.size() / 2);
  const std::vector<std::uint8_t> first(epochs.images.begin(), epochs.images.begin() + half);
  EXPECT_NE(first, std::vector<std::uint8_t>(epochs.images.begin() + half, epochs.images.end()));
  EXPECT_NE(first, take(other, 1).images);
}

TEST(ImageLoader, AFolderSmallerThanABatchGoesRoundAndRound) {
  const ScratchFolder folder;
  write_image_folder(folder.path(), 3, 1);
  ImageLoader loader(options_for(folder, 32));
  std::map<std::int64_t, int> seen;
  for (const std::int64_t label : take(loader, 3).labels) ++seen[label];
  ASSERT_EQ(seen.size(), 3U);
  for (const auto& [label, count] : seen) EXPECT_EQ(count, 32) << "label " << label;
}

TEST(ImageLoader, PixelsAreTheImages) {
  const ScratchFolder folder;
  write_file(folder / "red/a.jpg", flat_jpeg(50, 50, {254, 0, 0, 0}));
  ImageLoader loader(options_for(folder, 2));
  const PixelBatch batch = loader.next();
  ASSERT_EQ(batch.pixels.size(), 2U * 16 * 16 * 3);
  EXPECT_NEAR(batch.pixels[0], 254, 2);
  EXPECT_NEAR(batch.pixels[1], 0, 2);
  EXPECT_NEAR(batch.pixels.back(), 0, 2);
}

TEST(ImageLoader, FacesAreWholeImagesMirroredBySeed) {
  const ScratchFolder folder;
  // Not square, dark to bright from left to right: nothing is cropped.
  write_file(folder / "a/a.jpg", encode_jpeg(32, 48, JpegKind::color, [](int x, int) {
               const auto shade = static_cast<std::uint8_t>(8 * x);
               return Pixel{shade, shade, shade, 0};
             }));
  BatchSourceOptions options = options_for(folder, 64);
  options.preprocessing = Preprocessing::insightface;
  const auto left_edges = [](const BatchSourceOptions& wanted) {
    ImageLoader loader(wanted);
    const PixelBatch batch = loader.next();
    std::vector<int> edges;
    for (std::size_t row = 0; row < 64; ++row) {
      const int left = batch.pixels[row * 768], right = batch.pixels[row * 768 + 15 * 3];
      EXPECT_NEAR(std::min(left, right), 4, 7);
      EXPECT_NEAR(std::max(left, right), 244, 7);
      edges.push_back(left);
    }
    return edges;
  };
  const std::vector<int> edges = left_edges(options);
  EXPECT_NEAR(std::ranges::count_if(edges, [](int left) { return left > 127; }), 32, 20);
  EXPECT_EQ(edges, left_edges(options));
  options.seed = 4;
  EXPECT_NE(edges, left_edges(options));
}

TEST(ImageLoader, BuffersAreReused) {
  const ScratchFolder folder;
  write_image_folder(folder.path(), 2, 2);
  ImageLoader loader(options_for(folder, 4));
  std::map<const std::uint8_t*, int> buffers;
  for (int i = 0; i < 35; ++i) ++buffers[loader.next().pixels.data()];
  EXPECT_EQ(buffers.size(), 7U);  // three that a GPU may read, four ahead
}

TEST(ImageLoader, ABatchStaysUntilTheThirdCallAfterIt) {
  const ScratchFolder folder;
  write_image_folder(folder.path(), 6, 2);
  ImageLoader loader(options_for(folder, 3, 4));
  const PixelBatch first = loader.next();
  const std::vector<std::uint8_t> pixels(first.pixels.begin(), first.pixels.end());
  take(loader, 2);
  ImageLoader again(options_for(folder, 3, 4));
  take(again, 30);  // time for workers that shouldn't
  EXPECT_TRUE(std::ranges::equal(first.pixels, pixels));
}

TEST(ImageLoader, BatchesLieInTheMemoryThatIsGiven) {
  const ScratchFolder folder;
  write_image_folder(folder.path(), 2, 2);
  BatchSourceOptions options = options_for(folder, 4);
  std::size_t given = 0;
  options.allocate = [&](std::size_t bytes) {
    given += bytes;
    return std::shared_ptr<std::byte>(new std::byte[bytes], std::default_delete<std::byte[]>());
  };
  ImageLoader loader(options);
  EXPECT_EQ(given, 7U * (4 * 16 * 16 * 3 + 4 * sizeof(std::int32_t)));
  EXPECT_GT(loader.host_bytes(), given);
}

TEST(ImageLoader, OneImageServesEightRanks) {
  const ScratchFolder folder;
  write_image_folder(folder.path(), 1, 1);
  for (int rank = 0; rank < 8; ++rank) {
    BatchSourceOptions options = options_for(folder, 2);
    options.rank = rank;
    options.world_size = 8;
    ImageLoader loader(options);
    EXPECT_EQ(take(loader, 2).labels, (std::vector<std::int32_t>{0, 0, 0, 0}));
  }
}

TEST(ImageLoader, FilesThatAreNoImageOrPlannedByNobodyAreSkippedNamedAndCountedOnce) {
  struct Case {
    std::function<void(const ScratchFolder&)> damage;
    std::string named;
  };
  for (const Case& one : std::vector<Case>{
           {[](const auto& folder) { make_corrupt(folder / "class_1004/image_0.jpg"); },
            "class_1004/image_0.jpg ("},
           {[](const auto& folder) {
              write_file(folder / "class_1004/large.jpg", progressive_jpeg(11584, 11584));
            },
            "class_1004/large.jpg (11584 x 11584 pixels in several scans"},
           {[](const auto& folder) {
              std::filesystem::resize_file(folder / "class_1004/image_0.jpg", kMostEncodedBytes + 1);
            },
            "class_1004/image_0.jpg (over 32 MiB)"},
           {[](const auto& folder) {
              std::filesystem::create_symlink("nowhere", folder / "class_1004/gone.jpg");
            },
            "No such file"}}) {
    const ScratchFolder folder;
    write_image_folder(folder.path(), 10, 2);
    one.damage(folder);
    ImageLoader loader(options_for(folder, 5));
    EXPECT_EQ(take(loader, 20).labels.size(), 100U);  // five epochs
    const CorruptFiles corrupt = loader.corrupt_files();
    EXPECT_EQ(corrupt.count, 1) << one.named;
    ASSERT_EQ(corrupt.first.size(), 1U);
    EXPECT_NE(corrupt.first.front().find(one.named), std::string::npos) << corrupt.first.front();
  }
  EXPECT_GT(ImageLoader::batches_bytes(options_for(ScratchFolder(), 5)),
            ImageDecoder::kMostCoefficientBytes + kMostEncodedBytes);
}

// A photograph's file may have anything behind its end.
TEST(ImageLoader, LargeFilesAreHeldOneAtATime) {
  if (*PLUMB_TEST_SANITIZERS) GTEST_SKIP() << "sanitizers keep what is freed";
  constexpr int kWorkers = 4;
  constexpr std::size_t kFile = std::size_t{24} << 20;
  const ScratchFolder folder;
  write_image_folder(folder.path(), 8, 1);
  const auto images = [&] {
    ImageLoader loader(options_for(folder, 8, kWorkers));
    return take(loader, 1).images;
  };
  const std::vector<std::uint8_t> wanted = images();
  for (int i = 0; i < 8; ++i)
    std::filesystem::resize_file(folder / fmt::format("class_{}/image_0.jpg", 1000 + i), kFile);
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins anew
  const std::size_t before = status_bytes("VmHWM:");
  EXPECT_EQ(images(), wanted);
  EXPECT_LT(status_bytes("VmHWM:"), before + kFile + kFile / 2);
}

TEST(ImageLoader, LargeImagesTakeMoreMemoryPerWorker) {
  const ScratchFolder folder;
  const auto bytes_per_worker = [&](std::int64_t image_size) {
    BatchSourceOptions options = options_for(folder, 64, 3);
    options.image_size = image_size;
    const std::size_t three = ImageLoader::batches_bytes(options);
    options.workers = 4;
    return ImageLoader::batches_bytes(options) - three;
  };
  EXPECT_EQ(bytes_per_worker(224), std::size_t{16} << 20);
  const ImageSize part{4095, 5460};  // the largest crop decoded at full size for 2048 pixels
  EXPECT_EQ(eighths_that_cover(part, 2048), 8);
  EXPECT_GE(bytes_per_worker(2048), std::size_t{4} * 4095 * 5460);
}

TEST(ImageLoader, ImagesOfOtherNamesOrClassesAreToldApart) {
  const ScratchFolder folder, other;
  const auto fingerprints_are_equal = [&] {
    return ImageLoader(options_for(folder, 1)).fingerprint() ==
           ImageLoader(options_for(other, 1)).fingerprint();
  };
  for (const ScratchFolder* place : {&folder, &other}) write_image_folder(place->path(), 3, 2);
  EXPECT_TRUE(fingerprints_are_equal());
  std::filesystem::rename(other / "class_1001/image_1.jpg", other / "class_1001/image_2.jpg");
  EXPECT_FALSE(fingerprints_are_equal());
  std::filesystem::rename(other / "class_1001/image_2.jpg", other / "class_1001/image_1.jpg");
  std::filesystem::rename(other / "class_1002", other / "class_1003");
  EXPECT_FALSE(fingerprints_are_equal());
}

TEST(ImageLoader, TheFollowingImageTakesACorruptOnesPlace) {
  const ScratchFolder folder;
  write_image_folder(folder.path(), 8, 1);
  ImageLoader whole(options_for(folder, 8));
  std::vector<std::int32_t> wanted = take(whole, 1).labels;
  make_corrupt(folder / ("class_" + std::to_string(1000 + wanted[3])) / "image_0.jpg");
  wanted[3] = wanted[4];
  ImageLoader loader(options_for(folder, 8));
  EXPECT_EQ(take(loader, 1).labels, wanted);
}

TEST(ImageLoader, TooManyCorruptFilesEndTheRun) {
  const ScratchFolder folder;
  write_image_folder(folder.path(), 10, 2);
  make_corrupt(folder / "class_1004/image_0.jpg");
  write_file(folder / "class_1007/image_1.jpg", {});
  for (const int workers : {1, 4})
    expect_error(ExitCode::bad_data, {"--data", "2 of 20", "class_1004/image_0.jpg", "(empty file)"}, [&] {
      ImageLoader loader(options_for(folder, 5, workers));
      take(loader, 20);
    });
}

TEST(ImageLoader, AFolderOfCorruptFilesAloneEndsTheRun) {
  const ScratchFolder folder;
  write_file(folder / "only/a.jpg", flat_jpeg(50, 50, {1, 1, 1, 0}));
  make_corrupt(folder / "only/a.jpg");
  expect_error(ExitCode::bad_data, {"only/a.jpg"}, [&] { ImageLoader(options_for(folder, 1)).next(); });
}

}  // namespace
}  // namespace plumb
