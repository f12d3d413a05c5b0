// SPDX-License-Identifier: Apache-2.0
// How one thread finds the rings that have news: a loop for each doorbell and instruction set.
//
// The scalar form is the oracle of the others, which compare a line of tails with a line of the
// reader's memory. A vector load is no atomic one: it only says where to look, and the tail is then
// loaded again, with acquire.
//
// Thread: one, beside the writers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/cpu.hpp"
#include "bench/doorbell_memory.hpp"
#include "tree/node/search_kits.hpp"

namespace espalier::bench {

// A scan calls news(ring) wherever there may be news, in ascending order of rings.

template <std::uint32_t kStride>
struct ScalarTails {
  static constexpr std::uint32_t kSeenStride = 4;
  template <class News>
  static void scan(const RingMemory& memory, const SeenCounts& seen, News&& news) {
    const std::byte* const tails = memory.bells();
    for (std::uint32_t ring = 0; ring < memory.rings(); ++ring) {
      const auto tail = base::load_shared<std::uint32_t>(tails + std::size_t{ring} * kStride);
      if (tail != seen.get(ring)) [[unlikely]]
        news(ring);
    }
  }
};

#if defined(ESPALIER_HAVE_X86_KITS)

// Both compare four vectors with one branch, and look closer only where something differs.
// Between tails, and after the last, both sides have zeros, which are equal.
constexpr std::size_t kAtOnce = 4;

template <std::uint32_t kStride>
struct Avx2Tails {
  static constexpr std::uint32_t kSeenStride = kStride;
  template <class News>
  ESPALIER_TARGET_AVX2 static void scan(const RingMemory& memory, const SeenCounts& seen,
                                        News&& news) {
    asm volatile("" ::: "memory");  // every scan loads anew
    const std::byte* const tails = memory.bells();
    const std::size_t end = std::size_t{memory.rings()} * kStride;
    std::size_t at = 0;
    for (; at + kAtOnce * kBytes <= end; at += kAtOnce * kBytes) {
      __m256i all = _mm256_setzero_si256();
      for (std::size_t i = 0; i < kAtOnce * kBytes; i += kBytes) {
        all = _mm256_or_si256(all,
                              _mm256_xor_si256(load(tails + at + i), load(seen.data() + at + i)));
      }
      if (_mm256_testz_si256(all, all) != 0) continue;
      for (std::size_t i = 0; i < kAtOnce * kBytes; i += kBytes) look(tails, seen, at + i, news);
    }
    for (; at < end; at += kBytes) look(tails, seen, at, news);
  }

 private:
  static constexpr std::size_t kBytes = sizeof(__m256i);
  ESPALIER_TARGET_AVX2 static __m256i load(const std::byte* at) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(at));
  }
  template <class News>
  ESPALIER_TARGET_AVX2 static void look(const std::byte* tails, const SeenCounts& seen,
                                        std::size_t at, News& news) {
    const __m256i equal = _mm256_cmpeq_epi32(load(tails + at), load(seen.data() + at));
    auto lanes = static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(equal))) ^ 255;
    for (; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
      news(static_cast<std::uint32_t>((at + 4 * lane) / kStride));
    }
  }
};

template <std::uint32_t kStride>
struct Avx512Tails {
  static constexpr std::uint32_t kSeenStride = kStride;
  template <class News>
  ESPALIER_TARGET_AVX512 static void scan(const RingMemory& memory, const SeenCounts& seen,
                                          News&& news) {
    asm volatile("" ::: "memory");  // every scan loads anew
    const std::byte* const tails = memory.bells();
    const std::size_t end = std::size_t{memory.rings()} * kStride;
    std::size_t at = 0;
    for (; at + kAtOnce * kBytes <= end; at += kAtOnce * kBytes) {
      __m512i all = _mm512_setzero_si512();
      for (std::size_t i = 0; i < kAtOnce * kBytes; i += kBytes) {
        all = _mm512_or_si512(all, _mm512_xor_si512(_mm512_load_si512(tails + at + i),
                                                    _mm512_load_si512(seen.data() + at + i)));
      }
      if (_mm512_test_epi32_mask(all, all) == 0) continue;
      for (std::size_t i = 0; i < kAtOnce * kBytes; i += kBytes) look(tails, seen, at + i, news);
    }
    for (; at < end; at += kBytes) look(tails, seen, at, news);
  }

 private:
  static constexpr std::size_t kBytes = sizeof(__m512i);
  template <class News>
  ESPALIER_TARGET_AVX512 static void look(const std::byte* tails, const SeenCounts& seen,
                                          std::size_t at, News& news) {
    std::uint32_t lanes = _mm512_cmpneq_epu32_mask(_mm512_load_si512(tails + at),
                                                   _mm512_load_si512(seen.data() + at));
    for (; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
      news(static_cast<std::uint32_t>((at + 4 * lane) / kStride));
    }
  }
};

#endif

