#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/error.h"
#include "base/hash.h"
#include "base/paths.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "bench/data/encoded_images.h"

namespace plumb {
namespace {

bool is_jpeg(const fs::path& path) {
  const std::string extension = lower_case(path.extension().string());
  return extension == ".jpg" || extension == ".jpeg";
}

// Names inside a folder that don't start with a dot and that `wanted` takes, sorted.
template <typename Refuse, typename Wanted>
std::vector<std::string> names_in(Refuse refuse, const fs::path& folder, Wanted wanted) {
  std::vector<std::string> names;
  std::error_code error;
  const auto entries = visible_entries(folder, error);
  if (error)
    refuse(fmt::format("cannot read folder {}: {}; check its permissions", folder.string(), error.message()));
  for (const fs::path& entry : entries)
    if (wanted(entry)) names.push_back(entry.filename());
  return names;
}

// Throws CorruptImage with the system's reason, unless the system lacks what reading any file takes.
[[noreturn]] void refuse_file(const fs::path& path) {
  if (errno == ENOMEM) throw std::bad_alloc();
  if (errno == EMFILE || errno == ENFILE)
    throw Error(ExitCode::io_error,
                "cannot read {}: {}; allow more open files (ulimit -n) or pass fewer --data-workers",
                path.string(), std::strerror(errno));
  throw CorruptImage(std::strerror(errno));
}

std::span<const std::uint8_t> read_file(const fs::path& path, std::vector<std::uint8_t>& bytes) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe would block
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) refuse_file(path);
  if (!S_ISREG(status.st_mode)) throw CorruptImage("no regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > kMostEncodedBytes) throw CorruptImage(kTooManyEncodedBytes);
  if (bytes.size() < size) bytes.resize(size);
  std::size_t read = 0;
  while (read < size) {
    const ssize_t got = ::read(file.get(), bytes.data() + read, size - read);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse_file(path);
    if (got == 0) break;
    read += static_cast<std::size_t>(got);
  }
  return {bytes.data(), read};
}

class FolderImages : public EncodedImages {
 public:
  FolderImages(const fs::path& path, std::int64_t most_classes, const std::string& option);

  std::size_t count() const override { return files_.size(); }
  EncodedImage read(std::size_t image, std::vector<std::uint8_t>& buffer) const override {
    return {read_file(path_of(image), buffer), files_[image].label};
  }
  std::size_t encoded_bytes(std::size_t image) const override {
    std::error_code unreadable;
    const std::uintmax_t bytes = fs::file_size(path_of(image), unreadable);
    return unreadable ? 0 : bytes;
  }
  std::string name_of(std::size_t image) const override { return path_of(image).string(); }
  std::size_t host_bytes() const override {
    std::size_t bytes = files_.size() * sizeof(File);
    for (const File& file : files_) bytes += file.name.size();
    return bytes;
  }
  std::string fingerprint() const override;
  std::string description() const override {
    return fmt::format("{} images in {} classes from {}", files_.size(), classes_.size(), path_.string());
  }

 private:
  struct File {
    std::string name;  // inside its class's folder
    std::int32_t label = 0;
  };
  fs::path path_of(std::size_t image) const {
    return path_ / classes_[static_cast<std::size_t>(files_[image].label)] / files_[image].name;
  }

  fs::path path_;
  std::vector<std::string> classes_;  // label -> name of the subfolder
  std::vector<File> files_;
};

FolderImages::FolderImages(const fs::path& path, std::int64_t most_classes, const std::string& option)
    : path_(path) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ExitCode::bad_data, "{} {}: {}", option, path.string(), what);
  };
  const std::string remedy = "; pass a folder with one subfolder of JPEG files per class";
  std::error_code failure;
  if (!fs::is_directory(path, failure))
    refuse("expected a folder" + (failure ? fmt::format(" ({})", failure.message()) : "") + remedy);
  classes_ = names_in(refuse, path, [&](const fs::path& entry) {
    std::error_code ignored;
    if (fs::is_directory(entry, ignored)) return true;
    // A class that is left out would change the labels of those behind it.
    if (!fs::exists(entry, ignored))
      refuse(fmt::format("\"{}\" in it points to nothing; correct or remove it", entry.filename().string()));
    return false;
  });
  if (classes_.empty()) refuse("expected class folders; put the JPEG files into one subfolder per class");
  if (std::ssize(classes_) > most_classes)
    refuse(
        fmt::format("it has {} class folders, and the network has {} classes; remove some folders or, for "
                    "faces, pass more --classes",
                    classes_.size(), most_classes));
  for (std::size_t label = 0; label < classes_.size(); ++label) {
    const auto names = names_in(refuse, path / classes_[label], is_jpeg);
    if (names.empty())
      refuse(fmt::format("class folder \"{}\": expected .jpg or .jpeg files; fill or remove it",
                         classes_[label]));
    for (const std::string& name : names) files_.push_back({name, static_cast<std::int32_t>(label)});
  }
}

std::string FolderImages::fingerprint() const {
  std::uint64_t hash = kFnvOffset;
  for (const File& file : files_) {
    const std::string& name = classes_[static_cast<std::size_t>(file.label)];
    hash = fnv1a("/", fnv1a(file.name, fnv1a("/", fnv1a(name, hash))));
  }
  return fmt::format("classes={}\nimages={}\nhash of their names={:016x}\n", classes_.size(), files_.size(),
                     hash);
}

}  // namespace

std::unique_ptr<EncodedImages> open_folder(const fs::path& path, std::int64_t most_classes,
                                           const std::string& option) {
  return std::make_unique<FolderImages>(path, most_classes, option);
}

std::unique_ptr<EncodedImages> open_images(const std::string& data, std::int64_t classes) {
  std::error_code ignored;
  if (fs::path(data).extension() == ".rec" && !fs::is_directory(data, ignored))
    return open_records(data, classes);
  return open_folder(data, classes);
}

}  // namespace plumb
