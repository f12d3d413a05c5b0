// SPDX-License-Identifier: Apache-2.0
// A provider's end for datagrams (FI_EP_RDM): the peers that it knows, and the receives that all of
// them share. Each link is granted kFrames of those and one for its key, and there are never fewer
// posted, so no peer that keeps to its grant takes what is another's. One that does not is answered
// by nothing that would hold up the others: what it sends is dropped, and its receive posted again.
//
// Thread: that of its endpoint.
#pragma once

#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "espalier/error.hpp"
#include "fabric/ofi/device.hpp"
#include "fabric/ofi/outbox.hpp"
#include "fabric/roce/port.hpp"
#include "wire/fabric_ofi_datagrams.hpp"

namespace espalier::fabric::ofi {

class DatagramEnd {
 public:
  static constexpr std::uint32_t kReceivesPerLink = wire::ofi::kFrames + 1;
  static constexpr std::size_t kDatagramBytesMax =
      sizeof(wire::ofi::DatagramHead) + wire::ofi::kFrameBytesMax;
  static_assert(sizeof(wire::ofi::DatagramHead) == Outbox::kHeadBytes);

  /// Errors: unsupported (detail: a Lack), system.
  static Result<std::unique_ptr<DatagramEnd>> open(std::shared_ptr<const Library> library,
                                                   fi_info& info);
  DatagramEnd(const DatagramEnd&) = delete;
  DatagramEnd& operator=(const DatagramEnd&) = delete;
  ~DatagramEnd() { shut(); }

  [[nodiscard]] Device& device() { return *device_; }
  /// Who this end is; the number is to be filled in.
  [[nodiscard]] const wire::ofi::Introduction& introduction() const { return own_; }
  /// For so many links there can be receives.
  [[nodiscard]] std::size_t links_max() const { return receives_max_ / kReceivesPerLink; }
  /// Has receives for so many links. Errors: out_of_memory (the provider has not), system.
  Result<void> make_room(std::size_t links);

  /// Takes a peer's word for its address, which must be one of the host that told it, if it is one
  /// of a host at all. Errors: invalid_argument.
  Result<fi_addr_t> know(const wire::ofi::Introduction& peer, const roce::IpAddress& told_by);
  /// As often as it was known.
  void forget(fi_addr_t peer);

  /// What libfabric answers. The bytes stay until the completion, which is told with this tag.
  [[nodiscard]] long send(fi_addr_t to, std::span<const std::byte> bytes, void* description,
                          void* tag) const {
    return fi_send(end_.get(), bytes.data(), bytes.size(), description, to, tag);
  }

  /// Which receive a completion is about, if it is one of these.
  [[nodiscard]] std::optional<std::uint32_t> receive_of(std::uint64_t tag) const;
  [[nodiscard]] std::span<const std::byte> arrived(std::uint32_t receive, std::size_t bytes) const {
    return {memory_of(receive), bytes};
  }
  /// It can take another datagram.
  void give_back(std::uint32_t receive);
  /// Tries again to post what could not be.
  void settle();
  /// Nothing is sent any more, nor comes.
  void shut() { end_.close(); }

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> memory;
    Fid<fid_mr> told;
  };
  struct Peer {
    std::vector<std::byte> address;
    fi_addr_t known_as = FI_ADDR_UNSPEC;
    std::uint32_t links = 0;
  };

  DatagramEnd() = default;
  Result<void> learn_own_address(const fi_info& info);
  [[nodiscard]] bool post(std::uint32_t receive);
  [[nodiscard]] std::byte* memory_of(std::uint32_t receive) const;

  std::unique_ptr<Device> device_;
  Fid<fid_av> peers_;
  std::vector<Chunk> chunks_;
  Fid<fid_ep> end_;  // ends before what it receives into
  wire::ofi::Introduction own_{};
  std::size_t receives_max_ = 0;
  std::vector<std::uint32_t> unposted_;
  std::vector<Peer> known_;
};

}  // namespace espalier::fabric::ofi
