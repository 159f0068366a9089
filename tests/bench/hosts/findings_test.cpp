// Findings about hosts, from made-up answers.
#include "launch/hosts/findings.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace plumb {
namespace {

// `count` hosts n1, n2, … that are alike and well.
std::vector<HostAnswer> well_hosts(int count) {
  std::vector<HostAnswer> answers;
  for (int i = 1; i <= count; ++i) {
    const std::string name = fmt::format("n{}", i), address = fmt::format("10.0.{}.{}", i / 250, i % 250 + 1);
    HostAnswer answer{.name = name, .answered = true, .seconds = 0.1, .clock = ClockOffset{0.001, 0.002}};
    answer.addresses = {address};
    HostFacts& facts = answer.facts;
    facts.host = name;
    facts.boot_id = "boot" + name;
    facts.cpu = "EPYC";
    facts.cpus = 64;
    facts.memory_bytes = 512e9;
    facts.interfaces = "eth0";
    facts.program = {.path = "/opt/bench_resnet50",
                     .version = "0.1.0",
                     .commit = "abc",
                     .build_id = "1234567890abcdef",
                     .libraries = {{"MPI", "Open MPI v4.1.4"}, {"CUDA", "13.0"}}};
    facts.mpi = {.mpirun = "/usr/bin/mpirun", .version = "4.1.4", .daemon = "/usr/bin/orted"};
    facts.driver = "580.00";
    facts.driver_cuda = "13.0";
    facts.gpus.assign(8, {.name = "H100", .memory_bytes = 80e9, .ecc = "on"});
    facts.limits = {{"open files", 65536}, {"locked memory", -1}};
    facts.shared_memory_bytes = facts.shared_memory_free_bytes = 64e9;
    facts.log_folder = {
        .path = "/logs", .existing = "/logs", .file_system = "nfs4", .free_bytes = 1e12, .writable = true};
    facts.addresses = {"eth0=" + address + "/16"};
    answers.push_back(std::move(answer));
  }
  return answers;
}

// The findings as lines without the remedies' counts.
std::string text_of(const std::vector<HostAnswer>& answers, const DoctorContext& context = {}) {
  return doctor_text(answers, find_faults(answers, context), 0.5);
}

void expect_one(const std::vector<HostAnswer>& answers, const std::string& begin, int exit_code) {
  const std::vector<Finding> findings = find_faults(answers);
  EXPECT_EQ(findings.size(), 1u) << text_of(answers);
  EXPECT_EQ(text_of(answers).substr(0, begin.size()), begin) << text_of(answers);
  EXPECT_EQ(static_cast<int>(doctor_exit_code(findings)), exit_code);
}

TEST(Doctor, HostsThatAreAlikeAndWellHaveNoFindings) {
  EXPECT_EQ(text_of(well_hosts(4)), "4 hosts answered in 0.5 s: all well\n");
  EXPECT_EQ(doctor_exit_code(find_faults(well_hosts(4))), ExitCode::ok);
}

TEST(Doctor, TheOddOneIsNamedAgainstTheMajority) {
  std::vector<HostAnswer> answers = well_hosts(4);
  answers[2].facts.program.build_id = "fedcba0987654321";
  expect_one(
      answers,
      "error    n3: build fedcba098765 (0.1.0, commit abc) where most hosts have 1234567890ab (0.1.0, commit "
      "abc): copy the same package",
      69);
  answers = well_hosts(2);
  answers[1].facts.program.libraries["MPI"] = "none";
  answers[1].facts.cpus = 32;
  EXPECT_NE(text_of(answers).find("warning  n2: number of CPUs 32 where n1 has 64"), std::string::npos);
  EXPECT_NE(text_of(answers).find("warning  n2: library MPI none where n1 has Open MPI v4.1.4"),
            std::string::npos);
}

TEST(Doctor, WithoutAMajorityAllAreNamed) {
  std::vector<HostAnswer> answers = well_hosts(4);
  for (int i = 0; i < 4; ++i) answers[static_cast<std::size_t>(i)].facts.driver = i < 2 ? "580.00" : "550.00";
  expect_one(answers,
             "warning  n[1-4]: NVIDIA driver: 2 different ones, 550.00 on n[3-4]; 580.00 on n[1-2]: ", 1);
}

TEST(Doctor, AThousandHostsWithOneFindingShareALine) {
  std::vector<HostAnswer> answers = well_hosts(1000);
  for (HostAnswer& answer : answers) answer.facts.mpi.daemon.clear();
  expect_one(answers, "warning  n[1-1000]: Open MPI's orted or prted is not in PATH", 1);
  for (std::size_t i = 0; i < answers.size(); ++i)
    answers[i].facts.log_folder.free_bytes = 1e6 * static_cast<double>(i);
  EXPECT_EQ(find_faults(answers).size(), 2u) << "amounts differ, the finding doesn't";
}

TEST(Doctor, AHostThatDoesntAnswerIsNamedAndOthersAreStillJudged) {
  std::vector<HostAnswer> answers = well_hosts(3);
  answers[1] = {.name = "n2",
                .failure = "can't be reached",
                .failure_detail = "No route to host",
                .remedy = "check it"};
  answers[2].facts.load = 60;
  const std::string text = text_of(answers);
  EXPECT_EQ(
      text,
      "error    n2: can't be reached (No route to host): check it\n"
      "warning  n3: other programs keep it busy (load 60.0 on 64 CPUs): end them or wait: steps would take "
      "longer and vary\n"
      "3 hosts, 2 answered in 0.5 s: 1 error, 1 warning\n");
  EXPECT_EQ(doctor_exit_code(find_faults(answers)), ExitCode::unavailable);
}

TEST(Doctor, AProgramThatIsMissingIsAnError) {
  std::vector<HostAnswer> answers = well_hosts(3);
  answers[1].facts.program = {.path = "/opt/bench_resnet50", .failure = "No such file or directory"};
  expect_one(answers, "error    n2: /opt/bench_resnet50 doesn't start (No such file or directory): copy", 69);
}

TEST(Doctor, GpusThatAreBusyFaultyOrHeldDownAreNamed) {
  const auto with = [](const auto& change) {
    std::vector<HostAnswer> answers = well_hosts(3);
    change(answers[0].facts.gpus[5]);
    return answers;
  };
  expect_one(with([](GpuFacts& gpu) { gpu.processes = 1, gpu.used_bytes = 8 * double(1 << 30); }),
             "warning  n1: a GPU is in use (GPU 5: 1 process, 8.0 GiB of memory): ", 1);
  expect_one(with([](GpuFacts& gpu) { gpu.uncorrected_errors = 3; }),
             "warning  n1: a GPU's memory has had errors", 1);
  expect_one(with([](GpuFacts& gpu) { gpu.rows_wait_for_reset = true; }),
             "warning  n1: a GPU waits for a reset", 1);
  expect_one(with([](GpuFacts& gpu) { gpu.rows_ran_out = true; }),
             "warning  n1: a GPU has no spare memory rows", 1);
  expect_one(with([](GpuFacts& gpu) { gpu.mig = "on"; }), "warning  n1: a GPU is split up by MIG (GPU 5)", 1);
  expect_one(with([](GpuFacts& gpu) {
               gpu.throttled = true;
               gpu.clock_reasons = {"thermal"};
               gpu.sm_clock_mhz = 600;
               gpu.temperature_celsius = 90;
             }),
             "warning  n1: a GPU's clocks are held down before the run (GPU 5: thermal, 600 MHz, 90 C): ", 1);
  std::vector<HostAnswer> answers = well_hosts(3);
  answers[2].facts.gpus.pop_back();
  expect_one(answers, "warning  n3: GPUs 7 x H100 where most hosts have 8 x H100: ", 1);
}

TEST(Doctor, AnOldDriverIsAnErrorAndANewerOneIsNot) {
  std::vector<HostAnswer> answers = well_hosts(3);
  for (HostAnswer& answer : answers) answer.facts.driver_cuda = "12.8";
  expect_one(answers,
             "error    n[1-3]: the driver runs CUDA 12.8 and the program wants 13.0 (driver 580.00): ", 69);
  for (HostAnswer& answer : answers) answer.facts.program.libraries["CUDA"] = "12.9";
  EXPECT_TRUE(find_faults(answers).empty()) << "minor versions of one major version fit";
}

TEST(Doctor, ClocksAreHeldAgainstTheMedianBeyondTheirUncertainty) {
  std::vector<HostAnswer> answers = well_hosts(4);
  for (HostAnswer& answer : answers)
    answer.clock = ClockOffset{100, 0.01};  // the host that asks is the odd one
  EXPECT_TRUE(find_faults(answers).empty());
  answers[3].clock = ClockOffset{97, 0.01};
  expect_one(answers, "warning  n4: clock is behind most hosts' (3.000 s, give or take 0.010 s): ", 1);
  answers[3].clock = ClockOffset{97, 2.9};
  EXPECT_TRUE(find_faults(answers).empty()) << "the difference lies within the round trip";
  answers.resize(1);
  expect_one(answers, "warning  n1: clock is ahead of that of the host that asks (100.000 s", 1);
}

TEST(Doctor, NamesMustLeadEverybodyToTheHost) {
  std::vector<HostAnswer> answers = well_hosts(3);
  answers[0].facts.names = {{"n1", {"127.0.1.1"}}, {"n2", {"10.0.0.3"}}};
  expect_one(answers,
             "warning  n1: resolves its own name to a loopback address, which others can't reach (127.0.1.1)",
             1);
  answers[0].facts.names = {{"n2", {"10.0.9.9"}}};
  expect_one(answers, "warning  n1: resolves n2 to 10.0.9.9, the host that asks to 10.0.0.3: ", 1);
  answers[0].facts.names = {{"n2", {}}};
  expect_one(answers, "warning  n1: has no address for n2: add it to DNS", 1);
  answers[0].facts.names.clear();
  answers[0].addresses = std::vector<std::string>{};
  expect_one(answers, "warning  n1: its name has no address here", 1);
  answers[0].addresses = {"10.0.7.7"};
  expect_one(
      answers,
      "warning  n1: its name leads to an address that it doesn't have itself (10.0.7.7, it has 10.0.0.2)", 1);
}

TEST(Doctor, TwoNamesOfOneHostAreNamed) {
  std::vector<HostAnswer> answers = well_hosts(3);
  answers[2].facts.boot_id = answers[0].facts.boot_id;
  EXPECT_TRUE(find_faults(answers).empty()) << "containers of one machine have names of their own";
  answers[2].facts.host = answers[0].facts.host;
  expect_one(answers, "warning  n3: is the same host as n1: name each host once", 1);
}

TEST(Doctor, LimitsMemoryAndDiskAreWatched) {
  const auto with = [](const auto& change) {
    std::vector<HostAnswer> answers = well_hosts(3);
    for (HostAnswer& answer : answers) change(answer.facts);
    return answers;
  };
  expect_one(with([](HostFacts& facts) { facts.shared_memory_free_bytes = 64 << 20; }),
             "warning  n[1-3]: /dev/shm has less than 512 MiB left for ranks' messages (64 of ", 1);
  expect_one(with([](HostFacts& facts) { facts.limits["open files"] = 256; }),
             "warning  n[1-3]: few files may be open", 1);
  const auto with_port = [](HostFacts& facts) {
    facts.ports = {{"mlx5_0:1", "ACTIVE", "400 Gb/sec", "InfiniBand"}};
  };
  EXPECT_TRUE(find_faults(with(with_port)).empty());
  expect_one(with([&](HostFacts& facts) { with_port(facts), facts.limits["locked memory"] = 8 << 20; }),
             "warning  n[1-3]: locked memory is limited, and InfiniBand locks what it sends (8 MiB): ", 1);
  expect_one(with([&](HostFacts& facts) { with_port(facts), facts.ports[0].state = "DOWN"; }),
             "warning  n[1-3]: no InfiniBand or RoCE port is active (mlx5_0:1): ", 1);
  expect_one(with([](HostFacts& facts) { facts.log_folder.free_bytes = 1 << 29; }),
             "warning  n[1-3]: little space is left for /logs (0.50 GiB): ", 1);
  expect_one(with([](HostFacts& facts) { facts.log_folder.writable = false; }),
             "warning  n[1-3]: /logs can't be written: ", 1);
  std::vector<HostAnswer> answers = well_hosts(3);
  answers[1].facts.memory_bytes = 400e9;
  expect_one(answers, "warning  n2: memory differs from the median of the hosts, 476.8 GiB (372.5 GiB): ", 1);
}

TEST(Doctor, ALogFolderThatSomeShareIsAWarningAndOneThatNobodySharesANote) {
  std::vector<HostAnswer> answers = well_hosts(3);
  answers[0].facts.log_folder.has_marker = true;
  std::vector<Finding> findings = find_faults(answers, {.has_marker = true});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].severity, Severity::note);
  EXPECT_EQ(findings[0].hosts, (std::vector<std::string>{"n2", "n3"}));
  EXPECT_EQ(doctor_exit_code(findings), ExitCode::ok);
  answers[1].facts.log_folder.has_marker = true;
  findings = find_faults(answers, {.has_marker = true});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].severity, Severity::warning);
  EXPECT_EQ(findings[0].hosts, std::vector<std::string>{"n3"});
}

TEST(Doctor, JsonHasFindingsAndFacts) {
  std::vector<HostAnswer> answers = well_hosts(2);
  answers[1].facts.cpu = "Xeon";
  const auto json = doctor_json(answers, find_faults(answers), 0.5);
  EXPECT_EQ(json.at("exit_code"), 1);
  EXPECT_EQ(json.at("findings").at(0).at("severity"), "warning");
  EXPECT_EQ(json.at("findings").at(0).at("hosts"), nlohmann::ordered_json({"n2"}));
  EXPECT_EQ(json.at("hosts").at(1).at("facts").at("cpu"), "Xeon");
  EXPECT_EQ(json.at("hosts").at(1).at("clock_offset_seconds"), 0.001);
}

TEST(Doctor, TextOfAnotherHostCantDriveTheTerminal) {
  std::vector<HostAnswer> answers = well_hosts(3);
  answers[1].facts.cpu = "\x1b[2J";
  EXPECT_EQ(text_of(answers).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace plumb
