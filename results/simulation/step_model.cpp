#include "results/simulation/step_model.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/paths.h"
#include "base/ranges.h"
#include "base/shallow_json.h"
#include "base/whole_file.h"
#include "results/record/profile.h"

namespace plumb {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
constexpr double kLongestStepSeconds = 1e6;
// Gradients lie in a bucket at multiples of this (comm/gradient_reduction.cpp).
constexpr std::size_t kGradientAlignment = 64;

std::size_t element_bytes_of(const ObjectReader& buffer) {
  const std::string dtype = buffer.text("dtype");
  if (dtype == "f32" || dtype == "i32") return 4;
  if (dtype == "f16" || dtype == "bf16") return 2;
  if (dtype == "i64") return 8;
  if (dtype == "u8") return 1;
  buffer.fail("dtype", fmt::format("unknown value '{}'", dtype));
}

struct ProgramBuffer {
  std::size_t root = 0, bytes = 0, element_bytes = 4;
  bool is_gradient = false, sharded = false;
};

std::vector<ProgramBuffer> buffers_of(const ObjectReader& program) {
  std::vector<ProgramBuffer> buffers;
  const auto count = static_cast<std::int64_t>(program.list("buffers").size());
  program.for_each("buffers", [&](const ObjectReader& reader) {
    ProgramBuffer buffer{.root = buffers.size(),
                         .bytes = static_cast<std::size_t>(reader.integer("bytes", 0, std::int64_t{1} << 50)),
                         .element_bytes = element_bytes_of(reader),
                         .is_gradient = reader.text("role") == "gradient",
                         .sharded = reader.has("sharded") && reader.any("sharded") == true};
    if (reader.has("view"))
      buffer.root = static_cast<std::size_t>(reader.inside("view").integer("of", 0, count - 1));
    buffers.push_back(buffer);
  });
  return buffers;
}

// Fills a StepModel while it walks over the instructions of a program.json.
class StepBuilder {
 public:
  explicit StepBuilder(const ObjectReader& program)
      : origin_(program.origin()), buffers_(buffers_of(program)) {
    step_.sharded = std::ranges::any_of(buffers_, &ProgramBuffer::sharded);
    written_.assign(buffers_.size(), kNever);
    read_.assign(buffers_.size(), kNever);
  }

  void add(const ObjectReader& op, double seconds) {
    const std::string lane = op.text("lane");
    if (lane == kComputeLane) {
      note_uses(op);
      step_.compute.push_back({op.text("name"), seconds});
    } else if (lane == "communication") {
      add_collective(op);
    }
  }

  StepModel finish() {
    if (step_.compute.empty())
      throw Error(ExitCode::bad_data, "{} has no op that computes; run again", origin_);
    for (StepCollective& collective : step_.collectives)
      collective.before = std::min(collective.before, step_.compute.size());
    for (std::size_t id = 0; id < buffers_.size(); ++id) add_gradient(id);
    std::ranges::stable_sort(step_.gradients, {}, &StepGradient::after);
    return std::move(step_);
  }

 private:
  std::size_t buffer_of(const ObjectReader& reader) const {
    return static_cast<std::size_t>(
        reader.integer("buffer", 0, static_cast<std::int64_t>(buffers_.size()) - 1));
  }

  // Casts between a bucket and its copy in another type are part of the exchange; they complete no gradient.
  void note_uses(const ObjectReader& op) {
    const std::size_t index = step_.compute.size();
    const bool is_exchange = op.text("phase") == "reduce";
    const bool is_update = op.text("phase") == "update";
    op.for_each("uses", [&](const ObjectReader& use) {
      const std::size_t id = buffer_of(use);
      const bool writes = use.text("access") != "r";
      if (writes && !is_exchange && !is_update) written_[id] = index, read_[id] = kNever;
      if (!writes && read_[id] == kNever) read_[id] = index;
      const std::size_t root = buffers_[id].root;
      for (std::size_t i = 0; i < roots_.size(); ++i)
        if (roots_[i] == root && step_.collectives[i].before == kNever) step_.collectives[i].before = index;
    });
  }

  void add_collective(const ObjectReader& op) {
    const ObjectReader collective = op.inside("collective");
    const std::size_t id = buffer_of(collective);
    const std::size_t element_bytes = element_bytes_of(collective);
    const auto elements = collective.integer("elements", 0, std::int64_t{1} << 50);
    step_.collectives.push_back({.name = op.text("name"),
                                 .kind = collective.text("kind"),
                                 .bytes = static_cast<double>(elements) * static_cast<double>(element_bytes),
                                 .after = step_.compute.size(),
                                 .before = kNever,
                                 .sums_gradients = buffers_[id].is_gradient});
    roots_.push_back(buffers_[id].root);
    if (buffers_[id].is_gradient) step_.sent_element_bytes = static_cast<double>(element_bytes);
  }

  void add_gradient(std::size_t id) {
    const ProgramBuffer& buffer = buffers_[id];
    if (!buffer.is_gradient || written_[id] == kNever) return;
    step_.gradients.push_back({.bytes = buffer.bytes,
                               .element_bytes = buffer.element_bytes,
                               .after = written_[id] + 1,
                               .before = std::min(read_[id], step_.compute.size())});
  }

