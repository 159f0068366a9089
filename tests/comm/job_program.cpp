// A small rank for job_scenarios.sh: exits like a bench program's `main`.
#include <cstdio>
#include <string>

#include "comm/job.h"

namespace {

void run(const plumb::Job& job, const std::string& what) {
  if (what == "abort") {
    if (job.rank() == job.size() - 1) job.abort(75);
    job.barrier();
  }
  if (what == "error") {
    job.together([&] {
      if (job.rank() == 1) throw plumb::Error(plumb::ExitCode::bad_data, "--data holds no class folder");
    });
  }
  std::printf("rank %d of %d\n", job.rank(), job.size());
}

// The message precedes the Job's end.
int run_and_tell(const plumb::Job& job, const std::string& what) {
  try {
    run(job, what);
  } catch (const plumb::ErrorToldElsewhere& error) {
    return static_cast<int>(error.code());
  } catch (const plumb::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const plumb::Job job(&argc, &argv);
    return run_and_tell(job, argc > 1 ? argv[1] : "");
  } catch (const plumb::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
