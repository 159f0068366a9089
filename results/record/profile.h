// profile.json: where the time of an iteration goes, next to the least it could take. Which formats of it and
// of program.json are written, and how both versions are read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/record/fields.h"

namespace plumb {

inline constexpr std::string_view kComputeLane = "compute";  // the lane of instructions that compute

inline constexpr const char* kProgramFormat = "plumbline.program/2";
inline constexpr const char* kProfileFormat = "plumbline.profile/2";
inline constexpr const char* kProgramFormat1 = "plumbline.program/1";
inline constexpr const char* kProfileFormat1 = "plumbline.profile/1";

// Reads a file of `format`, or of its version 1, in which ops are called "steps".
inline ObjectReader ops_reader(const Json& json, const std::string& origin, const char* format) {
  static constexpr RenamedKey kRenamedSince1[]{{"ops", "steps"}};
  const auto found = value_or<std::string>(json, "format");
  const bool is_version_1 = found == kProgramFormat1 || found == kProfileFormat1;
  return {json, origin, "", format, is_version_1 ? RenamedKeys(kRenamedSince1) : RenamedKeys()};
}

struct ProfiledInstruction {
  std::string name, kind, phase, lane;
  double seconds = 0;                                 // mean over the iterations that are averaged
  double roofline_seconds = 0;                        // 0 on lanes that do not compute
  double flops_per_second = 0, bytes_per_second = 0;  // achieved; of the bytes that can't be avoided
  std::string bound_by = "-";                         // "compute", "bandwidth", "latency", "-"
  std::string engine;                                 // of a convolution or product; empty: not named
  double min_seconds = 0, max_seconds = 0;            // over all iterations
  double share = 0;                                   // of the time of all that compute; 0 on other lanes
  double roofline_share = 0;                          // roofline_seconds / seconds: 1 can't be beaten
  std::size_t workspace_bytes = 0;
  std::optional<double> tuned_seconds;  // alone, when it was tuned
  double lost_seconds() const { return seconds - roofline_seconds; }
  static void fields(auto& self, auto&& each) {
    const Field further{.written = true};  // files of earlier versions lack it
    each("name", self.name), each("kind", self.kind), each("phase", self.phase), each("lane", self.lane);
    each("seconds", self.seconds, Field{.finite = true});
    each("roofline_seconds", self.roofline_seconds, Field{.finite = true});
    each("flops_per_second", self.flops_per_second), each("bytes_per_second", self.bytes_per_second);
    each("bound_by", self.bound_by);
    each("engine", self.engine, further);
    each("min_seconds", self.min_seconds, further), each("max_seconds", self.max_seconds, further);
    each("share", self.share, further), each("roofline_share", self.roofline_share, further);
    each("workspace_bytes", self.workspace_bytes, further);
    each("tuned_seconds", self.tuned_seconds, Field{.written = true, .null_if_nothing = true});
  }
};

// The instructions of a phase or kind.
struct ProfiledKind {
  std::string name;
  int instructions = 0;
  double seconds = 0, roofline_seconds = 0;
  static void fields(auto& self, auto&& each) {
    each("name", self.name), each("ops", self.instructions, Field{"", 0});
    each("seconds", self.seconds, Field{.finite = true});
    each("roofline_seconds", self.roofline_seconds, Field{.finite = true});
  }
};

struct RunProfile {
  std::string device;
  double peak_flops_per_second = 0, peak_bytes_per_second = 0;
  // On lanes that compute: iteration_seconds from the start of the first instruction to the end of the last,
  // busy_seconds in instructions (the sum of their seconds), gap_seconds between them.
  double iteration_seconds = 0, busy_seconds = 0, gap_seconds = 0;
  double roofline_seconds = 0;                    // sum over its instructions
  std::vector<ProfiledKind> kinds;                // of lanes that compute, the longest first
  std::vector<ProfiledInstruction> instructions;  // of all lanes
  std::string precision;
  std::int64_t iterations = 0;             // that were stamped
  std::int64_t averaged_iterations = 0;    // those of middle length: every time is a mean over them
  std::optional<double> run_step_seconds;  // median of the run's own iterations, without stamps
  double step_seconds = 0;                 // as busy_seconds
  std::vector<ProfiledKind> phases;
  static void fields(auto& self, auto&& each) {
    const Field further{.written = true};  // files of earlier versions lack it
    each("device", self.device), each("peak_flops_per_second", self.peak_flops_per_second);
    each("peak_bytes_per_second", self.peak_bytes_per_second);
    each("iteration_seconds", self.iteration_seconds), each("busy_seconds", self.busy_seconds);
    each("gap_seconds", self.gap_seconds);
    each("roofline_seconds", self.roofline_seconds, Field{.finite = true});
    each("precision", self.precision, further), each("iterations", self.iterations, further);
    each("averaged_iterations", self.averaged_iterations, further);
    each("run_step_seconds", self.run_step_seconds, Field{.written = true, .null_if_nothing = true});
    each("step_seconds", self.step_seconds, further), each("phases", self.phases, further);
    each("kinds", self.kinds), each("ops", self.instructions);
  }
};

}  // namespace plumb
