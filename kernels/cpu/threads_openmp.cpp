#include <omp.h>

#include "kernels/cpu/threads.h"

namespace plumb::cpu {

void use_threads(int threads) {
  omp_set_num_threads(threads);
}

int threads_in_use() {
  return omp_get_max_threads();
}

}  // namespace plumb::cpu
