// SPDX-License-Identifier: Apache-2.0
// What reads have in common: at which version they read.
#pragma once

#include <cstring>
#include <memory>
#include <string_view>

#include "offload/engine.hpp"

namespace espalier::offload {

/// The version that a read asks for: the newest, or that of a snapshot which its payload names.
class ReadSource {
 public:
  /// Reads it off the request. Returns false if there is none, and the request is answered.
  bool take(Engine& engine, Request& request) {
    payload_ = request.payload();
    if ((request.header.ring & wire::kAtSnapshot) == 0) return true;
    PayloadReader reader(payload_);
    const auto number = reader.take<std::uint64_t>();
    payload_ = reader.rest();
    // A request that begins anew has it already, whatever the client has closed meanwhile.
    snapshot_ = request.state ? request.state->held : nullptr;
    if (!snapshot_ && reader.good()) snapshot_ = request.connection->snapshot(number);
    if (snapshot_ == nullptr || snapshot_->map().id != request.header.map) {
      engine.fail(request, {Code::not_found, 0, 0});
      return false;
    }
    // It must stay while the walk reads it, even if the client lets go of it meanwhile.
    request.begin_state().held = snapshot_;
    return true;
  }

  /// What to walk at; null: the newest.
  [[nodiscard]] const tree::HeldVersion* held() const {
    return snapshot_ == nullptr ? nullptr : &snapshot_->version();
  }
  [[nodiscard]] std::shared_ptr<HeldSnapshot> snapshot() const { return snapshot_; }
  /// The payload behind it.
  [[nodiscard]] std::string_view payload() const { return payload_; }

 private:
  std::string_view payload_;
  std::shared_ptr<HeldSnapshot> snapshot_;
};

}  // namespace espalier::offload
