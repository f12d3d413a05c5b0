// SPDX-License-Identifier: Apache-2.0
// A hash map's part of a transaction (catalog/transaction_part.hpp): it locks the partitions of its
// keys in ascending order, all before any of them is changed.
//
// No memory is fetched while partitions are locked: if some is lacking, the round ends, and the
// next one begins by fetching what any of them lacks. Other threads may take that meanwhile, so
// each further round fetches more beyond it.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "catalog/transaction_part.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/hash/hash_thread_lease.hpp"
#include "memory/staged_bytes.hpp"

namespace espalier::hash {

/// A thread's lease of a HashThread, which all hash maps of a transaction share.
struct HashTransactionPlace final : catalog::TransactionPlace {
  explicit HashTransactionPlace(HashThreadLease taken) : lease(std::move(taken)) {}
  const HashThreadLease lease;
};

class HashTransactionPart final : public catalog::TransactionPart {
 public:
  /// After the parts of ordered maps, whose threads block in locks.
  static constexpr std::uint32_t kRank = 1;

  /// Errors: key_too_long, value_too_long, too_many_participants; std::bad_alloc.
  static Result<std::unique_ptr<HashTransactionPart>> begin(
      HashMap& map, std::span<const catalog::TransactionStep> steps,
      catalog::TransactionPlaces& places);
  ~HashTransactionPart() override;

  [[nodiscard]] std::uint32_t rank() const override { return kRank; }
  [[nodiscard]] std::size_t record_bytes() const override;
  void write_record(std::span<std::byte> to) const override;
  void stamp_record(std::span<std::byte> records, std::uint64_t version) const noexcept override;
  Result<void> fetch() override;
  Result<void> enter() override { return {}; }
  Result<void> lock() override;
  [[nodiscard]] bool is_dropped() const override { return map_.is_dropped(); }
  [[nodiscard]] bool holds(std::size_t step) override;
  [[nodiscard]] std::size_t found_bytes(std::size_t step) override;
  void read(std::size_t step, catalog::StepFound& to) override;
  bool look() noexcept override;
  Result<bool> prepare() override;
  void fill() noexcept override {}
  void publish(std::uint64_t version) noexcept override;
  void finish(std::uint64_t version) noexcept override;
  void unlock() noexcept override;
  void tidy() noexcept override;

 private:
  /// The writes of one partition, and whether it is locked.
  struct Share {
    Partition* partition = nullptr;
    std::size_t first = 0;  // of writes_
    std::size_t count = 0;
    bool locked = false;
    bool prepared = false;
    TransactionLack lacks{};         // of the last round
    memory::RetiredList unlinked{};  // to be handed over once no lock is held
  };

  HashTransactionPart(HashMap& map, std::span<const catalog::TransactionStep> steps,
                      HashThread& thread)
      : map_(map), steps_(steps), thread_(thread) {}
  void gather();
  void add_writes();
  [[nodiscard]] std::span<PreparedWrite> writes_of(const Share& share) {
    return std::span(writes_).subspan(share.first, share.count);
  }
  Result<void> stage_pairs();
  Result<void> fetch_records(Share& share);
  void forget_pairs() noexcept;
  void hand_over() noexcept;
  [[nodiscard]] NewestState newest(std::size_t step);

  HashMap& map_;
  const std::span<const catalog::TransactionStep> steps_;
  HashThread& thread_;
  std::vector<KeyHash> hashes_;        // of the steps' keys
  std::vector<PreparedWrite> writes_;  // by partition; of each key the last
  std::vector<Share> shares_;          // of all steps' partitions, ascending
  std::list<memory::StagedBytes> staged_;
  bool only_erases_ = false;
  bool looked_ = false;      // the first shortage was looked for
  std::uint32_t extra_ = 0;  // records that are fetched beyond what is lacking
  bool published_ = false;
};

}  // namespace espalier::hash
