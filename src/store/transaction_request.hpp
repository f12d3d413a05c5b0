// SPDX-License-Identifier: Apache-2.0
// A transaction as it is asked for (catalog/transaction_calls.hpp): what its bytes name, and the
// bytes of its answer. For nodes and stores of this process alike.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/transaction_calls.hpp"
#include "store/transaction.hpp"

namespace espalier::catalog {
class Catalog;
}

namespace espalier::store {

struct RequestNumber;

/// Why a transaction is not begun, with words for people.
struct TransactionRefusal {
  Error error;
  std::string words{};
};

/// What a request names; it points into the request. `prefix`: of the names that its client may
/// use.
/// Errors: invalid_argument (no such request; more than 64 keys, 256 steps or 1 MiB; an object that
/// is named twice), not_permitted (another prefix), not_found (detail: which of the names),
/// unsupported (detail: likewise; it cannot take part, or has another clock).
[[nodiscard]] std::expected<std::vector<ObjectSteps>, TransactionRefusal> read_transaction(
    const catalog::Catalog& catalog, const object_calls::Transact& asked,
    std::string_view prefix = {});

/// The number of a request, and what tells it from others. Cost: by its bytes.
[[nodiscard]] RequestNumber number_of(const object_calls::TransactOnce& asked);

/// What was found, as it is answered; TransactTerms::answer has it. Errors: std::bad_alloc.
[[nodiscard]] std::string found_bytes(const Transacted& done);

}  // namespace espalier::store
