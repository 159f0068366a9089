// Reads the events of a profiler's trace.
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <istream>
#include <memory>
#include <streambuf>

#include "base/error.h"
#include "base/shallow_json.h"
#include "results/explain/framework_trace.h"
#include "results/record/fields.h"

namespace plumb {
namespace {

constexpr std::size_t kLongestName = 256, kChunk = 1 << 16;
constexpr double kLargestMicroseconds = 2e15;  // 63 years; begins and ends differ by less than 2^63 ns
constexpr const char *kEvents = "traceEvents", *kDescription = "plumbline_peer";

// The text of a file, unpacked if it is compressed by gzip. It ends early where the compressed bytes do.
class TraceStream : public std::streambuf {
 public:
  explicit TraceStream(const std::filesystem::path& file)
      : file_(::gzopen(file.c_str(), "rb")), text_(kChunk, '\0') {}

  bool is_open() const { return file_ != nullptr; }

 protected:
  int_type underflow() override {
    const int got = ::gzread(file_.get(), text_.data(), static_cast<unsigned>(text_.size()));
    setg(text_.data(), text_.data(), text_.data() + std::max(got, 0));
    return got <= 0 ? traits_type::eof() : traits_type::to_int_type(text_.front());
  }

 private:
  struct Close {
    void operator()(gzFile file) const { ::gzclose(file); }
  };
  std::unique_ptr<gzFile_s, Close> file_;
  std::string text_;
};

enum class EventKind { other, op, annotation, kernel };
EventKind kind_of(std::string_view category) {
  if (category == "cpu_op") return EventKind::op;
  if (category == "user_annotation") return EventKind::annotation;
  const bool on_gpu = category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset";
  return on_gpu ? EventKind::kernel : EventKind::other;
}

std::string text_of(const Json& event, const char* key) {
  return value_or<std::string>(event, key).substr(0, kLongestName);
}

// A process or thread, however it is named.
std::uint64_t id_of(const Json& event, const char* key) {
  const auto found = event.find(key);
  if (found == event.end()) return 0;
  return found->is_number_integer() ? found->get<std::uint64_t>() : std::hash<std::string>()(found->dump());
}

// By which kernels name the operator that launched them; 0: none.
std::uint64_t external_id(const Json& event) {
  const auto arguments = event.find("args");
  return arguments == event.end() ? 0 : value_or<std::uint64_t>(*arguments, "External id");
}

// Makes TraceEvents of one event after the other.
class EventCollector {
 public:
  explicit EventCollector(const std::string& origin) : origin_(origin) {}

  void add(const Json& event) {
    ++count_;
    if (text_of(event, "ph") != "X") return;
    const EventKind kind = kind_of(text_of(event, "cat"));
    if (kind == EventKind::other) return;
    std::string name = text_of(event, "name");
    if (name.starts_with("ProfilerStep#")) {
      events_.steps.push_back(time_of(event));
    } else if (kind == EventKind::kernel) {
      const auto category = category_of_kernel(name), form = category_of_kernel_form(name);
      if (category || form) name.clear();
      events_.kernels.push_back({time_of(event), external_id(event), category, form, std::move(name)});
    } else {
      const auto category = category_of_operator(name);
      if (kind == EventKind::annotation && !category) return;
      if (category) name.clear();
      events_.operators.push_back({time_of(event), id_of(event, "pid") * 31 + id_of(event, "tid"),
                                   external_id(event), category, std::move(name)});
    }
  }

  TraceEvents take(Json description) {
    if (description.is_object()) events_.description = std::move(description);
    std::ranges::sort(events_.steps, {}, &TimeSpan::begin);
    return std::move(events_);
  }

 private:
  TimeSpan time_of(const Json& event) const {
    const double begin = value_or<double>(event, "ts", NAN), duration = value_or<double>(event, "dur", NAN);
    if (!(std::abs(begin) <= kLargestMicroseconds && duration >= 0 && duration <= kLargestMicroseconds))
      throw Error(ExitCode::bad_data,
                  "{}: event {} has no usable 'ts' and 'dur'; let the profiler write the trace again",
                  origin_, count_);
    return {std::llround(begin * 1000), std::llround((begin + duration) * 1000)};
  }

  const std::string& origin_;
  TraceEvents events_;
  std::size_t count_ = 0;
};

}  // namespace

TraceEvents read_trace_events(const std::filesystem::path& file, const std::string& origin) {
  std::error_code error;
  TraceStream trace(std::filesystem::is_regular_file(file, error) ? file : "");
  if (!trace.is_open())
    throw Error(ExitCode::bad_data, "cannot read {}; pass the file that the profiler wrote", origin);
  EventCollector collector(origin);
  std::string key;  // the last one of the outermost object
  // Each event is taken as it ends, and forgotten, whatever the size of the file.
  const auto keep = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth > static_cast<int>(kMostJsonLevels))
      throw Error(ExitCode::bad_data, "{}: expected a profiler's JSON, and it has over {} levels", origin,
                  kMostJsonLevels);
    if (event == Event::key && depth == 1) key = parsed.get<std::string>();
    if (event != Event::object_end || depth != 2 || key != kEvents) return true;
    collector.add(parsed);
    return false;
  };
  Json rest;
  try {
    std::istream stream(&trace);
    rest = Json::parse(stream, keep);
  } catch (const Json::exception&) {
    throw Error(ExitCode::bad_data, "{} is not JSON, or ends too early; let the profiler write it again",
                origin);
  }
  if (!rest.is_object() || !rest.contains(kEvents) || !rest[kEvents].is_array())
    throw Error(ExitCode::bad_data, "{} has no '{}'; use a trace of PyTorch's export_chrome_trace", origin,
                kEvents);
  return collector.take(rest.contains(kDescription) ? rest[kDescription] : Json());
}

}  // namespace plumb
