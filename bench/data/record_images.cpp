// A RecordIO file of images and its index.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/whole_file.h"
#include "bench/data/encoded_images.h"
#include "bench/data/record_io.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

struct RecordPlace {
  std::uint64_t key = 0, offset = 0;
};

// 42 million faces (WebFace42M) take 1 GB, 17 million (Glint360K) 0.4 GB.
constexpr std::uint64_t kMostIndexBytes = std::uint64_t{2} << 30;

constexpr const char* kOddPair = "; one of the two is truncated, or they do not belong together";

template <typename... Values>
[[noreturn]] void refuse(const fs::path& path, fmt::format_string<Values...> what, Values&&... values) {
  throw Error(ExitCode::bad_data, "--data {}: {}", path.string(),
              fmt::format(what, std::forward<Values>(values)...));
}

std::string read_index_text(const fs::path& path) {
  std::string text = read_whole_file(path, {.remedy = "put the index of the .rec file next to it",
                                            .name = fmt::format("--data {}", path.string()),
                                            .most_bytes = kMostIndexBytes});
  if (text.empty()) refuse(path, "it is empty; write the index again, with its .rec file");
  return text;
}

// Reads "key TAB offset" and the end of the line; false if something else stands there.
bool read_line(const char*& at, const char* end, RecordPlace& place) {
  const auto key = std::from_chars(at, end, place.key);
  if (key.ec != std::errc{} || key.ptr == end || *key.ptr != '\t') return false;
  const auto offset = std::from_chars(key.ptr + 1, end, place.offset);
  if (offset.ec != std::errc{} || (offset.ptr != end && *offset.ptr != '\n')) return false;
  at = offset.ptr == end ? end : offset.ptr + 1;
  return true;
}

// Sorted by key.
std::vector<RecordPlace> read_record_index(const fs::path& path) {
  const std::string text = read_index_text(path);
  std::vector<RecordPlace> places;
  places.reserve(static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1);
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    RecordPlace place;
    if (!read_line(at, end, place))
      refuse(path, "line {}: expected a key, a tab and an offset; write the index again", places.size() + 1);
    places.push_back(place);
  }
  std::ranges::sort(places, {}, &RecordPlace::key);
  const auto twice = std::ranges::adjacent_find(places, {}, &RecordPlace::key);
  if (twice != places.end()) refuse(path, "key {} appears twice; write the index again", twice->key);
  return places;
}

std::string shown(float number) {
  return fmt::format("{:.9g}", number);
}

class RecordImages : public EncodedImages {
 public:
  RecordImages(const fs::path& path, std::int64_t classes);

  std::size_t count() const override { return places_.size(); }
  EncodedImage read(std::size_t image, std::vector<std::uint8_t>& buffer) const override;
  std::size_t encoded_bytes(std::size_t image) const override {
    try {
      return file_.end_of(places_[image].offset) - places_[image].offset;
    } catch (const CorruptImage&) {
      return 0;
    }
  }
  std::string name_of(std::size_t image) const override {
    const RecordPlace& place = places_[image];
    return fmt::format("{}: record {} at offset {}", path_.string(), place.key, place.offset);
  }
  std::size_t host_bytes() const override { return places_.capacity() * sizeof(RecordPlace); }
  std::string fingerprint() const override {
    return fmt::format("images={}\nbytes={}\n", places_.size(), file_.bytes());
  }
  std::string description() const override {
    return fmt::format("{} images from {}", places_.size(), path_.string());
  }

 private:
  void check_offsets() const;
  void leave_out_labels();
  // Leaves the images 1 to `end` - 1 of InsightFace's file.
  void keep_images(float end, float identities_end);

  fs::path path_, index_path_;
  std::int64_t classes_;
  RecordFile file_;
  std::vector<RecordPlace> places_;
};

RecordImages::RecordImages(const fs::path& path, std::int64_t classes)
    : path_(path),
      index_path_(fs::path(path).replace_extension(".idx")),
      classes_(classes),
      file_(path),
      places_(read_record_index(index_path_)) {
  if (classes > kFirstInexactLabel)
    refuse(path_,
           "expected at most {} --classes, found {}; its labels are floats, which cannot hold larger numbers "
           "exactly, so use an image folder",
           kFirstInexactLabel, classes);
  check_offsets();
  leave_out_labels();
}

