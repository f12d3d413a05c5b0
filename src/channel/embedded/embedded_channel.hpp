// SPDX-License-Identifier: Apache-2.0
// The way to objects of this process: they are there, and nobody is asked for them.
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

/// The way to the objects of a store of this process; they stay as long as it, also when the store
/// is gone.
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
