// RecordIO, the file format into which MXNet packs images: framing of records, and the header before an
// image. Read from dmlc-core's recordio.h and MXNet's image_recordio.h (little-endian throughout):
//
//   record  one part, or several where the magic number stands in its bytes at a multiple of 4: the magic
//           number is left out there, the record is cut, and readers put it back
//   part    u32 magic 0xced7230a | u32 kind << 29 | length | bytes, zeros up to a multiple of 4
//           kind: 0 whole, 1 first, 2 middle, 3 last
//   image   u32 flag | f32 label | u64 id | u64 id2 | flag x f32 label | the encoded image
//           flag > 0: that many labels follow, and the one in the header means nothing
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "base/output.h"
#include "base/unique_fd.h"

namespace plumb {

class EncodedImages;

inline constexpr std::uint32_t kRecordMagic = 0xced7230a;
// Labels are floats, so from here on two classes may have the same one.
inline constexpr std::int64_t kFirstInexactLabel = std::int64_t{1} << 24;
inline constexpr std::size_t kMostPartBytes = (std::size_t{1} << 29) - 1;

// Appends one record in its frame. The record is at most kMostPartBytes long.
void append_record(std::span<const std::uint8_t> record, std::vector<std::uint8_t>& out);

// A view of a record's bytes.
struct ImageRecord {
  std::uint32_t label_count = 1;
  std::span<const std::uint8_t> labels;   // label_count x f32
  std::span<const std::uint8_t> payload;  // the encoded image

  float label(std::size_t number) const;
};

// Throws CorruptImage: shorter than its header or its labels.
ImageRecord parse_image_record(std::span<const std::uint8_t> record);

// Header of an image with one label.
void append_image_header(float label, std::uint64_t id, std::vector<std::uint8_t>& out);

// A file of records, open for reading at any place by any thread.
class RecordFile {
 public:
  // Throws Error(bad_data): no such file, not a regular file, unreadable, empty.
  explicit RecordFile(const std::filesystem::path& path);

  std::uint64_t bytes() const { return bytes_; }
  // The record that begins at `offset`, whole, without its frame; it lies in `buffer`, which only grows.
  // Throws CorruptImage, also for records of more than an image's kMostEncodedBytes.
  std::span<const std::uint8_t> read(std::uint64_t offset, std::vector<std::uint8_t>& buffer) const;
  // Where the record at `offset` ends, padding included, by the lengths of its parts. Throws like read().
  std::uint64_t end_of(std::uint64_t offset) const;

 private:
  struct Part {
    std::uint32_t kind = 0, length = 0;
  };
  Part part_at(std::uint64_t offset) const;
  // Calls visit(place of the part's bytes, length, there are more) for each part; returns the record's end.
  template <typename Visit>
  std::uint64_t visit_parts(std::uint64_t offset, Visit visit) const;
  void read_bytes(std::uint64_t offset, std::span<std::uint8_t> into) const;

  UniqueFd file_;
  std::uint64_t bytes_ = 0;
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
