// SPDX-License-Identifier: Apache-2.0
#include "bench/chain_line.hpp"

#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/past_cache.hpp"
#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "bench/line_replica.hpp"
#include "bench/map_session.hpp"
#include "bench/mix.hpp"
#include "bench/polled_link.hpp"
#include "client/transaction_bytes.hpp"
#include "espalier/transaction.hpp"

namespace espalier::bench {
namespace {

using End = PolledLink::End;

std::string_view text_of_bytes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// The value that a transaction of this number writes there; 0: the loaded one.
void fill_line_value(std::uint64_t key, std::uint64_t number, std::string& value) {
  base::Random random(base::mix64(key) + number);
  random.fill(std::as_writable_bytes(std::span(value)));
}

/// The links of a chain, and its hops.
class LineHops {
 public:
  /// Replicas from `first_persistent` on have their rings in persistent memory.
  LineHops(const LineSetting& setting, std::uint32_t first_persistent) : hop_ns_(setting.hop_ns) {
    using enum fabric::MemoryKind;
    for (std::uint32_t i = 0; i < setting.nodes; ++i) {
      const auto kind = i < first_persistent ? volatile_memory : persistent;
      links_.push_back(std::make_unique<PolledLink>(setting.transport, folder_,
                                                    LinkMemory{kind, setting.placement}));
    }
  }
  /// From the client or the predecessor to this replica.
  void send_down(std::size_t to, std::span<const std::byte> message) {
    links_[to]->send(End::near, message);
  }
  [[nodiscard]] std::span<std::byte> receive_down(std::size_t at) { return arrive(at, End::far); }
  /// Makes a message durable that this replica has received.
  void persist(std::size_t at, std::span<const std::byte> message) {
    if (links_[at]->is_durable()) return;
    base::write_back(message);
    base::fence_past_cache();
  }
  /// From this replica to its predecessor, or to the client.
  void send_up(std::size_t from, std::span<const std::byte> message) {
    links_[from]->send(End::far, message);
  }
  [[nodiscard]] std::span<std::byte> receive_up(std::size_t from) {
    return arrive(from, End::near);
  }
  /// READs memory of the head: a round trip.
  void read(const fabric::RemoteRegion& region, std::uint64_t offset, std::span<std::byte> into) {
    links_.front()->read(region, offset, into);
    hop();
    hop();
  }
  [[nodiscard]] fabric::RemoteRegion offer(const memory::SharedMemory& memory) {
    return links_.front()->offer(memory);
  }
  /// Runs during the next hop, since no message waits for it.
  void later(std::function<void()> work) { later_.push_back(std::move(work)); }

  [[nodiscard]] LineCounts counts() const {
    LineCounts counts{hops_, 0, {}};
    for (const auto& link : links_) {
      counts.bytes += link->bytes();
      counts.placed += link->placed();
    }
    return counts;
  }

 private:
  std::span<std::byte> arrive(std::size_t link, End at) {
    const auto message = links_[link]->receive(at);
    hop();
    return message;
  }
  void hop() {
    const base::Stopwatch watch;
    for (const auto& work : later_) work();
    later_.clear();
    ++hops_;
    while (watch.elapsed_ns() < hop_ns_) base::spin_pause();
  }

  const std::uint64_t hop_ns_;
  base::TemporaryFolder folder_;
  std::vector<std::unique_ptr<PolledLink>> links_;
  std::vector<std::function<void()>> later_;
  std::uint64_t hops_ = 0;
};

/// Replicas with stores. Their keys are 8 bytes.
class OneRequestLine final : public ChainLine {
 public:
  explicit OneRequestLine(const LineSetting& setting) : setting_(setting), hops_(setting, 1) {
    value_.resize(setting.value_bytes);
    for (std::uint32_t i = 0; i < setting.nodes; ++i) {
      replicas_.push_back(std::make_unique<LineReplica>(setting.pairs, setting.value_bytes));
      for (std::uint64_t key = 0; key < setting.pairs; ++key) {
        fill_line_value(key, 0, value_);
        replicas_.back()->put(base::bytes_of(key), value_);
      }
    }
    replicas_.front()->begin_records();
  }

  std::uint64_t transact(const LineTransaction& transaction) override {
    hops_.send_down(0, request_of_line(transaction));
    answer_at_head(!transaction.writes.empty());
    std::uint64_t sum = 0;
    const auto answer = hops_.receive_up(0);
    for (const auto& found : value_or_throw(
             client::read_found(text_of_bytes(answer), transaction.reads.size()), "no answer")) {
      if (!found) throw std::runtime_error("a transaction finds no pair");
      sum += bytes_hash(found->value);
    }
    return sum;
  }

  std::uint64_t contents() override {
    std::uint64_t sum = 0;
    for (std::uint64_t key = 0; key < setting_.pairs; ++key) {
      const std::string_view key_bytes = base::bytes_of(key);
      const std::string value = replicas_.front()->value_of(key_bytes);
      for (const auto& replica : replicas_) {
        if (replica->value_of(key_bytes) != value) throw std::runtime_error("replicas differ");
      }
      sum += item_hash(key_bytes, value);
    }
    return sum;
  }

  LineCounts counts() const override { return hops_.counts(); }

