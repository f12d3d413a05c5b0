// SPDX-License-Identifier: Apache-2.0
// A link whose frames travel as datagrams (FI_EP_RDM), with a connection of TCP beside it that says
// who the peer is and when it is gone (wire/fabric_ofi_datagrams.hpp).
//
// It is up when both have introduced themselves, and this end has sent its key and got the peer's.
// What it sends lies in its memory until the provider has told that it is sent, so a link that is
// over stays until then.
//
// Thread: that of its endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "fabric/ofi/arrival_order.hpp"
#include "fabric/ofi/control.hpp"
#include "fabric/ofi/datagram_end.hpp"
#include "fabric/ofi/link.hpp"

namespace espalier::fabric::ofi {

class DatagramLink final : public Link {
 public:
  /// Two numbers that nobody can guess: what the peer is told over TCP, and what its frames must
  /// bring.
  struct Secrets {
    std::uint64_t called = 0;
    std::uint64_t key = 0;
  };
  /// `peer_ip`: at the other end of the connection. Errors: system.
  static Result<std::unique_ptr<DatagramLink>> make(DatagramEnd& end, Control control,
                                                    const roce::IpAddress& peer_ip,
                                                    const Secrets& secrets, std::uint64_t number);
  ~DatagramLink() override;

  bool carry(std::uint32_t buffer, std::span<const std::byte> frame) override;

  [[nodiscard]] const Secrets& secrets() const { return secrets_; }
  [[nodiscard]] DatagramEnd& end() const { return end_; }
  [[nodiscard]] int control() const { return control_.number(); }
  /// Something has become of the connection of TCP.
  void see_control();
  /// A datagram that went to one of the secrets; gives its receive back.
  void take(const wire::ofi::DatagramHead& head, const ArrivalOrder::Frame& where);
  /// What was sent has left, or could not.
  void complete(const Device::Completed& completed);

  /// What comes before settle(). Returns whether the link has come up meanwhile.
  [[nodiscard]] bool advance(std::uint64_t now_ns);
  [[nodiscard]] bool settle(std::uint64_t now_ns) override;
  [[nodiscard]] std::uint64_t due_ns() const override;
  /// Nobody may speak through it any more; it only waits for what it has sent.
  [[nodiscard]] bool is_finished() const { return finished_; }

 private:
  DatagramLink(std::uint64_t number, std::unique_ptr<std::byte[]> memory, DatagramEnd& end,
               Control control, const roce::IpAddress& peer_ip, const Secrets& secrets);
  void come_on();
  [[nodiscard]] bool send(std::span<const std::byte> bytes, std::uint32_t small);
  void take_key(std::span<const std::byte> payload);
  void take_in_order();
  void finish();

  std::unique_ptr<std::byte[]> memory_;  // frames, and behind them the key
  DatagramEnd& end_;
  Control control_;
  roce::IpAddress peer_ip_;
  Secrets secrets_;
  Fid<fid_mr> told_;
  void* description_ = nullptr;

  std::optional<wire::ofi::Introduction> peer_;
  fi_addr_t peer_at_ = FI_ADDR_UNSPEC;
  bool key_sent_ = false;
  std::optional<std::uint64_t> peer_key_;
  std::uint64_t gives_up_ns_;        // unless it has come up
  std::uint64_t last_words_ns_ = 0;  // when it is down, since the peer has hung up
  bool finished_ = false;

  std::uint32_t next_sequence_ = 0;
  bool stalled_ = false;         // the provider could not take what was to be sent
  std::uint32_t under_way_ = 0;  // sends
  std::uint32_t left_ = 0;       // a bit for each buffer that has, before an earlier one
  std::uint32_t next_to_leave_ = 0;
  ArrivalOrder order_;
};

}  // namespace espalier::fabric::ofi
