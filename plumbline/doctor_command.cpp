// `plumbline doctor`: what is wrong with hosts before a run, and what to do.
#include <cstdio>
#include <string>

#include "base/console/print.h"
#include "base/console/progress.h"
#include "base/paths.h"
#include "base/steady_clock.h"
#include "base/text.h"
#include "launch/hosts/ask_hosts.h"
#include "launch/hosts/findings.h"
#include "launch/programs.h"
#include "launch/verdict/expectation.h"
#include "plumbline/command.h"

namespace plumb {
namespace {

struct DoctorArguments {
  HostArguments hosts;
  std::string program, expect, log_folder = "logs", names;
  bool here = false, json = false;
};

OptionTable doctor_options(DoctorArguments& arguments) {
  return {
      "plumbline doctor",
      "Finds what would stop or slow a run on these hosts, and prints what to do: program and libraries, "
      "MPI, GPUs, networks, limits, memory, disk and names. Exit code 0: nothing, or notes; 1: "
      "warnings; 69: a host cannot be reached, cannot start the program or lacks a GPU. All hosts need "
      "plumbline at the same path.",
      {host_options(arguments.hosts),
       {"Checks",
        {text_option("--program", "PATH", arguments.program, "program of the run")
             .with_default("all programs next to plumbline"),
         text_option("--expect", "FILE", arguments.expect,
                     "file of accept --save-expect, which has the number of GPUs"),
         text_option("--log-dir", "D", arguments.log_folder, "folder of its logs and results")}},
       {"Output",
        {flag_option("--json", arguments.json, true, "print one JSON object instead of the lines"),
         flag_option("--here", arguments.here, true, "print the facts of this host as one line of JSON")
             .internal(),
         text_option("--names", "A,B", arguments.names, "with --here: report the addresses of these names")
             .internal()}}},
      {"plumbline doctor # this host", "plumbline doctor -H node[1-4] # hosts of a cluster",
       "plumbline doctor --hostfile hosts --log-dir /shared/logs # and the folder of logs"}};
}

HostQuestions questions_of(const DoctorArguments& arguments) {
  HostQuestions questions{.program = program_path(arguments.program, "bench_resnet50"),
                          .others = arguments.program.empty(),
                          .log_folder = absolute_path(arguments.log_folder).lexically_normal().string()};
  if (!arguments.names.empty()) questions.names = split(arguments.names, ',');
  return questions;
}

// As one line.
int print_facts(const DoctorArguments& arguments) {
  const HostFacts facts = gather_host_facts(questions_of(arguments), SignalWatch());
  print_text(fields::written(facts).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  return 0;
}

int doctor_command(const DoctorArguments& arguments) {
  if (arguments.here) return print_facts(arguments);
  const HostQuestions questions = questions_of(arguments);
  const int gpus = arguments.expect.empty() ? 0 : read_expectation(arguments.expect).devices_per_host;
  const SignalWatch signals;
  const std::vector<std::string> hosts = named_hosts(arguments.hosts);
  const double start = steady_seconds();
  std::vector<HostAnswer> answers;
  if (hosts.empty()) {
    answers.push_back(ask_this_host(questions, signals));
  } else {
    const HostTransport transport = transport_of(arguments.hosts);
    ProgressBar bar(stderr, terminal_of(stderr), std::ssize(hosts), 1, "hosts/s");
    const auto told = [&](std::size_t ended) {
      bar.update(static_cast<std::int64_t>(ended), steady_seconds() - start);
    };
    answers = ask_hosts(hosts, arguments.hosts, transport, questions, told, signals);
    bar.clear();
  }
  const double seconds = steady_seconds() - start;
  const DoctorReport report{.notes = find_faults(answers, static_cast<std::size_t>(gpus)),
                            .hosts = std::move(answers),
                            .seconds = seconds};
  print_text(arguments.json ? json_text(doctor_json(report)) : doctor_text(report));
  return static_cast<int>(report.exit_code());
}

}  // namespace

const Command kDoctorCommand = make_command("doctor", "find what would stop or slow a run on these hosts",
                                            doctor_options, doctor_command);

}  // namespace plumb
