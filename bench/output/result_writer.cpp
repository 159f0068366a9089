#include "bench/output/result_writer.h"

#include <fcntl.h>
#include <spdlog/fmt/chrono.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "base/console/print.h"
#include "base/error.h"

namespace plumb {
namespace {

constexpr int kMostFolders = 100'000;

namespace fs = std::filesystem;

std::string make_new_folder(const Output& out, const std::string& name) {
  for (int n = 1; n <= kMostFolders; ++n) {
    std::string folder = fmt::format("{}/{}_{}", out.path, name, n);
    if (::mkdir(folder.c_str(), 0755) == 0) return folder;
    if (errno != EEXIST)
      throw cannot_create(out, fmt::format("cannot create {}: {}", folder, std::strerror(errno)));
  }
  throw cannot_create(out, fmt::format("{} folders {}_* exist already", kMostFolders, name));
}

}  // namespace

std::string run_folder_name(const RunRecord& record, std::chrono::system_clock::time_point start) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(start);
  return fmt::format("{}_{}n{}g_b{}_{}_{:%Y%m%d-%H%M%S}", record.model, record.nodes, record.devices_per_node,
                     record.batch_per_device, record.precision, fmt::localtime(seconds));
}

ResultWriter::ResultWriter(const std::string& out_dir, const std::string& name, RunRecord record)
    : out_{.option = "--output", .path = out_dir},
      out_folder_(out_, out_dir),
      folder_(make_new_folder(out_, name)),
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
  out_folder_.remove_empty();
}

void ResultWriter::write_result(const RunRecord& record) const {
  write_text(kResultFile, json_text(to_json(record)));
}

void ResultWriter::remove_result() const {
  std::error_code ignored;
  fs::remove(fs::path(folder_) / kResultFile, ignored);
}

void ResultWriter::write_json(const std::string& file, const nlohmann::ordered_json& json) const {
  write_text(file, json_text(json));
}

void ResultWriter::write_text(const std::string& file, const std::string& text) const {
  const std::string path = folder_ + "/" + file;
  if (const std::string why = replace_file(path, text); !why.empty())
    throw Error(ExitCode::io_error, "--output {}: cannot write {}: {}; free space or pass another --output",
                out_.path, path, why);
}

}  // namespace plumb
