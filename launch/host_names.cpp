#include "launch/host_names.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/paths.h"
#include "base/process/side_by_side.h"
#include "base/text.h"

namespace plumb {

extern const std::string_view kHostListScript;  // host_list.sh

namespace {

constexpr std::string_view kNumerals = "0123456789";
constexpr std::size_t kMostNumerals = 9;

long number_of(std::string_view numerals) {
  long number = 0;
  std::from_chars(numerals.data(), numerals.data() + numerals.size(), number);
  return number;
}

// Calls `reader`, a function of the script, with one argument.
std::vector<std::string> hosts_by_script(const char* reader, std::string_view origin,
                                         std::string_view argument) {
  constexpr const char* kCall =
      "\nrefuse() { echo \"$2\"; exit \"$1\"; }\norigin=$1\n\"$2\" \"$3\"\nprintf '%s\\n' "
      "\"${hosts[@]}\"";
  const CommandEnd answer = run_side_by_side({{"bash", "-c", std::string(kHostListScript) + kCall, "bash",
                                               std::string(origin), reader, std::string(argument)}},
                                             {}, SignalWatch())
                                .front();
  const auto code = static_cast<ExitCode>(answer.code);
  std::vector<std::string> lines = split(answer.output, '\n');
  if (answer.code != 0)
    throw Error(code == ExitCode::usage || code == ExitCode::bad_data ? code : ExitCode::unavailable, "{}",
                lines.empty() || lines.front().empty()
                    ? "cannot start bash, which reads lists of hosts; install it"
                    : printable(lines.front()));
  std::erase(lines, "");
  return lines;
}

// A name around its last number; without one all of it is `before`.
struct NumberedName {
  std::string before, number, after;
  bool operator==(const NumberedName&) const = default;
};

NumberedName numbered(const std::string& name) {
  const std::size_t last = name.find_last_of(kNumerals);
  if (last == std::string::npos) return {name, "", ""};
  const std::size_t first = name.find_last_not_of(kNumerals, last) + 1;
  if (last + 1 - first > kMostNumerals) return {name, "", ""};
  return {name.substr(0, first), name.substr(first, last + 1 - first), name.substr(last + 1)};
}

// How many names from `names[0]` on count up by one, as wide as the first one.
std::size_t range_length(std::span<const NumberedName> names) {
  std::size_t length = 1;
  while (length < names.size() && !names[0].number.empty() && names[length].before == names[0].before &&
         names[length].after == names[0].after &&
         names[length].number == fmt::format("{:0{}}", number_of(names[0].number) + static_cast<long>(length),
                                             names[0].number.size()))
    ++length;
  return length;
}

}  // namespace

std::vector<std::string> read_host_list(const std::string& origin, std::string_view list) {
  return hosts_by_script("add_list", origin, list);
}

std::vector<std::string> read_host_file(const std::filesystem::path& file) {
  return hosts_by_script("read_hostfile", "", file.string());
}

std::string host_list_text(std::span<const std::string> hosts) {
  const std::vector<NumberedName> names = mapped(hosts, numbered);
  std::string text;
  for (std::size_t i = 0; i < names.size();) {
    const NumberedName& first = names[i];
    std::string ranges;
    std::size_t count = 0;
    const auto fits = [&](const NumberedName& name) {
      return !name.number.empty() && name.before == first.before && name.after == first.after;
    };
    while (i < names.size() && (count == 0 || fits(names[i]))) {
      const std::size_t length = range_length(std::span(names).subspan(i));
      append_part(ranges, names[i].number, ",");
      if (length > 1) ranges += "-" + names[i + length - 1].number;
      count += length;
      i += length;
      if (first.number.empty()) break;
    }
    append_part(text, count > 1 ? fmt::format("{}[{}]{}", first.before, ranges, first.after) : hosts[i - 1],
                ",");
  }
  return text;
}

std::string short_host_list_text(std::span<const std::string> hosts) {
  constexpr std::size_t kMostLetters = 60;
  std::size_t named = hosts.size();
  std::string text = host_list_text(hosts);
  while (named > 1 && text.size() > kMostLetters) {
    named = std::clamp<std::size_t>(named * kMostLetters / text.size(), 1, named - 1);
    text = host_list_text(hosts.first(named));
  }
  return named == hosts.size() ? text : fmt::format("{} and {} more", text, hosts.size() - named);
}

std::vector<std::string> hosts_named_in(const std::string& message, std::vector<std::string> hosts) {
  constexpr std::string_view kInNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = message.find_first_of(kInNames, at)) < message.size();) {
    const std::size_t end = std::min(message.find_first_not_of(kInNames, at), message.size());
    words.push_back(message.substr(at, end - at));
    at = end;
  }
  std::erase_if(hosts, [&](const std::string& host) { return std::ranges::count(words, host) == 0; });
  return hosts;
}

}  // namespace plumb
