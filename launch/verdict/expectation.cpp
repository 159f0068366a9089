#include "launch/verdict/expectation.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/options/option_table.h"
#include "base/paths.h"
#include "base/shallow_json.h"
#include "base/text.h"
#include "base/whole_file.h"
#include "results/record/gpu_name.h"
#include "results/statistics/statistics.h"

namespace plumb {

const Document kExpectationDocument =
    document_of<Expectation>("plumbline.expect/1", "What hosts should reach: expect.json.");

const ExpectedDevice* Expectation::find(const std::string& name) const {
  const auto found = std::ranges::find_if(
      devices, [&](const ExpectedDevice& one) { return one.name == name || names_gpu(one.name, name); });
  return found == devices.end() ? nullptr : &*found;
}

ExpectedDevice expected_device(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos)
    throw Error(ExitCode::usage, "--device {}: expected a name and its images/s; pass --device h100=8500",
                printable(text));
  return {.name = text.substr(0, equals),
          .images_per_second = parse_number<double>("--device", text.substr(equals + 1),
                                                    {.lowest = 0, .highest = 1e9, .above_lowest = true}),
          .source = "--device"};
}

void Expectation::check(const ObjectReader& reader) const {
  if (schema != kExpectationDocument.name)
    reader.fail("schema",
                fmt::format("expected '{1}', found '{0}'", printable(schema), kExpectationDocument.name));
  for (const ExpectedDevice& device : devices)
    if (!(device.images_per_second > 0)) reader.fail("devices", "expected a speed above 0 for each device");
  for (const auto& speed : {link_bytes_per_second, within_host_bytes_per_second})
    if (speed && !(*speed > 0))
      reader.fail("link_bytes_per_second", "expected it, and within_host_…, above 0");
}

Expectation measured_expectation(const std::vector<ScreenedDevice>& devices,
                                 const std::vector<InsideOfHost>& insides, const std::optional<Links>& links,
                                 const std::vector<std::string>& hosts) {
  const auto is_there = [&](const std::string& host) { return std::ranges::count(hosts, host) > 0; };
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> speeds;  // alone, together
  for (const ScreenedDevice& device : devices) {
    if (!is_there(device.host)) continue;
    auto& [alone, together] = speeds[device.name];
    if (device.alone) alone.push_back(device.alone->images_per_second);
    if (device.together) together.push_back(device.together->images_per_second);
  }
  Expectation good;
  for (const auto& [name, both] : speeds)
    if (const auto& [alone, together] = both; !alone.empty())
      good.devices.push_back({name, median(alone),
                              together.empty() ? std::nullopt : std::optional(median(together)),
                              alone.size()});
  std::vector<double> within;
  for (const InsideOfHost& one : insides)
    if (one.bytes_per_second > 0 && is_there(one.host)) within.push_back(one.bytes_per_second);
  if (!within.empty()) good.within_host_bytes_per_second = median(within);
  std::vector<double> between;
  if (links)
    for (const HostPair& pair : links->pairs)
      if (is_there(pair.first) && is_there(pair.second)) between.push_back(pair.link.bytes_per_second);
  if (!between.empty()) good.link_bytes_per_second = median(between);
  return good;
}

Expectation read_expectation(const std::filesystem::path& file) {
  constexpr const char* kRemedy = "pass a file of plumbline accept --save-expect";
  const std::string text = read_whole_file(file, {.remedy = kRemedy});
  const std::string name = fmt::format("file '{}'", printable(file.string()));
  const nlohmann::ordered_json json = parse_shallow_json(text);
  if (!json.is_object()) throw Error(ExitCode::bad_data, "{} is not JSON; {}", name, kRemedy);
  Expectation expectation;
  fields::read_all(ObjectReader(json, name, "", kExpectationDocument.name), expectation);
  return expectation;
}

}  // namespace plumb
