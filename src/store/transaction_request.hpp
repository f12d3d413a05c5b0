// SPDX-License-Identifier: Apache-2.0
// Decodes the request of a transaction (catalog/transaction_calls.hpp), and encodes its answer.
// Nodes and stores of this process use the same code.
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

/// Why a transaction is not begun; `words` are for people.
struct TransactionRefusal {
  Error error;
  std::string words{};
};

/// Decodes a request into steps, which point into it. `prefix`: of the names that the client may
/// use.
/// Errors: invalid_argument (malformed; more than 64 keys, 256 steps or 1 MiB; an object named
/// twice), not_permitted (another prefix), not_found (detail: the index of the name), unsupported
/// (detail: likewise; it cannot take part, or has another clock).
[[nodiscard]] std::expected<std::vector<ObjectSteps>, TransactionRefusal> read_transaction(
    const catalog::Catalog& catalog, const object_calls::Transact& asked,
    std::string_view prefix = {});

/// The number of a request, with its checksum. Cost: proportional to its bytes.
[[nodiscard]] RequestNumber number_of(const object_calls::TransactOnce& asked);

/// Encodes what was found; TransactTerms::answer has it. Errors: std::bad_alloc.
[[nodiscard]] std::string found_bytes(const Transacted& done);

}  // namespace espalier::store
