// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/embedded_tables.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/until_fork.hpp"
#include "catalog/await_opened.hpp"
#include "catalog/await_records.hpp"
#include "catalog/unflushed_age.hpp"
#include "channel/draw_seed.hpp"
#include "kinds/table/client/sealed_rows.hpp"
#include "kinds/table/loaded_pipeline.hpp"
#include "kinds/table/snapshot_source.hpp"
#include "kinds/table/staged_run.hpp"
#include "kinds/table/table_object.hpp"

namespace espalier::client {
namespace {

wire::TableFacts facts_of(const table::Table& of) {
  const table::TableStats stats = of.stats();
  wire::TableFacts facts{};
  facts.rows = stats.rows;
  facts.pages = stats.pages;
  facts.memory_bytes = stats.memory_bytes;
  facts.row_bytes = of.schema().row_bytes();
  facts.schema_bytes = static_cast<std::uint32_t>(of.schema().encoded_bytes());
  return facts;
}

std::optional<table::SaltBytes> salt_of(const table::Table& of) {
  if (!of.encrypted()) return std::nullopt;
  return of.salt();
}

/// So long an append waits for the reservations of others, as on a node.
constexpr std::uint64_t kReserveTimeoutNs = 30'000'000'000;

/// Of a store that was given nothing that compiles regular expressions.
class NoRegexes final : public table::RegexCompiler {
 public:
  std::expected<std::shared_ptr<const table::Regex>, std::string> compile(
      std::string_view, table::RegexOptions) override {
    return std::unexpected(
        "this store has nothing to search regular expressions with: open it with "
        "StoreOptions::regexes, regular_expressions() of the library espalier::regex, or use "
        "like()");
  }
};

class EmbeddedRun final : public TableRun {
 public:
  EmbeddedRun(std::shared_ptr<tree::StoreCore> core, std::shared_ptr<const table::Table> table,
              table::Pipeline pipeline, table::RunOptions options, RunLimits limits,
              std::optional<table::CtrCipher> cipher)
      : core_(std::move(core)),
        source_(std::move(table)),
        cipher_(std::move(cipher)),
        run_(std::move(pipeline), source_, with(options, cipher_)),
        limits_(std::move(limits)) {}

  TableResult<std::span<const std::byte>> next() override;
  void end() override { done_ = true; }
  [[nodiscard]] wire::QueryNumbers numbers() const override {
    wire::QueryNumbers numbers = run_.numbers();
    numbers.busy_ns = busy_ns_;
    return numbers;
  }

 private:
  static const table::RunOptions& with(table::RunOptions& options,
                                       std::optional<table::CtrCipher>& cipher) {
    if (cipher) options.decrypt = &*cipher;
    return options;
  }

  // What the table lies in goes last.
  const std::shared_ptr<tree::StoreCore> core_;
  table::SnapshotSource source_;
  std::optional<table::CtrCipher> cipher_;  // of the table's rows
  table::StagedRun run_;
  const RunLimits limits_;
  bool done_ = false;
  std::uint64_t busy_ns_ = 0;
};

TableResult<std::span<const std::byte>> EmbeddedRun::next() {
  const base::Stopwatch watch;
  run_.clear();
  while (!done_) {
    if (auto reached = limits_.reached()) return std::unexpected(*std::move(reached));
    const table::RunState state = run_.step(run_.step_rows());
    if (state == table::RunState::failed) {
      return refuse_table(error_of(run_.error()), run_.error().message());
    }
    done_ = state == table::RunState::done;
    if (state == table::RunState::stalled) break;
  }
  busy_ns_ += watch.elapsed_ns();
  return run_.rows();
}

/// Rows where they lie, or decrypted.
class EmbeddedRows final : public TableRun {
 public:
  /// Of one read, so that a reader notices a drop soon, and decrypts into a core's cache.
  static constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

  EmbeddedRows(std::shared_ptr<tree::StoreCore> core, std::shared_ptr<const table::Table> table,
               const RowRange& range, std::optional<table::CtrCipher> cipher, RunLimits limits)
      : core_(std::move(core)),
        snapshot_(std::move(table)),
        cipher_(std::move(cipher)),
        limits_(std::move(limits)),
        next_(std::min(range.first, snapshot_.rows())),
        end_(next_ + std::min(range.count, snapshot_.rows() - next_)) {}

  TableResult<std::span<const std::byte>> next() override;
  void end() override { next_ = end_; }
  [[nodiscard]] wire::QueryNumbers numbers() const override { return numbers_; }

