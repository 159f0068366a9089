
#include <gtest/gtest.h>

#include "bench/data/encoded_images.h"
#include "bench/data/image_loader.h"
#include "bench/data/record_io.h"
#include "tests/bench/expect_error.h"
#include "tests/bench/image_files.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

std::uint64_t pack(const ScratchFolder& place, const std::string& name = "packed") {
  const auto images = open_folder(place / "images", 1000);
  RecordFiles files({.option = "OUT", .path = place / name});
  return write_records(*images, files, [](std::size_t) {});
}

void expect_same_batches(const std::string& data, const std::string& other, int rank, int world_size) {
  BatchSourceOptions options{.data = data,
                             .batch_per_device = 3,
                             .image_size = 16,
                             .seed = 5,
                             .rank = rank,
                             .world_size = world_size,
                             .workers = 2};
  ImageLoader first(options);
  options.data = other;
  options.workers = 1;
  ImageLoader second(options);
  for (int i = 0; i < 8; ++i) {
    const PixelBatch a = first.next(), b = second.next();
    EXPECT_TRUE(std::ranges::equal(a.labels, b.labels));
    EXPECT_TRUE(std::ranges::equal(a.pixels, b.pixels));
  }
}

TEST(RecordWriter, APackedFolderGivesTheSameBatchesOnEveryRank) {
  const ScratchFolder place;
  write_image_folder(place / "images", 5, 3);
  const std::uint64_t bytes = pack(place);
  EXPECT_EQ(bytes, std::filesystem::file_size(place / "packed.rec"));
  EXPECT_EQ(place.list(), (std::vector<std::string>{"images", "packed.idx", "packed.rec"}));
  expect_same_batches(place / "images", place / "packed.rec", 0, 1);
  for (const int rank : {0, 1, 2}) expect_same_batches(place / "images", place / "packed.rec", rank, 3);
}

TEST(RecordWriter, BytesLabelsAndOrderAreTheFolders) {
  const ScratchFolder place;
  // The magic number at every distance from a multiple of 4: some of these records are split.
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::vector<std::uint8_t> bytes(8 + shift, 1);
    bytes.insert(bytes.end(), {0x0a, 0x23, 0xd7, 0xce, 2});
    write_file(place / ("images/class_" + std::to_string(shift / 2) + "/" + std::to_string(shift) + ".jpg"),
               bytes);
  }
  pack(place, "named.rec");
  const auto folder = open_folder(place / "images", 1000);
  const auto records = open_records(place / "named.rec", 2);
  ASSERT_EQ(records->count(), 4U);
  std::vector<std::uint8_t> buffer, other;
  for (std::size_t i = 0; i < 4; ++i) {
    const EncodedImage wanted = folder->read(i, buffer), found = records->read(i, other);
    EXPECT_EQ(found.label, static_cast<std::int64_t>(i / 2));
    EXPECT_TRUE(std::ranges::equal(found.bytes, wanted.bytes)) << "image " << i;
  }
}

TEST(RecordWriter, NothingIsReplacedAndNothingIsLeft) {
  for (const std::string taken : {"packed.rec", "packed.idx"}) {
    const ScratchFolder place;
    write_image_folder(place / "images", 1, 1);
    place.write(taken, "mine");
    expect_error(ExitCode::cannot_create, {taken + " exists already; pass another OUT"},
                 [&] { pack(place); });
    EXPECT_EQ(read_text(place / taken), "mine");
    EXPECT_EQ(place.list(), (std::vector<std::string>{"images", taken}));
  }
  const ScratchFolder place;
  write_image_folder(place / "images", 1, 1);
  expect_error(ExitCode::cannot_create, {"none does not exist; create it"},
               [&] { pack(place, "none/packed"); });
}

TEST(RecordWriter, ANameTakenMeanwhileIsNotReplaced) {
  for (const std::string taken : {"packed.rec", "packed.idx"}) {
    const ScratchFolder place;
    write_image_folder(place / "images", 1, 2);
    const auto images = open_folder(place / "images", 1000);
    const auto packing = [&] {
      RecordFiles files({.option = "OUT", .path = place / "packed"});
      write_records(*images, files, [&](std::size_t) { place.write(taken, "other"); });
    };
    expect_error(ExitCode::cannot_create, {taken + " exists already"}, packing);
    EXPECT_EQ(read_text(place / taken), "other");
    EXPECT_EQ(place.list(), (std::vector<std::string>{"images", taken}));
  }
}

TEST(RecordWriter, TheLargestImageThatAFolderMayHoldCanBeReadAgain) {
  const ScratchFolder place;
  write_file(place / "images/a/a.jpg", std::vector<std::uint8_t>(kMostEncodedBytes, 7));
  pack(place);
  const auto records = open_records(place / "packed.rec", 1);
  std::vector<std::uint8_t> buffer(std::min(records->encoded_bytes(0), kMostReadBytes));
  EXPECT_EQ(records->read(0, buffer).bytes.size(), kMostEncodedBytes);
  EXPECT_LE(buffer.size(), kMostReadBytes);
}

TEST(RecordWriter, AnImageThatCannotBePackedIsNamedAndNoFileIsLeft) {
  const ScratchFolder place;
  write_image_folder(place / "images", 2, 2);
  write_file(place / "images/class_1001/image_0.jpg", {});
  expect_error(ExitCode::bad_data, {"class_1001/image_0.jpg", "empty file", "repair"}, [&] { pack(place); });
  EXPECT_EQ(place.list(), std::vector<std::string>{"images"});
  std::filesystem::remove(place / "images/class_1001/image_0.jpg");
  std::filesystem::create_symlink("nowhere", place / "images/class_1001/image_0.jpg");
  expect_error(ExitCode::bad_data, {"class_1001/image_0.jpg", "No such file"}, [&] { pack(place); });
  EXPECT_EQ(place.list(), std::vector<std::string>{"images"});
}

}  // namespace
}  // namespace plumb
