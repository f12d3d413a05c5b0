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
#include <utility>

#include "channel/embedded/embedded_channel.hpp"
#include "client/store_impl.hpp"
#include "kinds/map/client/call_context.hpp"
#include "kinds/map/client/embedded_map.hpp"
#include "regex/regex.hpp"
#include "store/store_core.hpp"

namespace espalier::client {

class EmbeddedStore final : public StoreImpl {
 public:
  static constexpr std::uint32_t kParticipantsMax = 16384;
  /// What happens to a map that is dropped while handles to it may be in use.
  enum class Dropped : std::uint8_t {
    freed,  ///< the caller of Store::drop_map guarantees that none is in use
    kept,   ///< other clients drop it, too: see keeps_dropped()
  };

  /// Errors: as Store::open.
  static Result<std::unique_ptr<StoreImpl>> open(const StoreOptions& options);
  EmbeddedStore(memory::Region region, const StoreOptions& options);
  /// Uses a store that is shared with the clients that it serves, or with its data folder.
  EmbeddedStore(std::shared_ptr<tree::StoreCore> core,
                std::shared_ptr<table::RegexCompiler> regexes, Dropped dropped = Dropped::kept);
  /// Memory for a store with these options. Errors: as Store::open.
  static Result<memory::Region> reserve(const StoreOptions& options);
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
  [[nodiscard]] const program::OwnCalls* own_calls() const override { return own_calls_.get(); }
  void trim() override;

  [[nodiscard]] std::uint64_t limit_bytes() const { return core_.region.limit_bytes(); }
  /// Whether it keeps a dropped map alive, for handles that may be in use.
  [[nodiscard]] bool keeps_dropped();
  /// Sets the program's own calls. Requires: no thread uses the store yet.
  void carry_out(std::shared_ptr<const program::OwnCalls> calls) { own_calls_ = std::move(calls); }

 private:
  using MapsById = std::unordered_map<std::uint32_t, std::unique_ptr<EmbeddedMap>>;
  [[nodiscard]] MapsById::node_type handle_room();
  Result<MapImpl*> make_map(std::string_view name, const MapOptions& options);
  Result<MapImpl*> find_map(std::string_view name, std::uint32_t& id);
  Result<void> take_map_away(std::string_view name);
  template <class Answer>
  [[nodiscard]] Result<Answer> durable(Result<Answer> answer) const;
  [[nodiscard]] MapImpl* behind_handles(std::shared_ptr<tree::MapCore> core);

  const std::shared_ptr<tree::StoreCore> shared_;  // with all tables that are in use
  tree::StoreCore& core_;
  const std::shared_ptr<EmbeddedChannel> channel_;
  const std::shared_ptr<table::RegexCompiler> regexes_;  // of StoreOptions; may be null
  const bool keeps_dropped_ = false;
  std::shared_ptr<const program::OwnCalls> own_calls_;  // null: none
  const std::shared_ptr<CallContextPool> sessions_;
  std::mutex mutex_;  // guards maps_ and its agreement with the catalogue; taken before the
                      // catalogue's lock
  MapsById maps_;
};

}  // namespace espalier::client
