#include "bench/output/published_text.h"

#include <spdlog/fmt/fmt.h>

#include <map>
#include <optional>

#include "bench/output/text.h"
#include "results/csv.h"
#include "results/text_table.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kColumns = 100;

// Texts that rows refer to by number, each once, in the order of their first use.
class References {
 public:
  std::size_t number_of(const std::string& text) {
    const auto [entry, is_new] = numbers_.emplace(text, texts_.size() + 1);
    if (is_new) texts_.push_back(text);
    return entry->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> texts_;
};

// "[3] text", what doesn't fit on the line below it.
std::string reference_lines(const std::string& mark, const std::string& text) {
  const std::string indent(mark.size() + 1, ' ');
  std::string lines;
  for (const std::string& line : wrapped_lines(text, kColumns - indent.size()))
    lines += (lines.empty() ? mark + " " : indent) + line + "\n";
  return lines;
}

std::string source_text(const PublishedResult& row) {
  return row.source + ", " + row.framework + " " + row.framework_version +
         (row.notes.empty() ? "" : ": " + row.notes);
}

// "a", "b", …, "z", "aa"
std::string letter_of(std::size_t number) {
  std::string letters;
  for (; number > 0; number = (number - 1) / 26)
    letters.insert(letters.begin(), static_cast<char>('a' + (number - 1) % 26));
  return letters;
}

TextRow table_row(const PublishedResult& row, References& sources, References& flaws) {
  const Configuration& c = row.configuration;
  const std::string flaw =
      row.inconsistency.empty() ? "" : " " + letter_of(flaws.number_of(row.inconsistency));
  return {framework_family(row.framework),
          c.model,
          c.head == "none" ? "" : c.head,
          c.data,
          row.precision,
          std::to_string(c.batch_per_device),
          c.case_name(),
          row.images_per_second > 0 ? fmt::format("{:.2f}", row.images_per_second) : "-",
          row.speedup ? fmt::format("{:.2f}", *row.speedup) : "-",
          "[" + std::to_string(sources.number_of(source_text(row))) + "]" + flaw};
}

template <typename Number>
std::string text_or_none(const std::optional<Number>& number) {
  return number ? fmt::format("{}", *number) : "";
}

template <typename Number>
Json json_or_null(const std::optional<Number>& number) {
  return number ? Json(*number) : Json(nullptr);
}

}  // namespace

std::string published_table(std::span<const PublishedResult> results) {
  References sources, flaws;
  std::vector<TextRow> rows{
      {"framework", "model", "head", "data", "prec", "batch", "case", "images/s", "speedup", "source"}};
  for (const PublishedResult& row : results) rows.push_back(table_row(row, sources, flaws));
  std::string text = padded_table(rows, "lllllrlrrl") + "\n";
  for (const std::string& source : sources.texts())
    text += reference_lines("[" + std::to_string(sources.number_of(source)) + "]", source);
  for (const std::string& flaw : flaws.texts())
    text += reference_lines(letter_of(flaws.number_of(flaw)), flaw);
  return text;
}

std::string published_csv(std::span<const PublishedResult> results) {
  std::string text = csv_record({"source", "framework", "framework_version", "model", "dataset_or_mode",
                                 "precision", "batch_size_per_device", "nodes", "gpus_per_node",
                                 "throughput_samples_per_s", "speedup", "notes", "inconsistency"});
  for (const PublishedResult& row : results)
    text += csv_record({row.source, row.framework, row.framework_version, row.model, row.dataset_or_mode,
                        row.precision, text_or_none(row.batch_per_device), text_or_none(row.nodes),
                        text_or_none(row.devices_per_node),
                        row.images_per_second > 0 ? fmt::format("{}", row.images_per_second) : "",
                        text_or_none(row.speedup), row.notes, row.inconsistency});
  return text;
}

Json published_result_json(const PublishedResult& row) {
  const Configuration& c = row.configuration;
  return {{"source", row.source},
          {"framework", row.framework},
          {"framework_version", row.framework_version},
          {"model", row.model},
          {"dataset_or_mode", row.dataset_or_mode},
          {"precision", row.precision},
          {"batch_per_device", json_or_null(row.batch_per_device)},
          {"nodes", json_or_null(row.nodes)},
          {"devices_per_node", json_or_null(row.devices_per_node)},
          {"images_per_second", row.images_per_second > 0 ? Json(row.images_per_second) : Json(nullptr)},
          {"speedup", json_or_null(row.speedup)},
          {"notes", row.notes},
          {"inconsistency", row.inconsistency},
          {"comparable_as",
           {{"model", c.model},
            {"precision", c.precision},
            {"device", c.device},
            {"data", c.data},
            {"head", c.head}}}};
}

Json published_json(std::span<const PublishedResult> results) {
  Json json{{"schema", "plumbline.published/1"}, {"results", Json::array()}};
  for (const PublishedResult& row : results) json["results"].push_back(published_result_json(row));
  return json;
}

std::string other_sides_text(const std::vector<Difference>& differences) {
  const auto in_words = [](const Difference& difference) {
    const std::string& what = difference.what;
    if (what == "device" || what == "precision" || what == "data") return difference.second;
    if (what == "batch per device") return "batch " + difference.second;
    if (what == "image size") return difference.second + " px";
    return what + " " + difference.second;
  };
  std::string text;
  for (const Difference& difference : differences) text += (text.empty() ? "" : ", ") + in_words(difference);
  return text;
}

}  // namespace plumb
