#include "launch/verdict/expectation.h"

#include <algorithm>

#include "base/error.h"
#include "base/paths.h"
#include "base/shallow_json.h"
#include "base/text.h"
#include "base/whole_file.h"

namespace plumb {

const ExpectedDevice* Expectation::find(const std::string& name) const {
  const auto found = std::ranges::find(devices, name, &ExpectedDevice::name);
  return found == devices.end() ? nullptr : &*found;
}

void Expectation::check(const ObjectReader& reader) const {
  if (schema != kExpectationSchema)
    reader.fail("schema", fmt::format("is '{}', not {}", printable(schema), kExpectationSchema));
  for (const ExpectedDevice& device : devices)
    if (!(device.images_per_second > 0)) reader.fail("devices", "has a device without a speed above 0");
  for (const auto& speed : {link_bytes_per_second, within_host_bytes_per_second})
    if (speed && !(*speed > 0)) reader.fail("link_bytes_per_second", "or within_host_… is not above 0");
}

Expectation read_expectation(const std::filesystem::path& file) {
  constexpr const char* kRemedy = "name a file of plumbline accept --save-expect";
  const std::string text = read_whole_file(file, {.remedy = kRemedy});
  const std::string name = fmt::format("file '{}'", printable(file.string()));
  const nlohmann::ordered_json json = parse_shallow_json(text);
  if (!json.is_object()) throw Error(ExitCode::bad_data, "{} is not JSON; {}", name, kRemedy);
  Expectation expectation;
  fields::read_all(ObjectReader(json, name, "", kExpectationSchema), expectation);
  return expectation;
}

nlohmann::ordered_json to_json(const Expectation& expectation) {
  return fields::written(expectation);
}

nlohmann::ordered_json expectation_schema() {
  return json_schema<Expectation>(kExpectationSchema, "What hosts should reach: expect.json.");
}

}  // namespace plumb
