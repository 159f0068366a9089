// Reads the events of a profiler's trace.
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <istream>
#include <memory>
#include <streambuf>
#include <unordered_map>

#include "base/error.h"
#include "base/shallow_json.h"
#include "results/explain/framework_trace.h"
#include "results/record/fields.h"

namespace plumb {
namespace {

constexpr std::size_t kLongestName = 256, kMostTraceNames = 1 << 16, kMostTraceEvents = 20'000'000;
constexpr double kLargestMicroseconds = 2e15;  // 63 years; begins and ends differ by less than 2^63 ns
constexpr const char* kDescription = "plumbline_peer";
constexpr std::size_t kChunk = 1 << 16, kLongestEscape = 6;  // \u0041

// The length of the escape that begins with this backslash; 0: it is none of JSON's.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2 || std::string_view(R"("\/bfnrtu)").find(text[1]) == text.npos) return 0;
  if (text[1] != 'u') return 2;
  const std::string_view digits = text.substr(2, 4);
  const auto is_hexadecimal = [](unsigned char c) { return std::isxdigit(c) != 0; };
  return digits.size() == 4 && std::ranges::all_of(digits, is_hexadecimal) ? kLongestEscape : 0;
}

// Moves text from the front of `raw`; what may be half of an escape stays unless it is the end.
void move_text(std::string& raw, bool is_end, std::string& text) {
  std::size_t begin = 0;
  for (std::size_t at = raw.find('\\'); at != raw.npos; at = raw.find('\\', begin)) {
    text.append(raw, begin, at - begin);
    begin = at;
    if (!is_end && raw.size() - at < kLongestEscape) break;
    const std::size_t length = escape_length(std::string_view(raw).substr(at));
    text.append(length == 0 ? "\\\\" : raw.substr(at, length));
    begin = at + std::max<std::size_t>(length, 1);
  }
  const bool waits = begin < raw.size() && raw[begin] == '\\';
  if (!waits) text.append(raw, begin);
  raw.erase(0, waits ? begin : raw.size());
}

// The text of a profiler's trace: unpacked if it is compressed by gzip, and with the backslashes of Windows
// paths doubled, which PyTorch's profiler writes as they are ("C:\Users"), so that it is JSON.
class TraceStream : public std::streambuf {
 public:
  explicit TraceStream(const std::filesystem::path& file) : file_(::gzopen(file.c_str(), "rb")) {}

  bool is_open() const { return file_ != nullptr; }
  // False once the compressed bytes are damaged or end too early.
  bool is_whole() const { return whole_; }

 protected:
  int_type underflow() override {
    text_.clear();
    while (text_.empty() && !at_end_) {
      const std::size_t before = raw_.size();
      raw_.resize(before + kChunk);
      const int got = ::gzread(file_.get(), raw_.data() + before, static_cast<unsigned>(kChunk));
      raw_.resize(before + static_cast<std::size_t>(std::max(got, 0)));
      int error = Z_OK;
      ::gzerror(file_.get(), &error);
      whole_ = got >= 0 && (error == Z_OK || error == Z_STREAM_END);
      at_end_ = got <= 0;
      move_text(raw_, at_end_, text_);
    }
    setg(text_.data(), text_.data(), text_.data() + text_.size());
    return text_.empty() ? traits_type::eof() : traits_type::to_int_type(text_.front());
  }

