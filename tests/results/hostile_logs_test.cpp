// Randomly damaged logs: truncated, repeated, swapped and overwritten. No reader may crash, and no damaged
// log may yield another speed than the whole one.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "results/formats/dialect.h"
#include "tests/results/dialect_sets.h"
#include "tests/results/synthetic_log.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t limit) {
  return random() % limit;
}

// Pieces of every dialect's lines, at random positions in its example logs.
class HostileLogsOf : public testing::TestWithParam<const Dialect*> {};
INSTANTIATE_TEST_SUITE_P(Dialects, HostileLogsOf, testing::ValuesIn(dialects().begin(), dialects().end()),
                         [](const auto& dialect) { return std::string(dialect.param->name); });

TEST_P(HostileLogsOf, NeverCrashAReaderNorGiveANumberThatIsNone) {
  const std::vector<std::string> tokens{" Epoch[0] Batch ",
                                        "elapse -1 sec",
                                        "train batch ",
                                        "2025-13-45 99:99:99,999",
                                        "[0-0]",
                                        "[",
                                        "-",
                                        " imgs_per_sec ",
                                        " imgs_per_sec : ",
                                        "(0, ",
                                        "Iteration: ",
                                        "  train.loss :",
                                        "Epoch: [0][",
                                        "Epoch: ",
                                        "][",
                                        "Time ",
                                        "TimeHistory",
                                        ", 1.2 examples/second ",
                                        "between steps ",
                                        " and ",
                                        "I0000 99:99:99.9",
                                        "epoch: ",
                                        "step: ",
                                        "epoch time: ",
                                        " ms",
                                        "train: epoch 0, iter ",
                                        "num_nodes = 0",
                                        "gpu_num_per_node = ",
                                        "DLL 0000-00-00 00:00:00.0",
                                        " qps:",
                                        "Rank:Total:",
                                        "1e999",
                                        "nan",
                                        "-1",
                                        "99999999999999999999",
                                        "0",
                                        "\r",
                                        "\n",
                                        std::string(1, '\0'),
                                        "\xff",
                                        std::string(70000, '7')};
  const ScratchFolder folder;
  Random random(20250104);
  std::vector<std::string> logs;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kDialectData / set_of(*GetParam())))
    if (entry.is_regular_file()) logs.push_back(file_text(entry.path()));
  for (int round = 0; round < 30; ++round) {
    std::string text = logs[below(random, logs.size())];
    for (std::size_t i = below(random, 4) + 1; i > 0; --i) {
      if (random() % 2) text.insert(below(random, text.size()), tokens[below(random, tokens.size())]);
      if (random() % 2) text.erase(below(random, text.size()), below(random, 200));
      if (random() % 4 == 0) text[below(random, text.size())] = static_cast<char>(random());
    }
    const auto file = folder.write("a.log", text);
    recognise_dialect(file);
    for (const Dialect* dialect : dialects()) {
      const RunSize size{.images_per_step = 256, .nodes = 2, .devices_per_node = 2};
      const LogReading log = read_log(*dialect, file, dialect->default_window, size);
      EXPECT_TRUE(log.defect || (std::isfinite(log.images_per_second) && log.images_per_second >= 0));
    }
  }
}

TEST(HostileLogs, AreNeverShortAndAccepted) {
  const ScratchFolder folder;
  const std::string whole = log_text({.iterations = 12});
  const Window window{.iterations = 12, .warmup = 3};
  const std::size_t last_line = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t size = 0; size < last_line; size += 37) {
    const auto file = folder.write("a.log", whole.substr(0, size));
    for (const Dialect* dialect : dialects())
      EXPECT_TRUE(read_log(*dialect, file, window, {.images_per_step = 128}).defect) << size;
  }
}

TEST(HostileLogs, OfManyMegabytesWithoutALineEndAreRefused) {
  const ScratchFolder folder;
  const auto file = folder.write("a.log", std::string(8 << 20, '\0'));
  const LogReading log = read_log(kPaddleSpeed, file, {}, {.images_per_step = 128});
  ASSERT_TRUE(log.defect);
  EXPECT_EQ(log.defect->flaw, Flaw::unreadable);
}

}  // namespace
}  // namespace plumb
