#include "results/postmortem/postmortem.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <map>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/paths.h"
#include "base/shallow_json.h"
#include "base/unique_fd.h"
#include "base/whole_file.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

// A process that ends lets go of the lock, however it ends, but only when its memory is taken down, and
// mpirun may be gone by then. Where the file system has no locks, nobody holds one.
bool is_running(const fs::path& run) {
  constexpr std::chrono::milliseconds kPatience{1000}, kBetweenLooks{10};
  const UniqueFd folder(::open(run.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto start = std::chrono::steady_clock::now();
  while (folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (std::chrono::steady_clock::now() - start > kPatience) return true;
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return false;
}

// N of "rank_N.json".
std::optional<int> rank_of(const std::string& name) {
  constexpr std::string_view kBegin = "rank_", kEnd = ".json";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return std::nullopt;
  int rank = -1;
  const char* const end = name.data() + name.size() - kEnd.size();
  const auto [stop, error] = std::from_chars(name.data() + kBegin.size(), end, rank);
  if (error != std::errc() || stop != end || rank < 0 || last_words_file(rank) != name) return std::nullopt;
  return rank;
}

void require_run_folder(const fs::path& run, const std::string& shown) {
  std::error_code error;
  const fs::file_type type = fs::status(run, error).type();
  std::string wrong;
  if (type == fs::file_type::not_found)
    wrong = "does not exist";
  else if (type == fs::file_type::none)
    wrong = fmt::format("cannot be read ({})", error.message());
  else if (type != fs::file_type::directory)
    wrong = "is not a folder";
  else if (fs::status(run / kResultFile, error).type() == fs::file_type::not_found)
    wrong = "holds no result.json";
  if (wrong.empty()) return;
  throw Error(ExitCode::bad_data, "RUN {}: {}; name the folder of a run, by default one in runs/", shown,
              wrong);
}

LastWords read_words(const fs::path& file, int rank) {
  const auto json = parse_shallow_json(read_whole_file(file, {.remedy = "name a rank_<N>.json"}));
  const std::string origin = fmt::format("file '{}'", printable(file.string()));
  if (!json.is_object())
    throw Error(ExitCode::bad_data, "{} is no JSON object, so no last words of a rank; remove it", origin);
  LastWords words = last_words_from_json(json, origin);
  if (words.rank != rank)
    throw Error(ExitCode::bad_data, "{} has the words of rank {}; give it that rank's name", origin,
                words.rank);
  return words;
}

void require_this_job(const Postmortem& postmortem) {
  const RunRecord& record = postmortem.record;
  for (const LastWords& words : postmortem.words)
    if (words.run_id != record.run_id || words.world_size != record.world_size)
      throw Error(
          ExitCode::bad_data,
          "file '{}/{}' is of another job's rank: run {} of {} ranks, and result.json is run {} of {}; "
          "remove it, or name the folder of its own run",
          postmortem.run, last_words_file(words.rank), printable(words.run_id), words.world_size,
          printable(record.run_id), record.world_size);
}

std::uint64_t entered(const LastWords& words) {
  return words.collectives.empty() ? 0 : words.collectives.back().sequence;
}

std::string place_of_rank(const LastWords& words) {
  std::string place = words.phase.empty() ? "an unknown phase" : printable(words.phase);
  if (words.iteration >= 0) place += fmt::format(", iteration {}", words.iteration);
  if (words.collectives.empty()) return place;
  const LastCollective& last = words.collectives.back();
  return place + fmt::format(", {} {} ({})", last.left_seconds_ago ? "after" : "in", printable(last.name),
                             printable(last.kind));
}

std::vector<std::pair<int, int>> missing_ranks(const Postmortem& postmortem) {
  std::vector<std::pair<int, int>> missing;
  int next = 0;
  for (const LastWords& words : postmortem.words) {
    if (words.rank > next) missing.emplace_back(next, words.rank - 1);
    next = words.rank + 1;
  }
  if (next < postmortem.record.world_size) missing.emplace_back(next, postmortem.record.world_size - 1);
  return missing;
}

std::vector<RankGroup> groups_of(const std::vector<LastWords>& all) {
  std::map<std::string, std::vector<int>> by_place;
  for (const LastWords& words : all) by_place[place_of_rank(words)].push_back(words.rank);
  std::vector<RankGroup> groups;
  for (auto& [place, ranks] : by_place) groups.push_back({std::move(ranks), place});
  std::ranges::stable_sort(groups, {}, [](const RankGroup& group) { return group.ranks.size(); });
  return groups;
}

}  // namespace

Postmortem make_postmortem(const std::string& run, RunRecord record, std::vector<LastWords> words) {
  Postmortem postmortem{.run = run, .record = std::move(record), .words = std::move(words)};
  require_this_job(postmortem);
  std::ranges::sort(postmortem.words, {}, &LastWords::rank);
  postmortem.wordless = missing_ranks(postmortem);
  postmortem.groups = groups_of(postmortem.words);
  if (postmortem.words.empty()) return postmortem;
  const auto first = std::ranges::min_element(postmortem.words, {}, &LastWords::unix_seconds);
  postmortem.first = static_cast<std::size_t>(first - postmortem.words.begin());
  const auto [least, most] = std::ranges::minmax(postmortem.words, {}, entered);
  if (entered(least) < entered(most))
    for (const LastWords& one : postmortem.words)
      if (entered(one) == entered(least)) postmortem.behind.push_back(one.rank);
  return postmortem;
}

Postmortem read_postmortem(const fs::path& run) {
  const std::string shown = printable(run.string());
  require_run_folder(run, shown);
  RunRecord record = read_result_file(run / kResultFile).record;
  if (is_running(run))
    throw Error(ExitCode::bad_data, "run '{}' is still running{}; wait for its end, or end it", shown,
                record.processes.empty()
                    ? ""
                    : fmt::format(", rank 0 on {} as process {}", printable(record.processes.front().host),
                                  record.processes.front().pid));
  std::vector<LastWords> words;
  std::error_code error;
  for (const fs::path& entry : visible_entries(run, error))
    if (const auto rank = rank_of(entry.filename())) words.push_back(read_words(entry, *rank));
  if (error)
    throw Error(ExitCode::bad_data, "folder '{}' can't be listed ({}); allow it to be", shown,
                error.message());
  return make_postmortem(shown, std::move(record), std::move(words));
}

}  // namespace plumb
