// SPDX-License-Identifier: Apache-2.0
// The implementation of a store: in this process (embedded_store.hpp) or on a node
// (remote_store.hpp).
//
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "channel/channel.hpp"
#include "channel/interface.hpp"
#include "espalier/map.hpp"
#include "kinds/map/client/map_impl.hpp"
#include "reach/walk_traffic.hpp"

namespace espalier::program {
class OwnCalls;
}

namespace espalier::client {

class OwnNumbers;
class TablesImpl;

/// A store. Costs and errors as in Store.
class StoreImpl : public Interface {
 public:
  /// The implementation of a store.
  static StoreImpl& of(const Store& store) { return *store.impl_; }
  /// A store that owns this implementation.
  static Store handle(std::unique_ptr<StoreImpl> impl) { return Store(std::move(impl)); }
  /// Releases the implementation of a lent store, without destroying it.
  static void leave(Store& store) { static_cast<void>(store.impl_.release()); }

  /// Returned maps are never null.
  virtual Result<MapImpl*> create_map(std::string_view name, const MapOptions& options) = 0;
  virtual Result<MapImpl*> open_map(std::string_view name) = 0;
  virtual Result<void> drop_map(std::string_view name) = 0;
  /// The channel to its objects; never null.
  [[nodiscard]] virtual std::shared_ptr<channel::Channel> channel() = 0;

  [[nodiscard]] virtual const std::string& page_message() const = 0;
  virtual Result<std::uint64_t> memory_bytes() = 0;
  /// The counters of its node, encoded (wire/node_numbers.hpp).
  /// Errors: unsupported (there is no node, or an older one), connection_lost.
  virtual Result<std::string> node_numbers() = 0;
  /// Its tables (kinds/table/client/tables.hpp); never null.
  [[nodiscard]] virtual std::unique_ptr<TablesImpl> tables() = 0;
  /// The program's own calls that this process executes; null: none.
  [[nodiscard]] virtual const program::OwnCalls* own_calls() const { return nullptr; }
  /// The numbers of its transactions, for a store on a node; null: none.
  [[nodiscard]] virtual OwnNumbers* own_numbers() { return nullptr; }
  /// Traffic of one-sided reads: of finished calls, and of destroyed pipelines.
  [[nodiscard]] virtual tree::WalkTraffic read_traffic() const { return {}; }
  virtual void trim() = 0;
};

}  // namespace espalier::client
