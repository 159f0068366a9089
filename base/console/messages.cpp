#include "base/console/messages.h"

#include <spdlog/sinks/ansicolor_sink.h>

#include <limits>
#include <memory>

#include "base/paths.h"

namespace plumb {
namespace {

namespace level = spdlog::level;
using Sink = spdlog::sinks::ansicolor_sink<spdlog::details::console_mutex>;

constexpr int kLinesOffTerminal = 4;
constexpr auto kLast = level::critical;  // said to the quiet, too

std::shared_ptr<Sink> sink_to(std::FILE* stream, const Terminal& terminal) {
  auto sink = std::make_shared<Sink>(
      stream, terminal.colors ? spdlog::color_mode::always : spdlog::color_mode::never);
  for (const auto plain : {level::debug, level::info, kLast}) sink->set_color(plain, sink->reset);
  sink->set_color(level::warn, sink->yellow);
  return sink;
}

level::level_enum least_level(Loudness loudness) {
  if (loudness == Loudness::quiet) return kLast;
  return loudness == Loudness::verbose ? level::debug : level::info;
}

}  // namespace

Messages::Messages(std::FILE* stream, const Terminal& terminal, Loudness loudness, const std::string& origin)
    : logger_("", sink_to(stream, terminal)),
      lines_left_(terminal.is_terminal ? std::numeric_limits<int>::max() : kLinesOffTerminal),
      origin_(origin) {
  logger_.set_level(least_level(loudness));
  logger_.set_pattern("%^%v%$");
}

// Keeps `lines_kept` lines for more important messages.
void Messages::log_keeping(int lines_kept, level::level_enum level, const std::string& sentence) {
  if (!logger_.should_log(level) || lines_left_ <= lines_kept) return;
  --lines_left_;
  const std::string line = printable(sentence);  // names of files may hold anything
  logger_.log(level, level == kLast ? line : origin_ + line);
}

void Messages::warn(const std::string& sentence) {
  log_keeping(1, level::warn, sentence);
  warned_ = true;
}

void Messages::last(const std::string& sentence) {
  log_keeping(0, kLast, sentence);
  lines_left_ = 0;
  logger_.flush();
}

}  // namespace plumb
