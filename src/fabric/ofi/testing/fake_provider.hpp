// SPDX-License-Identifier: Apache-2.0
// For tests: a provider of datagrams with nothing behind it. What is sent to it is kept, and a test
// plays the peers: it brings datagrams, and says when those that were sent have left, or could not.
//
// Of libfabric's tables it has what an end for datagrams asks for, and nothing else.
//
// Thread: one, and one at a time, for libfabric's functions name no provider.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "fabric/ofi/library.hpp"

namespace espalier::fabric::ofi {

class FakeProvider {
 public:
  using Bytes = std::vector<std::byte>;

  /// Its own end's address, in a format of libfabric's.
  FakeProvider(std::uint32_t address_format, Bytes own_address)
      : address_format_(address_format), own_address_(std::move(own_address)) {
    now() = this;
    fabric_.fid.ops = domain_.fid.ops = completions_.fid.ops = &objects_;
    end_.fid.ops = peers_.fid.ops = &objects_;
    fabric_.ops = &of_fabric_;
    domain_.ops = &of_domain_;
    completions_.ops = &of_completions_;
    peers_.ops = &of_peers_;
    end_.cm = &of_end_;
    end_.msg = &messages_;
  }
  FakeProvider(const FakeProvider&) = delete;
  FakeProvider& operator=(const FakeProvider&) = delete;
  ~FakeProvider() { now() = nullptr; }

  [[nodiscard]] static std::shared_ptr<const Library> library() {
    return std::make_shared<const Library>(
        Library::Functions{get_info, free_info, copy_info, open_fabric});
  }

  struct Sent {
    fi_addr_t to = FI_ADDR_UNSPEC;
    const void* at = nullptr;
    Bytes bytes;
    void* tag = nullptr;
  };
  /// Where a peer is, if somebody still knows it.
  [[nodiscard]] const Bytes* address_of(fi_addr_t peer) const {
    return peer < known_.size() && !known_[peer].empty() ? &known_[peer] : nullptr;
  }
  [[nodiscard]] std::size_t peers() const {
    return known_.size() - static_cast<std::size_t>(std::ranges::count_if(known_, &Bytes::empty));
  }
  [[nodiscard]] const std::deque<Sent>& under_way() const { return under_way_; }
  /// What has been sent since this was asked last.
  [[nodiscard]] std::vector<Sent> take_sent() { return std::exchange(sent_, {}); }
  [[nodiscard]] std::size_t posted() const { return receives_.size(); }
  /// Receives that there were ever.
  [[nodiscard]] std::size_t receives() const { return tags_.size(); }

  /// A datagram comes. Returns false if nobody waits for one.
  bool bring(std::span<const std::byte> datagram) {
    if (receives_.empty()) return false;
    const Receive receive = receives_.front();
    receives_.pop_front();
    const bool fits = datagram.size() <= receive.bytes;
    if (fits && !datagram.empty()) std::memcpy(receive.at, datagram.data(), datagram.size());
    done_.push_back({receive.tag, datagram.size(), fits});
    return true;
  }
  /// One of those under way has left, or could not. Returns whether its bytes are as they were.
  bool leave(std::size_t which, bool good) {
    const Sent sent = std::move(under_way_[which]);
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(which));
    done_.push_back({sent.tag, 0, good});
    return std::memcmp(sent.at, sent.bytes.data(), sent.bytes.size()) == 0;
  }

  std::size_t receives_max = 128;
  long send_answer = 0;     // what it says to what is to be sent
  long receive_answer = 0;  // and to receives

 private:
  struct Receive {
    void* at = nullptr;
    std::size_t bytes = 0;
    void* tag = nullptr;
  };
  struct Done {
    void* tag = nullptr;
    std::size_t bytes = 0;
    bool good = false;
  };
  /// As libfabric hands it out: the first points to the others.
  struct Described {
    fi_info info{};
    fi_tx_attr tx{};
    fi_rx_attr rx{};
    fi_ep_attr end{};
    fi_domain_attr domain{};
    fi_fabric_attr fabric{};
  };

  static FakeProvider*& now() {
    static FakeProvider* provider = nullptr;
    return provider;
  }

