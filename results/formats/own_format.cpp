#include "results/formats/own_format.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/paths.h"
#include "base/text.h"
#include "base/whole_file.h"

namespace plumb {
namespace {

// What the format's facts refer to.
struct OwnTexts {
  std::string name, framework, line, loss;
};

class OwnFormat final : private OwnTexts, public SpeedFormat {
 public:
  OwnFormat(OwnTexts texts, const SpeedFacts& speed_facts)
      : OwnTexts(std::move(texts)),
        SpeedFormat({.name = OwnTexts::name,
                     .framework = OwnTexts::framework,
                     .source = "a format of one's own",
                     .example = OwnTexts::line,
                     .shape = std::string_view(OwnTexts::line),
                     .loss = OwnTexts::loss,
                     .default_window = {.iterations = 40, .warmup = 20},
                     .index_step = 0,
                     .has_no_end = true},
                    speed_facts) {}
};

// The text of a key, or `otherwise`; one of `allowed` unless that is empty.
std::string text_at(const toml::table& table, const std::string& file, const char* key,
                    const std::string& otherwise, const std::vector<std::string>& allowed = {}) {
  const toml::node* const node = table.get(key);
  const std::optional<std::string> text = node ? node->value_exact<std::string>() : otherwise;
  if (!text || text->empty() || (!allowed.empty() && std::ranges::find(allowed, *text) == allowed.end()))
    throw Error(ExitCode::bad_data, "{}: key {} is not {}", file, key,
                allowed.empty() ? "a text; write one" : fmt::format("one of {}", fmt::join(allowed, ", ")));
  return *text;
}

toml::table table_of(const std::filesystem::path& path, const std::string& file) {
  try {
    toml::table table = toml::parse(read_whole_file(path, {.remedy = "name a TOML file"}));
    constexpr std::array kKeys{"line", "value", "of", "loss", "name", "framework"};
    for (const auto& [key, value] : table)
      if (std::ranges::find(kKeys, key.str()) == kKeys.end())
        throw Error(ExitCode::bad_data, "{}: key {} is not known; keys are {}", file, printable(key.str()),
                    fmt::join(kKeys, ", "));
    return table;
  } catch (const toml::parse_error& error) {
    throw Error(ExitCode::bad_data, "{}:{}: {}", file, error.source().begin.line,
                printable(error.description()));
  }
}

}  // namespace

std::shared_ptr<const LogFormat> read_own_format(const std::filesystem::path& path) {
  const std::string file = printable(path.string());
  const toml::table table = table_of(path, file);
  OwnTexts texts{.name = text_at(table, file, "name", path.stem().string()),
                 .framework = text_at(table, file, "framework", path.stem().string()),
                 .line = text_at(table, file, "line", ""),
                 .loss = text_at(table, file, "loss", "loss")};
  const std::string unit = text_at(table, file, "value", "images/s", {"images/s", "seconds", "milliseconds"});
  const std::string of = text_at(table, file, "of", "run", {"run", "node", "rank"});
  for (const char* field : {"{iteration}", "{value}"})
    if (texts.line.find(field) == std::string::npos)
      throw Error(ExitCode::bad_data, "{}: key line has no {}; put it where the number is", file, field);
  try {
    return std::make_shared<OwnFormat>(std::move(texts),
                                       SpeedFacts{.seconds = unit == "seconds"        ? 1
                                                             : unit == "milliseconds" ? 0.001
                                                                                      : 0,
                                                  .of = of == "run"    ? SpeedFacts::run
                                                        : of == "node" ? SpeedFacts::node
                                                                       : SpeedFacts::rank});
  } catch (const char* problem) {  // LineShape's
    throw Error(ExitCode::bad_data, "{}: key line: {}", file, problem);
  }
}

}  // namespace plumb
