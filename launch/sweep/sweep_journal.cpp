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
#include "base/machine/host_addresses.h"
#include "base/text.h"
#include "base/whole_file.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "plumbline.sweep/1";
constexpr const char* kName = "journal.jsonl";

struct SweepHeader {
  std::string schema = kSchema;
  std::string plan, build, file, toml;

  static void fields(auto& self, auto&& each) {
    each("schema", self.schema), each("plan", self.plan, Field{"hash of the list of runs"});
    each("build", self.build, Field{"hash of the programs"});
    each("file", self.file, Field{"the sweep file"}), each("toml", self.toml, Field{"its text"});
  }
};

// A line of the journal; empty if it is something else.
template <typename Line>
std::optional<Line> read_line(const std::string& text, const fs::path& path) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    Line line;
    fields::read_all(ObjectReader(json, path.string(), "", kSchema), line);
    return line;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string hex(std::uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

// Whole lines. A partial last line is that of a writer that was killed.
std::vector<std::string> whole_lines(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  std::vector<std::string> lines = split(read_whole_file(path, {.remedy = "pass another --output"}), '\n');
  lines.pop_back();
  return lines;
}

void apply_event(const SweepEvent& event, std::map<std::string, RunState>& states) {
  if (event.event == "begin") return;
  RunState& state = states[event.run];
  if (event.event == "start") {
    state.attempts = *event.attempt;
  } else if (event.event == "done") {
    state = {.done = true, .attempts = state.attempts, .seconds = *event.seconds};
  } else if (event.event == "failed") {
    ++state.failures;
    state.seconds = *event.seconds;
    state.code = *event.code;
    state.reason = *event.reason;
  } else if (event.event == "lost") {
    state = {.attempts = state.attempts};
  }
}

// The states after the last line; the first line has no event.
std::map<std::string, RunState> replayed(const fs::path& path, const std::vector<std::string>& lines) {
  std::map<std::string, RunState> states;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto event = read_line<SweepEvent>(lines[i], path);
    if (!event)
      throw Error(ExitCode::bad_data, "{}:{}: expected a line of a sweep's journal; pass another --output",
                  path.string(), i + 1);
    apply_event(*event, states);
  }
  return states;
}

}  // namespace

void SweepEvent::check(const ObjectReader& reader) const {
  const auto need = [&](const char* key, bool has) {
    if (!has) reader.fail(key, "it is missing");
  };
  const bool ended = event == "done" || event == "failed";
  need("run", event == "begin" || !run.empty());
  need("attempt", event != "start" || attempt);
  need("seconds", !ended || seconds);
  need("code", event != "failed" || code);
  need("reason", event != "failed" || reason);
}

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
    append(fields::written(SweepHeader{.plan = hex(identity.plan),
                                       .build = hex(identity.build),
                                       .file = identity.file,
                                       .toml = identity.toml}));
  add({.event = "begin", .process = getpid(), .host = own_host()});
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
  const auto header = read_line<SweepHeader>(line, path_);
  if (!header || header->schema != kSchema)
    throw Error(ExitCode::bad_data,
                "{}:1: expected the journal of a sweep of this version; pass another --output",
                path_.string());
  if (header->plan != hex(identity.plan))
    throw cannot_create(out_, fmt::format("the folder holds another sweep than {} asks for (the first line "
                                          "of its journal.jsonl has the file)",
                                          identity.file));
  if (header->build != hex(identity.build))
    throw cannot_create(out_,
                        "the folder holds runs of another build of the programs, which cannot be mixed");
}

void SweepJournal::append(const Json& line) {
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  ssize_t count = 0;
  while ((count = ::write(file_.get(), text.data(), text.size())) < 0 && errno == EINTR) {
  }
  if (count != static_cast<ssize_t>(text.size()))
    throw Error(ExitCode::io_error, "cannot write {}: {}; make room and pass --resume", path_.string(),
                count < 0 ? std::strerror(errno) : "no space left on device");
  ::fdatasync(file_.get());
}

void SweepJournal::add(SweepEvent event) {
  event.time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  append(fields::written(event));
  apply_event(event, states_);
}

RunState SweepJournal::state(const std::string& run) const {
  const auto found = states_.find(run);
  return found == states_.end() ? RunState{} : found->second;
}

std::map<std::string, RunState> read_sweep_states(const fs::path& folder) {
  return replayed(folder / kName, whole_lines(folder / kName));
}

Json sweep_schema() {
  Json json =
      json_schema_of<SweepHeader>(kSchema, "A line of a sweep's journal.jsonl: the first, or another.");
  json["properties"]["schema"] = {{"const", kSchema}};
  Json first;
  for (const char* key : {"type", "properties", "required"}) {
    first[key] = std::move(json[key]);
    json.erase(key);
  }
  json["anyOf"] = Json::array({std::move(first), fields::schema<SweepEvent>()});
  return json;
}

}  // namespace plumb
