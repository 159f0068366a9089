// A folder of logs. Input: up to 8 files as "case/name.log", a newline, lines, and a form feed after each.

#include "results/analysis/analyze.h"
#include "results/analysis/log_tree.h"
#include "tests/fuzz/fuzz_input.h"

using namespace plumb;

namespace {

bool is_plain(std::string_view name) {
  return !name.empty() && name.size() < 200 && name.find('\0') == std::string_view::npos &&
         name.find("..") == std::string_view::npos && name.front() != '/';
}

}  // namespace

FUZZ_TARGET(log_tree) {
  const FuzzFolder folder;
  std::string_view rest = text_of(data, size);
  for (int i = 0; i < 8 && !rest.empty(); ++i) {
    std::string_view text = take_until(rest, '\f');
    const std::string_view name = take_until(text, '\n');
    std::string_view fields = name;
    const std::string_view case_name = take_until(fields, '/');
    parse_log_name(case_name, fields);
    if (is_plain(name)) folder.write(name, text);
  }
  refuse_or([&] {
    const Analysis analysis = analyze_logs(folder.path(), {});
    table_text(analysis);
    markdown_text(analysis);
    message_lines(analysis.notes, analysis.bad, 4);
    dictionary_text(analysis.dictionary);
  });
  return 0;
}
