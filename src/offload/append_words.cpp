// SPDX-License-Identifier: Apache-2.0
#include "offload/append_words.hpp"

#include <algorithm>

namespace espalier::offload {

std::string words_of(const table::AppendError& error, const table::Schema& schema) {
  constexpr std::size_t kNamed = 10;
  if (error.error.code == Code::unsupported) {
    return "the table is encrypted: slots are reserved for its rows first";
  }
  if (error.error.code == Code::not_found) {
    return "the reservation has ended: nothing was appended";
  }
  if (error.wrong_rows == 0) return {};
  std::string words = std::to_string(error.wrong_rows) + " wrong rows, nothing was appended";
  for (std::size_t i = 0; i < std::min(kNamed, error.wrong.size()); ++i) {
    words += "; " + table::describe(error.wrong[i], schema);
  }
  return words;
}

}  // namespace espalier::offload
