#include "results/published/reference.h"

#include <algorithm>
#include <charconv>

#include "base/csv.h"
#include "base/error.h"
#include "base/paths.h"
#include "base/text.h"
#include "base/units.h"
#include "base/whole_file.h"
#include "results/record/gpu_name.h"

namespace plumb {

extern const std::string_view kReferenceCsv;

namespace {

constexpr std::size_t kColumns = 13;

constexpr const char* kRemedy = "pass a file with the columns of results/published/reference.csv";

template <typename Number>
Number number_of(const std::string& name, const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!text.empty() && (error != std::errc() || end != text.data() + text.size()))
    throw Error(ExitCode::bad_data, "{}: '{}': expected a number; {}", name, printable(text), kRemedy);
  return value;
}

ReferenceSpeed reference_of(const std::string& name, const std::vector<std::string>& fields) {
  if (fields.size() != kColumns)
    throw Error(ExitCode::bad_data, "{}: expected {} fields, found {}; {}", name, kColumns, fields.size(),
                kRemedy);
  ReferenceSpeed reference{.configuration = {.model = fields[1],
                                             .precision = fields[2],
                                             .device = fields[0],
                                             .data = "synthetic",
                                             .batch_per_device = number_of<std::int64_t>(name, fields[3]),
                                             .nodes = 1,
                                             .devices_per_node = 1,
                                             .image_size = number_of<std::int64_t>(name, fields[4]),
                                             .head = fields[5],
                                             .classes = number_of<std::int64_t>(name, fields[6])},
                           .images_per_second = number_of<double>(name, fields[8]),
                           .low = number_of<double>(name, fields[9]),
                           .high = number_of<double>(name, fields[10]),
                           .runs = number_of<std::size_t>(name, fields[11]),
                           .source = fields[12]};
  for (const std::string& option : split(fields[7], ' '))
    if (const std::size_t equals = option.find('='); equals != option.npos)
      reference.configuration.options[option.substr(0, equals)] = option.substr(equals + 1);
  return reference;
}

}  // namespace

std::vector<ReferenceSpeed> reference_speeds(const std::string& file) {
  std::vector<ReferenceSpeed> references;
  const std::string name = file.empty() ? "reference.csv" : fmt::format("--reference {}", printable(file));
  const auto records = file.empty() ? csv_records(kReferenceCsv, name)
                                    : csv_records(read_whole_file(file, {.remedy = kRemedy}), name);
  for (std::size_t i = 1; i < records.size(); ++i) references.push_back(reference_of(name, records[i]));
  return references;
}

const ReferenceSpeed* find_reference(const std::vector<ReferenceSpeed>& references,
                                     const Configuration& own) {
  const auto is_alike = [&](const Configuration& one) {
    std::vector<Difference> found = setting_differences(one, own);
    std::erase_if(found, [](const Difference& difference) { return difference.what == "iterations"; });
    return found.empty() && is_same_device(own.device, one.device) && differences(one, own).empty();
  };
  return find_in(references, true, [&](const ReferenceSpeed& one) { return is_alike(one.configuration); });
}

std::string reference_text(const ReferenceSpeed& reference, double images_per_second) {
  return fmt::format("{} % of {:.1f} images/s, which {} reached (median of {})",
                     percent_text(images_per_second / reference.images_per_second),
                     reference.images_per_second, reference.configuration.device,
                     counted(reference.runs, "run"));
}

}  // namespace plumb
