#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "results/report/plot.h"
#include "results/report/plot_text.h"

namespace plumb {
namespace {

constexpr double kMebibyte = 1 << 20;

void add_block(DataBlock& rows, const MemoryBlock& block) {
  const double low = static_cast<double>(block.offset) / kMebibyte;
  const double high = static_cast<double>(block.offset + block.bytes) / kMebibyte;
  const double begin = block.first_instruction - 0.5, end = block.last_instruction + 0.5;
  rows.add_row({(begin + end) / 2, (low + high) / 2, begin, end, low, high});
}

}  // namespace

std::string memory_plot(const ReportData& data) {
  const auto run = std::find_if(data.runs.begin(), data.runs.end(), [](const ReportRun& candidate) {
    return candidate.memory && !candidate.memory->blocks.empty();
  });
  if (run == data.runs.end())
    throw Error(ExitCode::bad_data, "--plot memory needs a run folder with its program.json");
  const MemoryPicture& picture = *run->memory;
  std::vector<std::string> roles;
  for (const MemoryBlock& block : picture.blocks)
    if (std::find(roles.begin(), roles.end(), block.role) == roles.end()) roles.push_back(block.role);
  std::string blocks;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < roles.size(); ++i) {
    DataBlock rows(fmt::format("role{}", i));
    for (const MemoryBlock& block : picture.blocks)
      if (block.role == roles[i]) add_block(rows, block);
    blocks += rows.text();
    parts.push_back(
        fmt::format("{} using 1:2:3:4:5:6 with boxxyerror fillstyle solid 0.75 border linewidth 0.3 "
                    "linecolor rgb '{}' title {}",
                    rows.name(), plot_colour(i), gnuplot_literal(replaced(roles[i], '_', " "))));
  }
  return fmt::format("{}set xrange [-0.5:{}]\nset yrange [0:{}]\n{}{}",
                     plot_frame("Memory plan: " + run->label, "instruction of the iteration", "MiB"),
                     plot_number(picture.instructions - 0.5),
                     plot_number(static_cast<double>(picture.arena_bytes) / kMebibyte), blocks,
                     plot_of(parts));
}

}  // namespace plumb
