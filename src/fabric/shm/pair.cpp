// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/pair.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.hpp"
#include "fabric/shm/control_packets.hpp"
#include "fabric/shm/dial.hpp"

namespace espalier::fabric::shm {
namespace {

constexpr std::uint64_t kRedialNs = 1'000'000;

}  // namespace

Pair::Pair(std::uint32_t number, const QueuePairOptions& options, const Properties& properties,
           const Host& host)
    : QueuePair(number, options, properties),
      host_(host),
      queue_(options.send_depth, properties.inline_bytes_max) {
  host_.pairs.push_back(this);
}

Pair::~Pair() {
  end(Status::success);
  std::erase(host_.pairs, this);
}

void Pair::close() { end(Status::success); }

Result<void> Pair::dial(std::string_view path, std::span<const std::byte> data) {
  path_ = path;
  hello_.assign(data.begin(), data.end());
  auto link = shm::dial(path_, hello_, options().domain, host_.regions, host_.server_user);
  if (!link) {
    const Error error = link.error();
    if (error.code == Code::connection_lost) {
      end(Status::retry_exceeded);
      return {};
    }
    if (error.code != Code::system || error.detail != EAGAIN) return std::unexpected(error);
    redial_ns_ = base::monotonic_ns() + kRedialNs;
    return {};
  }
  path_.clear();
  const auto number = host_.service.add(*link);
  if (!number) return std::unexpected(number.error());
  link_ = std::move(*link);
  link_number_ = *number;
  return {};
}

void Pair::redial() {
  if (path_.empty() || state() != State::connecting || base::monotonic_ns() < redial_ns_) return;
  const std::string path = std::exchange(path_, {});
  const std::vector<std::byte> data = std::exchange(hello_, {});
  if (!dial(path, data)) end(Status::retry_exceeded);
}

Result<void> Pair::accept(std::uint64_t number, std::shared_ptr<PairSocket> link,
                          std::span<const std::byte> data) {
  link_ = std::move(link);
  link_number_ = number;
  auto channel = PieceRings::create(kRingSlots);
  if (!channel) return std::unexpected(channel.error());
  const auto sent = send_welcome(link_->socket.number(), data, *channel, kRingSlots, host_.regions);
  if (!sent) {
    // The peer is gone: that is the end of a connection, which this was for a moment.
    if (sent.error().code == Code::system && sent.error().detail == EPIPE) {
      link_->lost.store(true, std::memory_order_relaxed);
    } else {
      return std::unexpected(sent.error());
    }
  }
  channel->close_descriptor();
  join(std::move(*channel), std::move(link_->words), link_->data);
  if (link_->lost.load(std::memory_order_acquire)) lose();
  return {};
}

void Pair::join(PieceRings channel, memory::SharedMemory words,
                std::span<const std::byte> peer_data) {
  channel_ = std::move(channel);
  reader_ = channel_.reader();
  writer_ = channel_.writer();
  one_sided_.open(std::move(words), host_.reader.placed());
  become_connected(peer_data);
}

void Pair::attend() {
  if (link_ == nullptr || state() == State::error) return;
  // Read first, so that what came before the end is not missed.
  const bool lost = link_->lost.load(std::memory_order_acquire);
  if (auto welcome = link_->take_welcome()) {
    if (welcome->refused) return end(Status::remote_operation);
    join(std::move(welcome->channel), std::move(welcome->words), welcome->data);
  }
  if (auto answer = link_->take_answer(); answer && asked_ != 0) {
    const RegionKey asked = std::exchange(asked_, 0);
    if (answer->status != Status::success) {
      if (front_waits_for(asked)) return fail_front(answer->status);
    } else if (answer->is_void) {
      one_sided_.insert_void(answer->window);
    } else {
      one_sided_.insert(answer->window, std::move(answer->memory));
    }
  }
  if (lost) return lose();
  if (!queue_.empty() && state() == State::connected) send_on();
}

// Why the peer ended it; a peer that died says nothing.
Status Pair::peer_end_status() const {
  if (!channel_) return Status::retry_exceeded;
  const auto word = base::load_shared<std::uint32_t>(
      channel_.theirs(offsetof(wire::FabricSide, ended)), std::memory_order_acquire);
  if (word == 0) return Status::retry_exceeded;
  constexpr auto kLast = static_cast<std::uint32_t>(Status::flushed);
  return word - 1 <= kLast ? static_cast<Status>(word - 1) : Status::remote_invalid;
}

void Pair::lose() {
  if (!channel_) return end(Status::retry_exceeded);
  take_done();
  if (state() == State::connected) receive_rest();
  if (state() == State::error) return;
  const Status why = peer_end_status();
  const auto failure = base::load_shared<std::uint32_t>(
      channel_.theirs(offsetof(wire::FabricSide, failure)), std::memory_order_acquire);
  const bool at_peer = queue_.any_begun() || written_.has_value();
  if (why == Status::retry_exceeded && !queue_.empty()) {
    complete(queue_.front(), Status::retry_exceeded);
    queue_.pop();
  } else if (failure != 0 && at_peer) {
    const bool known = failure == static_cast<std::uint32_t>(Status::remote_access) ||
                       failure == static_cast<std::uint32_t>(Status::remote_operation);
    complete(queue_.front(), known ? static_cast<Status>(failure) : Status::remote_invalid);
    queue_.pop();
  }
  end(why);
}

void Pair::end(Status why) {
  if (state() == State::error) return;
  if (channel_) {
    base::store_shared(channel_.mine(offsetof(wire::FabricSide, ended)),
                       static_cast<std::uint32_t>(why) + 1, std::memory_order_release);
  }
  if (link_ != nullptr) host_.service.forget(link_number_);
  if (incoming_.receive) {
    complete_receive(*incoming_.receive, Opcode::receive, Status::flushed, 0);
    incoming_.receive.reset();
  }
  for (; !queue_.empty(); queue_.pop()) complete(queue_.front(), Status::flushed);
  enter_error_state(why);
  one_sided_.close();
}

void Pair::set_asleep(bool asleep) {
  if (state() != State::connected) return;
  base::store_shared(channel_.mine(offsetof(wire::FabricSide, sleeping)),
                     std::uint32_t{asleep ? 1u : 0u});
}

bool Pair::has_work() {
  if (state() != State::connected) return false;
  const bool starved = starved_ == done_ + 1 && !incoming_.open && receives().posted() == 0;
  if (reader_.ready() && !starved) return true;
  if (queue_.empty()) return false;
  const auto done = base::load_shared<std::uint64_t>(
      channel_.theirs(offsetof(wire::FabricSide, done)), std::memory_order_acquire);
  if (done != completed_ || (starving_since_ns_ == 0 && peer_starves())) return true;
  if (!queue_.any_waiting()) return false;
  const WorkRequest& next = queue_.next();
  if (!goes_by_ring(next)) return !queue_.any_begun() && asked_ == 0;
  return writer_.fits(std::min(next.bytes - written_.value_or(0), writer_.payload_max()));
}

std::uint64_t Pair::due_ns() const {
  if (state() == State::connecting) return path_.empty() ? 0 : redial_ns_;
  if (state() == State::error || starving_since_ns_ == 0) return 0;
  return starving_since_ns_ + options().receive_retries * options().timeout_ns;
}

}  // namespace espalier::fabric::shm
