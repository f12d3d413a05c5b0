// SPDX-License-Identifier: Apache-2.0
#include "bench/hash_work.hpp"

#include "base/random.hpp"
#include "base/zipf.hpp"

namespace espalier::bench {

HashPairs::Key HashPairs::key(std::uint64_t i) const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::uint64_t bits = base::mix64(i + base::mix64(seed_));
  Key key{};
  for (char& digit : key) {
    digit = kDigits[bits & 15];
    bits >>= 4;
  }
  return key;
}

HashPairs::Value HashPairs::value(std::uint64_t i) const {
  Value value{};
  for (std::size_t at = 0; at < value.size(); at += sizeof i) {
    const std::uint64_t word = base::mix64(i + seed_ + at);
    std::memcpy(value.data() + at, &word, sizeof word);
  }
  return value;
}

std::string_view name(HashDraw draw) { return draw == HashDraw::uniform ? "uniform" : "zipfian"; }

RequestList make_hash_requests(const HashPairs& pairs, const HashMix& mix, std::uint64_t ops,
                               std::uint64_t seed) {
  base::Random random(seed);
  const base::ScrambledZipf zipf(pairs.count(), kHashTheta);
  RequestList list(ops);
  for (std::uint64_t i = 0; i < ops; ++i) {
    const std::uint64_t which =
        mix.draw == HashDraw::uniform ? random.below(pairs.count()) : zipf(random);
    const HashPairs::Key key = pairs.key(which);
    const std::string_view text(key.data(), key.size());
    if (random.below(100) < mix.gets_percent) {
      list.add(request_of(Op::get, text));
    } else {
      const HashPairs::Value value = pairs.value(which);
      list.add(request_of(Op::put, text, std::string_view(value.data(), value.size())));
    }
  }
  return list;
}

}  // namespace espalier::bench
