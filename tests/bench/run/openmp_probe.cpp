// Prints the wait policy and the arguments that a program sees after ensure_short_openmp_waits.
#include <cstdio>
#include <cstdlib>

#include "bench/run/environment.h"

int main(int argc, char** argv) {
  plumb::ensure_short_openmp_waits(argv);
  const char* policy = std::getenv("OMP_WAIT_POLICY");
  std::printf("OMP_WAIT_POLICY=%s", policy == nullptr ? "unset" : policy);
  for (int i = 1; i < argc; ++i) std::printf(" [%s]", argv[i]);
  std::printf("\n");
}
