#include "bench/data/encoded_images.h"

#include <filesystem>

#include "bench/data/image_folder.h"
#include "bench/data/record_images.h"

namespace plumb {

std::unique_ptr<EncodedImages> open_images(const std::string& data, std::int64_t classes) {
  std::error_code ignored;
  if (std::filesystem::path(data).extension() == ".rec" && !std::filesystem::is_directory(data, ignored))
    return std::make_unique<RecordImages>(data, classes);
  return std::make_unique<FolderImages>(list_image_folder(data, classes));
}

}  // namespace plumb
