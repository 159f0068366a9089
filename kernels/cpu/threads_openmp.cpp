#include <omp.h>

#include "kernels/cpu/threads.h"

namespace plumb::cpu {

void use_threads(int threads) {
  omp_set_num_threads(threads);
}

}  // namespace plumb::cpu
