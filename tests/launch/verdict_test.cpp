// Verdicts on hosts: what decides them, and the words for them.
#include "launch/verdict/verdict.h"

#include <gtest/gtest.h>

#include "launch/host_names.h"
#include "launch/hosts/screening.h"
#include "launch/verdict/acceptance.h"
#include "launch/verdict/host_checks.h"
#include "tests/results/run_folder.h"
#include "tests/scratch_folder.h"

namespace plumb {
namespace {

ScreenedDevice device(const std::string& host, double speed, ComputedBits bits = {}) {
  return {
      .host = host, .name = "H100", .alone = ScreenRun{.images_per_second = speed}, .bits = std::move(bits)};
}

Outcome outcome_of(double speed, double expected, bool is_busy, std::size_t on_one_machine = 1) {
  const Expectation expectation{.devices = {{.name = "H100", .images_per_second = expected}}};
  Verdict verdict{.hosts = {"n1"}};
  add_devices(
      verdict, {device("n1", speed)}, &expectation,
      {.names = is_busy ? verdict.hosts : std::vector<std::string>{}, .on_one_machine = on_one_machine});
  return verdict.outcome();
}

TEST(Verdict, TheWorstCheckDecides) {
  Verdict verdict{.hosts = {"n1", "n2", "n3"}};
  EXPECT_EQ(verdict.outcome(), Outcome::unknown) << "nothing was checked";
  verdict.add({.check = "scaling", .outcome = Outcome::skip});
  EXPECT_EQ(verdict.outcome(), Outcome::unknown) << "nothing passed";
  verdict.add({.check = "facts", .hosts = {"n1"}});
  EXPECT_EQ(exit_code_of(verdict.outcome()), 0);
  verdict.add({.check = "link", .hosts = {"n2"}, .outcome = Outcome::unknown});
  EXPECT_EQ(exit_code_of(verdict.outcome()), 2);
  EXPECT_TRUE(verdict.excluded().empty());
  verdict.add({.check = "link", .hosts = {"n3"}, .outcome = Outcome::fail});
  EXPECT_EQ(exit_code_of(verdict.outcome()), 1);
  EXPECT_EQ(verdict.excluded(), std::vector<std::string>{"n3"});
  EXPECT_EQ(verdict.kept(), (std::vector<std::string>{"n1", "n2"}));
}

TEST(Verdict, AMissingGpuFails) {
  const auto outcome_with = [](std::size_t gpus) {
    HostAnswer answer{.name = "n1", .answered = true};
    answer.facts.gpus.resize(gpus);
    answer.facts.kernel_log.reach = "boot";
    answer.facts.shared_memory_free_bytes = 1e12;
    const Expectation expectation{.devices_per_host = 8};
    Verdict verdict{.hosts = {"n1"}};
    add_facts(verdict, {answer}, &expectation);
    return verdict.outcome();
  };
  EXPECT_EQ(outcome_with(8), Outcome::pass);
  EXPECT_EQ(outcome_with(7), Outcome::fail);
}

TEST(Verdict, ADeviceIsHeldAgainstWhatIsExpected) {
  EXPECT_EQ(outcome_of(96, 100, false), Outcome::pass);
  EXPECT_EQ(outcome_of(94, 100, false), Outcome::fail);
  EXPECT_EQ(outcome_of(94, 100, true), Outcome::unknown) << "others run there";
  EXPECT_EQ(outcome_of(49, 100, true), Outcome::fail);
  EXPECT_EQ(outcome_of(49, 100, true, 2), Outcome::unknown) << "two hosts share a machine";
  EXPECT_EQ(outcome_of(34, 100, true, 2), Outcome::fail);
}

// The outcomes of checks of H100s by "device alone", "device together" where the third one has these speeds.
std::vector<std::pair<std::string, Outcome>> outcomes_of(ScreenRun alone, ScreenRun together,
                                                         const Expectation* expectation = nullptr) {
  std::vector<ScreenedDevice> devices{device("n1", 100), device("n2", 101), device("n3", 0),
                                      device("n4", 99)};
  for (ScreenedDevice& one : devices) one.together = one.alone;
  devices[2].alone = alone;
  devices[2].together = together;
  Verdict verdict{.hosts = {"n1", "n2", "n3", "n4"}};
  add_devices(verdict, devices, expectation, {});
  std::vector<std::pair<std::string, Outcome>> outcomes;
  for (const Check& check : verdict.checks)
    if (check.outcome != Outcome::pass) outcomes.emplace_back(check.check, check.outcome);
  return outcomes;
}

TEST(Verdict, ADeviceIsHeldAgainstOthersOfItsKindAloneAndTogether) {
  using Outcomes = std::vector<std::pair<std::string, Outcome>>;
  const ScreenRun usual{.images_per_second = 100}, slow{.images_per_second = 70};
  EXPECT_EQ(outcomes_of(usual, usual), Outcomes());
  EXPECT_EQ(outcomes_of(slow, usual), Outcomes({{"device alone", Outcome::fail}}));
  EXPECT_EQ(outcomes_of(usual, slow), Outcomes({{"device together", Outcome::fail}}));
  const Expectation expectation{
      .devices = {{.name = "H100", .images_per_second = 70, .images_per_second_together = 100}}};
  EXPECT_EQ(outcomes_of(slow, slow, &expectation), Outcomes({{"device together", Outcome::fail}}));
}

TEST(Verdict, RunsAreHeldAgainstAnEarlierAcceptance) {
  const auto outcome = [](double now, double step, bool is_busy) {
    const ScratchFolder scratch;
    for (int i = 0; i < 5; ++i) {
      write_run_folder(scratch, fmt::format("old/scaling/runs/{}", i), example_run(100 + i * step));
      write_run_folder(scratch, fmt::format("new/scaling/runs/{}", i), example_run(now + i * step));
    }
    Verdict verdict;
    add_against(verdict, scratch / "new/scaling/runs", scratch / "old/scaling/runs", is_busy);
    EXPECT_EQ(verdict.checks.front().check, "against 1n2g");
    EXPECT_EQ(verdict.checks.front().source, "runs of " + (scratch / "old").string());
    return verdict.outcome();
  };
  EXPECT_EQ(outcome(99, 0.1, false), Outcome::pass);
  EXPECT_EQ(outcome(95, 0.1, false), Outcome::fail);
  EXPECT_EQ(outcome(95, 0.1, true), Outcome::unknown) << "others run there";
  EXPECT_EQ(outcome(98, 8, false), Outcome::unknown) << "they vary by far more than the limit";
  Verdict none;
  add_against(none, "none/new", "none/old", false);
  EXPECT_EQ(none.outcome(), Outcome::unknown);
}

TEST(Verdict, ADeviceThatComputesOtherBitsIsFound) {
  const ComputedBits usual{.losses = {7.1, 7.0}}, odd{.losses = {7.1, std::nextafter(7.0, 8)}};
  EXPECT_TRUE(find_odd_bits({device("n1", 1, usual), device("n2", 1, odd)}).empty()) << "no majority of two";
  const auto found =
      find_odd_bits({device("n1", 1, usual), device("n2", 1, odd), device("n3", 1, usual), device("n4", 1)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().device, 1u);
  EXPECT_EQ(found.front().iteration, 1u);
}

TEST(Verdict, ADeviceWithOtherParametersIsFound) {
  ComputedBits usual{.losses = {7.1}, .tensors = {{"conv1.weight", "a", "b"}}}, odd = usual;
  odd.tensors[0].parameter = "x";
  const auto found = find_odd_bits({device("n1", 1, usual), device("n2", 1, odd), device("n3", 1, usual)});
  ASSERT_EQ(found.size(), 1u) << "though its losses agree";
  EXPECT_EQ(odd_text(found.front()),
            "computes other bits than most devices of its kind: its parameters differ after 1 iteration");
}

TEST(Verdict, BitsThatCouldNotBeComparedAreNoPass) {
  Verdict verdict{.hosts = {"n1", "n2", "n3"}};
  const ScreenedDevice failed = device("n3", 100, {.failure = "out of memory"});
  add_devices(verdict, {device("n1", 100), device("n2", 100), failed}, nullptr, {});
  EXPECT_EQ(verdict.outcome(), Outcome::unknown);
  EXPECT_EQ(verdict.checks.front().where, std::vector<std::string>{"n3"});
  EXPECT_EQ(verdict.checks.front().remark, "the deterministic run failed: out of memory");
}

TEST(Verdict, ItsFirstLineFitsASchedulersReason) {
  Verdict verdict{.hosts = {"a-host-with-a-long-name.of-a-long-domain.example"}};
  verdict.add({.check = "device alone",
               .expected = "64.3 images/s",
               .measured = "17.2 images/s (-73 %)",
               .outcome = Outcome::fail});
  EXPECT_LE(headline(verdict).size(), 80u);
  verdict.hosts = {"n3"};
  EXPECT_EQ(headline(verdict), "n3 FAIL device alone: 17.2 images/s (-73 %), expected 64.3 images/s");
}

TEST(Verdict, ManyChecksStayWithinThirtyLines) {
  Verdict verdict{.hosts = {"n1"}};
  for (int i = 0; i < 1000; ++i)
    verdict.add({.check = "device alone",
                 .where = {"n1 GPU " + std::to_string(i)},
                 .hosts = {"n1"},
                 .outcome = Outcome::fail,
                 .remark = "reason " + std::to_string(i)});
  const std::string text = verdict_text(verdict);
  EXPECT_LE(std::ranges::count(text, '\n'), 30);
  EXPECT_NE(text.find("and 986 more"), text.npos) << text;
}

TEST(Verdict, LinksAreHeldAgainstEachOtherOrWhatIsExpected) {
  Links links{.hosts = {{"n1"}, {"n2"}, {"n3"}, {"n4"}}};
  for (int i = 1; i <= 4; ++i)
    for (int j = i + 1; j <= 4; ++j)
      links.pairs.push_back(
          {fmt::format("n{}", i), fmt::format("n{}", j), {1e-5, j == 3 || i == 3 ? 1e8 : 1e9}});
  Verdict verdict{.hosts = {"n1", "n2", "n3", "n4"}};
  add_links(verdict, links, {});
  EXPECT_EQ(verdict.excluded(), std::vector<std::string>{"n3"});
  verdict.checks.clear();
  add_links(verdict, links, ExpectedLink{1e10, "--link"});
  EXPECT_EQ(verdict.excluded(), verdict.hosts) << "all are slow alike";
  verdict.checks.clear();
  add_links(verdict, links, ExpectedLink{1e8, "--link"});
  EXPECT_EQ(verdict.outcome(), Outcome::pass);
}

TEST(Verdict, ALinkOfABusyHostFailsBelowHalf) {
  const Links links{.hosts = {{"n1"}, {"n2"}}, .pairs = {{"n1", "n2", {1e-5, 7e8}}}};
  const auto judged = [&](double expected, const BusyHosts& busy) {
    Verdict verdict{.hosts = {"n1", "n2"}};
    add_links(verdict, links, ExpectedLink{expected, "--link"}, busy);
    return verdict.outcome();
  };
  EXPECT_EQ(judged(1e9, {}), Outcome::fail);
  EXPECT_EQ(judged(1e9, {.names = {"n1"}}), Outcome::unknown);
  EXPECT_EQ(judged(1e9, {.names = {"n2"}}), Outcome::unknown);
  EXPECT_EQ(judged(1e9, {.names = {"n3"}}), Outcome::fail);
  EXPECT_EQ(judged(1.5e9, {.names = {"n1", "n2"}}), Outcome::fail);
}

TEST(AcceptPlan, TakesAsManyRunsAsTheBudgetAllows) {
  const AcceptPlan small{.hosts = 4, .devices_per_host = 8, .budget_seconds = 60};
  EXPECT_EQ(small.repetitions(), 1);
  std::vector<std::string> names;
  for (const Layout& one : small.cases()) names.push_back(one.name());
  EXPECT_EQ(names, (std::vector<std::string>{"1n1g", "1n8g", "2n8g", "4n8g"}));
  const AcceptPlan usual{.hosts = 4, .devices_per_host = 8, .budget_seconds = 600};
  EXPECT_GE(usual.repetitions(), 3);
  EXPECT_LE(usual.seconds(), 660);
}

TEST(HostNames, AreFoundInMessages) {
  const std::vector<std::string> hosts{"n1", "n11", "a.b"};
  EXPECT_EQ(hosts_named_in("rank 3 on n11: is gone", hosts), std::vector<std::string>{"n11"});
  EXPECT_EQ(hosts_named_in("(a.b), n1", hosts), (std::vector<std::string>{"n1", "a.b"}));
  EXPECT_TRUE(hosts_named_in("n111", hosts).empty());
}

}  // namespace
}  // namespace plumb
