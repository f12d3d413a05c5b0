// SPDX-License-Identifier: Apache-2.0
// Encodes a transaction of the public API as a call (catalog/transaction_calls.hpp), and decodes
// what it has read from an answer.
//
// Thread: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "espalier/transaction.hpp"

namespace espalier::client {

/// The encoded request.
struct TransactionBytes {
  std::uint32_t objects = 0;
  std::size_t gets = 0;
  bool writes = false;
  std::string bytes{};
};

/// Errors: invalid_argument, key_too_long, value_too_long (not encodable); std::bad_alloc.
[[nodiscard]] Result<TransactionBytes> bytes_of(const Transaction& transaction);

/// The results of so many gets. Errors: corrupt; std::bad_alloc.
[[nodiscard]] Result<std::vector<std::optional<Found>>> read_found(std::string_view bytes,
                                                                   std::size_t gets);

}  // namespace espalier::client
