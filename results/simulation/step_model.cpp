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
#include "base/shallow_json.h"
#include "base/whole_file.h"
#include "results/record/lanes.h"
#include "results/record/object_reader.h"

namespace plumb {
namespace {

using StepJson = nlohmann::ordered_json;

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
  buffer.fail("dtype", fmt::format("is '{}', which this plumbline doesn't know", dtype));
}

struct ProgramBuffer {
  std::size_t root = 0, bytes = 0, element_bytes = 4;
  bool is_gradient = false, sharded = false;
};

std::vector<ProgramBuffer> buffers_of(const ObjectReader& program, const std::string& origin) {
  std::vector<ProgramBuffer> buffers;
  const auto count = static_cast<std::int64_t>(program.list("buffers").size());
  for (const StepJson& json : program.list("buffers")) {
    const ObjectReader reader(json, origin, "buffers[]", kProgramSchema);
    ProgramBuffer buffer{.root = buffers.size(),
                         .bytes = static_cast<std::size_t>(reader.integer("bytes", 0, std::int64_t{1} << 50)),
                         .element_bytes = element_bytes_of(reader),
                         .is_gradient = reader.text("role") == "gradient",
                         .sharded = json.contains("sharded") && json["sharded"] == true};
    if (json.contains("view"))
      buffer.root = static_cast<std::size_t>(
          ObjectReader(reader.object("view"), origin, "view", kProgramSchema).integer("of", 0, count - 1));
    buffers.push_back(buffer);
  }
  return buffers;
}

// Fills a StepModel while it walks over the instructions of a program.json.
class StepBuilder {
 public:
  StepBuilder(const StepJson& program, const std::string& origin)
      : origin_(origin), buffers_(buffers_of(ObjectReader(program, origin, "", kProgramSchema), origin)) {
    step_.sharded = std::ranges::any_of(buffers_, &ProgramBuffer::sharded);
    written_.assign(buffers_.size(), kNever);
    read_.assign(buffers_.size(), kNever);
  }

  void add(const StepJson& instruction, double seconds) {
    const ObjectReader reader(instruction, origin_, "steps[]", kProgramSchema);
    const std::string lane = reader.text("lane");
    if (lane == kComputeLane) {
      note_uses(reader);
      step_.compute.push_back({reader.text("name"), seconds});
    } else if (lane == "communication") {
      add_collective(reader);
    }
  }