  const std::string& origin_;
  std::vector<ProgramBuffer> buffers_;
  std::vector<std::size_t> written_, read_;  // by buffer: who completes it, who reads it first behind that
  std::vector<std::size_t> roots_;           // by collective
  StepModel step_;
};

StepCollective bucket_of(std::span<const StepGradient> gradients, const std::vector<std::size_t>& members,
                         double sent_element_bytes) {
  StepCollective bucket{.kind = "allreduce_sum", .before = kNever};
  for (const std::size_t member : members) {
    const StepGradient& gradient = gradients[member];
    const std::size_t aligned =
        (gradient.bytes + kGradientAlignment - 1) / kGradientAlignment * kGradientAlignment;
    const double own = static_cast<double>(gradient.element_bytes);
    bucket.bytes += static_cast<double>(aligned) / own * (sent_element_bytes > 0 ? sent_element_bytes : own);
    bucket.after = std::max(bucket.after, gradient.after);
    bucket.before = std::min(bucket.before, gradient.before);
  }
  return bucket;
}

std::string origin_of(const fs::path& file) {
  return fmt::format("file '{}'", printable(file.string()));
}

// `kind`: the file's usual name, "program.json".
Json read_part(const fs::path& file, const char* kind, const char* format, const char* format_1) {
  const Json json = parse_shallow_json(read_whole_file(file, {.remedy = std::string("pass a ") + kind}));
  if (const auto found = value_or<std::string>(json, "format"); found != format && found != format_1)
    throw Error(ExitCode::bad_data, "{}: expected a {} of format {}; pass one of a run with --profile",
                origin_of(file), kind, format);
  return json;
}

}  // namespace

double positive_or_zero(double value) {
  return std::isfinite(value) && value > 0 ? value : 0;
}

double StepModel::seconds() const {
  double sum = 0;
  for (const StepCompute& instruction : compute) sum += instruction.seconds;
  return sum;
}

std::vector<double> profiled_seconds(const Json& program, const Json& profile, const std::string& origin) {
  std::vector<std::pair<std::string, bool>> ops;  // name, whether it computes
  ops_reader(program, origin, kProgramFormat).for_each("ops", [&](const ObjectReader& op) {
    ops.emplace_back(op.text("name"), op.text("lane") == kComputeLane);
  });
  std::vector<double> seconds(ops.size());
  std::size_t index = 0;
  const auto skip_to = [&](const std::optional<std::string>& name) {
    while (index < ops.size() && ops[index].first != name && !ops[index].second) ++index;
    const bool fits = name ? index < ops.size() && ops[index].first == *name : index == ops.size();
    if (!fits)
      throw Error(ExitCode::bad_data,
                  "{} belongs to another program than the program.json next to it; run again with --profile",
                  origin);
  };
  ops_reader(profile, origin, kProfileFormat).for_each("ops", [&](const ObjectReader& op) {
    skip_to(op.text("name"));
    seconds[index] = op.number("seconds");
    if (!(seconds[index] >= 0 && seconds[index] <= kLongestStepSeconds))
      op.fail("seconds", "expected a time");
    ++index;
  });
  skip_to({});
  return seconds;
}

StepModel step_model(const Json& program, std::span<const double> seconds, const std::string& origin) {
  const ObjectReader reader = ops_reader(program, origin, kProgramFormat);
  StepBuilder builder(reader);
  std::size_t index = 0;
  reader.for_each("ops", [&](const ObjectReader& op) {
    builder.add(op, index < seconds.size() ? seconds[index] : 0);
    ++index;
  });
  return builder.finish();
}

StepModel stretched_to(StepModel step, double seconds) {
  const double before = step.seconds();
  for (StepCompute& instruction : step.compute)
    instruction.seconds = before > 0 ? instruction.seconds * (seconds / before)
                                     : seconds / static_cast<double>(step.compute.size());
  return step;
}

StepModel with_buckets(StepModel step, const BucketOptions& options, double sent_element_bytes) {
  if (sent_element_bytes > 0) step.sent_element_bytes = sent_element_bytes;
  std::erase_if(step.collectives, [](const StepCollective& one) { return one.sums_gradients; });
  std::map<std::size_t, std::vector<StepGradient>> by_type;
  for (const StepGradient& gradient : step.gradients) by_type[gradient.element_bytes].push_back(gradient);
  std::vector<StepCollective> buckets;
  for (const auto& [element_bytes, gradients] : by_type)
    for (const auto& members : assign_buckets(mapped(gradients, &StepGradient::bytes), options))
      buckets.push_back(bucket_of(gradients, members, step.sent_element_bytes));
  std::ranges::stable_sort(buckets, {}, &StepCollective::after);
  for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i].name = fmt::format("bucket{}.allreduce", i);
  step.collectives.insert(step.collectives.end(), buckets.begin(), buckets.end());
  std::ranges::stable_sort(step.collectives, {}, &StepCollective::after);
  return step;
}

StepModel read_recorded_step(const fs::path& program_json) {
  const fs::path profile_json = program_json.parent_path() / "profile.json";
  const Json program = read_part(program_json, "program.json", kProgramFormat, kProgramFormat1);
  std::error_code ignored;
  if (!fs::is_regular_file(profile_json, ignored))
    throw Error(ExitCode::bad_data, "{}, with the times of the ops, does not exist; run again with --profile",
                origin_of(profile_json));
  const Json profile = read_part(profile_json, "profile.json", kProfileFormat, kProfileFormat1);
  const std::string profile_origin = origin_of(profile_json);
  const ObjectReader reader = ops_reader(profile, profile_origin, kProfileFormat);
  StepModel step =
      step_model(program, profiled_seconds(program, profile, profile_origin), origin_of(program_json));
  step.roofline_seconds = positive_or_zero(reader.number("roofline_seconds"));
  return step;
}

}  // namespace plumb
