#include "bench/data/record_io.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"
#include "bench/data/encoded_images.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFrameBytes = 8, kImageHeaderBytes = 24;
constexpr std::uint32_t kWhole = 0, kFirst = 1, kMiddle = 2, kLast = 3;

template <typename Unsigned>
Unsigned little_endian(std::span<const std::uint8_t> bytes) {
  Unsigned value = 0;
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) value |= Unsigned{bytes[i]} << (8 * i);
  return value;
}

template <typename Unsigned>
void append_little_endian(Unsigned value, std::vector<std::uint8_t>& out) {
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i)
    out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

void append_part(std::uint32_t kind, std::span<const std::uint8_t> bytes, std::vector<std::uint8_t>& out) {
  append_little_endian(kRecordMagic, out);
  append_little_endian(kind << 29 | static_cast<std::uint32_t>(bytes.size()), out);
  out.insert(out.end(), bytes.begin(), bytes.end());
  out.insert(out.end(), (4 - bytes.size() % 4) % 4, 0);
}

// Image header and image, not yet framed.
void read_record(const EncodedImages& images, std::size_t number, std::vector<std::uint8_t>& buffer,
                 std::vector<std::uint8_t>& record) {
  try {
    const EncodedImage image = images.read(number, buffer);
    if (image.bytes.empty()) throw CorruptImage("empty file");
    record.clear();
    append_image_header(static_cast<float>(image.label), number, record);
    record.insert(record.end(), image.bytes.begin(), image.bytes.end());
  } catch (const CorruptImage& reason) {
    throw Error(ExitCode::bad_data, "cannot pack {}: {}; repair or remove it", images.name_of(number),
                reason.what());
  }
}

// Gives both files their names, or neither: readers look for the .rec file, so it comes last.
void publish(RecordFiles& files) {
  files.index.publish();
  try {
    files.records.publish();
  } catch (...) {
    std::error_code ignored;
    fs::remove(files.index_name, ignored);
    throw;
  }
}

fs::path record_path(const fs::path& name) {
  return name.extension() == ".rec" ? name : fs::path(name.string() + ".rec");
}

}  // namespace

void append_record(std::span<const std::uint8_t> record, std::vector<std::uint8_t>& out) {
  std::size_t begin = 0;
  bool is_cut = false;
  for (std::size_t i = 0; i + 4 <= record.size(); i += 4) {
    if (little_endian<std::uint32_t>(record.subspan(i, 4)) != kRecordMagic) continue;
    append_part(is_cut ? kMiddle : kFirst, record.subspan(begin, i - begin), out);
    is_cut = true;
    begin = i + 4;
  }
  append_part(is_cut ? kLast : kWhole, record.subspan(begin), out);
}

float ImageRecord::label(std::size_t number) const {
  return std::bit_cast<float>(little_endian<std::uint32_t>(labels.subspan(number * sizeof(float))));
}

ImageRecord parse_image_record(std::span<const std::uint8_t> record) {
  if (record.size() < kImageHeaderBytes)
    throw CorruptImage(fmt::format("{} bytes, fewer than an image header", record.size()));
  ImageRecord parsed;
  const auto flag = little_endian<std::uint32_t>(record);
  if (flag == 0) {
    parsed.labels = record.subspan(4, sizeof(float));
    parsed.payload = record.subspan(kImageHeaderBytes);
    return parsed;
  }
  const std::uint64_t label_bytes = std::uint64_t{flag} * sizeof(float);
  if (label_bytes > record.size() - kImageHeaderBytes)
    throw CorruptImage(fmt::format("too short for the {} labels that it announces", flag));
  parsed.label_count = flag;
  parsed.labels = record.subspan(kImageHeaderBytes, label_bytes);
  parsed.payload = record.subspan(kImageHeaderBytes + label_bytes);
  return parsed;
}

void append_image_header(float label, std::uint64_t id, std::vector<std::uint8_t>& out) {
  append_little_endian(std::uint32_t{0}, out);
  append_little_endian(std::bit_cast<std::uint32_t>(label), out);
  append_little_endian(id, out);
  append_little_endian(std::uint64_t{0}, out);
}

RecordFile::RecordFile(const std::filesystem::path& path) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ExitCode::bad_data, "--data {}: {}; use a complete RecordIO file", path.string(), what);
  };
  file_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file_ || ::fstat(file_.get(), &status) != 0)
    refuse(fmt::format("cannot read it: {}", std::strerror(errno)));
  if (!S_ISREG(status.st_mode)) refuse("it is not a regular file");
  if (status.st_size == 0) refuse("it is empty");
  bytes_ = static_cast<std::uint64_t>(status.st_size);
}

