#include "results/postmortem/postmortem.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/paths.h"
#include "base/shallow_json.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "base/whole_file.h"

namespace plumb {
namespace {

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

// "rank_N.json"
bool is_last_words(const std::string& name) {
  const std::size_t digits = std::min(name.find_first_of("0123456789"), name.size());
  int rank = 0;
  std::from_chars(name.data() + digits, name.data() + name.size(), rank);
  return last_words_file(rank) == name;
}

void require_run_folder(const fs::path& run, const std::string& shown) {
  std::error_code error;
  if (!fs::exists(run / kResultFile, error))
    throw Error(ExitCode::bad_data,
                "RUN {}: no result.json can be read in it; pass the folder of a run, by default one in runs/",
                shown);
}

LastWords read_words(const fs::path& file) {
  const auto json = parse_shallow_json(read_whole_file(file, {.remedy = "pass a rank_<N>.json"}));
  return last_words_from_json(json, fmt::format("file '{}'", printable(file.string())));
}

std::uint64_t entered(const LastWords& words) {
  return words.collectives.empty() ? 0 : words.collectives.back().sequence;
}

std::string place_of_rank(const LastWords& words) {
  std::string place = words.phase.empty() ? "an unknown phase" : printable(words.phase);
  if (words.iteration >= 0) place += fmt::format(", iteration {}", words.iteration);
  if (words.collectives.empty()) return place;
  const LastCollective& last = words.collectives.back();
  return place + fmt::format(", {} {}", last.left_seconds_ago ? "after" : "in", printable(last.name));
}

std::vector<RankRange> missing_ranks(const Postmortem& postmortem) {
  std::vector<RankRange> missing;
  int next = 0;
  for (const LastWords& words : postmortem.words) {
    if (words.rank > next) missing.push_back({next, words.rank - 1});
    next = words.rank + 1;
  }
  if (next < postmortem.record.world_size) missing.push_back({next, postmortem.record.world_size - 1});
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

constexpr std::size_t kMostGroups = 4;     // lines of them
constexpr std::size_t kMostNamed = 4;      // ranges of ranks, hosts
constexpr std::size_t kMostLetters = 400;  // of a sentence from a file

// From a file that anybody may have written.
std::string quoted(const std::string& text) {
  return shortened(printable(text), kMostLetters);
}

// "rank 3", "ranks 0, 2-7 and 12 more ranges"
std::string named_ranks(const std::vector<RankRange>& ranges) {
  std::string text;
  for (const auto& [from, to] : std::span(ranges).first(std::min(ranges.size(), kMostNamed)))
    append_part(text, from == to ? std::to_string(from) : fmt::format("{}-{}", from, to));
  if (ranges.size() > kMostNamed) text += fmt::format(" and {} more ranges", ranges.size() - kMostNamed);
  const bool one = ranges.size() == 1 && ranges.front().from == ranges.front().to;
  return (one ? "rank " : "ranks ") + text;
}

// `ranks` ascend.
std::string named_ranks(const std::vector<int>& ranks) {
  std::vector<RankRange> ranges;
  for (const int rank : ranks)
    if (!ranges.empty() && ranges.back().to == rank - 1)
      ranges.back().to = rank;
    else
      ranges.push_back({rank, rank});
  return named_ranks(ranges);
}

const LastWords& words_of(const Postmortem& postmortem, int rank) {
  return *std::ranges::find(postmortem.words, rank, &LastWords::rank);
}

// "n1, n2 and 3 more hosts"
std::string hosts_text(const std::set<std::string>& hosts) {
  std::string text;
  std::size_t named = 0;
  for (const std::string& host : hosts)
    if (named++ < kMostNamed) append_part(text, shortened(printable(host), 64));
  return hosts.size() > kMostNamed ? fmt::format("{} and {} more hosts", text, hosts.size() - kMostNamed)
                                   : text;
}

std::string state_text(const Postmortem& postmortem) {
  const RunRecord& record = postmortem.record;
  if (record.status == "ok")
    return fmt::format("{}: ended well, after {}\n", postmortem.run, counted(record.iterations, "iteration"));
  return fmt::format("{}: {}\n", postmortem.run, quoted(failure_text(record)));
}

std::string kept_text(const RunRecord& record) {
  std::set<std::string> hosts;
  for (const RankProcess& process : record.processes) hosts.insert(process.host);
  std::string text =
      fmt::format("{} {}, {}{}; {} kept", quoted(record.model), quoted(record.precision),
                  counted(record.world_size, "rank"), hosts.empty() ? "" : " on " + hosts_text(hosts),
                  counted(record.step_seconds.size(), "iteration"));
  if (!record.step_seconds.empty()) text += fmt::format(", the last of {:.4g} s", record.step_seconds.back());
  if (!record.loss.empty()) text += fmt::format(", loss {:.4g}", record.loss.back());
  return text + "\n";
}

std::string first_text(const Postmortem& postmortem) {
  if (!postmortem.first) return "";
  const LastWords& first = postmortem.words[*postmortem.first];
  return fmt::format("first to end, by the hosts' clocks: rank {} on {} (process {}), code {}: {}\n",
                     first.rank, shortened(printable(first.host), 64), first.pid, first.exit_code,
                     quoted(first.failure));
}

std::string behind_text(const Postmortem& postmortem) {
  if (postmortem.behind.empty()) return "";
  const LastWords& one = words_of(postmortem, postmortem.behind.front());
  return fmt::format(
      "behind: {}, which had entered {}, the others more\n", named_ranks(postmortem.behind),
      one.collectives.empty() ? "no collective" : counted(one.collectives.back().sequence, "collective"));
}

// "rank 1 on n2: the window, iteration 37, in bucket3 (allreduce) for 31.2 s"
std::string group_text(const Postmortem& postmortem, const RankGroup& group) {
  std::set<std::string> hosts;
  double longest = 0;
  for (const int rank : group.ranks) {
    const LastWords& words = words_of(postmortem, rank);
    hosts.insert(words.host);
    if (!words.collectives.empty() && !words.collectives.back().left_seconds_ago)
      longest = std::max(longest, words.collectives.back().entered_seconds_ago);
  }
  return fmt::format("  {} on {}: {}{}\n", named_ranks(group.ranks), hosts_text(hosts), quoted(group.place),
                     longest > 0 ? fmt::format(" for {:.1f} s", longest) : "");
}

std::string wordless_text(const Postmortem& postmortem) {
  if (postmortem.wordless.empty() || postmortem.record.status == "ok") return "";
  const auto& [rank, last] = postmortem.wordless.front();
  const std::vector<RankProcess>& processes = postmortem.record.processes;
  std::string who = named_ranks(postmortem.wordless);
  if (static_cast<std::size_t>(rank) < processes.size())
    who += fmt::format(" ({}on {} as process {})", rank == last ? "" : fmt::format("rank {} ", rank),
                       shortened(printable(processes[static_cast<std::size_t>(rank)].host), 64),
                       processes[static_cast<std::size_t>(rank)].pid);
  return fmt::format("no words of {}: killed, stuck, its host gone, or kept there as $TMPDIR/{}\n", who,
                     printable(kept_elsewhere(postmortem.record.run_id, rank)));
}

}  // namespace

Postmortem make_postmortem(const std::string& run, RunRecord record, std::vector<LastWords> words) {
  Postmortem postmortem{.run = run, .record = std::move(record), .words = std::move(words)};
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

// The folder itself if it is a run's, else the latest failed run in it.
fs::path run_in(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / kResultFile, error)) return folder;
  fs::path latest = folder;
  fs::file_time_type when = fs::file_time_type::min();
  for (const fs::path& run : visible_entries(folder, error)) {
    const fs::path file = run / kResultFile;
    const fs::file_time_type written = fs::last_write_time(file, error);
    if (error || written < when || read_result_file(file).record.status == "ok") continue;
    latest = run;
    when = written;
  }
  return latest;
}

Postmortem read_postmortem(const fs::path& folder) {
  const fs::path run = run_in(folder);
  const std::string shown = printable(run.string());
  require_run_folder(run, shown);
  RunRecord record = read_result_file(run / kResultFile).record;
  if (is_running(run))
    throw Error(ExitCode::bad_data, "run '{}' still runs{}; wait for its end, or end it", shown,
                record.processes.empty()
                    ? ""
                    : fmt::format(", rank 0 on {} as process {}", printable(record.processes.front().host),
                                  record.processes.front().pid));
  std::vector<LastWords> words;
  std::error_code error;
  for (const fs::path& entry : visible_entries(run, error))
    if (is_last_words(entry.filename())) words.push_back(read_words(entry));
  if (error)
    throw Error(ExitCode::bad_data, "cannot list folder '{}': {}; allow reading it", shown, error.message());
  return make_postmortem(shown, std::move(record), std::move(words));
}

std::string postmortem_text(const Postmortem& postmortem) {
  std::string text = state_text(postmortem) + kept_text(postmortem.record) + first_text(postmortem) +
                     behind_text(postmortem);
  const std::size_t lines = std::min(postmortem.groups.size(), kMostGroups);
  for (std::size_t i = 0; i < lines; ++i) text += group_text(postmortem, postmortem.groups[i]);
  if (lines < postmortem.groups.size())
    text += fmt::format("  and {} more places: --json has them\n", postmortem.groups.size() - lines);
  return text + wordless_text(postmortem);
}

void Postmortem::fields(auto& self, auto&& each) {
  const RunRecord& record = self.record;
  const auto last_words = mapped(self.words, [](const LastWords& words) { return to_json(words); });
  each("run", self.run, Field{"its folder"});
  each("status", record.status, Field{"ok or failed"}), each("failure", record.failure);
  each("world_size", record.world_size), each("iterations", record.iterations);
  each("iterations_kept", record.step_seconds.size());
  each("first_to_end", self.first ? std::optional(self.words[*self.first].rank) : std::nullopt,
       Field{.about = "rank", .null_if_nothing = true});
  each("behind", self.behind, Field{"ranks that had entered the fewest collectives"});
  each("groups", self.groups, Field{"ranks that ended at one place"});
  each("without_words", self.wordless), each("last_words", last_words, Field{"as rank_<N>.json"});
}

const Document kPostmortemDocument = document_of<Postmortem>(
    "plumbline.postmortem/1", "Who was where when a run failed: plumbline postmortem --json.");

Json postmortem_json(const Postmortem& postmortem) {
  return document_json(kPostmortemDocument.name, postmortem);
}

}  // namespace plumb
