// SPDX-License-Identifier: Apache-2.0
// What stands behind EmbeddingTable: one object, reached by a channel. A table of this process is
// reduced where it lies; of a node bags are asked for in as many requests as they take.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/current.hpp"
#include "channel/interface.hpp"
#include "channel/reached_object.hpp"
#include "espalier/embedding_table.hpp"

namespace espalier::embedding {
class EmbeddingTable;
struct ReductionWork;
}  // namespace espalier::embedding

namespace espalier::client {

class EmbeddingTableImpl;
class RemoteSessions;

/// A table as it was opened.
struct OpenedEmbedding {
  using Object = channel::Reached<embedding::EmbeddingTable>;

  Object object;
  EmbeddingOptions options;
  std::uint32_t row_bytes;
  std::uint32_t since;  ///< it had the name after so many renames

  /// What requests say of that.
  [[nodiscard]] std::uint32_t named() const;
};

/// What is asked of one table of several.
struct TablePart {
  EmbeddingTableImpl* table;
  const OpenedEmbedding* at;
  const EmbeddingBags* bags;
  std::span<const float> vector;
  std::span<float> results;
};

/// One embedding table. Errors as in EmbeddingTable. It follows its name: where another table was
/// given that, what is asked next goes there.
class EmbeddingTableImpl final : public Interface {
 public:
  using Object = OpenedEmbedding::Object;

  EmbeddingTableImpl(std::shared_ptr<channel::Channel> channel, OpenedEmbedding opened);
  static EmbeddingTable handle(std::shared_ptr<EmbeddingTableImpl> impl) {
    return EmbeddingTable(std::move(impl));
  }
  static EmbeddingTableImpl& of(const EmbeddingTable& handle) { return *handle.impl_; }

  [[nodiscard]] const std::string& name() const { return name_; }

  TableResult<std::uint64_t> append(std::span<const float> rows);
  TableResult<void> replace(std::uint64_t row, std::span<const float> values);
  TableResult<void> reduce(const embedding::ReductionWork& work, std::span<float> results);
  /// Each for itself (reduced_many.cpp).
  TableResult<void> reduce_many(std::span<ReduceRequest> requests, std::uint32_t in_flight);
  /// Of several, which may lie in several places.
  static TableResult<std::vector<float>> reduce_tables(Reduction reduction,
                                                       std::span<const TableBags> tables);
  TableResult<std::uint32_t> group(const RowGroups& groups);
  TableResult<std::uint32_t> renumber(std::span<std::uint32_t> ids);
  /// Floats that this comes to.
  [[nodiscard]] std::size_t floats_of(Reduction reduction, std::size_t bags) const;
  Result<EmbeddingStats> stats();
  Result<std::vector<std::string>> audit();

  const EmbeddingOptions options;  // as it was opened first; its dimension stays
  const std::uint32_t row_bytes;

 private:
  friend class TablesAsked;
  friend class ManyReductions;
  /// Does something with the table, and again where another one has its name: what was refused so
  /// was not done. Errors: besides those of what is done, outdated, and those of opening it.
  template <class Act>
  auto follow(const Act& act) -> decltype(act(std::declval<const OpenedEmbedding&>()));
  /// Whether another table was given the name since, or there were other renames; then the name as
  /// it is now is the current one. Errors: outdated (of another dimension, which is the detail),
  /// and whatever else keeps it from being opened.
  [[nodiscard]] Result<bool> open_again(const OpenedEmbedding& before);
  /// Whether the table is there, under another name than the one by which it was opened.
  /// Requires: it has not that name.
  [[nodiscard]] static bool has_gone_by_rename(const OpenedEmbedding& before);
  static TableResult<void> reduce_parts(Reduction reduction, std::span<TablePart> parts);

  [[nodiscard]] TableResult<std::string> stored(const OpenedEmbedding& at,
                                                std::span<const float> values) const;
  TableResult<void> reduce_at(const OpenedEmbedding& at, const embedding::ReductionWork& work,
                              std::span<float> results);
  /// Of a table elsewhere: by READs where this process reads alone, else by asking its node.
  TableResult<void> reduce_far(const OpenedEmbedding& at, const embedding::ReductionWork& work,
                               std::span<float> results);
  TableResult<void> reduce_at_node(const OpenedEmbedding& at, const embedding::ReductionWork& work,
                                   std::span<float> results);
  TableResult<std::uint32_t> renumber_some(const OpenedEmbedding& at, std::span<std::uint32_t> ids);
  TableResult<void> ask_for_bags(const OpenedEmbedding& at, const embedding::ReductionWork& work,
                                 std::size_t first, std::size_t end, std::span<float> results);

  const std::shared_ptr<channel::Channel> channel_;  // before the object, whose memory it keeps
  const std::string name_;
  base::Current<OpenedEmbedding> now_;
  RemoteSessions* const alone_;  // of channel_, where rows are read by this process; else null
};

// The embedding tables of a store. Returned ones are never null. Errors: see Store.
Result<std::shared_ptr<EmbeddingTableImpl>> create_embedding_table(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name,
    const EmbeddingOptions& options);
Result<std::shared_ptr<EmbeddingTableImpl>> open_embedding_table(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name);

}  // namespace espalier::client
