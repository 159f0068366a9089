// A batch from a safetensors file.
#include <algorithm>

#include "base/error.h"
#include "bench/data/batch_source.h"
#include "models/weights.h"

namespace plumb {
namespace {

using Dims = std::vector<std::int64_t>;

template <typename... Values>
[[noreturn]] void refuse(const std::string& path, fmt::format_string<Values...> what, Values&&... values) {
  throw Error(ExitCode::bad_data, "--batch-file {}: {}", path,
              fmt::format(what, std::forward<Values>(values)...));
}

[[noreturn]] void refuse_missing(const std::string& path, const char* tensor, const char* found_as) {
  refuse(path, "expected {}{}; use images [n, 3, H, W] fp32 and labels [n] int64", tensor, found_as);
}

// The tensor's shape but for the number of rows is `row`.
void check_shape(const std::string& path, const std::string& name, const Dims& found, const Dims& row,
                 std::int64_t rows_wanted) {
  const bool same_row =
      found.size() == row.size() + 1 && std::equal(row.begin(), row.end(), found.begin() + 1);
  if (!same_row) {
    Dims wanted{rows_wanted};
    wanted.insert(wanted.end(), row.begin(), row.end());
    refuse(path,
           "tensor \"{}\": expected shape [{}] or more rows, found [{}]; use a file for this --image-size",
           name, fmt::join(wanted, ", "), fmt::join(found, ", "));
  }
  if (found.front() < rows_wanted)
    refuse(path,
           "tensor \"{}\" has {} rows, fewer than --bs {}; pass a smaller --bs or use a file with more rows",
           name, found.front(), rows_wanted);
}

}  // namespace

FixedBatch batch_of_file(const BatchSourceOptions& options) {
  const std::string& path = options.batch_file;
  const TensorFile file = read_safetensors(path, "--batch-file");
  const auto images = file.floats.find("images");
  if (images == file.floats.end())
    refuse_missing(path, "fp32 tensor \"images\"",
                   file.integers.contains("images") ? " (found as int64)" : "");
  const auto labels = file.integers.find("labels");
  if (labels == file.integers.end())
    refuse_missing(path, "int64 tensor \"labels\"", file.floats.contains("labels") ? " (found as fp32)" : "");
  const std::int64_t size = options.image_size, batch = options.batch_per_device;
  check_shape(path, "images", images->second.dims, {3, size, size}, batch);
  check_shape(path, "labels", labels->second.dims, {}, batch);

  const auto pixels = images->second.values.begin();
  const auto first_label = labels->second.values.begin();
  const auto is_outside = [&](std::int64_t label) { return label < 0 || label >= options.classes; };
  const auto outside = std::find_if(first_label, first_label + batch, is_outside);
  if (outside != first_label + batch)
    refuse(path,
           "label {} in row {} is outside 0 to {}; use smaller labels or, for faces, pass more --classes",
           *outside, outside - first_label, options.classes - 1);
  return {"the same batch at every step, from " + path,
          {pixels, pixels + batch * 3 * size * size},
          {first_label, first_label + batch}};
}

}  // namespace plumb
