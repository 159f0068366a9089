#include "launch/verdict/host_steps.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "base/text_table.h"
#include "launch/programs.h"

namespace plumb {
namespace {

constexpr int kAgain = 3;  // more runs of a device that seems slow

bool has_usable_gpus(const HostAnswer& answer) {
  return answer.answered && answer.facts.program.libraries.contains("CUDA") && !answer.facts.gpus.empty();
}

CommandWords allreduce_words(const HostAnswer& answer) {
  return {"sh",
          "-c",
          fmt::format("{}; exec \"$@\"", kWithoutScheduler),
          "sh",
          "env",
          "OMPI_ALLOW_RUN_AS_ROOT=1",
          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "mpirun",
          "-np",
          std::to_string(answer.facts.gpus.size()),
          "--bind-to",
          "none",
          program_path("", "bench_allreduce"),
          "--json",
          "--min",
          "64M",
          "--max",
          "64M"};
}

InsideOfHost inside_of(const std::string& host, const CommandEnd& end) {
  InsideOfHost inside{.host = host,
                      .sums_are_wrong = end.code == static_cast<int>(ExitCode::verification_failed),
                      .failure = end.timed_out ? "not done in time" : printable(last_line(end.errors))};
  const Json said = Json::parse(json_in(end.output), nullptr, false);
  if (end.code == 0 && said.is_object())
    for (const Json& one : said.value("results", Json::array()))
      inside.bytes_per_second = std::max(inside.bytes_per_second, one.value("busbw_bytes_per_second", 0.0));
  if (inside.bytes_per_second <= 0 && inside.failure.empty())
    inside.failure = fmt::format("bench_allreduce ended with exit code {} and without a result", end.code);
  return inside;
}

}  // namespace

HostSteps::HostSteps(ScreenWork work_of_devices, const Terminal& terminal)
    : work(std::move(work_of_devices)), line(stderr, terminal), verdict{.began = utc_now()} {}

void HostSteps::set_hosts(const HostArguments& of_hosts, const std::vector<std::string>& hosts) {
  host_arguments = of_hosts;
  transport = transport_of(host_arguments);
  verdict.hosts = hosts;
}

void HostSteps::ask() {
  const HostQuestions questions{
      .program = screened_program(work), .others = asks_others, .log_folder = temporary_folder()};
  if (!verdict.hosts.empty()) {
    answers = ask_hosts(verdict.hosts, host_arguments, transport, questions, nullptr, signals);
    return;
  }
  answers = {ask_this_host(questions, signals)};
  verdict.hosts = {answers.front().name};
}

void HostSteps::judge_facts() {
  add_facts(verdict, answers, expected());
}

std::vector<HostAnswer> HostSteps::good_answers() const {
  std::vector<HostAnswer> good;
  const std::vector<std::string> kept = verdict.kept();
  for (const HostAnswer& answer : answers)
    if (std::ranges::count(kept, answer.name) > 0) good.push_back(answer);
  return good;
}

bool HostSteps::has_gpus() const {
  return std::ranges::any_of(answers, has_usable_gpus);
}

int HostSteps::devices_per_host() const {
  std::size_t fewest = 0;
  for (const HostAnswer& answer : answers)
    if (has_usable_gpus(answer))
      fewest = fewest == 0 ? answer.facts.gpus.size() : std::min(fewest, answer.facts.gpus.size());
  return std::max(1, static_cast<int>(fewest));
}

DeviceRuns HostSteps::runs(double run_seconds) {
  const std::vector<HostAnswer> good = good_answers();
  busy_ = busy_hosts(good);
  devices = screened_devices(good);
  ScreenWork timed_work = work;
  timed_work.seconds = std::min(work.seconds, run_seconds);
  // Hosts on one machine would take CPUs from each other.
  return {timed_work, transport, good, busy_.on_one_machine > 1 ? 1 : SideBySideOptions().most_at_once};
}

// Hosts with a device that would fail now.
std::vector<std::string> HostSteps::slow_hosts() const {
  Verdict so_far{.hosts = verdict.kept()};
  add_devices(so_far, devices, expected(), {});
  return so_far.excluded();
}

void HostSteps::run_alone(DeviceRuns& runs) {
  runs.alone(devices);
  for (int again = 0; again < kAgain; ++again) {
    const std::vector<std::string> slow = slow_hosts();
    const bool vary =
        !expectation && std::ranges::any_of(kinds_of(devices, &ScreenedDevice::alone), [](const auto& named) {
          return named.second.was_judged() && !named.second.can_tell();
        });
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < devices.size(); ++i)
      if (vary || std::ranges::count(slow, devices[i].host) > 0) indices.push_back(i);
    if (indices.empty()) break;
    runs.alone(devices, indices);
  }
}

void HostSteps::judge(DeviceRuns& runs) {
  if (devices.size() > 2) runs.compare_bits(devices);
  add_devices(verdict, devices, expected(), busy_);
}

void HostSteps::judge_devices(double run_seconds, bool together) {
  if (verdict.kept().empty()) return;
  DeviceRuns device_runs = runs(run_seconds);
  show(fmt::format("{} alone{}", counted(devices.size(), "device"), together ? ", then all at once" : ""));
  run_alone(device_runs);
  if (together) device_runs.together(devices);
  judge(device_runs);
}

void HostSteps::judge_devices_once(double run_seconds) {
  if (verdict.kept().empty()) return;
  DeviceRuns device_runs = runs(run_seconds);
  if (devices.size() > 1)
    device_runs.together(devices);
  else
    device_runs.alone(devices);
  judge(device_runs);
}

void HostSteps::judge_insides(double patience_seconds) {
  std::vector<CommandWords> commands;
  std::vector<std::string> hosts;
  for (const HostAnswer& answer : good_answers()) {
    if (!has_usable_gpus(answer) || answer.facts.gpus.size() < 2) continue;
    hosts.push_back(answer.name);
    commands.push_back(words_on(transport, answer, allreduce_words(answer)));
  }
  if (hosts.empty()) return;
  show("an allreduce within each host");
  const std::vector<CommandEnd> ends =
      run_side_by_side(commands, {.timeout_seconds = patience_seconds}, signals);
  for (std::size_t i = 0; i < ends.size(); ++i) insides.push_back(inside_of(hosts[i], ends[i]));
  add_insides(verdict, insides, expected());
}

}  // namespace plumb
