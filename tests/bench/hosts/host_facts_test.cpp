// Facts of a host: what is read from the system, and what comes back out of JSON.
#include "launch/hosts/host_facts.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/machine/nvml.h"
#include "launch/hosts/ask_hosts.h"
#include "launch/hosts/findings.h"
#include "launch/hosts/name_lookup.h"
#include "tests/bench/expect_error.h"
#include "tests/bench/run/fake_nvml.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

TEST(HostFacts, AdapterPortsAreReadAsTheKernelShowsThem) {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder / "mlx5_0/ports/1");
  std::filesystem::create_directories(folder / "mlx5_1/ports/1");
  folder.write("mlx5_0/ports/1/state", "4: ACTIVE\n");
  folder.write("mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  folder.write("mlx5_0/ports/1/link_layer", "InfiniBand\n");
  std::filesystem::create_directories(folder / "mlx5_0/ports/1/counters");
  folder.write("mlx5_0/ports/1/counters/link_downed", "12\n");
  folder.write("mlx5_0/ports/1/counters/symbol_error", "N/A (no PMA)\n");
  folder.write("mlx5_1/ports/1/state", "1: DOWN\n");
  const std::vector<PortFacts> ports = adapter_ports(folder.path());
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(ports[0].name, "mlx5_0:1");
  EXPECT_EQ(ports[0].state, "ACTIVE");
  EXPECT_EQ(ports[0].rate, "400 Gb/sec (4X NDR)");
  EXPECT_EQ(ports[0].link_layer, "InfiniBand");
  EXPECT_EQ(ports[0].counters, (std::map<std::string, std::int64_t>{{"link_downed", 12}}));
  EXPECT_EQ(ports[1].state, "DOWN");
  EXPECT_TRUE(adapter_ports(folder.path() + "/none").empty());
}

TEST(HostFacts, ThisHostsFactsComeBackOutOfJson) {
  const ScratchFolder folder;
  const HostFacts facts = gather_host_facts({.program = "/no/such/program",
                                             .log_folder = folder.path() + "/a/b",
                                             .names = {"localhost", "no-such-host.invalid"}},
                                            SignalWatch());
  EXPECT_FALSE(facts.host.empty());
  EXPECT_GT(facts.cpus, 0);
  EXPECT_GT(facts.memory_bytes, 0);
  EXPECT_EQ(facts.program.failure, "/no/such/program: No such file or directory");
  EXPECT_EQ(facts.log_folder.existing, folder.path());
  EXPECT_TRUE(facts.log_folder.writable);
  EXPECT_TRUE(facts.limits.contains("locked memory"));
  EXPECT_FALSE(facts.names.at("localhost").empty());
  EXPECT_TRUE(facts.names.at("no-such-host.invalid").empty());
  const std::string text = fields::written(facts).dump();
  EXPECT_EQ(fields::written(host_facts_from_json(text)).dump(), text);
}

TEST(HostFacts, OtherProgramsOfThePackageAreAskedForTheirBuilds) {
  const ScratchFolder folder;
  for (const char* const name : {"bench_resnet50", "bench_arcface", "another"}) {
    folder.write(name, R"(#!/bin/sh
echo '{"version": "1", "commit": "c", "build_type": "", "compiler": "", "build_id": "of )" +
                           std::string(name) + R"(", "libraries": {}}')");
    std::filesystem::permissions(folder / name, std::filesystem::perms::owner_all);
  }
  HostQuestions questions{.program = folder.path() + "/bench_resnet50", .log_folder = folder.path()};
  EXPECT_TRUE(gather_host_facts(questions, SignalWatch()).others.empty());
  questions.others = true;
  const HostFacts facts = gather_host_facts(questions, SignalWatch());
  EXPECT_EQ(facts.program.build_id, "of bench_resnet50");
  ASSERT_EQ(facts.others.size(), 1u);
  EXPECT_EQ(facts.others.front().path, folder.path() + "/bench_arcface");
  EXPECT_EQ(facts.others.front().build_id, "of bench_arcface");
}

TEST(HostFacts, TextThatIsNoFactsIsRefused) {
  for (const char* const text : {"", "hello", "[]", "{}", R"({"schema": "plumbline.host/2"})",
                                 R"({"schema": 1})", R"({"schema": "plumbline.host/1", "cpus": "many"})",
                                 R"({"schema": "plumbline.host/1", "gpus": [1]})"})
    expect_error(ExitCode::bad_data, {"plumbline.host/1"}, [&] { host_facts_from_json(text); });
  EXPECT_EQ(host_facts_from_json(R"({"schema": "plumbline.host/1", "later": 1})").cpus, 0);
}

