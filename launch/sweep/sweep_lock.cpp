#include "launch/sweep/sweep_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>

#include "base/error.h"
#include "base/output.h"
#include "base/shallow_json.h"
#include "base/whole_file.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{5};  // mpirun takes seconds to end its ranks

void check_identity(const fs::path& path, const std::string& text, const SweepIdentity& wanted,
                    const Output& out) {
  SweepIdentity found;
  const Json json = parse_shallow_json(text);
  fields::read_all(ObjectReader(json, path.string(), "", kSweepDocument.name), found);
  if (found.schema != kSweepDocument.name)
    throw Error(ExitCode::bad_data, "{}: expected {}; pass another --output", path.string(),
                kSweepDocument.name);
  if (found.plan != wanted.plan)
    throw cannot_create(out, "the folder holds another sweep, whose file is in its sweep.json");
  if (found.build != wanted.build)
    throw cannot_create(out, "the folder holds runs of another build of the programs, which cannot be mixed");
}

}  // namespace

const Document kSweepDocument =
    document_of<SweepIdentity>("plumbline.sweep/2", "Which sweep a folder holds: sweep.json.");

UniqueFd claim_sweep_folder(const fs::path& folder, const SweepIdentity& identity, bool resume) {
  const Output out{.option = "--output", .path = folder};
  const fs::path path = folder / "sweep.json";
  const OutputFolder made(out, folder);
  std::error_code error;
  if (!fs::exists(path, error) && !fs::is_empty(folder, error) && !error)
    throw cannot_create(out, "the folder is not empty and holds no sweep");
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT, 0644));  // programs inherit it
  const auto cannot_write = [&] { return cannot_create(out, "cannot write " + path.string()); };
  if (!file) throw cannot_write();
  if (lock_within(file.get(), kPatience) != 0)
    throw cannot_create(out, "another sweep that is still running uses the folder",
                        "wait for it, or pass another --output on a local disk");
  if (const std::string text = read_whole_file(path, {.remedy = "pass another --output"}); !text.empty()) {
    if (!resume)
      throw cannot_create(out, "the folder holds a sweep already",
                          "pass --resume to go on with it, or another --output");
    check_identity(path, text, identity, out);
    return file;
  }
  const std::string written = fields::written(identity).dump(1) + "\n";
  if (::write(file.get(), written.data(), written.size()) == std::ssize(written)) return file;
  fs::remove(path, error);  // a part of it could not be resumed
  throw cannot_write();
}

}  // namespace plumb
