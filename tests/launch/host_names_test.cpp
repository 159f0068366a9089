// Lists of hosts, read by launch/host_list.sh, and written as short.
#include "launch/host_names.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/text.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

TEST(HostNames, AreReadInTheirOrder) {
  const auto names = [](const char* list) {
    return fmt::format("{}", fmt::join(read_host_list("", list), " "));
  };
  EXPECT_EQ(names("rack[1-2]n[1-2].lan,login"), "rack1n1.lan rack1n2.lan rack2n1.lan rack2n2.lan login");
  EXPECT_EQ(names("gpu-09..10.lan,x"), "gpu-09.lan gpu-10.lan x");
}

TEST(HostNames, AMistakeIsNamedWithItsRemedy) {
  const auto refusal = [](const std::string& list) {
    try {
      read_host_list("-H", list);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(refusal("n1,n1"), "-H: host n1 is listed twice; list it once");
  EXPECT_EQ(refusal("$(reboot)"), "-H: '$(reboot)' is not a host name; write node[1-4], node1..4 or n1,n2");
  EXPECT_EQ(refusal("@n1"), "-H: '@n1' is not a host name; write node[1-4], node1..4 or n1,n2");
  EXPECT_EQ(refusal("n[4-1]"), "-H: range 4-1 goes down; write 1-4");
}

TEST(HostNames, AreWrittenAsShortAndReadBack) {
  for (const std::string list :
       {"n[1-4,7]", "node[01-03,07]", "a,b,n1", "n[8-10],x[1-2].lan", "n[2,1]", "10.0.0.[1-3]"}) {
    const std::vector<std::string> hosts = read_host_list("", list);
    EXPECT_EQ(host_list_text(hosts), list);
  }
  EXPECT_EQ(host_list_text(std::vector<std::string>{"n1"}), "n1");
  EXPECT_EQ(host_list_text(std::vector<std::string>{"n09", "n10", "n11", "n8"}), "n[09-11,8]");
}

TEST(HostNames, ALongListIsCut) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 1000; ++i) hosts.push_back(fmt::format("host{}", 3 * i));
  const std::string text = short_host_list_text(hosts);
  EXPECT_LT(text.size(), 80u);
  EXPECT_TRUE(text.starts_with("host[0,3,6,") && text.ends_with(" more")) << text;
  EXPECT_EQ(short_host_list_text(read_host_list("", "n[1-1000]")), "n[1-1000]");
}

TEST(HostNames, AHostFileGivesItsHosts) {
  const ScratchFolder folder;
  const auto file = folder / "hosts";
  std::ofstream(file) << "# two\nn1 slots=4\n\nn[2-3]  slots=4 max_slots=8 # more\nn4\n";
  EXPECT_EQ(host_list_text(read_host_file(file)), "n[1-4]");
  for (const char* const text : {"n1 slot=4\n", "n1 slots=\n", "n[2-1]\n", "\n"}) {
    std::ofstream(file) << text;
    EXPECT_THROW(read_host_file(file), Error) << text;
  }
  EXPECT_THROW(read_host_file(folder / "none"), Error);
}

}  // namespace
}  // namespace plumb