  static fi_info* copy_info(const fi_info*) {
    auto* const made = new Described;
    made->info.tx_attr = &made->tx;
    made->info.rx_attr = &made->rx;
    made->info.ep_attr = &made->end;
    made->info.domain_attr = &made->domain;
    made->info.fabric_attr = &made->fabric;
    return &made->info;
  }
  static void free_info(fi_info* info) {
    std::free(info->fabric_attr->prov_name);
    delete reinterpret_cast<Described*>(info);
  }
  static int get_info(std::uint32_t, const char*, const char*, std::uint64_t, const fi_info*,
                      fi_info** into) {
    fi_info* const made = copy_info(nullptr);
    made->addr_format = now()->address_format_;
    made->ep_attr->type = FI_EP_RDM;
    made->ep_attr->protocol = 7;
    made->ep_attr->protocol_version = 1;
    made->ep_attr->max_msg_size = std::size_t{1} << 20;
    made->tx_attr->size = 64;
    made->rx_attr->size = now()->receives_max;
    *into = made;
    return 0;
  }
  static int open_fabric(fi_fabric_attr*, fid_fabric** into, void*) {
    *into = &now()->fabric_;
    return 0;
  }
  static int open_domain(fid_fabric*, fi_info*, fid_domain** into, void*) {
    *into = &now()->domain_;
    return 0;
  }
  static int open_completions(fid_domain*, fi_cq_attr*, fid_cq** into, void*) {
    *into = &now()->completions_;
    return 0;
  }
  static int open_peers(fid_domain*, fi_av_attr*, fid_av** into, void*) {
    *into = &now()->peers_;
    return 0;
  }
  static int open_end(fid_domain*, fi_info*, fid_ep** into, void*) {
    *into = &now()->end_;
    return 0;
  }
  // What an end has is nobody's from then on.
  static int close(fid* object) {
    if (object != &now()->end_.fid) return 0;
    now()->receives_.clear();
    now()->under_way_.clear();
    return 0;
  }
  static int bind(fid*, fid*, std::uint64_t) { return 0; }
  // There is nothing to wait at.
  static int control(fid*, int command, void*) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; }
  static int get_name(fid*, void* into, std::size_t* bytes) {
    const Bytes& own = now()->own_address_;
    std::memcpy(into, own.data(), std::min(*bytes, own.size()));
    *bytes = own.size();
    return 0;
  }
  static int insert_peer(fid_av*, const void* address, std::size_t, fi_addr_t* into, std::uint64_t,
                         void*) {
    const auto* const bytes = static_cast<const std::byte*>(address);
    now()->known_.emplace_back(bytes, bytes + now()->own_address_.size());
    *into = now()->known_.size() - 1;
    return 1;
  }
  static int remove_peer(fid_av*, fi_addr_t* peer, std::size_t, std::uint64_t) {
    ESPALIER_ASSERT(now()->address_of(*peer) != nullptr);
    ESPALIER_ASSERT(std::ranges::none_of(now()->under_way_,
                                         [peer](const Sent& sent) { return sent.to == *peer; }));
    now()->known_[*peer].clear();
    return 0;
  }
  static ssize_t receive(fid_ep*, void* at, std::size_t bytes, void*, fi_addr_t, void* tag) {
    if (now()->receive_answer != 0) return now()->receive_answer;
    const auto posted = std::ranges::find(now()->receives_, tag, &Receive::tag);
    ESPALIER_ASSERT(posted == now()->receives_.end());
    now()->receives_.push_back({at, bytes, tag});
    now()->tags_.insert(tag);
    return 0;
  }
  static ssize_t send(fid_ep*, const void* at, std::size_t bytes, void*, fi_addr_t to, void* tag) {
    ESPALIER_ASSERT(now()->address_of(to) != nullptr);
    if (now()->send_answer != 0) return now()->send_answer;
    const auto* const first = static_cast<const std::byte*>(at);
    now()->under_way_.push_back({to, at, {first, first + bytes}, tag});
    now()->sent_.push_back(now()->under_way_.back());
    return 0;
  }
  static ssize_t read(fid_cq*, void* into, std::size_t count) {
    auto& done = now()->done_;
    if (done.empty()) return -FI_EAGAIN;
    if (!done.front().good) return -FI_EAVAIL;
    auto* const entries = static_cast<fi_cq_msg_entry*>(into);
    std::size_t read = 0;
    for (; read != count && !done.empty() && done.front().good; ++read, done.pop_front()) {
      entries[read] = {done.front().tag, 0, done.front().bytes};
    }
    return static_cast<ssize_t>(read);
  }
  static ssize_t read_error(fid_cq*, fi_cq_err_entry* into, std::uint64_t) {
    into->op_context = now()->done_.front().tag;
    now()->done_.pop_front();
    return 1;
  }

  // libfabric wants tables that can be changed, and that say how long they are.
  template <class Table>
  static Table table(void (*fill)(Table&)) {
    Table made{};
    made.size = sizeof made;
    fill(made);
    return made;
  }
  fi_ops objects_ = table<fi_ops>([](auto& to) {
    to.close = close;
    to.bind = bind;
    to.control = control;
  });
  fi_ops_fabric of_fabric_ = table<fi_ops_fabric>([](auto& to) { to.domain = open_domain; });
  fi_ops_domain of_domain_ = table<fi_ops_domain>([](auto& to) {
    to.av_open = open_peers;
    to.cq_open = open_completions;
    to.endpoint = open_end;
  });
  fi_ops_cq of_completions_ = table<fi_ops_cq>([](auto& to) {
    to.read = read;
    to.readerr = read_error;
  });
  fi_ops_av of_peers_ = table<fi_ops_av>([](auto& to) {
    to.insert = insert_peer;
    to.remove = remove_peer;
  });
  fi_ops_cm of_end_ = table<fi_ops_cm>([](auto& to) { to.getname = get_name; });
  fi_ops_msg messages_ = table<fi_ops_msg>([](auto& to) {
    to.recv = receive;
    to.send = send;
  });

  fid_fabric fabric_{};
  fid_domain domain_{};
  fid_cq completions_{};
  fid_av peers_{};
  fid_ep end_{};

  std::uint32_t address_format_;
  Bytes own_address_;
  std::vector<Bytes> known_;  // by number; empty: not any more
  std::deque<Receive> receives_;
  std::set<void*> tags_;
  std::deque<Sent> under_way_;
  std::vector<Sent> sent_;  // since somebody looked
  std::deque<Done> done_;
};

}  // namespace espalier::fabric::ofi
