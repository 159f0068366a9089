#include "comm/job.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "base/current_error.h"
#include "base/text.h"
#include "comm/agreement.h"
#include "comm/launcher.h"
#include "comm/mpi_check.h"

namespace plumb {
namespace {

// Open MPI may hang in MPI_Init on a full disk. Some file systems tell no sizes.
void require_room_for_mpi() {
  constexpr std::uintmax_t kNeeded = 1 << 20;
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
  const std::filesystem::space_info space = std::filesystem::space(folder, failed);
  if (!failed && space.capacity > 0 && space.available < kNeeded)
    throw Error(ExitCode::io_error, "TMPDIR {}: {} bytes are free, and MPI needs {}; make room",
                folder.string(), space.available, kNeeded);
}

void start_mpi(int* argc, char*** argv) {
  // Without a launcher, Open MPI would otherwise start its own daemon, which needs ssh on PATH, and make
  // folders in TMPDIR that all such processes of a user share: one that ends removes them while another
  // starts, which then can't.
  if (!has_launcher()) {
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
  }
  if (has_launcher()) require_room_for_mpi();
  int provided = MPI_THREAD_SINGLE;
  check(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_FUNNELED) {
    MPI_Finalize();
    throw Error(ExitCode::unavailable,
                "this MPI was built without threads; use one with MPI_THREAD_FUNNELED");
  }
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

std::string rank_outside_its_job(const LaunchedAs& launched, int size) {
  return fmt::format(
      "the launcher started {} processes, this one as rank {}, but MPI sees {}; use the mpirun of the MPI "
      "that Plumbline was built with, or srun --mpi=pmix",
      launched.size, launched.rank, size);
}

// MPI counts are ints.
int mpi_count(std::size_t count, const char* what) {
  if (count > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw Error(ExitCode::internal, "{} has {} elements, more than an MPI call accepts", what, count);
  return static_cast<int>(count);
}

// Behind a text that ranks compare, in front of the rank's host.
constexpr const char* kHostKey = "\nhost=";

// Removes the host from the text.
std::string take_host(std::string& text) {
  const std::size_t begin = text.rfind(kHostKey);
  if (begin == std::string::npos) return "an unknown host";  // of another commit
  const std::string host = text.substr(begin + std::string_view(kHostKey).size());
  text.resize(begin);
  return host;
}

std::optional<Error> error_of(const std::function<void()>& set_up) {
  try {
    set_up();
  } catch (const std::exception&) {
    return current_error();
  }
  return std::nullopt;
}

}  // namespace

// The first line up to its first comma: "Open MPI v4.1.4, package: …", "MPICH Version:      4.0.2".
std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "unknown";
  const std::string all(text);
  std::istringstream words(all.substr(0, all.find_first_of(",\n")));
  std::string name;
  for (std::string word; words >> word;)
    if (word != "Version:") append_part(name, word, " ");
  return name;
}

Job::Job(int* argc, char*** argv, const JobStart& start)
    : board_(start.board), before_end_(start.before_end) {
  const LaunchedAs launched = launched_as();
  start_mpi(argc, argv);
  try {
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    if (launched.size > size_) throw Error(ExitCode::usage, rank_outside_its_job(launched, size_));
    find_places();
  } catch (...) {
    MPI_Finalize();
    throw;
  }
}

Job::~Job() {
  MPI_Finalize();
}

// Ranks that can share memory are on one host; the lowest of them represents it. Builds are compared after
// these messages: every commit must send the same ones here.
void Job::find_places() {
  char host[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  check(MPI_Get_processor_name(host, &length), "MPI_Get_processor_name");
  host_.assign(host, static_cast<std::size_t>(length));

  MPI_Comm local = MPI_COMM_NULL;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local),
        "MPI_Comm_split_type");
  check(MPI_Comm_rank(local, &local_rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(local, &local_size_), "MPI_Comm_size");
  first_rank_of_host_ = rank_;
  check(MPI_Bcast(&first_rank_of_host_, 1, MPI_INT, 0, local), "MPI_Bcast");
  check(MPI_Comm_free(&local), "MPI_Comm_free");

  const int stands_for_host = local_rank_ == 0 ? 1 : 0;
  check(MPI_Allreduce(&stands_for_host, &nodes_, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
  check(MPI_Allreduce(&local_size_, &devices_per_node_, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD),
        "MPI_Allreduce");
}

std::vector<std::string> Job::all_gather(const std::string& mine) const {
  const CollectiveScope entered(board_, "all_gather");
  const int length = mpi_count(mine.size(), "a text to gather");
  std::vector<int> lengths(static_cast<std::size_t>(size_));
  check(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD), "MPI_Allgather");
  const std::size_t total = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
  mpi_count(total, "all ranks' text together");
  std::vector<int> offsets(lengths.size(), 0);
  std::partial_sum(lengths.begin(), lengths.end() - 1, offsets.begin() + 1);
  std::string all(total, '\0');
  check(MPI_Allgatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), offsets.data(), MPI_CHAR,
                       MPI_COMM_WORLD),
        "MPI_Allgatherv");
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank)
    texts.push_back(
        all.substr(static_cast<std::size_t>(offsets[rank]), static_cast<std::size_t>(lengths[rank])));
  return texts;
}

