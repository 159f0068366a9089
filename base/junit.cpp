#include "base/junit.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace plumb {
namespace {

// Valid UTF-8 without the control characters that XML has no place for.
std::string xml_text(const std::string& text) {
  using nlohmann::json;
  const std::string valid =
      json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
  std::string allowed;
  for (const char letter : valid) allowed += letter >= 0 && letter < ' ' ? '?' : letter;
  return markup_escaped(allowed);
}

std::string body_of(const JunitCase& one) {
  const std::string message = xml_text(one.message);
  if (one.result == JunitCase::Result::passed) return fmt::format("<system-out>{}</system-out>", message);
  if (one.result == JunitCase::Result::skipped) return fmt::format("<skipped message=\"{}\"/>", message);
  return fmt::format("<{} type=\"{}\" message=\"{}\"/>",
                     one.result == JunitCase::Result::failure ? "failure" : "error", xml_text(one.type),
                     message);
}

}  // namespace

std::string junit_text(const std::string& class_name, const std::string& suite,
                       const std::vector<JunitCase>& cases) {
  const auto count = [&](JunitCase::Result result) {
    return std::ranges::count(cases, result, &JunitCase::result);
  };
  const std::string counts = fmt::format(R"( tests="{}" failures="{}" errors="{}" skipped="{}")",
                                         cases.size(), count(JunitCase::Result::failure),
                                         count(JunitCase::Result::error), count(JunitCase::Result::skipped));
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites{}>\n"
      "  <testsuite name=\"{}\"{}>\n",
      counts, xml_text(suite), counts);
  for (const JunitCase& one : cases)
    text += fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n      {}\n    </testcase>\n",
                        xml_text(class_name), xml_text(one.name), body_of(one));
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace plumb