void RecordFile::read_bytes(std::uint64_t offset, std::span<std::uint8_t> into) const {
  while (!into.empty()) {
    const ssize_t got = ::pread(file_.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw CorruptImage(std::strerror(errno));
    if (got == 0) throw CorruptImage("the file has become shorter");
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

RecordFile::Part RecordFile::part_at(std::uint64_t offset) const {
  if (offset > bytes_ || bytes_ - offset < kFrameBytes) throw CorruptImage("the file ends inside it");
  std::uint8_t frame[kFrameBytes];
  read_bytes(offset, frame);
  if (little_endian<std::uint32_t>(frame) != kRecordMagic)
    throw CorruptImage(fmt::format("no RecordIO magic number at byte {}", offset));
  const auto word = little_endian<std::uint32_t>(std::span(frame).subspan(4));
  const Part part{word >> 29, word & static_cast<std::uint32_t>(kMostPartBytes)};
  if (part.kind > kLast) throw CorruptImage(fmt::format("unknown kind of record, {}", part.kind));
  const std::uint64_t padded = (std::uint64_t{part.length} + 3) / 4 * 4;
  if (padded > bytes_ - offset - kFrameBytes)
    throw CorruptImage(fmt::format("the file ends inside it: {} bytes announced, {} left", part.length,
                                   bytes_ - offset - kFrameBytes));
  return part;
}

template <typename Visit>
std::uint64_t RecordFile::visit_parts(std::uint64_t offset, Visit visit) const {
  std::uint64_t record_bytes = 0;
  for (bool is_first = true;; is_first = false) {
    const Part part = part_at(offset);
    const bool begins = part.kind == kWhole || part.kind == kFirst;
    if (begins != is_first)
      throw CorruptImage(is_first ? "a record's middle stands where one should begin"
                                  : "another record begins inside it");
    const bool goes_on = part.kind == kFirst || part.kind == kMiddle;
    record_bytes += part.length + (goes_on ? sizeof(kRecordMagic) : 0);
    if (record_bytes > kMostEncodedBytes + kImageHeaderBytes) throw CorruptImage(kTooManyEncodedBytes);
    visit(offset + kFrameBytes, part.length, goes_on);
    offset += kFrameBytes + (std::uint64_t{part.length} + 3) / 4 * 4;
    if (!goes_on) return offset;
  }
}

std::span<const std::uint8_t> RecordFile::read(std::uint64_t offset,
                                               std::vector<std::uint8_t>& buffer) const {
  std::size_t size = 0;
  visit_parts(offset, [&](std::uint64_t place, std::uint32_t length, bool goes_on) {
    const std::size_t wanted = size + length + sizeof(kRecordMagic);
    if (buffer.size() < wanted) buffer.resize(std::max(wanted, std::min(buffer.size() * 2, kMostReadBytes)));
    read_bytes(place, std::span(buffer).subspan(size, length));
    size += length;
    if (!goes_on) return;
    for (std::size_t i = 0; i < sizeof(kRecordMagic); ++i)
      buffer[size++] = static_cast<std::uint8_t>(kRecordMagic >> (8 * i));
  });
  return {buffer.data(), size};
}

std::uint64_t RecordFile::end_of(std::uint64_t offset) const {
  return visit_parts(offset, [](std::uint64_t, std::uint32_t, bool) {});
}

RecordFiles::RecordFiles(const Output& output)
    : records_name(record_path(output.path)),
      index_name(fs::path(records_name).replace_extension(".idx")),
      records(output, records_name),
      index(output, index_name) {}

std::uint64_t write_records(const EncodedImages& images, RecordFiles& files,
                            const std::function<void(std::size_t)>& progress) {
  std::vector<std::uint8_t> buffer, record, framed;
  std::uint64_t written_bytes = 0;
  for (std::size_t number = 0; number < images.count(); ++number) {
    read_record(images, number, buffer, record);
    framed.clear();
    append_record(record, framed);
    files.records.write({reinterpret_cast<const char*>(framed.data()), framed.size()});
    files.index.write(fmt::format("{}\t{}\n", number, written_bytes));
    written_bytes += framed.size();
    progress(number + 1);
  }
  publish(files);
  return written_bytes;
}

}  // namespace plumb
