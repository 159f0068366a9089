#include "launch/hosts/ask_hosts.h"

#include <charconv>
#include <iostream>

#include "base/console/print.h"
#include "base/error.h"
#include "base/text.h"
#include "launch/hosts/name_lookup.h"

namespace plumb {
namespace {

constexpr double kLookUpSecondsHere = 10;
constexpr std::size_t kMostNamesForAll =
    64;  // with more hosts each looks up its own name and the first one's
constexpr int kMostClockQuestions = 5;
constexpr std::string_view kClockWord = "clock ";

// What hosts look up: all names, or their own and the first one.
std::vector<std::string> names_for(const std::vector<std::string>& hosts, const std::string& host) {
  if (hosts.size() <= kMostNamesForAll) return hosts;
  return host == hosts.front() ? std::vector{host} : std::vector{host, hosts.front()};
}

// This program's own sub-mode.
CommandWords fact_command(const HostQuestions& questions) {
  CommandWords words{own_program(), "doctor", "--here", "--clock", "--log-dir", questions.log_folder};
  // Without its option doctor asks for all programs.
  if (!questions.others) words.insert(words.end(), {"--program", questions.program});
  if (!questions.marker.empty()) words.insert(words.end(), {"--marker", questions.marker});
  if (!questions.names.empty())
    words.insert(words.end(), {"--names", fmt::format("{}", fmt::join(questions.names, ","))});
  return words;
}

// One host's lines while its command runs.
class Conversation {
 public:
  // Returns what the host is to read next; nothing: that was all.
  std::optional<std::string> take(const std::string& line) {
    const double now = wall_seconds();
    if (line.starts_with(kClockWord)) {
      take_clock(line, now);
    } else if (facts_.empty() && line.starts_with('{')) {
      facts_ = line;
      arrival_ = now;
    } else {
      return "";  // what a login prints
    }
    if (questions_++ == kMostClockQuestions) return std::nullopt;
    asked_ = wall_seconds();
    return "\n";
  }

  void put_into(HostAnswer& answer, const CommandEnd& end) const {
    answer.facts = host_facts_from_json(facts_);
    answer.answered = true;
    answer.clock = clock_;
    // A transport that passes no input on leaves the time until the facts came, for a bound.
    if (!clock_) answer.clock = {answer.facts.clock_seconds - (arrival_ - end.seconds / 2), end.seconds / 2};
  }

 private:
  // The other clock was read between question and answer: the shortest round trip tells most (RFC 5905, 8).
  void take_clock(const std::string& line, double now) {
    double seconds = 0;
    const char* const end = line.data() + line.size();
    if (std::from_chars(line.data() + kClockWord.size(), end, seconds).ec != std::errc()) return;
    const ClockOffset offset{seconds - (asked_ + now) / 2, (now - asked_) / 2};
    if (!clock_ || offset.uncertainty < clock_->uncertainty) clock_ = offset;
  }

  std::string facts_;
  double arrival_ = 0, asked_ = 0;
  int questions_ = 0;
  std::optional<ClockOffset> clock_;
};

}  // namespace

void answer_clock_questions() {
  for (std::string line; std::getline(std::cin, line);)
    print_text(fmt::format("{}{:.6f}\n", kClockWord, wall_seconds()));
}

std::vector<HostAnswer> ask_hosts(const std::vector<std::string>& hosts, const HostArguments& arguments,
                                  const HostTransport& transport, const HostQuestions& questions,
                                  const std::function<void(std::size_t)>& told, const SignalWatch& signals) {
  const auto addresses = look_up_names(hosts, kLookUpSecondsHere);
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
  std::vector<Conversation> conversations(hosts.size());
  const std::vector<CommandEnd> ends = run_side_by_side(
      commands,
      {.most_at_once = static_cast<std::size_t>(arguments.most_at_once),
       .timeout_seconds = arguments.timeout_seconds,
       .answer = [&](std::size_t index, const std::string& line) { return conversations[index].take(line); },
       .told = told},
      signals);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    answers[i].seconds = ends[i].seconds;
    try {
      conversations[i].put_into(answers[i], ends[i]);
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
