// SPDX-License-Identifier: Apache-2.0
#include "tests/example_kind/queue.hpp"

#include "catalog/samples.hpp"

namespace espalier::example {

Result<std::uint64_t> Queue::push(std::string_view bytes) {
  wire::OwnBytes copy(bytes);
  const std::lock_guard lock(mutex_);
  if (dropped_) return fail(Code::not_found, id_);
  const std::uint64_t taken = numbers_.bytes + waiting_.size() * kOverheadBytes;
  if (taken + bytes.size() + kOverheadBytes > kBytesMax) return fail(Code::out_of_memory);
  waiting_.push_back(std::move(copy));
  numbers_.bytes += bytes.size();
  return numbers_.pushed++;
}

Result<std::optional<Queue::Entry>> Queue::pop() {
  const std::lock_guard lock(mutex_);
  if (dropped_) return fail(Code::not_found, id_);
  if (waiting_.empty()) return std::nullopt;
  Entry oldest{numbers_.popped++, std::move(waiting_.front())};
  waiting_.pop_front();
  numbers_.bytes -= oldest.bytes.size();
  return oldest;
}

Result<QueueNumbers> Queue::known_numbers() const {
  const std::lock_guard lock(mutex_);
  if (dropped_) return fail(Code::not_found, id_);
  return numbers_;
}

QueueNumbers Queue::count() const {
  const std::lock_guard lock(mutex_);
  return numbers_;
}

std::vector<std::string> Queue::audit() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> wrong;
  std::uint64_t bytes = 0;
  for (const wire::OwnBytes& each : waiting_) bytes += each.size();
  if (bytes != numbers_.bytes) wrong.emplace_back("the bytes that wait are counted wrongly");
  if (waiting_.size() != numbers_.pushed - numbers_.popped) {
    wrong.emplace_back("what waits is not what was pushed and not popped");
  }
  if (bytes + waiting_.size() * kOverheadBytes > kBytesMax) wrong.emplace_back("too much waits");
  return wrong;
}

void Queue::set_dropped() {
  const std::lock_guard lock(mutex_);
  dropped_ = true;
}

catalog::ObjectNumbers Queue::numbers() const {
  const QueueNumbers now = count();
  const std::uint64_t waiting = now.pushed - now.popped;
  return {waiting, sizeof(Queue) + now.bytes + waiting * kOverheadBytes};
}

void Queue::add_samples(catalog::SampleList& to) const {
  const QueueNumbers now = count();
  to.gauge({"length", "", "Entries that wait."}, now.pushed - now.popped);
  to.gauge({"queued_bytes", "bytes", "Bytes of the entries that wait."}, now.bytes);
  to.counter({"pushed", "", "Entries that were pushed."}, now.pushed);
  to.counter({"popped", "", "Entries that were popped."}, now.popped);
}

}  // namespace espalier::example
