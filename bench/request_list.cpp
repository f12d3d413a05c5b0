// SPDX-License-Identifier: Apache-2.0
#include "bench/request_list.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "base/zipf.hpp"
#include "bench/answers.hpp"

namespace espalier::bench {
Request request_of(Op op, std::string_view key, std::string_view value) {
  Request request;
  request.op = op;
  request.key = key;
  request.value = value;
  return request;
}

namespace {

// Draws operations and keys for one thread, and keeps what it has inserted.
class RequestMaker {
 public:
  RequestMaker(const KeySet& keys, const RequestPlan& plan, std::uint32_t thread, RequestList& list)
      : keys_(keys),
        plan_(plan),
        mix_(mix_of(plan.workload, plan.shares)),
        random_(plan.seed * 1'000'003 + thread),
        zipf_(keys.size()),
        first_tag_(std::uint64_t{thread} << 40),
        fresh_base_(std::uint64_t{thread} << 36),
        list_(list) {
    const std::uint32_t items = scan_items_max(plan.workload, plan.scan_items);
    if (items > 0) last_start_ = keys.key_of_rank(keys.size() - items);
  }

  void begin_window() {
    readable_ = inserted_;
    ++window_;
    in_window_ = 0;
  }

  // One request of a workload of mixed operations.
  void add_mixed() {
    if (in_window_ == kWindow) begin_window();
    ++in_window_;
    const double kind = random_.unit();
    double bound = mix_.read;
    if (kind < bound) {
      add_read();
    } else if (kind < (bound += mix_.update)) {
      add_write(Op::put, 0);
    } else if (kind < (bound += mix_.insert)) {
      add_fresh_insert();
    } else if (kind < bound + mix_.read_modify_write) {
      add_write(Op::get, kReadModifyWriteTag);
    } else if (plan_.workload == Workload::cloud) {
      add_bounded_scan();
    } else {
      add_limited_scan();
    }
  }

  void add_fresh_insert() {
    const std::uint64_t id = fresh_base_ + inserted_++;
    keys_.fresh(id, key_);
    make_value(keys_.size() + id, 0, plan_.values, value_);
    add(request_of(Op::insert, key_, value_));
  }

  void add_insert(std::uint64_t index) {
    make_value(index, 0, plan_.values, value_);
    add(request_of(Op::insert, keys_.key(index), value_));
  }

  void add_erase(std::uint64_t index) { add(request_of(Op::erase, keys_.key(index))); }

 private:
  void add(Request request) {
    request.tag |= first_tag_ + made_++;
    list_.add(request);
  }

  // A number below `bound`, by the distribution, with hot ones scattered.
  std::uint64_t scattered(std::uint64_t bound) {
    if (plan_.distribution == Distribution::uniform) return random_.below(bound);
    return base::scale(base::mix64(zipf_(random_) + base::mix64(plan_.seed)), bound);
  }

  // The index of a loaded key.
  std::uint64_t loaded_index() {
    if (plan_.distribution == Distribution::latest) {
      return keys_.size() - 1 - zipf_(random_);
    }
    return scattered(keys_.size());
  }

  void add_read() {
    if (plan_.distribution == Distribution::latest) {
      const std::uint64_t age = zipf_(random_);
      if (age < readable_) {
        keys_.fresh(fresh_base_ + readable_ - 1 - age, key_);
        add(request_of(Op::get, key_));
      } else {
        add(request_of(Op::get, keys_.key(keys_.size() - 1 - (age - readable_))));
      }
      return;
    }
    add(request_of(Op::get, keys_.key(loaded_index())));
  }

  void add_write(Op op, std::uint64_t flag) {
    const std::uint64_t index = loaded_index();
    // One value per key and window; with several threads, whose windows overlap, one per key.
    const std::uint64_t round = plan_.threads == 1 ? 1 + window_ : 1;
    make_value(index, round, plan_.values, value_);
    Request request = request_of(op, keys_.key(index), value_);
    request.tag = flag;
    add(request);
  }

  void add_limited_scan() {
    Request request = request_of(Op::scan, std::min(keys_.key(loaded_index()), last_start_));
    request.limit = plan_.workload == Workload::e
                        ? static_cast<std::uint32_t>(1 + random_.below(100))
                        : plan_.scan_items;
    add(request);
  }

