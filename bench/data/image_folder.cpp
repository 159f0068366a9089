#include "bench/data/image_folder.h"

#include <algorithm>
#include <bit>
#include <cctype>

#include "models/error.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, const std::string& what) {
  throw Error(ExitCode::bad_data, "option --data: " + path.string() + ": " + what);
}

bool is_jpeg(const fs::path& path) {
  std::string extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return extension == ".jpg" || extension == ".jpeg";
}

// Names inside a folder that don't start with a dot and that `wanted` takes, sorted.
template <typename Wanted>
std::vector<std::string> names_in(const fs::path& root, const fs::path& folder, Wanted wanted) {
  std::vector<std::string> names;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      std::string name = entry.path().filename().string();
      if (name.front() != '.' && wanted(entry)) names.push_back(std::move(name));
    }
  } catch (const fs::filesystem_error& error) {
    refuse(root, "can't read the folder " + folder.string() + " (" + error.code().message() +
                     "); check its permissions");
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

ImageFolder list_image_folder(const fs::path& path, std::int64_t most_classes) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (!fs::exists(status))
    refuse(path, "no such folder; give a folder with one subfolder of JPEG files per class, or synthetic");
  if (!fs::is_directory(status))
    refuse(path, "is not a folder; give a folder with one subfolder of JPEG files per class, or synthetic");
  ImageFolder folder{path,
                     names_in(path, path,
                              [](const fs::directory_entry& entry) {
                                std::error_code ignored;
                                return entry.is_directory(ignored);
                              }),
                     {}};
  if (folder.classes.empty())
    refuse(path, "holds no class folders; put the JPEG files into one subfolder per class");
  if (static_cast<std::int64_t>(folder.classes.size()) > most_classes)
    refuse(path, "holds " + std::to_string(folder.classes.size()) + " class folders, the network has " +
                     std::to_string(most_classes) + " classes; leave out some folders");
  for (std::size_t label = 0; label < folder.classes.size(); ++label) {
    const auto names = names_in(path, path / folder.classes[label],
                                [](const fs::directory_entry& entry) { return is_jpeg(entry.path()); });
    if (names.empty())
      refuse(path, "class folder \"" + folder.classes[label] +
                       "\" holds no .jpg or .jpeg files; fill or remove it");
    for (const std::string& name : names) folder.files.push_back({name, static_cast<std::int32_t>(label)});
  }
  return folder;
}

ShuffledOrder::ShuffledOrder(std::uint64_t seed, std::uint64_t count)
    : key_(stream_key(seed, "order of images")),
      count_(count),
      half_bits_(std::max(1, (static_cast<int>(std::bit_width(count - 1)) + 1) / 2)) {}

std::uint64_t ShuffledOrder::at(std::uint64_t epoch, std::uint64_t position) const {
  std::uint64_t number = position;
  do number = permuted(epoch, number);
  while (number >= count_);
  return number;
}

std::uint64_t ShuffledOrder::permuted(std::uint64_t epoch, std::uint64_t number) const {
  constexpr std::uint32_t kRounds = 10;
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = number >> half_bits_, right = number & mask;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const PhiloxBlock bits =
        philox4x32(key_, {static_cast<std::uint32_t>(right), round, static_cast<std::uint32_t>(epoch),
                          static_cast<std::uint32_t>(epoch >> 32)});
    const std::uint64_t next = left ^ (bits[0] & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

}  // namespace plumb