struct Bitmap {
  static constexpr std::uint32_t kSeenStride = 4;
  template <class News>
  static void scan(const RingMemory& memory, const SeenCounts&, News&& news) {
    for (std::uint32_t first = 0; first < memory.rings(); first += 64) {
      // Looking first leaves the line where it is as long as there is no news.
      if (base::load_shared<std::uint64_t>(memory.bits(first)) == 0) continue;
      std::uint64_t bits =
          base::shared<std::uint64_t>(memory.bits(first)).exchange(0, std::memory_order_acquire);
      for (; bits != 0; bits &= bits - 1) {
        news(first + static_cast<std::uint32_t>(std::countr_zero(bits)));
      }
    }
  }
};

struct NextSlots {
  static constexpr std::uint32_t kSeenStride = 4;
  template <class News>
  static void scan(const RingMemory& memory, const SeenCounts& seen, News&& news) {
    for (std::uint32_t ring = 0; ring < memory.rings(); ++ring) {
      const std::uint32_t count = seen.get(ring);
      const std::byte* const sequence = memory.slot(ring, count) + kSequenceAt;
      if (base::load_shared<std::uint32_t>(sequence) == count + 1) [[unlikely]]
        news(ring);
    }
  }
};

/// Takes what was published, finding it with `Form`. Thread: one.
template <class Form>
class RingReader {
 public:
  explicit RingReader(const RingMemory& memory)
      : memory_(memory), seen_(memory, Form::kSeenStride) {}

  /// Scans once and takes all news. Calls emptied(ring, count) after each ring that had some, with
  /// how many slots it has had by then. Returns how many slots were taken.
  template <class Emptied>
  std::uint64_t pass(Emptied&& emptied) {
    const std::uint64_t before = taken_;
    Form::scan(memory_, seen_, [&](std::uint32_t ring) {
      const std::uint32_t from = seen_.get(ring);
      const std::uint32_t to = take(ring, from);
      if (to == from) return;  // a bit whose slots were taken together with those before
      seen_.set(ring, to);
      taken_ += to - from;
      emptied(ring, to);
    });
    return taken_ - before;
  }

  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] std::uint64_t checksum() const { return checksum_; }

 private:
  std::uint32_t take(std::uint32_t ring, std::uint32_t count) {
    if (memory_.stride() != 0) {
      const auto end =
          base::load_shared<std::uint32_t>(memory_.tail(ring), std::memory_order_acquire);
      for (; count != end; ++count) read(memory_.slot(ring, count));
      return count;
    }
    for (;; ++count) {
      const std::byte* const slot = memory_.slot(ring, count);
      const auto sequence =
          base::load_shared<std::uint32_t>(slot + kSequenceAt, std::memory_order_acquire);
      if (sequence != count + 1) return count;
      read(slot);
    }
  }

  void read(const std::byte* slot) {
    for (std::size_t i = 0; i < kPayloadWords; ++i) {
      checksum_ += base::load_shared<std::uint64_t>(slot + i * sizeof(std::uint64_t));
    }
  }

  const RingMemory& memory_;
  SeenCounts seen_;
  std::uint64_t taken_ = 0;
  std::uint64_t checksum_ = 0;
};

/// One way to announce, and the instructions with which the reader looks.
struct DoorbellForm {
  Doorbell doorbell = Doorbell::tail4;
  base::Isa isa = base::Isa::scalar;
};

/// All that this machine can run: tails of 4, 8 and 16 bytes in every form, the others scalar.
std::vector<DoorbellForm> doorbell_forms();
/// The fastest of them for each doorbell.
std::vector<DoorbellForm> best_doorbell_forms();

/// Calls use(reader) with a reader of this form, which must be one that this machine can run.
template <class Use>
void with_reader(const DoorbellForm& form, const RingMemory& memory, Use&& use) {
  const auto with = [&]<class Form>(Form) {
    RingReader<Form> reader(memory);
    use(reader);
  };
  const auto with_tails =
      [&]<std::uint32_t kStride>(std::integral_constant<std::uint32_t, kStride>) {
#if defined(ESPALIER_HAVE_X86_KITS)
        if (form.isa == base::Isa::avx512) return with(Avx512Tails<kStride>());
        if (form.isa == base::Isa::avx2) return with(Avx2Tails<kStride>());
#endif
        with(ScalarTails<kStride>());
      };
  switch (form.doorbell) {
    case Doorbell::tail4: return with_tails(std::integral_constant<std::uint32_t, 4>());
    case Doorbell::tail8: return with_tails(std::integral_constant<std::uint32_t, 8>());
    case Doorbell::tail16: return with_tails(std::integral_constant<std::uint32_t, 16>());
    case Doorbell::tail64: return with(ScalarTails<64>());
    case Doorbell::bitmap: return with(Bitmap());
    case Doorbell::slots: return with(NextSlots());
  }
}

}  // namespace espalier::bench