TEST(HostFacts, GpusAreListedWithTheirState) {
  const auto system = nvml_system(PLUMB_FAKE_NVML);
  ASSERT_TRUE(system);
  EXPECT_EQ(system->driver_version, "580.00");
  EXPECT_EQ(system->cuda_version, 13000);
  ASSERT_EQ(system->gpus.size(), 1u);
  const NvmlGpuState& gpu = system->gpus.front();
  EXPECT_EQ(gpu.name, "Fake H200");
  EXPECT_EQ(gpu.uuid, kFakeGpu);
  EXPECT_EQ(gpu.memory_bytes, 141e9);
  EXPECT_EQ(gpu.used_bytes, 20e9);
  EXPECT_EQ(gpu.processes, 2u) << "more than there is room for";
  EXPECT_EQ(gpu.ecc, "on");
  EXPECT_EQ(gpu.counters.at("uncorrected_errors"), 5);
  EXPECT_EQ(gpu.counters.at("rows_pending"), 1);
  EXPECT_EQ(gpu.counters.at("rows_failed"), 0);
  EXPECT_EQ(gpu.mig, "") << "a function that the library lacks";
  EXPECT_FALSE(nvml_system("/no/such/library.so"));
}

TEST(HostFacts, XidsAreCountedInTheKernelsLog) {
  const ScratchFolder folder;
  folder.write(
      "whole",
      "6,0,12,-;Linux version 6.1\n"
      "4,338,5140900,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU has fallen off the bus.\n"
      " SUBSYSTEM=pci\n"
      "4,339,5140901,c;NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n4,340,1,-;NVRM: Xid (0000:5e:00): 31, Ch 1\n");
  folder.write("part", "6,7,12,-;any words\n");
  const KernelLog whole = read_kernel_log(folder.path() + "/whole"),
                  part = read_kernel_log(folder.path() + "/part");
  EXPECT_EQ(whole.reach, "boot");
  using Xids = std::map<std::string, std::map<std::string, int>>;
  EXPECT_EQ(whole.xids, (Xids{{"0000:3b:00", {{"79", 2}}}, {"0000:5e:00", {{"31", 1}}}}));
  EXPECT_EQ(part.reach, "part");
  EXPECT_TRUE(part.xids.empty());
  EXPECT_EQ(read_kernel_log(folder.path() + "/none").reach, "") << "unknown is not 0";
}

TEST(Findings, HaveDifferentCodesInOrderAndTexts) {
  EXPECT_GT(std::size(kFindingKinds), 40u);
  EXPECT_TRUE(std::ranges::is_sorted(kFindingKinds, {}, &FindingKind::code));
  EXPECT_EQ(std::ranges::adjacent_find(kFindingKinds, {}, &FindingKind::code), std::end(kFindingKinds));
  for (const FindingKind& kind : kFindingKinds) {
    EXPECT_FALSE(kind.code.empty() || std::string_view(kind.action).empty()) << kind.code;
    EXPECT_EQ(std::string_view(kind.action).find('\\'), std::string_view::npos) << kind.action;
  }
}

TEST(HostTransport, WordsAreQuotedForTheOtherHostsShellOnly) {
  using Addresses = std::vector<std::string>;
  const HostTransport transport{.agent = {"ssh", "-p", "22"}, .own_addresses = {"10.0.0.1"}};
  EXPECT_EQ(words_on(transport, {.name = "n2", .addresses = Addresses{"10.0.0.2"}}, {"a b", "$(x)", "-c"}),
            (CommandWords{"ssh", "-p", "22", "n2", "'a b'", "'$(x)'", "-c"}));
  EXPECT_EQ(words_on(transport, {.name = "n1", .addresses = Addresses{"10.0.0.1"}}, {"a b"}),
            CommandWords{"a b"})
      << "this host needs no agent";
  EXPECT_EQ(words_on(transport, {.name = "localhost"}, {"a"}), CommandWords{"a"});
  EXPECT_EQ(words_on(transport, {.name = "n1", .addresses = Addresses{"127.0.1.1"}}, {"a"}),
            CommandWords{"a"})
      << "as Debian names itself";
}

TEST(HostTransport, AnAgentMayHaveSeveralWords) {
  EXPECT_EQ(transport_of({.ssh = "env ssh"}).agent, (CommandWords{"env", "ssh"}));
}

TEST(HostTransport, AFailureSaysWhatToDo) {
  const auto explained = [](const CommandEnd& end) {
    HostAnswer answer;
    explain_failure(end, "/opt/plumbline", 20, answer);
    return answer.failure + " (" + answer.failure_detail + "): " + answer.remedy;
  };
  EXPECT_EQ(
      explained({.code = 255, .errors = "Warning: x\nroot@n3: Permission denied (publickey).\r\n"}),
      "can't be reached (root@n3: Permission denied (publickey).): let this user log in without a password "
      "(ssh-copy-id HOST)");
  EXPECT_EQ(explained({.code = 69,
                       .errors = "plumbline: no room\nsrun: error: n2: task 0: Exited with exit code 69\n"})
                .substr(0, 74),
            "ends with exit code 69 instead of an answer (plumbline: no room): see what");
  EXPECT_EQ(explained({.code = 255, .errors = "odd"}), "can't be reached (odd): find out why: ssh HOST true");
  EXPECT_EQ(explained({.code = 127, .errors = "sh: 1: /opt/plumbline: not found"}),
            "/opt/plumbline can't be started there (sh: 1: /opt/plumbline: not found): copy the same package "
            "to the "
            "same path on every host");
  EXPECT_EQ(explained({.code = 143, .timed_out = true}).substr(0, 26), "doesn't answer within 20 s");
  EXPECT_EQ(explained({.code = 0, .output = "welcome\n"}).substr(0, 31), "answers without facts (welcome)");
}

}  // namespace
}  // namespace plumb
