#include "results/postmortem/postmortem.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/unique_fd.h"
#include "tests/results/run_folder.h"

namespace plumb {
namespace {

const std::string kRunId = "0123456789abcdef";

RunRecord failed_run(int ranks) {
  RunRecord record = example_run(100);
  record.status = "failed";
  record.failure = "rank 1 on n2 doesn't answer";
  record.run_id = kRunId;
  record.world_size = ranks;
  for (int rank = 0; rank < ranks; ++rank) record.processes.push_back({rank < 2 ? "n1" : "n2", 100 + rank});
  record.step_seconds.resize(37);
  record.loss.resize(37);
  return record;
}

// In the window's iteration 37, in its 4th collective.
LastWords words_of_rank(int rank, int ranks, std::uint64_t entered = 4) {
  LastWords words{.run_id = kRunId,
                  .rank = rank,
                  .world_size = ranks,
                  .host = "n1",
                  .pid = 100 + rank,
                  .failure = "interrupted by SIGTERM",
                  .exit_code = 143,
                  .phase = "the window",
                  .iteration = 37,
                  .iterations_kept = 37,
                  .last_step_seconds = 0.5,
                  .last_loss = 6.5,
                  .unix_seconds = 1.7e9 + rank,
                  .run_seconds = 20};
  for (std::uint64_t sequence = 1; sequence <= entered; ++sequence)
    words.collectives.push_back(
        {.sequence = sequence,
         .name = "bucket" + std::to_string(sequence),
         .kind = "allreduce",
         .bytes = 1000,
         .entered_seconds_ago = 31.25,
         .left_seconds_ago = sequence < entered ? std::optional(31.0) : std::nullopt});
  return words;
}

void write_words(const ScratchFolder& scratch, const std::string& run, const LastWords& words) {
  scratch.write(run + "/" + last_words_file(words.rank), to_json(words).dump(1) + "\n");
}

std::string why_refused(const std::filesystem::path& run) {
  try {
    read_postmortem(run);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_data);
    return error.what();
  }
  ADD_FAILURE() << "not refused";
  return "";
}

std::size_t line_count(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << word << " in " << text;
}

TEST(Postmortem, NamesTheRankBehindAndTheRankWithoutWords) {
  const ScratchFolder scratch;
  const auto run = write_run_folder(scratch, "run", failed_run(4));
  for (const int rank : {0, 1, 3}) write_words(scratch, "run", words_of_rank(rank, 4, rank == 1 ? 2 : 4));
  const Postmortem postmortem = read_postmortem(run);
  EXPECT_EQ(postmortem.behind, std::vector{1});
  EXPECT_EQ(postmortem.wordless, (std::vector<std::pair<int, int>>{{2, 2}}));
  EXPECT_EQ(postmortem.words.at(*postmortem.first).rank, 0);
  const std::string text = postmortem_text(postmortem);
  expect_words(text,
               {"the run failed: rank 1 on n2 doesn't answer", "37 iterations kept", "loss 7",
                "rank 0 on n1 (process 100)", "code 143", "behind: rank 1, which had entered 2 collectives",
                "rank 1 on n1: the window, iteration 37, in bucket2 (allreduce) for 31.2 s",
                "ranks 0, 3 on n1: the window, iteration 37, in bucket4 (allreduce)",
                "no words of rank 2 (on n2 as process 102)", "plumbline_0123456789abcdef_rank_2.json"});
  EXPECT_LE(line_count(text), 10u);
  const auto json = postmortem_json(postmortem);
  EXPECT_EQ(json.at("behind"), nlohmann::ordered_json({1}));
  EXPECT_EQ(json.at("last_words").size(), 3u);
  EXPECT_EQ(json.at("last_words")[1].at("collectives").size(), 2u);
}

TEST(Postmortem, OfARunThatEndedWellSaysSo) {
  const ScratchFolder scratch;
  const std::string text =
      postmortem_text(read_postmortem(write_run_folder(scratch, "run", example_run(100))));
  expect_words(text, {"ended well, after 120 iterations"});
  EXPECT_EQ(text.find("no words"), std::string::npos) << text;
}

TEST(Postmortem, OfManyRanksKeepsToTenLines) {
  std::vector<LastWords> words;
  for (int rank = 0; rank < 600; rank += 2) {
    words.push_back(words_of_rank(rank, 2000, 1 + static_cast<std::uint64_t>(rank) % 7));
    words.back().host = "host" + std::to_string(rank);
  }
  const std::string text = postmortem_text(make_postmortem("run", failed_run(2000), words));
  EXPECT_LE(line_count(text), 10u) << text;
  EXPECT_LE(text.size(), 4000u);
  expect_words(text, {"and 3 more places"});
}

// Clocks of hosts, losses, times and texts may be anything.
TEST(Postmortem, PrintsNothingThatActsOnATerminal) {
  LastWords words = words_of_rank(1, 2);
  words.host = words.phase = words.failure = "\x1b[2J\nrank 7: forged";
  words.collectives.back().name = "\r\x1b]0;x\x07";
  for (const double stamp : {-1e300, 0.0, 1e300}) {
    words.unix_seconds = stamp;
    RunRecord record = failed_run(2);
    record.failure = record.model = words.host;
    record.processes[0].host = words.host;
    const std::string text = postmortem_text(make_postmortem("run", record, {words}));
    EXPECT_LE(line_count(text), 10u) << text;
    EXPECT_EQ(text.find_first_of("\x1b\r\x07"), std::string::npos) << text;
    EXPECT_EQ(text.find("\nrank 7"), std::string::npos) << text;
  }
}

TEST(Postmortem, OfARunThatIsStillRunningIsRefused) {
  const ScratchFolder scratch;
  const auto run = write_run_folder(scratch, "run", failed_run(2));
  UniqueFd lock(::open(run.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_SH), 0);
  expect_words(why_refused(run), {"still running", "rank 0 on n1 as process 100"});
  lock.reset();
  read_postmortem(run);
}

TEST(Postmortem, RefusesWordsOfAnotherJobsRank) {
  const ScratchFolder scratch;
  const auto run = write_run_folder(scratch, "run", failed_run(2));
  LastWords words = words_of_rank(1, 2);
  words.run_id = "fedcba9876543210";
  write_words(scratch, "run", words);
  expect_words(why_refused(run), {"rank_1.json' is of another job's rank", "fedcba9876543210", kRunId});
  words = words_of_rank(1, 8);
  write_words(scratch, "run", words);
  expect_words(why_refused(run), {"another job's rank", "of 8 ranks"});
}

TEST(Postmortem, RefusesFilesThatAreNoWords) {
  const ScratchFolder scratch;
  const auto run = write_run_folder(scratch, "run", failed_run(2));
  const auto refused = [&](const std::string& text) {
    scratch.write("run/rank_1.json", text);
    return why_refused(run);
  };
  expect_words(refused(""), {"rank_1.json", "no JSON object"});
  expect_words(refused(std::string(100'000, '[')), {"no JSON object"});
  expect_words(refused("{}"), {"rank_1.json", "'schema' is missing"});
  expect_words(refused(to_json(words_of_rank(0, 2)).dump()), {"the words of rank 0"});
  auto json = to_json(words_of_rank(1, 2));
  json["collectives"] = std::vector(65, json["collectives"][0]);
  expect_words(refused(json.dump()), {"'collectives' has more than 64"});
  json = to_json(words_of_rank(1, 2));
  json["unix_seconds"] = nullptr;
  expect_words(refused(json.dump()), {"'unix_seconds' is not a finite number"});
  json = to_json(words_of_rank(1, 2));
  json["world_size"] = 1;
  expect_words(refused(json.dump()), {"'world_size' is not above 'rank'"});
  std::filesystem::remove(run / "rank_1.json");
  ASSERT_EQ(::mkfifo((run / "rank_1.json").c_str(), 0600), 0);
  expect_words(why_refused(run), {"no regular file"});
}

TEST(Postmortem, OtherNamesAreNoWords) {
  const ScratchFolder scratch;
  const auto run = write_run_folder(scratch, "run", failed_run(2));
  for (const char* name : {"rank_.json", "rank_01.json", "rank_-1.json", "rank_1.json.part",
                           "rank_9999999999.json", "rank_1x.json", ".rank_1.json.part"})
    scratch.write(std::string("run/") + name, "nothing");
  EXPECT_TRUE(read_postmortem(run).words.empty());
}

TEST(Postmortem, OfNoRunFolderIsRefused) {
  const ScratchFolder scratch;
  scratch.write("a_file", "");
  for (const auto& [name, wrong] : {std::pair("none", "none: does not exist; name the folder of a run"),
                                    std::pair("a_file", "a_file: is not a folder; name the folder of a run"),
                                    std::pair("", ": holds no result.json; name the folder of a run")})
    expect_words(why_refused(std::filesystem::path(scratch.path()) / name), {"RUN ", wrong});
}

TEST(LastWords, AreReadAsTheyWereWritten) {
  const auto json = to_json(words_of_rank(3, 4));
  EXPECT_EQ(to_json(last_words_from_json(json, "rank_3.json")), json);
}

}  // namespace
}  // namespace plumb