 private:
  /// The client's request: how many objects, and then as in the call.
  std::span<const std::byte> request_of_line(const LineTransaction& transaction) {
    Transaction asked;
    for (const std::uint64_t key : transaction.reads) {
      asked.get(LineReplica::kMap, base::bytes_of(key));
    }
    for (const std::uint64_t key : transaction.writes) {
      fill_line_value(key, transaction.number, value_);
      asked.put(LineReplica::kMap, base::bytes_of(key), value_);
    }
    const auto bytes = value_or_throw(client::bytes_of(asked), "no request");
    request_ = base::bytes_of(std::uint64_t{bytes.objects});
    request_ += bytes.bytes;
    return bytes_of_text(request_);
  }

  void answer_at_head(bool writes) {
    // Copied, since the client can still write its ring.
    const std::string request(text_of_bytes(hops_.receive_down(0)));
    std::uint64_t objects = 0;
    std::memcpy(&objects, request.data(), sizeof objects);
    LineReplica& head = *replicas_.front();
    const std::string_view found = head.execute(
        {static_cast<std::uint32_t>(objects), std::string_view(request).substr(sizeof objects)});
    if (writes) {
      replicate(head.log().newest());
      head.acknowledge();
    }
    hops_.send_up(0, bytes_of_text(found));
  }

  void replicate(std::span<const std::byte> record) {
    const std::size_t tail = replicas_.size() - 1;
    for (std::size_t i = 1; i <= tail; ++i) {
      hops_.send_down(i, record);
      record = hops_.receive_down(i);
      hops_.persist(i, record);
      if (i == tail) {
        replicas_[i]->apply(record);
      } else {
        hops_.later([this, i, record] { replicas_[i]->apply(record); });
      }
    }
    const std::uint64_t sequence = replicas_.front()->log().handed_over();
    for (std::size_t i = tail; i >= 1; --i) {
      hops_.send_up(i, std::as_bytes(std::span(&sequence, 1)));
      static_cast<void>(hops_.receive_up(i));
    }
  }

  const LineSetting setting_;
  LineHops hops_;
  std::vector<std::unique_ptr<LineReplica>> replicas_;
  std::string value_;
  std::string request_;
};

/// Replicas with arrays of values, which only the network's end reads and writes.
class OneByOneLine final : public ChainLine {
 public:
  explicit OneByOneLine(const LineSetting& setting) : setting_(setting), hops_(setting, 0) {
    value_.resize(setting.value_bytes);
    found_.resize(setting.value_bytes);
    for (std::uint32_t i = 0; i < setting.nodes; ++i) {
      replicas_.push_back(value_or_throw(
          memory::SharedMemory::create("espalier-bench", setting.pairs * setting.value_bytes),
          "no memory"));
      for (std::uint64_t key = 0; key < setting.pairs; ++key) {
        fill_line_value(key, 0, value_);
        std::memcpy(replicas_.back().at(place_of(key)), value_.data(), value_.size());
      }
    }
    readable_ = hops_.offer(replicas_.front());
  }

  std::uint64_t transact(const LineTransaction& transaction) override {
    std::uint64_t sum = 0;
    for (const std::uint64_t key : transaction.reads) {
      hops_.read(readable_, place_of(key), std::as_writable_bytes(std::span(found_)));
      sum += bytes_hash(found_);
    }
    for (const std::uint64_t key : transaction.writes) {
      fill_line_value(key, transaction.number, value_);
      request_ = base::bytes_of(place_of(key));
      request_ += value_;
      write_down_the_chain();
    }
    return sum;
  }

  std::uint64_t contents() override {
    std::uint64_t sum = 0;
    for (std::uint64_t key = 0; key < setting_.pairs; ++key) {
      std::memcpy(found_.data(), replicas_.front().at(place_of(key)), found_.size());
      for (const auto& replica : replicas_) {
        if (std::memcmp(replica.at(place_of(key)), found_.data(), found_.size()) != 0) {
          throw std::runtime_error("replicas differ");
        }
      }
      sum += item_hash(base::bytes_of(key), found_);
    }
    return sum;
  }

  LineCounts counts() const override { return hops_.counts(); }

 private:
  [[nodiscard]] std::uint64_t place_of(std::uint64_t key) const {
    return key * setting_.value_bytes;
  }

  void write_down_the_chain() {
    std::span<const std::byte> message = bytes_of_text(request_);
    const std::size_t tail = replicas_.size() - 1;
    for (std::size_t i = 0; i <= tail; ++i) {
      hops_.send_down(i, message);
      message = hops_.receive_down(i);
      hops_.persist(i, message);
      if (i == tail) {
        place(i, message);
      } else {
        hops_.later([this, i, message] { place(i, message); });
      }
    }
    const std::uint64_t done = 1;
    for (std::size_t i = tail + 1; i-- > 0;) {
      hops_.send_up(i, std::as_bytes(std::span(&done, 1)));
      static_cast<void>(hops_.receive_up(i));
    }
  }

  void place(std::size_t replica, std::span<const std::byte> message) {
    std::uint64_t offset = 0;
    std::memcpy(&offset, message.data(), sizeof offset);
    const auto value = message.subspan(sizeof offset);
    std::memcpy(replicas_[replica].at(offset), value.data(), value.size());
  }

  const LineSetting setting_;
  LineHops hops_;
  std::vector<memory::SharedMemory> replicas_;
  fabric::RemoteRegion readable_;
  std::string value_;
  std::string found_;
  std::string request_;
};

}  // namespace

std::string_view name(LineWay way) {
  return way == LineWay::one_request ? "one-request" : "one-by-one";
}

std::unique_ptr<ChainLine> open_chain_line(LineWay way, const LineSetting& setting) {
  if (way == LineWay::one_request) return std::make_unique<OneRequestLine>(setting);
  return std::make_unique<OneByOneLine>(setting);
}

}  // namespace espalier::bench
