#include "results/published/published.h"

#include <charconv>

#include "base/csv.h"
#include "base/error.h"
#include "base/text.h"
#include "models/catalogue.h"

namespace plumb {

extern const std::string_view kPublishedCsv;

namespace {

const std::vector<std::string> kHeader = split(
    "source,framework,framework_version,model,dataset_or_mode,precision,batch_size_per_device,nodes,"
    "gpus_per_node,throughput_samples_per_s,speedup,notes,inconsistency,gpu,classes,network,"
    "compared_precision,head",
    ',');

[[noreturn]] void refuse(std::size_t record, const std::string& what) {
  throw Error(ExitCode::bad_data, "published.csv, record {}: {}", record, what);
}

template <typename Number>
std::optional<Number> number_of(const std::string& text, std::size_t record, const std::string& column) {
  if (text.empty()) return std::nullopt;
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0))
    refuse(record, fmt::format("{} '{}' is no number above 0", column, text));
  return value;
}

PublishedResult result_of(const std::vector<std::string>& fields, std::size_t record) {
  if (fields.size() != kHeader.size())
    refuse(record, fmt::format("has {} fields, not {}", fields.size(), kHeader.size()));
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

}  // namespace

std::vector<PublishedResult> published_results_of(std::string_view csv) {
  const auto records = csv_records(csv, "published.csv");
  if (records.empty() || records.front() != kHeader) refuse(1, "is not the header that it should be");
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

}  // namespace plumb