 private:
  const std::shared_ptr<tree::StoreCore> core_;  // outlives the table
  const table::TableSnapshot snapshot_;
  std::optional<table::CtrCipher> cipher_;
  const RunLimits limits_;
  std::uint64_t next_;
  std::uint64_t end_;
  std::vector<std::byte> plain_;
  wire::QueryNumbers numbers_{};
};

TableResult<std::span<const std::byte>> EmbeddedRows::next() {
  if (next_ == end_) return std::span<const std::byte>();
  if (auto reached = limits_.reached()) return std::unexpected(*std::move(reached));
  const auto there = snapshot_.rows_from(next_);
  if (!there) return refuse_table(there.error());
  const std::uint64_t most = std::max<std::size_t>(kPieceBytes / there->row_bytes, 1);
  const std::uint64_t rows = std::min({most, std::uint64_t{there->count}, end_ - next_});
  const std::size_t bytes = rows * there->row_bytes;
  next_ += rows;
  numbers_.rows_sent = numbers_.rows_passed = numbers_.rows_read += rows;
  numbers_.bytes_sent = numbers_.bytes_read += bytes;
  if (!cipher_) return std::span(there->rows, bytes);
  plain_.resize(bytes);
  cipher_->apply(there->cipher_page, there->page_offset, there->rows, plain_.data(), bytes);
  return std::span<const std::byte>(plain_);
}

class EmbeddedKept final : public KeptPipeline {
 public:
  explicit EmbeddedKept(table::PipelineMessage message_in) : message(std::move(message_in)) {}
  const table::PipelineMessage message;
};

class EmbeddedTable final : public TableImpl {
 public:
  EmbeddedTable(std::shared_ptr<tree::StoreCore> core,
                std::shared_ptr<table::RegexCompiler> regexes, std::shared_ptr<table::Table> table)
      : TableImpl(table->name(), table->schema(), salt_of(*table)),
        core_(std::move(core)),
        regexes_(std::move(regexes)),
        table_(std::move(table)) {}

  TableResult<wire::TableFacts> facts() override {
    if (table_->dropped()) return refuse_table({Code::dropped, 0, 0});
    return facts_of(*table_);
  }
  TableResult<std::uint64_t> append(std::span<const std::byte> rows) override {
    catalog::wait_for_disk(*table_);
    const auto appended = table_->append(rows);
    if (appended) {
      const auto durable =
          table_->answers_early() ? Result<void>() : catalog::await_records(core_->catalog);
      if (!durable) return refuse_table(durable.error());
      return *appended;
    }
    return refuse_table(appended.error().error, describe(appended.error(), schema()));
  }
  TableResult<std::uint64_t> append_encrypted(std::span<std::byte> rows,
                                              table::CtrCipher& cipher) override;
  TableResult<std::unique_ptr<TableRun>> begin(std::span<const std::byte> pipeline,
                                               std::size_t result_row_bytes,
                                               const RunLimits& limits) override;

  TableResult<std::unique_ptr<KeptPipeline>> keep(std::span<const std::byte> pipeline) override;
  TableResult<std::unique_ptr<TableRun>> begin_kept(KeptPipeline& kept,
                                                    const table::RunConstants& constants,
                                                    std::size_t result_row_bytes,
                                                    const RunLimits& limits) override;

 protected:
  TableResult<std::unique_ptr<TableRun>> begin_read(const RowRange& range,
                                                    std::optional<table::CtrCipher> cipher,
                                                    const RunLimits& limits) override {
    if (table_->dropped()) return refuse_table({Code::dropped, 0, 0});
    return std::make_unique<EmbeddedRows>(core_, table_, range, std::move(cipher), limits);
  }

 private:
  Result<table::Reservation> reserve(std::uint64_t rows);
  [[nodiscard]] TableResult<void> compile(table::Pipeline& pipeline) const;

