// SPDX-License-Identifier: Apache-2.0
// A provider of libfabric, opened for one of its devices: makes endpoints, and polls their events
// and completions.
//
// Thread: that of its endpoint.
#pragma once

#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "espalier/error.hpp"
#include "fabric/ofi/library.hpp"

namespace espalier::fabric::ofi {

class Device {
 public:
  /// Errors: system.
  static Result<std::unique_ptr<Device>> open(std::shared_ptr<const Library> library,
                                              fi_info& info);

  /// Whether it is the one that this information is about.
  [[nodiscard]] bool is(const fi_info& info) const;
  /// An active endpoint, to connect or to accept. Errors: system.
  Result<Fid<fid_ep>> make_end(fi_info& info);
  /// A passive endpoint, not listening yet. Errors: system.
  Result<Fid<fid_pep>> make_door(fi_info& info);
  /// Registers memory for frames; nothing where the provider needs no registration.
  /// Errors: system.
  Result<Fid<fid_mr>> register_local_memory(std::byte* at, std::size_t bytes);

  /// Something about a connection: `object` is what it is about. Of FI_CONNREQ, `info` is to be
  /// given back.
  struct Event {
    enum class Kind : std::uint8_t { asked, up, down };
    Kind kind = Kind::down;
    const fid* object = nullptr;
    fi_info* info = nullptr;
  };
  std::optional<Event> next_event();

  /// A frame that has come or left, or could not.
  struct Completed {
    std::uint64_t tag = 0;
    std::size_t bytes = 0;
    bool good = false;
  };
  /// At most so many at a time.
  static constexpr std::size_t kAtATime = 64;
  /// Some of those that there are; `drained`: there were none.
  std::size_t completed(Completed (&into)[kAtATime], bool& drained);

  /// Adds descriptors that become readable when there is something to do, or shortens the timeout
  /// if the provider has none. Returns false if there is something already.
  [[nodiscard]] bool watch(std::vector<pollfd>& into, std::uint64_t& timeout_ns);

 private:
  explicit Device(std::shared_ptr<const Library> library) : library_(std::move(library)) {}
  Result<void> open_queues();
  [[nodiscard]] bool can_be_watched() const { return events_fd_ >= 0 && completions_fd_ >= 0; }

  std::shared_ptr<const Library> library_;
  std::string name_;
  std::string fabric_name_;
  bool needs_local_registration_ = false;
  std::uint64_t next_key_ = 1;
  Fid<fid_fabric> fabric_;
  Fid<fid_eq> events_;
  Fid<fid_domain> domain_;
  Fid<fid_cq> completions_;
  int events_fd_ = -1;
  int completions_fd_ = -1;
};

}  // namespace espalier::fabric::ofi
