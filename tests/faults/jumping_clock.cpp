// Preloaded: the wall clock is a day ahead at every other look; other clocks are right.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  static std::atomic<unsigned> looks{0};
  constexpr time_t kDay = 86'400;
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME && looks++ % 2 == 1) time->tv_sec += kDay;
  return result;
}
