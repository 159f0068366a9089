#include "launch/hosts/ask_hosts.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/machine/host_addresses.h"
#include "base/paths.h"
#include "base/process/this_process.h"
#include "base/steady_clock.h"
#include "base/text.h"
#include "base/text_table.h"
#include "launch/host_names.h"
#include "launch/hosts/name_lookup.h"
#include "launch/programs.h"
#include "launch/sweep/sweep_plan.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultAgent = "ssh -o BatchMode=yes -o ConnectTimeout=5";
// What `srun` alone stands for: one task on the host that follows, beside what runs there.
constexpr const char* kSlurmAgent = "srun --nodes=1 --ntasks=1 --overlap --nodelist";
constexpr double kLookUpSecondsHere = 5;
// With more hosts each looks up its own name and the first one's.
constexpr std::size_t kMostNamesForAll = 64;

// What a part of the agent's message means.
struct KnownMessage {
  const char *part, *remedy;
};
constexpr KnownMessage kKnownMessages[]{
    {"Permission denied", "let this user log in without a password (ssh-copy-id HOST)"},
    {"Host key verification failed", "log in by hand once, or add the host's key to known_hosts"},
    {"Could not resolve hostname", "correct its name, or add it to DNS or /etc/hosts"},
    {"Name or service not known", "correct its name, or add it to DNS or /etc/hosts"},
    {"Connection refused", "start sshd there, or name another way by --ssh"},
    {"No route to host", "check that it is up and its cable is in"},
    {"timed out", "check that it is up and its cable is in"},
    {"Invalid node name", "name hosts as sinfo shows them"},
    {"is not a command", "copy the same package to it: its plumbline is an older one"}};

// Starts a command itself, where ssh starts a shell.
bool is_srun(const CommandWords& agent) {
  return fs::path(agent.front()).filename() == "srun";
}

// What hosts look up: all names, or their own and the first one.
std::vector<std::string> names_for(const std::vector<std::string>& hosts, const std::string& host) {
  if (hosts.size() <= kMostNamesForAll) return hosts;
  return host == hosts.front() ? std::vector{host} : std::vector{host, hosts.front()};
}

// This program's own sub-mode.
CommandWords fact_command(const HostQuestions& questions) {
  CommandWords words{own_program(), "doctor", "--here", "--log-dir", questions.log_folder};
  // Without its option doctor asks for all programs.
  if (!questions.others) words.insert(words.end(), {"--program", questions.program});
  if (!questions.names.empty())
    words.insert(words.end(), {"--names", fmt::format("{}", fmt::join(questions.names, ","))});
  return words;
}

void take_answer(HostAnswer& answer, const CommandEnd& end) {
  const std::vector<std::string> lines = split(end.output, '\n');  // a login may print some
  const auto line = std::ranges::find_if(lines, [](const std::string& one) { return one.starts_with('{'); });
  answer.facts = host_facts_from_json(line == lines.end() ? "" : *line);
  answer.answered = true;
}

}  // namespace

OptionGroup host_options(HostArguments& arguments) {
  return {"Hosts",
          {text_option("-H,--hosts", "HOSTS", arguments.hosts, "node[1-4], node[01-04,7], node1..4 or n1,n2")
               .with_default("this host"),
           text_option("--hostfile", "FILE", arguments.hostfile, "file of lines HOST slots=N, as for mpirun"),
           text_option(
               "--ssh", "COMMAND", arguments.ssh,
               "command that starts another one on a host: 'ssh -p 2222', 'rsh', or 'srun' in a Slurm job")
               .with_default("OMPI_MCA_plm_rsh_agent, else " + std::string(kDefaultAgent))
               .rare(),
           number_option("--timeout-s", "X", arguments.timeout_seconds,
                         {.lowest = 0, .highest = 86400, .above_lowest = true},
                         "seconds that a host may take to answer")
               .rare()}};
}

std::vector<std::string> named_hosts(const HostArguments& arguments) {
  if (!arguments.hosts.empty() && !arguments.hostfile.empty())
    throw Error(ExitCode::usage, "-H and --hostfile exclude each other; pass only one");
  if (!arguments.hostfile.empty()) return read_host_file(arguments.hostfile);
  return arguments.hosts.empty() ? std::vector<std::string>{} : read_host_list("-H", arguments.hosts);
}

