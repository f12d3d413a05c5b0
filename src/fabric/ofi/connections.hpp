// SPDX-License-Identifier: Apache-2.0
// The connections of an endpoint through a provider (FI_EP_MSG: verbs, tcp). Connects and accepts
// channels, and detects when they come up, receive frames, or are gone.
//
// Thread: that of its endpoint.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "espalier/error.hpp"
#include "fabric/ofi/channel_table.hpp"
#include "fabric/ofi/device.hpp"
#include "fabric/ofi/library.hpp"
#include "fabric/ofi/provider_channel.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric::ofi {

/// The receiver of incoming connections.
class AcceptHandler {
 public:
  /// Whether there is room for one more pending connection.
  [[nodiscard]] virtual bool has_room() = 0;
  virtual void accept(ProviderChannel& link, std::string peer) = 0;

 protected:
  ~AcceptHandler() = default;
};

class Connections {
 public:
  /// `accept_handler` outlives this.
  Connections(std::shared_ptr<const Library> library, std::string_view provider,
              AcceptHandler& accept_handler)
      : library_(std::move(library)), provider_(provider), accept_handler_(accept_handler) {}

  /// Begins to connect to a listener. Errors: out_of_memory (too many), unsupported (detail: an
  /// Unsupported), system.
  Result<ProviderChannel*> dial(const roce::PortAddress& where);
  /// Errors: already_exists, unsupported (detail: an Unsupported), system.
  Result<void> listen(const roce::PortAddress& where);
  /// Where, with the port that was taken. Requires: listen() has succeeded.
  [[nodiscard]] roce::PortAddress listens_at() const;

  /// Makes the next take() poll everything; others skip polls that cost a system call now and then.
  void look() { look_ = true; }
  /// Handles what has arrived. Returns whether anything has.
  bool take();
  /// Periodic maintenance, at the end of a turn. Returns whether it called a receiver.
  bool maintain(std::uint64_t now_ns);
  [[nodiscard]] bool any() const { return links_.any(); }

  /// The next deadline; UINT64_MAX: none.
  [[nodiscard]] std::uint64_t due_ns() const;
  /// Adds descriptors that become readable when there is something to do, and shortens the timeout
  /// where there is none to wait for. Returns false if there is something already.
  [[nodiscard]] bool watch(std::vector<pollfd>& into, std::uint64_t& timeout_ns);

 private:
  [[nodiscard]] bool take_events();
  [[nodiscard]] bool take_completions(bool all);
  void answer_door(fi_info& info);
  Result<Device*> device_for(fi_info& info);
  Result<ProviderChannel*> make_link(Device& device, fi_info& info);
  [[nodiscard]] ProviderChannel* link_of(const fid* object);

  std::shared_ptr<const Library> library_;
  std::string provider_;
  AcceptHandler& accept_handler_;
  std::vector<std::unique_ptr<Device>> devices_;
  Device* door_device_ = nullptr;
  Fid<fid_pep> door_;
  ChannelTable links_;
  std::uint32_t turns_ = 0;
  bool look_ = true;  // at events, in the next turn
};

}  // namespace espalier::fabric::ofi
