#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>

#include "base/error.h"
#include "bench/data/encoded_images.h"
#include "bench/data/image_loader.h"
#include "tests/bench/expect_error.h"
#include "tests/bench/image_files.h"
#include "tests/bench/record_files.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

class RecordFolder : public testing::Test {
 protected:
  std::unique_ptr<EncodedImages> open(const Packed& packed, std::int64_t classes = 10) {
    write_file(folder_ / "x.rec", packed.records);
    write_text(folder_ / "x.idx", packed.index);
    return open_records(folder_ / "x.rec", classes);
  }
  void expect_refused(const Packed& packed, const std::vector<std::string>& words,
                      std::int64_t classes = 10) {
    expect_error(ExitCode::bad_data, words, [&] { open(packed, classes); });
  }
  BatchSourceOptions loading(const Packed& packed, std::int64_t batch) {
    open(packed);
    return {.data = folder_ / "x.rec",
            .batch_per_device = batch,
            .image_size = 16,
            .classes = 10,
            .seed = 3,
            .workers = 2};
  }
  std::vector<std::int64_t> labels_of(const EncodedImages& images) {
    std::vector<std::int64_t> labels;
    for (std::size_t i = 0; i < images.count(); ++i) labels.push_back(images.read(i, buffer_).label);
    return labels;
  }
  // Opens the files in their current state and reads every image; true if something was rejected, which
  // requires a file name or a reason in the message.
  bool is_refused() {
    try {
      const auto images = open_records(folder_ / "x.rec", 10);
      for (std::size_t i = 0; i < images->count(); ++i) images->read(i, buffer_);
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(ExitCode::bad_data));
      const std::string sentence = error.what();
      EXPECT_TRUE(sentence.find("x.rec") != std::string::npos || sentence.find("x.idx") != std::string::npos)
          << sentence;
    } catch (const CorruptImage& reason) {
      EXPECT_FALSE(std::string(reason.what()).empty());
    }
    return true;
  }

  ScratchFolder folder_;
  Bytes buffer_;
};

TEST_F(RecordFolder, ImagesComeInTheOrderOfTheirKeys) {
  Packed packed;
  for (const int key : {12, 3, 7})
    packed.add(static_cast<std::uint64_t>(key), record_of({static_cast<float>(key) / 3}, {1}));
  packed.index =
      "12\t0\n7\t" + std::to_string(packed.offsets[2]) + "\n3\t" + std::to_string(packed.offsets[1]);
  const auto images = open(packed);
  ASSERT_EQ(images->count(), 3U);
  EXPECT_EQ(images->read(0, buffer_).label, 1);
  EXPECT_THROW(images->read(1, buffer_), CorruptImage);  // 7/3 isn't a label
  EXPECT_EQ(images->read(2, buffer_).label, 4);
  EXPECT_EQ(images->name_of(0),
            (folder_ / "x.rec").string() + ": record 3 at offset " + std::to_string(packed.offsets[1]));
  EXPECT_NE(images->description().find("3 images from "), std::string::npos);
}

TEST_F(RecordFolder, HeaderTellsImagesFromIdentities) {
  const auto images = open(faces(5), 2);
  EXPECT_EQ(labels_of(*images), (std::vector<std::int64_t>{1, 0, 1, 0, 1}));
}

TEST_F(RecordFolder, ALabelArrayInTheFirstImageIsNoHeader) {
  Packed packed;
  packed.add(0, record_of({4, 9}, small_jpeg(1)));
  packed.add(1, record_of({5, 9}, small_jpeg(2)));
  EXPECT_EQ(labels_of(*open(packed)), (std::vector<std::int64_t>{4, 5}));
}

TEST_F(RecordFolder, HeadersThatDoNotFitAreRefused) {
  Packed packed = faces(5);
  expect_refused(packed, {"--data", "x.rec", "2 identities", "1 classes"}, 1);
  packed.index.erase(packed.index.find("3\t"), packed.index.find("4\t") - packed.index.find("3\t"));
  expect_refused(packed, {"x.rec", "the images 1 to 5", "x.idx has 4"});
  for (const auto& [end, last] :
       std::map<float, float>{{0, 1}, {3.5, 4}, {5, 4}, {-1, 2}, {2, INFINITY}, {NAN, 1}}) {
    Packed bad;
    bad.add(0, record_of({end, last}, {}));
    bad.add(1, record_of({1}, small_jpeg(1)));
    expect_refused(bad, {"x.rec", "not a range"});
  }
  packed = faces(5);
  packed.records[0] ^= 1;
  expect_refused(packed, {"x.rec", "record 0 at offset 0", "magic"});
}

