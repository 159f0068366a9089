// expect.json: what hosts of a cluster should reach, as a good night measured it. plumbline accept
// --save-expect writes it, accept --expect and check read it.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launch/hosts/screening.h"
#include "results/record/fields.h"
#include "results/record/links.h"

namespace plumb {

extern const Document kExpectationDocument;
inline constexpr const char* kExpectationFile = "/etc/plumbline/expect.json";

struct ExpectedDevice {
  std::string name;                                  // "NVIDIA H100", the processor
  double images_per_second = 0;                      // alone, median of the good ones
  std::optional<double> images_per_second_together;  // with all devices of its host at work
  std::size_t runs = 0;
  std::string source = "expect.json";  // who expects it, as checks name it
  static void fields(auto& self, auto&& each) {
    each("name", self.name), each("images_per_second", self.images_per_second, Field{"alone, the median"});
    each("images_per_second_together", self.images_per_second_together,
         Field{.about = "with all devices of its host at work", .null_if_nothing = true});
    each("runs", self.runs, Field{"that the medians are of"});
  }
};

struct Expectation {
  std::string schema = kExpectationDocument.name;
  std::string source;                // "accept of 4 hosts, 2026-11-27T11:42:00Z"
  std::vector<std::string> options;  // of the work that devices did
  int devices_per_host = 0;          // GPUs; 0: CPUs
  std::vector<ExpectedDevice> devices;
  std::optional<double> link_bytes_per_second;         // of a pair of hosts, both ways at once
  std::optional<double> within_host_bytes_per_second;  // bus bandwidth between all GPUs of a host

  // The first one whose name is part of it: "h100".
  const ExpectedDevice* find(const std::string& name) const;
  static void fields(auto& self, auto&& each) {
    const Field null{.null_if_nothing = true};
    each("schema", self.schema), each("source", self.source);
    each("options", self.options, Field{"of the work that devices did"});
    each("devices_per_host", self.devices_per_host, Field{"GPUs; 0: CPUs", 0});
    each("devices", self.devices);
    each("link_bytes_per_second", self.link_bytes_per_second, null);
    each("within_host_bytes_per_second", self.within_host_bytes_per_second, null);
  }
  void check(const ObjectReader& reader) const;
};

// --device: "h100=8500".
ExpectedDevice expected_device(const std::string& text);

// Medians of what these hosts, their devices and links reached.
Expectation measured_expectation(const std::vector<ScreenedDevice>& devices,
                                 const std::vector<InsideOfHost>& insides, const std::optional<Links>& links,
                                 const std::vector<std::string>& hosts);

// Throws Error(bad_data) that names the file and what is wrong with it.
Expectation read_expectation(const std::filesystem::path& file);

}  // namespace plumb
