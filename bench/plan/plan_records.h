// What --dry-run --json and --list-targets --json print.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/plan/head_table.h"
#include "kernels/program/targets.h"
#include "results/record/fields.h"

namespace plumb {

// The allreduces of a step over links that are only asked about.
struct PredictedExchange {
  std::int64_t nodes = 0, devices_per_node = 0;
  double bytes_per_second = 0, latency_seconds = 0;  // of a node's link to others
  double seconds = 0;                                // of all collectives, one after the other
  std::optional<double> exposed_seconds;

  static void fields(auto& self, auto&& each) {
    each("nodes", self.nodes), each("devices_per_node", self.devices_per_node);
    each("bytes_per_second", self.bytes_per_second, Field{"of a node's link to others"});
    each("latency_seconds", self.latency_seconds);
    each("seconds", self.seconds, Field{"of all collectives, one after the other"});
    each("exposed_seconds", self.exposed_seconds,
         Field{.about = "while compute waits; null if ranks share the class centers",
               .null_if_nothing = true});
  }
};

struct PlannedOp {
  std::string name, phase, lane;
  std::int64_t macs = 0, bytes = 0;
  double roofline_seconds = 0;

  static void fields(auto& self, auto&& each) {
    each("name", self.name), each("phase", self.phase), each("lane", self.lane);
    each("macs", self.macs), each("bytes", self.bytes, Field{"read and written"});
    each("roofline_seconds", self.roofline_seconds, Field{"0 on lanes that run next to compute"});
  }
};

struct DryRunRecord {
  std::string model, precision;
  std::int64_t batch_per_device = 0, world_size = 0;
  std::string target;
  std::int64_t parameters = 0, macs_per_image = 0;
  std::map<std::string, std::optional<std::int64_t>> memory_bytes;
  std::int64_t device_memory_bytes = 0;
  bool fits = false;
  std::int64_t largest_batch = 0;
  double roofline_seconds = 0;
  std::int64_t traffic_bytes = 0;
  std::vector<PlannedOp> ops;
  std::optional<PredictedExchange> exchange;
  std::optional<std::int64_t> head_parameters, head_macs_per_image;
  std::optional<nlohmann::ordered_json> program;
  std::vector<HeadPlan> heads;

  static void fields(auto& self, auto&& each) {
    each("model", self.model), each("precision", self.precision);
    each("batch_per_device", self.batch_per_device), each("world_size", self.world_size);
    each("target", self.target, Field{"the device that the step is planned for"});
    each("parameters", self.parameters, Field{"without class centers"});
    each("macs_per_image", self.macs_per_image, Field{"of the forward pass"});
    each("memory_bytes", self.memory_bytes,
         Field{"by part, of one device; peak is null, because nothing ran"});
    each("device_memory_bytes", self.device_memory_bytes), each("fits", self.fits);
    each("largest_batch", self.largest_batch, Field{"per device; 0: not even one image fits"});
    each("roofline_seconds", self.roofline_seconds, Field{"of a step"});
    each("traffic_bytes", self.traffic_bytes, Field{"sent per step and rank"});
    each("ops", self.ops), each("exchange", self.exchange, Field{"with --bandwidth"});
    each("head_parameters", self.head_parameters, Field{"class centers of all ranks"});
    each("head_macs_per_image", self.head_macs_per_image);
    each("program", self.program, Field{"with --verbose: as in program.json"});
    each("heads", self.heads, Field{.about = "what each --head would need", .written = !self.heads.empty()});
  }
};

// A device that steps can be planned for, with the sustained figures that rooflines use.
struct TargetRecord {
  std::string name, kind;
  std::int64_t memory_bytes = 0;
  double bytes_per_second = 0;
  std::map<std::string, std::optional<double>> flops_per_second;
  std::int64_t compute_capability = 0;
  std::string source;

  static void fields(auto& self, auto&& each) {
    each("name", self.name), each("kind", self.kind, Field{"cpu or cuda"});
    each("memory_bytes", self.memory_bytes, Field{"usable by one process"});
    each("bytes_per_second", self.bytes_per_second, Field{"of its memory"});
    each("flops_per_second", self.flops_per_second, Field{"by precision; null where the device lacks it"});
    each("compute_capability", self.compute_capability, Field{"90 for sm_90; 0 of a CPU"});
    each("source", self.source, Field{"of the figures"});
  }
};

}  // namespace plumb
