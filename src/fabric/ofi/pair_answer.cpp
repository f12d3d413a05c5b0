// SPDX-License-Identifier: Apache-2.0
// What a pair does for its peer. All that is read here was written by a peer that may mean ill.
#include <algorithm>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "fabric/ofi/pair.hpp"
#include "fabric/placed_write.hpp"
#include "fabric/shared_copy.hpp"

namespace espalier::fabric::ofi {
namespace {

using wire::ofi::Operands;
using wire::ofi::RecordHead;
using wire::ofi::RecordKind;

bool is_write(RecordKind kind) {
  return kind == RecordKind::write || kind == RecordKind::write_immediate;
}

bool takes_receive(RecordKind kind) {
  return kind == RecordKind::send || kind == RecordKind::send_immediate ||
         kind == RecordKind::write_immediate;
}

RecordKind kind_in(const RecordHead& head) { return static_cast<RecordKind>(head.kind); }

// A READ is cut between these; less than each part that is not its last (send_buffer.cpp).
constexpr std::uint32_t kGrain = 64;

/// Between entering and leaving, what was found stays offered.
class Access {
 public:
  explicit Access(RegionTable::Reader& reader) : reader_(reader) { reader_.enter(); }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
  ~Access() { reader_.leave(); }
  [[nodiscard]] std::byte* find(const RecordHead& head, RemoteRights rights, Domain domain) const {
    return reader_.find(head.key, head.remote, head.message_bytes, rights, domain);
  }
  [[nodiscard]] WriteTarget find_target(const RecordHead& head, Domain domain) const {
    return reader_.find_target(head.key, head.remote, head.message_bytes, domain);
  }
  [[nodiscard]] ReadSource find_source(const RecordHead& head, Domain domain) const {
    return reader_.find_source(head.key, head.remote, head.message_bytes, domain);
  }

