// What a folder of images holds, and the order in which a job goes through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "models/random.h"

namespace plumb {

struct ImageFile {
  std::string name;  // inside its class's folder
  std::int32_t label = 0;
};

// One subfolder per class, classes and files sorted by bytes, so that every rank counts them alike.
struct ImageFolder {
  std::filesystem::path path;
  std::vector<std::string> classes;  // label -> name of the subfolder
  std::vector<ImageFile> files;

  std::filesystem::path path_of(std::size_t file) const {
    return path / classes[static_cast<std::size_t>(files[file].label)] / files[file].name;
  }
};

// Files that end in .jpg or .jpeg (in capitals too) directly in a class's folder; names that start with a dot
// and other files are passed over. Throws Error(bad_data): no such folder, not a folder, unreadable, no
// classes, a class without images (named), more than `most_classes` classes.
ImageFolder list_image_folder(const std::filesystem::path& path, std::int64_t most_classes);

// A shuffled order of [0, count) for each epoch, as a function: no memory, no state, the same on every rank.
class ShuffledOrder {
 public:
  // count in [1, 2^62]
  ShuffledOrder(std::uint64_t seed, std::uint64_t count);
  // Position in [0, count) -> image; over all positions every image comes exactly once.
  std::uint64_t at(std::uint64_t epoch, std::uint64_t position) const;
  std::uint64_t count() const { return count_; }

 private:
  // A Feistel network makes a pseudo-random permutation of the numbers of an even number of bits (Luby and
  // Rackoff, 1988; ten rounds as in NIST SP 800-38G, since folders may be small); what falls outside [0,
  // count) is permuted again (cycle walking; Black and Rogaway, 2002).
  std::uint64_t permuted(std::uint64_t epoch, std::uint64_t number) const;

  PhiloxKey key_;
  std::uint64_t count_;
  int half_bits_;
};

}  // namespace plumb