TEST_F(RecordFolder, LabelsWithoutImagesAreRefused) {
  expect_refused(faces(0), {"x.rec", "labels only"});
}

TEST_F(RecordFolder, IndexesThatAreNoneAreRefusedWithTheLine) {
  Packed packed = images_with_labels({1, 2});
  const std::string good = packed.index;
  for (const std::string bad :
       {"x\t0\n", "3 0\n", "3\t\n", "3\t0x10\n", "3\t-4\n", "\n", "3\t0\t\n", "3.0\t0\n",
        "99999999999999999999\t0\n", "3\t99999999999999999999\n", "3", "3\t"}) {
    packed.index = good + bad;
    expect_refused(packed, {"--data", "x.idx", "line 3", "again"});
  }
  packed.index = good + "1\t0\n";
  expect_refused(packed, {"x.idx", "key 1 appears twice"});
  packed.index = "";
  expect_refused(packed, {"x.idx", "is empty"});
  std::filesystem::remove(folder_ / "x.idx");
  expect_error(ExitCode::bad_data, {"x.idx", "cannot read", "next to"},
               [&] { open_records(folder_ / "x.rec", 10); });
}

TEST_F(RecordFolder, IndexesOfAnotherFileAreRefused) {
  Packed packed = images_with_labels({1, 2});
  const std::string good = packed.index;
  packed.index = good + "2\t" + std::to_string(packed.records.size()) + "\n";
  expect_refused(packed, {"x.rec", "record 2", "x.idx", "truncated"});
  packed.index = good + "2\t6\n";
  expect_refused(packed, {"x.rec", "record 2", "byte 6"});
  packed.index = good.substr(0, good.find('\n') + 1);
  expect_refused(packed, {"x.rec", "follow record 0", "truncated"});
}

TEST_F(RecordFolder, AnIndexThatIsAPipeIsRefusedAndNotWaitedFor) {
  write_file(folder_ / "x.rec", images_with_labels({1}).records);
  ASSERT_EQ(mkfifo((folder_ / "x.idx").c_str(), 0644), 0);
  expect_error(ExitCode::bad_data, {"x.idx", "expected a regular file"},
               [&] { open_records(folder_ / "x.rec", 10); });
}

TEST_F(RecordFolder, AnIndexLargerThanAnyIsRefusedUnread) {
  write_file(folder_ / "x.rec", images_with_labels({1}).records);
  folder_.write_sparse("x.idx");
  expect_error(ExitCode::bad_data,
               {"--data", "x.idx: expected at most 2048 MiB, found 1099511627776 bytes", "next to"},
               [&] { open_records(folder_ / "x.rec", 10); });
}

TEST_F(RecordFolder, ALabelBeyondTheClassesEndsTheRunAndNamesTheRecord) {
  const Packed packed = images_with_labels({1, 2, 10});
  const auto images = open(packed);
  EXPECT_EQ(images->read(0, buffer_).label, 1);
  expect_error(ExitCode::bad_data,
               {"--data", "x.rec: record 2 at offset", "label 10", "10 classes", "0 to 9"},
               [&] { images->read(2, buffer_); });
  expect_error(ExitCode::bad_data, {"label 10"}, [&] { ImageLoader(loading(packed, 3)).next(); });
  for (const float label : {-1.0F, 0.5F, NAN, INFINITY, 1e30F}) {
    const auto damaged = open(images_with_labels({1, label}));
    EXPECT_THROW(damaged->read(1, buffer_), CorruptImage) << label;
  }
}

TEST_F(RecordFolder, MoreClassesThanFloatsTellApartAreRefused) {
  expect_refused(images_with_labels({1}), {"--data", "x.rec", "at most 16777216", "folder"}, 16777217);
}

