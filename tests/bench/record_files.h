// RecordIO files with their index, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumb {

using Bytes = std::vector<std::uint8_t>;

// A record's bytes without its frame. One label goes into the header, several follow it.
Bytes record_of(const std::vector<float>& labels, const Bytes& payload);

// A 24 x 24 JPEG image of one color.
Bytes small_jpeg(int shade);

// Packed records and their offsets.
struct Packed {
  Bytes records;
  std::string index;
  std::vector<std::uint64_t> offsets;

  void add(std::uint64_t key, const Bytes& record);
};

Packed images_with_labels(const std::vector<float>& labels);

// InsightFace's layout: a header, `images` images, and records of two identities.
Packed faces(std::size_t images);

}  // namespace plumb
