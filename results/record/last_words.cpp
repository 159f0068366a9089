#include "results/record/last_words.h"

#include <spdlog/fmt/fmt.h>

namespace plumb {
namespace {

constexpr std::size_t kMostCollectives = 64;
constexpr std::int64_t kMostRanks = 1 << 24;

}  // namespace

std::string last_words_file(int rank) {
  return fmt::format("rank_{}.json", rank);
}

std::string kept_elsewhere(const std::string& run_id, int rank) {
  return fmt::format("plumbline_{}_{}", run_id, last_words_file(rank));
}

void LastWords::fields(auto& self, auto&& each) {
  each("run_id", self.run_id, Field{"as in result.json"});
  each("rank", self.rank, Field{"", 0, kMostRanks - 1}),
      each("world_size", self.world_size, Field{"", 1, kMostRanks});
  each("host", self.host), each("pid", self.pid, Field{"", 0});
  each("failure", self.failure, Field{"one sentence, as in result.json"});
  each("exit_code", self.exit_code, Field{"", 0, 255});
  each("phase", self.phase);
  each("iteration", self.iteration, Field{"under way, or the last; -1: before the first", -1});
  each("unix_seconds", self.unix_seconds, Field{.about = "this host's wall clock now", .finite = true});
  each("collectives", self.collectives, Field{"the last 64, the latest at the end"});
}

Json to_json(const LastWords& words) {
  return document_json(kLastWordsSchema, words);
}

const Document kLastWordsDocument =
    document_of<LastWords>(kLastWordsSchema, "Where a rank of a failed run was.");

LastWords last_words_from_json(const Json& json, const std::string& origin) {
  const ObjectReader reader(json, origin, "", kLastWordsSchema);
  if (const std::string schema = reader.text("schema"); schema != kLastWordsSchema)
    reader.fail("schema", fmt::format("unknown schema '{}'", schema));
  LastWords words;
  fields::read_all(reader, words);
  if (words.rank >= words.world_size) reader.fail("world_size", "expected more than 'rank'");
  if (words.collectives.size() > kMostCollectives)
    reader.fail("collectives", fmt::format("expected at most {} entries", kMostCollectives));
  return words;
}

}  // namespace plumb
