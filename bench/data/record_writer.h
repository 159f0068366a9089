// Encoded images to a RecordIO file and its index.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "bench/data/encoded_images.h"

namespace plumb {

// The .rec file of a name with or without that ending, and the .idx file beside it.
std::filesystem::path record_path(const std::filesystem::path& name);
std::filesystem::path index_path(const std::filesystem::path& name);

// One record per image, in order, keys and ids from 0, the label as a float, the image's bytes as they are.
// There is no header record: MXNet's ImageRecordIter takes every record for an image, and InsightFace's
// readers take all keys where record 0 has no label array. Both files get their names when both are whole;
// nothing is replaced. Calls progress(images written) after each. Returns the bytes of the .rec file. Throws
// Error: cannot_create, io_error, bad_data for an image that is empty or can't be read.
std::uint64_t write_records(const EncodedImages& images, const std::filesystem::path& name,
                            const std::function<void(std::size_t)>& progress);

}  // namespace plumb
