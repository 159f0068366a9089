// OneFlow's ResNet-50, a line every 20 iterations that ends with the wall clock in seconds since 1970:
// "train: epoch 0, iter 20, loss: 7.087004, top_1: 0.000000, top_k: 0.000000, samples/s: 3988.891
// 1597933942.9863544", and before them the run's size: "num_nodes = 2", "gpu_num_per_node = 8",
// "batch_size_per_device = 128". Published script: DLPerf c89430b,
// OneFlow/Classification/ConvNets/resnet50v1.5/ extract_cnn_result.py. It writes a table, no dictionary; the
// figures are the same.
#include <array>
#include <cmath>

#include "results/dialects/scripts.h"

namespace plumb {
namespace {
namespace oneflow_cnn {

constexpr std::int64_t kIterationsPerLine = 20;
constexpr std::array<std::string_view, 3> kSizes{"batch_size_per_device", "gpu_num_per_node", "num_nodes"};

// The field at `position` of "a b c", split at each blank as Python's split(' ') does.
std::optional<std::string_view> field(std::string_view line, int position) {
  for (; position > 0; --position) {
    const std::size_t end = line.find(' ');
    if (end == std::string_view::npos) return std::nullopt;
    line.remove_prefix(end + 1);
  }
  return line.substr(0, line.find(' '));
}

std::string_view last_field(std::string_view line) {
  return line.substr(line.rfind(' ') + 1);
}

std::optional<std::int64_t> iteration_of(std::string_view line) {
  const std::optional<std::string_view> text = field(line, 4);
  return text && !text->empty() ? python_int(text->substr(0, text->size() - 1)) : std::nullopt;
}

std::optional<LineReading> read_line(std::string_view line, const RunSize& /*size*/) {
  if (!line.starts_with("train: epoch ")) return std::nullopt;
  constexpr std::string_view kNoTime = "doesn't end with a time in seconds since 1970";
  return reading_of(iteration_of(line), python_float(last_field(line)), "has no 'iter N,'", kNoTime, kNoTime);
}

std::int64_t batch_per_device(const RunSize& size) {
  return std::llround(size.images_per_step / static_cast<double>(size.ranks()));
}

double speed_between_seconds(double begin, double end, std::int64_t iterations, double images_per_step) {
  return images_per_step * static_cast<double>(iterations) / (end - begin);
}

double speed(const LogSeries& series, const Window& window, const RunSize& size) {
  const std::int64_t begin = window.warmup / series.index_step - 1;
  const std::int64_t end = window.iterations / series.index_step * series.index_step;
  return speed_between_seconds(series.values[static_cast<std::size_t>(begin)], series.values.back(),
                               end - window.warmup, size.images_per_step);
}

std::string contradiction(std::string_view line, const RunSize& size) {
  const std::array<std::int64_t, 3> wanted{batch_per_device(size), size.devices_per_node, size.nodes};
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    if (field(line, 0) != kSizes[i]) continue;
    const std::optional<std::string_view> text = field(line, 2);
    if (const auto value = text ? python_int(*text) : std::nullopt; value && *value != wanted[i])
      return fmt::format("{} is {} in it and {} by its name and folder", kSizes[i], *value, wanted[i]);
  }
  return "";
}

std::string header_of(const RunSize& size, std::string_view model) {
  return fmt::format("model = {}\nbatch_size_per_device = {}\ngpu_num_per_node = {}\nnum_nodes = {}\n", model,
                     batch_per_device(size), size.devices_per_node, size.nodes);
}

std::string line_of(const LoggedInterval& interval, const RunSize& /*size*/) {
  return fmt::format(
      "train: epoch 0, iter {}, loss: {:.6f}, top_1: {:.6f}, top_k: 0.000000, samples/s: {:.3f} {:.6f}",
      interval.last + 1, interval.loss, interval.top1, interval.images_per_second, interval.unix_seconds);
}

}  // namespace oneflow_cnn
}  // namespace

const Dialect kOneflowCnn{
    .name = "oneflow_cnn",
    .framework = "OneFlow",
    .source = "OneFlow's ResNet-50, from the clock of every 20 iterations",
    .model = "resnet50",
    .step_is_first_index = true,
    .values = ValueKind::stamp,
    .decimals_at_line_end = 8,  // one more than the clock's: how many a whole line has is not known
    .rounding = Rounding::python_table,
    .read_line = oneflow_cnn::read_line,
    .speed = oneflow_cnn::speed,
    .contradiction = oneflow_cnn::contradiction,
    .format = {.iterations_per_line = oneflow_cnn::kIterationsPerLine,
               .header = oneflow_cnn::header_of,
               .line = oneflow_cnn::line_of}};

}  // namespace plumb
