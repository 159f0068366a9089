// For ThreadSanitizer, which can't see OpenMP's barriers: our loops are serial; OMP_NUM_THREADS sets oneDNN's
// threads.
#include "kernels/cpu/threads.h"

namespace plumb::cpu {

void use_threads(int) {}

int threads_in_use() {
  return 1;
}

}  // namespace plumb::cpu
