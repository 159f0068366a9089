#include "comm/name_service.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "base/text.h"

namespace plumb {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;
constexpr std::chrono::seconds kPatienceForTexts{2};
constexpr std::chrono::milliseconds kBetweenLookups{5};

// Polls: MPI_Lookup_name doesn't wait for a rank that is late.
std::optional<std::string> looked_up(const std::string& name, SteadyTime deadline) {
  char text[MPI_MAX_PORT_NAME] = {};
  while (MPI_Lookup_name(name.c_str(), MPI_INFO_NULL, text) != MPI_SUCCESS) {
    if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
    std::this_thread::sleep_for(kBetweenLookups);
  }
  return text;
}

}  // namespace

std::vector<std::string> published_texts(const Job& job, const std::string& mine, std::size_t most) {
  // PMIx's name of this job, so that jobs of one launcher don't read each other's texts.
  const char* const space = std::getenv("PMIX_NAMESPACE");
  if (!space || mine.size() >= MPI_MAX_PORT_NAME || mine.size() > kMostPublishedBytes) return {};
  const auto name_of_rank = [&](int rank) { return fmt::format("plumbline.{}.{}", space, rank); };
  const std::size_t ranks = static_cast<std::size_t>(job.size()), count = std::min(ranks, most);
  MPI_Comm_set_errhandler(MPI_COMM_SELF,
                          MPI_ERRORS_RETURN);  // where MPI 4 raises errors without communicator
  if (MPI_Publish_name(name_of_rank(job.rank()).c_str(), MPI_INFO_NULL, mine.c_str()) != MPI_SUCCESS)
    return {};
  std::vector<std::string> texts;
  if (job.rank() != 0) return texts;
  const SteadyTime deadline = std::chrono::steady_clock::now() + kPatienceForTexts;
  for (std::size_t i = 0; i < count; ++i)
    if (const auto text = looked_up(name_of_rank(static_cast<int>(i * ranks / count)), deadline))
      texts.push_back(*text);
  return texts;
}

}  // namespace plumb
