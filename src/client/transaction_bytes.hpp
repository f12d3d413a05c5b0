// SPDX-License-Identifier: Apache-2.0
// A transaction of the public API as the call's bytes say it (catalog/transaction_calls.hpp), and
// what it has read out of those of an answer.
//
// Thread: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "espalier/transaction.hpp"

namespace espalier::client {

/// What is asked for.
struct TransactionBytes {
  std::uint32_t objects = 0;
  std::size_t gets = 0;
  bool writes = false;
  std::string bytes{};
};

/// Errors: invalid_argument, key_too_long, value_too_long: what no message can say; std::bad_alloc.
[[nodiscard]] Result<TransactionBytes> bytes_of(const Transaction& transaction);

/// What so many gets have found. Errors: corrupt; std::bad_alloc.
[[nodiscard]] Result<std::vector<std::optional<Found>>> read_found(std::string_view bytes,
                                                                   std::size_t gets);

}  // namespace espalier::client
