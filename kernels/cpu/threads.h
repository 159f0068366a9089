// How many threads oneDNN and our own loops use in this process. Two implementations: OpenMP, and none.
#pragma once

namespace plumb::cpu {

void use_threads(int threads);
int threads_in_use();

}  // namespace plumb::cpu
