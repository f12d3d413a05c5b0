// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/device.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "fabric/ofi/channel_table.hpp"
#include "wire/fabric_ofi.hpp"

namespace espalier::fabric::ofi {
namespace {

constexpr std::size_t kEventsMax = 256;
// How often an endpoint looks whose provider cannot wake it.
constexpr std::uint64_t kLookNs = 50'000;

std::string text_of(const char* name) { return name != nullptr ? name : ""; }

// libfabric's provider for TCP (1.17) takes whatever errno is for the reason why it has read less
// than a header (xnet_recv_cm_msg()). Where a peer has hung up, the system says no reason; if an
// earlier one was that nothing is there yet, the provider waits for ever, awake, and keeps the
// socket. So each call that may look at sockets begins without one.
void forget_errors() { errno = 0; }

int descriptor_of(fid* object) {
  int descriptor = -1;
  return fi_control(object, FI_GETWAIT, &descriptor) == 0 ? descriptor : -1;
}

}  // namespace

Result<std::unique_ptr<Device>> Device::open(std::shared_ptr<const Library> library,
                                             fi_info& info) {
  const auto fabric = library->open_fabric(info);
  if (!fabric) return std::unexpected(fabric.error());
  std::unique_ptr<Device> made(new Device(std::move(library)));
  made->fabric_ = Fid(*fabric);
  made->name_ = text_of(info.domain_attr->name);
  made->fabric_name_ = text_of(info.fabric_attr->name);
  made->needs_local_registration_ = (info.domain_attr->mr_mode & FI_MR_LOCAL) != 0;
  fid_domain* domain = nullptr;
  if (const int answer = fi_domain(made->fabric_.get(), &info, &domain, nullptr); answer != 0) {
    return refused(answer);
  }
  made->domain_ = Fid(domain);
  if (const auto opened = made->open_queues(); !opened) return std::unexpected(opened.error());
  return made;
}

Result<void> Device::open_queues() {
  fi_eq_attr of_events{};
  of_events.size = kEventsMax;
  fi_cq_attr of_completions{};
  of_completions.size = std::size_t{kLinksMax} * 2 * wire::ofi::kFrames;
  of_completions.format = FI_CQ_FORMAT_MSG;
  for (const fi_wait_obj wait : {FI_WAIT_FD, FI_WAIT_NONE}) {
    of_events.wait_obj = wait;
    of_completions.wait_obj = wait;
    fid_eq* events = nullptr;
    int answer = fi_eq_open(fabric_.get(), &of_events, &events, nullptr);
    if (answer == 0) {
      events_ = Fid(events);
      fid_cq* completions = nullptr;
      answer = fi_cq_open(domain_.get(), &of_completions, &completions, nullptr);
      if (answer == 0) completions_ = Fid(completions);
    }
    if (answer != 0 && wait == FI_WAIT_NONE) return refused(answer);
    if (answer != 0) continue;  // a provider with no descriptors is asked again and again
    if (wait == FI_WAIT_FD) {
      events_fd_ = descriptor_of(events_.base());
      completions_fd_ = descriptor_of(completions_.base());
    }
    break;
  }
  return {};
}

bool Device::is(const fi_info& info) const {
  return name_ == text_of(info.domain_attr->name) &&
         fabric_name_ == text_of(info.fabric_attr->name);
}

Result<Fid<fid_ep>> Device::make_end(fi_info& info) {
  fid_ep* end = nullptr;
  int answer = fi_endpoint(domain_.get(), &info, &end, nullptr);
  if (answer != 0) return refused(answer);
  Fid<fid_ep> made(end);
  answer = fi_ep_bind(end, events_.base(), 0);
  if (answer == 0) answer = fi_ep_bind(end, completions_.base(), FI_TRANSMIT | FI_RECV);
  if (answer == 0) answer = fi_enable(end);
  if (answer != 0) return refused(answer);
  return made;
}

Result<Fid<fid_pep>> Device::make_door(fi_info& info) {
  fid_pep* door = nullptr;
  int answer = fi_passive_ep(fabric_.get(), &info, &door, nullptr);
  if (answer != 0) return refused(answer);
  Fid<fid_pep> made(door);
  answer = fi_pep_bind(door, events_.base(), 0);
  if (answer != 0) return refused(answer);
  return made;
}

Result<Fid<fid_mr>> Device::register_local_memory(std::byte* at, std::size_t bytes) {
  if (!needs_local_registration_) return Fid<fid_mr>();
  fid_mr* memory = nullptr;
  const int answer =
      fi_mr_reg(domain_.get(), at, bytes, FI_SEND | FI_RECV, 0, next_key_++, 0, &memory, nullptr);
  if (answer != 0) return refused(answer);
  return Fid(memory);
}

std::optional<Device::Event> Device::next_event() {
  alignas(fi_eq_cm_entry) std::byte room[sizeof(fi_eq_cm_entry) + 512];
  std::uint32_t kind = 0;
  forget_errors();
  const auto bytes = fi_eq_read(events_.get(), &kind, room, sizeof room, 0);
  Event event;
  if (bytes == -FI_EAVAIL) {
    fi_eq_err_entry error{};
    if (fi_eq_readerr(events_.get(), &error, 0) < 0) return {};
    event.object = error.fid;
    return event;
  }
  if (bytes < static_cast<long>(sizeof(fi_eq_cm_entry))) return {};
  const auto* const entry = reinterpret_cast<const fi_eq_cm_entry*>(room);
  event.object = entry->fid;
  if (kind == FI_CONNREQ) {
    event.kind = Event::Kind::asked;
    event.info = entry->info;
  } else if (kind == FI_CONNECTED) {
    event.kind = Event::Kind::up;
  }
  return event;
}

std::size_t Device::completed(Completed (&into)[kAtATime], bool& drained) {
  fi_cq_msg_entry entries[kAtATime];
  forget_errors();
  const auto count = fi_cq_read(completions_.get(), entries, kAtATime);
  for (long i = 0; i < count; ++i) {
    into[i] = {reinterpret_cast<std::uintptr_t>(entries[i].op_context), entries[i].len, true};
  }
  drained = count < 0 && count != -FI_EAVAIL;
  if (count >= 0) return static_cast<std::size_t>(count);
  fi_cq_err_entry error{};
  if (count != -FI_EAVAIL || fi_cq_readerr(completions_.get(), &error, 0) != 1) return 0;
  into[0] = {reinterpret_cast<std::uintptr_t>(error.op_context), 0, false};
  return 1;
}

bool Device::watch(std::vector<pollfd>& into, std::uint64_t& timeout_ns) {
  if (!can_be_watched()) {
    timeout_ns = std::min(timeout_ns, kLookNs);
    return true;
  }
  fid* objects[] = {completions_.base(), events_.base()};
  forget_errors();
  if (fi_trywait(fabric_.get(), objects, 2) != 0) return false;
  into.push_back({events_fd_, POLLIN, 0});
  into.push_back({completions_fd_, POLLIN, 0});
  return true;
}

}  // namespace espalier::fabric::ofi
