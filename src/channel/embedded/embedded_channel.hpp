// SPDX-License-Identifier: Apache-2.0
// The channel to objects of a store in this process: handles use the objects directly, and nothing
// is sent.
//
// Thread: any.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <utility>

#include "channel/channel.hpp"
#include "store/store_core.hpp"

namespace espalier::client {

/// The channel to a store of this process. It keeps the objects alive, even after the store is
/// gone.
class EmbeddedChannel final : public channel::Channel {
 public:
  explicit EmbeddedChannel(std::shared_ptr<tree::StoreCore> core)
      : Channel(&core->catalog, &core->parts), core_(std::move(core)) {}
  std::expected<channel::Answer, channel::Refusal> ask(
      const wire::CallMessage& request, std::optional<channel::NodeNumber> node) override;
  std::expected<void, channel::Refusal> make(const wire::CallMessage& request,
                                             const wire::CallMessage& undo,
                                             const channel::TakeAnswer& take) override;

 private:
  const std::shared_ptr<tree::StoreCore> core_;
};

}  // namespace espalier::client
