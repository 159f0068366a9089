// A folder of images, one subfolder per class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/data/encoded_images.h"

namespace plumb {

// The name of the folder's option and its alternatives, for messages.
struct FolderArgument {
  std::string name = "--data";
  std::string alternatives = ", a RecordIO file that ends in .rec, or synthetic";
};

// Files that end in .jpg or .jpeg (in capitals too) directly in a class's folder, but for hidden ones.
// Classes and files are sorted by bytes, so that every rank counts them alike.
class FolderImages : public EncodedImages {
 public:
  // Throws Error(bad_data): unreadable, no classes or over `most_classes`, a link to nowhere, an empty class.
  FolderImages(const std::filesystem::path& path, std::int64_t most_classes,
               const FolderArgument& argument = {});

  std::size_t count() const override { return files_.size(); }
  EncodedImage read(std::size_t image, std::vector<std::uint8_t>& buffer) const override;
  std::size_t encoded_bytes(std::size_t image) const override;
  std::string name_of(std::size_t image) const override { return path_of(image).string(); }
  std::size_t host_bytes() const override;
  std::string fingerprint() const override;
  std::string description() const override;

 private:
  struct File {
    std::string name;  // inside its class's folder
    std::int32_t label = 0;
  };
  std::filesystem::path path_of(std::size_t image) const {
    return path_ / classes_[static_cast<std::size_t>(files_[image].label)] / files_[image].name;
  }

  std::filesystem::path path_;
  std::vector<std::string> classes_;  // label -> name of the subfolder
  std::vector<File> files_;
};

}  // namespace plumb
