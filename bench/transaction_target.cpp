// SPDX-License-Identifier: Apache-2.0
#include "bench/transaction_target.hpp"

namespace espalier::bench {

std::string_view name(TransactionTargetKind kind) {
  return kind == TransactionTargetKind::embedded ? "embedded" : "rocksdb";
}

std::optional<TransactionTargetKind> parse_transaction_target(std::string_view text) {
  for (const auto kind : {TransactionTargetKind::embedded, TransactionTargetKind::rocksdb}) {
    if (text == name(kind)) return kind;
  }
  return std::nullopt;
}

std::unique_ptr<TransactionTarget> make_transaction_target(TransactionTargetKind kind) {
  return kind == TransactionTargetKind::embedded ? make_embedded_transactions()
                                                 : make_rocksdb_transactions();
}

}  // namespace espalier::bench
