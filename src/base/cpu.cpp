// SPDX-License-Identifier: Apache-2.0
#include "base/cpu.hpp"

#include <cpuid.h>
#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/system_error.hpp"

namespace espalier::base {
namespace {

constexpr unsigned kWaitpkgBit = 1u << 5;  // CPUID leaf 7, sub-leaf 0, ECX

CpuFeatures ask_cpu() {
  __builtin_cpu_init();
  CpuFeatures features;
  // These also ask whether the operating system saves the wide registers.
  features.sse42 = __builtin_cpu_supports("sse4.2");
  features.bmi2 = __builtin_cpu_supports("bmi2");
  features.pclmul = __builtin_cpu_supports("pclmul");
  features.avx2 = __builtin_cpu_supports("avx2");
  features.avx512f = __builtin_cpu_supports("avx512f");
  features.avx512bw = __builtin_cpu_supports("avx512bw");
  features.avx512vl = __builtin_cpu_supports("avx512vl");
  features.avx512vbmi = __builtin_cpu_supports("avx512vbmi");
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    features.waitpkg = (ecx & kWaitpkgBit) != 0;
  }
  return features;
}

Isa choose_isa() {
  Isa cap = Isa::avx512;
  if (const char* text = std::getenv("ESPALIER_ISA"); text != nullptr && *text != '\0') {
    if (const auto parsed = parse_isa(text)) {
      cap = *parsed;
    } else {
      std::fprintf(stderr, "ESPALIER_ISA=%s is none of scalar, avx2, avx512; it is ignored\n",
                   text);
    }
  }
  return best_isa(cpu_features(), cap);
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = ask_cpu();
  return features;
}

std::string_view name(Isa isa) {
  switch (isa) {
    case Isa::scalar: return "scalar";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
  }
  return "unknown";
}

std::optional<Isa> parse_isa(std::string_view text) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (text == name(isa)) return isa;
  }
  return std::nullopt;
}

Isa best_isa(const CpuFeatures& features, Isa cap) {
  const bool avx2 = features.avx2 && features.bmi2;
  const bool avx512 = avx2 && features.avx512f && features.avx512bw && features.avx512vl &&
                      features.avx512vbmi;
  if (avx512 && cap >= Isa::avx512) return Isa::avx512;
  if (avx2 && cap >= Isa::avx2) return Isa::avx2;
  return Isa::scalar;
}

Isa isa() {
  static const Isa chosen = choose_isa();
  return chosen;
}

std::vector<unsigned> usable_cores() {
  std::vector<unsigned> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  // Machines with more cores than the set has room for make this fail; the first ones must do.
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

Result<void> pin_this_thread(unsigned core) {
  if (core >= CPU_SETSIZE) return refused_by_system(EINVAL);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  const int failed = ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
  if (failed != 0) return refused_by_system(failed);
  return {};
}

}  // namespace espalier::base