HostTransport transport_of(const HostArguments& arguments) {
  const std::string of_mpi = environment_variable("OMPI_MCA_plm_rsh_agent");
  const std::string command = !arguments.ssh.empty() ? arguments.ssh
                              : !of_mpi.empty()      ? of_mpi
                                                     : kDefaultAgent;
  HostTransport transport{.agent = split(command == "srun" ? kSlurmAgent : command, ' ')};
  std::erase(transport.agent, "");
  if (transport.agent.empty() || path_of_program(transport.agent.front()).empty())
    throw Error(ExitCode::unavailable, "--ssh {}: cannot start it; install it or pass another command",
                printable(command));
  transport.own_addresses = mapped(addresses_of_this_host().addresses, &InterfaceAddress::address);
  return transport;
}

CommandWords words_on(const HostTransport& transport, const HostAnswer& host, const CommandWords& command) {
  const bool is_this =
      transport.agent.empty() || host.name == "localhost" ||
      (host.addresses && std::ranges::any_of(*host.addresses, [&](const std::string& address) {
         return is_loopback(address) || std::ranges::count(transport.own_addresses, address) > 0;
       }));
  if (is_this) return command;
  CommandWords words = transport.agent;
  words.push_back(host.name);
  for (const std::string& word : command) words.push_back(is_srun(words) ? word : shell_text({word}));
  return words;
}

std::string_view json_in(std::string_view said) {
  return said.substr(std::min(said.find('{'), said.size()));
}

void explain_failure(const CommandEnd& end, const std::string& program, double timeout_seconds,
                     HostAnswer& answer) {
  constexpr int kNotExecutable = 126, kNotFound = 127, kOfSsh = 255;
  std::string said = last_line(end.output + "\n" + end.errors);
  // srun has the last word about a program that ended with a sentence of its own.
  for (const std::string& line : split(end.errors, '\n'))
    if (line.starts_with("plumbline: ")) said = line;
  said = printable(shortened(std::move(said), 160));
  const auto known = std::ranges::find_if(
      kKnownMessages, [&](const KnownMessage& one) { return said.find(one.part) != said.npos; });
  answer.failure_detail = said;
  if (end.timed_out) {
    answer.failure = fmt::format("doesn't answer within {:g} s", timeout_seconds);
    answer.remedy = "check that it is up and that a command ends there (ssh HOST true), or raise --timeout-s";
  } else if (end.code == kNotFound || end.code == kNotExecutable) {
    answer.failure = fmt::format("{} can't be started there", program);
    answer.remedy = "copy the same package to the same path on every host";
  } else if (end.code == kOfSsh || known != std::end(kKnownMessages)) {
    answer.failure = "can't be reached";
    answer.remedy = known != std::end(kKnownMessages) ? known->remedy : "find out why: ssh HOST true";
  } else {
    answer.failure = end.code == 0 ? "answers without facts"
                                   : fmt::format("ends with exit code {} instead of an answer", end.code);
    answer.remedy = "see what it says there: " + program + " doctor --here";
  }
}

std::vector<HostAnswer> ask_hosts(const std::vector<std::string>& hosts, const HostArguments& arguments,
                                  const HostTransport& transport, const HostQuestions& questions,
                                  const std::function<void(std::size_t)>& told, const SignalWatch& signals) {
  const auto addresses = look_up_names(hosts, kLookUpSecondsHere, signals);
  std::vector<HostAnswer> answers(hosts.size());
  std::vector<CommandWords> commands;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    answers[i].name = hosts[i];
    if (const auto found = addresses.find(hosts[i]); found != addresses.end())
      answers[i].addresses = found->second;
    HostQuestions own = questions;
    own.names = names_for(hosts, hosts[i]);
    commands.push_back(words_on(transport, answers[i], fact_command(own)));
  }
  const std::vector<CommandEnd> ends =
      run_side_by_side(commands, {.timeout_seconds = arguments.timeout_seconds, .told = told}, signals);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    answers[i].seconds = ends[i].seconds;
    try {
      take_answer(answers[i], ends[i]);
    } catch (const Error&) {
      explain_failure(ends[i], own_program(), arguments.timeout_seconds, answers[i]);
    }
  }
  return answers;
}

HostAnswer ask_this_host(const HostQuestions& questions, const SignalWatch& signals) {
  const double start = steady_seconds();
  HostAnswer answer{.answered = true, .facts = gather_host_facts(questions, signals)};
  answer.name = answer.facts.host;
  answer.seconds = steady_seconds() - start;
  return answer;
}

}  // namespace plumb