  StepModel finish() {
    if (step_.compute.empty())
      throw Error(ExitCode::bad_data, "{} has no instruction that computes; run again", origin_);
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
  void note_uses(const ObjectReader& instruction) {
    const std::size_t index = step_.compute.size();
    const bool is_exchange = instruction.text("phase") == "reduce";
    const bool is_update = instruction.text("phase") == "update";
    for (const StepJson& json : instruction.list("uses")) {
      const ObjectReader use(json, origin_, "uses[]", kProgramSchema);
      const std::size_t id = buffer_of(use);
      const bool writes = use.text("access") != "r";
      if (writes && !is_exchange && !is_update) written_[id] = index, read_[id] = kNever;
      if (!writes && read_[id] == kNever) read_[id] = index;
      const std::size_t root = buffers_[id].root;
      for (std::size_t i = 0; i < roots_.size(); ++i)
        if (roots_[i] == root && step_.collectives[i].before == kNever) step_.collectives[i].before = index;
    }
  }

  void add_collective(const ObjectReader& instruction) {
    const ObjectReader collective(instruction.object("collective"), origin_, "collective", kProgramSchema);
    const std::size_t id = buffer_of(collective);
    const std::size_t element_bytes = element_bytes_of(collective);
    const auto elements = collective.integer("elements", 0, std::int64_t{1} << 50);
    step_.collectives.push_back({.name = instruction.text("name"),
                                 .kind = collective.text("kind"),
                                 .dtype = collective.text("dtype"),
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

// Adds the time of casting a bucket to what computes just before and just behind its collective.
void add_casts(StepModel& step, const StepCollective& bucket, double own_bytes, double sent_bytes) {
  if (!(step.bytes_per_second > 0)) return;
  const double elements = bucket.bytes / sent_bytes;
  const double seconds = elements * (own_bytes + sent_bytes) / step.bytes_per_second;
  if (bucket.after > 0) step.compute[bucket.after - 1].seconds += seconds;
  if (bucket.before < step.compute.size()) step.compute[bucket.before].seconds += seconds;
}

std::string origin_of(const std::filesystem::path& file) {
  return fmt::format("file '{}'", printable(file.string()));
}

// `kind`: the file's usual name, "program.json".
StepJson read_part(const std::filesystem::path& file, const char* kind, const char* format) {
  const StepJson json = parse_shallow_json(read_whole_file(file, {.remedy = std::string("name a ") + kind}));
  if (!json.is_object())
    throw Error(ExitCode::bad_data, "{} is no JSON object; run again with --profile", origin_of(file));
  const auto found = json.find("format");
  if (found == json.end() || *found != format)
    throw Error(ExitCode::bad_data,
                "{} is no {}: its format is {} where \"{}\" is wanted; name one of a run with --profile",
                origin_of(file), kind, found == json.end() ? "missing" : found->dump(), format);
  return json;
}

double positive_or_zero(double value) {
  return std::isfinite(value) && value > 0 ? value : 0;
}

}  // namespace

double StepModel::seconds() const {
  double sum = 0;
  for (const StepCompute& instruction : compute) sum += instruction.seconds;
  return sum;
}

std::vector<double> profiled_seconds(const StepJson& program, const StepJson& profile,
                                     const std::string& origin) {
  const StepJson& instructions = ObjectReader(program, origin, "", kProgramSchema).list("steps");
  std::vector<double> seconds(instructions.size());
  std::size_t index = 0;
  const auto skip_to = [&](const std::optional<std::string>& name) {
    for (; index < instructions.size(); ++index) {
      const ObjectReader reader(instructions[index], origin, "steps[]", kProgramSchema);
      const std::string own = reader.text("name");
      if (own == name) return;
      if (reader.text("lane") == kComputeLane)
        throw Error(
            ExitCode::bad_data,
            "{} is of another program than the program.json beside it: it has {} where that has '{}'; "
            "run again with --profile",
            origin, name ? "'" + *name + "'" : "nothing", own);
    }
    if (name)
      throw Error(ExitCode::bad_data,
                  "{} is of another program than the program.json beside it, which has no '{}'; run again "
                  "with --profile",
                  origin, *name);
  };
  for (const StepJson& step : ObjectReader(profile, origin, "", kProfileSchema).list("steps")) {
    const ObjectReader reader(step, origin, "steps[]", kProfileSchema);
    skip_to(reader.text("name"));
    seconds[index] = reader.number("seconds");
    if (!(seconds[index] >= 0 && seconds[index] <= kLongestStepSeconds)) reader.fail("seconds", "is no time");
    ++index;
  }
  skip_to({});
  return seconds;
}

StepModel step_model(const StepJson& program, std::span<const double> seconds, const std::string& origin) {
  StepBuilder builder(program, origin);
  std::size_t index = 0;
  for (const StepJson& instruction : ObjectReader(program, origin, "", kProgramSchema).list("steps")) {
    builder.add(instruction, index < seconds.size() ? seconds[index] : 0);
    ++index;
  }
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
  const double sent_before = step.sent_element_bytes;
  const double sent = sent_element_bytes > 0 ? sent_element_bytes : sent_before;
  std::erase_if(step.collectives, [](const StepCollective& one) { return one.sums_gradients; });
  std::map<std::size_t, std::vector<StepGradient>> by_type;
  for (const StepGradient& gradient : step.gradients) by_type[gradient.element_bytes].push_back(gradient);
  std::vector<StepCollective> buckets;
  for (const auto& [element_bytes, gradients] : by_type) {
    const double own = static_cast<double>(element_bytes);
    const bool is_cast = sent > 0 && sent != own && (sent_before == 0 || sent_before == own);
    std::vector<std::size_t> bytes;
    for (const StepGradient& gradient : gradients) bytes.push_back(gradient.bytes);
    for (const std::vector<std::size_t>& members : assign_buckets(bytes, options)) {
      buckets.push_back(bucket_of(gradients, members, sent));
      if (is_cast) add_casts(step, buckets.back(), own, sent);
    }
  }
  std::ranges::stable_sort(buckets, {}, &StepCollective::after);
  for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i].name = fmt::format("bucket{}.allreduce", i);
  step.collectives.insert(step.collectives.end(), buckets.begin(), buckets.end());
  std::ranges::stable_sort(step.collectives, {}, &StepCollective::after);
  step.sent_element_bytes = sent;
  return step;
}

RecordedStep read_recorded_step(const std::filesystem::path& program_json) {
  const std::filesystem::path profile_json = program_json.parent_path() / "profile.json";
  const StepJson program = read_part(program_json, "program.json", kProgramSchema);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(profile_json, ignored))
    throw Error(ExitCode::bad_data,
                "{} is not there, which has the times of the instructions; run again with --profile",
                origin_of(profile_json));
  const StepJson profile = read_part(profile_json, "profile.json", kProfileSchema);
  const std::string profile_origin = origin_of(profile_json);
  const ObjectReader reader(profile, profile_origin, "", kProfileSchema);
  RecordedStep recorded{.step = step_model(program, profiled_seconds(program, profile, profile_origin),
                                           origin_of(program_json)),
                        .roofline_seconds = positive_or_zero(reader.number("roofline_seconds"))};
  recorded.step.bytes_per_second = positive_or_zero(reader.number("peak_bytes_per_second"));
  return recorded;
}

}  // namespace plumb
