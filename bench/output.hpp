// SPDX-License-Identifier: Apache-2.0
// Where a benchmark prints.
#pragma once

#include <iosfwd>

namespace espalier::bench {

struct Output {
  std::ostream& out;             ///< results
  std::ostream& err;             ///< progress
  bool err_is_terminal = false;  ///< without a terminal there is no progress
  bool colour = false;           ///< of messages on `err`
};

}  // namespace espalier::bench
