// RecordIO files with their index, made for a test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumb {

using Bytes = std::vector<std::uint8_t>;

// A record's bytes, without its frame: one label goes into the header, several behind it.
Bytes record_of(const std::vector<float>& labels, const Bytes& payload);

// A JPEG image of 24 x 24 pixels of one colour.
Bytes small_jpeg(int shade);

// Packed records, kept with the place of each.
struct Packed {
  Bytes records;
  std::string index;
  std::vector<std::uint64_t> offsets;

  void add(std::uint64_t key, const Bytes& record);
};

Packed images_with_labels(const std::vector<float>& labels);

// InsightFace's layout: a header, `images` images, and what is known of two identities.
Packed faces(std::size_t images);

}  // namespace plumb
