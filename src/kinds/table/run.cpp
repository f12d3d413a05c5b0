// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/run.hpp"

namespace espalier::table {

std::string RunError::message() const {
  if (source.code != Code::invalid) return espalier::message(source);
  return "operator " + std::to_string(operator_index) + ": " + reason + " in row " +
         std::to_string(row);
}

}  // namespace espalier::table
