// Where images come from before they are decoded: a folder of files, a file of records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/data/image_decoder.h"

namespace plumb {

// More than this is refused as corrupt: photographs don't take as many bytes.
inline constexpr std::size_t kMostEncodedBytes = std::size_t{32} << 20;
inline constexpr const char* kTooManyEncodedBytes = "over 32 MiB";
// A buffer that holds any image, with a record's header.
inline constexpr std::size_t kMostReadBytes = kMostEncodedBytes + 64;

struct EncodedImage {
  std::span<const std::uint8_t> bytes;  // a JPEG file's
  std::int64_t label = 0;
};

// Numbered images, in an order that is the same on every rank. Reading changes nothing here: any number of
// threads may, each with a buffer of its own.
class EncodedImages {
 public:
  virtual ~EncodedImages() = default;

  // At least 1.
  virtual std::size_t count() const = 0;
  // The bytes lie in `buffer`, which only grows, until it is used again. Throws CorruptImage if they can't be
  // read, Error(bad_data) if the label is none of the network's classes.
  virtual EncodedImage read(std::size_t image, std::vector<std::uint8_t>& buffer) const = 0;
  // Size of the buffer that read() needs; 0 if unknown.
  virtual std::size_t encoded_bytes(std::size_t image) const = 0;
  // Where a user finds the image.
  virtual std::string name_of(std::size_t image) const = 0;
  virtual std::size_t host_bytes() const = 0;
  // What has to be the same on every rank, as Job::require_same takes it.
  virtual std::string fingerprint() const = 0;
  // For people, e.g. "1280 images in 10 classes from photos".
  virtual std::string description() const = 0;
};

// A folder with one subfolder per class: files that end in .jpg or .jpeg (in capitals too) directly in a
// class's folder, except hidden ones. Classes and files are sorted by bytes, so that every rank counts them
// alike. Throws Error(bad_data): unreadable, no classes or over `most_classes`, a broken link, an empty
// class.
std::unique_ptr<EncodedImages> open_folder(const std::filesystem::path& path, std::int64_t most_classes,
                                           const std::string& option = "--data");

// A RecordIO file X.rec with its index X.idx, as MXNet's im2rec and InsightFace pack them: images in the
// order of their keys. All records are images, unless record 0 is InsightFace's header: two labels a and b
// and nothing else. Then the images are the records 1 to a - 1; a to b - 1 describe the
// identities and contain no images. A label is a float, or the first of an array. Throws Error(bad_data): one
// of the files is missing or empty, or they don't match, a header that doesn't fit the index, more identities
// than classes, or more classes than floats can tell apart.
std::unique_ptr<EncodedImages> open_records(const std::filesystem::path& path, std::int64_t classes);

// Records where `data` ends in .rec and isn't a folder, else a folder. Labels are in [0, classes). Throws
// Error(bad_data) with the file or folder.
std::unique_ptr<EncodedImages> open_images(const std::string& data, std::int64_t classes);

}  // namespace plumb
