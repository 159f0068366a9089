// Which devices plumbline screen calls slow, and what it says of them.
#include "launch/hosts/screening.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "bench/output/summary.h"

namespace plumb {
namespace {

struct Speeds {
  double alone, together;
};

// One device of a kind on each of hosts n1, n2, …
std::vector<ScreenedDevice> devices_with(const std::vector<Speeds>& speeds) {
  std::vector<ScreenedDevice> devices;
  for (const Speeds& speed : speeds)
    devices.push_back({.host = fmt::format("n{}", devices.size() + 1),
                       .gpu = fmt::format("GPU-{}", devices.size()),
                       .index = 0,
                       .name = "H100",
                       .alone = ScreenRun{speed.alone, 1980, 60, ""},
                       .together = ScreenRun{speed.together, 1900, 70, ""}});
  return devices;
}

ScreenReport judged(std::vector<ScreenedDevice> devices) {
  std::vector<std::string> hosts;
  for (std::size_t i = 1; i <= devices.size(); ++i) hosts.push_back(fmt::format("n{}", i));
  return judge_devices(hosts, std::move(devices));
}

TEST(Screen, ASlowDeviceIsNamedWithItsClocksAndLeftOut) {
  std::vector<ScreenedDevice> devices = devices_with({{100, 99}, {101, 98}, {80, 79}, {99, 97}});
  devices[2].alone = ScreenRun{80, 1200, 88, "thermal 83 %"};
  const ScreenReport report = judged(devices);
  EXPECT_EQ(screen_exit_code(report), ExitCode::regression);
  EXPECT_EQ(report.excluded, std::vector<std::string>{"n3"});
  const std::string text = screen_text(report);
  EXPECT_NE(
      text.find("n3 GPU 0 is slow: alone 80.0 images/s, 19.6 % below the median of its kind (1200 MHz, 88 C, "
                "thermal 83 %)\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("  mpirun -H n1,n2,n4\n  srun, sbatch --exclude=n3\n"), std::string::npos) << text;
  EXPECT_EQ(report.devices.front().host, "n2") << "fastest first";
}

TEST(Screen, DevicesThatVaryAlikeAreNotCalledSlow) {
  for (const std::vector<Speeds>& speeds :
       {std::vector<Speeds>{{100, 99}, {104, 98}, {96, 94}},
        std::vector<Speeds>{{100, 100}, {120, 115}, {80, 85}, {110, 105}, {88, 90}}}) {
    const ScreenReport report = judged(devices_with(speeds));
    EXPECT_TRUE(report.slow.empty()) << screen_text(report);
    EXPECT_EQ(screen_exit_code(report), ExitCode::ok);
    EXPECT_EQ(screen_text(report).find("leave out"), std::string::npos);
  }
}

// 4.9 % less throughput is 5.2 % more time.
TEST(Screen, TimePerImageDecidesNotThroughput) {
  EXPECT_EQ(judged(devices_with({{100, 100}, {100, 100}, {95.1, 100}})).excluded,
            std::vector<std::string>{"n3"});
  EXPECT_TRUE(judged(devices_with({{100, 100}, {100, 100}, {95.3, 100}})).slow.empty());
}

// Devices of a busy machine.
TEST(Screen, ASlowDeviceIsNamedAmongDevicesThatVaryByAFifth) {
  const ScreenReport report = judged(devices_with({{10.2, 11.0}, {14.2, 13.7}, {3.7, 5.9}, {15.2, 11.0}}));
  EXPECT_EQ(report.excluded, std::vector<std::string>{"n3"}) << screen_text(report);
}

TEST(Screen, TwoDevicesCantTellWhichOneIsOdd) {
  const ScreenReport report = judged(devices_with({{100, 99}, {50, 49}}));
  EXPECT_TRUE(report.slow.empty());
  EXPECT_NE(screen_text(report).find("fewer than three devices of a kind"), std::string::npos);
}

TEST(Screen, ADeviceThatIsSlowOnlyBesideOthersIsNamedToo) {
  const ScreenReport report = judged(devices_with({{100, 99}, {101, 98}, {100, 70}, {99, 97}}));
  ASSERT_EQ(report.slow.size(), 1u);
  EXPECT_FALSE(report.slow[0].alone);
  EXPECT_NE(screen_text(report).find("n3 GPU 0 is slow: with all others at work 70.0 images/s"),
            std::string::npos);
}

TEST(Screen, KindsOfDevicesAreJudgedApart) {
  std::vector<ScreenedDevice> devices =
      devices_with({{100, 99}, {101, 98}, {99, 97}, {50, 49}, {51, 50}, {49, 48}});
  for (std::size_t i = 3; i < 6; ++i) devices[i].name = "A100";
  EXPECT_TRUE(judged(devices).slow.empty());
}

TEST(Screen, AHostWithoutAResultIsLeftOutAndNamed) {
  std::vector<ScreenedDevice> devices = devices_with({{100, 99}, {101, 98}, {99, 97}});
  devices[1].together.reset();
  devices[1].failure = "out of memory";
  devices.push_back({.host = "n4", .failure = "can't be reached"});
  const ScreenReport report = judged(devices);
  EXPECT_EQ(screen_exit_code(report), ExitCode::unavailable);
  EXPECT_EQ(report.excluded, (std::vector<std::string>{"n2", "n4"}));
  const std::string text = screen_text(report);
  EXPECT_NE(text.find("n4 has no result: can't be reached\n"), std::string::npos) << text;
  EXPECT_NE(text.find("--exclude=n[2,4]\n"), std::string::npos) << text;
}

TEST(Screen, JsonHasTheSameListReadyForUse) {
  const auto json = screen_json(judged(devices_with({{100, 99}, {101, 98}, {80, 79}, {99, 97}})));
  EXPECT_EQ(json.at("exit_code"), 1);
  EXPECT_EQ(json.at("mpirun_hosts"), "n1,n2,n4");
  EXPECT_EQ(json.at("slurm_exclude"), "n3");
  EXPECT_EQ(json.at("slow").at(0).at("when"), "alone");
  EXPECT_EQ(json.at("devices").at(0).at("alone").at("images_per_second"), 101);
}

}  // namespace
}  // namespace plumb
