// How many threads oneDNN and our own loops use in this process. Two implementations: OpenMP, and none.
#pragma once

namespace plumb::cpu {

void use_threads(int threads);

}  // namespace plumb::cpu
