// SPDX-License-Identifier: Apache-2.0
// A store in this process.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "channel/embedded/embedded_channel.hpp"
#include "client/store_impl.hpp"
#include "kinds/map/client/call_context.hpp"
#include "kinds/map/client/embedded_map.hpp"
#include "regex/regex.hpp"
#include "store/store_core.hpp"

namespace espalier::client {

class EmbeddedStore final : public StoreImpl {
 public:
  /// Errors: as Store::open.
  static Result<std::unique_ptr<StoreImpl>> open(const StoreOptions& options);
  EmbeddedStore(memory::Region region, const StoreOptions& options);
  ~EmbeddedStore() override;

  Result<MapImpl*> create_map(std::string_view name, const MapOptions& options) override;
  Result<MapImpl*> open_map(std::string_view name) override;
  Result<void> drop_map(std::string_view name) override;
  [[nodiscard]] const std::string& page_message() const override {
    return core_.region.page_message();
  }
  Result<std::uint64_t> memory_bytes() override { return core_.region.taken_bytes(); }
  Result<std::string> node_numbers() override { return fail(Code::unsupported); }
  [[nodiscard]] std::unique_ptr<TablesImpl> tables() override;
  [[nodiscard]] std::shared_ptr<channel::Channel> channel() override { return channel_; }
  void trim() override;

 private:
  using MapsById = std::unordered_map<std::uint32_t, std::unique_ptr<EmbeddedMap>>;
  [[nodiscard]] MapsById::node_type handle_room();
  [[nodiscard]] MapImpl* behind_handles(std::shared_ptr<tree::MapCore> core);

  const std::shared_ptr<tree::StoreCore> shared_;  // with all tables that somebody holds
  tree::StoreCore& core_;
  const std::shared_ptr<EmbeddedChannel> channel_;
  const std::shared_ptr<table::RegexCompiler> regexes_;  // of StoreOptions; may be null
  const std::shared_ptr<CallContextPool> sessions_;
  std::mutex mutex_;  // guards maps_, together with what the catalogue says; taken before its lock
  MapsById maps_;
};

}  // namespace espalier::client
