#include "bench/data/record_images.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "base/error.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

std::string read_index_text(const fs::path& path) {
  std::error_code ignored;
  std::ifstream stream(path, std::ios::binary);
  if (!fs::is_regular_file(path, ignored) || !stream)
    throw Error(ExitCode::bad_data, "option --data: " + path.string() +
                                        ": can't be read; a .rec file wants its index beside it, which is "
                                        "written with it");
  std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (text.empty())
    throw Error(ExitCode::bad_data,
                "option --data: " + path.string() + ": is empty; write the index anew, with its .rec file");
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

std::string shown(float number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(number));
  return text;
}

}  // namespace

std::vector<RecordPlace> read_record_index(const fs::path& path) {
  const std::string text = read_index_text(path);
  std::vector<RecordPlace> places;
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    RecordPlace place;
    if (!read_line(at, end, place))
      throw Error(ExitCode::bad_data, "option --data: " + path.string() + ": line " +
                                          std::to_string(places.size() + 1) +
                                          " is not a key, a tab and an offset; write the index anew");
    places.push_back(place);
  }
  std::ranges::sort(places, {}, &RecordPlace::key);
  const auto twice = std::ranges::adjacent_find(places, {}, &RecordPlace::key);
  if (twice != places.end())
    throw Error(ExitCode::bad_data, "option --data: " + path.string() + ": key " +
                                        std::to_string(twice->key) + " comes twice; write the index anew");
  return places;
}

RecordImages::RecordImages(const fs::path& path, std::int64_t classes)
    : path_(path),
      index_path_(fs::path(path).replace_extension(".idx")),
      classes_(classes),
      file_(path),
      places_(read_record_index(index_path_)) {
  check_offsets();
  leave_out_labels();
  if (!is_image(places_.front()) && !is_image(places_.back()))
    refuse("holds labels only, no images; pack the images with their labels");
}

void RecordImages::refuse(const std::string& what) const {
  throw Error(ExitCode::bad_data, "option --data: " + path_.string() + ": " + what);
}

std::string RecordImages::name_of(const RecordPlace& place) const {
  return path_.string() + ": record " + std::to_string(place.key) + " at offset " +
         std::to_string(place.offset);
}

void RecordImages::check_offsets() const {
  const std::string by_index = " by " + index_path_.string();
  const std::string remedy = "; one of the two is cut short, or they don't belong together";
  const auto is_impossible = [&](const RecordPlace& place) {
    return place.offset % 4 != 0 || place.offset >= file_.bytes();
  };
  const auto wrong = std::ranges::find_if(places_, is_impossible);
  if (wrong != places_.end())
    refuse("record " + std::to_string(wrong->key) + " should begin at byte " + std::to_string(wrong->offset) +
           by_index + ", where no record can be in a file of " + std::to_string(file_.bytes()) + " bytes" +
           remedy);
  const RecordPlace& last = *std::ranges::max_element(places_, {}, &RecordPlace::offset);
  std::uint64_t end = 0;
  try {
    end = file_.end_of(last.offset);
  } catch (const CorruptImage& reason) {
    refuse("the last record, " + std::to_string(last.key) + " at offset " + std::to_string(last.offset) +
           by_index + ", is not whole (" + reason.what() + ")" + remedy);
  }
  if (end != file_.bytes())
    refuse("goes on for " + std::to_string(file_.bytes() - end) + " bytes after record " +
           std::to_string(last.key) + ", the last one" + by_index + remedy);
}

void RecordImages::leave_out_labels() {
  const RecordPlace first = places_.front();
  if (first.key != 0) return;
  std::vector<std::uint8_t> buffer;
  try {
    const ImageRecord record = parse_image_record(file_.read(first.offset, buffer));
    if (record.label_count == 2 && record.payload.empty()) keep_images(record.label(0), record.label(1));
  } catch (const CorruptImage& reason) {
    refuse("record 0 at offset " + std::to_string(first.offset) + ", which would tell images from labels, " +
           "can't be read (" + reason.what() + "); get a whole copy of the file");
  }
}

void RecordImages::keep_images(float end, float identities_end) {
  const std::string range = shown(end) + " to " + shown(identities_end);
  constexpr float kMostKeys = 0x1p62F;
  if (!(end >= 1 && identities_end >= end && identities_end < kMostKeys) || end != std::floor(end))
    refuse("its header says that identities are the records " + range +
           ", which is no range; get a whole copy of the file");
  if (identities_end - end > static_cast<float>(classes_))
    refuse("holds " + std::to_string(static_cast<std::int64_t>(identities_end - end)) +
           " identities, the network has " + std::to_string(classes_) +
           " classes; give a file with fewer, or, for faces, more --classes");
  if (identities_end - end >= static_cast<float>(kFirstInexactLabel))
    refuse("its header promises " + shown(identities_end - end) +
           " identities, more than labels can tell apart: " + "they are floats, which skip numbers from " +
           std::to_string(kFirstInexactLabel) + " on; give an image folder");
  const auto image_end = static_cast<std::uint64_t>(end);
  const auto stop = std::ranges::lower_bound(places_, image_end, {}, &RecordPlace::key);
  places_.erase(stop, places_.end());
  places_.erase(places_.begin());
  if (places_.size() != image_end - 1)
    refuse("its header promises the images 1 to " + std::to_string(image_end - 1) + ", " +
           index_path_.string() + " has " + std::to_string(places_.size()) + " of them; " +
           (image_end >= static_cast<std::uint64_t>(kFirstInexactLabel)
                ? "a header's floats skip numbers from " + std::to_string(kFirstInexactLabel) +
                      " on, so leave out the header and the identities"
                : "write the index anew"));
  if (places_.empty()) refuse("holds labels only, no images; pack the images with their labels");
}

bool RecordImages::is_image(const RecordPlace& place) const {
  std::vector<std::uint8_t> buffer;
  try {
    return !parse_image_record(file_.read(place.offset, buffer)).payload.empty();
  } catch (const CorruptImage&) {
    return true;  // counted when its turn comes
  }
}

EncodedImage RecordImages::read(std::size_t image, std::vector<std::uint8_t>& buffer) const {
  const ImageRecord record = parse_image_record(file_.read(places_[image].offset, buffer));
  if (record.payload.empty()) throw CorruptImage("labels only, no image");
  constexpr float kMostLabels = 0x1p40F;
  const float number = record.label(0);
  if (!(number >= 0 && number < kMostLabels) || number != std::floor(number))
    throw CorruptImage("label " + shown(number) + " is no class");
  const auto label = static_cast<std::int64_t>(number);
  if (label >= classes_)
    throw Error(ExitCode::bad_data, "option --data: " + name_of(image) + " has label " +
                                        std::to_string(label) + ", the network has " +
                                        std::to_string(classes_) + " classes; give a file with labels 0 to " +
                                        std::to_string(classes_ - 1) + ", or, for faces, more --classes");
  if (label >= kFirstInexactLabel)
    throw Error(ExitCode::bad_data, "option --data: " + name_of(image) + " has label " +
                                        std::to_string(label) +
                                        ", which may stand for a neighbour's: labels " +
                                        "of a .rec file are floats, which skip numbers from " +
                                        std::to_string(kFirstInexactLabel) + " on; give an image folder");
  return {record.payload, label};
}

std::string RecordImages::description() const {
  return std::to_string(places_.size()) + " images from " + path_.string();
}

}  // namespace plumb
