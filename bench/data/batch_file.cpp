#include "bench/data/batch_file.h"

#include "base/error.h"
#include "models/weights.h"

namespace plumb {
namespace {

using Dims = std::vector<std::int64_t>;

std::string text(const Dims& dims) {
  std::string joined = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) joined += (i ? ", " : "") + std::to_string(dims[i]);
  return joined + "]";
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(ExitCode::bad_data, "option --batch: " + path + ": " + what);
}

std::string other_type_hint(const TensorFile& file, const std::string& name) {
  if (name == "images" && file.integers.contains(name)) return " (found as int64)";
  if (name == "labels" && file.floats.contains(name)) return " (found as fp32)";
  return "";
}

// The tensor's shape but for the number of rows is `row`.
void check_shape(const std::string& path, const std::string& name, const Dims& found, const Dims& row,
                 std::int64_t rows_wanted) {
  const bool same_row =
      found.size() == row.size() + 1 && std::equal(row.begin(), row.end(), found.begin() + 1);
  if (!same_row) {
    Dims wanted{rows_wanted};
    wanted.insert(wanted.end(), row.begin(), row.end());
    refuse(path, "tensor \"" + name + "\" must have the shape " + text(wanted) + " or more rows, found " +
                     text(found) + "; make it for a network of this image size");
  }
  if (found.front() < rows_wanted)
    refuse(path, "tensor \"" + name + "\" has " + std::to_string(found.front()) + " rows, --bs wants " +
                     std::to_string(rows_wanted) + "; give a smaller --bs or a file with more rows");
}

}  // namespace

BatchFileSource::BatchFileSource(const BatchSourceOptions& options)
    : description_("the same batch at every step, from " + options.batch_file) {
  const std::string& path = options.batch_file;
  const TensorFile file = read_safetensors(path, "--batch");
  const auto images = file.floats.find("images");
  if (images == file.floats.end())
    refuse(path, "no fp32 tensor \"images\"" + other_type_hint(file, "images") +
                     "; give images [n, 3, H, W] fp32 and labels [n] int64");
  const auto labels = file.integers.find("labels");
  if (labels == file.integers.end())
    refuse(path, "no int64 tensor \"labels\"" + other_type_hint(file, "labels") +
                     "; give images [n, 3, H, W] fp32 and labels [n] int64");
  const std::int64_t size = options.image_size;
  check_shape(path, "images", images->second.dims, {3, size, size}, options.batch_per_device);
  check_shape(path, "labels", labels->second.first, {}, options.batch_per_device);

  const std::vector<float>& pixels = images->second.values;
  images_.assign(pixels.begin(), pixels.begin() + options.batch_per_device * 3 * size * size);
  const std::vector<std::int64_t>& values = labels->second.second;
  labels_.assign(values.begin(), values.begin() + options.batch_per_device);
  for (std::size_t i = 0; i < labels_.size(); ++i)
    if (labels_[i] < 0 || labels_[i] >= options.classes)
      refuse(path, "label " + std::to_string(labels_[i]) + " in row " + std::to_string(i) +
                       " is outside 0 to " + std::to_string(options.classes - 1) +
                       "; give labels of these, or, for faces, more --classes");
}

}  // namespace plumb
