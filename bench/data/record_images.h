// Images in a RecordIO file X.rec with its index X.idx, as MXNet's im2rec and InsightFace pack them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/output.h"
#include "bench/data/encoded_images.h"
#include "bench/data/record_io.h"

namespace plumb {

struct RecordPlace {
  std::uint64_t key = 0, offset = 0;
};

// Images in the order of their keys. All records are images, unless record 0 is InsightFace's header: two
// labels a and b and nothing else. Then the images are the records 1 to a - 1; a to b - 1 hold what is known
// of each identity, and no image. A label is a float, or the first of an array; a label of 2^24 or more,
// where floats can't tell neighbors apart, is refused with the record.
class RecordImages : public EncodedImages {
 public:
  // Opens X.rec and X.idx. Throws Error(bad_data): one of them is missing or empty, or they don't fit each
  // other, a header that doesn't fit the index, more identities than classes, labels without images.
  RecordImages(const std::filesystem::path& path, std::int64_t classes);

  std::size_t count() const override { return places_.size(); }
  EncodedImage read(std::size_t image, std::vector<std::uint8_t>& buffer) const override;
  std::size_t encoded_bytes(std::size_t image) const override;
  std::string name_of(std::size_t image) const override;
  std::size_t host_bytes() const override { return places_.capacity() * sizeof(RecordPlace); }
  std::string fingerprint() const override;
  std::string description() const override;

 private:
  void check_offsets() const;
  void leave_out_labels();
  // Leaves the images 1 to `end` - 1 of InsightFace's file.
  void keep_images(float end, float identities_end);
  bool is_image(const RecordPlace& place) const;

  std::filesystem::path path_, index_path_;
  std::int64_t classes_;
  RecordFile file_;
  std::vector<RecordPlace> places_;
};

// The .rec file of a name with or without that ending, and the .idx file next to it, both unfinished. Throws
// Error(cannot_create) if either can't be made.
struct RecordFiles {
  explicit RecordFiles(const Output& output);

  std::filesystem::path records_name, index_name;
  OutputFile records, index;
};

// One record per image, in order, keys and ids from 0, without a header record: MXNet's ImageRecordIter takes
// every record for an image, and InsightFace's readers take all keys where record 0 has no label array. Both
// files get their names when both are whole; nothing is replaced. Calls progress(images written) after each.
// Returns the bytes of the .rec file. Throws Error: cannot_create, io_error, bad_data for an unusable image.
std::uint64_t write_records(const EncodedImages& images, RecordFiles& files,
                            const std::function<void(std::size_t)>& progress);

}  // namespace plumb
