// A thread that no signal interrupts: handlers run on the threads that compute.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace plumb {

template <typename Body>
std::jthread quiet_thread(Body&& body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // a thread takes the mask of the one that makes it
  std::jthread thread(std::forward<Body>(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace plumb
