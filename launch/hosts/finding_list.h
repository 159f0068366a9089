// Findings as they are collected: the same one of several hosts becomes one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/hosts/findings.h"

namespace plumb {

class FindingList {
 public:
  // `detail`: what may differ from host to host, such as an amount; the first host's stands for all.
  void add(Severity severity, const std::string& check, const std::string& host, const std::string& what,
           const std::string& detail, const std::string& remedy);
  // In the order of their severity, then as they came.
  std::vector<Finding> take() &&;

 private:
  struct Collected {
    Finding finding;
    std::string detail;
    bool details_differ = false;
  };
  std::vector<Collected> collected_;
  std::map<std::string, std::size_t> index_;
};

}  // namespace plumb
