#include "results/formats/dialect.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "results/statistics/statistics.h"

namespace plumb {

LineReading reading_of(std::optional<std::int64_t> index, std::optional<double> value,
                       std::string_view no_index, std::string_view no_value, std::string_view not_positive) {
  if (!index || *index < 0) return {.problem = no_index};
  if (!value) return {.problem = no_value};
  if (!(*value > 0) || !std::isfinite(*value)) return {.problem = not_positive};
  return {.index = *index, .value = *value};
}

std::string own_line(const LoggedInterval& interval, const RunSize& /*size*/) {
  return fmt::format(
      "{}-INFO: [Pass 0, train batch {}] \tloss {:.5f}, acc1 {:.5f}, acc5 {:.5f}, lr {:.5f}, elapse {:.6f} "
      "sec Epoch[0] Batch[{}]\tSpeed: {:.2f} samples/sec",
      interval.stamp, interval.last, interval.loss, interval.top1, interval.top5, interval.learning_rate,
      interval.seconds, interval.last + 1, interval.images_per_second);
}

bool begins_with_own_line(const std::filesystem::path& file) {
  LineReader lines(file);
  const std::optional<std::string_view> line = lines.next();
  return line && line->find(" sec Epoch[") != std::string_view::npos;
}

double Dialect::round_average(double value) const {
  return rounding != Rounding::numpy ? round_decimal(value, 2) : round_numpy(value, 2);
}

double Dialect::round_median(double value) const {
  return medians_in_python() ? round_decimal(value, 2) : round_numpy(value, 2);
}

double Dialect::speedup(double median, double base_median) const {
  if (makes_a_table()) return round_median(median / base_median);
  return round_median(round_median(median) / round_median(base_median));
}

std::span<const Dialect* const> dialects() {
  static constexpr std::array<const Dialect*, 17> kDialects{
      &kPaddleSpeed,   &kPaddleTime,   &kMxnetRn50v1b, &kMxnetArcface, &kMxnetPartialFc,
      &kNgcMxnetSpeed, &kNgcMxnetTime, &kNgcTfSpeed,   &kNgcTfTime,    &kNgcPytorchTime,
      &kPytorch,       &kTf2Speed,     &kTf2Time,      &kMindspore,    &kOneflowCnn,
      &kOneflowFace,   &kPlsc};
  return kDialects;
}

const Dialect* find_dialect(std::string_view name) {
  for (const Dialect* dialect : dialects())
    if (dialect->name == name) return dialect;
  return nullptr;
}

const Dialect* recognise_dialect(const std::filesystem::path& file) {
  constexpr std::int64_t kHeaderLines = 100000;  // frameworks print their configuration first
  LineReader lines(file);
  while (const std::optional<std::string_view> line = lines.next()) {
    for (const Dialect* dialect : dialects()) {
      if (dialect->shares_lines_with_another) continue;
      if (const auto reading = dialect->read_line(*line, {.images_per_step = 1});
          reading && reading->problem.empty())
        return dialect;
    }
    if (lines.line_number() >= kHeaderLines) break;
  }
  return nullptr;
}

std::span<const double> after_warmup(const LogSeries& series, const Window& window) {
  const std::int64_t left_out = window.warmup / series.index_step * series.lines_per_index;
  return std::span(series.values).subspan(static_cast<std::size_t>(left_out));
}

std::optional<Window> in_whole_lines(const Dialect& dialect, const Window& wanted, std::int64_t step) {
  const std::int64_t lowest =
      std::max({wanted.warmup, dialect.lowest_warmup, std::int64_t{dialect.has_stamps()}});
  const Window window{wanted.iterations / step * step, (lowest + step - 1) / step * step};
  return window.warmup < window.iterations ? std::optional(window) : std::nullopt;
}

std::string once_per_rank(const std::string& line, const RunSize& size) {
  std::string text = line;
  for (std::int64_t rank = 1; rank < size.ranks(); ++rank) text += "\n" + line;
  return text;
}

std::string window_text(const Dialect& dialect, const Window& window) {
  if (dialect.window_text) return dialect.window_text(window);
  const std::int64_t end = window.iterations / dialect.index_step * dialect.index_step;
  return fmt::format("iterations {} to {}", window.warmup + 1, end);
}

}  // namespace plumb
