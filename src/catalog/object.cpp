// SPDX-License-Identifier: Apache-2.0
#include "catalog/object.hpp"

#include "catalog/transaction_part.hpp"

namespace espalier::catalog {

Result<std::unique_ptr<TransactionPart>> Object::transaction_part(std::span<const TransactionStep>,
                                                                  TransactionPlaces&) {
  return fail(Code::unsupported);
}

}  // namespace espalier::catalog
