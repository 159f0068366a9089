// Measured allreduces beside allreduces: of bench_allreduce, of another day, of nccl-tests.
#pragma once

#include <filesystem>
#include <string>

namespace plumb {

// Whether the file is a links.json or an output of nccl-tests. Throws nothing.
bool holds_links(const std::filesystem::path& file);

// A table of the layouts and sizes that both files contain, at most 100 columns wide except for long names.
// The ratio compares bus bandwidths by median times. Its range compares A's fastest time with B's slowest,
// and the other way round. Throws Error(bad_data) if the files share no allreduce.
std::string link_comparison_text(const std::string& first_file, const std::string& second_file);

}  // namespace plumb
