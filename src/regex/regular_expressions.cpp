// SPDX-License-Identifier: Apache-2.0
#include "espalier/regex.hpp"

#include "regex/regex_cache.hpp"

namespace espalier {

std::shared_ptr<table::RegexCompiler> regular_expressions() {
  return std::make_shared<regex::RegexCache>();
}

}  // namespace espalier
