#include "results/published/published.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "base/csv.h"
#include "base/error.h"
#include "base/text.h"
#include "base/text_table.h"
#include "models/catalogue.h"
#include "results/record/gpu_name.h"

namespace plumb {

extern const std::string_view kPublishedCsv;

namespace {

const std::vector<std::string> kHeader = split(
    "source,framework,framework_version,model,dataset_or_mode,precision,batch_size_per_device,nodes,"
    "gpus_per_node,throughput_samples_per_s,speedup,notes,inconsistency,gpu,classes,network,"
    "compared_precision,head",
    ',');

[[noreturn]] void refuse(std::size_t record, const std::string& what) {
  throw Error(ExitCode::bad_data, "published.csv:{}: {}", record, what);
}

template <typename Number>
std::optional<Number> number_of(const std::string& text, std::size_t record, const std::string& column) {
  if (text.empty()) return std::nullopt;
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0))
    refuse(record, fmt::format("{} '{}': expected a number above 0", column, text));
  return value;
}

PublishedResult result_of(const std::vector<std::string>& fields, std::size_t record) {
  if (fields.size() != kHeader.size())
    refuse(record, fmt::format("expected {1} fields, found {0}", fields.size(), kHeader.size()));
  PublishedResult row{.source = fields[0],
                      .framework = fields[1],
                      .framework_version = fields[2],
                      .model = fields[3],
                      .dataset_or_mode = fields[4],
                      .precision = fields[5],
                      .batch_per_device = number_of<std::int64_t>(fields[6], record, kHeader[6]),
                      .nodes = number_of<int>(fields[7], record, kHeader[7]),
                      .devices_per_node = number_of<int>(fields[8], record, kHeader[8]),
                      .images_per_second = number_of<double>(fields[9], record, kHeader[9]).value_or(0),
                      .speedup = number_of<double>(fields[10], record, kHeader[10]),
                      .notes = fields[11],
                      .inconsistency = fields[12]};
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
                       .classes = number_of<std::int64_t>(fields[14], record, kHeader[14]).value_or(0)};
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

template <typename Number>
std::string text_or_none(const std::optional<Number>& number) {
  return number ? fmt::format("{}", *number) : "";
}

}  // namespace

std::vector<PublishedResult> published_results_of(std::string_view csv) {
  const auto records = csv_records(csv, "published.csv");
  if (records.empty() || records.front() != kHeader) refuse(1, "expected the header");
  std::vector<PublishedResult> results;
  for (std::size_t i = 1; i < records.size(); ++i) results.push_back(result_of(records[i], i + 1));
  return results;
}

std::vector<PublishedResult> published_results() {
  return published_results_of(kPublishedCsv);
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
  std::string text = csv_record({kHeader.begin(), kHeader.end() - 3});
  for (const PublishedResult& row : results) {
    const Configuration& c = row.configuration;
    text += csv_record(
        {row.source, row.framework, row.framework_version, row.model, row.dataset_or_mode, row.precision,
         text_or_none(row.batch_per_device), text_or_none(row.nodes), text_or_none(row.devices_per_node),
         row.images_per_second > 0 ? fmt::format("{}", row.images_per_second) : "", text_or_none(row.speedup),
         row.notes, row.inconsistency, c.device, c.classes > 0 ? std::to_string(c.classes) : ""});
  }
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
