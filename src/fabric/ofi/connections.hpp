// SPDX-License-Identifier: Apache-2.0
// Lines of providers that make connections (FI_EP_MSG: verbs, tcp).
//
// Thread: that of its endpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/ofi/connected_link.hpp"
#include "fabric/ofi/device.hpp"
#include "fabric/ofi/lines.hpp"
#include "fabric/ofi/link_table.hpp"

namespace espalier::fabric::ofi {

class Connections final : public Lines {
 public:
  Connections(std::shared_ptr<const Library> library, std::string_view provider, Hall& hall)
      : library_(std::move(library)), provider_(provider), hall_(hall) {}

  Result<Link*> dial(const roce::PortAddress& where) override;
  Result<void> listen(const roce::PortAddress& where) override;
  [[nodiscard]] roce::PortAddress listens_at() const override;
  void look() override { look_ = true; }
  bool take() override;
  bool settle(std::uint64_t now_ns) override;
  [[nodiscard]] bool any() const override { return links_.count() != 0; }
  [[nodiscard]] std::uint64_t due_ns() const override;
  [[nodiscard]] bool watch(std::vector<pollfd>& into, std::uint64_t& timeout_ns) override;

 private:
  [[nodiscard]] bool take_events();
  [[nodiscard]] bool take_completions(bool all);
  void answer_door(fi_info& info);
  Result<Device*> device_for(fi_info& info);
  Result<ConnectedLink*> make_link(Device& device, fi_info& info);
  [[nodiscard]] ConnectedLink* link_of(const fid* object);

  std::shared_ptr<const Library> library_;
  std::string provider_;
  Hall& hall_;
  std::vector<std::unique_ptr<Device>> devices_;
  Device* door_device_ = nullptr;
  Fid<fid_pep> door_;
  LinkTable<ConnectedLink> links_;
  std::uint32_t turns_ = 0;
  bool look_ = true;  // at events, in the next turn
};

}  // namespace espalier::fabric::ofi