 private:
  struct Close {
    void operator()(gzFile file) const { ::gzclose(file); }
  };
  std::unique_ptr<gzFile_s, Close> file_;
  std::string raw_, text_;  // what waits for more; what is given out
  bool whole_ = true, at_end_ = false;
};

// PyTorch's profiler up to 1.11 and after it.
enum class EventKind { other, op, annotation, kernel };
EventKind kind_of(std::string_view category) {
  if (category == "cpu_op" || category == "Operator") return EventKind::op;
  if (category == "user_annotation") return EventKind::annotation;
  for (const std::string_view name : {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"})
    if (category == name) return EventKind::kernel;
  return EventKind::other;
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
  if (arguments == event.end() || !arguments->is_object()) return 0;
  for (const char* key : {"External id", "external id"})
    if (const auto id = arguments->find(key); id != arguments->end() && id->is_number_unsigned()) return *id;
  return 0;
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
    if (events_.operators.size() + events_.kernels.size() >= kMostTraceEvents)
      throw Error(ExitCode::bad_data, "{} has more than {} operators and kernels; trace fewer steps", origin_,
                  kMostTraceEvents);
    const std::string name = text_of(event, "name");
    if (name.starts_with("ProfilerStep#")) {
      events_.steps.push_back(time_of(event));
    } else if (kind == EventKind::kernel) {
      events_.kernels.push_back({time_of(event), external_id(event), category_of_kernel(name),
                                 category_of_kernel_form(name), index_of_name(name)});
    } else {
      const auto category = category_of_operator(name);
      if (kind == EventKind::annotation && !category) return;
      events_.operators.push_back({time_of(event), id_of(event, "pid") * 31 + id_of(event, "tid"),
                                   external_id(event), category, index_of_name(name)});
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

  std::uint32_t index_of_name(const std::string& name) {
    const auto found = index_of_.find(name);
    if (found != index_of_.end()) return found->second;
    if (events_.names.size() >= kMostTraceNames) return 0;
    if (events_.names.empty()) events_.names.emplace_back("others");
    const auto index = static_cast<std::uint32_t>(events_.names.size());
    index_of_.emplace(name, index);
    events_.names.push_back(name);
    return index;
  }

  const std::string& origin_;
  TraceEvents events_;
  std::size_t count_ = 0;
  std::unordered_map<std::string, std::uint32_t> index_of_;
};

}  // namespace

TraceEvents read_trace_events(const std::filesystem::path& file, const std::string& origin) {
  std::error_code error;
  TraceStream trace(std::filesystem::is_regular_file(file, error) ? file : "");
  if (!trace.is_open())
    throw Error(ExitCode::bad_data, "cannot read {}; pass the file that the profiler wrote", origin);
  EventCollector collector(origin);
  std::string key;        // the last one of the outermost object
  int events_depth = -1;  // of the events: inside "traceEvents", or of an outermost list
  // Each event is taken as it ends, and forgotten, whatever the size of the file; of its arguments only ids
  // are read.
  const auto keep = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth > static_cast<int>(kMostJsonLevels))
      throw Error(ExitCode::bad_data, "{}: expected a profiler's JSON, and it has over {} levels", origin,
                  kMostJsonLevels);
    if (event == Event::key && depth == 1 && events_depth != 1) key = parsed.get<std::string>();
    if (event == Event::array_start && events_depth < 0 &&
        (depth == 0 || (depth == 1 && key == "traceEvents")))
      events_depth = depth + 1;
    if (event == Event::key && events_depth > 0 && depth > events_depth + 1) {
      const std::string& name = parsed.get_ref<const std::string&>();
      return name == "External id" || name == "external id";
    }
    if (event != Event::object_end || depth != events_depth || (depth == 2 && key != "traceEvents"))
      return true;
    collector.add(parsed);
    return false;
  };
  Json rest;
  try {
    std::istream stream(&trace);
    rest = Json::parse(stream, keep);
  } catch (const Json::parse_error& bad) {
    if (!trace.is_whole())
      throw Error(ExitCode::bad_data,
                  "cannot unpack {} to its end (gzip); copy it again, or let the profiler write it again",
                  origin);
    throw Error(ExitCode::bad_data,
                "{} is not JSON from byte {} on, or ends too early; let the profiler write it again", origin,
                bad.byte);
  } catch (const Json::out_of_range&) {
    throw Error(ExitCode::bad_data, "{} has a number that is too large; let the profiler write it again",
                origin);
  }
  if (events_depth < 0)
    throw Error(ExitCode::bad_data, "{} has no 'traceEvents'; use a trace of PyTorch's export_chrome_trace",
                origin);
  return collector.take(rest.is_object() && rest.contains(kDescription) ? rest[kDescription] : Json());
}

}  // namespace plumb
