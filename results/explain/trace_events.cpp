// Reads the events of a profiler's trace.
#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <unordered_map>

#include "base/error.h"
#include "results/explain/framework_trace.h"

namespace plumb {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestName = 256, kMostNames = 1 << 16, kMostTraceEvents = 20'000'000;
constexpr double kLargestMicroseconds = 2e15;  // 63 years; begins and ends differ by less than 2^63 ns
constexpr std::string_view kDescription = "plumbline_peer";

// PyTorch's profiler up to 1.11 and after it.
enum class EventKind { other, op, annotation, kernel };
EventKind kind_of(std::string_view category) {
  if (category == "cpu_op" || category == "Operator") return EventKind::op;
  if (category == "user_annotation") return EventKind::annotation;
  for (const std::string_view name : {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"})
    if (category == name) return EventKind::kernel;
  return EventKind::other;
}

// One object of traceEvents.
struct RawEvent {
  std::string phase, category, name;
  double begin = NAN, duration = NAN;  // microseconds
  std::uint64_t process = 0, thread = 0, id = 0;
};

// Called by nlohmann's SAX parser. Depth: how many objects and lists are open; the events are the objects
// right inside of "traceEvents" of the outermost object, or right inside of an outermost list.
class TraceHandler : public nlohmann::json_sax<Json> {
 public:
  TraceHandler(TraceEvents& events, const std::string& origin) : events_(events), origin_(origin) {}

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t value) override { return scalar(value); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(value); }
  bool number_float(number_float_t value, const string_t&) override { return scalar(value); }
  bool string(string_t& value) override { return scalar(std::move(value)); }
  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override {
    if (list_depth_ != 0 && depth_ == list_depth_) event_ = {};
    if (depth_ == 1 && key_ == kDescription && list_depth_ != 1) events_.description = Json::object();
    enter();
    return true;
  }
  bool end_object() override {
    --depth_;
    if (list_depth_ != 0 && depth_ == list_depth_) add_event();
    return true;
  }
  bool start_array(std::size_t) override {
    const bool of_events = depth_ == 0 || (depth_ == 1 && key_ == "traceEvents" && list_depth_ == 0);
    enter();
    if (of_events) {
      list_depth_ = depth_;
      has_list_ = true;
    }
    return true;
  }
  bool end_array() override {
    if (depth_ == list_depth_) list_depth_ = 0;
    --depth_;
    return true;
  }
  bool key(string_t& name) override {
    key_ = std::move(name);
    if (depth_ < opened_by_.size())
      opened_by_[depth_] = key_ == "args" || (depth_ == 1 && key_ == kDescription);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    throw Error(ExitCode::bad_data,
                "{} is no JSON from byte {} on, or ends too early; let the profiler write it again, and "
                "unpack it if it is compressed",
                origin_, position);
  }

  bool has_list() const { return has_list_; }

 private:
  void enter() {
    ++depth_;
    if (depth_ < opened_by_.size()) opened_by_[depth_] = false;
  }

  bool scalar(const Json& value) {
    if (list_depth_ != 0 && depth_ == list_depth_ + 1)
      set_member(value);
    else if (list_depth_ != 0 && depth_ == list_depth_ + 2 && opened_by_[list_depth_ + 1])
      set_argument(value);
    else if (list_depth_ == 0 && depth_ == 2 && opened_by_[1] && events_.description.size() < 64)
      events_.description[key_] = value;
    return true;
  }

  void set_member(const Json& value) {
    if (key_ == "ph" || key_ == "cat" || key_ == "name") {
      if (!value.is_string()) return;
      (key_ == "ph"    ? event_.phase
       : key_ == "cat" ? event_.category
                       : event_.name) = value.get_ref<const std::string&>().substr(0, kLongestName);
    } else if (key_ == "ts" || key_ == "dur") {
      if (value.is_number()) (key_ == "ts" ? event_.begin : event_.duration) = value.get<double>();
    } else if (key_ == "pid" || key_ == "tid") {
      (key_ == "pid" ? event_.process : event_.thread) =
          value.is_number_integer() ? value.get<std::uint64_t>() : std::hash<std::string>()(value.dump());
    }
  }

  void set_argument(const Json& value) {
    if ((key_ == "External id" || key_ == "external id") && value.is_number_unsigned()) event_.id = value;
  }

  TimeSpan time() const {
    const bool usable = std::abs(event_.begin) <= kLargestMicroseconds && event_.duration >= 0 &&
                        event_.duration <= kLargestMicroseconds;
    if (!usable)
      throw Error(ExitCode::bad_data,
                  "{}: event {} has no usable 'ts' and 'dur'; let the profiler write the trace again",
                  origin_, count_);
    return {std::llround(event_.begin * 1000), std::llround((event_.begin + event_.duration) * 1000)};
  }

  std::uint32_t name_index() {
    const auto found = name_of_.find(event_.name);
    if (found != name_of_.end()) return found->second;
    if (events_.names.size() >= kMostNames) return 0;
    if (events_.names.empty()) events_.names.emplace_back("others");
    const auto index = static_cast<std::uint32_t>(events_.names.size());
    name_of_.emplace(event_.name, index);
    events_.names.push_back(event_.name);
    return index;
  }

  void add_event() {
    ++count_;
    if (event_.phase != "X") return;
    const EventKind kind = kind_of(event_.category);
    if (kind == EventKind::other) return;
    if (events_.operators.size() + events_.kernels.size() >= kMostTraceEvents)
      throw Error(ExitCode::bad_data, "{} has more than {} operators and kernels; trace fewer steps", origin_,
                  kMostTraceEvents);
    if (event_.name.starts_with("ProfilerStep#")) {
      events_.steps.push_back(time());
    } else if (kind == EventKind::kernel) {
      events_.kernels.push_back({time(), event_.id, category_of_kernel(event_.name),
                                 category_of_kernel_form(event_.name), name_index()});
    } else {
      const auto category = category_of_operator(event_.name);
      if (kind == EventKind::annotation && !category) return;
      const std::uint64_t thread = event_.process * 31 + event_.thread;
      events_.operators.push_back({time(), thread, event_.id, category, name_index()});
    }
  }

  TraceEvents& events_;
  const std::string& origin_;
  std::size_t depth_ = 0, list_depth_ = 0, count_ = 0;
  bool has_list_ = false;
  std::string key_;                     // the last one met
  std::array<bool, 8> opened_by_ = {};  // at each depth: whether the members of the last key count
  RawEvent event_;
  std::unordered_map<std::string, std::uint32_t> name_of_;
};

}  // namespace

TraceEvents read_trace_events(const std::filesystem::path& file, const std::string& origin) {
  std::error_code error;
  std::ifstream stream;
  if (std::filesystem::is_regular_file(file, error)) stream.open(file, std::ios::binary);
  if (!stream.is_open())
    throw Error(ExitCode::bad_data, "{} can't be read; name the file that the profiler wrote", origin);
  TraceEvents events;
  TraceHandler handler(events, origin);
  Json::sax_parse(stream, &handler);
  if (!handler.has_list())
    throw Error(ExitCode::bad_data, "{} has no 'traceEvents'; give one of PyTorch's export_chrome_trace",
                origin);
  std::ranges::sort(events.steps, {}, &TimeSpan::begin);
  return events;
}

}  // namespace plumb
