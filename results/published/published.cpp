#include "results/published/published.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/csv.h"
#include "base/error.h"
#include "base/text.h"
#include "models/catalogue.h"

namespace plumb {

extern const std::string_view kPublishedCsv;

namespace {

const std::vector<std::string> kHeader = split(
    "source,framework,framework_version,model,dataset_or_mode,precision,batch_size_per_device,nodes,"
    "gpus_per_node,throughput_samples_per_s,speedup,notes",
    ',');

// The GPU of DLPerf's tables (DLPerf/README.md, commit c89430b), of rows whose notes name none.
constexpr const char* kGpu = "V100-SXM2-16GB";

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

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// "face_emore; partial-fc r=0.1" -> "pfc 0.1". PLSC's distributed softmax is its only one.
std::string head_of(const PublishedResult& row, bool is_face) {
  if (!is_face) return "none";
  const std::string& mode = row.dataset_or_mode;
  if (contains(mode, "data-parallel")) return "dp";
  if (contains(mode, "partial-fc r=1.0")) return "pfc 1";
  if (const std::size_t rate = mode.find("partial-fc r="); rate != std::string::npos)
    return "pfc " + mode.substr(rate + 13);
  return "mp";
}

// The text behind `mark`, up to ';' or ',': notes are like "GPU: H200; classes=618000, embedding 512".
std::optional<std::string> noted(const std::string& notes, const std::string& mark) {
  const std::size_t at = notes.find(mark);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t begin = at + mark.size();
  return notes.substr(begin, notes.find_first_of(";,", begin) - begin);
}

// As the notes say, else the identities of the data set. PLSC's benchmark trains on random images with MS1M's
// number of them.
std::int64_t classes_of(const PublishedResult& row, const std::string& data, bool is_face,
                        std::size_t record) {
  if (const auto classes = noted(row.notes, "classes="))
    return number_of<std::int64_t>(*classes, record, "classes in notes").value_or(0);
  return !is_face || data.starts_with("max ") ? 0 : data == "glint360k" ? 360232 : 85742;
}

std::string device_of(const std::string& notes) {
  if (const auto gpu = noted(notes, "GPU: ")) return *gpu;
  if (contains(notes, "hardware unspecified")) return "";
  return contains(notes, "V100-SXM2-32GB") || contains(notes, "V100-32GB") ? "V100-SXM2-32GB" : kGpu;
}

constexpr const char* kPureFp16 = "pure fp16";

// Half precision in a column of either name is mixed, as Plumbline's fp16 is (fp32 masters, statistics and
// losses), but where all of the network was cast (DLPerf's NGC MXNet without amp; gluon-cv's net.cast; level
// O2 of Paddle's amp).
std::string precision_of(const PublishedResult& row) {
  const bool is_cast = contains(row.notes, "without amp") || contains(row.notes, "AMP level O2") ||
                       row.framework == "MXNet (gluon-cv)";
  if (row.precision == "FP16" && is_cast) return kPureFp16;
  return row.precision == "AMP" ? "fp16" : lower_case(row.precision);
}

Configuration configuration_of(const PublishedResult& row, std::size_t record) {
  const std::string model = network_of_table(row.model);
  const Model* trained = find_model(model);  // null: by other frameworks only
  const bool is_face = trained != nullptr && trained->margin_head;
  const std::string data = row.dataset_or_mode.substr(0, row.dataset_or_mode.find(';'));
  return {.framework = row.framework,
          .model = model,
          .precision = precision_of(row),
          .device = device_of(row.notes),
          .data = data.starts_with("max ") ? "" : data,
          .batch_per_device = row.batch_per_device.value_or(0),
          .nodes = row.nodes.value_or(0),
          .devices_per_node = row.devices_per_node.value_or(0),
          .image_size = trained != nullptr ? trained->image_size : 224,
          .head = head_of(row, is_face),
          .classes = classes_of(row, data, is_face, record)};
}

// Where the published tables contradict each other or their sources. `source`, `framework`,
// `precision`: part of the row's source, whole framework and precision; empty and 0 match all.
struct KnownInconsistency {
  const char *source, *framework, *precision;
  double images_per_second;
  const char* really;  // the precision in our terms, where the published one is wrong
  const char* sentence;
};
constexpr const char* kPureHalf =
    "pure fp16 in a column headed AMP; with AMP NGC MXNet's own table has 27558.28 on 4n8g";
constexpr const char* kContaminated =
    "probably too low: the script's window takes lines of batch 0, which 8 ranks in one log cause";
constexpr std::array<KnownInconsistency, 10> kInconsistencies{
    {{"DLPerf/README.md", "NGC MXNet", "FP32", 11233.92, "",
      "the report and NGC MXNet's own table say 11331.93 (speedup 28.89)"},
     {"", "NGC MXNet", "FP32", 11331.93, "", "DLPerf's top README says 11233.92 (speedup 28.67)"},
     {"report_v1.md", "NGC MXNet", "AMP", 0, kPureFp16, kPureHalf},
     {"DLPerf/README.md", "NGC MXNet", "AMP", 0, kPureFp16, kPureHalf},
     {"", "MXNet", "AMP", 0, kPureFp16,
      "the network cast to fp16, without loss scaling, in a column headed AMP"},
     {"", "PaddlePaddle", "AMP", 11617.57, "",
      "batch 196 with DALI beside other batches without; batch 224 without DALI has 10633.22"},
     {"", "PaddlePaddle", "", 10633.22, "",
      "the printed speedup 10.2 is none of its figures: 10633.22 / 1034.64 is 10.28"},
     {"wanghuancoder/PerformanceReport", "", "", 0, "", "PaddlePaddle's cells are empty in this table"},
     {"", "PaddlePaddle PLSC", "", 2545.3, "", kContaminated},
     {"", "PaddlePaddle PLSC", "", 2548.18, "", kContaminated}}};

// Contradictions that a row's notes name.
constexpr std::array<std::pair<const char*, const char*>, 3> kNotedInconsistencies{
    {{"the printed scaling belongs to an older", "the printed speedup is against another figure on one GPU"},
     {"the sentence below says DGX-1", "the table's heading says DGX-2, the sentence below it DGX-1"},
     {"256 by this table", "batch 128 by the report behind this table, which itself says 256"}}};

void mark_inconsistency(PublishedResult& row) {
  for (const auto& [note, sentence] : kNotedInconsistencies)
    if (contains(row.notes, note)) row.inconsistency = sentence;
  for (const KnownInconsistency& known : kInconsistencies) {
    if (!contains(row.source, known.source)) continue;
    if (*known.framework && row.framework != known.framework) continue;
    if (*known.precision && row.precision != known.precision) continue;
    if (known.images_per_second != 0 && std::abs(row.images_per_second - known.images_per_second) > 0.005)
      continue;
    row.inconsistency = known.sentence;
    if (*known.really) row.configuration.precision = known.really;
    return;
  }
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
                      .notes = fields[11]};
  row.configuration = configuration_of(row, record);
  mark_inconsistency(row);
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
