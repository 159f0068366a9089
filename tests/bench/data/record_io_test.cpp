#include "bench/data/record_io.h"

#include <gtest/gtest.h>

#include <string>

#include "bench/data/encoded_images.h"
#include "tests/bench/expect_error.h"
#include "tests/bench/image_files.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using Bytes = std::vector<std::uint8_t>;

const Bytes kMagic = {0x0a, 0x23, 0xd7, 0xce};

Bytes joined(const std::vector<Bytes>& pieces) {
  Bytes all;
  for (const Bytes& piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

Bytes framed(const Bytes& record) {
  Bytes out;
  append_record(record, out);
  return out;
}

class Records : public testing::Test {
 protected:
  RecordFile file_of(const Bytes& bytes) {
    write_file(folder_ / "some.rec", bytes);
    return RecordFile(folder_ / "some.rec");
  }
  Bytes read(const RecordFile& file, std::uint64_t offset = 0) {
    const auto record = file.read(offset, buffer_);
    return {record.begin(), record.end()};
  }
  // Why both functions reject the record at `offset`.
  std::string reason(const Bytes& bytes, std::uint64_t offset = 0) {
    const RecordFile file = file_of(bytes);
    try {
      file.end_of(offset);
      ADD_FAILURE() << "an end was found";
    } catch (const CorruptImage&) {
    }
    try {
      read(file, offset);
    } catch (const CorruptImage& corrupt) {
      return corrupt.what();
    }
    return "nothing";
  }

  ScratchFolder folder_;
  Bytes buffer_;
};

TEST_F(Records, AreFramedByMagicLengthAndZerosUpToFourBytes) {
  EXPECT_EQ(framed({1, 2, 3, 4, 5}), joined({kMagic, {5, 0, 0, 0}, {1, 2, 3, 4, 5, 0, 0, 0}}));
  EXPECT_EQ(framed({1, 2, 3, 4}), joined({kMagic, {4, 0, 0, 0}, {1, 2, 3, 4}}));
  EXPECT_EQ(framed({}), joined({kMagic, {0, 0, 0, 0}}));
}

TEST_F(Records, AreCutWhereTheMagicNumberStandsInThem) {
  const Bytes record = joined({{1, 2, 3, 4}, kMagic, kMagic, {5, 6, 7, 8, 9}});
  const Bytes by_hand = joined({kMagic,
                                {4, 0, 0, 0x20, 1, 2, 3, 4},
                                kMagic,
                                {0, 0, 0, 0x40},
                                kMagic,
                                {5, 0, 0, 0x60, 5, 6, 7, 8, 9, 0, 0, 0}});
  EXPECT_EQ(framed(record), by_hand);
  const RecordFile file = file_of(joined({by_hand, framed({7})}));
  EXPECT_EQ(read(file), record);
  EXPECT_EQ(file.end_of(0), by_hand.size());
  EXPECT_EQ(read(file, by_hand.size()), Bytes{7});
}

TEST_F(Records, KeepTheMagicNumberWhereverItStands) {
  for (std::size_t before = 0; before < 9; ++before)
    for (std::size_t after = 0; after < 6; ++after) {
      const Bytes record = joined({Bytes(before, 1), kMagic, Bytes(after, 2)});
      const Bytes file = framed(record);
      EXPECT_EQ(file.size() % 4, 0U);
      EXPECT_EQ(read(file_of(file)), record) << before << " bytes before, " << after << " after";
      // A reader that scans for magic numbers must not find one inside a record.
      EXPECT_EQ(file.size() > 8 + (record.size() + 3) / 4 * 4, before % 4 == 0);
    }
}

TEST_F(Records, ThatAreDamagedAreToldApart) {
  EXPECT_NE(
      reason(joined({{9, 9, 9, 9}, {4, 0, 0, 0, 1, 2, 3, 4}})).find("no RecordIO magic number at byte 0"),
      std::string::npos);
  EXPECT_NE(reason(joined({kMagic, {5, 0, 0, 0, 1, 2, 3, 4}})).find("5 bytes announced, 4 left"),
            std::string::npos);
  EXPECT_NE(reason(joined({kMagic, {0xff, 0xff, 0xff, 0x1f, 1, 2, 3, 4}})).find("announced"),
            std::string::npos);
  EXPECT_NE(reason(joined({kMagic, {4, 0, 0, 0x60, 1, 2, 3, 4}})).find("middle"), std::string::npos);
  EXPECT_NE(reason(joined({kMagic, {4, 0, 0, 0xa0, 1, 2, 3, 4}})).find("kind of record, 5"),
            std::string::npos);
  EXPECT_NE(reason(joined({kMagic, {4, 0, 0, 0x20, 1, 2, 3, 4}})).find("ends inside"), std::string::npos);
  EXPECT_NE(reason(joined({kMagic, {4, 0, 0, 0x20, 1, 2, 3, 4}, framed({1})})).find("another record"),
            std::string::npos);
  EXPECT_NE(reason(framed({1}), 8).find("ends inside"), std::string::npos);
  EXPECT_NE(reason(framed({1}), ~std::uint64_t{0}).find("ends inside"), std::string::npos);
}

TEST_F(Records, ThatHaveNoFileAreRefusedByName) {
  const auto opening = [&](const std::string& name) { return [&, name] { RecordFile(folder_ / name); }; };
  expect_error(ExitCode::bad_data, {"--data", "none.rec", "No such file"}, opening("none.rec"));
  expect_error(ExitCode::bad_data, {"--data", folder_.path(), "regular"}, opening(""));
  write_file(folder_ / "empty.rec", {});
  expect_error(ExitCode::bad_data, {"empty.rec", "is empty"}, opening("empty.rec"));
}

TEST(ImageRecord, HasALabelOrAnArrayOfThem) {
  const Bytes one =
      joined({{0, 0, 0, 0}, {0, 0, 0x40, 0x40}, Bytes{5, 0, 0, 0, 0, 0, 0, 1}, Bytes(8, 0), {9}});
  const ImageRecord single = parse_image_record(one);
  EXPECT_EQ(single.label_count, 1U);
  EXPECT_EQ(single.label(0), 3.0F);
  EXPECT_EQ(Bytes(single.payload.begin(), single.payload.end()), Bytes{9});
  const Bytes two = joined({{2, 0, 0, 0}, Bytes(20, 7), {0, 0, 0x80, 0x3f}, {0, 0, 0x00, 0xc0}, {8, 9}});
  const ImageRecord array = parse_image_record(two);
  EXPECT_EQ(array.label_count, 2U);
  EXPECT_EQ(array.label(0), 1.0F);
  EXPECT_EQ(array.label(1), -2.0F);
  EXPECT_EQ(Bytes(array.payload.begin(), array.payload.end()), (Bytes{8, 9}));
}

TEST(ImageRecord, IsRefusedWhereItsHeaderOrLabelsDoNotFit) {
  for (std::size_t size = 0; size < 24; ++size)
    EXPECT_THROW(parse_image_record(Bytes(size, 0)), CorruptImage) << size << " bytes";
  EXPECT_NO_THROW(parse_image_record(Bytes(24, 0)));
  const Bytes three_labels = joined({{3, 0, 0, 0}, Bytes(20 + 11, 0)});
  EXPECT_THROW(parse_image_record(three_labels), CorruptImage);
  EXPECT_THROW(parse_image_record(Bytes(100, 0xff)), CorruptImage);
}

}  // namespace
}  // namespace plumb
