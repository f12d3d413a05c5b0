// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/connections.hpp"

#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "fabric/ofi/listener_timeout.hpp"
#include "fabric/roce/udp_address.hpp"

namespace espalier::fabric::ofi {
namespace {

// Polling events costs a system call, so while no client connects it is done now and then.
constexpr std::uint32_t kTurnsPerLook = 16;

roce::PortAddress address_of(const void* at, std::size_t bytes) {
  sockaddr_storage storage{};
  std::memcpy(&storage, at, std::min(bytes, sizeof storage));
  const bool known = storage.ss_family == AF_INET || storage.ss_family == AF_INET6;
  return known ? roce::to_port_address(storage) : roce::PortAddress{};
}

}  // namespace

roce::PortAddress Connections::listens_at() const {
  sockaddr_storage storage{};
  std::size_t bytes = sizeof storage;
  ESPALIER_ASSERT(door_ && fi_getname(door_.base(), &storage, &bytes) == 0);
  return address_of(&storage, bytes);
}

Result<Device*> Connections::device_for(fi_info& info) {
  for (const auto& device : devices_) {
    if (device->is(info)) return device.get();
  }
  auto opened = Device::open(library_, info);
  if (!opened) return std::unexpected(opened.error());
  devices_.push_back(std::move(*opened));
  return devices_.back().get();
}

Result<ProviderChannel*> Connections::make_link(Device& device, fi_info& info) {
  const auto number = links_.next_number();
  if (!number) return fail(Code::out_of_memory, kLinksMax);
  auto made = ProviderChannel::make(device, info, *number);
  if (!made) return std::unexpected(made.error());
  look_ = true;
  return &links_.put(std::move(*made));
}

Result<ProviderChannel*> Connections::dial(const roce::PortAddress& where) {
  const auto info = library_->find(provider_, where, false);
  if (!info) return std::unexpected(info.error());
  const auto device = device_for(*info->get());
  if (!device) return std::unexpected(device.error());
  const auto link = make_link(**device, *info->get());
  if (!link) return std::unexpected(link.error());
  if (const auto dialled = (*link)->dial(*info->get()); !dialled) {
    links_.forget(**link);
    return std::unexpected(dialled.error());
  }
  return *link;
}

Result<void> Connections::listen(const roce::PortAddress& where) {
  if (door_) return fail(Code::already_exists);
  const auto info = library_->find(provider_, where, true);
  if (!info) return std::unexpected(info.error());
  const auto device = device_for(*info->get());
  if (!device) return std::unexpected(device.error());
  auto door = (*device)->make_door(*info->get());
  const int answer = door ? fi_listen(door->get()) : -static_cast<int>(door.error().detail);
  if (answer == -FI_EADDRINUSE) return fail(Code::already_exists);
  if (answer != 0) return refused(answer);
  door_ = std::move(*door);
  door_device_ = *device;
  shorten_receive_timeout(listens_at());
  return {};
}

void Connections::answer_door(fi_info& info) {
  const auto link = accept_handler_.has_room()
                        ? make_link(*door_device_, info)
                        : Result<ProviderChannel*>(fail(Code::out_of_memory));
  if (!link) {
    fi_reject(door_.get(), info.handle, nullptr, 0);
    return;
  }
  if (!(*link)->accept()) return links_.forget(**link);
  accept_handler_.accept(**link, roce::to_text(address_of(info.dest_addr, info.dest_addrlen)));
}

ProviderChannel* Connections::link_of(const fid* object) {
  const auto link =
      std::find_if(links_.all().begin(), links_.all().end(),
                   [object](const auto& each) { return each != nullptr && each->is(object); });
  return link == links_.all().end() ? nullptr : link->get();
}

// Returns whether there were any.
bool Connections::take_events() {
  if (!std::exchange(look_, false) && ++turns_ % kTurnsPerLook != 0) return false;
  bool any = false;
  for (const auto& device : devices_) {
    while (const auto event = device->next_event()) {
      any = true;
      if (event->kind == Device::Event::Kind::asked) {
        const Info info(*library_, event->info);
        answer_door(*info.get());
      } else if (ProviderChannel* const link = link_of(event->object)) {
        event->kind == Device::Event::Kind::up ? link->come_up() : link->go_down();
      }
    }
  }
  return any;
}

// `all`: until the provider says that there are no more, which costs a call of the system; else
// what is available immediately.
bool Connections::take_completions(bool all) {
  bool any = false;
  for (const auto& device : devices_) {
    Device::Completed some[Device::kAtATime];
    for (bool drained = false; !drained;) {
      const std::size_t count = device->completed(some, drained);
      if (!all && count < Device::kAtATime) drained = true;
      any = any || count != 0;
      for (const Device::Completed& each : std::span(some, count)) {
        ProviderChannel* const link = links_.find(ProviderChannel::number_of(each.tag));
        if (link != nullptr) link->complete(each);
      }
    }
  }
  return any;
}

// Events first: that a channel is down is reported behind all that has come through it.
bool Connections::take() {
  const bool events = take_events();
  return take_completions(events) || events;
}

bool Connections::maintain(std::uint64_t now_ns) {
  bool any = false;
  for (auto& link : links_.all()) {
    if (link == nullptr) continue;
    if (!link->is_up()) look_ = true;
    any = link->is_lost() || any;
    if (link->maintain(now_ns)) link.reset();
  }
  return any;
}

std::uint64_t Connections::due_ns() const {
  std::uint64_t due = UINT64_MAX;
  for (const auto& link : links_.all()) {
    if (link != nullptr && link->due_ns() != 0) due = std::min(due, link->due_ns());
  }
  return due;
}

bool Connections::watch(std::vector<pollfd>& into, std::uint64_t& timeout_ns) {
  return std::all_of(devices_.begin(), devices_.end(),
                     [&](const auto& device) { return device->watch(into, timeout_ns); });
}

}  // namespace espalier::fabric::ofi
