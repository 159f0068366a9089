#include "launch/hosts/transport.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/machine/host_addresses.h"
#include "base/paths.h"
#include "base/process/this_process.h"
#include "base/text.h"
#include "base/text_table.h"
#include "launch/host_launcher.h"
#include "launch/host_names.h"
#include "launch/hosts/name_lookup.h"
#include "launch/sweep/sweep_plan.h"

namespace plumb {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultAgent = "ssh -o BatchMode=yes -o ConnectTimeout=5";
// What `srun` alone stands for: one task on the host that follows, beside what runs there.
constexpr const char* kSlurmAgent = "srun --nodes=1 --ntasks=1 --overlap --nodelist";

// What a part of the agent's message means.
struct KnownMessage {
  const char *part, *remedy;
};
constexpr KnownMessage kKnownMessages[]{
    {"Permission denied", "let this user log in without a password (ssh-copy-id HOST)"},
    {"Host key verification failed", "log in by hand once, or add the host's key to known_hosts"},
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", "find out why its key changed, then ssh-keygen -R HOST"},
    {"Could not resolve hostname", "correct its name, or add it to DNS or /etc/hosts"},
    {"Name or service not known", "correct its name, or add it to DNS or /etc/hosts"},
    {"name resolution", "correct its name, or find out why the name server doesn't answer"},
    {"Connection refused", "start sshd there, or name another way by --ssh"},
    {"No route to host", "check that it is up and its cable is in"},
    {"Network is unreachable", "check this host's network"},
    {"timed out", "check that it is up and its cable is in"},
    {"Invalid node name", "name hosts as sinfo shows them"},
    {"is not a command", "copy the same package to it: its plumbline is an older one"}};

// Starts a command itself, where ssh starts a shell.
bool is_srun(const CommandWords& agent) {
  return fs::path(agent.front()).filename() == "srun";
}

}  // namespace

OptionGroup host_options(HostArguments& arguments) {
  return {
      "Hosts",
      {text_option("-H,--hosts", "HOSTS", arguments.hosts,
                   "node[1-4], node[01-04,7], node1..4, n1,n2 or USER@HOST")
           .with_default("this host"),
       text_option("--hostfile", "FILE", arguments.hostfile, "file of lines HOST slots=N, as for mpirun"),
       text_option(
           "--ssh", "COMMAND", arguments.ssh,
           "command that starts another one on a host: 'ssh -p 2222', 'rsh', or 'srun' in a Slurm job")
           .with_default("OMPI_MCA_plm_rsh_agent, else " + std::string(kDefaultAgent))
           .rare(),
       number_option("--at-once", "N", arguments.most_at_once, {1, 1000}, "hosts that are asked at a time")
           .rare(),
       number_option("--timeout-s", "X", arguments.timeout_seconds,
                     {.lowest = 0, .highest = 86400, .above_lowest = true},
                     "seconds that a host may take to answer")
           .rare()}};
}

HostList named_hosts(const HostArguments& arguments) {
  if (!arguments.hosts.empty() && !arguments.hostfile.empty())
    throw Error(ExitCode::usage, "-H and --hostfile exclude each other; pass only one");
  if (!arguments.hostfile.empty()) return read_host_file(arguments.hostfile);
  return arguments.hosts.empty() ? HostList{} : read_host_list("-H", arguments.hosts);
}

HostTransport transport_of(const HostArguments& arguments, const std::string& user) {
  const std::string of_mpi = environment_variable("OMPI_MCA_plm_rsh_agent");
  const std::string command = !arguments.ssh.empty() ? arguments.ssh
                              : !of_mpi.empty()      ? of_mpi
                                                     : kDefaultAgent;
  HostTransport transport{.agent = split(command == "srun" ? kSlurmAgent : command, ' ')};
  std::erase(transport.agent, "");
  if (transport.agent.empty() || path_of_program(transport.agent.front()).empty())
    throw Error(ExitCode::unavailable, "--ssh {}: cannot start it; install it or pass another command",
                printable(command));
  if (!user.empty()) {
    if (is_srun(transport.agent))
      throw Error(ExitCode::usage, "--ssh srun asks hosts as the user who calls it; leave '{}@' out", user);
    transport.agent.insert(transport.agent.end(), {"-l", user});
  }
  for (const InterfaceAddress& one : addresses_of_this_host().addresses)
    transport.own_addresses.push_back(one.address);
  return transport;
}

CommandWords words_on(const HostTransport& transport, const std::string& host,
                      const std::vector<std::string>& host_addresses, const CommandWords& command) {
  const bool is_this =
      transport.agent.empty() || host == "localhost" ||
      std::ranges::any_of(host_addresses, [&](const std::string& address) {
        return is_loopback(address) || std::ranges::count(transport.own_addresses, address) > 0;
      });
  if (is_this) return command;
  CommandWords words = transport.agent;
  words.push_back(host);
  for (const std::string& word : command) words.push_back(is_srun(words) ? word : shell_text({word}));
  return words;
}

std::string own_program() {
  std::error_code error;
  const fs::path path = path_of_this_program();
  const fs::path starter = path.parent_path().parent_path() / "bin" / path.filename();
  return path.parent_path().filename() == "libexec" && fs::exists(starter, error) ? starter.string()
                                                                                  : path.string();
}

std::string program_path(const std::string& program, const std::string& sibling) {
  if (program.empty()) return (fs::path(own_program()).parent_path() / sibling).string();
  if (program.find('/') != std::string::npos) return absolute_path(program).lexically_normal().string();
  if (std::string path = path_of_program(program); !path.empty()) return path;
  throw Error(ExitCode::unavailable, "--program {}: it is not in PATH; pass its path", printable(program));
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

}  // namespace plumb
