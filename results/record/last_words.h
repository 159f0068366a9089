// rank_<N>.json: what a rank of a run that failed left in the run's folder about where it was.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "results/record/fields.h"

namespace plumb {

inline constexpr const char* kLastWordsSchema = "plumbline.last_words/1";

// A collective that the rank had entered. Seconds are before the words were written.
struct LastCollective {
  std::uint64_t sequence = 0;  // counts up from 1, alike on all ranks of a job
  std::string name;            // "allreduce_sum bucket3", "message barrier"
  std::uint64_t bytes = 0;     // 0: not known
  double entered_seconds_ago = 0;
  std::optional<double> left_seconds_ago;  // nothing: it was still in it
  static void fields(auto& self, auto&& each) {
    each("sequence", self.sequence, Field{"counts up from 1, alike on all ranks", 1});
    each("name", self.name);
    each("bytes", self.bytes, Field{"0: not known", 0});
    each("entered_seconds_ago", self.entered_seconds_ago, Field{.finite = true});
    each("left_seconds_ago", self.left_seconds_ago, Field{.about = "none: still in it", .finite = true});
  }
};

struct LastWords {
  std::string run_id;  // RunRecord::run_id
  int rank = 0, world_size = 1;
  std::string host;
  std::int64_t pid = 0;
  std::string failure;  // one sentence, as result.json has it
  int exit_code = 0;
  std::string phase;
  std::int64_t iteration = -1;              // the one under way, or the last; -1: before the first
  double unix_seconds = 0;                  // this host's wall clock when the words were written
  std::vector<LastCollective> collectives;  // the last 64 at most, the latest at the end
  static void fields(auto& self, auto&& each);
};

// "rank_3.json"
std::string last_words_file(int rank);
// "plumbline_0123456789abcdef_rank_3.json", in the temporary folder of a host that doesn't have the run's.
std::string kept_elsewhere(const std::string& run_id, int rank);

Json to_json(const LastWords& words);
// Throws Error(bad_data) that names `origin` and what is wrong with it.
LastWords last_words_from_json(const Json& json, const std::string& origin);
extern const Document kLastWordsDocument;

}  // namespace plumb