  const std::shared_ptr<tree::StoreCore> core_;  // outlives the table
  const std::shared_ptr<table::RegexCompiler> regexes_;
  const std::shared_ptr<table::Table> table_;
};

// Another thread may have a reservation, for as long as it takes it to encrypt.
Result<table::Reservation> EmbeddedTable::reserve(std::uint64_t rows) {
  const std::uint64_t until_ns = base::monotonic_ns() + kReserveTimeoutNs;
  for (;;) {
    const std::uint64_t now = base::monotonic_ns();
    auto reserved = table_->reserve_slots(rows, now);
    if (reserved || reserved.error().code != Code::busy || now > until_ns) return reserved;
    std::this_thread::yield();
  }
}

TableResult<std::uint64_t> EmbeddedTable::append_encrypted(std::span<std::byte> rows,
                                                           table::CtrCipher& cipher) {
  const std::size_t row_bytes = schema().row_bytes();
  const auto reserved = reserve(rows.size() / row_bytes);
  if (!reserved) return refuse_table(reserved.error());
  // First: what is encrypted for slots that a crash gives again would give both texts away.
  if (const auto durable = catalog::await_records(core_->catalog); !durable) {
    return refuse_table(durable.error());
  }
  const std::string_view slots(reinterpret_cast<const char*>(reserved->slots.data()),
                               reserved->slots.size() * sizeof(wire::ReservedSlots));
  const bool sealed = seal_rows(rows, row_bytes, slots, cipher);
  ESPALIER_ASSERT(sealed);
  const auto appended = table_->append_reserved(reserved->number, rows);
  if (!appended) return refuse_table(appended.error());
  if (const auto durable = catalog::await_records(core_->catalog); !durable) {
    return refuse_table(durable.error());
  }
  return *appended;
}

TableResult<void> EmbeddedTable::compile(table::Pipeline& pipeline) const {
  NoRegexes none;
  const auto compiled = table::compile_regexes(pipeline, regexes_ ? *regexes_ : none);
  if (compiled) return {};
  const Code code = regexes_ ? Code::invalid_argument : Code::unsupported;
  return refuse_table({code, 0, 0}, compiled.error().message());
}

TableResult<std::unique_ptr<KeptPipeline>> EmbeddedTable::keep(
    std::span<const std::byte> pipeline) {
  if (table_->dropped()) return refuse_table({Code::dropped, 0, 0});
  auto message = table::decode_pipeline(pipeline);
  if (!message) return refuse_table({Code::invalid_argument, 0, 0}, message.error().message());
  auto checked = table::check_pipeline(*message, schema());
  if (!checked) return refuse_table({Code::invalid_argument, 0, 0}, checked.error().message());
  if (auto compiled = compile(*checked); !compiled) return std::unexpected(compiled.error());
  return std::make_unique<EmbeddedKept>(*std::move(message));
}

TableResult<std::unique_ptr<TableRun>> EmbeddedTable::begin_kept(
    KeptPipeline& kept, const table::RunConstants& constants, std::size_t result_row_bytes,
    const RunLimits& limits) {
  const auto message = table::with_constants(static_cast<EmbeddedKept&>(kept).message, constants);
  if (!message) return refuse_table({Code::invalid_argument, 0, 0}, message.error().message());
  return begin(*message, result_row_bytes, limits);
}

// Rows of the result go nowhere, so there is nothing to encrypt.
TableResult<std::unique_ptr<TableRun>> EmbeddedTable::begin(std::span<const std::byte> pipeline,
                                                            std::size_t result_row_bytes,
                                                            const RunLimits& limits) {
  if (table_->dropped()) return refuse_table({Code::dropped, 0, 0});
  auto checked = table::check_pipeline(pipeline, schema());
  if (!checked) return refuse_table({Code::invalid_argument, 0, 0}, checked.error().message());
  if (auto compiled = compile(*checked); !compiled) return std::unexpected(compiled.error());
  if (checked->decrypt != table_->encrypted()) {
    return refuse_table({Code::invalid_argument, 0, 0},
                        "operator 0 (decrypt): it is for encrypted tables, and for all of them");
  }
  if (checked->decrypt != (limits.keys.table != nullptr) ||
      checked->encrypt != (limits.keys.result != nullptr)) {
    return refuse_table({Code::invalid_argument, 0, 0},
                        "the run's keys are not those that its pipeline needs");
  }
  std::optional<table::CtrCipher> cipher;
  if (checked->decrypt) {
    auto made = table::CtrCipher::derived(*limits.keys.table, table_->salt(), table::kTableKeyInfo);
    if (!made) return refuse_table(made.error(), std::string(kWhatKeysNeed));
    cipher.emplace(*std::move(made));
  }
  ESPALIER_ASSERT(checked->result.row_bytes() == result_row_bytes);
  table::RunOptions options;
  options.seed = draw_seed();
  if (!checked->grouped && !checked->distinct) options.group_bytes = table::GroupTable::kBytesMin;
  return std::make_unique<EmbeddedRun>(core_, table_, *std::move(checked), options, limits,
                                       std::move(cipher));
}

}  // namespace

TableResult<std::shared_ptr<TableImpl>> EmbeddedTables::create(std::string_view name,
                                                               const table::Schema& schema,
                                                               const MadeWith& with) {
  if (auto wrong = wrong_with_name(name)) return std::unexpected(*std::move(wrong));
  auto made = table::create_table(core_->catalog, core_->pool, name, schema,
                                  {.encrypted = with.encrypted, .durability = with.durability});
  if (const auto durable = catalog::await_objects(core_->catalog); !durable) {
    return refuse_table(durable.error());
  }
  if (!made) return refuse_table(made.error());
  return base::make_shared_until_fork<EmbeddedTable>(core_, regexes_, *std::move(made));
}

TableResult<std::shared_ptr<TableImpl>> EmbeddedTables::open(std::string_view name) {
  if (auto wrong = wrong_with_name(name)) return std::unexpected(*std::move(wrong));
  auto opened = core_->catalog.open<table::Table>(name);
  const auto durable = opened ? catalog::await_opened(core_->catalog, (*opened)->id())
                              : catalog::await_objects(core_->catalog);
  if (!durable) return refuse_table(durable.error());
  if (!opened) return refuse_table(opened.error());
  return base::make_shared_until_fork<EmbeddedTable>(core_, regexes_, *std::move(opened));
}

}  // namespace espalier::client
