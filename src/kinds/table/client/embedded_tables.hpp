// SPDX-License-Identifier: Apache-2.0
// Tables in this process's own store: pages in its memory, queries on the thread that pulls their
// rows, by the same executor as in nodes.
//
// Handles and runs keep their memory alive, even after their store is destroyed.
//
// Thread: any, but for a run: one at a time.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "channel/channel.hpp"
#include "kinds/table/client/tables.hpp"
#include "regex/regex.hpp"
#include "store/store_core.hpp"

namespace espalier::client {

class EmbeddedTables final : public TablesImpl {
 public:
  /// `regexes`: what compiles those of queries; or null, and they are refused.
  EmbeddedTables(std::shared_ptr<channel::Channel> channel, std::shared_ptr<tree::StoreCore> core,
                 std::shared_ptr<table::RegexCompiler> regexes)
      : TablesImpl(std::move(channel)), core_(std::move(core)), regexes_(std::move(regexes)) {}

  TableResult<std::shared_ptr<TableImpl>> create(std::string_view name, const table::Schema& schema,
                                                 const MadeWith& with) override;
  TableResult<std::shared_ptr<TableImpl>> open(std::string_view name) override;

 private:
  const std::shared_ptr<tree::StoreCore> core_;
  const std::shared_ptr<table::RegexCompiler> regexes_;
};

}  // namespace espalier::client
