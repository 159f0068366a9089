#include "launch/sweep/sweep_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/output.h"
#include "base/shallow_json.h"
#include "base/whole_file.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr int kTries = 50;
constexpr std::chrono::milliseconds kBetweenTries{100};  // mpirun takes seconds to end its ranks

void lock(const UniqueFd& file, const Output& out) {
  for (int attempt = 1; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0; ++attempt) {
    if (errno == EINTR || (errno == EWOULDBLOCK && attempt < kTries)) {
      std::this_thread::sleep_for(kBetweenTries);
      continue;
    }
    if (errno == EWOULDBLOCK)
      throw cannot_create(out, "another sweep that is still running uses the folder",
                          "wait for it or pass another --output");
    throw cannot_create(out, fmt::format("cannot lock the folder: {}", std::strerror(errno)),
                        "pass a folder on a local disk");
  }
}

void check_identity(const fs::path& path, const std::string& text, const SweepIdentity& wanted,
                    const Output& out) {
  SweepIdentity found;
  const Json json = parse_shallow_json(text);
  fields::read_all(ObjectReader(json, path.string(), "", kSweepDocument.name), found);
  if (found.schema != kSweepDocument.name)
    throw Error(ExitCode::bad_data, "{}: expected {}; pass another --output", path.string(),
                kSweepDocument.name);
  if (found.plan != wanted.plan)
    throw cannot_create(
        out, fmt::format("the folder holds another sweep than {} asks for (its sweep.json has the file)",
                         wanted.file));
  if (found.build != wanted.build)
    throw cannot_create(out, "the folder holds runs of another build of the programs, which cannot be mixed");
}

}  // namespace

const Document kSweepDocument =
    document_of<SweepIdentity>("plumbline.sweep/2", "Which sweep a folder holds: sweep.json.");

SweepLock::SweepLock(const fs::path& folder, const SweepIdentity& identity, bool resume) {
  const Output out{.option = "--output", .path = folder};
  const fs::path path = folder / "sweep.json";
  const OutputFolder made(out, folder);
  std::error_code error;
  if (!fs::exists(path, error) && !fs::is_empty(folder, error) && !error)
    throw cannot_create(out, "the folder is not empty and holds no sweep");
  file_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT, 0644));  // programs inherit it
  if (!file_)
    throw cannot_create(out, fmt::format("cannot create {}: {}", path.string(), std::strerror(errno)));
  lock(file_, out);
  const std::string text = read_whole_file(path, {.remedy = "pass another --output"});
  if (!text.empty() && !resume)
    throw cannot_create(out, "the folder holds a sweep already",
                        "pass --resume to go on with it, or another --output");
  if (!text.empty()) {
    check_identity(path, text, identity, out);
    return;
  }
  const std::string written = fields::written(identity).dump(1) + "\n";
  errno = ENOSPC;  // in case only a part is written
  if (::write(file_.get(), written.data(), written.size()) == static_cast<ssize_t>(written.size())) return;
  const std::string why = std::strerror(errno);
  fs::remove(path, error);  // a part of it could not be resumed
  throw cannot_create(out, fmt::format("cannot write {}: {}", path.string(), why));
}

}  // namespace plumb