  // Kl lies just above one key and Ku on the second next: from the floor, that is three items.
  void add_bounded_scan() {
    const std::uint64_t rank = scattered(keys_.size() - 2);
    const std::string_view first = keys_.key_of_rank(rank);
    set_successor(first);
    const bool between = std::string_view(key_) < keys_.key_of_rank(rank + 1);
    Request request = request_of(Op::scan_floor, between ? std::string_view(key_) : first);
    request.high = keys_.key_of_rank(rank + 2);
    add(request);
  }

  // The next key after `key`: of the same length if all keys have one length.
  void set_successor(std::string_view key) {
    key_ = key;
    if (keys_.fixed_bytes() == 0) {
      if (key_.size() < kKeyBytesMax) key_.push_back('\0');
      return;
    }
    for (std::size_t at = key_.size(); at-- > 0;) {
      const auto byte = static_cast<unsigned char>(key_[at]);
      key_[at] = static_cast<char>(byte + 1);
      if (byte != 0xff) return;
    }
    key_ = key;  // all ones: there is no next key
  }

  const KeySet& keys_;
  const RequestPlan& plan_;
  Mix mix_;
  base::Random random_;
  base::Zipf zipf_;
  std::uint64_t first_tag_;
  std::uint64_t fresh_base_;  // threads insert different keys
  RequestList& list_;
  std::string_view last_start_;  // scans begin here or below, so that the loaded keys fill them
  std::uint64_t made_ = 0;
  std::uint64_t window_ = 0;
  std::uint64_t in_window_ = 0;
  std::uint64_t inserted_ = 0;
  std::uint64_t readable_ = 0;  // inserted in earlier windows
  std::string key_;
  std::string value_;
};

// A permutation of [0, size) without a table: the prime is larger than any size in use.
std::uint64_t permuted(std::uint64_t i, std::uint64_t size) { return i * 4'294'967'291 % size; }

}  // namespace

void RequestList::add(const Request& request) {
  Request own = request;
  own.key = bytes_.copy(request.key);
  own.high = bytes_.copy(request.high);
  own.value = bytes_.copy(request.value);
  requests_.push_back(own);
}

void RequestList::clear() {
  requests_.clear();
  bytes_.clear();
}

std::uint64_t share_of(std::uint64_t ops, std::uint32_t threads, std::uint32_t thread) {
  return ops / threads + (thread < ops % threads ? 1 : 0);
}

RequestList make_requests(const KeySet& keys, const RequestPlan& plan, std::uint32_t thread) {
  const std::uint64_t own_ops = share_of(plan.ops, plan.threads, thread);
  const std::uint64_t own_tail = share_of(plan.tail_ops, plan.threads, thread);
  RequestList list(own_ops + own_tail);
  RequestMaker maker(keys, plan, thread, list);
  // Thread t takes every threads-th key, so that the shares are equally random.
  const auto nth = [&](std::uint64_t i) { return i * plan.threads + thread; };
  for (std::uint64_t i = 0; i < own_ops + own_tail; ++i) {
    const bool tail = i >= own_ops;
    if (i == own_ops) maker.begin_window();
    switch (plan.workload) {
      case Workload::load: tail ? maker.add_fresh_insert() : maker.add_insert(nth(i)); break;
      case Workload::load_ascending:
        tail ? maker.add_fresh_insert() : maker.add_insert(keys.sorted()[nth(i)]);
        break;
      case Workload::erase: {
        const std::uint64_t at = tail ? plan.ops + nth(i - own_ops) : nth(i);
        maker.add_erase(permuted(at, keys.size()));
        break;
      }
      default: maker.add_mixed();
    }
  }
  return list;
}

void fill_load_window(const KeySet& keys, std::uint64_t first, std::uint64_t count,
                      ValueLength values, RequestList& list) {
  list.clear();
  std::string value;
  for (std::uint64_t i = first; i < first + count; ++i) {
    make_value(i, 0, values, value);
    Request request = request_of(Op::insert, keys.key(i), value);
    request.tag = i;
    list.add(request);
  }
}

}  // namespace espalier::bench
