// A failure on one rank ends the whole job with its exit code and leaves no process.
#include <gtest/gtest.h>

#include <thread>

#include "tests/bench/image_files.h"
#include "tests/faults/started_program.h"

namespace plumb {
namespace {

// The job exited with `code`; its last line is rank 1's sentence with all `words`.
void expect_ended_by_rank_1(StartedProgram& program, int code, const std::vector<std::string>& words) {
  const Ended ended = program.wait();
  EXPECT_EQ(ended.exit_code, code) << ended.launcher_messages;
  ASSERT_FALSE(ended.lines.empty());
  EXPECT_LE(ended.lines.size(), 4u);
  const std::string& sentence = ended.lines.back();
  EXPECT_TRUE(sentence.starts_with("bench_arcface: rank 1 on ")) << sentence;
  for (const std::string& word : words) EXPECT_NE(sentence.find(word), std::string::npos) << sentence;
  EXPECT_TRUE(program.processes().empty()) << "a process is left";
}

TEST(LoneFailure, ErrorOfRank1) {
  const Place place;
  StartedProgram program =
      place.start(Place::mpirun(2, place.damaged(kSmall + "--iters 50")), "PLUMB_DAMAGE=error");
  expect_ended_by_rank_1(program, kIoError, {"images/1.jpg"});
  expect_no_score(place, "ended the job with exit code 74, in the window");
  EXPECT_NE(read_text(place.file(place.contents_ending_in("/rank_1.json").at(0))).find("images/1.jpg"),
            std::string::npos);
}

TEST(LoneFailure, DefectOfRank1) {
  const Place place;
  StartedProgram program =
      place.start(Place::mpirun(2, place.damaged(kSmall + "--iters 50")), "PLUMB_DAMAGE=defect");
  expect_ended_by_rank_1(program, kInternal, {"internal error", "nobody thought of"});
  expect_no_score(place, "rank 1 on ");
}

TEST(LoneFailure, ImagesOfRank1BreakInMidRun) {
  namespace fs = std::filesystem;
  const Place place;
  // The same path is a different folder on each rank, as with per-host disks.
  for (const char* host : {"host0", "host1"}) {
    fs::create_directory(place.file(host));
    write_image_folder(place.file(std::string(host) + "/images"), 2, 100);
  }
  const std::string bench = place.bench(kSmall + "--iters 500 --data images --data-workers 1 ");
  const std::string mpirun = Place::mpirun(1, "-wdir " + place.file("host0") + " " + bench);
  StartedProgram program = place.start(mpirun + " : -np 1 -wdir " + place.file("host1") + " " + bench);
  while (program.running() && read_text(place.file("host0/logs/1n2g/y1_b2_fp32_1.log.part")).empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (const auto& entry : fs::recursive_directory_iterator(place.file("host1/images")))
    if (entry.is_regular_file()) fs::resize_file(entry.path(), 1);
  expect_ended_by_rank_1(program, kBadData, {"--data images", "corrupt"});
  expect_no_score(place);
  const std::vector<std::string> parts = place.contents_ending_in(".log.part");
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_GT(expect_whole_lines(place.file(parts.front())), 0);
}

}  // namespace
}  // namespace plumb
