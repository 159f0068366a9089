// Encoded images to a RecordIO file and its index.

#include "base/error.h"
#include "bench/data/record_images.h"
#include "bench/data/record_io.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWriteBytes = std::size_t{1} << 20;

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
    throw Error(ExitCode::bad_data, "{} can't be packed ({}); repair or remove it", images.name_of(number),
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

RecordFiles::RecordFiles(const Output& output)
    : records_name(record_path(output.path)),
      index_name(fs::path(records_name).replace_extension(".idx")),
      records(output, records_name),
      index(output, index_name) {}

std::uint64_t write_records(const EncodedImages& images, RecordFiles& files,
                            const std::function<void(std::size_t)>& progress) {
  std::vector<std::uint8_t> buffer, record, framed;
  std::string lines;
  std::uint64_t written_bytes = 0;
  for (std::size_t number = 0; number < images.count(); ++number) {
    lines += fmt::format("{}\t{}\n", number, written_bytes + framed.size());
    read_record(images, number, buffer, record);
    append_record(record, framed);
    if (framed.size() >= kWriteBytes || number + 1 == images.count()) {
      files.records.write({reinterpret_cast<const char*>(framed.data()), framed.size()});
      files.index.write(lines);
      written_bytes += framed.size();
      framed.clear();
      lines.clear();
    }
    progress(number + 1);
  }
  publish(files);
  return written_bytes;
}

}  // namespace plumb
