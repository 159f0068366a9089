// Preloaded: what PLUMB_LOST names happens to one rank at a call of MPI, "rank function count signal"; signal
// 0: it hangs in that call once it has been made.
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

bool is_lost_here(const char* function, int& signal) {
  const char* const asked = std::getenv("PLUMB_LOST");
  const char* const rank = std::getenv("PMIX_RANK");
  int of_rank = 0, count = 0;
  char name[64] = "";
  if (!asked || !rank || std::sscanf(asked, "%d %63s %d %d", &of_rank, name, &count, &signal) != 4)
    return false;
  static int calls = 0;
  return (of_rank < 0 || of_rank == std::atoi(rank)) && std::string_view(name) == function &&
         ++calls == count;
}

void touch_a_page_that_no_file_backs() {
  std::FILE* const file = std::tmpfile();
  void* const page = ::mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, ::fileno(file), 0);
  *static_cast<volatile char*>(page) = 1;
}

template <typename... Parameters, typename... Arguments>
int call(int (*)(Parameters...), const char* function, Arguments... arguments) {
  int signal = 0;
  const bool lost = is_lost_here(function, signal);
  if (lost && signal == SIGBUS) touch_a_page_that_no_file_backs();
  if (lost && signal != 0) ::raise(signal);
  auto* const real = reinterpret_cast<int (*)(Parameters...)>(::dlsym(RTLD_NEXT, function));
  const int code = real(arguments...);
  while (lost && signal == 0) ::pause();
  return code;
}

}  // namespace

extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  return call(MPI_Init_thread, "MPI_Init_thread", argc, argv, required, provided);
}

extern "C" int MPI_Allgatherv(const void* from, int count, MPI_Datatype of_from, void* to, const int* counts,
                              const int* offsets, MPI_Datatype of_to, MPI_Comm comm) {
  return call(MPI_Allgatherv, "MPI_Allgatherv", from, count, of_from, to, counts, offsets, of_to, comm);
}
