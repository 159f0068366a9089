#include "launch/sweep/sweep_journal.h"

#include <fcntl.h>
#include <spdlog/fmt/chrono.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/whole_file.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "plumbline.sweep/1";
constexpr const char* kName = "journal.jsonl";

std::string hex(std::uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::string host_name() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

// Whole lines. A partial last line is that of a writer that was killed.
std::vector<std::string> whole_lines(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  std::vector<std::string> lines = split(read_whole_file(path, {.remedy = "name another --output"}), '\n');
  lines.pop_back();
  return lines;
}

void apply_event(const Json& line, std::map<std::string, RunState>& states) {
  const std::string event = line.at("event");
  if (event == "begin") return;
  RunState& state = states[line.at("run").get<std::string>()];
  if (event == "start") {
    state.attempts = line.at("attempt");
  } else if (event == "done") {
    state = {.done = true, .attempts = state.attempts, .seconds = line.at("seconds")};
  } else if (event == "failed") {
    ++state.failures;
    state.seconds = line.at("seconds");
    state.code = line.at("code");
    state.reason = line.at("reason");
  } else if (event == "lost") {
    state = {.attempts = state.attempts};
  }
}

// The states behind the last line; the first line has no event.
std::map<std::string, RunState> replayed(const fs::path& path, const std::vector<std::string>& lines) {
  std::map<std::string, RunState> states;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    try {
      apply_event(Json::parse(lines[i]), states);
    } catch (const nlohmann::json::exception&) {
      throw Error(ExitCode::bad_data, "{}, line {}: not a line of a sweep's journal; name another --output",
                  path.string(), i + 1);
    }
  }
  return states;
}

}  // namespace

SweepJournal::SweepJournal(const fs::path& folder, const SweepIdentity& identity, bool resume)
    : out_{.option = "--output", .path = folder}, path_(folder / kName) {
  const OutputFolder made(out_, folder);
  std::error_code error;
  if (!fs::exists(path_, error) && !fs::is_empty(folder, error) && !error)
    throw cannot_create(out_, "the folder is not empty and holds no sweep");
  file_ = UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file_)
    throw cannot_create(out_, fmt::format("cannot create {}: {}", path_.string(), std::strerror(errno)));
  lock();
  const std::vector<std::string> lines = whole_lines(path_);
  if (!lines.empty() && !resume)
    throw cannot_create(out_, "the folder holds a sweep already",
                        "pass --resume to go on with it, or another --output");
  if (!lines.empty()) check_header(lines.front(), identity);
  states_ = replayed(path_, lines);
  off_t bytes = 0;
  for (const std::string& line : lines) bytes += static_cast<off_t>(line.size()) + 1;
  if (::ftruncate(file_.get(), bytes) != 0)
    throw cannot_create(out_, fmt::format("cannot write {}: {}", path_.string(), std::strerror(errno)));
  if (lines.empty())
    append({{"schema", kSchema},
            {"plan", hex(identity.plan)},
            {"build", hex(identity.build)},
            {"file", identity.file},
            {"toml", identity.toml}});
  append({{"event", "begin"}, {"time", utc_now()}, {"process", getpid()}, {"host", host_name()}});
}

void SweepJournal::lock() {
  while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK)
      throw cannot_create(out_, "another sweep that is still running uses the folder",
                          "wait for it or pass another --output");
    throw cannot_create(out_, fmt::format("cannot lock the folder: {}", std::strerror(errno)),
                        "pass a folder on a local disk");
  }
}

void SweepJournal::check_header(const std::string& line, const SweepIdentity& identity) const {
  const Json header = Json::parse(line, nullptr, false);
  if (!header.is_object() || header.value("schema", Json()) != kSchema)
    throw Error(ExitCode::bad_data,
                "{}, line 1: not the journal of a sweep that this version knows; name another --output",
                path_.string());
  if (header.value("plan", Json()) != hex(identity.plan))
    throw cannot_create(out_, fmt::format("the folder holds another sweep than {} asks for (the first line "
                                          "of its journal.jsonl has the file)",
                                          identity.file));
  if (header.value("build", Json()) != hex(identity.build))
    throw cannot_create(out_,
                        "the folder holds runs of another build of the programs, which cannot be mixed");
}

void SweepJournal::append(const Json& line) {
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  ssize_t count = 0;
  while ((count = ::write(file_.get(), text.data(), text.size())) < 0 && errno == EINTR) {
  }
  if (count != static_cast<ssize_t>(text.size()))
    throw Error(ExitCode::io_error, "{} can't be written: {}; make room and go on with --resume",
                path_.string(), count < 0 ? std::strerror(errno) : "no space left on device");
  ::fdatasync(file_.get());
}

void SweepJournal::append_event(const char* event, const std::string& run, Json more) {
  Json line{{"event", event}, {"time", utc_now()}, {"run", run}};
  for (auto& [key, value] : more.items()) line[key] = std::move(value);
  append(line);
  apply_event(line, states_);
}

RunState SweepJournal::state(const std::string& run) const {
  const auto found = states_.find(run);
  return found == states_.end() ? RunState{} : found->second;
}

int SweepJournal::started(const std::string& run) {
  const int attempt = state(run).attempts + 1;
  append_event("start", run, {{"attempt", attempt}});
  return attempt;
}

void SweepJournal::done(const std::string& run, double seconds) {
  append_event("done", run, {{"attempt", state(run).attempts}, {"seconds", seconds}});
}

void SweepJournal::failed(const std::string& run, double seconds, int code, const std::string& reason) {
  append_event("failed", run,
               {{"attempt", state(run).attempts}, {"seconds", seconds}, {"code", code}, {"reason", reason}});
}

void SweepJournal::interrupted(const std::string& run, int signal) {
  append_event("interrupted", run, {{"attempt", state(run).attempts}, {"signal", signal}});
}

void SweepJournal::lost(const std::string& run) {
  append_event("lost", run);
}

std::map<std::string, RunState> read_sweep_states(const fs::path& folder) {
  return replayed(folder / kName, whole_lines(folder / kName));
}

}  // namespace plumb
