// The addresses of a job's hosts, before and after its first message: addresses and networks that hosts share
// may keep messages from arriving (base/machine/host_addresses.h).
#pragma once

#include <functional>
#include <string>

#include "comm/job.h"

namespace plumb {

using Warn = std::function<void(const std::string& sentence)>;

// Warns of addresses and networks that hosts share, before the first message where the launcher carries
// texts, and of first messages that don't arrive.
class AddressCheck {
 public:
  // `compares`: false leaves out comparing.
  AddressCheck(bool compares, Warn warn) : compares_(compares), warn_(std::move(warn)) {}

  // For Job's constructor; refers to this.
  JobStart at_start();
  // Compares unless that was done. Every rank calls it.
  void after_start(const Job& job);

 private:
  bool compares_, compared_ = false;
  Warn warn_;
};

// The address at which other ranks reach this host; empty if it has none of its own. Every rank calls it.
std::string reachable_address(const Job& job);

}  // namespace plumb
