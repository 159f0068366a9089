#include "launch/hosts/name_lookup.h"

#include <set>

#include "base/process/side_by_side.h"
#include "base/text.h"
#include "base/text_table.h"

namespace plumb {
namespace {

constexpr std::size_t kMostAtOnce = 256;  // they wait for name servers

// The first words of getent's lines.
std::vector<std::string> addresses_in(const std::string& said) {
  std::set<std::string> addresses;
  for (const std::string& line : split(said, '\n'))
    if (!line.empty()) addresses.insert(line.substr(0, line.find_first_of(" %")));  // "fe80::1%eth0"
  return {addresses.begin(), addresses.end()};
}

constexpr int kNoSuchProgram = 127;

// Empty: the host answered, or bash is missing here. Bash says "…: Connection refused".
std::string failure_of(const CommandEnd& end, double seconds) {
  if (end.code == kNoSuchProgram) return "";
  if (end.timed_out) return fmt::format("no answer within {:g} s", seconds);
  const std::string said = last_line(end.errors);
  const std::size_t colon = said.rfind(": ");
  const std::string why = colon == std::string::npos ? said : said.substr(colon + 2);
  return end.code == 0 || why == "Connection refused" ? "" : why;
}

}  // namespace

std::map<std::string, std::string> unreached_hosts(
    const std::map<std::string, std::vector<std::string>>& hosts, double seconds,
    const SignalWatch& signals) {
  // To discard's port (RFC 863), where nothing is likely to listen: a host that can be reached refuses it.
  std::vector<std::string> names;
  std::vector<CommandWords> commands;
  for (const auto& [name, addresses] : hosts)
    if (!addresses.empty() && !is_loopback(addresses.front())) {
      names.push_back(name);
      commands.push_back({"env", "LC_ALL=C", "bash", "-c", ": <\"/dev/tcp/$0/9\"", addresses.front()});
    }
  const auto ends =
      run_side_by_side(commands, {.most_at_once = kMostAtOnce, .timeout_seconds = seconds}, signals);
  std::map<std::string, std::string> unreached;
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (std::string why = failure_of(ends[i], seconds); !why.empty()) unreached[names[i]] = std::move(why);
  return unreached;
}

std::map<std::string, std::vector<std::string>> look_up_names(const std::vector<std::string>& names,
                                                              double seconds, const SignalWatch& signals) {
  const auto commands = mapped(names, [](const std::string& name) {
    return CommandWords{"getent", "ahosts", name};
  });
  const auto ends =
      run_side_by_side(commands, {.most_at_once = kMostAtOnce, .timeout_seconds = seconds}, signals);
  std::map<std::string, std::vector<std::string>> found;
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (!ends[i].timed_out && ends[i].code != kNoSuchProgram) found[names[i]] = addresses_in(ends[i].output);
  return found;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace plumb
