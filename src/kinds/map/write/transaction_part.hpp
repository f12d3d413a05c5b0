// SPDX-License-Identifier: Apache-2.0
// An ordered map's part of a transaction (catalog/transaction_part.hpp): a batch (batch_writer.hpp)
// whose leaves stay locked until the version shared by all parts is taken.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "catalog/transaction_part.hpp"
#include "kinds/map/write/batch_writer.hpp"
#include "kinds/map/write/prepared_batch.hpp"
#include "kinds/map/write/transaction_threads.hpp"

namespace espalier::tree {

class MapTransactionPart final : public catalog::TransactionPart {
 public:
  /// Errors: those of the begin of a batch; wrong_shard, too_many_participants; std::bad_alloc.
  static Result<std::unique_ptr<MapTransactionPart>> begin(
      MapCore& map, std::span<const catalog::TransactionStep> steps,
      catalog::TransactionPlaces& places);
  ~MapTransactionPart() override { unlock(); }

  [[nodiscard]] std::uint32_t rank() const override { return 0; }
  [[nodiscard]] std::size_t record_bytes() const override;
  void write_record(std::span<std::byte> to) const override;
  void stamp_record(std::span<std::byte> records, std::uint64_t version) const noexcept override;
  Result<void> fetch() override;
  Result<void> enter() override;
  Result<void> lock() override;
  [[nodiscard]] bool is_dropped() const override { return map_.is_dropped(); }
  [[nodiscard]] bool holds(std::size_t step) override;
  [[nodiscard]] std::size_t found_bytes(std::size_t step) override;
  void read(std::size_t step, catalog::StepFound& to) override;
  Result<bool> prepare() override;
  void fill() noexcept override { writer_->fill(); }
  void publish(std::uint64_t version) noexcept override;
  void finish(std::uint64_t version) noexcept override;
  void unlock() noexcept override;
  void tidy() noexcept override;

 private:
  MapTransactionPart(MapCore& map, std::span<const catalog::TransactionStep> steps,
                     TransactionThread& thread)
      : map_(map), steps_(steps), thread_(thread), prepared_(thread.context(), map) {}
  Result<void> gather();
  [[nodiscard]] NewestState newest(std::size_t step) const;
  [[nodiscard]] std::string_view value_of(const NewestState& state) const;

  MapCore& map_;
  const std::span<const catalog::TransactionStep> steps_;
  TransactionThread& thread_;
  PreparedBatch prepared_;
  std::vector<SearchKey> keys_;         // of the steps
  std::vector<KeyCondition> locked_;    // of keys that are read: locks their leaves
  std::optional<BatchWriter> writer_;   // of one attempt
  std::vector<const SearchKey*> thin_;  // keys of leaves that may be merged away
};

}  // namespace espalier::tree
