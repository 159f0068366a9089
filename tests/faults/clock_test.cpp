// R13: durations and the order of log lines hold while somebody sets the wall clock.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <time.h>

#include <sstream>
#include <string>

#include "tests/faults/started_program.h"

namespace plumb {
namespace {

constexpr double kLongest = 600;  // seconds: far more than the run takes, far less than a jump

// Of "2026-11-23 08:40:51,596-INFO: …", since 1970.
double stamp_of(const std::string& line) {
  tm parts{};
  const char* const rest = ::strptime(line.c_str(), "%Y-%m-%d %H:%M:%S", &parts);
  return rest == nullptr ? 0 : static_cast<double>(::timegm(&parts)) + std::stod(std::string(rest + 1)) / 1e3;
}

// The one preloaded below: two looks are a day apart.
TEST(Clock, JumpsWhereItIsMadeTo) {
  void* const library = ::dlopen(PLUMB_JUMPING_CLOCK, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto look = reinterpret_cast<int (*)(clockid_t, timespec*)>(::dlsym(library, "clock_gettime"));
  timespec first{}, second{};
  ASSERT_EQ(look(CLOCK_REALTIME, &first), 0);
  ASSERT_EQ(look(CLOCK_REALTIME, &second), 0);
  EXPECT_NEAR(static_cast<double>(second.tv_sec - first.tv_sec), 86'400, 100);
}

TEST(Clock, MayJumpWithoutAnEffectOnDurationsStampsAndAlarms) {
  const Place place;
  const Ended ended = place.run(Place::mpirun(
      2, "-x LD_PRELOAD='" PLUMB_JUMPING_CLOCK "' " + place.bench(kSmall + "--lr 0.001 --iters 8")));
  ASSERT_EQ(ended.exit_code, 0) << testing::PrintToString(ended.lines) << ended.launcher_messages;
  const nlohmann::ordered_json result = place.result();
  double sum = 0;
  for (const double seconds : result.at("step_seconds")) {
    EXPECT_GT(seconds, 0);
    sum += seconds;
  }
  EXPECT_LT(sum, kLongest);
  EXPECT_GT(result.at("images_per_second").at("mean"), 0);
  for (const double seconds : result.at("rank_window_seconds")) {
    EXPECT_GT(seconds, 0);
    EXPECT_LT(seconds, kLongest);
  }
  const std::vector<std::string> logs = place.contents_ending_in(".log");
  ASSERT_EQ(logs.size(), 1u);
  std::istringstream lines(read_text(place.file(logs.front())));
  std::string line;
  std::getline(lines, line);
  const double first = stamp_of(line);
  double last = first;
  EXPECT_GT(first, 0);
  while (std::getline(lines, line)) {
    EXPECT_GE(stamp_of(line), last) << line;
    last = stamp_of(line);
  }
  EXPECT_LT(last - first, kLongest);
}

}  // namespace
}  // namespace plumb
