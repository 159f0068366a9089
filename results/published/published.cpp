#include "results/published/published.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/csv.h"
#include "base/options/option_table.h"
#include "base/text.h"
#include "base/text_table.h"
#include "models/catalogue.h"
#include "results/record/gpu_name.h"

namespace plumb {

extern const std::string_view kPublishedCsv;

namespace {

constexpr std::ptrdiff_t kOwnColumns = 3;  // the last ones of the file, for comparisons only

template <typename Number>
std::optional<Number> number_of(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(parse_number<Number>("published.csv", text, {}));
}

PublishedResult result_of(const std::vector<std::string>& fields) {
  PublishedResult row{.source = fields[0],
                      .framework = fields[1],
                      .framework_version = fields[2],
                      .model = fields[3],
                      .dataset_or_mode = fields[4],
                      .precision = fields[5],
                      .batch_per_device = number_of<std::int64_t>(fields[6]),
                      .nodes = number_of<int>(fields[7]),
                      .devices_per_node = number_of<int>(fields[8]),
                      .images_per_second = number_of<double>(fields[9]).value_or(0),
                      .speedup = number_of<double>(fields[10]),
                      .notes = fields[11],
                      .inconsistency = fields[12],
                      .csv = fields};
  const Model* trained = find_model(fields[15]);  // null: by other frameworks only
  const std::string data = row.dataset_or_mode.substr(0, row.dataset_or_mode.find(';'));
  row.configuration = {.framework = row.framework,
                       .model = fields[15],
                       .precision = fields[16],
                       .device = fields[13],
                       .data = data.starts_with("max ") ? "" : data,
                       .batch_per_device = row.batch_per_device.value_or(0),
                       .nodes = row.nodes.value_or(0),
                       .devices_per_node = row.devices_per_node.value_or(0),
                       .image_size = trained != nullptr ? trained->image_size : 224,
                       .head = fields[17],
                       .classes = number_of<std::int64_t>(fields[14]).value_or(0)};
  return row;
}

std::string source_text(const PublishedResult& row) {
  return fmt::format("{}, {} {}{}{}{}{}", row.source, row.framework, row.framework_version,
                     row.notes.empty() ? "" : ": ", row.notes,
                     row.inconsistency.empty() ? "" : "; CONTRADICTED: ", row.inconsistency);
}

// "1.4M", "125k", "85742"
std::string count_text(std::int64_t count) {
  if (count % 100'000 == 0) return fmt::format("{:g}M", static_cast<double>(count) / 1e6);
  return count % 1000 == 0 ? fmt::format("{}k", count / 1000) : std::to_string(count);
}

std::string throughput_text(double images_per_second) {
  if (images_per_second <= 0) return "-";
  return fmt::format("{:.{}f}", images_per_second, images_per_second < 1e5 ? 2 : 0);
}

// `sources`: those of earlier rows, each once; a row names its own by number.
TextRow table_row(const PublishedResult& row, std::vector<std::string>& sources) {
  const Configuration& c = row.configuration;
  const std::string source = source_text(row);
  const auto place = std::ranges::find(sources, source) - sources.begin();
  if (place == std::ssize(sources)) sources.push_back(source);
  return {framework_family(row.framework), c.model + (c.head == "none" ? "" : " " + c.head),
          // Synthetic faces have their number of classes behind them; a data set's name implies it.
          c.data == "synthetic" && c.classes > 0 ? c.data + " " + count_text(c.classes) : c.data,
          row.precision, c.batch_per_device > 0 ? std::to_string(c.batch_per_device) : "-", c.case_name(),
          throughput_text(row.images_per_second), row.speedup ? fmt::format("{:.2f}", *row.speedup) : "-",
          fmt::format("[{}]", place + 1)};
}

// "H200 (Hopper)"
std::string gpu_text(const std::string& gpu) {
  if (gpu.empty()) return "GPU not stated";
  const std::string generation = generation_name(gpu_generation(gpu));
  const bool says_it = generation.empty() || gpu.find(" " + generation) != std::string::npos;
  return says_it ? gpu : fmt::format("{} ({})", gpu, generation);
}

// Rows by GPU, the newest generation first, then by name, those without a GPU last; rows of one GPU in their
// order. Keys: the generation's place, the GPU as it is named.
std::map<std::pair<int, std::string>, std::vector<const PublishedResult*>> by_gpu(
    std::span<const PublishedResult> results) {
  std::map<std::pair<int, std::string>, std::vector<const PublishedResult*>> groups;
  for (const PublishedResult& row : results) {
    const std::string& gpu = row.configuration.device;
    const int place = gpu.empty() ? 1 : -static_cast<int>(gpu_generation(gpu));
    groups[{place, gpu_text(gpu)}].push_back(&row);
  }
  return groups;
}

}  // namespace

std::vector<PublishedResult> published_results() {
  std::vector<std::vector<std::string>> records = csv_records(kPublishedCsv, "published.csv");
  records.erase(records.begin());
  return mapped(records, result_of);
}

std::string framework_family(const std::string& framework) {
  const std::string family = framework.substr(0, framework.find(" ("));
  return family == "NGC TensorFlow 1.x" ? "NGC TensorFlow" : family;
}

std::string published_table(std::span<const PublishedResult> results) {
  std::vector<std::string> sources;
  const TextRow head{"framework", "model", "data", "prec", "batch", "case", "images/s", "speedup", "source"};
  std::vector<TextRow> rows{head};
  const auto groups = by_gpu(results);
  for (const auto& [gpu, members] : groups)
    for (const PublishedResult* row : members) rows.push_back(table_row(*row, sources));
  constexpr const char* kAlignment = "llllrlrrl";
  const std::vector<std::size_t> widths = column_widths(rows);
  std::string text = padded_row(head, widths, kAlignment);
  auto row = rows.begin() + 1;
  for (const auto& [gpu, members] : groups) {
    text += fmt::format("\n{}\n", gpu.second);
    for (std::size_t i = 0; i < members.size(); ++i) text += padded_row(*row++, widths, kAlignment);
  }
  text += "\n";
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string mark = fmt::format("[{}] ", i + 1);
    text += hanging_lines(sources[i], std::string(mark.size(), ' '), mark);
  }
  return text;
}

std::string published_csv(std::span<const PublishedResult> results) {
  std::string text = std::string(kPublishedCsv.substr(0, kPublishedCsv.find(",network"))) + "\n";
  for (const PublishedResult& row : results)
    text += csv_record({row.csv.begin(), row.csv.end() - kOwnColumns});
  return text;
}

struct PublishedList {
  std::vector<PublishedResult> results;
  static void fields(auto& self, auto&& each) { each("results", self.results); }
};

const Document kPublishedDocument =
    document_of<PublishedList>("plumbline.published/1", "Published figures: plumbline published --json.");

Json published_json(std::vector<PublishedResult> results) {
  return document_json(kPublishedDocument.name, PublishedList{std::move(results)});
}

std::string end_of_source(const std::string& source) {
  constexpr std::size_t kColumns = 33;
  return source.size() <= kColumns ? source : ".." + source.substr(source.size() - kColumns + 2);
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
  for (const Difference& difference : differences) append_part(text, in_words(difference));
  return text;
}

}  // namespace plumb
