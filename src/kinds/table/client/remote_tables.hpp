// SPDX-License-Identifier: Apache-2.0
// The tables of a node, for a client: each call is a message through the thread's rings; each run
// that outlives its call has rings of its own.
//
// A node identifies a table by a number. If a new node takes over, handles find the table of their
// name there, if it has the same columns.
//
// Thread: any, but for a run: one at a time.
#pragma once

#include <memory>
#include <string_view>

#include "channel/rings/remote_sessions.hpp"
#include "kinds/table/client/tables.hpp"

namespace espalier::client {

class RemoteTables final : public TablesImpl {
 public:
  /// Rows that one append should carry: large enough to be quick, small enough for any node.
  static constexpr std::size_t kAppendBytes = std::size_t{1} << 20;

  /// The tables of the node to which a store's sessions lead.
  explicit RemoteTables(std::shared_ptr<RemoteSessions> sessions)
      : TablesImpl(sessions), sessions_(std::move(sessions)) {}

  TableResult<std::shared_ptr<TableImpl>> create(std::string_view name, const table::Schema& schema,
                                                 const MadeWith& with) override;
  TableResult<std::shared_ptr<TableImpl>> open(std::string_view name) override;

 private:
  std::shared_ptr<RemoteSessions> sessions_;
};

}  // namespace espalier::client
