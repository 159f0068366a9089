// rank_<N>.json, as plumbline postmortem reads it.
#include <algorithm>

#include "results/postmortem/postmortem.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

FUZZ_TARGET(last_words) {
  const auto json = json_of(data, size);
  refuse_or([&] {
    const LastWords words = last_words_from_json(json, "rank_0.json");
    RunRecord record;
    record.run_id = words.run_id;
    record.world_size = words.world_size;
    const Postmortem postmortem = make_postmortem("run", record, {words});
    const std::string text = postmortem_text(postmortem);
    require(std::ranges::count(text, '\n') <= 10, "a postmortem is longer than ten lines");
    postmortem_json(postmortem);
  });
  return 0;
}
