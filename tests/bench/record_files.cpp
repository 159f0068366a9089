#include "tests/bench/record_files.h"

#include <bit>

#include "bench/data/record_io.h"
#include "tests/bench/image_files.h"

namespace plumb {
namespace {

void append_word(std::uint32_t word, Bytes& out) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
}

}  // namespace

Bytes record_of(const std::vector<float>& labels, const Bytes& payload) {
  Bytes record;
  append_word(labels.size() > 1 ? static_cast<std::uint32_t>(labels.size()) : 0, record);
  append_word(std::bit_cast<std::uint32_t>(labels.front()), record);
  record.resize(24);
  if (labels.size() > 1)
    for (const float label : labels) append_word(std::bit_cast<std::uint32_t>(label), record);
  record.insert(record.end(), payload.begin(), payload.end());
  return record;
}

Bytes small_jpeg(int shade) {
  return flat_jpeg(24, 24, {static_cast<std::uint8_t>(shade), 90, 30, 0});
}

void Packed::add(std::uint64_t key, const Bytes& record) {
  offsets.push_back(records.size());
  index += std::to_string(key) + "\t" + std::to_string(records.size()) + "\n";
  append_record(record, records);
}

Packed images_with_labels(const std::vector<float>& labels) {
  Packed packed;
  for (std::size_t i = 0; i < labels.size(); ++i)
    packed.add(i, record_of({labels[i]}, small_jpeg(static_cast<int>(10 * i))));
  return packed;
}

Packed faces(std::size_t images) {
  Packed packed;
  const auto end = static_cast<float>(images + 1);
  packed.add(0, record_of({end, end + 2}, {}));
  for (std::size_t i = 1; i <= images; ++i)
    packed.add(i, record_of({static_cast<float>(i % 2), 0.5F}, small_jpeg(static_cast<int>(i))));
  packed.add(images + 1, record_of({1, 2}, {}));
  packed.add(images + 2, record_of({2, end}, {}));
  return packed;
}

}  // namespace plumb
