// What all_reduce_perf of NVIDIA's nccl-tests (src/util.cu, 2.19) measured, as links: its table, and the JSON
// of its -J.
#pragma once

#include <string>
#include <string_view>

#include "results/record/links.h"

namespace plumb {

bool is_nccl_tests_table(std::string_view text);
bool is_nccl_tests_json(const Json& json);

// The allreduces in place; of -J's per-iteration times their range. Throws Error(bad_data) that names
// `origin` and what is wrong: another collective, wrong elements, hosts with unequal counts of devices.
Links links_from_nccl_tests_table(std::string_view table, const std::string& origin);
Links links_from_nccl_tests_json(const Json& json, const std::string& origin);

}  // namespace plumb
