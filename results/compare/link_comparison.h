// Measured allreduces beside allreduces: of bench_allreduce, of another day, of nccl-tests.
#pragma once

#include <filesystem>
#include <string>

namespace plumb {

// Whether the file is a links.json or an output of nccl-tests. Throws nothing.
bool holds_links(const std::filesystem::path& file);

// The layouts and sizes that both files have, as a table within 100 columns but for long names. The ratio is
// of bus bandwidths: of the median times, and its range of each one's fastest and slowest time. Throws
// Error(bad_data) if the files have nothing in common.
std::string link_comparison_text(const std::string& first_file, const std::string& second_file);

}  // namespace plumb
