// Names of hosts: lists such as node[1-4],n7 and files of hosts as launch/run reads them, by the same script
// (host_list.sh), and lists written as short.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plumb {

// "node[1-4]", "node[01-04,7]", "rack[1-2]node[1-8]", "node1..4", "n1,n2", in their order. Throws
// Error(usage) that begins with `origin` ("-H"); Error(unavailable) without bash.
std::vector<std::string> read_host_list(const std::string& origin, std::string_view list);

// Open MPI's host file: lines "HOST slots=N". Throws Error(bad_data).
std::vector<std::string> read_host_file(const std::filesystem::path& file);

// The names as read_host_list and Slurm read them: "node[1-4,7],login"; in their order.
std::string host_list_text(std::span<const std::string> hosts);

// The same for sentences: at most some 60 letters, then "and 12 more".
std::string short_host_list_text(std::span<const std::string> hosts);

// Those of `hosts` that stand in a message as words.
std::vector<std::string> hosts_named_in(const std::string& message, std::vector<std::string> hosts);

}  // namespace plumb
