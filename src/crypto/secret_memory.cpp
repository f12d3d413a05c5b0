// SPDX-License-Identifier: Apache-2.0
#include "crypto/secret_memory.hpp"

#include <sys/mman.h>
#include <sys/random.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/system_error.hpp"

namespace espalier::crypto {
namespace {

std::atomic<std::size_t> taken{0};

}  // namespace

Result<void*> take_secret_page() {
  void* const page =
      ::mmap(nullptr, kSecretPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return base::refused_by_system();
  const bool kept = ::mlock(page, kSecretPageBytes) == 0 &&
                    ::madvise(page, kSecretPageBytes, MADV_DONTDUMP) == 0 &&
                    ::madvise(page, kSecretPageBytes, MADV_DONTFORK) == 0;
  if (kept) {
    taken.fetch_add(1, std::memory_order_relaxed);
    return page;
  }
  const auto refused = base::refused_by_system();
  ::munmap(page, kSecretPageBytes);
  return refused;
}

void give_secret_page_back(void* page) noexcept {
  cleanse(page, kSecretPageBytes);
  ::munmap(page, kSecretPageBytes);
  taken.fetch_sub(1, std::memory_order_relaxed);
}

std::size_t secret_pages_taken() { return taken.load(std::memory_order_relaxed); }

Result<void> draw_bytes(std::span<std::byte> bytes) {
  for (std::size_t drawn = 0; drawn < bytes.size();) {
    const ssize_t got = ::getrandom(bytes.data() + drawn, bytes.size() - drawn, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::refused_by_system();
    drawn += static_cast<std::size_t>(got);
  }
  return {};
}

void cleanse(void* bytes, std::size_t count) noexcept { ::explicit_bzero(bytes, count); }

}  // namespace espalier::crypto
