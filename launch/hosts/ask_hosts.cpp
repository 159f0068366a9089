#include "launch/hosts/ask_hosts.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "launch/hosts/name_lookup.h"

namespace plumb {
namespace {

constexpr double kLookUpSecondsHere = 5;
constexpr std::size_t kMostNamesForAll =
    64;  // with more hosts each looks up its own name and the first one's

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
  if (!questions.marker.empty()) words.insert(words.end(), {"--marker", questions.marker});
  if (!questions.names.empty())
    words.insert(words.end(), {"--names", fmt::format("{}", fmt::join(questions.names, ","))});
  return words;
}

// NTP's offset and half of its round trip, by the four times of a question and its answer (RFC 5905, 8): the
// other clock was read at the begin and end of gathering facts.
ClockOffset clock_of(const HostFacts& facts, const CommandEnd& end) {
  const double begin = facts.clock_seconds, last = begin + facts.gathering_seconds;
  const double asked = end.began, answered = end.began + end.seconds;
  return {((begin - asked) + (last - answered)) / 2, ((answered - asked) - (last - begin)) / 2};
}

void take_answer(HostAnswer& answer, const CommandEnd& end) {
  const std::vector<std::string> lines = split(end.output, '\n');  // a login may print some
  const auto line = std::ranges::find_if(lines, [](const std::string& one) { return one.starts_with('{'); });
  answer.facts = host_facts_from_json(line == lines.end() ? "" : *line);
  answer.clock = clock_of(answer.facts, end);
  answer.answered = true;
}

}  // namespace

std::vector<HostAnswer> ask_hosts(const std::vector<std::string>& hosts, const HostArguments& arguments,
                                  const HostTransport& transport, const HostQuestions& questions,
                                  const std::function<void(std::size_t)>& told, const SignalWatch& signals) {
  const auto addresses = look_up_names(hosts, kLookUpSecondsHere, signals);
  std::vector<HostAnswer> answers(hosts.size());
  std::vector<CommandWords> commands;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    answers[i].name = hosts[i];
    const auto found = addresses.find(hosts[i]);
    answers[i].look_up_was_late = found == addresses.end();
    if (found != addresses.end()) answers[i].addresses = found->second;
    HostQuestions own = questions;
    own.names = names_for(hosts, hosts[i]);
    commands.push_back(words_on(
        transport, hosts[i], answers[i].addresses.value_or(std::vector<std::string>{}), fact_command(own)));
  }
  const std::vector<CommandEnd> ends =
      run_side_by_side(commands,
                       {.most_at_once = static_cast<std::size_t>(arguments.most_at_once),
                        .timeout_seconds = arguments.timeout_seconds,
                        .told = told},
                       signals);
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
  const double start = wall_seconds();
  HostAnswer answer{.answered = true, .facts = gather_host_facts(questions, signals)};
  answer.name = answer.facts.host;
  answer.seconds = wall_seconds() - start;
  return answer;
}

}  // namespace plumb
