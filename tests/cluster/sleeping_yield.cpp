// Preloaded into ranks that wait for slow links: where Open MPI yields between polls, they sleep, and leave
// the cores to those that compute.
#include <time.h>

extern "C" int sched_yield() {
  const timespec pause{.tv_sec = 0, .tv_nsec = 500'000};
  return nanosleep(&pause, nullptr);
}
