// SPDX-License-Identifier: Apache-2.0
// Lines of providers that make no connections but send reliable datagrams (FI_EP_RDM: EFA).
//
// Whom a datagram is from shows by the number that it was sent to, which only one peer has been
// told. What goes to no such number is dropped, so a stranger brings nothing but work.
//
// Thread: that of its endpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fabric/number_source.hpp"
#include "fabric/ofi/datagram_end.hpp"
#include "fabric/ofi/datagram_link.hpp"
#include "fabric/ofi/lines.hpp"
#include "fabric/ofi/link_table.hpp"

namespace espalier::fabric::ofi {

class Datagrams final : public Lines {
 public:
  /// Errors: system.
  static Result<std::unique_ptr<Lines>> open(std::shared_ptr<const Library> library,
                                             std::string_view provider, Hall& hall);
  ~Datagrams() override;

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
  Datagrams(std::shared_ptr<const Library> library, std::string_view provider, Hall& hall,
            NumberSource numbers)
      : library_(std::move(library)),
        provider_(provider),
        hall_(hall),
        numbers_(std::move(numbers)) {}
  [[nodiscard]] bool take_events();
  [[nodiscard]] bool take_completions(DatagramEnd& end);
  void take_datagram(DatagramEnd& end, std::uint32_t receive, std::size_t bytes);
  void answer_door();
  Result<DatagramEnd*> end_for(const roce::IpAddress& at);
  [[nodiscard]] std::size_t links_of(const DatagramEnd& end) const;
  Result<DatagramLink*> make_link(DatagramEnd& end, Control control,
                                  const roce::IpAddress& peer_ip);
  void unname(const DatagramLink& link);

  std::shared_ptr<const Library> library_;
  std::string provider_;
  Hall& hall_;
  NumberSource numbers_;
  memory::Descriptor events_;  // of the connections of TCP, and of who dials
  memory::Descriptor door_;
  DatagramEnd* door_end_ = nullptr;
  std::vector<std::pair<roce::IpAddress, std::unique_ptr<DatagramEnd>>> ends_;
  LinkTable<DatagramLink> links_;
  std::unordered_map<std::uint64_t, DatagramLink*> by_secret_;
  std::uint32_t turns_ = 0;
  bool look_ = true;  // at events, in the next turn
};

}  // namespace espalier::fabric::ofi
