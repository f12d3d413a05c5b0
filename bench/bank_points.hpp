// SPDX-License-Identifier: Apache-2.0
// SmallBank and YCSB-T: measurements of transactions of one store.
//
// SmallBank's accounts have a checking and a savings balance. Of 100 transactions 25 pay from one
// account to another, and 15 each deposit, add to savings, write a check, read both balances, and
// move all of one account to another; 4 % of the accounts are in 90 % of them, as in FORD. The
// final sum must equal the initial sum plus what came in minus what went out.
//
// YCSB-T's transactions have 2 keys or more, drawn by a zipfian distribution, of which half are
// written.
#pragma once

#include <cstdint>

#include "bench/point_run.hpp"
#include "bench/transaction_target.hpp"

namespace espalier::bench {

struct BankSetting {
  TransactionTargetKind target = TransactionTargetKind::embedded;
  std::uint64_t accounts = 100'000;
  std::uint32_t threads = 1;
  std::uint64_t ops = 0;  ///< of all threads
  std::uint64_t seed = 1;
};

/// Errors: throws std::runtime_error, also if money was made or lost.
[[nodiscard]] PointSample measure_bank(const BankSetting& setting);

struct YcsbTransactionSetting {
  TransactionTargetKind target = TransactionTargetKind::embedded;
  std::uint64_t keys = 1'000'000;
  std::uint32_t value_bytes = 64;
  std::uint32_t length = 10;  ///< keys of the longest
  std::uint32_t threads = 1;
  std::uint64_t ops = 0;  ///< of all threads
  std::uint64_t seed = 1;
};

/// Errors: throws std::runtime_error.
[[nodiscard]] PointSample measure_ycsb_transactions(const YcsbTransactionSetting& setting);

}  // namespace espalier::bench
