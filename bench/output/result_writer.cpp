#include "bench/output/result_writer.h"

#include <fcntl.h>
#include <spdlog/fmt/chrono.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "bench/output/summary.h"

namespace plumb {
namespace {

constexpr int kMostFolders = 100'000;

namespace fs = std::filesystem;

// The highest folder of `path` that does not exist; empty if all do.
std::string topmost_missing(fs::path path) {
  fs::path missing;
  std::error_code ignored;
  for (; !path.empty() && !fs::exists(path, ignored); path = path.parent_path()) missing = path;
  return missing;
}

// The part of `path` that is there but isn't a folder; empty if none is.
std::string not_a_folder(const fs::path& path) {
  fs::path so_far;
  std::error_code ignored;
  for (const fs::path& part : path) {
    so_far /= part;
    if (fs::exists(so_far, ignored) && !fs::is_directory(so_far, ignored)) return so_far;
  }
  return "";
}

std::string make_new_folder(const std::string& out_dir, const std::string& name) {
  if (const std::string file = not_a_folder(out_dir); !file.empty())
    throw Error(ExitCode::cannot_create, "option --out: {} is a file and not a folder; name another --out",
                file);
  std::error_code error;
  fs::create_directories(out_dir, error);
  for (int n = 1; n <= kMostFolders; ++n) {
    std::string folder = fmt::format("{}/{}_{}", out_dir, name, n);
    if (::mkdir(folder.c_str(), 0755) == 0) return folder;
    if (errno != EEXIST)
      throw Error(ExitCode::cannot_create,
                  "option --out: run folder {} can't be created: {}; give another --out", folder,
                  std::strerror(errno));
  }
  throw Error(ExitCode::cannot_create,
              "option --out: run folder {}/{}_* can't be created: {} exist; give another --out", out_dir,
              name, kMostFolders);
}

}  // namespace

std::string run_folder_name(const RunRecord& record, std::chrono::system_clock::time_point start) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(start);
  return fmt::format("{}_{}n{}g_b{}_{}_{:%Y%m%d-%H%M%S}", record.model, record.nodes, record.devices_per_node,
                     record.batch_per_device, record.precision, fmt::localtime(seconds));
}

ResultWriter::ResultWriter(const std::string& out_dir, const std::string& name, RunRecord record)
    : topmost_new_(topmost_missing(out_dir)),
      folder_(make_new_folder(out_dir, name)),
      lock_(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (lock_) ::flock(lock_.get(), LOCK_SH | LOCK_NB);
  record.status = "failed";
  record.failure = fmt::format("{} before it ended", kInterrupted);
  try {
    write_result(record);
  } catch (const Error& error) {
    discard();
    throw Error(ExitCode::cannot_create, error.what());
  }
}

void ResultWriter::discard() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  // fs::remove leaves a folder that another run uses meanwhile.
  for (fs::path path = fs::path(folder_).parent_path();
       !topmost_new_.empty() && path.string().size() >= topmost_new_.size(); path = path.parent_path())
    if (!fs::remove(path, ignored)) break;
}

void ResultWriter::write_result(const RunRecord& record, OnDisk on_disk) const {
  write(kResultFile, json_text(to_json(record)), on_disk);
}

void ResultWriter::remove_result() const {
  std::error_code ignored;
  fs::remove(fs::path(folder_) / kResultFile, ignored);
}

void ResultWriter::write_json(const std::string& file, const nlohmann::ordered_json& json) const {
  write_text(file, json_text(json));
}

void ResultWriter::write_text(const std::string& file, const std::string& text) const {
  write(file, text, OnDisk::now);
}

void ResultWriter::write(const std::string& file, const std::string& text, OnDisk on_disk) const {
  const std::string path = folder_ + "/" + file;
  if (const std::string why = replace_file(path, text, on_disk); !why.empty())
    throw Error(ExitCode::io_error, "file {} can't be written: {}; free space or give another --out", path,
                why);
}

}  // namespace plumb