std::vector<double> Job::gather(const std::vector<double>& mine) const {
  const CollectiveScope entered(board_, "gather");
  const int count = mpi_count(mine.size(), "a list of numbers to gather");
  std::vector<double> all(rank_ == 0 ? mine.size() * static_cast<std::size_t>(size_) : 0);
  check(MPI_Gather(mine.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD),
        "MPI_Gather");
  return all;
}

std::vector<float> Job::concatenate(const std::vector<float>& mine) const {
  constexpr std::size_t kMostPerMessage = std::size_t{1} << 28;
  std::vector<float> all = rank_ == 0 ? mine : std::vector<float>();
  for (int rank = 1; rank < size_; ++rank) {
    std::uint64_t count = mine.size();
    broadcast_bytes(&count, sizeof(count), rank);
    const std::size_t begin = all.size();
    if (rank_ == 0) all.resize(begin + count);
    for (std::size_t done = 0; done < count; done += kMostPerMessage) {
      const int now = static_cast<int>(std::min(count - done, kMostPerMessage));
      if (rank_ == rank)
        check(MPI_Send(mine.data() + done, now, MPI_FLOAT, 0, 0, MPI_COMM_WORLD), "MPI_Send");
      if (rank_ == 0)
        check(MPI_Recv(all.data() + begin + done, now, MPI_FLOAT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
              "MPI_Recv");
    }
  }
  return all;
}

std::vector<double> Job::sum(const std::vector<double>& mine) const {
  const CollectiveScope entered(board_, "sum");
  std::vector<double> total(mine.size());
  check(MPI_Allreduce(mine.data(), total.data(), mpi_count(mine.size(), "a list of numbers to sum"),
                      MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD),
        "MPI_Allreduce");
  return total;
}

void Job::broadcast_bytes(void* data, std::size_t bytes, int from) const {
  const CollectiveScope entered(board_, "broadcast", bytes);
  constexpr std::size_t kMostBytesPerCall = std::size_t{1} << 30;
  for (std::size_t sent = 0; sent < bytes;) {
    const std::size_t now = std::min(bytes - sent, kMostBytesPerCall);
    check(MPI_Bcast(static_cast<std::byte*>(data) + sent, static_cast<int>(now), MPI_BYTE, from,
                    MPI_COMM_WORLD),
          "MPI_Bcast");
    sent += now;
  }
}

void Job::barrier() const {
  const CollectiveScope entered(board_, "barrier");
  check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

void Job::together(const std::function<void()>& set_up) const {
  const std::optional<Error> mine = error_of(set_up);
  const CollectiveScope entered(board_, "agreement");
  const int failed_rank = mine ? rank_ : size_;
  int first = size_;
  check(MPI_Allreduce(&failed_rank, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD), "MPI_Allreduce");
  if (first == size_) return;
  int code = mine ? static_cast<int>(mine->code()) : 0;
  broadcast_bytes(&code, sizeof(code), first);
  const std::string sentence = all_gather(mine ? mine->what() : "")[static_cast<std::size_t>(first)];
  if (first == rank_) throw *mine;
  throw ErrorToldElsewhere(static_cast<ExitCode>(code), sentence);
}

void Job::require_same(const std::string& what, const std::string& text) const {
  std::vector<std::string> texts = all_gather(text + kHostKey + host_);
  std::vector<std::string> hosts;
  for (std::string& of_rank : texts) hosts.push_back(take_host(of_rank));
  const std::optional<std::string> sentence = disagreement(what, texts, hosts);
  if (!sentence) return;
  if (rank_ == 0) throw Error(ExitCode::usage, *sentence);
  throw ErrorToldElsewhere(ExitCode::usage, *sentence);
}

// Open MPI 4.1's mpirun ends the other ranks as soon as one exits ahead of MPI_Finalize. While it handles an
// MPI_Abort, PMIx 4.2 locked it up for ever in 2 of 23 runs on busy cores, with all ranks gone; by exits in 0
// of 60.
void Job::abort(int exit_code) const {
  announce_end(exit_code);
  std::fflush(nullptr);
  if (std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

}  // namespace plumb
