// Short texts that rank 0 reads through the launcher, not through messages of MPI: in front of the first
// message, which hangs where hosts can't reach each other.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "comm/job.h"

namespace plumb {

inline constexpr std::size_t kMostPublishedBytes = 1000;  // Open MPI's MPI_MAX_PORT_NAME is 1024

// Every rank publishes `mine`, at most kMostPublishedBytes; rank 0 returns the texts of at most `most` ranks,
// evenly spread, its own first, and the other ranks nothing. By MPI_Publish_name, which Open MPI's mpirun
// answers within a millisecond. Texts that don't arrive within two seconds are left out. Nothing under
// launchers without PMIx or without a name service. Uses rank and size of the job only.
std::vector<std::string> published_texts(const Job& job, const std::string& mine, std::size_t most);

}  // namespace plumb
