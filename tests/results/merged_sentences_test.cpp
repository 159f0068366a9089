#include "results/report/merged_sentences.h"

#include <gtest/gtest.h>

namespace plumb {
namespace {

using Counted = std::vector<std::pair<std::string, std::size_t>>;

Counted merged(const std::vector<std::string>& sentences) {
  MergedSentences merged;
  for (const std::string& sentence : sentences) merged.add(sentence);
  return merged.all();
}

TEST(MergedSentences, HaveTheRangesOfTheirFigures) {
  EXPECT_EQ(merged({"in 100 % of the window, clock 1740 to 1965 of 1980 MHz", "a note",
                    "in 89.5 % of the window, clock 1800 to 1970 of 1980 MHz"}),
            (Counted{{"in 89.5 to 100 % of the window, clock 1740 to 1970 of 1980 MHz", 2}, {"a note", 1}}));
}

TEST(MergedSentences, KeepRanksRunsAndNamesApart) {
  EXPECT_EQ(merged({"rank 1 on node2 waits 3 ms", "rank 2 on node2 waits 3 ms", "rank 1 on node3 waits 3 ms",
                    "rank 1 on node2 waits 5 ms"})
                .size(),
            3U);
}

TEST(MergedSentences, KeepOneSentenceAsItIs) {
  for (const char* sentence : {"", "1.50 s", "4n8g: 2 runs", "from 12:30 to 3"})
    EXPECT_EQ(merged({sentence}), (Counted{{sentence, 1}}));
}

}  // namespace
}  // namespace plumb
