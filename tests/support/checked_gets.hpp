// SPDX-License-Identifier: Apache-2.0
// Gets in flight while their map is written, each with every value that its key had meanwhile.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "espalier/types.hpp"

namespace espalier::test {

class CheckedGets {
 public:
  /// One get, and every value that its key had meanwhile: "+value", or "-": none.
  struct Get final : Handler {
    std::string key;
    Request request;
    bool over = false;
    bool found = false;
    Code error = Code::invalid;
    std::string value;
    std::set<std::string> may_be;
    void done(const Completion& completion) override {
      over = true;
      found = completion.found;
      error = completion.error.code;
      if (found) value = completion.value;
    }
  };

  /// The map has this value now.
  void has(const std::string& name, const std::string& value);
  /// A get that is about to be submitted.
  Get& add(const std::string& name);
  /// Checks the answers that have arrived, and forgets them. Returns what is wrong.
  std::string validate();

  std::map<std::string, std::string> model;
  std::deque<std::unique_ptr<Get>> gets;
  std::uint64_t answers = 0;
  std::uint64_t errors = 0;
};

}  // namespace espalier::test