void RecordImages::check_offsets() const {
  const std::string index = index_path_.string();
  const auto is_impossible = [&](const RecordPlace& place) {
    return place.offset % 4 != 0 || place.offset >= file_.bytes();
  };
  const auto wrong = std::ranges::find_if(places_, is_impossible);
  if (wrong != places_.end())
    refuse(path_, "record {} begins at byte {} according to {}, which is impossible in a file of {} bytes{}",
           wrong->key, wrong->offset, index, file_.bytes(), kOddPair);
  const RecordPlace& last = *std::ranges::max_element(places_, {}, &RecordPlace::offset);
  std::uint64_t end = 0;
  try {
    end = file_.end_of(last.offset);
  } catch (const CorruptImage& reason) {
    refuse(path_, "the last record, {} at offset {} according to {}, is truncated ({}){}", last.key,
           last.offset, index, reason.what(), kOddPair);
  }
  if (end != file_.bytes())
    refuse(path_, "{} bytes follow record {}, the last one according to {}{}", file_.bytes() - end, last.key,
           index, kOddPair);
}

void RecordImages::leave_out_labels() {
  const RecordPlace first = places_.front();
  if (first.key != 0) return;
  std::vector<std::uint8_t> buffer;
  try {
    const ImageRecord record = parse_image_record(file_.read(first.offset, buffer));
    if (record.label_count == 2 && record.payload.empty()) keep_images(record.label(0), record.label(1));
  } catch (const CorruptImage& reason) {
    refuse(path_,
           "cannot read record 0 at offset {}, which separates images from labels: {}; get a complete copy "
           "of the file",
           first.offset, reason.what());
  }
}

void RecordImages::keep_images(float end, float identities_end) {
  constexpr float kMostKeys = 0x1p62F;
  if (!(end >= 1 && identities_end >= end && identities_end < kMostKeys) || end != std::floor(end))
    refuse(path_,
           "its header puts identities at the records {} to {}, which are not a range; get a complete copy "
           "of the file",
           shown(end), shown(identities_end));
  if (identities_end - end > static_cast<float>(classes_))
    refuse(path_,
           "it has {} identities, and the network has {} classes; use a file with fewer or, for faces, pass "
           "more --classes",
           static_cast<std::int64_t>(identities_end - end), classes_);
  const auto image_end = static_cast<std::uint64_t>(end);
  const auto stop = std::ranges::lower_bound(places_, image_end, {}, &RecordPlace::key);
  places_.erase(stop, places_.end());
  places_.erase(places_.begin());
  if (places_.size() != image_end - 1)
    refuse(path_, "its header announces the images 1 to {}, and {} has {} of them; write the index again",
           image_end - 1, index_path_.string(), places_.size());
  if (places_.empty()) refuse(path_, "it has labels only and no images; pack the images with their labels");
}

EncodedImage RecordImages::read(std::size_t image, std::vector<std::uint8_t>& buffer) const {
  const ImageRecord record = parse_image_record(file_.read(places_[image].offset, buffer));
  if (record.payload.empty()) throw CorruptImage("labels only, no image");
  constexpr float kMostLabels = 0x1p40F;
  const float number = record.label(0);
  if (!(number >= 0 && number < kMostLabels) || number != std::floor(number))
    throw CorruptImage(fmt::format("label {} is not a class", shown(number)));
  const auto label = static_cast<std::int64_t>(number);
  if (label >= classes_)
    throw Error(ExitCode::bad_data,
                "--data {}: label {}, and the network has {} classes; use labels 0 to {} or, for faces, pass "
                "more --classes",
                name_of(image), label, classes_, classes_ - 1);
  return {record.payload, label};
}

}  // namespace

std::unique_ptr<EncodedImages> open_records(const fs::path& path, std::int64_t classes) {
  return std::make_unique<RecordImages>(path, classes);
}

}  // namespace plumb