 private:
  RegionTable::Reader& reader_;
};

}  // namespace

void Pair::take_request(const Record& record) {
  const std::uint32_t bytes = wire::ofi::record_bytes(record.head.bytes);
  came_bytes_ += bytes;
  if (came_bytes_ - did_bytes_ > wire::ofi::kWindowBytes) {
    refuse(Status::remote_invalid);
    return;
  }
  if (aside_begin_ == aside_.size()) {
    const Done done = answer(record);
    if (done == Done::failed) return;
    if (done == Done::yes) return channel_->out().did(did_bytes_ += bytes);
  }
  const std::size_t at = aside_.size();
  aside_.resize(at + bytes);
  base::store_plain(aside_.data() + at, record.head);
  std::copy(record.payload.begin(), record.payload.end(), aside_.data() + at + sizeof record.head);
}

// Does what was put aside. Returns whether some of it is done.
bool Pair::answer_on() {
  if (aside_begin_ == aside_.size()) return false;
  const std::size_t begin = aside_begin_;
  FrameReader reader(std::span<const std::byte>(aside_).subspan(aside_begin_));
  while (!reader.at_end()) {
    const auto record = reader.next();
    const Done done = answer(*record);
    if (done == Done::failed) return true;
    if (done == Done::not_yet) break;
    const std::uint32_t bytes = wire::ofi::record_bytes(record->head.bytes);
    aside_begin_ += bytes;
    channel_->out().did(did_bytes_ += bytes);
  }
  const bool any = aside_begin_ != begin;
  if (aside_begin_ == aside_.size() || aside_begin_ >= wire::ofi::kWindowBytes) {
    aside_.erase(aside_.begin(), aside_.begin() + static_cast<std::ptrdiff_t>(aside_begin_));
    aside_begin_ = 0;
  }
  return any;
}

// Ends the pair; the peer completes its request with this.
Pair::Done Pair::refuse(Status why) {
  end(why, why);
  return Done::failed;
}

void Pair::say_short(RecordKind kind) {
  RecordHead head{};
  head.kind = static_cast<std::uint8_t>(kind);
  channel_->out().add(head);
}

Pair::Done Pair::answer(const Record& record) {
  const RecordKind kind = record.kind();
  if (incoming_.open != (kind == RecordKind::more)) return refuse(Status::remote_invalid);
  switch (kind) {
    case RecordKind::read: return answer_read(record);
    case RecordKind::fetch_add:
    case RecordKind::compare_swap: return answer_atomic(record);
    case RecordKind::more: return answer_part(record);
    default: return begin_message(record);
  }
}

Pair::Done Pair::answer_read(const Record& record) {
  const RecordHead& asked = record.head;
  if (asked.bytes != 0 || asked.message_bytes > kMessageBytesMax) {
    return refuse(Status::remote_invalid);
  }
  do {
    const std::uint32_t left = asked.message_bytes - answered_;
    const auto room = channel_->out().room(left);
    if (!room) return Done::not_yet;
    RecordHead head{};
    head.kind = static_cast<std::uint8_t>(RecordKind::data);
    head.bytes = *room;
    // So that no word is read in two parts, nor a line of a READ that begins at one.
    if (head.bytes != left) {
      head.bytes -= static_cast<std::uint32_t>((asked.remote + answered_ + head.bytes) % kGrain);
    }
    if (left == 0) {
      channel_->out().add(head);
      break;
    }
    // The region is looked up for each part, since it can be revoked in between.
    const Access access(host_.reader);
    const ReadSource from = access.find_source(asked, options().domain);
    if (!from) break;
    std::byte* const to = channel_->out().add(head);
    if (from.kind == ReadSource::Kind::bytes) {
      copy_from_shared(to, from.at + answered_, head.bytes);
    } else {
      std::fill_n(to, head.bytes, std::byte{0});
    }
    answered_ += head.bytes;
  } while (answered_ != asked.message_bytes);
  if (answered_ != asked.message_bytes) return refuse(Status::remote_access);
  answered_ = 0;
  return Done::yes;
}

// Nothing: the peer may not.
std::optional<std::uint64_t> Pair::change_word(const Record& record) {
  const auto operands = base::load_plain<Operands>(record.payload.data());
  const Access access(host_.reader);
  std::byte* const at = access.find(record.head, RemoteRights::atomic, options().domain);
  if (at == nullptr) return {};
  const auto word = base::shared<std::uint64_t>(at);
  if (record.kind() == RecordKind::fetch_add) return word.fetch_add(operands.operand);
  std::uint64_t seen = operands.compare;
  word.compare_exchange_strong(seen, operands.operand);
  return seen;
}

Pair::Done Pair::answer_atomic(const Record& record) {
  const RecordHead& asked = record.head;
  if (asked.bytes != sizeof(Operands) || asked.message_bytes != kAtomicBytes ||
      asked.remote % kAtomicBytes != 0) {
    return refuse(Status::remote_invalid);
  }
  if (!channel_->out().room(kAtomicBytes)) return Done::not_yet;
  const auto old_value = change_word(record);
  if (!old_value) return refuse(Status::remote_access);
  RecordHead head{};
  head.kind = static_cast<std::uint8_t>(RecordKind::value);
  head.bytes = kAtomicBytes;
  base::store_plain(channel_->out().add(head), *old_value);
  return Done::yes;
}

Pair::Done Pair::begin_message(const Record& record) {
  const RecordHead& head = record.head;
  const RecordKind kind = record.kind();
  if (head.message_bytes > kMessageBytesMax || head.bytes > head.message_bytes ||
      (head.bytes == 0 && head.message_bytes != 0)) {
    return refuse(Status::remote_invalid);
  }
  if (!channel_->out().room(0)) return Done::not_yet;
  if (takes_receive(kind)) {
    incoming_.receive = receives().take();
    if (!incoming_.receive) {
      if (!std::exchange(starved_reported_, true)) say_short(RecordKind::starved);
      return Done::not_yet;
    }
    starved_reported_ = false;
    if (!is_write(kind) && head.message_bytes > incoming_.receive->into.size()) {
      complete_receive(*std::exchange(incoming_.receive, std::nullopt), Opcode::receive,
                       Status::local_length, 0);
      return refuse(Status::remote_invalid);
    }
  }
  incoming_.open = true;
  incoming_.first = head;
  incoming_.got = 0;
  return answer_part(record);
}

Pair::Done Pair::answer_part(const Record& record) {
  const std::uint32_t bytes = record.head.bytes;
  const std::uint32_t left = incoming_.first.message_bytes - incoming_.got;
  if (bytes > left || (bytes == 0 && left != 0)) return refuse(Status::remote_invalid);
  if (bytes == left && !channel_->out().room(0)) return Done::not_yet;
  if (!place(record)) return refuse(Status::remote_access);
  incoming_.got += bytes;
  if (incoming_.got == incoming_.first.message_bytes) finish_message();
  return Done::yes;
}

// Puts a part of a message where it belongs. Returns false if it does not belong anywhere.
bool Pair::place(const Record& record) {
  const RecordHead& first = incoming_.first;
  if (record.payload.empty()) return true;
  if (!is_write(kind_in(first))) {
    std::copy(record.payload.begin(), record.payload.end(),
              incoming_.receive->into.data() + incoming_.got);
    return true;
  }
  const Access access(host_.reader);
  // All of the message, so that nothing is written of one that is not wholly within.
  const WriteTarget to = access.find_target(first, options().domain);
  if (!to) return false;
  const std::size_t bytes = record.payload.size();
  store_placed(to.at + incoming_.got, record.payload.data(), bytes, to.placement);
  if (incoming_.got + bytes == first.message_bytes) {
    finish_write(to, first.message_bytes, host_.reader.placed());
  }
  return true;
}

void Pair::finish_message() {
  incoming_.open = false;
  say_short(RecordKind::done);
  if (!incoming_.receive) return;
  const RecordHead& first = incoming_.first;
  const RecordKind kind = kind_in(first);
  const Opcode opcode = is_write(kind) ? Opcode::receive_write : Opcode::receive;
  complete_receive(*std::exchange(incoming_.receive, std::nullopt), opcode, Status::success,
                   first.message_bytes, kind != RecordKind::send ? &first.immediate : nullptr);
}

}  // namespace espalier::fabric::ofi
