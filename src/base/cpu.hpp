// SPDX-License-Identifier: Apache-2.0
// What the CPU can do, which cores this process may use, and how far apart two of them are.
//
// The build assumes plain x86-64. Faster forms of an algorithm carry a target attribute and are
// chosen at run time by `isa()`; the scalar form is their oracle in tests. ESPALIER_ISA=scalar,
// avx2 or avx512 caps the choice, so that every form can be tested and measured on one machine.
//
// Features are asked from CPUID and never by trying an instruction: in a virtual machine some do
// nothing for microseconds, and others trap.
// Thread: safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "espalier/error.hpp"

namespace espalier::base {

/// What the CPU has, and the operating system lets it use.
struct CpuFeatures {
  bool sse42 = false;
  bool bmi2 = false;
  bool pclmul = false;  ///< products without carry, of 64 bits
  bool avx2 = false;
  bool avx512f = false;
  bool avx512bw = false;
  bool avx512vl = false;
  bool avx512vbmi = false;
  bool waitpkg = false;  ///< umonitor, umwait, tpause
};

/// Cost: asked once, then a load.
[[nodiscard]] const CpuFeatures& cpu_features();

/// The forms in which an algorithm may exist, each of them including the ones before it.
enum class Isa : std::uint8_t {
  scalar,  ///< plain C++
  avx2,    ///< avx2, bmi2
  avx512,  ///< avx512f, bw, vl, vbmi
};

[[nodiscard]] std::string_view name(Isa isa);
/// The inverse of name; nothing for any other text.
[[nodiscard]] std::optional<Isa> parse_isa(std::string_view text);
/// The best form that these features allow and that is not above the cap.
[[nodiscard]] Isa best_isa(const CpuFeatures& features, Isa cap);
/// The form to use on this machine, capped by ESPALIER_ISA. A text that names no form is reported
/// on standard error and ignored. Cost: decided once, then a load.
[[nodiscard]] Isa isa();

/// The cores that this thread may run on, ascending: fewer than the machine has, where the process
/// is confined.
[[nodiscard]] std::vector<unsigned> usable_cores();

/// Confines the calling thread to one core. Errors: system (no such core, or not ours to use).
Result<void> pin_this_thread(unsigned core);

/// Round trips of one cache line between two cores.
struct PingPong {
  double min_ns = 0;
  double median_ns = 0;
  double max_ns = 0;
};

/// Measures the round-trip latency of a cache line between two cores: `rounds` times the mean of
/// `round_trips`. It distinguishes SMT siblings, cores of one complex and cores of two. On virtual
/// benchmarks print it before and after.
/// Cost: about 10 to 100 ms with the defaults. Errors: invalid_argument (one core twice, or nothing
/// to do), system (a core is not ours to use).
[[nodiscard]] Result<PingPong> measure_ping_pong(unsigned first_core, unsigned second_core,
                                                 unsigned rounds = 20,
                                                 unsigned round_trips = 5000);

/// Hints to the CPU that this is a spin loop, to spare its SMT sibling and memory.
inline void spin_pause() noexcept { __builtin_ia32_pause(); }

}  // namespace espalier::base