TEST_F(RecordFolder, FacesGoThroughTheLoaderAsInsightfacePacksThem) {
  Packed packed;
  packed.add(0, record_of({4, 6}, {}));
  for (std::uint64_t key = 1; key < 4; ++key)  // flat, so mirroring changes nothing
    packed.add(key, record_of({static_cast<float>(key - 1), static_cast<float>(key)},
                              flat_jpeg(16, 16, {static_cast<std::uint8_t>(60 * key), 128, 128, 0})));
  packed.add(4, record_of({1, 3}, {}));
  packed.add(5, record_of({3, 4}, {}));
  BatchSourceOptions options = loading(packed, 3);
  options.preprocessing = Preprocessing::insightface;
  const auto source = make_batch_source(options);
  const PixelBatch batch = source->next();
  for (std::size_t row = 0; row < 3; ++row)
    EXPECT_NEAR(batch.pixels[row * 768], 60.0 * static_cast<double>(batch.labels[row] + 1), 3);
  options.classes = 2;
  expect_error(ExitCode::bad_data, {"record 3 at offset", "label 2", "2 classes"}, [&] {
    ImageLoader loader(options);
    for (int i = 0; i < 3; ++i) loader.next();
  });
}

TEST_F(RecordFolder, ACorruptRecordIsSkippedNamedAndCountedOnce) {
  Packed packed = images_with_labels({0, 1, 2, 3, 4, 5, 6, 7});
  packed.records[packed.offsets[3]] ^= 0x10;  // its magic number
  ImageLoader loader(loading(packed, 8));
  for (int epoch = 0; epoch < 4; ++epoch) EXPECT_EQ(std::ranges::count(loader.next().labels, 3), 0);
  const CorruptFiles corrupt = loader.corrupt_files();
  EXPECT_EQ(corrupt.count, 1);
  ASSERT_EQ(corrupt.first.size(), 1U);
  const std::string where =
      "x.rec: record 3 at offset " + std::to_string(packed.offsets[3]) + " (no RecordIO";
  EXPECT_NE(corrupt.first.front().find(where), std::string::npos) << corrupt.first.front();
}

TEST_F(RecordFolder, EveryTruncationIsRefused) {
  for (const Packed& packed : {images_with_labels({1, 2}), faces(2)}) {
    open(packed);
    for (std::size_t size = packed.records.size(); size-- > 0;) {
      std::filesystem::resize_file(folder_ / "x.rec", size);
      ASSERT_TRUE(is_refused()) << size << " bytes of x.rec";
    }
    std::filesystem::remove(folder_ / "x.rec");
    open(packed);
    std::filesystem::resize_file(folder_ / "x.idx", packed.index.size() - 1);
    EXPECT_FALSE(is_refused()) << "only the last line's end is missing";
    for (std::size_t size = packed.index.size() - 1; size-- > 0;) {
      std::filesystem::resize_file(folder_ / "x.idx", size);
      ASSERT_TRUE(is_refused()) << size << " bytes of x.idx";
    }
  }
}

// Flips bits of every byte of a file in turn, in place. Returns how often the file was rejected.
int times_refused(const std::filesystem::path& path, std::initializer_list<int> flips,
                  const std::function<bool()>& is_refused) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  int refused = 0;
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path));
  for (std::streamoff at = 0; at < size; ++at) {
    const int byte = file.seekg(at).get();
    for (const int flip : flips) {
      file.seekp(at).put(static_cast<char>(byte ^ flip)).flush();
      refused += is_refused();
    }
    file.seekp(at).put(static_cast<char>(byte)).flush();
  }
  return refused;
}

TEST_F(RecordFolder, FlippedBytesNeverCrash) {
  const Bytes payload = {0xff, 0xd8, 0x0a, 0x23, 0xd7, 0xce, 0x0a, 0x23, 0xd7, 0xce, 0x0a, 0x23};
  Packed packed;
  packed.add(0, record_of({4, 6}, {}));
  for (std::uint64_t key = 1; key < 4; ++key) packed.add(key, record_of({1, 2, 3}, payload));
  packed.add(4, record_of({1, 3}, {}));
  packed.add(5, record_of({3, 4}, {}));
  open(packed);
  for (const char* name : {"x.rec", "x.idx"}) {
    EXPECT_GT(times_refused(folder_ / name, {0x01, 0x08, 0x20, 0x80, 0xff}, [&] { return is_refused(); }),
              20);
    EXPECT_FALSE(is_refused()) << name << " is whole again";
  }
}

TEST_F(RecordFolder, EndingOrFolderDecidesWhatIsOpened) {
  open(images_with_labels({1}));
  EXPECT_EQ(open_images(folder_ / "x.rec", 10)->count(), 1U);
  write_image_folder(folder_ / "images.rec", 2, 2);
  EXPECT_EQ(open_images(folder_ / "images.rec", 10)->count(), 4U);
  expect_error(ExitCode::bad_data, {"x.idx", "expected a folder"},
               [&] { open_images(folder_ / "x.idx", 10); });
}

}  // namespace
}  // namespace plumb
