// Names of published documents, short enough for a legend.
#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "results/report/report_curves.h"

namespace plumb {
namespace {

constexpr std::string_view kDigits = "0123456789";

struct DocumentPlace {
  std::string repository, path;
};

// "owner/name@commit:path:line", "name branch one:path:line" or "name/path:line".
DocumentPlace place_of(const std::string& source) {
  const std::size_t colon = source.find(':');
  const std::size_t slash = source.find('/');
  if (colon == std::string::npos || kDigits.find(source[colon + 1]) != std::string_view::npos)
    return slash == std::string::npos ? DocumentPlace{source, ""}
                                      : DocumentPlace{source.substr(0, slash), source.substr(slash + 1)};
  const std::string repository = source.substr(0, std::min(colon, source.find_first_of("@ ")));
  return {repository.substr(repository.rfind('/') + 1), source.substr(colon + 1)};
}

}  // namespace

std::string document_name(const std::string& source) {
  constexpr std::string_view kMlperfLogs = "/resnet/result_*.txt";
  if (source.ends_with(kMlperfLogs)) {
    const std::string system = source.substr(0, source.size() - kMlperfLogs.size());
    return system.substr(system.rfind('/') + 1);
  }
  DocumentPlace place = place_of(source);
  place.path.resize(std::min(place.path.find_first_of(": "), place.path.size()));
  std::vector<std::string> parts = split(place.path, '/');
  const std::string file = parts.back();
  parts.pop_back();
  const std::string stem = file.substr(0, file.rfind('.'));
  std::string name = place.repository;
  // A README is named by its folders; those with a version are the network's, which the label has.
  if (stem == "README")
    for (const std::string& folder : parts)
      if (folder != "..." && folder.find_first_of(kDigits) == std::string::npos)
        append_part(name, folder, " ");
  append_part(name, replaced(stem, '_', " "), " ");
  return name;
}

std::string table_remarks(const PublishedResult& row) {
  constexpr std::size_t kLongest = 40;  // letters; whole sentences stand in the tooltip
  std::string remarks;
  for (const std::string& clause : split(replaced(row.notes, ';', "&"), '&')) {
    const std::size_t begin = clause.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    const std::string text = clause.substr(begin, clause.find_last_not_of(' ') + 1 - begin);
    const bool is_known = text.starts_with("batch") || text.starts_with("GPU:") ||
                          text.starts_with("computed:") || text.starts_with("median_speed");
    if (!is_known && text.size() <= kLongest) append_part(remarks, text);
  }
  return remarks;
}

}  // namespace plumb
