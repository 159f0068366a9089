// Number of threads of oneDNN and our own loops in this process. Two implementations: OpenMP and serial.
#pragma once

namespace plumb::cpu {

void use_threads(int threads);
int threads_in_use();

}  // namespace plumb::cpu
