#include "launch/host_names.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>

#include "base/paths.h"
#include "base/text.h"

namespace plumb {
namespace {

constexpr std::string_view kNumerals = "0123456789";
constexpr std::size_t kMostNumerals = 9;

bool is_host_name(std::string_view name) {
  constexpr std::string_view kLettersAndNumerals =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  const auto is_edge = [&](char c) { return kLettersAndNumerals.find(c) != std::string_view::npos; };
  return !name.empty() && is_edge(name.front()) && is_edge(name.back()) &&
         name.find("..") == std::string_view::npos &&
         std::ranges::all_of(name, [&](char c) { return is_edge(c) || c == '.' || c == '_' || c == '-'; });
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kMostNumerals &&
         text.find_first_not_of(kNumerals) == std::string_view::npos;
}

long number_of(std::string_view numerals) {
  long number = 0;
  std::from_chars(numerals.data(), numerals.data() + numerals.size(), number);
  return number;
}

// Collects names out of lists and refuses mistakes.
class HostListReader {
 public:
  void add_list(const std::string& list);

  std::string origin;
  ExitCode code = ExitCode::usage;
  std::vector<std::string> hosts;

 private:
  template <typename... Values>
  [[noreturn]] void refuse(fmt::format_string<Values...> sentence, Values&&... values) const {
    throw Error(code, origin + ": " + fmt::format(sentence, std::forward<Values>(values)...));
  }
  void add_item(const std::string& item);
  void add_range(const std::string& before, const std::string& range, const std::string& after);
  void add_host(const std::string& name);

  std::set<std::string> known_;
};

void HostListReader::add_host(const std::string& name) {
  if (!is_host_name(name))
    refuse("'{}' is no host name; write node[1-4], node1..4 or n1,n2", printable(name));
  if (!known_.insert(name).second) refuse("host {} is named twice; name it once", name);
  if (hosts.size() == kMostHosts) refuse("more than {} hosts are named; name fewer", kMostHosts);
  hosts.push_back(name);
}

// Numbers are as wide as the first one.
void HostListReader::add_range(const std::string& before, const std::string& range,
                               const std::string& after) {
  const std::size_t dash = std::min(range.find('-'), range.size());
  const std::string first = range.substr(0, dash);
  const std::string last = dash < range.size() ? range.substr(dash + 1) : first;
  if (!is_number(first) || !is_number(last))
    refuse("'{}' is no number or range; write node[1-4] or node[01-04,7]", printable(range));
  const long begin = number_of(first), end = number_of(last);
  if (begin > end) refuse("range {} runs backwards; write {}-{}", range, last, first);
  if (end - begin >= static_cast<long>(kMostHosts))
    refuse("range {} has more than {} hosts; name fewer", range, kMostHosts);
  for (long number = begin; number <= end; ++number)
    add_item(fmt::format("{}{:0{}}{}", before, number, first.size(), after));
}

void HostListReader::add_item(const std::string& item) {
  const std::size_t open = item.find_first_of("[]");
  const std::size_t close = open == std::string::npos ? open : item.find_first_of("[]", open + 1);
  if (close != std::string::npos && item[open] == '[' && item[close] == ']') {
    for (const std::string& range : split(std::string_view(item).substr(open + 1, close - open - 1), ','))
      add_range(item.substr(0, open), range, item.substr(close + 1));
    return;
  }
  // The last ".." between numbers.
  for (std::size_t dots = item.rfind(".."); dots != std::string::npos && dots > 0;
       dots = item.rfind("..", dots - 1)) {
    const std::size_t before = item.find_last_not_of(kNumerals, dots - 1) + 1;  // npos + 1 is 0
    const std::size_t after = std::min(item.find_first_not_of(kNumerals, dots + 2), item.size());
    if (before == dots || after == dots + 2) continue;
    add_range(item.substr(0, before),
              item.substr(before, dots - before) + "-" + item.substr(dots + 2, after - dots - 2),
              item.substr(after));
    return;
  }
  add_host(item);
}

// Items stand between commas; a comma inside brackets is part of its item.
void HostListReader::add_list(const std::string& list) {
  std::string item;
  bool is_open = false;
  for (const std::string& part : split(list, ',')) {
    item += (is_open ? "," : "") + part;
    const std::size_t bracket = item.rfind('[');
    is_open = bracket != std::string::npos && item.find(']', bracket) == std::string::npos;
    if (is_open) continue;
    add_item(item);
    item.clear();
  }
  if (is_open) refuse("{} lacks a closing bracket; write node[1-4]", printable(item));
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

std::vector<std::string> read_host_list(const std::string& origin, std::string_view list, ExitCode code) {
  HostListReader reader;
  reader.origin = origin;
  reader.code = code;
  reader.add_list(std::string(list));
  return reader.hosts;
}

std::vector<std::string> read_host_file(const std::filesystem::path& file) {
  std::error_code error;
  std::ifstream stream(file);
  const std::string name = printable(file.string());
  if (!stream || std::filesystem::is_directory(file, error))
    throw Error(ExitCode::bad_data,
                "option --hostfile: '{}' can't be read; give a file of lines such as 'node1 slots=8'", name);
  HostListReader reader;
  reader.code = ExitCode::bad_data;
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    reader.origin = fmt::format("{}, line {}", name, number);
    std::istringstream words(line.substr(0, line.find('#')));
    std::string host, field;
    if (!(words >> host)) continue;
    while (words >> field) {
      const std::size_t equals = std::min(field.find('='), field.size());
      const std::string key = field.substr(0, equals);
      if ((key != "slots" && key != "max_slots" && key != "max-slots") ||
          !is_number(field.substr(std::min(equals + 1, field.size()))))
        throw Error(reader.code, "{}: '{}' is not slots=N; write lines such as 'node1 slots=8'",
                    reader.origin, printable(field));
    }
    reader.add_list(host);
  }
  if (reader.hosts.empty())
    throw Error(ExitCode::bad_data,
                "option --hostfile: '{}' names no host; write lines such as 'node1 slots=8'", name);
  return reader.hosts;
}

std::string host_list_text(std::span<const std::string> hosts) {
  std::vector<NumberedName> names;
  for (const std::string& host : hosts) names.push_back(numbered(host));
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

}  // namespace plumb
