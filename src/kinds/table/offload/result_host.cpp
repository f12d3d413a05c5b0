// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/offload/result_host.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "engine/connection.hpp"
#include "fabric/planted_fabric_bugs.hpp"

namespace espalier::offload {

using fabric::Status;

ResultHost* ResultHost::of(Connection& connection) {
  if (connection.side == nullptr) return nullptr;
  return &connection.parts.of<ResultHost>(connection.layout().response_rings);
}

Result<void> ResultHost::open(std::uint32_t ring, const wire::ResultOffer& offer) {
  const bool sizes = offer.buffers != 0 && offer.buffers <= wire::kResultBuffersMax &&
                     offer.buffer_bytes >= wire::kResultBufferBytesMin &&
                     offer.buffer_bytes <= wire::kResultBufferBytesMax;
  if (!sizes || offer.buffer_bytes % 8 != 0 || offer.base % 8 != 0 || offer.reserved != 0) {
    return fail(Code::invalid_argument);
  }
  const std::uint64_t bytes = std::uint64_t{offer.buffer_bytes} * offer.buffers;
  if (offer.base > std::numeric_limits<std::uint64_t>::max() - bytes) {
    return fail(Code::invalid_argument);
  }
  std::shared_ptr<ResultSet>& set = sets_[ring];
  if (set && set->in_use) return fail(Code::busy);
  set = std::make_shared<ResultSet>();
  set->offer = offer;
  set->free = set->all();
  return {};
}

// Of a set that no run uses all are here; what a run's end has overtaken says nothing new.
Result<void> ResultHost::give_back(std::uint32_t ring, std::span<const std::uint32_t> buffers) {
  const std::shared_ptr<ResultSet>& set = sets_[ring];
  if (!set) return fail(Code::not_found);
  std::uint32_t given = 0;
  for (const std::uint32_t buffer : buffers) {
    if (buffer >= set->offer.buffers) return fail(Code::invalid_argument, buffer);
    const std::uint32_t bit = std::uint32_t{1} << buffer;
    const bool has = !set->in_use || (set->out & bit) != 0;
    if (!has || (given & bit) != 0) return fail(Code::invalid_argument, buffer);
    given |= bit;
  }
  if (!set->in_use) return {};
  set->out &= ~given;
  set->free |= given;
  return {};
}

// --- WRITEs --------------------------------------------------------------------------------------

bool ResultHost::post(const Write& write) {
  const auto bytes = std::span<const std::byte>(write.from).first(write.bytes);
  return pair_
             ->post(fabric::WorkRequest::write(write.number, bytes, write.set->offer.key, write.to))
             .taken == 1;
}

// What was written last, before anything that is said of it.
bool ResultHost::post_in_turn() {
  if (fabric::planted(fabric::Bug::result_told_first)) {
    return writes_.size() < 2 || post(writes_[writes_.size() - 2]);
  }
  return post(writes_.back());
}

void ResultHost::attach(fabric::QueuePair& pair) {
  pair_ = &pair;
  if (fabric::planted(fabric::Bug::result_not_written_again)) writes_.clear();
  // A new pair has room for all of them.
  for (const Write& write : writes_) {
    if (!post(write)) write.set->broken = true;
  }
}

// The pair is closed: only this host knows of the unfinished writes. Broken sets are not written
// again.
void ResultHost::detach() {
  pair_ = nullptr;
  std::erase_if(writes_, [](const Write& write) { return write.set->broken; });
}

// In the order of posting. What was flushed stays for the next pair.
void ResultHost::completed(const fabric::Completion& completion) {
  const bool ours = !writes_.empty() && writes_.front().number == completion.work_id;
  switch (completion.status) {
    case Status::success:
      if (!ours) return;
      keep_spare(std::move(writes_.front().from));
      writes_.pop_front();
      return;
    case Status::remote_access:
    case Status::remote_invalid:
    case Status::remote_operation:
      if (ours) writes_.front().set->broken = true;
      return;
    default: return;
  }
}

bool ResultHost::write(const std::shared_ptr<ResultSet>& set, std::uint64_t to,
                       std::vector<std::byte>& from, std::size_t bytes) {
  ESPALIER_ASSERT(bytes <= from.size());
  if (!may_write()) return false;
  Write& made = writes_.emplace_back(Write{next_, set, to, {}, bytes});
  made.from.swap(from);
  if (post_in_turn()) {
    ++next_;
    return true;
  }
  made.from.swap(from);
  writes_.pop_back();
  return false;
}

std::shared_ptr<fabric::PeerMemory> ResultHost::map(const ResultSet& set) const {
  if (pair_ == nullptr || set.broken) return nullptr;
  return pair_->writable_memory(set.offer.key, set.offer.base,
                                std::uint64_t{set.offer.buffer_bytes} * set.offer.buffers);
}

std::vector<std::byte> ResultHost::take_spare() {
  if (spares_.empty()) return {};
  std::vector<std::byte> spare = std::move(spares_.back());
  spares_.pop_back();
  return spare;
}

void ResultHost::keep_spare(std::vector<std::byte> spare) {
  if (spares_.size() < kWritesMax && !spare.empty()) spares_.push_back(std::move(spare));
}

// --- one run -------------------------------------------------------------------------------------

ResultWriter::ResultWriter(ResultHost& host, std::shared_ptr<ResultSet> set,
                           std::size_t block_bytes)
    : host_(host), set_(std::move(set)), block_bytes_(block_bytes) {
  ESPALIER_ASSERT(!set_->in_use && block_bytes <= set_->offer.buffer_bytes);
  set_->in_use = true;
}

ResultWriter::~ResultWriter() {
  set_->in_use = false;
  set_->free = set_->all();
  set_->out = 0;
}

std::uint32_t ResultWriter::next_buffer() const {
  return buffer_.value_or(std::countr_zero(set_->free));
}

bool ResultWriter::maps() {
  if (!memory_) memory_ = host_.map(*set_);
  return memory_ != nullptr;
}

std::uint32_t ResultWriter::free_buffers() const {
  return static_cast<std::uint32_t>(std::popcount(set_->free)) + (buffer_ ? 1 : 0);
}

std::optional<ResultRoom> ResultWriter::open_buffer() {
  if (free_buffers() == 0) return std::nullopt;
  const std::uint32_t buffer = next_buffer();
  const std::uint32_t offset = buffer_ ? used_ : 0;
  buffer_.reset();
  set_->free &= ~(std::uint32_t{1} << buffer);
  open_ |= std::uint32_t{1} << buffer;
  const std::size_t whole = set_->offer.buffer_bytes;
  return ResultRoom{buffer, offset,
                    memory_->bytes().subspan(buffer * whole, whole).subspan(offset)};
}

std::optional<wire::ResultPlace> ResultWriter::close_buffer(const ResultRoom& room,
                                                            std::size_t bytes) {
  const std::uint32_t bit = std::uint32_t{1} << room.buffer;
  ESPALIER_ASSERT((open_ & bit) != 0 && bytes <= room.memory.size());
  if (!memory_->good()) {
    set_->broken = true;
    return std::nullopt;
  }
  open_ &= ~bit;
  set_->out |= bit;
  return wire::ResultPlace{room.buffer, room.offset, static_cast<std::uint32_t>(bytes),
                           wire::kBufferFull};
}

std::optional<wire::ResultPlace> ResultWriter::write(std::vector<std::byte>& block,
                                                     std::size_t bytes) {
  ESPALIER_ASSERT(bytes <= block_bytes_);
  if (!buffer_ && set_->free == 0) return std::nullopt;
  const std::uint32_t buffer = next_buffer();
  const std::uint64_t first = set_->offer.base + std::uint64_t{buffer} * set_->offer.buffer_bytes;
  const std::uint32_t at = buffer_ ? used_ : 0;
  if (!host_.write(set_, first + at, block, bytes)) return std::nullopt;
  block = host_.take_spare();
  set_->written_bytes += bytes;
  set_->free &= ~(std::uint32_t{1} << buffer);
  wire::ResultPlace place{buffer, at, static_cast<std::uint32_t>(bytes), 0};
  buffer_ = buffer;
  used_ = at + static_cast<std::uint32_t>(base::round_up(bytes, 8));
  if (used_ + block_bytes_ > set_->offer.buffer_bytes) {
    place.flags = wire::kBufferFull;
    set_->out |= std::uint32_t{1} << buffer;
    buffer_.reset();
  }
  return place;
}

}  // namespace espalier::offload
