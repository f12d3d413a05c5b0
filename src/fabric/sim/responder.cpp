// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/responder.hpp"

#include <cstring>
#include <optional>
#include <utility>

#include "fabric/placed_write.hpp"
#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/sim/endpoint.hpp"
#include "fabric/sim/pair.hpp"
#include "fabric/sim/world.hpp"

namespace espalier::fabric::sim {
namespace {

// Finds the bytes of a READ, and does something with them before they can be taken back; null:
// these are zeros.
template <class Use>
bool with_source(Pair& pair, const Message& request, const Piece& piece, Use use) {
  RegionTable::Reader& reader = pair.endpoint().reader();
  reader.enter();
  const ReadSource from = reader.find_source(request.key, request.remote + piece.offset,
                                             piece.bytes, pair.options().domain);
  if (from) use(from.at);
  reader.leave();
  return static_cast<bool>(from);
}

// The same of a READ by a key that sessions share; nothing: it goes by another one.
template <class Use>
std::optional<bool> with_shared(Pair& pair, const Message& request, Use use) {
  RegionTable::Reader& reader = pair.endpoint().reader();
  reader.enter();
  const SharedSource from = reader.find_shared(request.key, request.remote, pair.options().domain);
  if (from.answers()) use(from);
  reader.leave();
  if (from.kind == SharedSource::Kind::none) return std::nullopt;
  return from.answers();
}

// The same for what changes them.
template <class Use>
bool with_region(Pair& pair, const Message& request, const Piece& piece, Use use) {
  RegionTable::Reader& reader = pair.endpoint().reader();
  reader.enter();
  std::byte* const at = reader.find(request.key, request.remote + piece.offset, piece.bytes,
                                    rights_for(request.opcode), pair.options().domain);
  if (at != nullptr) use(at);
  reader.leave();
  return at != nullptr;
}

// The same for a WRITE, with how its bytes are to be placed.
template <class Use>
bool with_target(Pair& pair, const Message& request, const Piece& piece, Use use) {
  RegionTable::Reader& reader = pair.endpoint().reader();
  reader.enter();
  const WriteTarget to = reader.find_target(request.key, request.remote + piece.offset, piece.bytes,
                                            pair.options().domain);
  if (to) use(to);
  reader.leave();
  return static_cast<bool>(to);
}

}  // namespace

bool is_shared_read(Pair& pair, const Message& request) {
  return request.opcode == Opcode::read &&
         with_shared(pair, request, [](const SharedSource&) {}).has_value();
}

bool copy_from_region(Pair& pair, const Message& request, const Piece& piece, std::byte* to) {
  if (request.opcode == Opcode::read) {
    const auto read = [&](const SharedSource& from) { from.read({to, piece.bytes}); };
    if (const auto shared = with_shared(pair, request, read)) return *shared;
    return with_source(pair, request, piece, [&](const std::byte* at) {
      if (at != nullptr) {
        std::memcpy(to, at, piece.bytes);
      } else {
        std::memset(to, 0, piece.bytes);
      }
    });
  }
  return with_region(pair, request, piece,
                     [&](const std::byte* at) { std::memcpy(to, at, piece.bytes); });
}

bool copy_to_region(Pair& pair, const Message& request, const Piece& piece, const std::byte* from) {
  if (!is_write(request.opcode)) {
    return with_region(pair, request, piece,
                       [&](std::byte* at) { std::memcpy(at, from, piece.bytes); });
  }
  return with_target(pair, request, piece, [&](const WriteTarget& to) {
    if (to.placement.kind == MemoryKind::persistent) {
      pair.endpoint().unflushed().before_store({request.key, pair.options().domain},
                                               request.remote + piece.offset, to.at, piece.bytes);
    }
    store_placed(to.at, from, piece.bytes, to.placement);
  });
}

void finish_write_in_region(Pair& pair, const Message& request) {
  if (request.bytes == 0) return;
  with_target(pair, request, {0, request.bytes, 0}, [&](const WriteTarget& to) {
    finish_write(to, request.bytes, pair.endpoint().reader().placed());
    const bool in_cache = planted(Bug::persistent_in_cache);
    if (!to.placement.past_cache || in_cache || planted(Bug::acknowledged_before_fence)) return;
    pair.endpoint().unflushed().fenced(request.key, request.remote, request.bytes);
  });
}

void Responder::on_request(Message request) {
  if (pair_.state() == QueuePair::State::error) return send_answer(request.sequence);
  answers_.erase(answers_.begin(), answers_.lower_bound(request.answered));
  if (request.sequence < next_) return repeat(std::move(request));
  early_.try_emplace(request.sequence, std::move(request));
  go_on();
}

void Responder::go_on() {
  // What is done inline would come back here for the next one.
  if (std::exchange(going_on_, true)) return;
  while (pair_.state() == QueuePair::State::connected && !failure_ && !landing_) {
    const auto found = early_.find(next_);
    if (found == early_.end()) break;
    if (found->second.opcode == Opcode::read && pair_.properties().reads_in_order &&
        !readings_.empty()) {
      break;
    }
    Message request = std::move(found->second);
    early_.erase(found);
    if (!begin(std::move(request))) break;
  }
  going_on_ = false;
}

bool Responder::begin(Message request) {
  if (const Status status = check(request); status != Status::success) {
    ++next_;
    refuse(request, status, status);
    return true;
  }
  std::optional<Receive> receive;
  if (takes_receive(request.opcode)) {
    receive = pair_.receives().take();
    if (!receive) {
      ++pair_.world().counts().receiver_not_ready;
      Message message = pair_.message(Message::Kind::not_ready, request.sequence);
      message.attempt = request.attempt;
      pair_.world().send(std::move(message));
      return false;
    }
  }
  ++next_;
  if (is_send(request.opcode) && request.bytes > receive->into.size()) {
    pair_.complete_receive_noted(*receive, Opcode::receive, Status::local_length, 0);
    refuse(request, Status::remote_invalid, Status::local_length);
  } else if (request.opcode == Opcode::read) {
    begin_reading(std::move(request), false);
  } else if (is_atomic(request.opcode)) {
    begin_atomic(std::move(request));
  } else {
    begin_landing(std::move(request), receive);
  }
  return true;
}

Status Responder::check(const Message& request) const {
  if (is_atomic(request.opcode) && request.remote % kAtomicBytes != 0) {
    return Status::remote_invalid;
  }
  if (is_send(request.opcode) || request.bytes == 0) return Status::success;
  const Piece all{0, request.bytes, 0};
  const auto nothing = [](const std::byte*) {};
  if (request.opcode != Opcode::read) {
    return with_region(pair_, request, all, nothing) ? Status::success : Status::remote_access;
  }
  const auto shared = with_shared(pair_, request, [](const SharedSource&) {});
  if (shared && request.bytes > kSharedReadBytesMax) return Status::remote_invalid;
  const bool good = shared ? *shared : with_source(pair_, request, all, nothing);
  return good ? Status::success : Status::remote_access;
}

void Responder::repeat(Message request) {
  Counts& counts = pair_.world().counts();
  if (request.opcode != Opcode::read) {
    ++counts.duplicates_refused;
    return send_answer(request.sequence);
  }
  const bool known = answers_.contains(request.sequence);
  const bool wanted = known || reads_before(request.sequence + 1);
  if (!wanted || failure_) return;
  if (pair_.properties().reads_in_order || check(request) != Status::success) {
    return send_answer(request.sequence);
  }
  ++counts.reads_again;
  begin_reading(std::move(request), true);
}

bool Responder::peer_stops(const Message& request) {
  World& world = pair_.world();
  if (!world.has_crashed(request.from.endpoint)) return false;
  if (!world.random().chance(world.faults().crash_loss)) return false;
  ++world.counts().left_undone;
  return true;
}

Message& Responder::answer(const Message& request, Status status) {
  Message message = pair_.message(Message::Kind::answer, request.sequence);
  message.status = status;
  return answers_[request.sequence] = std::move(message);
}

void Responder::send_answer(std::uint64_t sequence) {
  const auto found = answers_.find(sequence);
  if (found != answers_.end()) pair_.world().send(found->second);
}

void Responder::refuse(const Message& request, Status status, Status own_status) {
  if (!failure_ || request.sequence < failure_->sequence) {
    failure_ = Failure{request.sequence, status, own_status};
  }
  give_up_reads(failure_->sequence);
  end_if_refused();
}

void Responder::end_if_refused() {
  if (!failure_ || reads_before(failure_->sequence)) return;
  ++pair_.world().counts().refused;
  Message message = pair_.message(Message::Kind::answer, failure_->sequence);
  message.status = failure_->status;
  answers_[failure_->sequence] = std::move(message);
  send_answer(failure_->sequence);
  pair_.end(failure_->own_status, false);
}

void Responder::stop() {
  if (landing_ && landing_->receive) {
    pair_.complete_receive_noted(*landing_->receive, Opcode::receive, Status::flushed, 0);
    landing_->receive.reset();
  }
  release();
}

void Responder::release() {
  if (landing_ && landing_->receive) pair_.receives().completions().release();
  if (landing_ && is_atomic(landing_->request.opcode)) {
    pair_.world().leave_atomic_unit(pair_.name());
  }
  landing_.reset();
  readings_.clear();
  early_.clear();
}

}  // namespace espalier::fabric::sim
