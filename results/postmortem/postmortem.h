// Who was where when a run failed: its result.json, and the last words that its ranks left beside it.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "results/record/last_words.h"
#include "results/record/schema.h"

namespace plumb {

struct RankRange {
  int from = 0, to = 0;
  static void fields(auto& self, auto&& each) { each("from", self.from), each("to", self.to); }
};

// Ranks that ended at one place: phase, iteration and collective are the same.
struct RankGroup {
  std::vector<int> ranks;
  std::string place;  // "the window, iteration 37, in bucket3 (allreduce)"
  static void fields(auto& self, auto&& each) { each("ranks", self.ranks), each("place", self.place); }
};

struct Postmortem {
  std::string run;  // the folder, for messages
  RunRecord record;
  std::vector<LastWords> words;     // by rank
  std::vector<RankRange> wordless;  // ranks that left none
  // The words written first, by the hosts' own clocks, in `words`; nothing without words.
  std::optional<std::size_t> first;
  // The ranks that had entered the fewest collectives, unless all had entered equally many.
  std::vector<int> behind;
  std::vector<RankGroup> groups;  // the smallest first: the odd ones
  static void fields(auto& self, auto&& each);
};

// Reads a run's folder, or that of the latest failed run in a folder of runs. Throws Error(bad_data) that
// names the file and what is wrong: no result.json, a run that is still running (its process holds the
// folder's lock), a file that Plumbline did not write.
Postmortem read_postmortem(const std::filesystem::path& folder);
// The same for what was read.
Postmortem make_postmortem(const std::string& run, RunRecord record, std::vector<LastWords> words);

// At most ten lines, whatever the files say and however many ranks there were.
std::string postmortem_text(const Postmortem& postmortem);
Json postmortem_json(const Postmortem& postmortem);
extern const Document kPostmortemDocument;

}  // namespace plumb
