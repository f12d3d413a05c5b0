// SPDX-License-Identifier: Apache-2.0
// absl::flat_hash_map and boost::unordered_flat_map, one thread without a lock, on huge pages.
// Pairs lie in the table itself. If the peer supports prefetching the lines of a key, the lines of
// a batch's keys are prefetched.
#include <absl/container/flat_hash_map.h>
#include <fmt/core.h>

#include <array>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>

#include "base/random.hpp"
#include "bench/hash_target.hpp"
#include "bench/huge_memory.hpp"

#if __has_include(<boost/unordered/unordered_flat_map.hpp>)
#include <boost/unordered/unordered_flat_map.hpp>
#define ESPALIER_BENCH_HAS_BOOST 1
#endif

namespace espalier::bench {
namespace {

struct PeerKey {
  std::array<std::uint64_t, kHashKeyBytes / sizeof(std::uint64_t)> words{};

  static PeerKey of(std::string_view bytes) {
    PeerKey key;
    std::memcpy(key.words.data(), bytes.data(), sizeof key.words);
    return key;
  }
  friend bool operator==(const PeerKey&, const PeerKey&) = default;
};
using PeerValue = HashPairs::Value;

/// The same hash as Espalier's map: two words, mixed.
struct PeerHash {
  using is_avalanching = void;  // boost mixes no more
  std::size_t operator()(const PeerKey& key) const {
    return base::mix64(key.words[0] ^ base::mix64(key.words[1]));
  }
};

template <class Table>
class PeerTarget final : public HashTarget {
 public:
  PeerTarget(std::string_view peer, const HashTargetOptions& options)
      : peer_(peer), table_(0, PeerHash(), std::equal_to<PeerKey>(), Allocator(&arena_)) {
    table_.reserve(options.pairs);  // in one piece: memory of smaller tables would stay
  }

  void run(std::span<const Request> requests, std::uint32_t batch, HashAnswers& answers) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if constexpr (kAsks) {
        if (batch > 1 && i + batch < requests.size()) {
          table_.prefetch(PeerKey::of(requests[i + batch].key));
        }
      }
      execute(requests[i], answers);
    }
  }
  [[nodiscard]] std::string settings() const override {
    return fmt::format("{}, {}", peer_,
                       kAsks ? "keys of a batch asked for ahead" : "one call at a time");
  }

 private:
  using Allocator = typename Table::allocator_type;
  static constexpr bool kAsks = requires(const Table& table, PeerKey key) { table.prefetch(key); };

  void execute(const Request& request, HashAnswers& answers) {
    const PeerKey key = PeerKey::of(request.key);
    if (request.op == Op::get) {
      const auto found = table_.find(key);
      if (found == table_.end()) return;
      return answers.value({found->second.data(), found->second.size()});
    }
    PeerValue value;
    std::memcpy(value.data(), request.value.data(), value.size());
    table_.insert_or_assign(key, value);
    ++answers.put;
  }

  const std::string_view peer_;
  HugeArena arena_;  // outlives the table
  Table table_;
};

template <class T>
using PeerAllocator = ArenaAllocator<std::pair<const PeerKey, T>>;

}  // namespace

std::unique_ptr<HashTarget> make_absl_hash_target(const HashTargetOptions& options) {
  using AbslMap = absl::flat_hash_map<PeerKey, PeerValue, PeerHash, std::equal_to<PeerKey>,
                                      PeerAllocator<PeerValue>>;
  return std::make_unique<PeerTarget<AbslMap>>("absl::flat_hash_map", options);
}

std::unique_ptr<HashTarget> make_boost_hash_target(const HashTargetOptions& options) {
#if defined(ESPALIER_BENCH_HAS_BOOST)
  using BoostMap = boost::unordered_flat_map<PeerKey, PeerValue, PeerHash, std::equal_to<PeerKey>,
                                             PeerAllocator<PeerValue>>;
  return std::make_unique<PeerTarget<BoostMap>>("boost::unordered_flat_map", options);
#else
  static_cast<void>(options);
  throw std::runtime_error(
      "boost::unordered_flat_map was not there when this was built: apt-get install "
      "libboost1.81-dev, and build again");
#endif
}

}  // namespace espalier::bench
